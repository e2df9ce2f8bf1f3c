"""What looks like a secret is masked in all that leaves the server: answers, errors, progress, resources, records and logs.

Three ways to know one, from the surest to the weakest:

- *by value*: what environment entries with a secret's name hold, wherever that text appears;
- *by shape*: keys that say themselves what they are (`secret.shapes`);
- *by name*: `api_key = '…'`, `"password": "…"`, a local or an attribute of such a name, if its value looks random enough.

Programs have variables named `token` and tests with `password="x"`: names alone mask nothing, and in source code (`view`,
`grep`, patches, listings) they are no reason at all, for its literals are the repository's. It is a guard against accidents: a
program that prints its password letter by letter is not stopped.

All of it is linear in the length of the text. What can't match is found out first by plain searches for fixed words, which
cost a few microseconds for a usual answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from mcp_server.secret.known import Known, known_in
from mcp_server.secret.mask import MARK
from mcp_server.secret.masking import Masking
from mcp_server.secret.names import Strength, has_name, strength, strongest
from mcp_server.secret.pattern import Pattern
from mcp_server.secret.shapes import PROBES, SHAPES
from mcp_server.secret.values import looks_secret
from sandbox.errors import InvalidArgument
from tools._budget import Answer

SOURCE = frozenset({"lines", "diff", "patch", "text", "before", "after"})
"""Fields of answers that hold source code."""
_VALUES = frozenset({"value", "old", "new", "repr"})
"""Fields that hold, as Python writes it, the value of what `name` (or `expression`) names beside them."""
_VARIABLES = Pattern(
    r"(?:^|/)(?:\.env(?:\.[^/]*)?|[^/]*\.env|\.envrc|\.netrc|\.pgpass|\.pypirc|\.npmrc|credentials)$"
)
"""Files that are lists of variables rather than source code."""

A = TypeVar("A", bound=Answer)


@dataclass
class Redactor:
    """Masks what looks like a secret, and whatever `learn` was told of. Without `enabled` it changes nothing."""

    enabled: bool = True
    known: tuple[Known, ...] = ()

    def learn(self, environment: Mapping[str, str]) -> None:
        """Mask the values of those entries whose names say that they are secret."""
        if self.enabled and environment:
            self.known += known_in(tuple(environment.items()))

    def text(self, text: str, *, source: bool = False) -> str:
        """`text` with masks. `source`: it is code, where names are no reason."""
        found = self._found(text)
        return found.text(text, source=source) if found else text

    def data(self, value: Any) -> Any:
        """JSON data or a model with masks, otherwise the same; by the names of its keys too."""
        try:
            found = self._found(_dumped(value))
            return found.value(value, "", "") if found else value
        except RecursionError:  # data of a client, which can be nested as deeply as it likes
            return f"{MARK}data, nested too deeply to be looked at⟧"

    def answer(self, answer: A, asked: Sequence[str] = ()) -> A:
        """`answer` with masks, which it then mentions. `asked`: the expressions whose values it gives.

        A patch with masks in it no longer applies. It is masked all the same, since the model reads it like any other text; and
        the notice says so, lest somebody writes a mask into a file.
        """
        run = self._found(_dumped(answer), strongest(asked))
        if run is None:
            return answer
        masked = cast(A, run.value(answer, "", ""))
        return masked.model_copy(update={"redacted": _notice(run, masked)}) if run.count else masked

    def _found(self, text: str | None, asked: Strength = "") -> _Pass | None:
        """What to look for more closely, going by all the text there is (None: it can't be told); None: nothing."""
        if not self.enabled:
            return None
        if text is None:
            return _Pass(self.known, SHAPES, named=True, asked=asked)
        lower = text.lower()
        known = [one for one in self.known if _may_be_in(text, one.spelling)] if self.known else ()
        shapes = list(dict.fromkeys([shape for word, shape in PROBES if word in lower]))
        named = has_name(lower)
        return _Pass(known, shapes, named, asked) if known or shapes or named or asked else None

    def refuse_masks(self, arguments: Mapping[str, Any]) -> None:
        """See that no mask gets into a file.

        Raises:
            InvalidArgument: an argument has one.
        """
        for name, value in arguments.items():
            if self.enabled and isinstance(value, str) and MARK in value:
                raise InvalidArgument(
                    f"`{name}` has the mask of a value that was not shown ({MARK}…⟧); written to the file, it would replace it.",
                    "Leave out the lines with masks: replace only lines before and after them, by `start` and `end`.",
                )


def _notice(run: _Pass, answer: Answer) -> str:
    what = (
        "1 value looks like a secret and is"
        if run.count == 1
        else f"{run.count:,} values look like secrets and are"
    )
    patched = any(MARK in str(getattr(answer, name, "")) for name in ("patch", "diff"))
    spoilt = " A patch with masks does not apply." if patched else ""
    return (
        f"{what} shown as {MARK}…⟧.{spoilt} The operator of this server can turn that off with --no-redact."
    )


@dataclass
class _Pass(Masking):
    """One walk over an answer."""

    asked: Strength = ""

    def value(self, value: Any, name: str, outer: str) -> Any:
        """Models, lists and mappings with their strings masked. `name`: the field; `outer`: the expression all this belongs to."""
        match value:
            case str():
                return self.text(value, source=name in SOURCE)
            case BaseModel():
                return self._model(value, outer)
            case dict():
                return self._mapping(cast(dict[Any, Any], value), outer)
            case list() | tuple():
                return self._items(cast(Sequence[Any], value), name, outer)
            case _:
                return value

    def _model(self, model: BaseModel, outer: str) -> BaseModel:
        fields = {name: getattr(model, name) for name in type(model).model_fields}
        masked = self._fields(fields, outer)
        updates = {name: value for name, value in masked.items() if value is not fields[name]}
        return model.model_copy(update=updates) if updates else model

    def _mapping(self, data: Mapping[Any, Any], outer: str) -> dict[Any, Any]:
        masked: dict[Any, Any] = {**self._fields(data, outer)}
        for name, value in masked.items():
            if isinstance(value, str) and (found := strength(str(name))) and looks_secret(value, found):
                masked[name] = self.masked("value", value)
        return {self.text(name) if isinstance(name, str) else name: value for name, value in masked.items()}

    def _fields(self, fields: Mapping[str, Any], outer: str) -> dict[str, Any]:
        own = str(fields.get("expression") or fields.get("name") or "")
        # `[0]` and `.password` go on from what was looked at as a whole.
        whole = f"{outer}{own}" if own[:1] in (".", "[") else own
        found = strength(whole) if whole else ""
        listed = _VARIABLES.compiled.search(str(fields.get("path") or "")) is not None
        return {name: self._field(name, value, found, whole, listed) for name, value in fields.items()}

    def _field(self, name: str, value: Any, found: Strength, whole: str, listed: bool) -> Any:
        if isinstance(value, str):
            if name == "reply" and self.asked:
                value = self.literals(value, self.asked)
            elif name in _VALUES and found:
                value = self.literals(value, found)
        return self.value(value, "" if listed else name, whole)

    def _items(self, items: Sequence[Any], name: str, outer: str) -> Sequence[Any]:
        if name in SOURCE and all(isinstance(item, str) and "\n" not in item for item in items):
            # A key may go over several lines, each an item; masks keep lines.
            masked = self.text("\n".join(items), source=True)
            return masked.split("\n") if MARK in masked else items
        changed = [self.value(item, name, outer) for item in items]
        return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed


def _may_be_in(text: str, spelling: str) -> bool:
    # What has quotes or backslashes may be spelled in any way after some rounds of escaping.
    return spelling in text or "\\" in spelling or '"' in spelling


def _dumped(value: Any) -> str | None:
    """All its text at once; None if that can't be had."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        return json.dumps(value, ensure_ascii=False)
    except (PydanticSerializationError, TypeError, ValueError):
        return None
