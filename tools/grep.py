"""The `grep` tool."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Annotated, Self

from pydantic import Field

from sandbox.errors import InvalidArgument, NotFound
from sandbox.session.session import Session
from sandbox.session.workspace import Match, Matches
from tools._text import plural
from tools._tool import Tool
from tools._truncation import Answer, Omitted, SourceText, Truncatable

_FEW = 3
"""Definitions that are shown with their source."""
_MAX_LINES = 60
_MAX_CUT, _MAX_CUT_NAME = 8, 100
_MARGIN = 12
"""Characters of a line's number and of the marks around it, or a few more."""
_NAME = re.compile(r"\s*(?:async\s+)?(?:def|class)\s+(\w+)")
_REST = "Narrow `path` or `pattern`, or give `max_results`."


class GrepAnswer(Answer):
    """Matching lines by path and line, of `total` in `total_files`. If `incomplete`, there may be more."""

    matches: Annotated[list[Match], Truncatable("head", _REST), SourceText()]
    total: int = 0
    total_files: int = 0
    skipped: int = 0
    incomplete: str = ""
    not_shown: list[str] = Field(default_factory=list[str])
    """Files with matches that were cut for want of characters, most first: `shop/cart.py 12 (lines 80-213)`."""
    given: Annotated[int, Field(exclude=True)] = 0
    """Number of matches before any was cut."""

    def shorten(self, cap: int) -> Self:
        """Return a copy without context, if that is enough, else with the first matches only."""
        context = _widest_that_fits(self.matches, cap)
        matches = [_with_context(match, context) for match in self.matches]
        dropped = sum(map(_context, self.matches)) - sum(map(_context, matches))
        hint = "Ask for less `context` or fewer files."
        left = self.model_copy(update={"matches": matches}).with_omitted(
            Omitted(field="context", count=dropped, unit="lines", hint=hint)
        )
        short = super(GrepAnswer, left).shorten(cap)
        return short.model_copy(update={"not_shown": _name_cut(self.matches, len(short.matches))})


def _name_cut(matches: list[Match], shown: int) -> list[str]:
    """Name the files of the matches after the first ones, with their number and lines."""
    lines: dict[str, list[int]] = {}
    for match in matches[shown:]:
        lines.setdefault(match.path, []).append(match.line)
    most = sorted(lines.items(), key=lambda item: -len(item[1]))
    more = [plural(len(most) - _MAX_CUT, "more file")] if len(most) > _MAX_CUT else []
    return [_cut_file(path, found) for path, found in most[:_MAX_CUT]] + more


def _cut_file(path: str, lines: list[int]) -> str:
    span = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]}-{lines[-1]}"
    return f"{path[-_MAX_CUT_NAME:]} {len(lines)} ({span})"


def _widest(match: Match) -> int:
    return max(len(match.before), len(match.after))


def _context(match: Match) -> int:
    return len(match.before) + len(match.after)


def _with_context(match: Match, size: int) -> Match:
    if _widest(match) <= size:
        return match
    return match.model_copy(
        update={"before": match.before[max(0, len(match.before) - size) :], "after": match.after[:size]}
    )


def _widest_that_fits(matches: list[Match], cap: int) -> int:
    """The most lines of context on each side with which all matches have at most `cap` characters, or a few fewer."""
    costs = [0] * max(map(_widest, matches), default=0)
    for match in matches:
        for lines in (reversed(match.before), match.after):
            for distance, line in enumerate(lines):
                costs[distance] += len(line) + _MARGIN
    left = cap - sum(len(match.path) + len(match.text) + _MARGIN for match in matches)
    for distance, cost in enumerate(costs):
        left -= cost
        if left < 0:
            return distance
    return len(costs)


