"""A traced run as text: its outcome, counts, and one line a call, nested; loops and repeats are folded until it fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile

from sandbox.session.trace import Event, Outcome, Trace
from tools._text import describe_signal, plural
from tools._truncation import WIDE_LIMIT

_NARROW = 48
"""Characters of a value that is or has an object, where not all would fit."""
_FOLDINGS = ((1000, 1000), *((keep, _NARROW) for keep in (1000, 30, 12, 6, 4, 3)))
"""(calls that are shown of those in a row that are alike, characters of an object): less and less until the text fits."""
_MAX_COUNTED = 8
_MAX_FAILURES = 3
_MAX_DEPTH = 12
_MIN_ROUNDS, _MAX_ROUND = 4, 30
"""Rounds of a loop that are folded at least, and lines that one may have."""
_LONG = 90
"""Values that are longer together are not shown whole where the changed parts are known."""
_SHORT = 12
"""Texts up to this length are repeated rather than left out."""
_LEGEND = "(@n is one object; without a value it is as last shown)"


@dataclass
class _Node:
    """A call, a hit, a change, or the head of a test, with the calls that it made."""

    event: Event
    children: list[_Node] = field(default_factory=list["_Node"])
    shape: tuple[object, ...] = ()
    """Equal for calls that differ in their values only."""

    def set_shape(self) -> None:
        """Set `shape`; those of the children are set already."""
        event = self.event
        end = event.error.partition(":")[0] if event.error else bool(event.steps)
        below = hash(tuple(child.shape for child in self.children))
        what = (event.kind, event.how, event.function, event.place, event.called_from)
        self.shape = (*what, event.thread, end, below)


@dataclass(frozen=True)
class _Row:
    """One visible line: a call, or a number of those that are folded."""

    depth: int
    node: _Node | None
    more: int = 0


def render_outcome(outcome: Outcome) -> str:
    """Format the end of a run: `1 failed: AssertionError: 20 != 60 (test_shop.py:11, test_total)`."""
    counts = ", ".join(
        f"{outcome.counts[name]} {name}"
        for name in ("failed", "passed", "skipped")
        if outcome.counts.get(name)
    )
    failures = [*outcome.failures, *([outcome.exception] if outcome.exception else [])]
    told = "; ".join(
        one.text + (f" ({one.path}:{one.line}{', ' + one.test if one.test else ''})" if one.path else "")
        for one in failures[:_MAX_FAILURES]
    )
    if outcome.timed_out:
        end = "it was ended when its time was over"
    elif outcome.signal:
        end = describe_signal(outcome.signal)
    elif outcome.counts or told:
        end = ""
    else:
        end = "ended normally" if outcome.exit_code == 0 else f"exit code {outcome.exit_code}"
    head = ": ".join(part for part in (counts, told) if part)
    return "; ".join(part for part in (head, end) if part)


def render_trace(found: Trace, expressions: Sequence[str], limit: int) -> str:
    """Format counts and events in at most `limit` characters."""
    tops = _tree(found)
    notes = _notes(found)
    text = ""
    for keep, width in _FOLDINGS:
        page = _Page(found, expressions, list(_rows(tops, keep)), width)
        text = "\n".join([*page.counts(), *page.lines(), *notes])
        if len(text) <= limit:
            return text
    return _cut_middle(text, limit)


def _tree(found: Trace) -> list[_Node]:
    """The outermost events with those below them; tests only where there are several."""
    tops: list[_Node] = []
    nodes: list[_Node] = []
    calls: dict[int, _Node] = {}
    tests = [event for event in found.events if event.kind == "test"]
    outcomes = {event.name: event.outcome for event in tests if event.outcome}
    has_heads = sum(event.outcome is None for event in tests) > 1
    pending: Event | None = None
    for event in found.events:
        if event.kind == "test":
            is_head = has_heads and event.outcome is None
            pending = event.model_copy(update={"outcome": outcomes.get(event.name)}) if is_head else None
            continue
        node = _Node(event)
        nodes.append(node)
        above = calls.get(event.parent)
        calls[event.number] = node
        if above is not None:
            above.children.append(node)
            continue
        if pending is not None:  # tests without any event have no head
            head = _Node(pending)
            nodes.append(head)
            tops.append(head)
            pending = None
        tops.append(node)
    for node in reversed(nodes):  # not by recursion: calls may nest deeper than this interpreter's stack
        node.set_shape()
    return tops


def _rows(nodes: Sequence[_Node], keep: int, depth: int = 0) -> Iterator[_Row]:
    """Yield the visible lines, with at most `keep` calls in a row of one shape."""
    start = 0
    while start < len(nodes):
        end = start + 1
        while end < len(nodes) and nodes[end].shape == nodes[start].shape:
            end += 1
        run = nodes[start:end]
        is_long = len(run) > keep
        for node in run[: keep - 1] if is_long else run:
            yield from _row(node, keep, depth)
        if is_long:
            yield _Row(depth, None, len(run) - keep)
            yield from _row(run[-1], keep, depth)
        start = end


def _row(node: _Node, keep: int, depth: int) -> Iterator[_Row]:
    yield _Row(depth, node)
    if depth < _MAX_DEPTH:
        yield from _rows(node.children, keep, depth + 1)
        return
    changes = [one for one in _below(node) if one.event.kind == "change"]
    yield from _rows(changes, keep, depth + 1)
    left = sum(one.event.kind != "change" for one in node.children)
    if left:
        yield _Row(depth + 1, None, left)


def _below(node: _Node) -> Iterator[_Node]:
    """Yield all nodes below one, in order. Not by recursion: calls may nest deeper than this interpreter's stack."""
    waiting = node.children[::-1]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += one.children[::-1]


