"""Sandboxes in Docker containers: the default backend."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import socket
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, ClassVar, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.abc import ByteStream

from sandbox import bundle, images
from sandbox.base import Backend, Chosen, Found, Progress, Sandbox, SandboxSpec, Wanted
from sandbox.engine import Container, Engine, Image
from sandbox.errors import BackendUnavailable, PdboxError, SandboxError, SandboxLost
from sandbox.hijack import GuestStream, open_stream
from sandbox.peeked import PeekedStream
from sandbox.shortcut import connected
from sandbox.socket_stream import SocketStream

T = TypeVar("T")
log = logging.getLogger(__name__)

UID = 10001
HOME = PurePosixPath("/run/pdbox")
USER_HOME = PurePosixPath("/home/sandbox")
HOME_BYTES = 32 << 20
SHM_BYTES = 64 << 20
LAY_S = 120.0
START_S = 60.0
"""How long a guest may take to come up on a loaded machine."""

STARTS = 4
"""Containers that are started at once: an engine starts more no faster, and answers nothing else meanwhile."""
HALF_MADE_S = 2 * START_S
"""How old a container is that its server will not start any more."""

LABEL = "pdbox"
SESSION, OWNER, USER, SOURCE, CREATED, MAX_AGE, POOL, WORKDIR, ISOLATION = (
    f"{LABEL}.{name}"
    for name in ("session", "owner", "user", "source", "created", "max_age", "pool", "workdir", "isolation")
)
# A container's labels are fixed when it is made, but its name is not. Of one that was started ahead of its session,
# the name says whose it has become.
_ASSIGNED = re.compile(r"pdbox-([0-9a-f]+)-([0-9a-f]+)-([0-9a-f]+)-([0-9]+)")

# Picks the interpreter of an image that is not ours. The environment of SWE-bench images comes first: it
# is the one with the repository's requirements, and only an interactive shell would activate it.
PROBE = """\
for p in /opt/miniconda3/envs/testbed/bin/python python3 python /opt/*/bin/python3 /opt/*/bin/python \
/usr/local/bin/python3 /usr/bin/python3 /venv/bin/python; do
  p=$(command -v "$p" 2>/dev/null) || continue
  "$p" -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2>/dev/null || continue
  PATH="$(dirname "$p"):$PATH"; export PATH
  exec "$p" "$@"
