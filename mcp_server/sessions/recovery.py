"""Sessions that lost their sandbox: told to their clients, and opened again with their edits."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio

from mcp_server.sessions.kept_edits import Journal, Kept, KeptEdits, Opened
from sandbox.errors import NotFound, PdboxError, SandboxLost
from sandbox.opening.request import SessionRequest
from sandbox.session.debugger import Breakpoint
from sandbox.session.session import Session
from sandbox.session.workspace import WrittenFile

log = logging.getLogger(__name__)

GONE = "The sandbox of this session is gone."
EXPIRED = "This session has expired."
_BY_ID = "`start_session` with resume=SESSION_ID (the id of this session) opens it again with them."
_BY_NEXT_CALL = "The next call opens it again with them."
_MAX_NAMES = 5
_MAX_POINTS = 20
_MAX_LOST = 1000
_SWEEP_EACH_S = 3600.0


@dataclass(frozen=True)
class _Lost:
    owner: str
    handle: str
    breakpoints: tuple[Breakpoint, ...]
    apart: bool


class Recovery:
    """The edits of a store's sessions, and those of its sessions that were lost."""

    def __init__(self, edits: KeptEdits | None) -> None:
        """`edits`: None to keep none."""
        self._edits = edits
        self._swept = 0.0
        self._journals: dict[str, Journal] = {}
        self._lost: dict[str, _Lost] = {}
        """By key: sessions that were lost here, and not opened again."""

    @asynccontextmanager
    async def beginning(self, owner: str, key: str, opened: Opened, *, new: bool) -> AsyncGenerator[None]:
        """Open a session in the body: whoever serves it afterwards, edits can be kept. Of a `new` one a failure leaves nothing."""
        if self._edits is not None and new:
            await self._edits.begin(owner, key, opened)
        try:
            yield
        except BaseException:
            if new:
                with anyio.CancelScope(shield=True):
                    await self.forget(owner, key)
            raise

    async def follow(self, owner: str, session: Session) -> None:
        """Keep the edits of an open session from now on."""
        self._lost.pop(session.key, None)
        if self._edits is None:
            return
        journal = await self._edits.begin(owner, session.key)
        if journal is not None:
            self._journals[session.key] = journal
            session.workspace.keep = partial(_keep, session, journal)

    async def end(self, owner: str, session: Session, *, lost: bool, apart: bool) -> None:
        """Forget the edits of a session that has ended, unless its sandbox was `lost`. `apart`: it has a name."""
        journal = self._journals.pop(session.key, None)
        session.workspace.keep = None
        if self._edits is None or journal is None:
            return
        if not lost or (session.expiry.over and not journal.count):
            await self._edits.remove(owner, session.key)
            return
        if time.monotonic() > self._swept + _SWEEP_EACH_S:
            await self.sweep()
        if session.handle is not None:
            points = tuple(session.debugger.breakpoints.values())
            self._lost[session.key] = _Lost(owner, session.handle, points, apart)
            if len(self._lost) > _MAX_LOST:
                del self._lost[next(iter(self._lost))]

    def leave(self, session: Session) -> None:
        """Leave the edits of a session to the next server that holds it."""
        self._journals.pop(session.key, None)
        session.workspace.keep = None

    async def load(self, owner: str, key: str) -> Kept | None:
        """The edits of a session of `owner`, if there are any kept."""
        return None if self._edits is None else await self._edits.load(owner, key)

    async def forget(self, owner: str, key: str) -> None:
        """Remove the edits of a session that is not open."""
        self._lost.pop(key, None)
        if self._edits is not None:
            await self._edits.remove(owner, key)

    async def sweep(self) -> None:
        """Remove edits that nobody came back for."""
        self._swept = time.monotonic()
        if self._edits is not None:
            await self._edits.sweep(self._journals.keys())

    def lost_handles(self, owner: str) -> list[str]:
        """Handles of the sessions of `owner` that were lost here, without those that have names."""
        return [one.handle for one in self._lost.values() if one.owner == owner and not one.apart]

    async def explain(self, owner: str, key: str, reason: str, *, reopens: bool) -> NotFound | None:
        """The refusal of a call on a session that was lost; None if no edit of it is kept.

        Args:
            reason: a sentence.
            reopens: the next call opens it again.
        """
        kept = await self.load(owner, key) if key else None
        if kept is None or not kept.files:
            return None
        return NotFound(
            f"{reason} {_count(kept)} kept: {_names(list(kept.files))}. Anything else in it is lost.",
            _BY_NEXT_CALL if reopens else _BY_ID,
        )

    async def restore(self, session: Session, kept: Kept, request: SessionRequest) -> str:
        """Write the edits into a new session; gives a notice about it.

        Raises:
            SandboxLost: the new sandbox is gone, too.
        """
        other: list[str] = []
        failed: list[str] = []
        for file in kept.files.values():
            try:
                if not await session.workspace.put_back(file):
                    other.append(file.path)
            except SandboxLost:
                raise
            except PdboxError as exc:
                failed.append(f"{file.path} ({exc.message})")
        missing = [name for name in kept.opened.env if name not in request.env]
        lost = self._lost.get(session.key)
        session.notice = _notice(kept, other, failed, missing, lost.breakpoints if lost else ())
        return session.notice


async def _keep(session: Session, journal: Journal, files: Sequence[WrittenFile]) -> None:
    try:
        await journal.keep(files)
    except OSError as exc:
        log.warning("an edit is not kept: %s", exc)
        reason = exc.strerror or str(exc)
        session.notice = (
            f"this edit would be lost with the sandbox, for it can't be kept outside of it: {reason}."
        )


def _notice(
    kept: Kept, other: list[str], failed: list[str], missing: list[str], points: Sequence[Breakpoint]
) -> str:
    done = [path for path in kept.files if not any(text.startswith(f"{path} (") for text in failed)]
    parts = [
        f"This session's sandbox was gone; this is a new one. {_count(kept)} back: {_names(done)}."
        if done
        else "This session's sandbox was gone; this is a new one, with the repository as it was.",
        f"Not brought back: {'; '.join(failed[:_MAX_NAMES])}." if failed else "",
        f"Edited in another version than the repository has now, so see `diff`: {_names(other)}."
        if other
        else "",
        f"Its environment had {_names(missing)}: give `env` again." if missing else "",
        "The program, its breakpoints and what `bash` or programs changed are lost.",
        f"The breakpoints were: {'; '.join(map(_command, points[:_MAX_POINTS]))}." if points else "",
    ]
    return " ".join(filter(None, parts))


def _command(point: Breakpoint) -> str:
    """The command of pdb that sets it again."""
    condition = f", {point.condition[:200]}" if point.condition else ""
    return f"{'tbreak' if point.temporary else 'b'} {point.path[:200]}:{point.line}{condition}"


def _count(kept: Kept) -> str:
    return "1 edited file is" if len(kept.files) == 1 else f"{len(kept.files)} edited files are"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(name[:200] for name in names[:_MAX_NAMES]) + more
