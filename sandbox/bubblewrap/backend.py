"""Backend that needs no engine and no root: the guest is a process in namespaces that bubblewrap makes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import ClassVar

import anyio
import anyio.to_thread
from anyio.abc import ByteStream

from sandbox.backend import OVERTIME_S, Progress, Sandbox
from sandbox.bubblewrap.command import (
    FILTER_FD,
    HOME,
    INFO_FD,
    OPTIONS_FD,
    USER_HOME,
    Interpreter,
    bwrap_options,
    check_folders,
    confinement,
    environment,
    lifetime_arguments,
    limit_arguments,
    path_file,
    size_settings,
    tmpfs_bytes,
)
from sandbox.bubblewrap.control_groups import make_groups, remove_groups
from sandbox.bubblewrap.memory_watch import MemoryWatch, can_watch
from sandbox.bubblewrap.seccomp import compile_filter
from sandbox.errors import BackendUnavailable, InvalidArgument, SandboxLost
from sandbox.host_files import in_thread
from sandbox.local_guests import (
    START_S,
    LocalBackend,
    Record,
    absolute,
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

INSTALL = (
    "Install it with `apt install bubblewrap`, `dnf install bubblewrap` or the like (version 0.8 or newer)."
)
_GONE = "The session's sandbox has gone."
_AGAIN = "start_session opens a new one."
_WITH_PYTEST = (
    "import sys; from importlib.util import find_spec; print(sys.executable); "
    "sys.exit(find_spec('pytest') is None or sys.version_info < (3, 8))"
)
_INSPECT = """\
import json, sys, sysconfig
folders = [sys.prefix, sys.base_prefix, sys.exec_prefix]
packages = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
print(json.dumps({"folders": folders, "packages": packages, "is_environment": sys.prefix != sys.base_prefix}))
"""

# The sandbox must outlive the server, so its parent is this shell, which cleans up after it. With the shell it
# ends (`--die-with-parent`). Its first process gets no environment: programs can read that one. Standard input is
# the guest's first connection; the shell prints process ids, and cleans up also when nobody reads them any more.
_LAUNCH = """\
exec 3<&0
base=$1; groups=$2; shift 2
mkfifo -m 600 "$base/stderr"
{
    # Whatever is written to it, the file stays small.
    { dd bs=4096 count=16 >"$base/log"; exec cat; } <"$base/stderr" >/dev/null 2>&1 3>&- &
    logger=$!
    (
        for group in $groups; do echo 0 >"$group/cgroup.procs" || exit 1; done
        exec env -i "$@" <&3 >&3 3>&- 4>"$base/info" 5<"$base/filter" 6<"$base/options" 7<"$base/paths"
    ) 2>"$base/stderr" &
    outer=$!
    exec 3>&-
    trap '' PIPE
    echo "$outer $logger"
    exec >&- 2>&-
    wait "$outer"
    [ ! -e "$base/sandbox.json" ] || rm -rf -- "$base"
    # Busy until init has reaped the last process.
    for group in $groups; do rmdir "$group" || { sleep 1; rmdir "$group"; }; done
} &
"""


class BubblewrapBackend(LocalBackend):
    """Starts guests in namespaces and finds them by their records."""

    name: ClassVar[str] = "bubblewrap"

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`environ`: source of PATH and XDG_RUNTIME_DIR. Programs get nothing of it."""
        super().__init__(environ)
        self._interpreters: dict[str, Interpreter] = {}
        self._memory = MemoryWatch()

    async def probe(self) -> str:
        """Make a sandbox, and describe its version and interpreter.

        Raises:
            BackendUnavailable: bubblewrap is missing, or the kernel refuses it.
        """
        bwrap = self._bwrap()
        version = await anyio.run_process([bwrap, "--version"], check=False)
        compile_filter()
        python = await self._inspect(sys.executable)
        python = replace(python, is_environment=False)
        spec = SandboxSpec("", "")
        command = [bwrap, *bwrap_options(spec, python, environment(spec, python)), *limit_arguments(spec)]
        tried = await anyio.run_process([*command, str(python.executable), "-I", "-S", "-c", ""], check=False)
        if tried.returncode:
            raise _refused(tried.stderr)
        return f"{version.stdout.decode(errors='replace').strip()} at {bwrap}, {sys.executable}"

    async def choose(self, wanted: ImageRequest, progress: Progress) -> ImageChoice:
        """Choose the interpreter: the requested version, else one with pytest: of the active environment, on PATH, ours.

        Raises:
            InvalidArgument: an image was requested, or the version is invalid.
        """
        if wanted.image:
            raise InvalidArgument(
                "The bubblewrap backend has no images.", "Leave `image` out, or use `python`."
            )
        chosen = await (self.choose_python(wanted) if wanted.python else self._choose_with_pytest())
        if wanted.folder is None:
            return chosen
        python = await self._inspect(chosen.image)
        is_installed = await in_thread(python.is_installed_from, wanted.folder)
        return replace(chosen, origin=str(wanted.folder)) if is_installed else chosen

    async def _choose_with_pytest(self) -> ImageChoice:
        active = self.environ.get("VIRTUAL_ENV")
        names = [f"{active}/bin/python"] if active else []
        looked: list[str] = []
        for name in [*names, "python3", "python", sys.executable]:
            python = await self.find_interpreter(name, _WITH_PYTEST)
            if python is None:
                looked.append(name)
                continue
            try:
                await self._inspect(python)
            except BackendUnavailable as exc:
                log.info("%s is not taken: %s", python, exc)
                continue
            return ImageChoice(python)
        return ImageChoice(
            sys.executable,
            f"No Python of this machine has pytest (looked at {', '.join(looked)}): "
            "start the server in the virtual environment of the project to debug it with what is installed there.",
        )

    async def start(self, spec: SandboxSpec, progress: Progress) -> Sandbox:
        """Start a guest in its namespaces.

        Raises:
            BackendUnavailable: it could not be started; nothing is left behind.
        """
        python = await self._inspect(spec.image or sys.executable)
        # Once the guest is there nothing waits before its record is written: a cancelled start would leave it behind.
        server, base = await self.new_folder()
        groups = make_groups(base.name, spec.limits, tmpfs_bytes(spec, python))
        boot = guest_bundle.Boot(
            HOME,
            spec.workdir,
            spec.lifetime,
            reap_all=True,
            pooled=spec.pooled,
            user_bin=USER_HOME / ".local/bin",
            size_settings=size_settings(spec, python),
        )
        env = environment(spec, python)
        command = [
            # One of a pool does not know yet when its session begins.
            *lifetime_arguments(float("inf") if spec.pooled else spec.lifetime.max_age_s + OVERTIME_S),
            *(self._bwrap(), "--args", str(OPTIONS_FD)),
            *("--info-fd", str(INFO_FD), "--seccomp", str(FILTER_FD), "--"),
            *limit_arguments(spec),
            str(python.executable),
            *boot.arguments(),
        ]
        try:
            (base / "filter").write_bytes(compile_filter())
            (base / "paths").write_bytes(path_file(spec, python))
            # Not on the command line, which every user of this machine can read.
            options = bwrap_options(spec, python, env)
            (base / "options").write_bytes(b"".join(os.fsencode(option) + b"\0" for option in options))
            stream, pid = await self._start_guest(command, base, groups)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await remove(base)
                remove_groups(groups)
            raise
        watched = not groups and can_watch()
        record = Record(
            key=spec.key,
            owner=spec.owner,
            pid=pid,
            started=start_time(pid),
            created=time.time(),
            base=str(base),
            workspace=str(self.workspace_of(base)),
            python=str(python.executable),
            user=spec.user,
            source=spec.source,
            max_age_s=spec.lifetime.max_age_s,
            pooled=spec.pooled,
            kept=spec.lifetime.kept,
            backend=self.name,
            isolation=confinement(spec, grouped=bool(groups), watched=watched),
            memory_bytes=spec.limits.memory_bytes if watched else 0,
            network=spec.network,
            workdir=str(spec.workdir),
            server=server,
            alone_s=spec.lifetime.alone_s,
        )
        record.write()
        self.servers.note(str(pid))
        self._watch(record)
        return BubblewrapSandbox(record, boot, env, stream, self.servers)

    async def adopt(self, found: SandboxInfo) -> Sandbox:
        """Take over a sandbox that `find` returned.

        Raises:
            SandboxLost: it is gone.
        """
        for record in self.records():
            if str(record.pid) == found.place and record.key == found.key and record.alive():
                boot = guest_bundle.Boot(HOME, PurePosixPath(record.workdir))
                env = environment(SandboxSpec("", ""), Interpreter(Path(record.python), ()))
                self._watch(record)
                return BubblewrapSandbox(record, boot, env, None, self.servers)
        raise SandboxLost(_GONE, _AGAIN)

    def _watch(self, record: Record) -> None:
        if record.memory_bytes:
            self._memory.add(record.pid, record.started, record.memory_bytes)

    def _bwrap(self) -> str:
        found = shutil.which("bwrap", path=self.environ.get("PATH"))
        if found is None:
            raise BackendUnavailable("There is no `bwrap` on this machine.", INSTALL)
        return found

    async def _inspect(self, python: str) -> Interpreter:
        """Ask an interpreter for its folders."""
        if python not in self._interpreters:
            try:
                command = [absolute(python), "-I", "-B", "-c", _INSPECT]
                asked = json.loads((await anyio.run_process(command, cwd="/")).stdout)
                folders, packages = (
                    tuple(map(Path, dict.fromkeys(asked[name]))) for name in ("folders", "packages")
                )
            except (OSError, subprocess.CalledProcessError, ValueError) as exc:
                raise BackendUnavailable(f"{python} is not a Python that runs here.") from exc
            check_folders(folders)
            self._interpreters[python] = Interpreter(Path(python), folders, packages, asked["is_environment"])
        return self._interpreters[python]

    async def _start_guest(
        self, command: Sequence[str], base: Path, groups: Sequence[Path]
    ) -> tuple[ByteStream, int]:
        """Start a guest and wait for its first bytes. Returns its stream and the first process of its namespace."""
        argv = ["/bin/sh", "-c", _LAUNCH, "pdbox", str(base), " ".join(map(str, groups)), *command]
        ours, theirs = socket.socketpair()
        started = _Started()
        with theirs:
            stream = PushbackStream(await SocketStream.over(ours))
            try:
                started = await anyio.to_thread.run_sync(_launch, argv, self.environ, theirs)
                theirs.close()  # from here on only the guest has it
                with anyio.fail_after(START_S):
                    await stream.send(guest_bundle.package())
                    if await stream.wait_readable():
                        return stream, json.loads((base / "info").read_bytes())["child-pid"]
                cause = None
            except (OSError, ValueError, anyio.BrokenResourceError, subprocess.CalledProcessError) as exc:
                cause = exc
            except BaseException:
                await anyio.aclose_forcefully(stream)
                await started.end()
                raise
        await anyio.aclose_forcefully(stream)
        await started.end()
        said = tail(base / "log") or cause or "the guest ended before it was ready"
        raise BackendUnavailable(
            f"The sandbox did not start: {said}", "`pdbox doctor` tells more."
        ) from cause