done
echo "no Python 3.7 or newer in this image" >&2
exit 127
"""


@dataclass(frozen=True)
class Confinement:
    """How much of the usual confinement an image allows."""

    user: str
    read_only: bool

    def describe(self, spec: SandboxSpec) -> str:
        """What holds for as long as the container lives, for people and models."""
        limits = spec.limits
        parts = [
            "no capabilities",
            "not root"
            if self.user.partition(":")[0] not in ("", "0", "root")
            else "root inside, since the image's repository is root's",
            "read-only system" if self.read_only else "writable system",
            f"{limits.memory_bytes >> 20} MiB memory",
            f"{limits.cpus:g} CPUs",
            f"{limits.pids} processes",
        ]
        return ", ".join(parts)


class DockerBackend(Backend):
    """Starts and finds containers at one engine."""

    name: ClassVar[str] = "docker"

    def __init__(self, environ: Mapping[str, str] | None = None, host: str | None = None) -> None:
        """`environ`: where DOCKER_HOST and its like are looked up. `host`: instead of all of them."""
        self._environ = dict(os.environ if environ is None else environ)
        self._host = host
        self._engine: Engine | None = None
        self._threads = anyio.CapacityLimiter(16)
        self._starts = anyio.CapacityLimiter(STARTS)
        self._making: dict[str, anyio.Lock] = {}

    def session(self) -> AbstractAsyncContextManager[None]:
        """Keep the connection to the engine while it is open; it is made when it is first needed."""
        return self._session()

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    async def probe(self) -> str:
        """The engine and its version."""
        engine = await self.engine()
        version = await self.call(engine.version)
        rootless = ", rootless" if version.rootless else ""
        return f"{version.name} {version.number} (API {version.api}{rootless}) at {engine.location.url}"

    async def start(self, spec: SandboxSpec, progress: Progress) -> Sandbox:
        """Start a container with the guest in it.

        Raises:
            BackendUnavailable: no engine, no such image, no Python in it; nothing is left behind.
        """
        engine = await self.engine()
        image = await self._present(engine, spec.image or images.reference(images.DEFAULT), progress)
        async with self._starts:
            return await self._start(engine, spec, image)

    async def _start(self, engine: Engine, spec: SandboxSpec, image: Image) -> DockerSandbox:
        confinement = _confinement(spec, image)
        boot = _boot(spec)
        create = partial(
            engine.create,
            f"pdbox-{'pool' if spec.pooled else spec.key[:12]}-{time.time_ns() % 10**9:09d}",
            _config(spec, image, confinement, boot),
            _host_config(spec, confinement),
        )
        # Cancelled while the thread runs, this still gives the id: a call in a thread is never abandoned.
        container = await self.call(create)
        try:
            stream = await self._started(engine, container, image)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.call(engine.remove, container)
            raise
        return DockerSandbox(
            self,
            container,
            image.reference,
            image.env,
            boot,
            confinement.describe(spec),
            spec.network,
            stream,
            _guards(spec),
        )

    async def living(self) -> Sequence[Found]:
        """All containers of pdbox that run, whoever started them."""
        engine = await self.engine()
        return [_found(container) for container in await self.call(engine.containers, {LABEL: "1"})]

    async def sweep(self, user: str) -> None:
        """Remove what is past its maximum age, and containers that were made but never started."""
        await super().sweep(user)
        engine = await self.engine()
        labels = {LABEL: "1", USER: user}
        for container in await self.call(engine.containers, labels, ("created", "exited", "dead")):
            if container.created < time.time() - HALF_MADE_S:
                await self.call(engine.remove, container.id)

    async def adopt(self, found: Found) -> Sandbox:
        """Take over a container that `find` gave.

        Raises:
            SandboxLost: it has gone meanwhile.
        """
        engine = await self.engine()
        container = await self.call(engine.container, found.place)
        if container is None or not container.running:
            raise SandboxLost("The session's container has gone.", "start_session opens a new one.")
        labels = container.labels
        workdir = PurePosixPath(labels.get(WORKDIR, "/workspace"))
        boot = bundle.Boot(HOME, workdir, SandboxSpec("", "").lifetime)
        return DockerSandbox(
            self,
            container.id,
            container.image,
            container.env,
            boot,
            labels.get(ISOLATION, ""),
            bool(container.networks),
            None,
        )

    async def choose(self, wanted: Wanted, progress: Progress) -> Chosen:
        """The image asked for, else ours with the Python that suits; made when it is missing and can be made.

        Raises:
            BackendUnavailable: there is none and none can be made.
            InvalidArgument: the Python asked for is no version.
        """
        engine = await self.engine()
        if wanted.image:
            return _chosen(await self._present(engine, wanted.image, progress))
        present = await self.call(engine.tags, images.REPOSITORY)
        ideal = images.resolve(wanted.python, wanted.requires_python, images.PYTHONS)
        if ideal.python in present:
            return Chosen(ideal.image, ideal.notice, present[ideal.python])
        if not wanted.python and present:
            # Nobody asked for a certain one: what is there and allowed is good enough, and there at once.
            choice = images.resolve(None, wanted.requires_python, present)
            if not choice.notice:
                return Chosen(choice.image, image_id=present[choice.python])
        try:
            return _chosen(await self._present(engine, ideal.image, progress), ideal.notice)
        except BackendUnavailable as exc:
            return await self._second_choice(engine, wanted, present, progress, exc)

    async def _second_choice(
        self,
        engine: Engine,
        wanted: Wanted,
        present: Iterable[str],
        progress: Progress,
        cause: BackendUnavailable,
    ) -> Chosen:
        """No registry: the nearest of what is there, or can be made of packages."""
        available = [*present, *images.makeable(registry=False)]
        if not available:
            raise cause
        choice = images.resolve(wanted.python, wanted.requires_python, available)
        return _chosen(await self._present(engine, choice.image, progress), choice.notice)

    async def engine(self) -> Engine:
        """The connection to the engine, made on first use.

        Raises:
            BackendUnavailable: with what to do about it.
        """
        if self._engine is None:
            connect = partial(Engine.connect, self._environ, self._host)
            engine = await self.call(connect)
            if self._engine is None:
                self._engine = engine
            else:
                engine.close()
        return self._engine

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run one of the engine's blocking calls in a thread."""
        return await anyio.to_thread.run_sync(function, *args, limiter=self._threads)

    async def _started(self, engine: Engine, container: str, image: Image) -> ByteStream:
        """Attach, start, send the guest; the stream on which it has begun to speak."""
        path = f"/v{engine.api}/containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=1"
        stream = await _opened(engine, path)
        try:
            await self.call(engine.start, container)
            with anyio.fail_after(START_S):
                await stream.send(bundle.package())
                peeked = PeekedStream(stream)
                if await peeked.started():
                    return peeked
        except (TimeoutError, anyio.BrokenResourceError) as exc:
            raise _did_not_start(image.reference, stream) from exc
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        await anyio.aclose_forcefully(stream)
        raise _did_not_start(image.reference, stream)

    async def _present(self, engine: Engine, reference: str, progress: Progress) -> Image:
        """The image; made or pulled when it isn't there, once for all who wait for it."""
        image = await self.call(engine.image, reference)
        if image is not None:
            return image
        async with self._making.setdefault(reference, anyio.Lock()):
            image = await self.call(engine.image, reference)
            if image is None:
                await self.call(_obtain, engine, reference, _from_thread(progress))
                image = await self.call(engine.image, reference)
        if image is None:
            raise BackendUnavailable(f"No such image: {reference}")
        return image


