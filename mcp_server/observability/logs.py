"""Logs to stderr: text for people or one JSON object a line, each with the call it belongs to, and with secrets masked."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TextIO

from opentelemetry import trace

from mcp_server.observability.receipts import current_receipt
from mcp_server.redaction.redactor import Redactor
from sandbox.session.session import Session
from tools._text import show_hidden

log = logging.getLogger(__name__)

Format = Literal["text", "json"]
Outcome = Literal["ok", "refused", "failed", "cancelled", "running"]
LIKE_LINES = 100
"""Lines of one kind in a minute."""
_HASH = 12
"""Characters of a hash in the log: enough to distinguish sessions and principals, useless for anything else."""


@dataclass
class CallRecord:
    """Data of the current call for the log. Contains no handles and tokens, only hashes of them."""

    tool: str
    request_id: str | None
    principal: str
    redactor: Redactor
    session: str | None = None
    backend: str | None = None
    place: str | None = None
    outcome: Outcome = "cancelled"
    """As it stands if nobody says otherwise."""
    started: float = field(default_factory=time.perf_counter)

    def fields(self) -> dict[str, Any]:
        """For each line that is logged during the call."""
        found = {
            "session": self.session,
            "tool": self.tool,
            "request_id": self.request_id,
            "principal": self.principal,
        }
        return {name: value for name, value in found.items() if value is not None}


_current: ContextVar[CallRecord | None] = ContextVar("pdbox_call", default=None)


@contextmanager
def record_call(tool: str, request_id: str | None, owner: str, redactor: Redactor) -> Generator[CallRecord]:
    """Attach one call of a tool to its log lines; at its end, log its outcome and set the attributes of its span."""
    # A client may call a tool that isn't there by any name.
    record = CallRecord(tool[:100], request_id and request_id[:100], owner[:_HASH], redactor)
    token = _current.set(record)
    try:
        yield record
    finally:
        _set_span_attributes(record)
        if log.isEnabledFor(logging.INFO):
            took_ms = round((time.perf_counter() - record.started) * 1000, 3)
            extra = {"duration_ms": took_ms, "outcome": record.outcome}
            log.info("%s: %s after %.1f ms", record.tool, record.outcome, took_ms, extra=extra)
        _current.reset(token)


def note_session(session: Session) -> None:
    """Record the session of the current call, and mask its secrets from here on."""
    if (record := _current.get()) is not None:
        record.session = session.key[:_HASH]
        record.backend = session.sandbox.backend
        record.place = session.sandbox.place
        record.redactor.learn(session.metadata.env)
        record.redactor.learn(session.sandbox.environ)


def note_outcome(how: Outcome) -> None:
    """Record the outcome of the current call."""
    if (record := _current.get()) is not None:
        record.outcome = how


_OVER_HTTP = {"network.transport": "tcp", "network.protocol.name": "http"}
_OVER_STDIO = {"network.transport": "pipe"}


def _set_span_attributes(record: CallRecord) -> None:
    """Add to the span that the SDK has for each request what OpenTelemetry's conventions for MCP name besides, and our own facts.

    The SDK names method, tool, request, protocol and errors. Without an OpenTelemetry SDK the span takes nothing.
    """
    span = trace.get_current_span()
    if span.is_recording():
        given = {
            **(_OVER_HTTP if current_receipt.get() is not None else _OVER_STDIO),
            "pdbox.outcome": record.outcome,
            "pdbox.principal": record.principal,
            "pdbox.session": record.session,
            "pdbox.sandbox.backend": record.backend,
            "pdbox.sandbox.place": record.place,
        }
        span.set_attributes({name: value for name, value in given.items() if value is not None})


def configure(form: Format, level: str, redactor: Redactor) -> None:
    """Log to stderr, in that form. Before `MCPServer`, which would otherwise choose a format of its own."""
    handler = LimitedHandler(sys.stderr)
    handler.addFilter(_is_worth_a_line)
    handler.setFormatter(JsonLines(redactor) if form == "json" else Lines(redactor))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    if form == "json":
        _capture_stderr()


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """False for the SDK's traceback of an answer to a client that has closed our stdout, which ends the server."""
    is_closed = record.exc_info is not None and isinstance(record.exc_info[1], BrokenPipeError)
    return not (is_closed and record.name.startswith("mcp."))


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes a warning or error of one kind `LIKE_LINES` times a minute at most: a fault may repeat thousands of times a second."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._minute = 0.0
        self._counts: Counter[tuple[str, int, str]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record`, or count it."""
        if record.levelno >= logging.WARNING:
            count = self._count(record)
            if count > LIKE_LINES:
                return
            if count == LIKE_LINES:
                text = f"{_message(record)} (further lines like this are left out for a minute)"
                record = logging.makeLogRecord({**record.__dict__, "msg": text, "args": None})
        super().emit(record)

    def _count(self, record: logging.LogRecord) -> int:
        if not 0 <= record.created - self._minute < 60:
            self._minute = record.created
            self._counts.clear()
        # Texts differ by addresses and numbers, which the format leaves open; what sandboxes say has no format.
        kind = _message(record) if record.msg == "%s" else str(record.msg)
        key = (record.name, record.levelno, kind)
        self._counts[key] += 1
        return self._counts[key]


class _MaskingFormatter(logging.Formatter):
    """Formats lines with secrets masked: those that the call knows of, else those of the operator's settings."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def mask(self, text: str) -> str:
        """`text` without secrets."""
        record = _current.get()
        return (record.redactor if record is not None else self._redactor).text(text)


class Lines(_MaskingFormatter):
    """For people. One record is one line, apart from tracebacks: no text can imitate another line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the traceback if there is one."""
        call = _current.get()
        fields = call.fields() if call is not None else {}
        suffix = f" [{' '.join(f'{name}={value}' for name, value in fields.items())}]" if fields else ""
        lines = [
            f"{_time(record)} {record.levelname} {record.name}: {_one_line(self.mask(_message(record)))}{_one_line(suffix)}"
        ]
        if record.exc_info:
            lines.append(show_hidden(self.mask(self.formatException(record.exc_info))))
        return "\n".join(lines)


class JsonLines(_MaskingFormatter):
    """For programs: one JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, in ASCII, so that no terminal and no locale can spoil it."""
        call = _current.get()
        data: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.mask(_message(record)),
            **(call.fields() if call is not None else {}),
        }
        for name in ("duration_ms", "outcome"):
            if (value := getattr(record, name, None)) is not None:
                data[name] = value
        if record.exc_info:
            data["exception"] = self.mask(self.formatException(record.exc_info))
        return json.dumps(data, default=str)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (
        TypeError,
        ValueError,
    ):  # arguments that don't fit: somebody else's mistake, and still worth a line
        return f"{record.msg} {record.args!r}"


def _one_line(text: str) -> str:
    return show_hidden(text.replace("\r", "\\r").replace("\n", "\\n"))


def _capture_stderr() -> None:
    """Turn the output of Python itself to stderr into log lines, too."""
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # it prints
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread
    sys.unraisablehook = _log_unraisable


def _log_uncaught(kind: type[BaseException], exc: BaseException, traceback: TracebackType | None) -> None:
    log.critical("uncaught %s", kind.__name__, exc_info=(kind, exc, traceback))


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and args.exc_type is not SystemExit:
        log.critical("uncaught in a thread", exc_info=(args.exc_type, args.exc_value, args.exc_traceback))


def _log_unraisable(args: sys.UnraisableHookArgs) -> None:
    if args.exc_value is not None:
        log.error("ignored", exc_info=(args.exc_type, args.exc_value, args.exc_traceback))
