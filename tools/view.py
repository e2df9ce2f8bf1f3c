"""The `view` tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, Field, PrivateAttr, field_serializer

from sandbox.errors import InvalidArgument, NotFound
from sandbox.session.session import Session
from sandbox.session.workspace import Definitions, FileText, Marks
from tools import _selection
from tools import _session_uris as documents
from tools._selection import Selection, line_range
from tools._text import Fold, fold_unexecuted, has_run, long_docstrings, number_folded
from tools._tool import Tool
from tools._truncation import Answer, Omitted, SourceText, Truncatable

_MAX_CHARACTERS = 64 << 10
"""Characters of lines, more than any answer can have."""
_MANY = 60
"""Lines of a part from which on long docstrings are folded, and what has not run: who wants them asks for fewer."""
_PYTHON = (".py", ".pyi")
_LONG = 120
"""Lines of all parts together from which on blocks are folded that a diagnosed test has not run."""
_NOT_RUN = f"the diagnosed test has not run the folded lines; parts of up to {_MANY} lines show them"
_FEW = 60
"""Lines; several definitions of one name are shown if they have no more, else they are listed."""


class Range(NamedTuple):
    """Lines `first` to `last`, and the name of the definition that they are."""

    first: int
    last: int
    name: str | None = None


class Mark(BaseModel):
    """A breakpoint in the shown lines."""

    id: int
    line: int
    condition: str | None = None
    enabled: bool = True


class Part(BaseModel):
    """Numbered lines `start` to `end` of a file.

    `current` is the line where the program has stopped. `loaded_line` is set if the file has changed since the
    program loaded it: the number of that line in the loaded text. `name` is that of the definition in the lines.
    """

    path: str
    start: int
    end: int
    total_lines: int
    lines: Annotated[list[str], Truncatable("head", unit="lines"), SourceText()]
    breakpoints: list[Mark] = Field(default_factory=list[Mark])
    current: int | None = None
    loaded_line: int | None = None
    read_only: bool = False
    name: str | None = None
    _last: int = PrivateAttr(0)
    """Last line that was asked for."""
    _folds: list[Fold] = PrivateAttr(default_factory=list[Fold])

    @field_serializer("lines")
    def _with_numbers(self, lines: list[str]) -> list[str]:
        # Clients that read only the data need the numbers to edit.
        return self.number_lines(lines).split("\n") if lines else []

    def number_lines(self, lines: list[str]) -> str:
        """The lines with numbers and marks, as they are shown."""
        marked = {mark.line for mark in self.breakpoints}
        return number_folded(lines, self.start, self._folds, current=self.current, marked=marked)

    def folding(self, unexecuted: Iterable[tuple[int, int]]) -> Self:
        """Show the first line of long docstrings alone, and nothing of `unexecuted` blocks, if there are many lines.

        A function that was asked for by its name and has not run is shown all the same.
        """
        if self.path.endswith(_PYTHON) and len(self.lines) > _MANY:
            blocks = list(unexecuted)
            if self.name and not has_run(blocks, self.start, self.lines):
                blocks = []
            self._folds = fold_unexecuted(blocks, self.start, self.end, long_docstrings(self.lines))
        return self

    def folded_as(self, other: Part) -> Self:
        """Fold what another part with the same lines folds."""
        self._folds = other._folds
        return self

    def folded(self) -> set[int]:
        """Indexes of the lines that are not shown by themselves."""
        return {index for fold in self._folds for index in fold.lines}

    @property
    def has_unexecuted(self) -> bool:
        """True if blocks are folded because they have not run."""
        return any(not fold.is_docstring for fold in self._folds)

    def asking_up_to(self, last: int) -> Self:
        """Note the last line that was asked for."""
        self._last = last
        return self

    @property
    def missing(self) -> int:
        """Number of lines after those shown that were asked for."""
        return max(0, self._last - self.start + 1 - len(self.lines))

    def rest(self) -> tuple[str, int, int, int]:
        """(path, start, end, total lines) of the lines that are missing."""
        return self.path, self.start + len(self.lines), self._last, self.total_lines

    def with_lines(self, lines: list[str]) -> Self:
        """A copy with the first lines only."""
        end = self.start + len(lines) - 1
        marks = [mark for mark in self.breakpoints if mark.line <= end]
        return self.model_copy(update={"lines": lines, "end": end, "breakpoints": marks})


class ViewAnswer(Part, Answer):
    """Parts of files, further ones in `more`."""

    cut_to: ClassVar[float] = 0.9
    more: list[Part] = Field(default_factory=list[Part])
    notes: list[str] = Field(default_factory=list[str])

    def parts(self) -> list[Part]:
        """All parts in their order."""
        return [self, *self.more]

    def shorten(self, cap: int) -> Self:
        """Return a copy that ends at a line, within `cap` characters, and says how to go on."""
        parts = self.parts()
        shown = [part.with_lines(lines) for part, lines in zip(parts, _fitting(parts, cap), strict=True)]
        omitted = _omitted(shown, _clipped(parts[0].lines, shown[0].lines))
        if not omitted:
            return self
        more = [part for part in shown[1:] if part.lines]
        first = shown[0]
        assert isinstance(first, type(self))
        return first.model_copy(update={"more": more, "omitted": omitted})


def _clipped(whole: Sequence[str], shown: Sequence[str]) -> int:
    """Number of characters that the first line has lost."""
    return len(whole[0]) - len(shown[0]) + 1 if whole and shown and whole[0] != shown[0] else 0


def _omitted(shown: Sequence[Part], clipped: int) -> list[Omitted]:
    lines = sum(part.missing for part in shown)
    rest = [part.rest() for part in shown if part.missing]
    records = [
        Omitted(
            field="the first line",
            count=clipped,
            unit="characters",
            hint="`bash` with `cut -c` shows parts of it.",
        ),
        Omitted(
            field="lines",
            count=lines,
            unit="lines",
            hint=f"Go on with view({_selection.write_all(rest)})." if rest else "",
        ),
    ]
    return [one for one in records if one.count]


def _fitting(parts: Sequence[Part], cap: int) -> Iterator[list[str]]:
    """The lines of each part that are shown within `cap` characters in all: at least one, of an endless line its beginning."""
    room, is_first = cap, True
    for part in parts:
        lines, folded = list[str](), part.folded()
        for index, line in enumerate(part.lines):
            size = 0 if index in folded else len(line) + 6  # with its number
            if size > room and not is_first:
                room = 0
                break
            lines.append(line if size <= room else line[: max(room - 6, 0)] + "…")
            room, is_first = max(0, room - size), False
        if len(lines) < len(part.lines) or part.missing:
            room = 0
        yield lines


async def view(
    session: Session,
    path: Annotated[
        str,
        Field(
            description='File, relative to the repository, e.g. "shop/pricing.py"; or several parts, e.g.'
            ' "shop/a.py:10-40, shop/b.py::Order.total".'
        ),
    ],
    start: Annotated[int | None, Field(ge=1, description="First line, e.g. 40.")] = None,
    end: Annotated[
        int | None, Field(ge=-1, description="Last line, e.g. 80; -1 is the end of the file.")
    ] = None,
    name: Annotated[
        str | None,
        Field(description='Only these functions or classes, e.g. "Order.total" or "Order.total, parse".'),
    ] = None,
) -> ViewAnswer:
    """Show a file or parts of files with line numbers: `B` marks breakpoints, `>` the line where the program has stopped."""
    if name is not None and (start is not None or end is not None):
        raise InvalidArgument("Give `name` or `start`/`end`, not both.")
    if documents.is_uri(path):
        document = documents.name_in(session, path)
        if not document.startswith(documents.SOURCE):
            return await _view_document(session, document, start, end)
        path = document.removeprefix(documents.SOURCE)
    asked = _selection.parse(path) or [Selection(path)]
    if len(asked) != 1 or not asked[0].is_whole:
        if await _is_file(session, path):  # with a name like that
            asked = [Selection(path)]
        elif start is not None or end is not None:
            raise InvalidArgument(
                "`start` and `end` are for one file.", 'Write ranges as "shop/a.py:10-40, shop/b.py:5-20".'
            )
    else:
        asked = [Selection(path, start, end)]
    if name is not None:
        paths = dict.fromkeys(part.path for part in asked)
        names = [one.strip() for one in name.split(",") if one.strip()][: _selection.MAX_PARTS]
        asked = [Selection(one, name=wanted) for one in paths for wanted in names]
        if not asked:
            raise InvalidArgument("`name` is empty.", 'Give for example "Order.total".')
    return await _view_parts(session, asked)


async def _is_file(session: Session, path: str) -> bool:
    try:
        await session.workspace.content(path)
    except (InvalidArgument, NotFound):
        return False
    return True


async def _view_parts(session: Session, asked: Sequence[Selection]) -> ViewAnswer:
    files: dict[str, tuple[FileText, Marks]] = {}
    ranges: list[tuple[str, Range]] = []
    found: set[str | None] = set()
    failures: list[tuple[Selection, str]] = []
    is_wide = any(map(_may_be_long, asked)) or sum(map(_length, asked)) > _LONG
    for part in asked:
        try:
            if part.path not in files:
                names = [one.name for one in asked if one.path == part.path and one.name]
                files[part.path] = await session.workspace.read_marked(part.path, names, unexecuted=is_wide)
            ranges += [(part.path, one) for one in _ranges(*files[part.path], part)]
        except (InvalidArgument, NotFound) as exc:
            if len(asked) == 1:
                raise
            failures.append((part, str(exc)))
            continue
        found.add(part.name)
    # A name that is in one of several files need not be in the others.
    notes = list(
        dict.fromkeys(text for part, text in failures if part.name is None or part.name not in found)
    )
    if not ranges:
        raise NotFound("\n".join(notes))
    joined = join_overlaps(ranges)
    is_long = sum(one.last - one.first + 1 for _, one in joined) > _LONG
    return _answer([_part(*files[path], *one, is_long=is_long) for path, one in joined], notes)


def join_overlaps(ranges: Sequence[tuple[str, Range]]) -> list[tuple[str, Range]]:
    """Each line once: ranges of a file that have lines in common become one, at the place of the first.

    But for a definition within many lines, of which some may be folded.
    """
    joined: list[tuple[str, Range]] = []
    for path, one in ranges:
        at = len(joined)
        for index in range(len(joined) - 1, -1, -1):
            other_path, other = joined[index]
            both = _join(other, one) if other_path == path else None
            if both is not None:
                at, one = index, both
                del joined[index]
        joined.insert(at, (path, one))
    return joined


def _join(one: Range, other: Range) -> Range | None:
    """The lines of two ranges that overlap; None if they don't, or are many: of many some may be folded."""
    first, last = min(one.first, other.first), max(one.last, other.last)
    if one.first > other.last or other.first > one.last or last - first >= _LONG:
        return None
    return next(
        (each for each in (one, other) if (each.first, each.last) == (first, last)), Range(first, last)
    )


