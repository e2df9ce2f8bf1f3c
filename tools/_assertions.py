"""Messages of failing assertions without what they say twice."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BOUND_METHOD = re.compile(r"<bound method ([\w.]+(?:\.<locals>\.[\w.]+)*) of (?=<)")
_BUILT_IN = re.compile(
    r"<(?:built-in method (?P<method>\w+)|method-wrapper '(?P<special>\w+)') of (?P<type>[\w.]+) object at 0x[0-9a-f]+>"
)
_FUNCTION = re.compile(
    r"<(?:function (?P<name>[\w.<>]+) at 0x[0-9a-f]+|built-in function (?P<plain>\w+))>(?=\(| = )"
)
_OWNER = re.compile(
    r"[+ ]*(?:where|and) +(?P<method><(?:built-in method|method-wrapper) [^>]+>) = (?P<owner>.+)\.\w+"
)
_MAX_OWNER = 60
"""Characters of an object that is told in front of its method."""
_LOOKED_UP = re.compile(r"[+ ]*(?:where|and) +(?P<name>[\w.<>]+) = .*\.(?P<attribute>\w+)")
_RESULT = re.compile(r"(?P<head>[+ ]*(?:where|and) +)(?P<value>.+) = (?P<how>.+)")
_MAX_REPEATED = 40
"""Characters of a value that is told once more where a message tells how it was found."""
_ADVICE = re.compile(r"\s*(?:\.\.\.)?\s*Use -v+ to get (?:more diff|the full diff)\.?\s*")
_DIFF = re.compile(r"[-+?]? (?P<text>.*)|[-+?]?")
_MARKS = frozenset(" ^+-?")
_MARKED, _FEW_MARKS = re.compile(r"\? [ \t^+-]+"), 2
"""A line that marks the characters that differ in the two lines above it; so many of them are read at a glance."""
_SEQUENCES = re.compile(r"(?:Lists|Tuples|Sequences) differ: ")
_CUT = re.compile(r"\.\.\.|\[\d+ chars\]")
_ASSERTED = re.compile(r"assert .* (?:==|!=) ")
"""The line of a message with both sides, or their beginnings."""
_FOUND = re.compile(r" \+ +(?:where|and) ")
_OTHERS = re.compile(r" *(?:(?:Left|Right) contains |Differing items:|Extra items )")
"""Headings of pytest of what only one side has, and of items, which may be several."""
_MAX_WHOLE = 240
"""Characters of a first line that is read at a glance, so that no difference need be pointed out."""
_MAX_MESSAGE = 20_000


def shorten_assertion(message: str) -> str:
    """Leave out what the first line has told: the difference of short values, and how a called method was found.

    Texts of other exceptions come back as they are.
    """
    if "\n" not in message or len(message) > _MAX_MESSAGE:
        return message
    first, *rest = _name_methods(_name_built_in(message)).split("\n")
    rest = [
        _shorten_value(line, first) for line in rest if not _ADVICE.fullmatch(line) and not _is_lookup(line)
    ]
    without = [line for line in rest if not _MARKED.fullmatch(line)]
    rest = without if len(rest) - len(without) > _FEW_MARKS else rest
    if _tells_all(first):
        if _SEQUENCES.search(first):
            rest = rest[-1:]  # it may end with the text that a test adds
        rest = [line for line in rest if not _repeats(line, first)]
    return "\n".join([first, *rest]).rstrip()


def leave_out_difference(message: str) -> str:
    """Leave out the only difference of both sides, which is told otherwise: both sides and how they were found are left.

    With several differences, with anything else behind both sides, and of other exceptions it comes back as it is.
    """
    lines = message.split("\n")
    asserted = [index for index, line in enumerate(lines) if _ASSERTED.match(line)]
    compared = asserted[-1] if asserted else 0
    if not asserted and " != " not in lines[0]:
        return message
    found = [line for line in lines[compared + 1 :] if _FOUND.match(line)]
    rest = [line for line in lines[compared + 1 :] if line not in found]
    return "\n".join([*lines[: compared + 1], *found]) if _is_one_difference(rest) else message


def _is_one_difference(lines: Sequence[str]) -> bool:
    """True for the lines by which test frameworks tell one difference, and nothing else."""
    counts, values = {"-": 0, "+": 0}, 0
    for line in lines:
        if line.startswith("First differing element "):
            values = 2  # each side in a line
        elif values:
            values -= 1
        elif line.lstrip()[:2] in ("- ", "+ "):
            counts[line.lstrip()[0]] += 1
        elif line.strip() and not line.startswith(("? ", "  ")):
            return False
        if _OTHERS.match(line) or " : " in line:
            return False
    return max(counts.values()) <= 1


def _tells_all(first: str) -> bool:
    """True if both sides of a comparison are there, on a line each."""
    compares = " != " in first or " == " in first
    return compares and len(first) <= _MAX_WHOLE and "\\n" not in first and not _CUT.search(first)


def _repeats(line: str, first: str) -> bool:
    """True for a line of a difference with nothing but what is in the first line, and for the marks below one."""
    found = _DIFF.fullmatch(line.removeprefix("  "))
    text = (found["text"] or "").strip() if found else line
    return text in first or set(text) <= _MARKS


def _shorten_value(line: str, first: str) -> str:
    """Shorten the long value in `where '…' = page.text()`, which the first line has told."""
    found = _RESULT.fullmatch(line)
    if found is None or len(found["value"]) <= _MAX_REPEATED or found["value"] not in first:
        return line
    return f"{found['head']}{found['value'][:_MAX_REPEATED]}… = {found['how']}"


def _is_lookup(line: str) -> bool:
    """True for `where Table.count = <Table …>.count`, which the line of the call has told."""
    found = _LOOKED_UP.fullmatch(line)
    return found is not None and found["name"].rpartition(".")[2] == found["attribute"]


def _name_built_in(text: str) -> str:
    """Put `'ab'.count`, or `str.count` for a long text, in place of `<built-in method count of str object at 0x7f…>`.

    The line that tells how it was found is left out then. Functions are named, too.
    """
    if " at 0x" not in text and "<built-in function " not in text:
        return text
    lines, owners = list[str](), dict[str, str]()
    for line in text.split("\n"):
        found = _OWNER.fullmatch(line)
        if found is None or not _BUILT_IN.fullmatch(found["method"]):
            lines.append(line)
        elif len(found["owner"]) <= _MAX_OWNER:
            owners[found["method"]] = found["owner"]

    def name(found: re.Match[str]) -> str:
        return f"{owners.get(found[0], found['type'])}.{found['method'] or found['special']}"

    return _FUNCTION.sub(lambda found: found["name"] or found["plain"], _BUILT_IN.sub(name, "\n".join(lines)))


def _name_methods(text: str) -> str:
    """Put `Table.count` in place of `<bound method Table.count of <Table …>>`."""
    parts, position = list[str](), 0
    while found := _BOUND_METHOD.search(text, position):
        end = _closing(text, found.end())
        if end is None:
            break
        parts += [text[position : found.start()], found[1]]
        position = end
    return "".join(parts) + text[position:]


def _closing(text: str, start: int) -> int | None:
    """Index behind the `>` that closes a representation around the one that begins at `start`; None if there is none."""
    depth = 1
    for index in range(start, len(text)):
        if text[index] == "<":
            depth += 1
        elif text[index] == ">" and text[index - 1] not in "-=":
            depth -= 1
            if not depth:
                return index + 1
    return None
