"""A tool: its function, the text form of its answer, and its description for clients."""

from __future__ import annotations

import difflib
import inspect
import json
import reprlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, Protocol, cast, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo

from sandbox.errors import InvalidArgument
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session
from tools._advice import leave_out
from tools._json import MAX_VALUES, has_too_many_values
from tools._schema import for_answers, for_arguments
from tools._truncation import LIMIT, WIDE_LIMIT, Answer

Group = Literal["sessions", "files", "run", "debug"]
"""Group of related tools."""

SESSION_ID = "session_id"
_SESSION_ID_TEXT = "From `start_session`; leave out for your only session."

_MAX_NAMES = 10
"""Maximum number of unknown arguments that an error names."""
_MAX_NAME_LENGTH = 50
_MAX_VARIABLES = 1000


class Report(Protocol):
    """Callback for the progress of a long call."""

    def __call__(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


def ignore_progress(message: str, done: float | None = None, total: float | None = None) -> None:
    """Progress callback that discards everything."""


class OwnSession(BaseModel):
    """One session of the caller. Without `session_id`, another server started it and only that one knows the handle."""

    session_id: str | None
    state: str
    age_s: float
    place: str
    image: str = ""
    isolation: str = ""


class Sessions(Protocol):
    """The caller's sessions, provided by the server."""

    async def open(self, request: SessionRequest, report: Report) -> Session:
        """Open a session. The operator's settings complete `request`."""
        ...

    async def list_own(self) -> list[OwnSession]: ...

    async def close(self, session: Session) -> None: ...

    async def abandon(self, session: Session, reason: str) -> str:
        """End a session whose changes can't be read, but keep its edits. Returns `reason`, with what is kept."""
        ...

    async def finish(self, session: Session) -> None:
        """Hand in the changes of a session with a task, and end it."""
        ...


@dataclass(frozen=True)
class Call:
    """Context of a call, besides its arguments."""

    sessions: Sessions
    session: Session | None
    report: Report
    within_s: float | None = None
    """Seconds within which the client expects an answer, even `running`; None: no limit."""


def _parse_pairs(value: Any) -> Any:
    """Convert a list of NAME=VALUE to a mapping."""
    if isinstance(value, str):
        value = _unpack(value, list[str])
    if not isinstance(value, list):
        return value
    texts = [str(item) for item in cast(list[Any], value)]
    if wrong := [text for text in texts if "=" not in text]:
        raise ValueError(f"not of the form NAME=VALUE: {_shorten(wrong[0])}")
    return dict(text.split("=", 1) for text in texts)


Environment = Annotated[
    # All answers are searched for each value whose name is that of a secret.
    Annotated[dict[str, str], Field(max_length=_MAX_VARIABLES)],
    BeforeValidator(_parse_pairs),
    # Objects are accepted, too. But strict schemas allow none with free names, and some converters turn them into empty ones.
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
"""Environment variables, shown to clients as a list of NAME=VALUE."""

Function = Callable[..., Awaitable[Answer]]
_INJECTED = ("session", "sessions", "report", "within_s")


@dataclass(frozen=True)
class TakesEmpty:
    """Marks an optional argument whose empty value differs from a missing one."""


@dataclass(frozen=True)
class Tool:
    """One tool. Name, description and input schema come from the function, the output schema from its answer type."""

    function: Function
    render: Callable[[Any], str]
    """Formats the answer as short text, sufficient for clients that show nothing else."""
    title: str
    group: Group
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    """True if it may reach beyond the sandbox."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other accepted names of arguments; clients do not see them."""
    wide: Callable[[Mapping[str, Any]], bool] = lambda arguments: False
    """True if the caller asked for more than a short answer."""
    rank: int = 1
    """Position within its group in the list: tools that are called first come first."""
    slow: bool = False
    """It runs programs or starts sandboxes, so it sends progress notifications."""
    runs: Callable[[Mapping[str, Any]], bool] = lambda arguments: True
    """True if a call with these arguments runs programs, for a slow tool."""
    takes_source: bool = False
    """Its arguments are written to files. Arguments with masks of secrets are refused."""
    continues: Callable[[Mapping[str, Any]], bool] = lambda arguments: False
    """True if a call with these arguments goes on from earlier calls of its session: as the first one it is a surprise."""
    instructions: str = ""
    """Text for the server's instructions, where the tool's own description is not enough."""

    @property
    def name(self) -> str:
        """Name of the tool. That of `eval_` is `eval`: a module of that name would hide the builtin."""
        return self.function.__name__.rstrip("_")

    @cached_property
    def description(self) -> str:
        return inspect.cleandoc(self.function.__doc__ or "")

    @cached_property
    def injected(self) -> list[str]:
        """Parameters that come from the call itself, not from its arguments."""
        return [name for name in inspect.signature(self.function).parameters if name in _INJECTED]

    @cached_property
    def needs_session(self) -> bool:
        return "session" in self.injected

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """Model of the arguments, `session_id` included."""
        hints = get_type_hints(self.function, include_extras=True)
        fields: dict[str, Any] = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in inspect.signature(self.function).parameters.items()
            if name not in _INJECTED
        }
        if self.needs_session:
            fields[SESSION_ID] = (Annotated[str | None, Field(description=_SESSION_ID_TEXT)], None)
        config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, defer_build=True)
        return create_model(self.name, __config__=config, **fields)

    @cached_property
    def answer(self) -> type[Answer]:
        return get_type_hints(self.function)["return"]

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        return for_arguments(self.arguments.model_json_schema())

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        return for_answers(self.answer.model_json_schema(mode="serialization"))

    def schema_without(
        self, hidden: frozenset[str], arguments: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """The input schema for a client that does not see the tools `hidden`, without these `arguments`.

        An optional argument of which nothing can be said without naming such a tool is left out.
        """
        required = self.input_schema.get("required", ())
        properties: dict[str, Any] = {}
        for name, schema in self.input_schema["properties"].items():
            said = schema.get("description", "")
            text = leave_out(said, hidden)
            if name not in arguments and (text or not said or name in required):
                properties[name] = {**schema, "description": text} if said else schema
        return {**self.input_schema, "properties": properties}

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Convert arguments to the types of the function; `session_id` is included.

        Raises:
            InvalidArgument: unknown, missing or invalid arguments. Names all of them and the valid ones.
        """
        named = self._resolve_aliases(arguments)
        fields = self.arguments.model_fields
        if unknown := [name for name in named if name not in fields]:
            raise InvalidArgument(
                self._describe_unknown(unknown),
                f"`{self.name}` takes: {', '.join(fields) or 'no arguments'}.",
            )
        unpacked = {name: _unpack(value, fields[name].annotation) for name, value in named.items()}
        given = {name: value for name, value in unpacked.items() if not _is_left_out(value, fields[name])}
        try:
            model = self.arguments.model_validate(given)
        except ValidationError as exc:
            raise InvalidArgument(
                self._describe_invalid(exc), f"`{self.name}` takes: {', '.join(fields)}."
            ) from exc
        values = {name: getattr(model, name) for name in fields}
        for name, value in values.items():
            if not _is_encodable(value):
                raise InvalidArgument(
                    f"`{name}` of `{self.name}` has half of a surrogate pair, which is not text."
                )
            if isinstance(value, int) and abs(value) > _MAX_NUMBER:
                raise InvalidArgument(f"`{name}` of `{self.name}` is over {_MAX_NUMBER:.0e}.")
        return values

    async def run(self, call: Call, arguments: Mapping[str, Any]) -> Answer:
        """Call the function with parsed arguments (without `session_id`)."""
        injected = {name: getattr(call, name) for name in self.injected}
        return await self.function(**injected, **arguments)

    def limit(self, arguments: Mapping[str, Any]) -> int:
        """Characters that the answer may have, each of text and data."""
        return WIDE_LIMIT if self.wide(arguments) else LIMIT

    def _resolve_aliases(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for name, value in arguments.items():
            target = self.aliases.get(name, name)
            if target in named or (target != name and target in arguments):
                raise InvalidArgument(
                    f"`{name}` and `{target}` of `{self.name}` are the same argument.", "Give one of them."
                )
            named[target] = value
        return named

    def _describe_unknown(self, names: Sequence[str]) -> str:
        known = list(self.arguments.model_fields)
        texts: list[str] = []
        for name in names[:_MAX_NAMES]:
            # Texts longer than any name are similar to none, and comparing them takes long.
            close = difflib.get_close_matches(name, known, n=1) if len(name) <= _MAX_NAME_LENGTH else []
            texts.append(f"{_shorten(name)} (did you mean `{close[0]}`?)" if close else _shorten(name))
        if len(names) > _MAX_NAMES:
            texts.append(f"{len(names) - _MAX_NAMES:,} more")
        return f"Unknown argument{'s' if len(texts) > 1 else ''} of `{self.name}`: {', '.join(texts)}."

    def _describe_invalid(self, exc: ValidationError) -> str:
        texts: list[str] = []
        for error in exc.errors(include_url=False, include_context=False)[:5]:
            name = ".".join(str(part) for part in error["loc"][:3])
            if error["type"] == "missing":
                texts.append(f"`{name}` is missing")
            else:
                texts.append(f"`{name}`: {_lower_first(error['msg'])}, got {_shorten(error['input'])}")
        return f"Invalid arguments of `{self.name}`: {'; '.join(texts)}."


def _is_left_out(value: Any, field: FieldInfo) -> bool:
    """True if `value` stands for the default.

    With strict schemas, models fill in every argument: null or an empty value means "left out", and so does 0 if the
    default is None.
    """
    if field.is_required():
        return False
    empty = value in ("", [], {}) or (value == 0 and field.default is None)
    return value is None or (empty and not any(isinstance(mark, TakesEmpty) for mark in field.metadata))


def _unpack(value: Any, annotation: Any) -> Any:
    """Decode a list or an object that a model sent as JSON text, or put a single string into a list."""
    if not isinstance(value, str):
        return value
    kinds = _container_types(annotation)
    if not kinds:
        return value
    if has_too_many_values(value.encode("utf-8", "replace")):
        raise InvalidArgument(
            f"A list or an object of more than {MAX_VALUES:,} values is too long.", "Give fewer at a time."
        )
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        decoded = None
    if type(decoded) in kinds:
        return decoded
    return [value] if list in kinds and value.strip() else value


_MAX_NUMBER = 10**15
"""Texts repeat numbers."""


def _is_encodable(value: Any) -> bool:
    """True if all text in an argument can be encoded as UTF-8. JSON escapes can spell text that can't."""
    match value:
        case str():
            return _is_text(value)
        case list():
            return all(map(_is_encodable, cast(list[Any], value)))
        case BaseModel():
            return all(_is_encodable(part) for _, part in value)
        case dict():
            return all(_is_encodable(part) for pair in cast(dict[Any, Any], value).items() for part in pair)
        case _:
            return True


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _container_types(annotation: Any) -> set[type]:
    origin = get_origin(annotation)
    if origin in (list, dict):
        return {cast(type, origin)}
    return (
        {kind for part in get_args(annotation) for kind in _container_types(part)}
        if origin is not None
        else set()
    )


def _shorten(value: Any) -> str:
    text = _SHORT_REPR.repr(value)
    if len(text) <= 80:
        return text
    size = f" ({len(value):,} characters)" if isinstance(value, str) else ""
    return f"{text[:60]}…{size}"


def _short_repr() -> reprlib.Repr:
    """Return a `repr` that writes little more of a long value than is shown: long ones take long."""
    short = reprlib.Repr()
    short.maxlist = short.maxdict = short.maxset = short.maxtuple = 40
    short.maxstring = short.maxlong = short.maxother = 200
    return short


_SHORT_REPR = _short_repr()


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
