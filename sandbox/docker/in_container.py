"""Sessions in a container that is there already, on its own files: nothing is copied, and it stays."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import ClassVar

import anyio
from anyio.abc import ByteStream

from sandbox.backend import Progress, Sandbox
from sandbox.docker.attach import AttachedStream
from sandbox.docker.backend import START_S, DockerBackend
from sandbox.docker.container import PROBE
from sandbox.docker.engine import Container
from sandbox.errors import BackendUnavailable, InvalidArgument, PdboxError, SandboxLost
from sandbox.spec import ImageChoice, ImageRequest, SandboxInfo, SandboxSpec
from sandbox.transport import guest_bundle
from sandbox.transport.pushback_stream import PushbackStream

log = logging.getLogger(__name__)

MARK = "PDBOX_SANDBOX"
"""Environment variable of the guest. Its value is in that of all that the guest starts, too."""
ALONE_S = 60.0
"""Time that the guest lasts without its server, where no other one of the same user comes and ends it."""
CLOSE_S = 2.0
SWEEP_S = 20.0
_HOMES = ("/tmp", "/var/tmp", "/dev/shm", "/run")
_NO_FOLDER = "no folder to work in"
_ENTER = f"""\
cd -- "$1" 2>/dev/null || {{ echo "{_NO_FOLDER}" >&2; exit 126; }}
shift
{PROBE}"""
_KERNEL = ("/", "/proc", "/sys", "/dev")
_UNKNOWN = "0" * 16
_FOUND = re.compile(r"([0-9a-f]{16})([0-9a-f]{16}) (running|ended)")
_LISTING = 1 << 16
"""Bytes that are read of a list of guests, which the container can make up."""


class ContainerBackend(DockerBackend):
    """Starts guests in one running container of somebody else."""

    name: ClassVar[str] = "container"

    def __init__(self, container: str, workdir: str | None, environ: Mapping[str, str] | None = None) -> None:
        """`workdir`: folder in it that is worked on; None: its own working directory."""
        super().__init__(environ)
        self._container = container
        self._workdir = workdir

    @property
    def can_guard(self) -> bool:
        """False: its files are somebody else's."""
        return False

    async def choose(self, wanted: ImageRequest, progress: Progress) -> ImageChoice:
        """Choose nothing: the container has its image."""
        return ImageChoice()

    async def start(self, spec: SandboxSpec, progress: Progress) -> Sandbox:
        """Start the guest in the container, as its user and with its own Python. `spec` gives its lifetime.

        Raises:
            BackendUnavailable: the container does not run, or lacks a Python or a place for the guest.
            InvalidArgument: there is no such folder in it.
        """
        container = await self._find()
        workdir = self._choose_workdir(container)
        server = (await self.call(self.servers.hold)).removeprefix(f"{self.name}-") or _UNKNOWN
        mark = server + secrets.token_hex(8)
        home, *elsewhere = _homes(mark)
        grace_s = min(spec.lifetime.grace_s, ALONE_S)
        boot = guest_bundle.Boot(
            home,
            workdir,
            replace(spec.lifetime, grace_s=grace_s),
            elsewhere=elsewhere,
            remove_home=True,
        )
        sandbox = ContainerSandbox(self, container, mark, boot)
        self.servers.note(mark)
        try:
            await sandbox.start(spec.env)
        except BaseException:
            await sandbox.aclose()
            raise
        return sandbox

    async def living(self) -> Sequence[SandboxInfo]:
        """List nothing: a guest in such a container ends with its server."""
        return []

    async def sweep(self, user: str) -> None:
        """End the guests that servers of this user left in the container when they were killed.

        Of a server that is not known here, only what is left of a guest that has ended is removed.
        """
        engine = await self.engine()
        container = await self.call(engine.container, self._container)
        if container is None or container.state != "running":
            return
        alive = await self.call(self.servers.alive)
        with anyio.move_on_after(SWEEP_S):
            arguments = guest_bundle.find_guests_arguments(_HOMES)
            listed = b"".join([data async for data in self._output(container, arguments)])
            gone: set[str] = set()
            for server, rest, state in _FOUND.findall(listed.decode("ascii", "replace")):
                if not alive.get(f"{self.name}-{server}", state == "running"):
                    log.info("ending the guest %s%s, whose server is gone", server, rest)
                    await self.clean_up(container, server + rest)
                    gone.add(f"{self.name}-{server}")
            await self.call(self.servers.forget, gone)

    async def clean_up(self, container: Container, mark: str) -> None:
        """End the guest of `mark` with all that it started, and remove its files."""
        async for _ in self._output(container, guest_bundle.clean_up_arguments(mark, _homes(mark))):
            pass

    async def _output(self, container: Container, arguments: Sequence[str]) -> AsyncIterator[bytes]:
        """Run a program with the container's Python, and read what it prints, up to a limit."""
        stream = await self.exec(container.id, [*_argv("/"), *arguments])
        size = 0
        try:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while size < _LISTING:
                    data = await stream.receive()
                    size += len(data)
                    yield data
        finally:
            await anyio.aclose_forcefully(stream)

    async def adopt(self, found: SandboxInfo) -> Sandbox:
        """Refuse: none is listed."""
        raise SandboxLost("The session's server has gone, and the session with it.")

    async def _find(self) -> Container:
        engine = await self.engine()
        found = await self.call(engine.container, self._container)
        if found is None:
            raise BackendUnavailable(
                f"There is no container {self._container!r} at {engine.location.url}.",
                "`docker ps` shows those that run.",
            )
        if found.state != "running":
            command = "unpause" if found.state == "paused" else "start"
            raise BackendUnavailable(
                f"The container {self._container} is {found.state}.",
                f"`docker {command} {self._container}` lets it run.",
            )
        return found

    def _choose_workdir(self, container: Container) -> PurePosixPath:
        workdir = PurePosixPath(self._workdir or container.workdir or "/")
        if not workdir.is_absolute() or ".." in workdir.parts:
            raise InvalidArgument(f"--workdir {workdir} is not an absolute path.")
        if str(workdir) in _KERNEL:
            raise InvalidArgument(
                f"The folder {workdir} of the container {self._container} can't be worked on.",
                "Give that of the repository: --workdir /testbed.",
            )
        return workdir


