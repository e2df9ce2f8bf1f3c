"""The diagnosis of a failing test as text: each list has its own few lines."""

from __future__ import annotations

from typing import Literal, NamedTuple

from sandbox.session.diagnosis import (
    Alias,
    CaughtException,
    Comparison,
    Diagnosis,
    Kept,
    Link,
    OnlyCall,
    Parting,
    Place,
    Recording,
    Spectrum,
    Suspect,
)

_MAX_SUSPECTS, _FEW_SUSPECTS = 4, 2
_MAX_ALIASES = 2
_MAX_KEPT = 2
_LEAST = 0.3
"""Suspicion below which kept state is not told: nearly every program keeps some."""
_BEHIND = 0.75
"""Less suspicion than the first one has, by which others are left out."""
_MAX_VALUES = 2
_MAX_LINKS, _FEW_LINKS = 6, 2
_CLEAR = 1.05
"""Suspicion of kept state that is told beside lines that no passing test runs, on the way to the failure."""
_ENOUGH = 5
"""Passing tests of which that tells something."""
_ON_THE_WAY = 10_000
"""Distance below which a suspect is on the way to the failure."""
_MAX_TEXT = 80
_MAX_ONLY = 2
_MAX_COMPARISON = 1500
_MAX_LENGTH = 2500


def render_diagnosis(found: Diagnosis) -> str:
    """Format the comparison with a passing run, and then what tells most first.

    Shared objects and state that is kept; suspects and the way back, fewer of them after those; the wrong value's first
    appearance.
    """
    recording = found.recording or Recording()
    shown = select_shown(found)
    parts = [
        *_aliases_text(shown.aliases),
        *_kept_text(shown.kept),
        *map(_caught_line, recording.caught),
        *_suspects_text(found.spectrum, shown.suspects),
        *(f"same code with other names: {one.of}() and {_place(one)}" for one in recording.alike),
        *_chain_text(recording, len(shown.links)),
        *_values_text(recording, shown.links),
        *_notes(found, recording),
    ]
    texts = [
        _cut("\n".join(_comparison_text(found.comparison)), _MAX_COMPARISON),
        _cut("\n".join(parts), _MAX_LENGTH),
    ]
    return "\n".join(text for text in texts if text)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _comparison_text(found: Comparison | None) -> list[str]:
    """Format where the failing run and a passing one part."""
    if found is None:
        return []
    failed = found.against_failed
    ended = f"FAILS too: {failed.type} at {failed.path}:{failed.line}" if failed else found.against_outcome
    head = f"against {_shorten(found.against)} ({ended or 'ended'}), "
    if not found.functions:
        return [f"{head}can't be aligned: no function of the repository ran in both"]
    lines = [
        *(_parting_line("path parts", one) for one in found.paths),
        *(_parting_line("differs though its inputs are the same", one) for one in found.values[:1]),
        *(_parting_line("differs first", one) for one in [*found.inputs][: 0 if found.values else 1]),
        *_only_text("called only here", found.only_here),
        *_only_text("called only in the other", found.only_there),
    ]
    counted = f"{found.functions} function{'s' * (found.functions > 1)} in both"
    lines = lines or ["  no difference: same lines and values, as far as they are recorded"]
    notes = [f"  note: {found.cut}"] if found.cut else []
    return [f"{head}{counted}; each as: here | there", *lines, *notes]


def _parting_line(label: str, one: Parting) -> str:
    name = f"{one.name} = " if one.name and one.name != "condition" else ""
    values = [f"{name}{one.here} | {one.there}"] if one.here or one.there else []
    if one.next_here != one.next_there:
        ways = (f":{line}" if line else "its end" for line in (one.next_here, one.next_there))
        values.append("goes on at " + " | ".join(ways))
    return f"  {label}: {_place(one)}: {_shorten(one.text)}   {', '.join(values)}"


def _only_text(label: str, found: list[OnlyCall]) -> list[str]:
    shown = [
        f"  {label}: {_place(one.called)}"
        + (f", from {_place(one)}: {_shorten(one.text, 60)}" if one.path else "")
        for one in found[:_MAX_ONLY]
    ]
    left = len(found) - _MAX_ONLY
    return [*shown, f"  … {left} more"] if left > 0 else shown


