"""Opens the session of a task: its repository, set-up, rules and limits, as a request and a policy for it."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from mcp_server.tasks.folder import Task
from sandbox.backend import Backend, Progress
from sandbox.concurrency import open_task_group
from sandbox.errors import InvalidArgument
from sandbox.opening.open import open_session
from sandbox.opening.policy import Policy
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session
from sandbox.spec import Identity

_PIP = "python -m pip install -q --disable-pip-version-check --no-input "
TESTS_FOLDER, LOGS_FOLDER, SOLUTION_FOLDER = "/tests", "/logs", "/solution"
"""Folders in which Harbor runs the tests of a task, in which they leave the reward, and that of the solution."""


def complete_request(task: Task, asked: SessionRequest, operator: SessionRequest) -> SessionRequest:
    """Make the request for a session of `task`.

    `asked`: the client's own arguments. `operator`: defaults for what the task leaves open.

    Raises:
        InvalidArgument: the client asks for something that the task says.
    """
    given = {
        "repo": asked.repo,
        "ref": asked.ref,
        "image": asked.image,
        "python": asked.python,
        "setup": asked.setup,
    }
    if refused := [name for name, value in given.items() if value is not None]:
        raise InvalidArgument(
            f"`{refused[0]}` can't be given for a task: the task {task.name} says it.",
            "Leave it out.",
        )
    facts, repository = task.facts, task.repository
    pip = [_PIP + shlex.join(facts.requirements)] if facts.requirements else []
    return SessionRequest(
        repo=str(repository) if repository else f"image:{facts.repo}",
        image=task.image or operator.image,
        python=facts.python or operator.python,
        entrypoint=asked.entrypoint or facts.entrypoint or operator.entrypoint,
        debug_entrypoint=asked.debug_entrypoint or facts.debug_entrypoint or operator.debug_entrypoint,
        setup=(*pip, *facts.setup),
        env={**operator.env, **facts.env, **asked.env},
        network=asked.network,
        task=task.name,
        instruction=task.instruction,
        # The folder of a task has nothing but what belongs to it: versions that a build wrote, data.
        whole=True,
        ignore=tuple(facts.ignore),
        read_only=tuple(facts.read_only),
        workdir=task.workdir,
        folders=tuple(facts.hidden_folders),
    )


def to_score(request: SessionRequest, *, foreign: bool) -> SessionRequest:
    """Change a task's request to one for scoring: a patch may touch any file before the task's own are put back."""
    folders = (TESTS_FOLDER, LOGS_FOLDER, SOLUTION_FOLDER) if foreign else ()
    return replace(request, ignore=(), read_only=(), guard=False, folders=(*request.folders, *folders))


def complete_policy(task: Task, policy: Policy) -> Policy:
    """Allow what the task names, within the operator's limits."""
    limits = policy.limits
    if task.facts.limits.memory_mb:
        memory = min(limits.memory_bytes, task.facts.limits.memory_mb << 20)
        limits = replace(limits, memory_bytes=memory)
    images = policy.images
    if task.image:
        images = replace(images, names=(*images.names, task.image))
    repository = task.repository
    roots = (*policy.roots, repository) if repository else policy.roots
    return replace(policy, roots=roots, limits=limits, images=images)


@dataclass(frozen=True)
class Sandboxes:
    """Opens sessions for the harness itself; each ends with the block that uses it."""

    backend: Backend
    policy: Policy
    defaults: SessionRequest
    owner: str
    """Hash of the user, who may list and remove the sandboxes."""

    @asynccontextmanager
    async def open(self, task: Task, progress: Progress) -> AsyncGenerator[Session]:
        """Open a session for scoring `task`; its sandbox is gone after the block.

        Raises:
            PdboxError: as `open_session` does.
        """
        request = complete_request(task, SessionRequest(), self.defaults)
        request = to_score(request, foreign=task.is_foreign)
        policy = complete_policy(task, self.policy)
        # Sandboxes with the same handle would be taken for one.
        identity = Identity(secrets.token_hex(20), self.owner, self.owner)
        async with open_task_group() as tasks:
            session = await open_session(self.backend, request, policy, identity, progress, tasks)
            try:
                yield session
            finally:
                with anyio.CancelScope(shield=True):
                    await session.aclose()
