"""Opens sessions, and takes over ones that another server opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from sandbox.backend import Backend, Progress
from sandbox.concurrency import run_alongside
from sandbox.errors import SandboxError, SandboxLost
from sandbox.host_files import in_thread
from sandbox.opening.kept_setups import Reuse
from sandbox.opening.packing import Packing, packing
from sandbox.opening.plan import Source, find_source, plan_session, source_of
from sandbox.opening.policy import Policy
from sandbox.opening.ready import Take
from sandbox.opening.request import SessionRequest
from sandbox.opening.setup import Restore, prepare
from sandbox.opening.setup_commands import source_env
from sandbox.opening.upload import check_out, upload_repository
from sandbox.session.session import Session, session_key
from sandbox.spec import Identity, Lifetime, SandboxInfo, SandboxSpec

_MAX_NAMES = 5
"""Maximum number of names in a notice."""
_MISSING = (
    "Code that `.gitignore` matches was left out: {names}. If an import needs it, generate it here, "
    "or except it in `.gitignore` (`!/{first}`), which has it copied."
)


async def open_session(
    backend: Backend,
    request: SessionRequest,
    policy: Policy,
    identity: Identity,
    progress: Progress,
    tasks: TaskGroup,
    take: Take | None = None,
    restore: Restore | None = None,
) -> Session:
    """Start a sandbox or `take` a ready one, upload the repository, run its set-up, `restore` changes.

    A failure leaves nothing behind.

    Raises:
        PathRefused, NotFound, InvalidArgument: the request can't be met.
        BackendUnavailable: no sandbox is available.
    """
    source = await in_thread(find_source, request, policy)
    opened = partial(_open, backend, request, policy, identity, progress, tasks, take, restore)
    session = await opened(source)
    if session is None:
        # Its workspace must be root's from the start on. For most repositories that is known before.
        session = await opened(replace(source, guard=True))
    if session is None:
        raise SandboxError("The read-only files of the repository can't be kept from programs.")
    return session


async def _open(
    backend: Backend,
    request: SessionRequest,
    policy: Policy,
    identity: Identity,
    progress: Progress,
    tasks: TaskGroup,
    take: Take | None,
    restore: Restore | None,
    source: Source,
) -> Session | None:
    """Open a session; None if its sandbox has to be a guarded one, and is not."""
    limit = policy.limits.workspace_bytes
    async with packing(source.folder, limit, whole=request.whole, hashed=source.has_setup) as packed:
        plan = await plan_session(backend, request, source, policy, progress)
        session, begin = await _begin(backend, plan.spec, request, identity, progress, tasks, take)
        try:
            # Until it is assigned to its session, the sandbox ends with this server, even if files were
            # uploaded already.
            session.instruction = request.instruction
            async with run_alongside(begin):
                session.load_metadata((await session.connect()).hello.workdir)
                sources = await source_env(session, policy.sources)
                # A clone needs it too. The metadata is saved later, by `prepare`.
                session.metadata = replace(session.metadata, env=sources)
                await upload_repository(session, source, packed, progress)
            if request.ref:
                await check_out(session, request.ref)
            notice = f"{plan.notice} {await _left_out(packed)}".strip()
            content = _digest_of(source, packed)
            reuse = Reuse.of(policy.setups, plan.spec, request, identity.owner, content)
            can_guard = backend.can_guard
            if not await prepare(session, request, notice, can_guard, sources, progress, restore, reuse):
                await session.aclose()
                return None
            if plan.spec.network and not request.network:
                await session.sandbox.cut_network()
        except BaseException:  # cancellation too: no sandbox without a session
            with anyio.CancelScope(shield=True):
                await session.aclose()
            raise
        return session


async def _left_out(packed: Packing | None) -> str:
    """Build a notice about special files and code that were not copied; empty if there are none."""
    if packed is None:
        return ""
    chosen, notices = await packed.selection(), list[str]()
    if chosen.special:
        notices.append(f"Named pipes, sockets and devices were left out: {chosen.special}.")
    # Git may track it nevertheless; then it was copied after the others.
    if names := [
        name for name in chosen.missing if not packed.late.intersection((name, f"{name}__init__.py"))
    ]:
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        notices.append(_MISSING.format(names=", ".join(names[:_MAX_NAMES]) + more, first=names[0]))
    return " ".join(notices)


def _digest_of(source: Source, packed: Packing | None) -> str | None:
    """Return a digest of the uploaded repository; None if its content is not known on this machine, or not needed."""
    if packed is not None:
        return packed.digest.hexdigest() if packed.digest else None
    return None if source.archive or source.url else source.inside or "empty"


async def _begin(
    backend: Backend,
    spec: SandboxSpec,
    request: SessionRequest,
    identity: Identity,
    progress: Progress,
    tasks: TaskGroup,
    take: Take | None,
) -> tuple[Session, Callable[[], Awaitable[None]]]:
    """Return an empty session, and a callback that assigns a pooled sandbox to it."""
    spec = replace(spec, user=identity.user)
    source = source_of(request)
    session = await _take_pooled(take, spec, identity, tasks) if take is not None else None
    if session is not None:
        return session, partial(_assign, session, spec, identity.owner, source)
    own = replace(spec, key=session_key(identity.handle), owner=identity.owner, source=source)
    return await _start(backend, own, identity, progress, tasks), _do_nothing


async def _take_pooled(take: Take, spec: SandboxSpec, identity: Identity, tasks: TaskGroup) -> Session | None:
    """Return a session in a ready, unassigned sandbox, if there is one."""
    ready = await take(replace(spec, pooled=True))
    if ready is None:
        return None
    return Session(ready.sandbox, identity.handle, tasks, connection=ready.connection)


async def _assign(session: Session, spec: SandboxSpec, owner: str, source: str) -> None:
    """Assign the owner first, then the lifetime: an unassigned sandbox must not outlive its server."""
    await session.sandbox.assign(session.key, owner, source)
    await session.live(spec.lifetime, start=True)


async def _do_nothing() -> None:
    """Do nothing: the sandbox was started for its session."""


async def _start(
    backend: Backend, spec: SandboxSpec, identity: Identity, progress: Progress, tasks: TaskGroup
) -> Session:
    """Return an empty session in a new sandbox. Its time is running."""
    progress("starting the sandbox")
    session = Session(await backend.start(spec, progress), identity.handle, tasks)
    await session.live(spec.lifetime)  # sends no request: the time of the sandbox runs since its start
    return session


async def adopt_session(
    backend: Backend, found: SandboxInfo, handle: str | None, lifetime: Lifetime, tasks: TaskGroup
) -> Session:
    """Take over a session that another server started. `handle`: None if it is not known.

    Raises:
        SandboxLost: it is gone, or its opening was never finished.
    """
    session = Session(await backend.adopt(found), handle, tasks, key=found.key)
    await backend.keep(found, lifetime)
    hello = (await session.connect()).hello
    if hello.meta is None:
        await session.disconnect()
        raise SandboxLost("The opening of the session was never finished.", "start_session opens a new one.")
    session.load_metadata(hello.workdir, hello.meta)
    await session.live(replace(lifetime, max_age_s=found.max_age_s), created=found.created)
    return session