class DockerSandbox(Sandbox):
    """A running container."""

    backend: ClassVar[str] = "docker"

    def __init__(
        self,
        owner: DockerBackend,
        container: str,
        image: str,
        environ: Mapping[str, str],
        boot: bundle.Boot,
        confinement: str,
        network: bool,
        first: ByteStream | None,
        guarded: bool = False,
    ) -> None:
        self._owner = owner
        self._container = container
        self._boot = boot
        self._confinement = confinement
        self._network = network
        self._first = first
        self._guarded = guarded
        self.image = image
        self.environ = environ
        self.place = container[:12]

    @property
    def isolation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it changes with the network
        """What protects the host, and whether there is a network now."""
        return f"Docker container: {'with network' if self._network else 'no network'}, {self._confinement}."

    async def connect(self) -> ByteStream:
        """The attached stream the first time, then a shortcut, else one `docker exec` each.

        Raises:
            SandboxLost: the container has gone.
        """
        if self._first is not None:
            stream, self._first = self._first, None
            return stream
        return await self.shortcut() or await self._exec(self._boot.relay_arguments())

    async def shortcut(self) -> ByteStream | None:
        """Connect to the guest's socket itself, if this process may."""
        try:
            engine = await self._owner.engine()
            connection = await self._owner.call(self._shortcut, engine)
        except PdboxError as exc:
            log.debug("no shortcut into container %s: %s", self.place, exc)
            return None
        return await SocketStream.over(connection) if connection is not None else None

    def _shortcut(self, engine: Engine) -> socket.socket | None:
        return connected(self._container, engine.pid(self._container), self._boot.socket)

    async def lay(self, pieces: Iterator[bytes]) -> bool:
        """Extract as root, whose files and sticky folders nobody else can change; root has no capabilities either.

        Raises:
            SandboxError: it went wrong; SandboxLost: the container has gone.
        """
        if not self._guarded:
            return False
        stream = await self._exec(bundle.lay_arguments(self._boot.workdir), user="0:0")
        try:
            with anyio.fail_after(LAY_S):
                while (piece := await anyio.to_thread.run_sync(next, pieces, None)) is not None:
                    await stream.send(piece)
                answer = await stream.receive()
        except (TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError) as exc:
            words = " / ".join(stream.stderr)[-400:]
            raise SandboxError(f"The read-only files could not be put into the sandbox. {words}") from exc
        finally:
            await anyio.aclose_forcefully(stream)
        if answer.strip() != b"done":
            raise SandboxError("The read-only files could not be put into the sandbox.")
        return True

    async def assign(self, key: str, owner: str, source: str) -> None:
        """Write it into the container's name, which nothing inside can read or change.

        Raises:
            SandboxLost: it has gone.
        """
        engine = await self._owner.engine()
        name = f"pdbox-{key}-{owner}-{source or '0'}-{time.time():.0f}"
        await self._owner.call(engine.rename, self._container, name)

    async def cut_network(self) -> None:
        """Disconnect the container; only its loopback is left.

        Raises:
            SandboxLost: it has gone.
        """
        if self._network:
            engine = await self._owner.engine()
            await self._owner.call(engine.disconnect, self._container)
            self._network = False

    async def _exec(self, arguments: Sequence[str], user: str = "") -> GuestStream:
        """The streams of one more process: the image's Python with `arguments`."""
        engine = await self._owner.engine()
        argv = ["/bin/sh", "-c", PROBE, "pdbox", *arguments]
        number = await self._owner.call(engine.exec_create, self._container, argv, user)
        body = json.dumps({"Detach": False, "Tty": False}).encode()
        return await _opened(engine, f"/v{engine.api}/exec/{number}/start", body)

    async def aclose(self) -> None:
        """Kill and remove the container."""
        with anyio.move_on_after(2, shield=True):
            if self._first is not None:
                await anyio.aclose_forcefully(self._first)
                self._first = None
            try:
                engine = await self._owner.engine()
                await anyio.to_thread.run_sync(engine.remove, self._container, abandon_on_cancel=True)
            except PdboxError as exc:
                log.warning("container %s was not removed: %s", self.place, exc)