class ContainerSandbox(Sandbox):
    """A guest in a container of somebody else."""

    backend: ClassVar[str] = "container"
    is_in_place = True

    def __init__(
        self, owner: ContainerBackend, container: Container, mark: str, boot: guest_bundle.Boot
    ) -> None:
        self._owner = owner
        self._container = container
        self._mark = mark
        self._boot = boot
        self._first: ByteStream | None = None
        self.image = container.image
        self.environ = container.env
        self.place = container.id[:12]

    @property
    def isolation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it is never set
        """Describe what is changed, and who has decided on the isolation."""
        network = "with network" if self.has_network else "no network"
        return (
            f"the container {self._container.name} as it was found ({network}, its own user and limits): "
            f"no copy, programs and tools change its files in {self._boot.workdir}."
        )

    @property
    def has_network(self) -> bool:
        """True if the container is connected to one."""
        return bool(self._container.networks)

    async def start(self, env: Mapping[str, str]) -> None:
        """Start the guest, send it its code, and wait for its first bytes.

        Raises:
            BackendUnavailable: it did not start. InvalidArgument: there is no such folder.
        """
        stream = await self._exec(self._boot.arguments(), {**env, MARK: self._mark})
        started = PushbackStream(stream)
        try:
            with anyio.fail_after(START_S):
                # A frame begins with zeros; an engine that can't start a program sends a text in its place.
                if await started.send_first(guest_bundle.package()) and started.early.startswith(b"\0"):
                    self._first = started
                    return
        except (TimeoutError, anyio.BrokenResourceError):
            pass
        finally:
            if self._first is None:
                await anyio.aclose_forcefully(stream)
        words = " / ".join([*stream.stderr, started.early.decode("utf-8", "replace").strip()])
        raise self._describe_failure(words.strip(" /")[-600:])

    def _describe_failure(self, words: str) -> PdboxError:
        name = self._container.name
        if _NO_FOLDER in words:
            return InvalidArgument(
                f"There is no folder {self._boot.workdir} in the container {name}, or its user can't enter it.",
                "--workdir names the folder of the repository.",
            )
        if "no Python" in words:
            return BackendUnavailable(
                f"There is no Python 3.8 or newer in the container {name}."
                f"{words.partition('in this image.')[2]}",
                "Install one in it, on PATH.",
            )
        if "no folder for the guest" in words:
            return BackendUnavailable(
                f"Nothing can be written in the container {name}, so the debugger has no place for its own files.",
                f"Its user needs one of {', '.join(_HOMES)}; `docker run --tmpfs /tmp` gives one.",
            )
        return BackendUnavailable(
            f"The debugger did not start in the container {name}{': ' + words if words else ''}.",
            "It needs /bin/sh and a Python 3.8 or newer in it.",
        )

    async def connect(self) -> ByteStream:
        """Return the first stream once, then open one `docker exec` each.

        Raises:
            SandboxLost: the container does not run any more.
        """
        if self._first is not None:
            stream, self._first = self._first, None
            return stream
        return await self._exec(self._boot.relay_arguments())

    async def assign(self, key: str, owner: str, source: str) -> None:
        """Do nothing: none is started ahead of its session."""

    async def aclose(self) -> None:
        """End the guest with all that it started, and remove its files. The container stays."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            if self._first is not None:
                await anyio.aclose_forcefully(self._first)
                self._first = None
            try:
                await self._owner.clean_up(self._container, self._mark)
                self._owner.servers.drop(self._mark)
            except PdboxError as exc:
                log.info("the guest in %s was not looked for: %s", self.place, exc)

    async def _exec(self, arguments: Sequence[str], env: Mapping[str, str] | None = None) -> AttachedStream:
        folder = "/" if env is None else str(self._boot.workdir)
        return await self._owner.exec(self._container.id, [*_argv(folder), *arguments], env=env)


def _homes(mark: str) -> list[PurePosixPath]:
    """Folders of which one is the home of the guest of `mark`."""
    return [PurePosixPath(place, f"pdbox-{mark}") for place in _HOMES]


def _argv(folder: str) -> list[str]:
    """Command that starts the container's Python in a folder of it; the interpreter's arguments follow."""
    return ["/bin/sh", "-c", _ENTER, "pdbox", folder]


BACKEND = ContainerBackend