def _suspects_text(spectrum: Spectrum | None, found: list[Suspect]) -> list[str]:
    if spectrum is None or not found:
        return []
    if not spectrum.passed:
        lines = [f"  {_place(one)}: {_shorten(one.text)}" for one in found]
        return ["no passing test to compare with; functions that ran:", *lines]
    lines = [_suspect_line(one, spectrum) for one in found]
    return [f"suspects (lines that set this test apart from {spectrum.passed} passing ones):", *lines]


def _suspect_line(one: Suspect, spectrum: Spectrum) -> str:
    others = f"in {one.passing} of {spectrum.passed}" if one.passing else "only here"
    more = f", also :{', :'.join(map(str, one.more[:3]))}" if one.more else ""
    return f"  {_place(one)}: {_shorten(one.text)}   ({others}{more})"


def _aliases_text(aliases: list[Alias]) -> list[str]:
    return ["shared objects:", *map(_alias_line, aliases)] if aliases else []


def _alias_line(one: Alias) -> str:
    if one.places:
        return (
            f"  {one.kind}: one object in {one.places} places, put there at {_named(one.stored, 'as', one.name)}\n"
            f"    changed at {_named(one.changed, 'through', one.through)}"
        )
    changed = "no longer the same object from" if one.parted else "changed at"
    return (
        f"  {one.kind} stored at {_named(one.stored, 'as', one.name)}\n"
        f"    {changed} {_named(one.changed, 'through', one.through)}"
    )


def _named(place: Place, word: str, name: str) -> str:
    """A place with its source, and a name that its source does not tell."""
    text = _shorten(place.text, 70)
    told = name.removesuffix(" +=").removesuffix(" =").removesuffix("[…]") in text
    return f"{_place(place)}{'' if told else f' {word} {name}'}: {text}"


class Shown(NamedTuple):
    """The findings of a diagnosis that its text tells, of each list the best first."""

    aliases: list[Alias]
    kept: list[Kept]
    suspects: list[Suspect]
    links: list[Link]


def select_shown(found: Diagnosis) -> Shown:
    """Select what is told: of suspects and of the way back less where shared objects or kept state tell more."""
    recording, spectrum = found.recording or Recording(), found.spectrum or Spectrum()
    suspects = recording.suspects or spectrum.suspects
    is_clear = spectrum.passed >= _ENOUGH and any(
        not one.passing and one.distance < _ON_THE_WAY for one in recording.suspects
    )
    aliases = recording.aliases[:_MAX_ALIASES]
    kept = _select_kept(recording.kept, _CLEAR if is_clear else _LEAST)
    few = aliases or kept
    suspects = suspects[: _FEW_SUSPECTS if few else _MAX_SUSPECTS]
    return Shown(aliases, kept, suspects, recording.chain[: _FEW_LINKS if few else _MAX_LINKS])


def _select_kept(found: list[Kept], least: float) -> list[Kept]:
    """Select the kept state that is suspect enough to be told, the best first."""
    least = max(least, found[0].score - _BEHIND) if found else least
    return [one for one in found if one.score >= least][:_MAX_KEPT]


def _kept_text(found: list[Kept]) -> list[str]:
    return ["state that one call leaves to the next:", *map(_kept_line, found)] if found else []


def _kept_line(one: Kept) -> str:
    notes = [
        f"class attribute of :{one.shared_at}, the same for all instances" if one.shared_at else "",
        f"of the object in {one.holder}, set at {_place(one.held)}" if one.held else "",
        "a global" if one.writers else "",
        f"it was a {one.was.strip('<>')}" if one.was else "",
    ]
    about = "; ".join(note for note in notes if note)
    by = "".join(f"\n    by {_place(each)}{_writer_text(each)}" for each in one.writers)
    value = f"   ({_shorten(one.value, 60)})" if one.value and not one.writers else ""
    also = f"    also changed by {', '.join(map(_place, one.others))}\n" if one.others else ""
    passed = (
        f"    not changed by {', '.join(map(_place, one.passed_by))}, called since\n" if one.passed_by else ""
    )
    call = f" of {one.function}()" if one.function != one.read.function else ""
    done, later = ("written", f" in a later call{call}") if one.function else ("changed", "")
    then, now = (_arguments_text(one, which) for which in ("then", "now"))
    return (
        f"  {one.name}{about and f' ({about})'} {done} at {_place(one.written)}: "
        f"{_shorten(one.written.text, 60)}{value}{then}{by}\n"
        f"{passed}{also}"
        f"    read{later} at {_place(one.read)}: {_shorten(one.read.text, 60)}{now}"
    )


