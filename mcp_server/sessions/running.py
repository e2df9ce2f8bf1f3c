"""Tasks of sessions: each session lives in one of its own, from opening to closing."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus

from mcp_server.sessions.admission import Admission
from mcp_server.sessions.ending import SessionEnds, wait_for_end
from mcp_server.sessions.lazy_backend import LazyBackend
from mcp_server.sessions.slot import CLOSING, SessionSlot
from mcp_server.sessions.table import SessionTable
from sandbox.backend import Backend
from sandbox.errors import PdboxError
from sandbox.host_files import PrincipalThreads
from sandbox.session.session import Session
from tools._tool import Report

if TYPE_CHECKING:
    from mcp_server.trajectories.recorder import Recorder

log = logging.getLogger(__name__)

Make = Callable[[Backend, TaskGroup], Awaitable[Session]]


class SessionRunner:
    """Runs each session in a task, for a task group can't be entered in one call and left in another."""

    def __init__(
        self,
        tasks: TaskGroup,
        backend: LazyBackend,
        table: SessionTable,
        admission: Admission,
        ends: SessionEnds,
        recorder: Recorder | None,
    ) -> None:
        self._tasks = tasks
        self._backend = backend
        self._table = table
        self._admission = admission
        self._ends = ends
        self._recorder = recorder
        self._threads = PrincipalThreads()

    async def start_new(
        self, owner: str, key: str, make: Make, report: Report, within_s: float | None
    ) -> Session:
        """Run the session that `make` opens in a new sandbox, once there is a place for it.

        Raises:
            Conflict: there was none within that time.
            PdboxError: what `make` raises.
        """
        slot = SessionSlot(owner, key)
        try:
            await self._admission.wait_for_place(slot, report, within_s)
            return await self._start(slot, make)
        finally:
            self._clean_up(slot)

    async def start_adopted(self, owner: str, key: str, make: Make) -> Session:
        """Run the session that `make` opens in a sandbox that is running already.

        Raises:
            Conflict: there are as many sessions as there may be.
            PdboxError: what `make` raises.
        """
        slot = SessionSlot(owner, key)
        try:
            self._admission.admit_adopted(slot)
            return await self._start(slot, make)
        finally:
            self._clean_up(slot)

    async def _start(self, slot: SessionSlot, make: Make) -> Session:
        with self._threads.of(slot.owner):
            return await self._tasks.start(self._run, slot, make)

    def _clean_up(self, slot: SessionSlot) -> None:
        if slot.session is None:
            # Its task may have ended before its first step, or was never started.
            self._admission.remove(slot)

    async def _run(self, slot: SessionSlot, make: Make, *, task_status: TaskStatus[Session]) -> None:
        """One session from opening to closing."""
        failure: PdboxError | None = None
        try:
            backend = await self._backend.get()
            with slot.scope:
                async with anyio.create_task_group() as tasks:
                    try:
                        slot.session = await make(backend, tasks)
                    except PdboxError as exc:
                        failure = exc  # raised outside of the group, which would wrap it
                    else:
                        if self._recorder is not None:
                            tasks.start_soon(self._recorder.follow, slot.session)
                        await self._hold(slot, slot.session, task_status)
                    tasks.cancel_scope.cancel()
        except ExceptionGroup as group:
            if slot.session is None:
                raise
            # A fault of ours in one session, which must not end the others.
            log.error("a session failed", exc_info=group)
        finally:
            self._admission.remove(slot)
        if failure is not None or slot.session is None:
            raise failure or CLOSING

    async def _hold(self, slot: SessionSlot, session: Session, task_status: TaskStatus[Session]) -> None:
        self._table.publish(slot, session)
        try:
            task_status.started(session)
            await wait_for_end(slot, session)
        finally:
            # Until its sandbox is gone it must not be found there and adopted.
            with anyio.CancelScope(shield=True):
                await self._ends.wind_up(slot, session)
            self._table.withdraw(slot, session)
