"""Options of one connection: over HTTP each can be set by the query of the URL or by a header, else the operator's settings hold."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Annotated
from urllib.parse import urlencode

from mcp.types import INVALID_PARAMS
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_server import profiles
from mcp_server.errors import request_refusal
from mcp_server.profiles import ProfileText
from mcp_server.settings import AnswerForm, Settings
from sandbox.errors import InvalidArgument
from sandbox.opening.request import SessionRequest


class ConnectionOptions(BaseModel):
    """Options for the answers to one connection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: AnswerForm = "text"
    """Text, structured data, or both; the tool list has output schemas only if there is data."""
    answer_within_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds after which a call answers at the latest; None: no limit besides its own `timeout_s`."""
    profile: ProfileText = profiles.DEBUG
    """Tools that the client sees, and when those of the debugger answer."""
    session: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@~-]{0,127}$")] | None = None
    """Name of the connection's own session, which its client has chosen; no setting of the operator's."""
    task: Annotated[str, Field(max_length=4096)] | None = None
    """Name of the task of that session."""

    def request(self) -> SessionRequest:
        """The session that the first call of a connection with its own session opens."""
        return SessionRequest(task=self.task)

    @classmethod
    def of(cls, settings: Settings) -> ConnectionOptions:
        """The operator's options, which hold on stdio and wherever a client does not say otherwise.

        Raises:
            InvalidArgument: there is no such profile.
        """
        profiles.parse(settings.profile)
        return cls.model_validate(
            {name: getattr(settings, name) for name in ("answers", "answer_within_s", "profile")}
        )

    def with_choices(self, chosen: Mapping[str, str]) -> ConnectionOptions:
        """Return a copy with the choices of a client, by field.

        Raises:
            InvalidArgument: a value that does not fit.
        """
        if not chosen:
            return self
        if "task" in chosen and "session" not in chosen:
            raise InvalidArgument(
                f"task={chosen['task'][:100]} is given without a session.",
                "A connection with a task names its session: ?session=NAME&task=ID.",
            )
        try:
            return type(self).model_validate({**self.model_dump(), **chosen})
        except ValidationError as exc:
            error = exc.errors()[0]
            name = str(error["loc"][0])
            said = str(error["msg"]).removeprefix("Value error, ").rstrip(".")
            raise InvalidArgument(
                f"{parameter(name)}={chosen[name][:100]}: {said}.",
                f"It is set by ?{parameter(name)}= in the URL, or by the header {header(name)}.",
            ) from exc


_ENDPOINT = b"?session_id="
_PREFIX = b"pdbox-"
"""Of the names of our headers, as ASGI has them."""
_current: ContextVar[ConnectionOptions | None] = ContextVar("connection options", default=None)


def current(default: ConnectionOptions) -> ConnectionOptions:
    """Options of the connection whose request is being handled; `default` where no HTTP request brought it."""
    return _current.get() or default


def parameter(field: str) -> str:
    """Name of the query parameter for a field."""
    return field.removesuffix("_s")


def header(field: str) -> str:
    """Name of the header for a field, e.g. `Pdbox-Answer-Within`."""
    return f"Pdbox-{parameter(field).replace('_', '-').title()}"


class ConnectionMiddleware:
    """Reads the options of each HTTP request; refuses the request if they don't fit."""

    def __init__(self, app: ASGIApp, defaults: ConnectionOptions, sse_path: str) -> None:
        self._app = app
        self._defaults = defaults
        self._sse_path = sse_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        chosen = _read_choices(scope)
        try:
            options = self._defaults.with_choices(chosen)
        except InvalidArgument as exc:
            await request_refusal(str(exc), code=INVALID_PARAMS, status=400)(scope, receive, send)
            return
        # The SDK handles each message in the context of the request that brought it, as it does for access tokens.
        token = _current.set(options)
        try:
            if chosen and scope["path"] == self._sse_path:
                send = _extend_endpoint(send, chosen)
            await self._app(scope, receive, send)
        finally:
            _current.reset(token)


def _read_choices(scope: Scope) -> dict[str, str]:
    """Options that the request sets, by field; the query wins over headers, and an empty value sets nothing."""
    if not scope["query_string"] and not any(name.startswith(_PREFIX) for name, _ in scope["headers"]):
        return {}  # most set none, and each look for a header goes through all of them
    query, headers = QueryParams(scope["query_string"]), Headers(scope=scope)
    found = {
        name: query.get(parameter(name)) or headers.get(header(name))
        for name in ConnectionOptions.model_fields
    }
    return {name: value for name, value in found.items() if value}


def _extend_endpoint(send: Send, chosen: Mapping[str, str]) -> Send:
    """Add the options of the SSE connection's own request to the URL for its messages.

    The first event contains that URL (`data: /messages/?session_id=…`); clients use it unchanged.
    """
    query = urlencode({parameter(name): value for name, value in chosen.items()}).encode()
    pending = True

    async def extended(message: Message) -> None:
        nonlocal pending
        if pending and _ENDPOINT in (body := bytes(message.get("body", b""))):
            pending = False
            message = {**message, "body": body.replace(_ENDPOINT, b"?" + query + b"&session_id=", 1)}
        await send(message)

    return extended