def _may_be_long(asked: Selection) -> bool:
    """True for a definition, and for lines up to the end of a file: their number is not known before."""
    return asked.name is not None or asked.end in (None, -1)


def _length(asked: Selection) -> int:
    """Number of lines that a selection with an end may have."""
    return max(0, (asked.end or 0) - (asked.start or 1) + 1)


def _ranges(file: FileText, marks: Marks, asked: Selection) -> list[Range]:
    """The lines of a file that one selection means.

    Raises:
        InvalidArgument: there are no such lines, or too many definitions of that name; NotFound: there is none.
    """
    if asked.name is None:
        return [Range(*line_range(file.path, len(file.lines), asked.start, asked.end))]
    found = next((one for one in marks.definitions if one.name == asked.name), Definitions(name=asked.name))
    total = len(file.lines)
    places = [(name, max(first, 1), min(last, total)) for name, first, last in found.found if first <= total]
    if not places:
        near = f"There are: {', '.join(found.nearest)}." if found.nearest else ""
        raise NotFound(f"{file.path} has no definition of {asked.name}.", near)
    if len({name for name, _, _ in places}) > 1 and sum(last - first for _, first, last in places) > _FEW:
        listed = ", ".join(f"{name} ({first}-{last})" for name, first, last in places)
        raise InvalidArgument(
            f"{file.path} has {len(places)} definitions of {asked.name}: {listed}.",
            "Give the full name of one.",
        )
    return [Range(first, last, name) for name, first, last in places]


