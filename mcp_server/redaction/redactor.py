"""Masks for secrets in all that leaves the server: answers, errors, progress, resources, records and logs.

A secret is recognized

- *by value*: the values of environment entries with a secret's name, wherever they appear;
- *by shape*: keys with a prefix or a form of their issuer (`redaction.shapes`);
- with `names`, *by name*: `api_key = …`, `"password": "…"`. Off by default, since somebody who debugs wants to see these. Never in
  source text, which has the repository's own literals.

It is a guard against accidents: a program that prints its password letter by letter is not stopped.

All of it is linear in the length of the text. Shapes that can't match are found out first by plain searches for fixed words,
which cost a few microseconds for a usual answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError

from mcp_server.redaction.environment import Known, known_in
from mcp_server.redaction.mask import MARK, Masking, is_secret_name
from mcp_server.redaction.shapes import PROBES, SHAPES
from sandbox.errors import InvalidArgument
from tools._truncation import Answer, SourceText, Variables

A = TypeVar("A", bound=Answer)
M = TypeVar("M")


@dataclass
class Redactor:
    """Masks everything that looks like a secret or was passed to `learn`. Without `enabled` it changes nothing."""

    enabled: bool = True
    names: bool = False
    """Also by name."""
    known: tuple[Known, ...] = ()

    def learn(self, environment: Mapping[str, str]) -> None:
        """Mask the values of those entries whose names say that they are secret."""
        if self.enabled and environment:
            self.known += known_in(tuple(environment.items()))

    def text(self, text: str, *, source: bool = False) -> str:
        """`text` with masks. `source`: it is code, where names don't count."""
        found = self._find_masks(text)
        return found.text(text, source=source) if found else text

    def data(self, value: Any) -> Any:
        """JSON data with masks, otherwise the same."""
        found = self._find_masks(value)
        return found.value(value) if found else value

    def answer(self, answer: A) -> A:
        """`answer` with masks, which it then mentions.

        A patch with masks in it no longer applies. It is masked all the same, since the model reads it like any other
        text. The notice says so, so that nobody writes a mask into a file.
        """
        run = self._find_masks(answer)
        if run is None:
            return answer
        masked = cast(A, run.value(answer))
        return masked.model_copy(update={"redacted": _notice(run, masked)}) if run.count else masked

    def _find_masks(self, value: Any) -> _Pass | None:
        """A pass with all that can be in the text of `value`; None: there is nothing to mask."""
        if not self.enabled:
            return None
        text = value if isinstance(value, str) else _dump(value)
        if text is None:
            return _Pass(self.known, SHAPES, self.names)
        lower = text.lower()
        known = [one for one in self.known if _may_be_in(text, one.spelling)] if self.known else ()
        shapes = list(dict.fromkeys([shape for word, shape in PROBES if word in lower]))
        return _Pass(known, shapes, self.names) if known or shapes or self.names else None

    def refuse_masks(self, arguments: Mapping[str, Any]) -> None:
        """See that no mask gets into a file.

        Raises:
            InvalidArgument: an argument has one.
        """
        for name, value in arguments.items():
            if self.enabled and any(MARK in text for text in _texts(value)):
                raise InvalidArgument(
                    f"`{name}` has the mask of a value that was not shown ({MARK}…⟧); written to the file, it would replace it.",
                    "Leave out the lines with masks: replace only lines before and after them, by `start` and `end`.",
                )


def _texts(value: Any) -> Iterator[str]:
    """All strings in an argument."""
    match value:
        case str():
            yield value
        case BaseModel():
            for _, part in value:
                yield from _texts(part)
        case list():
            for part in cast(list[Any], value):
                yield from _texts(part)
        case _:
            pass


def _notice(run: _Pass, answer: Answer) -> str:
    what = (
        "1 value looks like a secret and is"
        if run.count == 1
        else f"{run.count:,} values look like secrets and are"
    )
    patched = any(
        MARK in str(getattr(answer, name))
        for name, info in type(answer).model_fields.items()
        if (mark := _mark(info, SourceText)) and mark.is_patch
    )
    spoilt = " A patch with masks does not apply." if patched else ""
    return (
        f"{what} shown as {MARK}…⟧.{spoilt} The operator of this server can turn that off with --no-redact."
    )


@dataclass
class _Pass(Masking):
    """One walk over an answer."""

    def value(self, value: Any, *, source: bool = False) -> Any:
        """Models, lists and mappings with their strings masked."""
        match value:
            case str():
                return self.text(value, source=source)
            case BaseModel():
                return self._model(value, source)
            case dict():
                return self._mapping(cast(dict[Any, Any], value), source)
            case list() | tuple():
                return self._items(cast(Sequence[Any], value), source)
            case _:
                return value

    def _model(self, model: BaseModel, source: bool) -> BaseModel:
        updates: dict[str, Any] = {}
        for name, info in type(model).model_fields.items():
            given = getattr(model, name)
            masked = self.value(given, source=source or _mark(info, SourceText) is not None)
            if (mark := _mark(info, Variables)) and self.names:
                masked = [self._variable(item, mark) for item in masked]
            if masked is not given:
                updates[name] = masked
        return model.model_copy(update=updates) if updates else model

    def _variable(self, item: Any, mark: Variables) -> BaseModel:
        values = {field: value for field in mark.values if (value := getattr(item, field))}
        return item.model_copy(
            update={field: self.mask_assigned(item.name, values[field]) for field in values}
        )

    def _mapping(self, data: Mapping[Any, Any], source: bool) -> dict[Any, Any]:
        masked = {key: self.value(value, source=source) for key, value in data.items()}
        if self.names:
            for key, value in masked.items():
                if isinstance(key, str) and isinstance(value, str) and is_secret_name(key):
                    masked[key] = self.secret(value)
        return {self.text(key) if isinstance(key, str) else key: value for key, value in masked.items()}

    def _items(self, items: Sequence[Any], source: bool) -> Sequence[Any]:
        if source and all(isinstance(item, str) and "\n" not in item for item in items):
            # A key may go over several lines, each an item; masks keep lines.
            masked = self.text("\n".join(items), source=True)
            return masked.split("\n") if MARK in masked else items
        changed = [self.value(item, source=source) for item in items]
        return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed


def _mark(info: FieldInfo, kind: type[M]) -> M | None:
    return next((mark for mark in info.metadata if isinstance(mark, kind)), None)


def _may_be_in(text: str, spelling: str) -> bool:
    # What has quotes or backslashes may be spelled in any way after some rounds of escaping.
    return spelling in text or "\\" in spelling or '"' in spelling


def _dump(value: Any) -> str | None:
    """Serialize the value to one text; None if that fails."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json(exclude_none=True)
        return json.dumps(value, ensure_ascii=False)
    except (PydanticSerializationError, TypeError, ValueError):
        return None
