"""Refusals of calls whose session is not found."""

from __future__ import annotations

from sandbox.errors import Conflict, InvalidArgument, NotFound

START = "`start_session` opens a new session."
FINISHED = Conflict("The task is finished, and its session has ended.")
_UNKNOWN = "This session_id is unknown or has expired."
_KEEP = "this client starts a server for each call: sessions then need a server that is started with `--keep-sessions`."
_SERVER_PER_CALL = f"{START} If it was opened by an earlier call, {_KEEP}"
OPENED_ANEW = (
    f"This call opened a new session, which knows nothing of earlier calls. If there were some, {_KEEP}"
)
"""Said by a call that goes on from earlier ones and found no session."""
CHANGED_ANEW = (
    "This call opened a new session. If this client starts a server for each call, the change is lost when the call "
    "is answered: sessions then need a server that is started with `--keep-sessions`."
)
"""Said by a first change of files, in a session that no other call may find."""


def unknown(*, per_call: bool) -> NotFound:
    """The same refusal for an unknown handle, an expired one and another owner's.

    Args:
        per_call: the client seems to start a server for each call.
    """
    return NotFound(_UNKNOWN, _SERVER_PER_CALL if per_call else START)


def ambiguous(number: int, state: str) -> InvalidArgument:
    """The refusal of a call without a handle that may mean several sessions."""
    return InvalidArgument(
        f"{number} sessions are {state}, so session_id must say which is meant.",
        "`list_sessions` shows them.",
    )
