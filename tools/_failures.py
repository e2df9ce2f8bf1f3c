"""Failing tests within a number of characters: the first ones in full, those with the same cause as ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from sandbox.session.results import TestResult
from tools._assertions import shorten_assertion
from tools._text import last_lines

_KIND = re.compile(r"[A-Za-z_][\w.]*(?=:|$)")
_PLACE = re.compile(r"\S+:\d+(?: in \S+?)?(?=:|$| …)")
_SAME_LINE = 100
_MIN_SHARE = 1000


class Failure(BaseModel):
    """A test that did not pass. `frames` lead from the test to the failure, `same` failed for the same reason.

    `failed_before`: also before the edits of the session; None if that is not known.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    id: str
    outcome: str
    failed_before: bool | None = None
    message: str = ""
    frames: list[str] = []
    output: str = ""
    same: list[str] = []
    same_more: int = 0


@dataclass(frozen=True)
class _Detail:
    """Limits of one failure: characters of message and output, number of frames and of others for the same reason."""

    message: int
    frames: int
    output: int
    same: int


_DETAILS = (
    _Detail(2000, 24, 1500, 40),
    _Detail(1500, 12, 800, 20),
    _Detail(800, 8, 400, 10),
    _Detail(400, 4, 150, 5),
    _Detail(250, 2, 0, 2),
    _Detail(120, 1, 0, 0),
)


def list_failures(
    tests: Sequence[TestResult], budget: int, *, brief_old: bool = False
) -> tuple[list[Failure], int]:
    """Describe as many of `tests` as fit into `budget` characters, each of text and data.

    `brief_old`: those that failed before the edits, and for the same reason, come last and in brief.
    Returns them and the number of tests that are left out.
    """
    groups = _group(tests)
    if brief_old:
        groups.sort(key=_is_old)
    briefs = [size_of(_describe(group, _DETAILS[-1])) for group in groups]
    # Some room is for naming the later ones, however much there is to say about the first.
    later = sum(briefs)
    listed: list[Failure] = []
    for number, group in enumerate(groups):
        later -= briefs[number]
        allowed = budget - min(later, budget // 3)
        share = max(_MIN_SHARE, budget // (len(groups) - number))
        limit = 0 if brief_old and _is_old(group) else min(allowed, share)
        failure = _fit(group, limit)
        if size_of(failure) > budget:
            break
        budget -= size_of(failure)
        listed.append(failure)
    return listed, len(tests) - sum(1 + len(failure.same) + failure.same_more for failure in listed)


def format_failure(failure: Failure) -> str:
    """Format one failure: its id and message, its frames, and its output, each indented."""
    first, *more = failure.message.split("\n") if failure.message else [""]
    mark = " (failed before your edits too)" if failure.failed_before else ""
    lines = [f"{failure.outcome.upper()} {failure.id}{mark}{': ' if first else ''}{first}"]
    lines += [f"  {line}".rstrip() for line in more]
    lines += [f"  {'at ' if number == 0 else '   '}{line}" for number, line in enumerate(failure.frames)]
    if failure.output:
        lines += ["  output:", *(f"    {line}".rstrip() for line in failure.output.split("\n"))]
    if failure.same or failure.same_more:
        more_text = [f"{failure.same_more:,} more"] if failure.same_more else []
        lines.append(f"  for the same reason: {'; '.join([*failure.same, *more_text])}")
    return "\n".join(lines)


def _group(tests: Sequence[TestResult]) -> list[list[TestResult]]:
    """Put tests together that failed with the same kind of exception in the same place."""
    groups: dict[tuple[object, ...], list[TestResult]] = {}
    for test in tests:
        groups.setdefault((*_cause(test), test.failed_before, test.as_before), []).append(test)
    return list(groups.values())


def _is_old(group: Sequence[TestResult]) -> bool:
    """True if the tests of a group failed before the edits for the same reason."""
    return group[0].as_before


def _cause(test: TestResult) -> tuple[str, str, str]:
    place = next((found[0] for frame in reversed(test.frames) if (found := _PLACE.match(frame))), "")
    if not place:
        return test.outcome, "", test.message or test.id
    kind = _KIND.match(test.message)
    return test.outcome, place, kind[0] if kind else "AssertionError"


def _fit(group: Sequence[TestResult], limit: int) -> Failure:
    """Describe a group with the most detail that takes at most `limit` characters, or else with the least."""
    described = (_describe(group, detail) for detail in _DETAILS)
    return next((one for one in described if size_of(one) <= limit), _describe(group, _DETAILS[-1]))


def _describe(group: Sequence[TestResult], detail: _Detail) -> Failure:
    test, others = group[0], group[1:]
    message = [line for line in shorten_assertion(test.message).split("\n") if line.strip()]
    return Failure(
        id=test.id,
        outcome=test.outcome,
        failed_before=test.failed_before,
        message=_cut("\n".join(message), detail.message),
        frames=_cut_frames(test.frames, detail.frames),
        output=_cut_output(test.output.strip("\n"), detail.output),
        same=[_name(other, test) for other in others[: detail.same]],
        same_more=max(0, len(others) - detail.same),
    )


def _name(test: TestResult, first: TestResult) -> str:
    """The id of a test, or just its parameters, with the first line of its message if that differs from `first`."""
    name, bracket, parameters = test.id.partition("[")
    name = bracket + parameters if bracket and first.id.startswith(name + bracket) else test.id
    message, known = (one.message.strip().partition("\n")[0] for one in (test, first))
    return name if message == known else f"{name}: {_cut(message, _SAME_LINE)}"


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    # The assertion comes first, what it was called with last.
    head, tail = text[: 2 * limit // 3], text[-limit // 3 :] if limit > _SAME_LINE else ""
    end, start = head.rfind("\n"), tail.find("\n") + 1
    head = head[:end] if end > limit // 3 else head
    tail = tail[start:] if start else tail
    return f"{head}…{chr(10) if tail else ''}{tail}"


def _cut_frames(frames: Sequence[str], limit: int) -> list[str]:
    if len(frames) <= limit:
        return list(frames)
    if limit < 3:
        return list(frames[-limit:])
    first = limit // 3
    return [*frames[:first], f"… {len(frames) - limit + 1} lines left out …", *frames[first - limit + 1 :]]


def _cut_output(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    if not limit:
        return ""
    tail = last_lines(text, limit)
    return f"[… {len(text) - len(tail):,} characters left out …]\n{tail}"


def size_of(failure: Failure) -> int:
    """Characters that a failure takes in an answer."""
    return max(len(format_failure(failure)), data_size_of(failure)) + 2


def data_size_of(model: BaseModel) -> int:
    """Characters that a model takes as data."""
    return len(model.model_dump_json(exclude_defaults=True))
