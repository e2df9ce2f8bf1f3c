"""How a session is opened: the sandbox, the repository in it, its set-up, and what it says about itself."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import shlex
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from sandbox import archive
from sandbox.base import Backend, Found, Lifetime, Limits, Progress, Sandbox, SandboxSpec, Wanted
from sandbox.connection import GuestConnection
from sandbox.entrypoint import default_entrypoint, requires_python, tools_of
from sandbox.errors import InvalidArgument, NotFound, SandboxLost
from sandbox.rules import Pairs, Rules, takes
from sandbox.session import MAX_RULES, ExecResult, Memory, Session, checked_env, session_key

SETUP_TIMEOUT_S = 900.0
_GIT = "git -c safe.directory='*' -c advice.detachedHead=false"
_TRUST = "if command -v git; then git config --global --add safe.directory '*'; fi"
_RESTORED = (
    "Files that .debugreadonly names are protected from the tools; "
    "what programs change in them is put back before each `eval`."
)
_EMPTY = "No `repo` was given: the workspace is empty."
_READ_AT_START = (".debugignore", ".debugreadonly", ".gitignore", "pyproject.toml", "tox.ini", "setup.cfg")


@dataclass(frozen=True)
class SessionRequest:
    """What a client asks for."""

    repo: str | None = None
    """A folder or an archive on this machine, a git URL, or `image:/path` for a folder that the image brings."""
    ref: str | None = None
    """Commit, branch or tag to check out."""
    image: str | None = None
    python: str | None = None
    entrypoint: str | None = None
    debug_entrypoint: str | None = None
    setup: tuple[str, ...] | None = None
    """Shell commands; None for those that the repository names itself."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    network: bool = False


@dataclass(frozen=True)
class Policy:
    """What the operator allows; neither a client nor a repository can loosen it."""

    roots: tuple[Path, ...] = ()
    limits: Limits = Limits()
    lifetime: Lifetime = Lifetime()
    allow_network: bool = False
    """Clients may ask for a network."""
    setup_network: bool = False
    """Set-up commands and clones have a network; it is cut before the session is handed over."""
    mounts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Source:
    folder: Path | None = None
    url: str | None = None
    inside: str | None = None


@dataclass(frozen=True)
class Identity:
    """Whose session it is. It is written down outside of the sandbox, and never learnt from what runs in there."""

    handle: str
    owner: str
    user: str = ""


@dataclass(frozen=True)
class Plan:
    """What a request comes to: a sandbox like `spec`, but for whose it is, and what is brought into it."""

    request: SessionRequest
    source: _Source
    spec: SandboxSpec
    guard: Pairs
    notice: str


@dataclass(frozen=True)
class Ready:
    """A sandbox that was started ahead, and the way to it."""

    sandbox: Sandbox
    connection: GuestConnection


Take = Callable[[SandboxSpec], Awaitable[Ready | None]]
"""Gives a ready sandbox that is like a specification in all but whose it is."""


async def plan_session(backend: Backend, request: SessionRequest, policy: Policy, progress: Progress) -> Plan:
    """What `request` comes to. Its image is built or pulled if it is missing.

    Raises:
        PathRefused, NotFound, InvalidArgument: the request can't be met.
        BackendUnavailable: there is no image, and none can be had.
    """
    source = _source(request, policy)
    pyproject = (
        _host_text(source.folder / "pyproject.toml") if source.folder and source.folder.is_dir() else ""
    )
    python = request.python or _own_text(_own_settings(pyproject), "python")
    chosen = await backend.choose(Wanted(request.image, python, requires_python(pyproject)), progress)
    guard = _to_guard(source, request)
    spec = SandboxSpec(
        key="",
        owner="",
        image=chosen.image,
        image_id=chosen.image_id,
        workdir=PurePosixPath(source.inside or "/workspace"),
        keep_workdir=source.inside is not None,
        guarded=bool(guard),
        network=request.network or policy.setup_network,
        mounts=policy.mounts,
        limits=policy.limits,
        lifetime=policy.lifetime,
    )
    return Plan(request, source, spec, guard, chosen.notice)


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
        guarded = await _bring_in(session, plan.source, policy, plan.guard, progress)
        if request.ref:
            await _check_out(session, request.ref)
        await _prepare(session, request, plan.notice, guarded, progress)
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


def source_of(request: SessionRequest) -> str:
    """A hash of the repository asked for, by which its sessions are found again; empty where there is none."""
    if not request.repo:
        return ""
    return hashlib.sha256(json.dumps([request.repo, request.ref, request.image]).encode()).hexdigest()[:32]


