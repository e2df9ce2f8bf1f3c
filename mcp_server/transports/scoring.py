"""`POST /score`: the score of a session, for the harness that holds the token by which it was opened."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mcp_server.connection_options import ConnectionOptions, current
from mcp_server.server import caller, principal
from mcp_server.sessions.named import handle_of
from mcp_server.sessions.store import SessionStore
from sandbox.errors import Conflict, NotFound, PdboxError

SCORE = "/score"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    session_id: Annotated[str, Field(min_length=1, max_length=200)]


class ScoreRoute:
    """Scores the session that the query (`?session=NAME`) or the body (`{"session_id": …}`) names."""

    def __init__(self, store: SessionStore, *, needs_token: bool) -> None:
        """`needs_token`: requests without a principal are refused."""
        self._store = store
        self._needs_token = needs_token

    async def answer(self, request: Request) -> Response:
        """Answer with the verdict as JSON, once it is there."""
        if self._needs_token and principal() is None:
            return _refuse("A token is needed.", 401, {"WWW-Authenticate": "Bearer"})
        try:
            handle = await _read_handle(request)
        except ValidationError:
            return _refuse('Which session? Give ?session=NAME, or the body {"session_id": "…"}.', 400)
        try:
            verdict = await self._store.score(caller(), handle)
        except NotFound as exc:
            return _refuse(str(exc), 404)
        except Conflict as exc:
            return _refuse(str(exc), 409)
        except PdboxError as exc:
            return _refuse(str(exc), 500)
        return JSONResponse(verdict.model_dump(mode="json"))


async def _read_handle(request: Request) -> str:
    name = current(ConnectionOptions()).session
    if name is not None:
        return handle_of(caller(), name)
    return _Body.model_validate_json(await request.body()).session_id


def _refuse(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": text}, status_code=status, headers=headers)