@dataclass(frozen=True)
class _Started:
    """Processes outside of a sandbox that is being started."""

    outer: int = 0
    """The parent of the sandbox's processes: they end with it."""
    logger: int = 0

    async def end(self) -> None:
        """Kill the sandbox and wait until its messages are in the log."""
        if not self.outer:
            return
        with anyio.CancelScope(shield=True), contextlib.suppress(ProcessLookupError):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.outer, signal.SIGKILL)
            await anyio.to_thread.run_sync(_wait, self.logger)


class BubblewrapSandbox(Sandbox):
    """A running sandbox; its process is the first one of its namespace of processes."""

    backend: ClassVar[str] = "bubblewrap"
    can_cut_network: ClassVar[bool] = False

    def __init__(
        self,
        record: Record,
        boot: guest_bundle.Boot,
        environ: Mapping[str, str],
        first: ByteStream | None,
        servers: ServerFiles,
    ) -> None:
        self._record = record
        self._servers = servers
        self._boot = boot
        self._first = first
        self.environ = environ
        self.isolation = record.isolation
        self.place = str(record.pid)
        self.image = record.python

    @property
    def has_network(self) -> bool:
        """True if it was started with the network of this machine."""
        return self._record.network

    async def connect(self) -> ByteStream:
        """Return its standard streams the first time, then connect to its socket.

        Raises:
            SandboxLost: it is gone.
        """
        if self._first is not None:
            stream, self._first = self._first, None
            return stream
        try:
            descriptor = _open_socket(self._record, self._boot.socket)
            try:
                return await SocketStream.connect(f"/proc/self/fd/{descriptor}")
            finally:
                os.close(descriptor)
        except OSError as exc:
            raise SandboxLost(_GONE, _AGAIN) from exc

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
            raise SandboxLost(_GONE) from exc

    async def cut_network(self) -> None:
        """Refuse to go on with a network that was for set-up only: it is this machine's own.

        Raises:
            BackendUnavailable: there is one.
        """
        if self._record.network:
            raise BackendUnavailable(
                "The bubblewrap backend can't take a network away after set-up.",
                "Ask for `network` for the whole session, or use Docker.",
            )

    async def aclose(self) -> None:
        """Kill the first process, with which the kernel kills all others; its files were in memory."""
        with anyio.move_on_after(2, shield=True):
            if self._first is not None:
                await anyio.aclose_forcefully(self._first)
                self._first = None
            await anyio.to_thread.run_sync(_end, self._record, abandon_on_cancel=True)
            await remove(Path(self._record.base))
            self._servers.drop(self.place)