def _source(request: SessionRequest, policy: Policy) -> _Source:
    if request.network and not policy.allow_network:
        raise InvalidArgument(
            "This server gives sandboxes no network.", "Its operator can allow it with `--network`."
        )
    repo = request.repo
    if not repo:
        return _Source()
    if repo.startswith("image:"):
        place = repo.removeprefix("image:")
        if not place.startswith("/") or ".." in place.split("/") or not request.image:
            raise InvalidArgument(f"`{repo}` must be `image:/absolute/path`, together with `image`.")
        return _Source(inside=place)
    if re.match(r"(https?|git|ssh)://", repo):
        if not (policy.setup_network or request.network):
            raise InvalidArgument(
                f"Cloning {repo} needs a network, and this server's sandboxes have none.",
                "Start it with `--setup-network`, or give the path of a clone.",
            )
        return _Source(url=repo)
    return _Source(folder=archive.resolve_repository(repo, policy.roots))


def _to_guard(source: _Source, request: SessionRequest) -> Pairs:
    """What of a folder programs must not change; empty where that can be known only once the repository is inside."""
    if source.folder is None or not source.folder.is_dir() or request.ref:
        return []
    lines = tuple(_host_text(source.folder / ".debugreadonly").splitlines())
    return Rules(read_only=lines).for_tools()["read_only"] if any(map(str.strip, lines)) else []


async def _bring_in(
    session: Session, source: _Source, policy: Policy, guard: Pairs, progress: Progress
) -> bool:
    """Whether what `guard` names is kept from programs."""
    if source.url:
        progress(f"cloning {source.url}")
        await _git(session, f"clone -q -- {shlex.quote(source.url)} .", f"clone {source.url}")
    elif source.folder and source.folder.is_file():
        progress(f"unpacking {source.folder.name}")
        await _extract(session, _file_pieces(source.folder), unwrap=True)
    elif source.folder:
        return await _copy_in(session, source.folder, policy.limits.workspace_bytes, guard, progress)
    return False


async def _copy_in(
    session: Session, folder: Path, limit_bytes: int, guard: Pairs, progress: Progress
) -> bool:
    chosen = await anyio.to_thread.run_sync(archive.select, folder, limit_bytes)
    progress(f"copying {len(chosen.paths)} files, {chosen.size / (1 << 20):.1f} MiB")
    rest: Sequence[str] = chosen.paths
    guarded = False
    if guard:
        first, others = await anyio.to_thread.run_sync(archive.split, folder, chosen.paths, guard)
        guarded = await session.sandbox.lay(archive.pieces(folder, first, locked=True))
        if guarded:
            rest = others
            # The workspace is root's, and git works in no folder of another user's unless it is told to.
            await session.run(_TRUST, timeout_s=30)
    await _extract(session, archive.pieces(folder, rest))
    if chosen.ignored and ".git" in chosen.paths:
        late = await _copy_tracked(session, folder)
        guarded = guarded and not any(_is_out(name, guard) for name in late)
    return guarded


def _is_out(path: str, pairs: Pairs) -> bool:
    above = [f"{folder}/" for folder in PurePosixPath(path).parents]
    return any(takes(name, pairs) for name in (path, *above))


async def _copy_tracked(session: Session, folder: Path) -> list[str]:
    """Files that git tracks although `.gitignore` names them belong to the repository. Gives their names."""
    run = await session.run(f"{_GIT} ls-files -d -z", timeout_s=60)
    names = run.output.split("\0") if run.exit_code == 0 else []
    # The list comes out of the sandbox: only plain names below the folder, not through links.
    inside = [
        name
        for name in names
        if name and posixpath.normpath(name) == name and not name.startswith(("../", "/"))
    ]
    real = [name for name in inside if (folder / name).parent.resolve().is_relative_to(folder)]
    if real:
        await _extract(session, archive.pieces(folder, real))
    return real


async def _extract(session: Session, pieces: Iterator[bytes], *, unwrap: bool = False) -> None:
    """`unwrap`: if all lies in one top folder, as in release archives, that folder is the repository."""
    await session.request("files.extract", {"data": "begin", "unwrap": unwrap})
    while (piece := await anyio.to_thread.run_sync(next, pieces, None)) is not None:
        await session.request("files.extract", {"data": "more"}, piece, timeout_s=120)
    await session.request("files.extract", {"data": "end"}, timeout_s=300)


async def _check_out(session: Session, ref: str) -> None:
    if ref.startswith("-"):
        raise InvalidArgument(f"{ref!r} is not a git revision.")
    await _git(session, f"checkout -q --force {shlex.quote(ref)}", f"check out {ref!r}")


async def _git(session: Session, command: str, what: str) -> None:
    result = await session.run(f"{_GIT} {command}", timeout_s=SETUP_TIMEOUT_S)
    if result.exit_code != 0:
        raise InvalidArgument(f"git can't {what}: {result.output.strip()[:500]}")