def _part(
    file: FileText, marks: Marks, first: int, last: int, name: str | None = None, *, is_long: bool = False
) -> Part:
    shown = take_usable(file.lines[first - 1 : last])
    return (
        Part(
            path=file.path,
            start=first,
            end=first + len(shown) - 1,
            total_lines=len(file.lines),
            lines=shown,
            breakpoints=[
                Mark(id=point.id, line=point.line, condition=point.condition, enabled=point.enabled)
                for point in marks.breakpoints
                if first <= point.line < first + len(shown) and point.state != "lost"
            ],
            current=marks.current,
            loaded_line=marks.loaded_line,
            read_only=file.read_only,
            name=name,
        )
        .asking_up_to(last)
        .folding(marks.unexecuted if is_long else ())
    )


def _answer(parts: Sequence[Part], notes: Sequence[str] = ()) -> ViewAnswer:
    first = parts[0]
    fields = {name: getattr(first, name) for name in Part.model_fields}
    notes = [*notes, *([_NOT_RUN] if any(part.has_unexecuted for part in parts) else [])]
    answer = ViewAnswer(**fields, more=list(parts[1:]), notes=notes).asking_up_to(first.rest()[2])
    answer = answer.folded_as(first)
    # What is longer than any answer is cut here, so that nobody has to measure it.
    return answer.shorten(_MAX_CHARACTERS * 2)