BACKEND = DockerBackend


async def _opened(engine: Engine, path: str, body: bytes = b"") -> GuestStream:
    try:
        return await open_stream(engine.endpoint(), path, body)
    except SandboxError:
        raise
    except OSError as exc:
        raise SandboxLost("The Docker engine doesn't answer any more.", "`pdbox doctor` checks it.") from exc


def _obtain(engine: Engine, reference: str, progress: Progress) -> None:
    """Make one of our images, or pull another."""
    repository, _, tag = reference.partition(":")
    if repository == images.REPOSITORY:
        images.make(engine, tag or images.DEFAULT, progress)
    else:
        progress(f"Pulling {reference} …")
        engine.pull(reference, progress)


def _from_thread(progress: Progress) -> Progress:
    return lambda line: anyio.from_thread.run_sync(progress, line)


def _did_not_start(image: str, stream: GuestStream) -> BackendUnavailable:
    words = " / ".join(stream.stderr)[-400:]
    if "no Python" in words:
        return BackendUnavailable(
            f"There is no Python 3.7 or newer in {image}.",
            "Install one in it, on PATH; or leave `image` out.",
        )
    return BackendUnavailable(
        f"The sandbox of {image} ended before it was ready{': ' + words if words else ''}.",
        "`pdbox doctor` tries a plain one.",
    )


def _confinement(spec: SandboxSpec, image: Image) -> Confinement:
    """The repository of an image that brings it must stay writable for its owner, which is root unless it says."""
    if spec.keep_workdir:
        return Confinement(image.user or "0:0", read_only=False)
    return Confinement(f"{UID}:{UID}", read_only=True)


def _guards(spec: SandboxSpec) -> bool:
    """Whether the workspace is root's, so that files in it can be kept from programs."""
    return spec.guarded and not spec.keep_workdir


def _boot(spec: SandboxSpec) -> bundle.Boot:
    return bundle.Boot(HOME, spec.workdir, spec.lifetime, reap_all=True, pooled=spec.pooled)


def _config(spec: SandboxSpec, image: Image, confinement: Confinement, boot: bundle.Boot) -> dict[str, Any]:
    probe = [] if image.labels.get(images.OWN) == "1" else ["/bin/sh", "-c", PROBE, "pdbox"]
    argv = [*(probe or ["python3"]), *boot.arguments()]
    return {
        "image": image.reference,
        # Both, so that an image's own entry point doesn't come before it.
        "entrypoint": argv[:1],
        "command": argv[1:],
        # With `detach` left False this sets StdinOnce: the guest sees the end of its stream when we die.
        "stdin_open": True,
        "user": confinement.user,
        "working_dir": str(spec.workdir),
        "hostname": "sandbox",
        "environment": _environment(spec, confinement),
        "healthcheck": {"test": ["NONE"]},
        "labels": {
            LABEL: "1",
            **({POOL: "1"} if spec.pooled else {SESSION: spec.key, OWNER: spec.owner, SOURCE: spec.source}),
            USER: spec.user,
            CREATED: f"{time.time():.3f}",
            MAX_AGE: f"{spec.lifetime.max_age_s:.3f}",
            WORKDIR: str(spec.workdir),
            ISOLATION: confinement.describe(spec),
        },
    }


