"""The diagnosis of a failing test as text: each list has its own few lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from sandbox.session.diagnosis import (
    Alias,
    Alike,
    Call,
    CaughtException,
    CodeChange,
    Comparison,
    Diagnosis,
    Difference,
    FailingTest,
    Found,
    Kept,
    Link,
    Mutation,
    OnlyCall,
    Parting,
    Place,
    ReadAttribute,
    Recording,
    Spectrum,
    Suspect,
    Written,
)
from tools._mutation import is_changed, is_mending, mutation_lines, select_changes, select_further
from tools._places import format_place, shorten, shorten_value
from tools._signals import COMMON, OVERWRITTEN, WEAK, signal_lines

_MAX_SUSPECTS = 4
_MAX_KEPT = 2
_LEAST = 1.2
"""Suspicion below which kept state is not told: nearly every program keeps some."""
_SURE, _SURE_ALIAS = 2.4, 6.5
"""Suspicion of kept state, and of shared objects, that come first; beside them, and beside signals, are no others."""
_MAX_CALLS, _MAX_BESIDE_UNSURE, _MAX_BESIDE, _MAX_OF_CHANGES = 10, 8, 4, 3
"""Calls that are told, beside a finding that is not sure, beside one that is, and beside changes that make the test pass."""
_BEHIND = 0.15
"""Less suspicion than the first one has, by which others are left out."""
_MAX_VALUES = 2
_MAX_DIFFERENCE = 120
_MAX_LINKS, _FEW_LINKS = 6, 3
"""Links of the way back from a wrong value, and from another one: it often misses the cause."""
_MAX_CALL = 150
_MAX_ONLY = 2
_MAX_ATTRIBUTES = 2
_MAX_FAILURE = 100
_MAX_COMPARISON = 1500
_MAX_LENGTH = 2500
_MAX_OTHERS = 500
"""Characters of the names of other functions that ran."""


def render_diagnosis(found: Diagnosis) -> str:
    """Format the comparison with a passing run, and then what tells most first.

    Signals, shared objects and state that is kept, if they are sure; else the wrong value's first appearance, suspects and
    the way back; the calls that matter most; findings that are not sure.
    """
    shown = select_shown(found)
    recording = shown.recording
    named = {one.function for one in _changed_places(shown)}
    findings = [*_aliases_text(shown.aliases), *_kept_text(shown.kept)]
    parts = [
        *_difference_text(recording.difference),
        *map(_written_line, recording.written),
        *_attributes_text(recording),
        *signal_lines(recording.signals),
        *mutation_lines(found.mutation, shown.changes, shown.further),
        *(findings if shown.is_sure else []),
        *map(_caught_line, recording.caught),
        *([] if shown.is_sure or shown.changes else _values_text(recording, shown.links)),
        *_suspects_text(found.spectrum, shown.suspects),
        *(_alike_line(one) for one in recording.alike if one.of in named),
        *_chain_text(recording, len(shown.links)),
        *_calls_text(shown.calls, recording, found.spectrum or Spectrum()),
        *([] if shown.is_sure else findings),
        *map(_failing_line, select_failing(found, shown)),
        *([] if shown.is_sure or shown.changes else _others_text(found.mutation, shown.calls, recording)),
        *_notes(found, recording),
    ]
    texts = [
        _cut("\n".join(_comparison_text(found.comparison)), _MAX_COMPARISON),
        _cut("\n".join(parts), _MAX_LENGTH),
    ]
    return "\n".join(text for text in texts if text)


def select_failing(found: Diagnosis, shown: Shown) -> list[FailingTest]:
    """Other tests that fail, unless the best change mends them all, too."""
    failing = found.spectrum.failing if found.spectrum else []
    is_all = shown.is_mended and shown.changes[0].mended >= len(failing)
    return [] if is_all else failing


def _failing_line(one: FailingTest) -> str:
    text = f"{one.type}: {one.message}" if one.message else one.type
    return f"fails too: {shorten(one.test, 150)}: {shorten(text, _MAX_FAILURE)}"


def _written_line(one: Written) -> str:
    value = f" = {shorten_value(one.value, _MAX_FAILURE)}" if one.value else ""
    return f".{one.name}{value} of the failing line was set at {format_place(one)}: {shorten(one.text)}"


def _attributes_text(recording: Recording) -> list[str]:
    """The last writes of attributes that functions of the failure have read, but for those of the failing line."""
    told = {(one.path, one.line) for one in recording.written}
    others = [one for one in recording.attributes if (one.path, one.line) not in told]
    return [_attribute_line(one) for one in others[:_MAX_ATTRIBUTES]]


def _attribute_line(one: ReadAttribute) -> str:
    value = f" = {shorten_value(one.value, _MAX_FAILURE)}" if one.value else ""
    made = f"; made at {format_place(one.maker)}: {shorten(one.maker.text, 70)}" if one.maker else ""
    read = f"{one.read.function.rpartition('.')[2]}():{one.read.line}"
    return (
        f".{one.name}{value}, read in {read}, was set at {format_place(one)}: {shorten(one.text, 70)}{made}"
    )


def _difference_text(one: Difference | None) -> list[str]:
    if one is None:
        return []
    # Spaces may be all that differs.
    actual, expected = (
        _cut(side.replace("\n", "\\n"), _MAX_DIFFERENCE) for side in (one.actual, one.expected)
    )
    told = (
        f"{actual} instead of {expected}"
        if one.is_ordered
        else f"{actual} on the left, {expected} on the right"
    )
    return [f"differs first at {shorten_value(one.place, _MAX_DIFFERENCE)}: {told}"]


def _changed_places(shown: Shown) -> list[Place]:
    """Places of the findings that other functions with the same code may share."""
    changes = [one.changed for one in shown.aliases] + [one.written for one in shown.kept]
    return [*changes, *shown.changes, *shown.suspects, *shown.links]


def _alike_line(one: Alike) -> str:
    return f"same code with other names: {one.of}() and {format_place(one)}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _comparison_text(found: Comparison | None) -> list[str]:
    """Format where the failing run and a passing one part."""
    if found is None:
        return []
    failed = found.against_failed
    ended = f"FAILS too: {failed.type} at {failed.path}:{failed.line}" if failed else found.against_outcome
    head = f"against {shorten(found.against)} ({ended or 'ended'}), "
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
    return f"  {label}: {format_place(one)}: {shorten(one.text)}   {', '.join(values)}"


def _only_text(label: str, found: list[OnlyCall]) -> list[str]:
    shown = [
        f"  {label}: {format_place(one.called)}"
        + (f", from {format_place(one)}: {shorten(one.text, 60)}" if one.path else "")
        for one in found[:_MAX_ONLY]
    ]
    left = len(found) - _MAX_ONLY
    return [*shown, f"  … {left} more"] if left > 0 else shown


def _suspects_text(spectrum: Spectrum | None, found: list[Suspect]) -> list[str]:
    if spectrum is None or not found:
        return []
    if not spectrum.passed:
        lines = [f"  {format_place(one)}: {shorten(one.text)}" for one in found]
        return ["no passing test to compare with; functions that ran:", *lines]
    lines = [_suspect_line(one, spectrum) for one in found]
    return [f"suspects (lines that set this test apart from {spectrum.passed} passing ones):", *lines]


def _suspect_line(one: Suspect, spectrum: Spectrum) -> str:
    others = f"in {one.passing} of {spectrum.passed}" if one.passing else "only here"
    more = f", also :{', :'.join(map(str, one.more[:3]))}" if one.more else ""
    return f"  {format_place(one)}: {shorten(one.text)}   ({others}{more})"


def _aliases_text(aliases: list[Alias]) -> list[str]:
    """The first one; the others tell where the same object was stored, too."""
    if not aliases:
        return []
    also = [f"    also stored at {_named(one.stored, 'as', one.name)}\n" for one in aliases[1:]]
    return ["shared objects:", _alias_line(aliases[0], "".join(also))]


def _alias_line(one: Alias, also: str) -> str:
    if one.places:
        return (
            f"  {one.kind}: one object in {one.places} places, put there at {_named(one.stored, 'as', one.name)}\n"
            f"    changed at {_named(one.changed, 'through', one.through)}"
        )
    changed = "no longer the same object from" if one.parted else "changed at"
    given = f"    given by {format_place(one.given)}: {shorten(one.given.text, 70)}\n" if one.given else ""
    peers = " of several objects" if one.of_peers else ""
    return (
        f"  {one.kind}{peers} stored at {_named(one.stored, 'as', one.name)}\n{given}{also}"
        f"    {changed} {_named(one.changed, 'through', one.through)}"
    )


def _named(place: Place, word: str, name: str) -> str:
    """A place with its source, and a name that its source does not tell."""
    text = shorten(place.text, 70)
    told = name.removesuffix(" +=").removesuffix(" =").removesuffix("[…]") in text
    return f"{format_place(place)}{'' if told else f' {word} {name}'}: {text}"


class Shown(NamedTuple):
    """The findings of a diagnosis that its text tells, of each list the best first."""

    aliases: list[Alias]
    kept: list[Kept]
    suspects: list[Suspect]
    links: list[Link]
    calls: list[Call]
    changes: list[CodeChange]
    recording: Recording
    """The rest, as far as it is told: nothing that leads to the cause where a change is mostly at it."""
    is_sure: bool
    """True if a signal, a shared object or kept state is likely enough to come before the calls."""
    is_mended: bool = False
    """True if the cause is mostly at the first of the changes."""
    further: Sequence[CodeChange] = ()
    """Changes with which the test comes further, if there are no others."""


def select_shown(found: Diagnosis) -> Shown:
    """Select what is told: beside calls no suspects, and beside calls and a finding of its own kind no way back.

    Beside changes that make the test pass there are no findings that are not sure, but for one that explains them;
    beside one that is mostly at the cause, no calls.
    Beside a function that refused its arguments there is nothing else.
    """
    recording, spectrum = found.recording or Recording(), found.spectrum or Spectrum()
    suspects = recording.suspects or spectrum.suspects
    called = {(one.path, one.function) for one in recording.calls}
    if any(one.refused for one in recording.chain):
        return Shown([], [], [], recording.chain[:1], [], [], recording, is_sure=False)
    aliases = _with_second_place(recording.aliases)
    aliases = [] if called and not any(_is_among(one, called) for one in aliases) else aliases
    is_shared = bool(aliases) and aliases[0].score >= _SURE_ALIAS
    is_signal = any(one.kind not in WEAK for one in recording.signals)
    kept = _select_kept(recording.kept, _SURE if aliases or is_signal else _LEAST)
    is_kept = bool(kept) and kept[0].score >= _SURE
    explained = any(one.kind not in (OVERWRITTEN, *WEAK) for one in recording.signals)
    if explained or (is_kept and not is_shared):
        aliases = []
    is_sure = is_signal or is_kept or is_shared
    changes = select_changes(found.mutation)
    further = [] if changes else select_further(found.mutation)
    is_mended = is_mending(changes, found.mutation)
    if is_mended:
        recording, suspects = _without_way(recording, changes), []
    if changes and (is_mended or not is_shared):
        aliases = [one for one in aliases if _is_of(changes, one.changed, one.stored)]
    if is_mended:
        kept = [one for one in kept if is_kept and _is_of(changes, one.written, one.read)]
    elif changes and not is_kept:
        kept = []
    kept = kept if is_sure or not called else kept[:1]
    if not called:
        links = recording.chain[:_MAX_LINKS]
        return Shown(
            aliases,
            kept,
            suspects[:_MAX_SUSPECTS],
            links,
            [],
            changes,
            recording,
            is_sure,
            is_mended,
            further,
        )
    is_finding = bool(is_sure or kept or aliases or changes)
    few = 0 if is_finding else _FEW_LINKS
    links = recording.chain[: _MAX_LINKS if recording.chain_of_value and not is_finding else few]
    most = _MAX_BESIDE if is_sure else _MAX_BESIDE_UNSURE if is_finding else _MAX_CALLS
    most = min(most, _MAX_OF_CHANGES) if changes else most
    calls = [] if is_mended else _select_calls(recording.calls, most)
    return Shown(aliases, kept, [], links, calls, changes, recording, is_sure, is_mended, further)


def _without_way(recording: Recording, changes: Sequence[CodeChange]) -> Recording:
    """The recording without what only leads to the cause, and without common signals elsewhere than at the changes."""
    leading = ("written", "attributes", "caught", "values", "chain")
    signals = [one for one in recording.signals if one.kind not in COMMON or _is_of(changes, *one.places)]
    update = {**{name: [] for name in leading}, "signals": signals, "chain_class": None}
    return recording.model_copy(update=update)


def _is_of(changes: Sequence[CodeChange], *places: Place) -> bool:
    """True if one of the places is in a function of changes, or in one inside of it."""
    return any(is_changed(one, changes) for one in places)


def _with_second_place(aliases: list[Alias]) -> list[Alias]:
    """The best shared object, and the next one if it is the same change of what was stored elsewhere, too."""
    found = aliases[:1]
    for one in aliases[1:2] if found and not (found[0].parted or found[0].places) else ():
        is_same = (one.changed.path, one.changed.line, one.kind) == (
            found[0].changed.path,
            found[0].changed.line,
            found[0].kind,
        )
        found += [one] if is_same and not one.parted and not one.places else []
    return found


def _is_among(alias: Alias, called: Collection[tuple[str, str]]) -> bool:
    """True if a function that stores, gives or changes a shared object is among the calls that matter most.

    Where each of several objects takes it for its own, it need not be.
    """
    places = [alias.stored, alias.changed, *([alias.given] if alias.given else [])]
    return alias.of_peers or any((one.path, one.function) in called for one in places)


def _select_calls(calls: list[Call], most: int) -> list[Call]:
    """Select the calls that matter most, nested in those of them that are told."""
    best = {id(one) for one in sorted(calls, key=lambda one: -one.score)[:most]}
    selected, above = list[Call](), list[Call]()
    for one in calls:
        del above[one.depth :]
        if id(one) in best:
            selected.append(one.model_copy(update={"depth": sum(id(each) in best for each in above)}))
        above.append(one)
    return selected


def _select_kept(found: list[Kept], least: float) -> list[Kept]:
    """Select the kept state that is suspect enough to be told, the best first."""
    least = max(least, found[0].score - _BEHIND) if found else least
    return [one for one in found if one.score >= least][:_MAX_KEPT]


def _kept_text(found: list[Kept]) -> list[str]:
    return ["state that one call leaves to the next:", *map(_kept_line, found)] if found else []


def _kept_line(one: Kept) -> str:
    notes = [
        f"class attribute of :{one.shared_at}, the same for all instances" if one.shared_at else "",
        f"of the object in {one.holder}, set at {format_place(one.held)}" if one.held else "",
        "a global" if one.writers else "",
        f"it was a {one.was.strip('<>')}" if one.was else "",
    ]
    about = "; ".join(note for note in notes if note)
    by = "".join(f"\n    by {format_place(each)}{_writer_text(each)}" for each in one.writers)
    value = f"   ({shorten_value(one.value, 60)})" if one.value and not one.writers else ""
    others = one.others if one.score >= _SURE else []
    also = f"    also changed by {', '.join(map(format_place, others))}\n" if others else ""
    passed = (
        f"    not changed by {', '.join(map(format_place, one.passed_by))}, called since\n"
        if one.passed_by
        else ""
    )
    call = f" of {one.function}()" if one.function != one.read.function else ""
    done, later = ("written", f" in a later call{call}") if one.function else ("changed", "")
    then, now = (_arguments_text(one, which) for which in ("then", "now"))
    return (
        f"  {one.name}{about and f' ({about})'} {done} at {format_place(one.written)}: "
        f"{shorten(one.written.text, 60)}{value}{then}{by}\n"
        f"{passed}{also}"
        f"    read{later} at {format_place(one.read)}: {shorten(one.read.text, 60)}{now}"
    )


def _writer_text(one: Place) -> str:
    """The source of a writer's line, unless that only begins its function."""
    return "" if one.text.startswith(("def ", "async def ")) else f": {shorten(one.text, 60)}"