def take_usable(lines: list[str]) -> list[str]:
    """The first lines, as many as an answer can have at most: searching and measuring all would take long."""
    room, kept = _MAX_CHARACTERS, list[str]()
    for line in lines:
        if room <= 0:
            break
        kept.append(line[:room])
        room -= len(line) + 1
    return kept


async def _view_document(session: Session, name: str, start: int | None, end: int | None) -> ViewAnswer:
    rows = await documents.rows(session, name, start or 1)
    uri = documents.uri_of(session, name)
    first, last = line_range(uri, rows.total, start, end)
    shown = take_usable(rows.shown[: last - first + 1])
    part = Part(
        path=uri,
        start=first,
        end=first + len(shown) - 1,
        total_lines=rows.total,
        lines=shown,
        read_only=True,
    )
    return _answer([part.asking_up_to(last)])


def render(answer: ViewAnswer) -> str:
    """A heading for each part, then its numbered lines."""
    moved = dict.fromkeys(note for part in answer.parts() for note in _moved_note(part))
    return "\n".join([*map(_text, answer.parts()), *moved, *(f"note: {note}" for note in answer.notes)])


def _text(part: Part) -> str:
    mark = " (read-only)" if part.read_only else ""
    if not part.total_lines:
        return f"{part.path}{mark} is empty."
    name = f" {part.name}" if part.name else ""
    head = f"{part.path}{mark}{name}, lines {part.start}-{part.end} of {part.total_lines}"
    notes = [_note(mark) for mark in sorted(part.breakpoints, key=lambda mark: mark.line)]
    return "\n".join([head, part.number_lines(part.lines), *notes])


def _note(mark: Mark) -> str:
    condition = f", if {mark.condition}" if mark.condition else ""
    return f"B {mark.line}: breakpoint {mark.id}{condition}{'' if mark.enabled else ', disabled'}"


def _moved_note(part: Part) -> list[str]:
    if part.loaded_line is None:
        return []
    now = "is not in it any more" if part.current is None else f"is line {part.current} now"
    return [
        f"{part.path} has changed since the program loaded it: line {part.loaded_line}, where it has stopped, {now}."
    ]


def _is_wide(arguments: Mapping[str, Any]) -> bool:
    """True if it names what it wants to see, in any way."""
    if any(arguments[name] is not None for name in ("start", "end", "name")):
        return True
    path = arguments["path"]
    if documents.is_uri(path):
        return False
    parts = _selection.parse(path)
    return len(parts) > 1 or not all(part.is_whole for part in parts)


TOOL = Tool(
    view,
    render,
    title="Show a file",
    group="files",
    rank=1,
    read_only=True,
    idempotent=True,
    wide=_is_wide,
)