class _Page:
    """The visible lines of a trace."""

    def __init__(self, found: Trace, expressions: Sequence[str], rows: Sequence[_Row], width: int) -> None:
        self._found, self._expressions, self._rows, self._width = found, expressions, rows, width
        events = [row.node.event for row in rows if row.node is not None]
        self._shown = Counter(event.function for event in events if event.kind == "call")
        self._hits = Counter(event.place for event in events if event.kind == "hit")
        seen = Counter(number for event in events for number in set(_objects(event)))
        self._marked = {number for number, count in seen.items() if count > 1}
        self._marks: dict[int, int] = {}
        self._texts: dict[int, str] = {}
        """Text of each marked object as it was shown last."""
        self._threads = len({event.thread for event in events}) > 1
        self._useful = {
            position
            for event in events
            for position, text in enumerate(event.expressions)
            if not text.startswith("!! NameError")
        }

    def counts(self) -> list[str]:
        """Number of calls of each function, and of hits of each line."""
        counted: list[str] = []
        for number, (name, path, line, calls, is_told) in enumerate(self._found.functions):
            if is_told or self._shown[number]:
                shown = self._shown[number]
                part = "" if shown == calls else f", {shown} shown"
                counted.append(f"{name} {path}:{line}: {plural(calls, 'call')}{part}")
        for path, line, count in self._found.hits:
            shown = self._hits[(path, line)]
            counted.append(
                f"{path}:{line}: {plural(count, 'hit')}" + ("" if shown == count else f", {shown} shown")
            )
        for name, places, changes in self._found.watched:
            of = f" of {places} objects" if places != 1 else ""
            counted.append(f"{name}: {plural(changes, 'change')}{of}")
        left = len(counted) - _MAX_COUNTED
        texts = counted[:_MAX_COUNTED] + ([f"{left} more functions"] if left > 0 else [])
        return ["; ".join(texts)] if texts else []

    def lines(self) -> list[str]:
        lines: list[str] = []
        for row in self._rows:
            if row.node is None:
                lines.append(f"{'  ' * row.depth}… {row.more} more like this")
            else:
                lines += self._lines_of(row.node.event, "  " * row.depth)
        folded = list(_fold_equal(lines))
        return [*folded, _LEGEND] if self._marks else folded

    def _lines_of(self, event: Event, indent: str) -> list[str]:
        thread = f"[T{event.thread}] " if self._threads and event.kind != "test" else ""
        head = indent + thread
        if event.kind == "test":
            return [f"-- {event.name}" + (f": {event.outcome}" if event.outcome else "")]
        if event.kind == "hit":
            at = f"{event.place[0]}:{event.place[1]} " if event.place and len(self._hits) > 1 else ""
            return [f"{head}{at}#{event.count}  {self._variables(event)}"]
        if event.kind == "change":
            return [head + _change_line(event)]
        return [head + self._call_line(event), *_story_lines(event, indent + "    ")]

    def _call_line(self, event: Event) -> str:
        name, path, *_ = self._function(event)
        arguments = [self._argument(event, position) for position in range(len(event.arguments))]
        number = f"#{event.count}" if event.steps else ""
        parts = [f"{name}{number}({', '.join(arguments)}) {self._end(event)}"]
        numbers = {written.lstrip("*"): number for written, _, number in event.arguments}
        for name, text in event.changed:
            parts.append(f"now {name}={self._changed(numbers.get(name, 0), text)}")
        parts += [f"{name}={text}" for name, text in self._values(event)]
        if event.place is not None:
            at, line = event.place
            parts.append(f"from :{line}" if at == path else f"from {at}:{line}")
        return "; ".join(parts)

    def _function(self, event: Event) -> tuple[str, str]:
        known = self._found.functions
        return known[event.function][:2] if 0 <= event.function < len(known) else ("?", "")

    def _argument(self, event: Event, position: int) -> str:
        name, text, number = event.arguments[position]
        shown = self._object(number, text)
        return shown if position == 0 and name in ("self", "cls") else f"{name}={shown}"

    def _end(self, event: Event) -> str:
        yielded = ""
        if event.yields and event.coroutine == "generator":
            first = ", ".join(self._object(number, text) for text, number in event.yielded)
            yielded = f"yielded {event.yields}: {first}{', …' if event.yields > len(event.yielded) else ''}; "
        elif event.yields:
            yielded = f"suspended {event.yields} ×; "
        if event.error:
            return yielded + (f"!! {event.error}" if event.error != "closed" else "closed")
        if event.value is None and event.yielded:
            return f"→ yielded {', '.join(self._object(number, text) for text, number in event.yielded)}; not finished"
        if event.value is None:
            return yielded + "… has not returned"
        if yielded and event.coroutine == "generator" and event.value[0] == "None":
            return f"→ {yielded}end"
        held = f" (is {event.held_as})" if event.held_as else ""
        return f"→ {yielded}{self._object(event.value[1], event.value[0])}{held}"

    def _variables(self, event: Event) -> str:
        pairs = [*event.changed, *self._values(event)]
        return "  ".join(f"{name}={text}" for name, text in pairs)

    def _values(self, event: Event) -> list[tuple[str, str]]:
        """Expressions with their values, without those whose names mean nothing in this function."""
        return [
            (" ".join(text.split())[:60], value)
            for position, (text, value) in enumerate(zip(self._expressions, event.expressions, strict=False))
            if position not in self._useful or not value.startswith("!! NameError")
        ]

    def _object(self, number: int, text: str) -> str:
        """Text of a value, with the mark of an object that is shown several times."""
        shown = _narrow(text, self._width)
        if number not in self._marked:
            return shown
        mark = f"@{self._marks.setdefault(number, len(self._marks) + 1)}"
        if self._texts.get(number) == text and len(text) > _SHORT:
            return mark
        self._texts[number] = text
        return shown + mark

    def _changed(self, number: int, text: str) -> str:
        if number not in self._marked:
            return text
        self._texts[number] = text
        return f"{text}@{self._marks[number]}" if number in self._marks else text


