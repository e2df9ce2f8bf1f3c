"""Sandboxes in Docker containers: the default backend."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, ClassVar, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.abc import ByteStream, TaskGroup

from sandbox.backend import Backend, Progress, Sandbox
from sandbox.concurrency import KeyedLocks, run_alongside
from sandbox.docker import images
from sandbox.docker.attach import AttachedStream, attach, open_stream
from sandbox.docker.container import (
    COMPILING,
    HOME,
    ISOLATION,
    LABEL,
    PROBE,
    SERVER,
    USER,
    USER_HOME,
    WORKDIR,
    config_of,
    confinement,
    host_config,
    info_of,
    size_settings,
)
from sandbox.docker.engine import Engine, Image
from sandbox.docker.precompile import Compiler
from sandbox.errors import BackendUnavailable, InvalidArgument, PdboxError, SandboxError, SandboxLost
from sandbox.image_names import AllowedImages, parse
from sandbox.server_files import ServerFiles
from sandbox.spec import ImageChoice, ImageRequest, SandboxInfo, SandboxSpec
from sandbox.transport import guest_bundle
from sandbox.transport.pushback_stream import PushbackStream

T = TypeVar("T")
log = logging.getLogger(__name__)

HANG_S = 30.0
"""Time in which an engine finds a container and opens a connection to it. One that hangs on it never does."""
PROTECT_S = 120.0
START_S = 60.0
"""Time limit for the start of a guest, on a loaded machine."""

CLOSE_S = 5.0
"""Time limit for the removal of what is left at the end of a server."""
STARTS = 4
"""Containers started at once. More are not faster, and the engine answers nothing else meanwhile."""
HALF_MADE_S = 2 * START_S
"""Age of a created container after which its server will no longer start it."""


class DockerBackend(Backend):
    """Starts and finds containers at one engine."""

    name: ClassVar[str] = "docker"

    def __init__(
        self, environ: Mapping[str, str] | None = None, host: str | None = None, runtime: str = ""
    ) -> None:
        """`environ`: source of DOCKER_HOST and similar variables. `host`: overrides all of them.

        `runtime`: the engine's runtime for all containers that run; empty: its default.
        """
        self._environ = dict(os.environ if environ is None else environ)
        self._host = host
        self._engine: Engine | None = None
        self._threads = anyio.CapacityLimiter(16)
        self._starts = anyio.CapacityLimiter(STARTS)
        self._making = KeyedLocks()
        self._tasks: TaskGroup | None = None
        self.runtime = runtime
        self._compiler = Compiler(self._environ, self.call, runtime)
        self.servers = ServerFiles(self._environ, self.name)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Hold the connection to the engine, which is opened on first use."""
        self._tasks = await anyio.create_task_group().__aenter__()
        try:
            yield
        finally:
            tasks, self._tasks = self._tasks, None
            tasks.cancel_scope.cancel()
            # Exits without the exception, so that the task group does not wrap it.
            await tasks.__aexit__(None, None, None)
            await self._remove_unstarted()
            self.servers.release()
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    @property
    def can_guard(self) -> bool:
        """False below another runtime: gVisor lets programs rename over root's files in sticky folders."""
        return not self.runtime

    @property
    def server_files(self) -> ServerFiles:
        """Files that tell which servers live."""
        return self.servers

    async def probe(self) -> str:
        """Describe the engine and its version."""
        engine = await self.engine()
        version = await self.call(engine.version)
        rootless = ", rootless" if version.rootless else ""
        return f"{version.name} {version.number} (API {version.api}{rootless}) at {engine.location.url}"

    async def check(self) -> None:
        """Connect to the engine. Cheaper than `probe`, which asks for its description.

        Raises:
            BackendUnavailable: none answers.
        """
        await self.engine()

    async def start(self, spec: SandboxSpec, progress: Progress) -> Sandbox:
        """Start a container with the guest in it.

        Raises:
            BackendUnavailable: no engine, no such image, no Python in it; nothing is left behind.
        """
        engine = await self.engine()
        image = await self._ensure_present(engine, spec.image or images.reference(images.DEFAULT), progress)
        async with self._starts:
            return await self._start(engine, spec, image)

    async def _start(self, engine: Engine, spec: SandboxSpec, image: Image) -> DockerSandbox:
        spec = replace(
            spec,
            server=await self.call(self.servers.hold),
            runtime=self.runtime,
            guarded=spec.guarded and self.can_guard,
        )
        boot = _boot(spec)
        create = partial(
            engine.create,
            f"pdbox-{'pool' if spec.pooled else spec.key[:12]}-{time.time_ns() % 10**9:09d}",
            config_of(spec, image, boot.arguments()),
            host_config(spec),
        )
        # If cancelled while the thread runs, this still returns the id: a call in a thread is never
        # abandoned.
        container = await self.call(create)
        self.servers.note(container[:12])
        try:
            stream = await self._start_guest(engine, container, image, spec.workdir if spec.guarded else None)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.remove_container(engine, container)
            raise
        if self._tasks is not None:
            self._tasks.start_soon(self._compiler.compile, engine, image, spec.user)
        return DockerSandbox(
            self,
            container,
            image.reference,
            image.env,
            boot,
            confinement(spec),
            spec.network,
            stream,
            spec.guarded,
            spec.user,
        )

    async def living(self) -> Sequence[SandboxInfo]:
        """List all running containers of pdbox, of every server."""
        engine = await self.engine()
        return [info_of(container) for container in await self.call(engine.containers, {LABEL: "1"})]

    async def sweep(self, user: str) -> None:
        """Remove containers past their maximum age, and ones that were created but never started."""
        # First: the base class removes files of servers that no sandbox names.
        dead = await anyio.to_thread.run_sync(self.servers.dead)
        await super().sweep(user)
        engine = await self.engine()
        for label in (LABEL, COMPILING):
            labels = {label: "1", USER: user}
            for container in await self.call(engine.containers, labels, ("created", "exited", "dead")):
                is_old = container.created < time.time() - HALF_MADE_S
                if is_old or container.labels.get(SERVER) in dead:
                    await self.call(engine.remove, container.id)

    async def _remove_unstarted(self) -> None:
        """Remove containers that this server created without being told so: the engine's answer was lost."""
        if self._engine is None or not self.servers.name:
            return
        labels = {LABEL: "1", SERVER: self.servers.name}
        with anyio.move_on_after(CLOSE_S, shield=True), suppress(PdboxError):
            for container in await self.call_apart(self._engine.containers, labels, ("created",)):
                await self.remove_container(self._engine, container.id)

    async def size(self, found: SandboxInfo) -> int:
        """Bytes that its programs have written; the image is shared."""
        engine = await self.engine()
        return await self.call(engine.written, found.place)

    async def adopt(self, found: SandboxInfo) -> Sandbox:
        """Take over a container that `find` returned.

        Raises:
            SandboxLost: it is gone, or the engine hangs on it.
        """
        engine = await self.engine()
        with _hang_is_loss():
            container = await self.call_apart(engine.container, found.place)
        if container is None or not container.running:
            raise SandboxLost("The session's container has gone.", "start_session opens a new one.")
        labels = container.labels
        workdir = PurePosixPath(labels.get(WORKDIR, "/workspace"))
        boot = guest_bundle.Boot(HOME, workdir)
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

    async def choose(self, wanted: ImageRequest, progress: Progress) -> ImageChoice:
        """Choose the requested image, else pdbox's own with a suitable Python.

        A missing one is built or pulled.

        Raises:
            BackendUnavailable: there is none, and none can be built or pulled.
            InvalidArgument: the Python version or the image name is invalid, or the image is not allowed.
        """
        engine = await self.engine()
        if wanted.image:
            return _choice_of(await self._find_requested(engine, wanted.image, wanted.allowed, progress))
        present = await self.call(engine.tags, images.REPOSITORY)
        ideal = images.resolve(wanted.python, wanted.requires_python, images.PYTHONS)
        if ideal.python in present:
            return ImageChoice(ideal.image, ideal.notice, present[ideal.python])
        if not wanted.python and present:
            # No specific version was requested: a present image that is allowed is good enough, and available
            # at once.
            choice = images.resolve(None, wanted.requires_python, present)
            if not choice.notice:
                return ImageChoice(choice.image, image_id=present[choice.python])
        try:
            return _choice_of(await self._ensure_present(engine, ideal.image, progress), ideal.notice)
        except BackendUnavailable as exc:
            return await self._choose_nearest(engine, wanted, present, progress, exc)

    async def _find_requested(
        self, engine: Engine, reference: str, allowed: AllowedImages | None, progress: Progress
    ) -> Image:
        parse(reference)  # before the engine gets it: such a name becomes part of a path of its API
        if allowed is not None and not images.is_own(reference) and not allowed.include(reference):
            image = await self.call(engine.image, reference)
            if image is None:
                raise InvalidArgument(
                    f"The image {reference} is not present, and this server does not pull it for clients.",
                    "Its operator can allow it with `--allow-image`, or pull it. Without `image` there is one of pdbox's own.",
                )
            return image
        return await self._ensure_present(engine, reference, progress)

    async def _choose_nearest(
        self,
        engine: Engine,
        wanted: ImageRequest,
        present: Iterable[str],
        progress: Progress,
        cause: BackendUnavailable,
    ) -> ImageChoice:
        """Choose without a registry: the nearest image that is present, or can be built from packages."""
        available = [*present, *images.makeable(registry=False)]
        if not available:
            raise cause
        choice = images.resolve(wanted.python, wanted.requires_python, available)
        return _choice_of(await self._ensure_present(engine, choice.image, progress), choice.notice)

    async def engine(self) -> Engine:
        """Return the connection to the engine, opened on first use.

        Raises:
            BackendUnavailable: the hint says how to fix it.
        """
        if self._engine is None:
            connect = partial(Engine.connect, self._environ, self._host)
            engine = await self.call(connect)
            if self._engine is None:
                self._engine = engine
            else:
                engine.close()
        return self._engine

    async def remove_container(self, engine: Engine, container: str) -> None:
        """Kill and remove a container if it exists."""
        await self.call_apart(engine.remove, container)
        self.servers.drop(container[:12])

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run one of the engine's blocking calls in a thread."""
        return await anyio.to_thread.run_sync(function, *args, limiter=self._threads)

    async def call_apart(self, function: Callable[..., T], *args: Any) -> T:
        """Run a blocking call about one running container in a thread besides the shared ones.

        An engine can hang on one container: other sessions must not wait for that. If cancelled, the thread is
        abandoned until its own time limit.
        """
        return await anyio.to_thread.run_sync(
            function, *args, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True
        )

    async def exec(
        self, container: str, argv: Sequence[str], user: str = "", env: Mapping[str, str] | None = None
    ) -> AttachedStream:
        """Start one more process in a container, and return its streams.

        Raises:
            SandboxLost: the container is gone, or the engine hangs on it.
        """
        engine = await self.engine()
        body = json.dumps({"Detach": False, "Tty": False}).encode()
        with _hang_is_loss():
            number = await self.call_apart(engine.exec_create, container, argv, user, env)
            return await open_stream(engine.endpoint(), f"/v{engine.api}/exec/{number}/start", body)

    async def lock_readonly(self, container: str, workdir: PurePosixPath, *folder: str) -> None:
        """Open the workspace of a container, which is root's, to all users; or make root's what is in a `folder` of it.

        Raises:
            SandboxError: it failed; SandboxLost: the container is gone.
        """
        arguments = guest_bundle.lock_readonly_arguments(workdir, *folder)
        stream = await self.exec(container, ["/bin/sh", "-c", PROBE, "pdbox", *arguments], "0:0")
        answer = b""
        try:
            with suppress(TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError):
                with anyio.fail_after(PROTECT_S):
                    answer = await stream.receive()
        finally:
            await anyio.aclose_forcefully(stream)
        if answer.strip() != b"done":
            words = " / ".join(stream.stderr)[-400:]
            raise SandboxError(f"The read-only files could not be put into the sandbox. {words}".strip())

    async def _start_guest(
        self, engine: Engine, container: str, image: Image, guarded: PurePosixPath | None
    ) -> ByteStream:
        """Attach, start, send the guest, and wait for its first bytes. Returns the stream.

        `guarded`: a workspace that is root's.
        """
        stream = await attach(engine.endpoint(), engine.api, container)

        async def open_workspace() -> None:
            if guarded is not None:
                await self.lock_readonly(container, guarded)

        try:
            await self.call(engine.start, container)
            with anyio.fail_after(START_S):
                started = PushbackStream(stream)
                async with run_alongside(open_workspace):
                    is_up = await started.send_first(await self.call(self._compiler.package, image))
                if is_up:
                    return started
        except (TimeoutError, anyio.BrokenResourceError) as exc:
            await anyio.aclose_forcefully(stream)
            raise _did_not_start(image.reference, stream) from exc
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        await anyio.aclose_forcefully(stream)
        raise _did_not_start(image.reference, stream)

    async def compile(self, reference: str) -> bool:
        """Compile the guest for sessions of a present image. False if that is not possible.

        Raises:
            BackendUnavailable: no engine.
        """
        engine = await self.engine()
        image = await self.call(engine.image, reference)
        return image is not None and await self._compiler.compile(engine, image)

    async def _ensure_present(self, engine: Engine, reference: str, progress: Progress) -> Image:
        """Return the image. A missing one is built or pulled, once for all concurrent callers."""
        image = await self.call(engine.image, reference)
        if image is not None:
            return image
        async with self._making.hold(reference):
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
        boot: guest_bundle.Boot,
        confinement: str,
        network: bool,
        first: ByteStream | None,
        guarded: bool = False,
        user: str = "",
    ) -> None:
        self._owner = owner
        self._container = container
        self._boot = boot
        self._confinement = confinement
        self._network = network
        self._first = first
        self._guarded = guarded
        self._user = user
        self.image = image
        self.environ = environ
        self.place = container[:12]

    @property
    def isolation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it changes with the network
        """Describe the protection of the host, and the current state of the network."""
        return f"Docker container: {'with network' if self._network else 'no network'}, {self._confinement}."

    @property
    def has_network(self) -> bool:
        """True if the container is connected to one."""
        return self._network

    async def connect(self) -> ByteStream:
        """Return the attached stream the first time, then open one `docker exec` each.

        Raises:
            SandboxLost: the container is gone.
        """
        if self._first is not None:
            stream, self._first = self._first, None
            return stream
        return await self._exec(self._boot.relay_arguments())

    @property
    def is_guarded(self) -> bool:
        """True if the workspace is root's."""
        return self._guarded

    async def make_roots(self, folder: str) -> None:
        """Move the files as root.

        Other users can't change its files and sticky folders; root has no capabilities either.

        Raises:
            SandboxError: it failed; SandboxLost: the container is gone.
        """
        await self._owner.lock_readonly(self._container, self._boot.workdir, folder)

    async def run_apart(self, arguments: Sequence[str], folders: Sequence[str]) -> ByteStream | None:
        """Run it by an exec. The system is read-only, so programs write to the tmpfs alone.

        Raises:
            SandboxLost: the container is gone.
        """
        return await self._exec([*arguments, *folders, str(USER_HOME), "/tmp"])

    @asynccontextmanager
    async def image_folder(self, folder: PurePosixPath) -> AsyncGenerator[Iterator[bytes]]:
        """Read it from another, never started container of the image.

        In the sandbox a tmpfs hides the folder.

        Raises:
            InvalidArgument: there is no such folder in the image.
        """
        engine = await self._owner.engine()
        config = {"image": self.image, "entrypoint": ["true"], "labels": {COMPILING: "1", USER: self._user}}
        container = await self._owner.call(engine.create, None, config, {"network_mode": "none"})
        try:
            pieces = await self._owner.call(engine.folder, container, folder)
            if pieces is None:
                raise InvalidArgument(f"There is no folder {folder} in {self.image}.")
            with closing(pieces):  # an open connection would prevent the engine from removing the container
                yield pieces
        finally:
            with anyio.CancelScope(shield=True):
                await self._owner.call(engine.remove, container)

    async def assign(self, key: str, owner: str, source: str) -> None:
        """Store key, owner and source in the container's name, which programs inside can't read or change.

        Raises:
            SandboxLost: it is gone.
        """
        engine = await self._owner.engine()
        name = f"pdbox-{key}-{owner}-{source or '0'}-{time.time():.0f}"
        await self._owner.call_apart(engine.rename, self._container, name)

    async def cut_network(self) -> None:
        """Disconnect the container; only its loopback is left.

        Raises:
            SandboxLost: it is gone.
        """
        if self._network:
            engine = await self._owner.engine()
            await self._owner.call_apart(engine.disconnect, self._container)
            self._network = False

    async def _exec(self, arguments: Sequence[str], user: str = "") -> AttachedStream:
        """Start one more process, the image's Python with `arguments`, and return its streams."""
        return await self._owner.exec(self._container, ["/bin/sh", "-c", PROBE, "pdbox", *arguments], user)

    async def aclose(self) -> None:
        """Kill and remove the container."""
        with anyio.move_on_after(2, shield=True):
            if self._first is not None:
                await anyio.aclose_forcefully(self._first)
                self._first = None
            try:
                engine = await self._owner.engine()
                await self._owner.remove_container(engine, self._container)
            except PdboxError as exc:
                log.warning("container %s was not removed: %s", self.place, exc)