BACKEND = BubblewrapBackend


def _open_socket(record: Record, inside: PurePosixPath) -> int:
    """Open the guest's socket through the root directory of its first process.

    A program may have put a link there, which would lead to a file of this machine: it is not followed. The folder is
    a mount point below a read-only root, so it can't be replaced.
    """
    path = f"/proc/{record.pid}/root{inside}"
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    if record.alive() and stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise ConnectionRefusedError(path)


def _end(record: Record) -> None:
    """Kill the first process of a sandbox and wait for its end."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(record.pid)
        try:
            if record.alive():
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
        _wait(record.pid)


def _wait(pid: int) -> None:
    """Wait for the end of a process that is not our child, for a second at most."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(1000)
        finally:
            os.close(descriptor)


def _launch(command: Sequence[str], environ: Mapping[str, str], stdio: socket.socket) -> _Started:
    """Start a sandbox through its shell."""
    shell = subprocess.run(
        command,
        stdin=stdio.fileno(),
        stdout=subprocess.PIPE,
        env={"PATH": environ.get("PATH", os.defpath)},
        cwd="/",
        start_new_session=True,
        check=True,
    )
    outer, logger = shell.stdout.split()
    return _Started(int(outer), int(logger))


def _refused(stderr: bytes) -> BackendUnavailable:
    said = stderr.decode("utf-8", "replace").strip()[-400:]
    if "Unknown option" in said:
        return BackendUnavailable(f"This bubblewrap is too old: {said}", INSTALL)
    return BackendUnavailable(
        f"bubblewrap can't make a sandbox here: {said}",
        "The kernel or AppArmor may refuse user namespaces (sysctl kernel.unprivileged_userns_clone, "
        "kernel.apparmor_restrict_unprivileged_userns); in a container it needs them allowed from outside.",
    )
