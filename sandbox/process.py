"""Backend without isolation: the guest is an ordinary process of this user.

For tests, and on explicit request.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ClassVar

import anyio
import anyio.to_thread
from anyio.abc import ByteStream

from sandbox.backend import Progress, Sandbox
from sandbox.errors import BackendUnavailable, InvalidArgument, SandboxLost
from sandbox.local_guests import (
    NAME,
    START_S,
    LocalBackend,
    Record,
    remove,
    start_time,
    tail,
)
from sandbox.server_files import ServerFiles
from sandbox.spec import ImageChoice, ImageRequest, SandboxInfo, SandboxSpec
from sandbox.transport import guest_bundle
from sandbox.transport.pushback_stream import PushbackStream
from sandbox.transport.socket_stream import SocketStream

log = logging.getLogger(__name__)

ISOLATION = "none: programs run as you, on this machine"
IN_PLACE = "none of pdbox's own: programs run with the rights of this server, on the files of {} themselves"
_TESTBED = "/opt/miniconda3/envs/testbed/bin/python"
"""Interpreter with the requirements of the repository in SWE-bench images, which only a shell would put on PATH."""
MARK = "PDBOX_SANDBOX"
"""Environment variable of a guest; its value identifies the sandbox."""
CHILD_MARK = "PDBOX_CHILD"
"""Environment variable of processes that a guest started: the mark, a dot and a number."""

_IS_RECENT = f"{NAME}; sys.exit(sys.version_info < (3, 8))"

# The guest must outlive the server, so its parent is this shell, which stays and cleans up after it in any
# case. Standard input is the guest's first connection. The shell prints the guest's process id.
_LAUNCH = """\
exec 3<&0
base=$1; workspace=$2; shift 2
{
    "$@" <&3 >&3 3>&- 2>>"$base/log" &
    guest=$!
    exec 3>&-
    echo "$guest"
    exec >&- 2>&-
    wait "$guest"
    [ ! -e "$base/sandbox.json" ] || rm -rf -- ${workspace:+"$workspace"} "$base"
} &
"""


class ProcessBackend(LocalBackend):
    """Starts guests as ordinary processes and finds them by their records."""

    name: ClassVar[str] = "process"

    def __init__(self, environ: Mapping[str, str] | None = None, in_place: Path | None = None) -> None:
        """`environ`: the environment of programs, and the source of XDG_RUNTIME_DIR.

        `in_place`: folder that is worked on itself, by one session, instead of a temporary one for each.
        """
        super().__init__(environ)
        self._in_place = in_place

    async def probe(self) -> str:
        """Name the interpreter that is used.

        Raises:
            BackendUnavailable: this system is not supported.
        """
        if os.name != "posix":
            raise BackendUnavailable("The process backend needs a POSIX system.", "Use Docker Desktop.")
        return f"no isolation, {sys.executable}"

    async def choose(self, wanted: ImageRequest, progress: Progress) -> ImageChoice:
        """Choose the interpreter: a path given as `image`, else the requested version, else that of the server.

        Raises:
            InvalidArgument: the image is not an interpreter, or the version is invalid.
        """
        if wanted.image:
            if os.access(wanted.image, os.X_OK):
                return ImageChoice(wanted.image)
            raise InvalidArgument("Without isolation there are no images.", "Leave `image` out.")
        if self._in_place and not wanted.python:
            return ImageChoice(await self._find_foreign())
        return await self.choose_python(wanted)

    async def start(self, spec: SandboxSpec, progress: Progress) -> Sandbox:
        """Start a guest. Its workspace is a temporary folder; `spec.workdir` is ignored.

        Raises:
            BackendUnavailable: it could not be started; nothing is left behind.
        """
        await self.probe()
        python = spec.image or sys.executable
        # Once the guest is there nothing waits before its record is written: a cancelled start would leave it behind.
        server, base = await self.new_folder()
        mark = spec.key or uuid.uuid4().hex
        workspace = self._in_place or self.workspace_of(base)
        workdir = PurePosixPath(workspace)
        boot = guest_bundle.Boot(PurePosixPath(base / "guest"), workdir, spec.lifetime, pooled=spec.pooled)
        env = {**spec.env, MARK: mark}
        try:
            if not self._in_place:
                workspace.mkdir(mode=0o700)
            stream, pid = await self._start_guest(env, python, boot, base, workspace)
        except BaseException:
            with anyio.CancelScope(shield=True):
                _kill_marked(mark)
                await remove(*([] if self._in_place else [workspace]), base)
            raise
        record = Record(
            key=spec.key,
            owner=spec.owner,
            pid=pid,
            started=start_time(pid),
            created=time.time(),
            base=str(base),
            workspace=str(workspace),
            python=python,
            user=spec.user,
            source=spec.source,
            max_age_s=spec.lifetime.max_age_s,
            pooled=spec.pooled,
            kept=spec.lifetime.kept,
            mark=mark,
            server=server,
            alone_s=spec.lifetime.alone_s,
            in_place=self._in_place is not None,
        )
        record.write()
        self.servers.note(str(pid))
        return ProcessSandbox(record, self.environ, boot, stream, self.servers)

    def workspace_of(self, base: Path) -> Path:
        """Outside of the folder for sockets: that is often small, and nothing for others to see."""
        return Path(tempfile.gettempdir()) / f"pdbox-workspace-{base.name}"

    async def adopt(self, found: SandboxInfo) -> Sandbox:
        """Take over a guest that `find` returned.

        Raises:
            SandboxLost: it is gone.
        """
        for record in self.records():
            if str(record.pid) == found.place and record.key == found.key and record.alive():
                home = PurePosixPath(record.base) / "guest"
                boot = guest_bundle.Boot(home, PurePosixPath(record.workspace))
                return ProcessSandbox(record, self.environ, boot, None, self.servers)
        raise SandboxLost("The session's process has gone.", "start_session opens a new one.")

    async def _find_foreign(self) -> str:
        """Find the Python of the programs that are there, rather than the one that runs this server."""
        for name in (_TESTBED, "python3", "python"):
            found = await self.find_interpreter(name, _IS_RECENT)
            if found and Path(found) != Path(sys.executable):
                return found
        return sys.executable

    async def _start_guest(
        self, env: Mapping[str, str], python: str, boot: guest_bundle.Boot, base: Path, workspace: Path
    ) -> tuple[ByteStream, int]:
        """Start a guest and wait for its first bytes. Returns its stream and process id."""
        path = f"{Path(python).parent}{os.pathsep}{self.environ.get('PATH', os.defpath)}"
        env = {**self.environ, "PATH": path, **env}
        removed = "" if self._in_place else str(workspace)
        command = ["/bin/sh", "-c", _LAUNCH, "pdbox", str(base), removed, python, *boot.arguments()]
        ours, theirs = socket.socketpair()
        with theirs:
            stream = PushbackStream(await SocketStream.over(ours))
            try:
                pid = await anyio.to_thread.run_sync(_launch, command, env, workspace, theirs)
                theirs.close()  # from here on only the guest has it
                with anyio.fail_after(START_S):
                    await stream.send(guest_bundle.package())
                    if await stream.wait_readable():
                        return stream, pid
            except (OSError, anyio.BrokenResourceError, subprocess.CalledProcessError) as exc:
                await anyio.aclose_forcefully(stream)
                raise BackendUnavailable(f"The guest did not start: {tail(base / 'log') or exc}") from exc
            except BaseException:
                await anyio.aclose_forcefully(stream)
                raise
        await anyio.aclose_forcefully(stream)
        raise BackendUnavailable(f"The guest ended before it was ready: {tail(base / 'log')}")


class ProcessSandbox(Sandbox):
    """A running guest."""

    backend: ClassVar[str] = "process"

    def __init__(
        self,
        record: Record,
        environ: Mapping[str, str],
        boot: guest_bundle.Boot,
        first: ByteStream | None,
        servers: ServerFiles,
    ) -> None:
        self._servers = servers
        self._record = record
        self.environ = environ
        self._boot = boot
        self._first = first
        self.is_in_place = record.in_place
        self.isolation = IN_PLACE.format(record.workspace) if record.in_place else ISOLATION
        self.place = str(record.pid)
        self.image = record.python

    async def connect(self) -> ByteStream:
        """Return its standard streams the first time, then connect to its socket.

        Raises:
            SandboxLost: it is gone.
        """
        if self._first is not None:
            stream, self._first = self._first, None
            return stream
        try:
            return await SocketStream.connect(str(self._boot.socket))
        except OSError as exc:
            raise SandboxLost("The session's process has gone.", "start_session opens a new one.") from exc

    async def assign(self, key: str, owner: str, source: str) -> None:
        """Store key, owner and source in its record.

        Raises:
            SandboxLost: it is gone.
        """
        self._record = replace(
            self._record, key=key, owner=owner, source=source, created=time.time(), pooled=False
        )
        try:
            self._record.write()
        except OSError as exc:
            raise SandboxLost("The sandbox's process has gone.") from exc

    async def aclose(self) -> None:
        """End the guest, which ends its processes; then kill the remaining ones."""
        with anyio.move_on_after(2, shield=True):
            if self._first is not None:
                await self._first.aclose()
                self._first = None
            if self._record.alive():
                await self._end()
            _kill_marked(self._record.mark)
            await remove(*self._record.own_folders)
            self._servers.drop(self.place)

    async def _end(self) -> None:
        pid = self._record.pid
        with contextlib.suppress(ProcessLookupError, SandboxLost):
            group = os.getpgid(pid)
            # The stream ends when the guest does, so no polling is needed.
            stream = await self.connect()
            try:
                os.kill(pid, signal.SIGTERM)
                with anyio.move_on_after(1.2):
                    await _drain(stream)
            finally:
                await anyio.aclose_forcefully(stream)
            if self._record.alive():
                os.killpg(group, signal.SIGKILL)
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


BACKEND = ProcessBackend


def _launch(command: Sequence[str], env: Mapping[str, str], cwd: Path, stdio: socket.socket) -> int:
    """Start a guest through its shell. Returns its process id."""
    shell = subprocess.run(
        command,
        stdin=stdio.fileno(),
        stdout=subprocess.PIPE,
        env=env,
        cwd=cwd,
        start_new_session=True,
        check=True,
    )
    return int(shell.stdout)


async def _drain(stream: ByteStream) -> None:
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            await stream.receive()


def _kill_marked(key: str) -> None:
    """Kill processes that a killed guest left running (Linux only; elsewhere they can't be identified)."""
    guest, child = f"{MARK}={key}".encode(), f"{CHILD_MARK}={key}.".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            variables = entry.read_bytes().split(b"\0")
            if any(variable == guest or variable.startswith(child) for variable in variables):
                os.kill(int(entry.parent.name), signal.SIGKILL)