def _narrow(text: str, width: int) -> str:
    """The beginning of a value that is or has an object, as far as its text tells; other values stay."""
    return text if len(text) <= width or "<" not in text[:width] else text[: width - 1] + "…"


def _objects(event: Event) -> Iterator[int]:
    """Yield the numbers of the objects that are shown in a line."""
    values = [*event.yielded, *([event.value] if event.value else [])]
    yield from (number for _, number in values if number)
    yield from (number for *_, number in event.arguments if number)


def _change_line(event: Event) -> str:
    place = f"{event.place[0]}:{event.place[1]}" if event.place else "?"
    function = f" {event.function_name}()" if event.function_name not in ("", "<module>") else ""
    parts = [f"#{event.count} {place}{function}: {_change(event)}"]
    parts += [f"the same object as {', '.join(event.others)}"] if event.others else []
    parts += [event.source] if event.source else []
    parts += [f"called from {event.called_from[0]}:{event.called_from[1]}"] if event.called_from else []
    return "; ".join(parts)


def _change(event: Event) -> str:
    """The change itself: `Cart#1.lines [10, 20] → [10] in place`."""
    value = event.value[0] if event.value else "?"
    match event.how:
        case "shared":
            return f"{event.name} is now also {event.before}"
        case "deleted":
            return f"{event.name} {event.before} → deleted"
        case "first seen":
            return f"{event.name} = {value} when first seen"
        case "in place":
            if event.detail and len(event.before) + len(value) > _LONG:
                return f"{event.name} in place: {event.detail}"
            deeper = ", deeper than shown" if value == event.before else ""
            return f"{event.name} {event.before} → {value} in place{deeper}"
        case _:
            return f"{event.name} {event.before} → {value}" if event.before else f"{event.name} = {value}"