def _caught_line(one: CaughtException) -> str:
    message = f"{one.type}: {one.message}" if one.message else one.type
    is_here = (one.raised.path, one.raised.function) == (one.path, one.function)
    caught = f"caught by :{one.line}" if is_here else f"caught at {format_place(one)}"
    return f"{shorten(message)} was raised at {format_place(one.raised)}: {shorten(one.raised.text, 60)}; {caught}"


def _arguments_text(one: Kept, which: Literal["then", "now"]) -> str:
    """Format the arguments of one of two calls, as far as they differ from the other's."""
    values = ", ".join(f"{each.name}={shorten_value(getattr(each, which))}" for each in one.arguments)
    return f"   in {one.function.rpartition('.')[2]}({values})" if values else ""


def _calls_text(calls: list[Call], recording: Recording, spectrum: Spectrum) -> list[str]:
    """The calls, each with the line that sets its function apart from what passing tests run."""
    if not calls:
        return []
    rare = {(one.path, one.function): one for one in recording.suspects or spectrum.suspects}
    beside = f"; how many of {spectrum.passed} passing tests run a line" if spectrum.passed else ""
    number = f"{recording.functions} function{'s' * (recording.functions > 1)}"
    head = f"calls that matter most, of {number}{beside}:"
    lines = (_call_line(one, rare.get((one.path, one.function))) for one in calls)
    return [head, *lines]


