"""Length limits of answers, and the only code that cuts them.

Fields that can grow are marked with `Truncatable`. `truncate` shortens them, the longest first, until the parts of an
answer that are sent (text, data or both) are within the limit, and records exactly what was left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, PrivateAttr, WithJsonSchema
from pydantic_core import PydanticSerializationError

from tools._advice import advise
from tools._text import show_hidden

LIMIT = 4_000
"""Default limit in characters, for text and data separately."""
WIDE_LIMIT = 15_000
"""Limit if the caller asked for more, for text and data separately: no answer is over 30,000."""

Unit = Literal["characters", "bytes", "lines", "items"]


End = Literal["head", "more head", "both", "more tail", "tail"]
_HEADS: Mapping[End, float] = {"head": 1, "more head": 2 / 3, "both": 1 / 2, "more tail": 1 / 3, "tail": 0}
"""Share of the beginning in what is kept."""
Hint = str | Callable[[str, str], str]
"""Advice, or a function that makes it of the beginning and the end that are left of a text."""


@dataclass(frozen=True)
class Truncatable:
    """Marks a field (text or list) that may be cut."""

    keep: End = "head"
    """The more valuable end, or how much of each is kept."""
    hint: str = ""
    """Advice for getting the rest."""
    unit: Unit = "items"
    """Unit of the items, if the field is a list."""


@dataclass(frozen=True)
class SourceText:
    """Marks a field (text, list or models) that holds source code."""

    is_patch: bool = False
    """True for a patch, which masks make impossible to apply."""


@dataclass(frozen=True)
class Variables:
    """Marks a list of models that hold the `name` of a variable and its values, as `repr` writes them."""

    values: tuple[str, ...]
    """Fields of the models."""


class Omitted(BaseModel):
    """Record of the part that was left out of one field."""

    field: str
    count: int
    unit: Unit
    hint: Annotated[str, AfterValidator(advise)] = ""


class Answer(BaseModel):
    """Base of all answers; `omitted` records exactly what was left out."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    cut_to: ClassVar[float] = 1.0
    """Share of the limit that an answer has once it is cut. Below 1: a call for the rest gets more than a line."""

    # A complete schema, repeated for every tool, would cost more characters than it is worth.
    omitted: Annotated[list[Omitted], WithJsonSchema({"type": "array", "items": {"type": "object"}})] = []
    # Set where the answer leaves the server: what is masked in it, and why.
    redacted: Annotated[str, WithJsonSchema({"type": "string"})] = ""
    # Set there, too: a message of the server about the session.
    notice: Annotated[str, WithJsonSchema({"type": "string"})] = ""
    _hints: Mapping[str, Hint] = PrivateAttr(default_factory=dict[str, Any])
    _keep: Mapping[str, End] = PrivateAttr(default_factory=dict[str, Any])

    def with_hints(self, **hints: Hint | None) -> Self:
        """Return a copy with its own hints for cut fields; None keeps the hint of `Truncatable`."""
        given = {name: text for name, text in hints.items() if text}
        if not given:
            return self
        answer = self.model_copy()
        answer._hints = {**self._hints, **given}
        return answer

    def keeping(self, **ends: End) -> Self:
        """Return a copy that keeps these ends of cut fields, instead of those of `Truncatable`."""
        answer = self.model_copy()
        answer._keep = {**self._keep, **ends}
        return answer

    def hint(self, field: str, rule: Truncatable, head: str = "", tail: str = "") -> str:
        """Advice for getting the rest of `field`, of which `head` and `tail` are left."""
        hint = self._hints.get(field, rule.hint)
        return hint if isinstance(hint, str) else hint(head, tail)

    def gap(self, field: str, text: str, head: str, tail: str) -> str:
        """The line in the gap of a text, of which `head` and `tail` are left."""
        return f"[… {len(text) - len(head) - len(tail):,} characters left out …]"

    def rule(self, field: str, rule: Truncatable) -> Truncatable:
        """The rule for cutting `field` in this answer."""
        return replace(rule, keep=self._keep[field]) if field in self._keep else rule

    def shorten(self, cap: int) -> Self:
        """Return a copy of which each field that may be cut has at most `cap` characters as JSON."""
        return _cut(self, cap)

    def with_omitted(self, *omitted: Omitted) -> Self:
        """Return a copy that records omissions by its source; counts of 0 are ignored."""
        counted = [one for one in omitted if one.count]
        return self.model_copy(update={"omitted": [*self.omitted, *counted]}) if counted else self

    def after_truncation(self) -> Self:
        """Return a copy in which values derived from cut fields are updated. Called after each cut."""
        return self


A = TypeVar("A", bound=Answer)

BASE_FIELDS = frozenset(Answer.model_fields)
"""Fields that every answer has."""


def text_of(answer: A, render: Callable[[A], str]) -> str:
    """The rendered text, with a line for each omission. Control characters and the like are shown escaped."""
    head = [f"note: {answer.notice}"] if answer.notice else []
    lines = [_line(omitted) for omitted in answer.omitted]
    lines += [f"(redacted: {answer.redacted})"] if answer.redacted else []
    return show_hidden("\n".join([*head, render(answer).rstrip("\n"), *lines]))


def truncate(
    answer: A, render: Callable[[A], str], limit: int = LIMIT, *, text: bool = True, data: bool = True
) -> tuple[A, str]:
    """Cut `answer` and its text so that each form that is sent is within `limit` characters and valid UTF-8."""

    def measure(candidate: A, rendered: str) -> int:
        return max(len(rendered) if text else 0, _size(candidate) if data else 0)

    try:
        truncated = _search_cap(answer, render, limit, measure)
        truncated[1].encode()
        return truncated
    except (PydanticSerializationError, UnicodeEncodeError):  # lone surrogates, mostly
        return _search_cap(cast(A, _escape_surrogates(answer)), render, limit, measure)