async def _prepare(
    session: Session, request: SessionRequest, notice: str, guarded: bool, progress: Progress
) -> None:
    """Read what the repository says about itself, run its set-up, take the baseline of `diff`, and remember it all."""
    texts = {name: await _small_file(session, name) for name in _READ_AT_START}
    own = _own_settings(texts["pyproject.toml"])
    rules = _rules(texts)
    notices = [notice] if notice else []
    if not request.repo:
        notices.append(_EMPTY)
    if not guarded and any(map(str.strip, rules.read_only)):
        notices.append(_RESTORED)
    entrypoint = request.entrypoint or _own_text(own, "entrypoint")
    memory = Memory(
        rules=rules,
        env=_env(session, {**_own_env(own), **request.env}),
        entrypoint=entrypoint,
        debug_entrypoint=request.debug_entrypoint or _own_text(own, "debug_entrypoint") or entrypoint,
        notices=tuple(notices),
    )
    session.memory = memory
    await _set_up(session, _own_list(own, "setup") if request.setup is None else request.setup, progress)
    if entrypoint is None:
        names = await session.workspace.names()
        entrypoint = default_entrypoint(names, texts["pyproject.toml"], texts["tox.ini"], texts["setup.cfg"])
        memory = replace(
            memory, entrypoint=entrypoint, debug_entrypoint=memory.debug_entrypoint or entrypoint
        )
    await session.request("files.snapshot", {"rules": rules.for_diff()}, timeout_s=300)
    await session.request("files.protect", {"rules": rules.for_tools()}, timeout_s=60)
    debug = {"entrypoint": memory.debug_entrypoint, "env": memory.env, "just_my_code": True}
    await session.request("debug.configure", debug)
    await session.remember(memory)


def _rules(texts: Mapping[str, str]) -> Rules:
    """Each line is compiled here and tried on each name: of a `.gitignore` the first count, of ours there may be no more.

    Raises:
        InvalidArgument: too many lines.
    """
    hidden, read_only, untracked = (
        tuple(texts[name].splitlines()) for name in (".debugignore", ".debugreadonly", ".gitignore")
    )
    for name, lines in ((".debugignore", hidden), (".debugreadonly", read_only)):
        if len(lines) > MAX_RULES:
            raise InvalidArgument(f"{name} has {len(lines)} lines, the limit is {MAX_RULES}.")
    short = tuple(line for line in untracked[:MAX_RULES] if len(line) <= 1000)
    return Rules(hidden, read_only, short)


async def _set_up(session: Session, commands: Sequence[str], progress: Progress) -> None:
    for command in commands:
        progress(f"set-up: {command}")
        result = await session.run(command, timeout_s=SETUP_TIMEOUT_S)
        if result.exit_code != 0:
            raise InvalidArgument(
                f"The set-up command `{command}` {_ending(result)}: …{result.output[-1500:]}",
                "Sandboxes have no network unless the server was started with `--setup-network`.",
            )


def _ending(result: ExecResult) -> str:
    if result.timed_out:
        return f"did not end within {SETUP_TIMEOUT_S:g} s"
    return f"was ended by {result.signal}" if result.signal else f"failed with exit code {result.exit_code}"


async def _small_file(session: Session, name: str) -> str:
    try:
        _, data = await session.request("files.read", {"path": name, "max_bytes": 1 << 20})
    except (NotFound, InvalidArgument):
        return ""
    return data.decode("utf-8", "replace")


def _env(session: Session, env: dict[str, str]) -> dict[str, str]:
    """`{workspace}` in a value is the workspace's root."""
    return {
        name: value.replace("{workspace}", str(session.workspace.root))
        for name, value in checked_env(env).items()
    }


def _file_pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while data := stream.read(archive.PIECE):
            yield data


def _host_text(file: Path) -> str:
    """The first MiB of a regular file of the repository on this machine; no link is followed, and no pipe waited for."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            return ""
        with file.open("rb") as stream:
            return stream.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


# `[tool.pdbox]` comes from an untrusted repository: what is not of the right type counts as absent.


def _own_settings(pyproject: str) -> dict[str, Any]:
    own = tools_of(pyproject).get("pdbox", {})
    return cast(dict[str, Any], own) if isinstance(own, dict) else {}


def _own_text(own: dict[str, Any], name: str) -> str | None:
    value = own.get(name)
    return value if isinstance(value, str) and value.strip() else None


def _own_list(own: dict[str, Any], name: str) -> tuple[str, ...]:
    value = own.get(name)
    values = cast(list[Any], [value] if isinstance(value, str) else value if isinstance(value, list) else [])
    return tuple(item for item in values if isinstance(item, str))


def _own_env(own: dict[str, Any]) -> dict[str, str]:
    value = own.get("env")
    items = cast(dict[str, Any], value).items() if isinstance(value, dict) else ()
    return {name: str(item) for name, item in items if isinstance(item, str | int | float)}
