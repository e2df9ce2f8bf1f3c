"""Exceptions become text for clients here and nowhere else."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable
from typing import TypeVar

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.types import CallToolResult, TextContent
from starlette.responses import JSONResponse

from mcp_server.observability import logs
from mcp_server.redaction.redactor import Redactor
from sandbox.errors import InvalidArgument, NotFound, PdboxError
from tools._advice import advise
from tools._text import show_hidden

log = logging.getLogger(__name__)
T = TypeVar("T")


async def answer_safely(tool: str, work: Awaitable[CallToolResult], redactor: Redactor) -> CallToolResult:
    """Await `work` and turn a failure into a result that the model can read.

    Expected failures say what to do next. Others are bugs of ours: the client gets a number, the log the traceback.
    """
    try:
        result = await work
        logs.note_outcome("ok")
        return result
    except PdboxError as exc:
        log.info("%s: %s: %.500r", tool, type(exc).__name__, str(exc))
        log_details(exc)
        logs.note_outcome("refused")
        exc.hint = advise(exc.hint)
        return refusal(redactor.text(str(exc)))
    except Exception as exc:
        logs.note_outcome("failed")
        return refusal(f"`{tool}` {_log_incident(tool, exc)}")


async def read_safely(work: Awaitable[T]) -> T:
    """The result of `work` for a client that reads a resource, or its failure as the SDK takes it.

    Raises:
        ResourceError: with what to do next, or the number of an incident.
    """
    try:
        return await work
    except (NotFound, InvalidArgument) as exc:
        raise ResourceNotFoundError(show_hidden(str(exc))[:4000]) from exc
    except PdboxError as exc:
        log_details(exc)
        raise ResourceError(show_hidden(str(exc))[:4000]) from exc
    except Exception as exc:
        raise ResourceError(f"Reading {_log_incident('a resource', exc)}") from exc


async def contain(where: str, work: Awaitable[None]) -> None:
    """Await `work` of a background task: an unexpected error ends this work alone, not the server.

    Expected failures are for the caller to handle; they pass.
    """
    try:
        await work
    except PdboxError:
        raise
    except Exception as exc:
        _log_incident(where, exc)


def _log_incident(where: str, exc: Exception) -> str:
    """Log a failure that nobody foresaw; gives the end of the sentence that a client reads about it."""
    number = secrets.token_hex(4)
    log.error("incident %s in %s", number, where, exc_info=exc)
    return f"failed unexpectedly (incident {number}; the server's log has the details)."


def request_refusal(text: str, *, code: int, status: int) -> JSONResponse:
    """Answer of an HTTP request that is refused before the SDK sees it, in the form of the SDK's own refusals.

    MCP clients show the text of it to people. `code` is JSON-RPC's, `status` HTTP's.
    """
    error = {"code": code, "message": text}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=status)


def refusal(text: str) -> CallToolResult:
    """An error result."""
    return CallToolResult(content=[TextContent(type="text", text=show_hidden(text)[:4000])], is_error=True)


def log_details(exc: PdboxError) -> None:
    """Log the details of a failure that clients don't get, if there are any."""
    if exc.details:
        log.warning("%s %r", exc.message, exc.details)


def one_line(exc: PdboxError) -> str:
    """For people at a terminal."""
    return show_hidden(" ".join(f"{exc} {exc.details and f'({exc.details})'}".split()))