def _search_cap(
    answer: A, render: Callable[[A], str], limit: int, measure: Callable[[A, str], int]
) -> tuple[A, str]:
    text = text_of(answer, render)
    if measure(answer, text) <= limit:
        return answer, text
    limit = round(limit * answer.cut_to)
    # The cap limits the size of a field as JSON, where a line end counts twice.
    low, high, best = 0, 2 * limit, None
    while low <= high:
        middle = (low + high) // 2
        candidate = answer.shorten(middle)
        text = text_of(candidate, render)
        if measure(candidate, text) <= limit:
            low, best = middle + 1, (candidate, text)
        else:
            high = middle - 1
    return best or _last_resort(answer, render, limit, measure)


def data_of(answer: Answer) -> dict[str, Any]:
    """The structured content for clients: fields without a default always, the others if they differ from it."""
    return answer.model_dump(mode="json", exclude_defaults=True)


def _size(answer: Answer) -> int:
    return len(answer.model_dump_json(exclude_defaults=True))


def _cut(answer: A, cap: int) -> A:
    updates: dict[str, Any] = {}
    omitted = list(answer.omitted)
    for name, info in type(answer).model_fields.items():
        rule = next((mark for mark in info.metadata if isinstance(mark, Truncatable)), None)
        value = getattr(answer, name)
        if isinstance(value, Answer):
            if (part := value.shorten(cap)) is not value:
                updates[name] = part
            continue
        if rule is None or not value:
            continue
        rule, head, tail = answer.rule(name, rule), "", ""
        if isinstance(value, str):
            head, tail = _cut_text(value, cap, rule)
            count = len(value) - len(head) - len(tail)
            kept = f"{head}{answer.gap(name, value, head, tail)}\n{tail}"
        else:
            kept, count = _cut_list(value, cap, rule)
        if count:
            updates[name] = kept
            unit: Unit = "characters" if isinstance(value, str) else rule.unit
            # Together with those that the source of the answer left out already.
            earlier = [one for one in omitted if (one.field, one.unit) == (name, unit)]
            omitted = [one for one in omitted if one not in earlier]
            count += sum(one.count for one in earlier)
            omitted.append(
                Omitted(field=name, count=count, unit=unit, hint=answer.hint(name, rule, head, tail))
            )
    return answer.model_copy(update={**updates, "omitted": omitted}).after_truncation() if updates else answer


def _cut_text(text: str, cap: int, rule: Truncatable) -> tuple[str, str]:
    """The beginning and the end of a text that are left."""
    # The size in JSON counts: escapes of control characters are six times as long.
    if len(text) <= cap and _cost(text) <= cap:
        return text, ""
    head_cap = int(cap * _HEADS[rule.keep])
    head = _prefix_within(text, head_cap)
    tail = _prefix_within(text[::-1], cap - head_cap)[::-1]
    return _whole_lines(head, tail)


def _whole_lines(head: str, tail: str) -> tuple[str, str]:
    """Drop the partial lines next to the gap, unless such a piece is most of the text."""
    end, start = head.rfind("\n") + 1, tail.find("\n") + 1
    return head[:end] if 2 * end > len(head) else head, tail[start:] if 2 * start < len(tail) else tail


def _prefix_within(text: str, cap: int) -> str:
    piece = text[:cap]
    while (over := _cost(piece) - cap) > 0:
        piece = piece[: len(piece) - max(1, over // 6)]
    return piece


def _cut_list(items: list[Any], cap: int, rule: Truncatable) -> tuple[list[Any], int]:
    sizes = [_item_cost(item) for item in items]
    if sum(sizes) <= cap:
        return items, 0
    head_cap = int(cap * _HEADS[rule.keep])
    first = _count_within(sizes, head_cap)
    last = _count_within(sizes[first:][::-1], cap - head_cap)
    return [*items[:first], *items[len(items) - last :]], len(items) - first - last


def _count_within(sizes: list[int], cap: int) -> int:
    total = 0
    for number, size in enumerate(sizes):
        total += size
        if total > cap:
            return number
    return len(sizes)


def _cost(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False)) - 2


def _item_cost(item: Any) -> int:
    if isinstance(item, BaseModel):
        return len(item.model_dump_json()) + 1
    return len(json.dumps(item, ensure_ascii=False)) + 1


def _last_resort(
    answer: A, render: Callable[[A], str], limit: int, measure: Callable[[A, str], int]
) -> tuple[A, str]:
    """Clip every text and list, if the answer is too long even without all that can be cut."""
    bare = _cut(answer, 0)
    for longest in (400, 100, 30, 8):
        clipped = cast(A, _clip(bare, longest))
        text = text_of(clipped, render)
        if measure(clipped, text) <= limit:
            return clipped, text
    return clipped, text[:limit]


def _escape_surrogates(value: Any) -> Any:
    """Escape lone surrogates. Programs may print them, but JSON on the wire can't hold them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_escape_surrogates(item) for item in cast(list[Any], value)]
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _escape_surrogates(item) for name, item in value})
    return value


def _clip(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}…"
    if isinstance(value, list):
        return [_clip(item, longest) for item in cast(list[Any], value)[: max(4, longest // 10)]]
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _clip(item, longest) for name, item in value})
    return value


def _line(omitted: Omitted) -> str:
    hint = f" {omitted.hint}" if omitted.hint else ""
    unit = omitted.unit[:-1] if omitted.count == 1 else omitted.unit
    of = "" if omitted.field == omitted.unit else f" of {omitted.field}"
    return f"(left out: {omitted.count:,} {unit}{of}.{hint})"