async def grep(
    session: Session,
    pattern: Annotated[str, Field(min_length=1, description='What to look for, e.g. "def \\w+_price".')],
    path: Annotated[
        str, Field(description='File, folder or glob, e.g. "shop" or "src/**/*.{py,pyi}".')
    ] = ".",
    regex: Annotated[bool, Field(description="false takes the pattern literally.")] = True,
    ignore_case: Annotated[bool, Field(description="true also finds other case.")] = False,
    context: Annotated[int, Field(ge=0, le=50, description="Lines to show around each match, e.g. 2.")] = 0,
    max_results: Annotated[int, Field(ge=1, le=1000, description="Most matches to give, e.g. 20.")] = 100,
    definitions: Annotated[
        bool,
        Field(description='true: only definitions of the name `pattern`, e.g. "total"; a few with source.'),
    ] = False,
) -> GrepAnswer:
    """Search file contents, by Python regular expression or literally, line by line."""
    found = await session.workspace.search(
        pattern,
        path,
        regex=regex,
        ignore_case=ignore_case,
        context=context,
        max_results=max_results,
        definitions=definitions,
    )
    matches = found.matches
    if definitions and not context and len(matches) <= _FEW:
        matches = [await _with_source(session, match) for match in matches]
    return GrepAnswer(
        matches=matches,
        total=len(found.matches) + found.omitted,
        total_files=len({match.path for match in found.matches}) + found.omitted_files,
        skipped=found.skipped,
        given=len(found.matches),
        incomplete="" if found.complete else _incomplete(found),
    ).with_omitted(Omitted(field="matches", count=found.omitted, unit="items", hint=_REST))


async def _with_source(session: Session, match: Match) -> Match:
    """The line of a definition with the rest of it, unless that is long."""
    name = _NAME.match(match.text)
    if name is None:
        return match
    try:
        file, marks = await session.workspace.read_marked(match.path, [name[1]])
    except (InvalidArgument, NotFound):  # changed or removed since
        return match
    ends = [last for one in marks.definitions for _, first, last in one.found if first <= match.line <= last]
    end = min(ends, default=match.line)
    if end - match.line > _MAX_LINES:
        return match
    return match.model_copy(update={"after": file.lines[match.line : end]})


def _incomplete(found: Matches) -> str:
    if found.omitted:
        return f"Counting ended after {found.searched:,} files: there are at least so many. Narrow `path` for all."
    return f"The search took too long and ended after {found.searched:,} files: narrow `path`."


def render(answer: GrepAnswer) -> str:
    """Format the matches by file."""
    notes = [
        f"({plural(answer.skipped, 'file')} skipped: not text)" if answer.skipped else "",
        answer.incomplete,
    ]
    if not answer.total:
        return " ".join(note for note in ("No matches.", *notes) if note)
    files = [(path, list(matches)) for path, matches in groupby(answer.matches, key=lambda match: match.path)]
    blocks = [f"{path}\n{_lines(matches)}" for path, matches in files]
    return "\n".join(part for part in (_head(answer), *blocks, *notes) if part)


def _head(answer: GrepAnswer) -> str:
    head = f"{plural(answer.total, 'match', 'matches')} in {plural(answer.total_files, 'file')}"
    head = f"at least {head}" if answer.incomplete else head
    shown = len(answer.matches)
    if shown == answer.total:
        return f"{head}:"
    given = answer.given or shown
    reason = "characters ran out" if shown < given else "max_results"
    rest = f"\nnot shown: {', '.join(answer.not_shown)}" if answer.not_shown else ""
    return f"{head}, {shown:,} shown: {reason}{rest}"


def _lines(matches: list[Match]) -> str:
    """Lines with their numbers, with a mark between those that don't follow one another, as of `grep -C`."""
    lines: list[str] = []
    last = 0
    has_context = any(match.before or match.after for match in matches)
    for match in matches:
        first = match.line - len(match.before)
        if has_context and last and first > last + 1:
            lines.append("  --")
        lines += [f"  {number}- {text}" for number, text in enumerate(match.before, first)]
        lines.append(f"  {match.line}: {match.text}")
        lines += [f"  {number}- {text}" for number, text in enumerate(match.after, match.line + 1)]
        last = match.line + len(match.after)
    return "\n".join(lines)


TOOL = Tool(
    grep,
    render,
    title="Search in files",
    group="files",
    rank=2,
    read_only=True,
    idempotent=True,
    wide=lambda arguments: arguments["max_results"] != 100,
)