def _others_text(mutation: Mutation | None, calls: Sequence[Call], recording: Recording) -> list[str]:
    """The names of other functions that have run, by file: where no change has helped, one of them is looked at next."""
    if mutation is None or not mutation.tried:
        return []
    told = {(one.path, one.function) for one in calls}
    by_path, left = dict[str, list[str]](), _MAX_OTHERS
    for one in recording.ran:
        if (one.path, one.function) not in told:
            left -= len(one.function) + 2 + (0 if one.path in by_path else len(one.path) + 2)
            if left < 0:
                break
            by_path.setdefault(one.path, []).append(one.function)
    files = (f"{path}: {', '.join(dict.fromkeys(names))}" for path, names in by_path.items())
    return [f"others that ran, the most suspect first: {'; '.join(files)}"] if by_path else []


def _call_line(one: Call, rare: Suspect | None) -> str:
    notes = [
        f"{one.calls} calls" if one.calls > 1 else "",
        f":{rare.line} in {rare.passing or 'none'}" if rare is not None else "",
    ]
    about = "; ".join(note for note in notes if note)
    result = f" → {one.result}" if one.result else ""
    at = f":{one.called_at} → " if one.called_at and not one.depth else "  " * one.depth
    call = shorten_value(f"{one.path}:{one.line} {one.function}({one.arguments}){result}", _MAX_CALL)
    return f"  {at}{call}{about and f'   ({about})'}"


