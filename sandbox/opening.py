"""How a session is opened, and how one is taken over that another server opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import anyio
from anyio.abc import TaskGroup

from sandbox.base import Backend, Found, Lifetime, Progress, Sandbox, SandboxSpec
from sandbox.connection import GuestConnection
from sandbox.errors import SandboxLost
from sandbox.plan import plan_session, source_of
from sandbox.policy import Policy
from sandbox.preparation import prepare
from sandbox.repository import bring_in, check_out
from sandbox.request import SessionRequest
from sandbox.session import Session, session_key


@dataclass(frozen=True)
class Identity:
    """Whose session it is. It is written down outside of the sandbox, and never learnt from what runs in there."""

    handle: str
    owner: str
    user: str = ""


@dataclass(frozen=True)
class Ready:
    """A sandbox that was started ahead, and the way to it."""

    sandbox: Sandbox
    connection: GuestConnection


Take = Callable[[SandboxSpec], Awaitable[Ready | None]]
"""Gives a ready sandbox that is like a specification in all but whose it is."""


async def open_session(
    backend: Backend,
    request: SessionRequest,
    policy: Policy,
    identity: Identity,
    progress: Progress,
    tasks: TaskGroup,
    take: Take | None = None,
) -> Session:
    """Start a sandbox or `take` a ready one, bring the repository in, run its set-up; nothing is left behind when a step fails.

    Raises:
        PathRefused, NotFound, InvalidArgument: the request can't be met.
        BackendUnavailable: no sandbox can be had.
    """
    plan = await plan_session(backend, request, policy, progress)
    session = await _started(backend, plan.spec, identity, source_of(request), progress, tasks, take)
    try:
        session.recall((await session.connect()).hello.workdir)
        guarded = await bring_in(session, plan.source, policy, plan.guard, progress)
        if request.ref:
            await check_out(session, request.ref)
        await prepare(session, request, plan.notice, guarded, progress)
        if plan.spec.network and not request.network:
            await session.sandbox.cut_network()
    except BaseException:  # whatever ended it, cancellation too: no sandbox without a session
        with anyio.CancelScope(shield=True):
            await session.aclose()
        raise
    tasks.start_soon(session.shorten, name="shortcut")
    return session


async def _started(
    backend: Backend,
    spec: SandboxSpec,
    identity: Identity,
    source: str,
    progress: Progress,
    tasks: TaskGroup,
    take: Take | None,
) -> Session:
    """An empty session, whose time has begun."""
    ready = await take(replace(spec, user=identity.user, pooled=True)) if take is not None else None
    key = session_key(identity.handle)
    if ready is None:
        progress("starting the sandbox")
        own = replace(spec, key=key, owner=identity.owner, user=identity.user, source=source)
        session = Session(await backend.start(own, progress), identity.handle, tasks)
    else:
        session = Session(ready.sandbox, identity.handle, tasks, connection=ready.connection)
    try:
        if ready is not None:
            # First whose it is, then its time: a sandbox that is nobody's must not outlive its server.
            await ready.sandbox.assign(key, identity.owner, source)
        await session.live(spec.lifetime, start=ready is not None)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await session.aclose()
        raise
    return session


async def adopt_session(
    backend: Backend, found: Found, handle: str | None, lifetime: Lifetime, tasks: TaskGroup
) -> Session:
    """Go on with a session that another server started. `handle`: None if it was found without.

    Raises:
        SandboxLost: it has gone meanwhile, or was never finished.
    """
    session = Session(await backend.adopt(found), handle, tasks, key=found.key)
    hello = (await session.connect()).hello
    if hello.meta is None:
        await session.disconnect()
        raise SandboxLost("The session was never finished opening.", "start_session opens a new one.")
    session.recall(hello.workdir, hello.meta)
    await session.live(replace(lifetime, max_age_s=found.max_age_s), created=found.created)
    return session