BACKEND = DockerBackend


def _obtain(engine: Engine, reference: str, progress: Progress) -> None:
    """Build one of pdbox's own images, or pull another."""
    if images.is_own(reference):
        images.make(engine, reference.partition(":")[2] or images.DEFAULT, progress)
    else:
        progress(f"Pulling {reference} …")
        engine.pull(reference, progress)


def _from_thread(progress: Progress) -> Progress:
    return lambda line: anyio.from_thread.run_sync(progress, line)


@contextmanager
def _hang_is_loss() -> Generator[None]:
    """Limit the time of calls that lead to a container.

    Raises:
        SandboxLost: the engine hangs on it.
    """
    try:
        with anyio.fail_after(HANG_S):
            yield
    except TimeoutError as exc:
        hint = "start_session opens a new one."
        raise SandboxLost("The Docker engine opens no connection to the sandbox.", hint) from exc


def _did_not_start(image: str, stream: AttachedStream) -> BackendUnavailable:
    words = " / ".join(stream.stderr)[-400:]
    if "no Python" in words:
        return BackendUnavailable(
            f"There is no Python 3.8 or newer in {image}.{words.partition('in this image.')[2]}",
            "Install one in it, on PATH; or leave `image` out.",
        )
    return BackendUnavailable(
        f"The sandbox of {image} ended before it was ready{': ' + words if words else ''}.",
        "`pdbox doctor` tries a plain one.",
    )


def _boot(spec: SandboxSpec) -> guest_bundle.Boot:
    return guest_bundle.Boot(
        HOME,
        spec.workdir,
        spec.lifetime,
        reap_all=True,
        pooled=spec.pooled,
        user_bin=USER_HOME / ".local/bin",
        size_settings=size_settings(spec),
        filter_calls=True,
    )


def _choice_of(image: Image, notice: str = "") -> ImageChoice:
    return ImageChoice(image.reference, notice, image.id)