def _chain_text(recording: Recording, most: int) -> list[str]:
    """The links; of the first one, which is the failing line, the value alone."""
    shown = recording.chain[:most]
    if not shown:
        return []
    before = ["", *(one.value for one in shown)]
    lines = [_link_line(one, value, first=one is shown[0]) for one, value in zip(shown, before, strict=False)]
    one = recording.chain_class
    class_text = f", of class {one.function} {one.path}:{one.line}" if one else ""
    if len(recording.chain) <= most and recording.chain_end:
        lines.append(f"  ended: {recording.chain_end}{class_text}")
    return ["way back from the failure:", *lines]


def _link_line(one: Link, before: str, *, first: bool) -> str:
    """A link; its value if it is another one than that of the link before."""
    value = f" = {shorten_value(one.value, 60)}" if one.value and one.value != before else ""
    name = f"{one.name}{value}  " if one.name else ""
    if first:
        return f"  {name}{format_place(one)}" if name else f"  {format_place(one)}: {shorten(one.text, 70)}"
    return f"  ← {name}{format_place(one)}: {shorten(one.text, 60)}"


def _values_text(recording: Recording, links: list[Link]) -> list[str]:
    """First appearances, but of those at lines of the way back."""
    told = {(one.path, one.line) for one in links}
    return [_value_line(one) for one in recording.values[:_MAX_VALUES] if (one.path, one.line) not in told]


def _value_line(one: Found) -> str:
    value, place, text = shorten_value(one.value, 40), format_place(one), shorten(one.text, 60)
    if one.is_change:
        return f"{value} was put into {shorten(one.name, 40)} at {place}: {text}"
    return f"{value} appears first at {place} as {one.name}: {text}"


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
    return [f"note: {shorten(note, 200)}" for note in notes[:5]]
