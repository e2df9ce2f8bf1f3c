"""Scores of sessions with a task, for the harness alone: no tool, resource or prompt gives any of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from mcp_server.errors import contain
from mcp_server.sessions.requests import Requests
from sandbox.backend import Backend
from sandbox.errors import Conflict, PdboxError
from sandbox.session.session import Session
from tools._tool import ignore_progress

if TYPE_CHECKING:
    from mcp_server.tasks.scoring import Verdict
    from mcp_server.trajectories.recorder import Recorder

AT_ONCE = 4
"""Scores that are computed at once, each in a sandbox of its own besides those of the sessions."""
_MAX_FINISHED = 10_000
_FAILED = PdboxError("The score could not be computed; the server's log has the details.")


@dataclass(eq=False)
class _Finished:
    owner: str
    done: anyio.Event = field(default_factory=anyio.Event)
    verdict: Verdict | None = None
    failure: PdboxError = _FAILED


class Scores:
    """Computes scores in fresh sandboxes, and keeps those of sessions that were finished."""

    def __init__(
        self,
        backend: Callable[[], Awaitable[Backend]],
        requests: Requests,
        user: str,
        recorder: Recorder | None,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
    ) -> None:
        """
        Args:
            backend: gives the backend, opened at its first use.
            spawn: runs work in the background.
        """
        self._backend = backend
        self._requests = requests
        self._user = user
        self._recorder = recorder
        self._spawn = spawn
        self._limit = anyio.CapacityLimiter(AT_ONCE)
        self._running: dict[anyio.CancelScope, anyio.Event] = {}
        """Scores that are being computed, and the end of each."""
        self._finished: OrderedDict[str, _Finished] = OrderedDict()
        """By the keys of their sessions, the oldest first."""

    async def score(self, session: Session) -> Verdict:
        """Score what was changed in an open session, which stays as it is.

        Raises:
            Conflict: it has no task. PdboxError: it can't be scored.
        """
        task = task_of(session)
        verdict = await self._score(task, await _read_patch(session))
        self._record(session, verdict)
        return verdict

    async def take(self, session: Session, owner: str) -> Callable[[], None]:
        """Take the patch of a session that is to be finished. Returns a callback that has it scored in the background.

        Raises:
            Conflict: it has no task. PdboxError: there is no patch.
        """
        task, patch = task_of(session), await _read_patch(session)
        if session.key in self._finished:
            raise Conflict("The task is finished already.")
        finished = self._finished[session.key] = _Finished(owner)
        if len(self._finished) > _MAX_FINISHED:
            self._finished.popitem(last=False)

        async def work() -> None:
            try:
                finished.verdict = await self._score(task, patch)
                self._record(session, finished.verdict)
            except PdboxError as exc:
                finished.failure = exc
            finally:
                finished.done.set()

        return lambda: self._spawn(lambda: contain("a score", work()))

    def cancel(self) -> None:
        """Give up all scores that are being computed: the server closes."""
        for scope in self._running:
            scope.cancel()

    async def wait_until_gone(self) -> None:
        """Wait until their sandboxes are removed."""
        for ended in list(self._running.values()):
            await ended.wait()

    def is_finished(self, key: str) -> bool:
        """True if the session of this key was finished."""
        return key in self._finished

    def has_finished(self, owner: str) -> bool:
        """True if `owner` has finished a session."""
        return any(one.owner == owner for one in self._finished.values())

    async def wait(self, owner: str, key: str) -> Verdict | None:
        """Wait for the score of a session that `owner` finished; None if there is none.

        Raises:
            PdboxError: it could not be scored.
        """
        finished = self._finished.get(key)
        if finished is None or finished.owner != owner:
            return None
        await finished.done.wait()
        if finished.verdict is None:
            raise finished.failure
        return finished.verdict

    async def _score(self, name: str, patch: bytes) -> Verdict:
        # Few servers score anything, and the models of tasks take time to build.
        from mcp_server.tasks.opening import Sandboxes
        from mcp_server.tasks.scoring import score

        task = await self._requests.load_task(name)
        with anyio.CancelScope() as scope:
            ended = self._running[scope] = anyio.Event()
            try:
                async with self._limit:
                    backend = await self._backend()
                    requests = self._requests
                    sandboxes = Sandboxes(backend, requests.policy, requests.defaults, self._user)
                    return await score(sandboxes, task, patch, ignore_progress)
            finally:
                del self._running[scope]
                ended.set()
        raise Conflict("The server is closing.")

    def _record(self, session: Session, verdict: Verdict) -> None:
        if self._recorder is not None:
            self._recorder.note_score(session, verdict.model_dump(mode="json"))


def task_of(session: Session) -> str:
    """Name of the task of a session.

    Raises:
        Conflict: it has none, or another server opened it.
    """
    if session.task is None:
        raise Conflict("This session has no task.", "`pdbox score TASK --session ID` scores any session.")
    return session.task


async def _read_patch(session: Session) -> bytes:
    from mcp_server.tasks.scoring import read_patch

    return await read_patch(session)