def _writer_text(one: Place) -> str:
    """The source of a writer's line, unless that only begins its function."""
    return "" if one.text.startswith(("def ", "async def ")) else f": {_shorten(one.text, 60)}"


def _caught_line(one: CaughtException) -> str:
    message = f"{one.type}: {one.message}" if one.message else one.type
    is_here = (one.raised.path, one.raised.function) == (one.path, one.function)
    caught = f"caught by :{one.line}" if is_here else f"caught at {_place(one)}"
    return (
        f"{_shorten(message)} was raised at {_place(one.raised)}: {_shorten(one.raised.text, 60)}; {caught}"
    )


def _arguments_text(one: Kept, which: Literal["then", "now"]) -> str:
    """Format the arguments of one of two calls, as far as they differ from the other's."""
    values = ", ".join(f"{each.name}={_shorten(getattr(each, which))}" for each in one.arguments)
    return f"   in {one.function.rpartition('.')[2]}({values})" if values else ""


def _chain_text(recording: Recording, most: int) -> list[str]:
    """The links; of the first one, which is the failing line, the value alone."""
    if not recording.chain:
        return []
    shown = recording.chain[:most]
    before = ["", *(one.value for one in shown)]
    lines = [_link_line(one, value, first=one is shown[0]) for one, value in zip(shown, before, strict=False)]
    one = recording.chain_class
    class_text = f", of class {one.function} {one.path}:{one.line}" if one else ""
    if len(recording.chain) <= most and recording.chain_end:
        lines.append(f"  ended: {recording.chain_end}{class_text}")
    return ["way back from the failure:", *lines]


def _link_line(one: Link, before: str, *, first: bool) -> str:
    """A link; its value if it is another one than that of the link before."""
    value = f" = {_shorten(one.value, 60)}" if one.value and one.value != before else ""
    name = f"{one.name}{value}  " if one.name else ""
    if first:
        return f"  {name}{_place(one)}" if name else f"  {_place(one)}: {_shorten(one.text, 70)}"
    return f"  ← {name}{_place(one)}: {_shorten(one.text, 60)}"


def _values_text(recording: Recording, links: list[Link]) -> list[str]:
    """First appearances, but of those at lines of the way back."""
    told = {(one.path, one.line) for one in links}
    return [
        f"{_shorten(one.value, 40)} appears first at {_place(one)} as {one.name}: {_shorten(one.text, 60)}"
        for one in recording.values[:_MAX_VALUES]
        if (one.path, one.line) not in told
    ]


def _notes(found: Diagnosis, recording: Recording) -> list[str]:
    notes = [*found.notes]
    if found.spectrum is not None and found.spectrum.cut:
        notes.append(f"spectrum: {found.spectrum.cut}")
    if found.spectrum is not None and found.spectrum.plain is None:
        notes.append("the test did not fail when it ran with the tests of its file")
    if recording.differs:
        notes.append(f"the recorded run failed otherwise ({recording.differs}): its recording is not used")
    if recording.cut:
        notes.append(f"recording: {recording.cut}")
    if found.comparison is not None and found.comparison.outcome != "failed":
        notes.append("the test did not fail when it was compared")
    problems = [
        *(found.spectrum.problems if found.spectrum else []),
        *recording.problems,
        *(found.comparison.problems if found.comparison else []),
    ]
    notes += [f"a part of the analysis has failed ({problem})" for problem in problems[:2]]
    return [f"note: {_shorten(note, 200)}" for note in notes[:5]]


def _place(one: Place) -> str:
    """Path, line and function; no test, which the answer names anyway."""
    names = one.function.split(".")
    call = "" if names[0] == "<module>" or names[-1].startswith("test") else f" {one.function}()"
    return f"{one.path}:{one.line}{call}"


def _shorten(text: str, longest: int = _MAX_TEXT) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