def _environment(spec: SandboxSpec, confinement: Confinement) -> dict[str, str]:
    # Images seldom have a name for our user; getpass and git look here first.
    name = "root" if confinement.user.startswith("0") else "sandbox"
    return {"HOME": str(USER_HOME), "USER": name, "LOGNAME": name, **spec.env}


def _host_config(spec: SandboxSpec, confinement: Confinement) -> dict[str, Any]:
    limits = spec.limits
    # Whose they are: with all capabilities gone, not even root can write another's folder.
    uid, _, gid = confinement.user.partition(":")
    own = f"uid={uid},gid={gid or uid}," if uid.isdigit() else ""
    mode = "0755" if own else "1777"
    tmpfs = {
        "/tmp": f"rw,nosuid,nodev,exec,size={limits.tmp_bytes},mode=1777",
        str(HOME): f"rw,nosuid,nodev,exec,{own}size={HOME_BYTES},mode={mode}",
        str(USER_HOME): f"rw,nosuid,nodev,exec,{own}size={limits.tmp_bytes},mode={mode}",
    }
    if not spec.keep_workdir:
        # Where there are files to guard, the folder is root's and sticky: everybody makes files, only root removes root's.
        whose = "mode=1777" if _guards(spec) else f"{own}mode={mode}"
        tmpfs[str(spec.workdir)] = f"rw,nosuid,nodev,exec,{whose},size={limits.workspace_bytes}"
    # What lies in a tmpfs counts as memory: a full one would have every later process killed.
    tmpfs_bytes = 2 * limits.tmp_bytes + HOME_BYTES + SHM_BYTES
    tmpfs_bytes += 0 if spec.keep_workdir else limits.workspace_bytes
    memory = limits.memory_bytes + tmpfs_bytes
    return {
        "auto_remove": True,
        "init": True,
        "network_mode": "bridge" if spec.network else "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "read_only": confinement.read_only,
        "tmpfs": tmpfs,
        "binds": [f"{host}:{inside}:ro" for host, inside in spec.mounts],
        "mem_limit": memory,
        "memswap_limit": memory,
        "nano_cpus": int(limits.cpus * 1e9),
        "pids_limit": limits.pids,
        "shm_size": SHM_BYTES,
        "ulimits": [
            {"Name": "nofile", "Soft": 4096, "Hard": 4096},
            {"Name": "core", "Soft": 0, "Hard": 0},
        ],
        # Its output is ours alone; a log of it would fill the engine's disk.
        "log_config": {"Type": "none", "Config": {}},
        "oom_score_adj": 500,
    }


def _chosen(image: Image, notice: str = "") -> Chosen:
    return Chosen(image.reference, notice, image.id)


def _found(container: Container) -> Found:
    labels = container.labels
    found = Found(
        key=labels.get(SESSION, ""),
        place=container.id[:12],
        created=_number(labels.get(CREATED), container.created),
        image=container.image,
        owner=labels.get(OWNER, ""),
        user=labels.get(USER, ""),
        source=labels.get(SOURCE, ""),
        max_age_s=_number(labels.get(MAX_AGE), math.inf),
    )
    if labels.get(POOL) != "1":
        return found
    assigned = _ASSIGNED.fullmatch(container.name)
    if assigned is None:
        return replace(found, pooled=True)
    key, owner, source, created = assigned.groups()
    return replace(
        found, key=key, owner=owner, source="" if source == "0" else source, created=float(created)
    )


def _number(text: str | None, otherwise: float) -> float:
    return float(text) if text and text.replace(".", "", 1).isdigit() else otherwise