def _story_lines(event: Event, indent: str) -> list[str]:
    """Executed lines of a call with the variables that they have changed; of a loop, two rounds and the last one."""
    lines: list[str] = []
    for position, rounds in _fold_loops([line for line, *_ in event.steps]):
        if rounds:
            lines.append(f"{indent}… {plural(rounds, 'round')} more like this")
            continue
        line, text, changed = event.steps[position]
        values = ", ".join(f"{name}={value}" if value else f"{name} is gone" for name, value in changed)
        lines.append(f"{indent}{line:>4}  {text}" + (f"    # {values}" if values else ""))
    return lines


def _fold_loops(lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (position, 0) for each line that is shown, and (position, rounds) where rounds of a loop are left out."""
    start = 0
    while start < len(lines):
        rounds, length = _longest_loop(lines, start)
        if not rounds:
            yield start, 0
            start += 1
            continue
        last = start + (rounds - 1) * length
        yield from ((position, 0) for position in range(start, start + 2 * length))
        yield start + 2 * length, rounds - 3
        yield from ((position, 0) for position in range(last, last + length))
        start = last + length


def _longest_loop(lines: Sequence[int], start: int) -> tuple[int, int]:
    """(rounds, lines in a round) of the longest repetition of the same lines from `start` on; (0, 0) if none is long."""
    best = (0, 0)
    for length in range(1, min(_MAX_ROUND, (len(lines) - start) // _MIN_ROUNDS) + 1):
        first, rounds = lines[start : start + length], 1
        while lines[start + rounds * length : start + (rounds + 1) * length] == first:
            rounds += 1
        if rounds >= _MIN_ROUNDS and rounds * length > best[0] * best[1]:
            best = (rounds, length)
    return best


def _fold_equal(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines; of several equal ones in a row the first, with their number."""
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and lines[end] == lines[start]:
            end += 1
        yield lines[start] + (f"  × {end - start}" if end - start > 1 else "")
        start = end


def _notes(found: Trace) -> list[str]:
    notes = [
        *found.missing,
        *([f"the trace is not complete: {found.cut}"] if found.cut else []),
        *found.notes,
    ]
    if found.differs is not None:
        notes.insert(0, f"without the trace the run ends otherwise: {render_outcome(found.differs)}")
    if found.watched and found.threads > 1:
        notes.append("several threads ran: a change may have been made by another one at the same time")
    return [f"note: {' '.join(note.split())[:200]}" for note in notes[:8]]


def _cut_middle(text: str, limit: int) -> str:
    """Leave out lines in the middle, more of them before the end than behind the beginning."""
    lines = text.split("\n")
    room = limit - 120
    head = _count_fitting(lines, room * 3 // 5)
    tail = _count_fitting(reversed(lines[head:]), room * 2 // 5)
    left = len(lines) - head - tail
    middle = f"… {left} lines left out: name fewer functions, or give `max_events` 1001 for an answer of up to {WIDE_LIMIT:,} characters"
    return "\n".join([*lines[:head], middle, *lines[len(lines) - tail :]])


def _count_fitting(lines: Iterable[str], room: int) -> int:
    """Number of `lines` from the first on that fit in `room` characters, with their newlines."""
    ends = accumulate(len(line) + 1 for line in lines)
    return sum(1 for _ in takewhile(lambda end: end <= room + 1, ends))
