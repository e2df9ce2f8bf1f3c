"""Requests of clients for sessions, completed by the operator's defaults or by a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sandbox.errors import InvalidArgument, NotFound
from sandbox.host_files import in_thread
from sandbox.opening.policy import Policy
from sandbox.opening.request import SessionRequest

if TYPE_CHECKING:
    from mcp_server.tasks.folder import Task

FindTask = Callable[[str], "Task"]


@dataclass(frozen=True)
class Requests:
    """Decisions of the operator about sessions, by which a request is completed."""

    defaults: SessionRequest
    """For what a client leaves open."""
    policy: Policy
    find_task: FindTask | None
    """Loads one of the tasks that clients may name; None if there are none."""

    @property
    def has_default(self) -> bool:
        """True if a session can be opened for a client that says nothing."""
        ours = self.defaults
        return ours.repo is not None or ours.task is not None or bool(ours.in_place)

    def task_of(self, request: SessionRequest) -> str | None:
        """Name of the task that a session is opened for, as the client or the operator gave it."""
        return request.task or (None if request.repo else self.defaults.task)

    async def complete(self, request: SessionRequest) -> tuple[SessionRequest, Policy]:
        """Complete a client's request, by its task if it has one, and return it with the policy for it.

        Raises:
            NotFound: there is no such task.
            InvalidArgument: the task is invalid, or the client asks for something else than it says.
        """
        if self.defaults.in_place:
            self._check_in_place(request)
            return self._fill_in_defaults(request), self.policy
        name = self.task_of(request)
        if name is None:
            return self._fill_in_defaults(request), self.policy
        # Few servers are asked for tasks, and their models take time to build.
        from mcp_server.tasks.opening import complete_policy, complete_request

        task = await self.load_task(name)
        return complete_request(task, request, self.defaults), complete_policy(task, self.policy)

    async def read_instruction(self, task: str | None) -> str:
        """Read the text of a task, or of the one that the server is started for; empty without any.

        Raises:
            NotFound: there is no such task.
            InvalidArgument: the task is invalid.
        """
        name = task or self.defaults.task
        return "" if name is None else (await self.load_task(name)).instruction

    async def load_task(self, name: str) -> Task:
        """Load the task of that name.

        Raises:
            NotFound: there is none. InvalidArgument: it is invalid.
        """
        if self.find_task is None:
            raise NotFound("This server has no tasks.")
        return await in_thread(self.find_task, name)

    def _check_in_place(self, request: SessionRequest) -> None:
        for name in ("repo", "task", "ref", "image", "python", "network"):
            if getattr(request, name):
                raise InvalidArgument(
                    f"This server debugs the files of {self.defaults.in_place} and no others: no `{name}` can be chosen.",
                    "Leave it out.",
                )

    def _fill_in_defaults(self, request: SessionRequest) -> SessionRequest:
        ours = self.defaults
        return replace(
            request,
            repo=request.repo or ours.repo,
            in_place=ours.in_place,
            ref=request.ref or (ours.ref if request.repo in (None, ours.repo) else None),
            image=request.image or ours.image,
            python=request.python or ours.python,
            entrypoint=request.entrypoint or ours.entrypoint,
            debug_entrypoint=request.debug_entrypoint or ours.debug_entrypoint,
            setup=ours.setup if request.setup is None else request.setup,
            env={**ours.env, **request.env},
        )
