"""Sandboxes that are processes of this machine: their records, and the choice of their Python."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from sandbox.backend import Backend
from sandbox.errors import BackendUnavailable
from sandbox.server_files import ServerFiles
from sandbox.spec import ImageChoice, ImageRequest, SandboxInfo, python_version

START_S = 30.0
"""Time limit for the start of a guest, on a loaded machine."""
NAME = "import sys; print(sys.executable)"
_RECORD = "sandbox.json"


@dataclass(frozen=True)
class Record:
    """Record stored next to a guest's socket, so that another server finds the guest."""

    key: str
    owner: str
    pid: int
    started: str
    """Start time of the process as the system reports it: process ids are reused."""
    created: float
    base: str
    workspace: str
    python: str
    user: str = ""
    source: str = ""
    max_age_s: float = 0.0
    pooled: bool = False
    kept: bool = False
    mark: str = ""
    """Value that marks its processes in their environment."""
    backend: str = "process"
    """Name of the backend that started it."""
    isolation: str = ""
    """Line on its isolation, if that differs between sandboxes of the backend."""
    network: bool = True
    workdir: str = ""
    """Folder of the repository inside, if the sandbox has a root of its own."""
    server: str = ""
    alone_s: float = 0.0
    memory_bytes: int = 0
    """Memory that the server sees to, of all its processes together; 0 if something else does."""
    in_place: bool = False
    """True if `workspace` is the user's own folder, which must never be removed."""

    @property
    def own_folders(self) -> Sequence[Path]:
        """Folders that go with the guest, that of the record last: without it nobody would find the others."""
        return [Path(self.base)] if self.in_place else [Path(self.workspace), Path(self.base)]

    @property
    def file(self) -> Path:
        """File of the record."""
        return Path(self.base) / _RECORD

    def write(self) -> None:
        """Write the record atomically: a concurrent reader finds the old or the new one."""
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.replace(self.file)

    def alive(self) -> bool:
        """True if the process still runs."""
        return bool(self.started) and start_time(self.pid) == self.started


class LocalBackend(Backend):
    """Finds its guests by their records."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`environ`: the environment of programs, and the source of XDG_RUNTIME_DIR."""
        self.environ = dict(os.environ if environ is None else environ)
        self.servers = ServerFiles(self.environ, self.name)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Give up the file of this server at the end; sandboxes share nothing else."""
        try:
            yield
        finally:
            self.servers.release()

    @property
    def server_files(self) -> ServerFiles:
        """Files that tell which servers live."""
        return self.servers

    async def choose_python(self, wanted: ImageRequest) -> ImageChoice:
        """Choose the requested version if this machine has it, else the server's own.

        Raises:
            InvalidArgument: the version is invalid.
        """
        if not wanted.python:
            return ImageChoice(sys.executable)
        major, minor = python_version(wanted.python)
        if (major, minor) == sys.version_info[:2]:
            return ImageChoice(sys.executable)
        found = await self.find_interpreter(f"python{major}.{minor}")
        if found:
            return ImageChoice(found)
        own = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return ImageChoice(
            sys.executable,
            f"Python {major}.{minor} was asked for; there is none on this machine, so this is Python {own}.",
        )

    async def living(self) -> Sequence[SandboxInfo]:
        """List the running guests. Remove the files of dead ones."""
        found: list[SandboxInfo] = []
        for record in self.records():
            if record.alive():
                found.append(info_of(record))
            else:
                await remove(*record.own_folders)
        return found

    async def sweep(self, user: str) -> None:
        """Remove also the folders of sandboxes whose server was killed while it started them: they have no record."""
        # First: the base class removes files of servers that no sandbox names.
        dead = await anyio.to_thread.run_sync(self.servers.dead)
        for folder in sorted(runtime_folder(self.environ).iterdir()):
            server = f"{self.name}-{folder.name.partition('-')[0]}"
            if server in dead and not (folder / _RECORD).exists():
                workspace = self.workspace_of(folder)
                await remove(workspace)
                # What was started may still write there: then the next sweep does it.
                if not await anyio.to_thread.run_sync(os.path.lexists, workspace):
                    await remove(folder)
        await super().sweep(user)

    async def new_folder(self) -> tuple[str, Path]:
        """Create the folder of a sandbox that is to be started. Returns the name of this server, too.

        The folder is named after the server, so that `sweep` knows from the first moment on who is at work on it.
        """
        server = await anyio.to_thread.run_sync(self.servers.hold)
        tag = server.removeprefix(f"{self.name}-") or "unknown"
        base = runtime_folder(self.environ) / f"{tag}-{uuid.uuid4().hex[:8]}"
        base.mkdir(mode=0o700)
        return server, base

    def workspace_of(self, base: Path) -> Path:
        """The folder of a sandbox for its workspace, by its own folder."""
        return base / "workspace"

    async def size(self, found: SandboxInfo) -> int:
        """Bytes of its own files."""
        folders = [
            folder
            for record in self.records()
            if info_of(record).place == found.place
            for folder in record.own_folders
        ]
        return await anyio.to_thread.run_sync(measure, folders)

    def records(self) -> Sequence[Record]:
        """Read the records of its sandboxes, running or not."""
        records: list[Record] = []
        for file in sorted(runtime_folder(self.environ).glob(f"*/{_RECORD}")):
            # Removed since it was listed, or incomplete: not a sandbox.
            with contextlib.suppress(OSError, ValueError, TypeError):
                record = Record(**json.loads(file.read_text(encoding="utf-8")))
                if record.backend == self.name:
                    records.append(record)
        return records

    async def find_interpreter(self, name: str, program: str = NAME) -> str | None:
        """Find an interpreter on PATH that can run: a shim of a version manager may not."""
        path = shutil.which(name, path=self.environ.get("PATH"))
        if path is None:
            return None
        # Isolated and elsewhere: the working directory may be a repository. It would be imported from, and shims of
        # version managers obey files that they find there.
        command = [absolute(path), "-I", "-B", "-c", program]
        result = await anyio.run_process(command, check=False, cwd="/")
        return result.stdout.decode().strip() or None if result.returncode == 0 else None


def absolute(path: str) -> str:
    """The path of a program, which may be a link, from the root."""
    return str(Path(path).absolute())


def info_of(record: Record) -> SandboxInfo:
    """Return what the contract of a backend tells of a sandbox."""
    return SandboxInfo(
        key=record.key,
        place=str(record.pid),
        created=record.created,
        image=record.python,
        owner=record.owner,
        user=record.user,
        source=record.source,
        max_age_s=record.max_age_s,
        pooled=record.pooled,
        kept=record.kept,
        server=record.server,
        alone_s=record.alone_s,
    )


def runtime_folder(environ: Mapping[str, str]) -> Path:
    """Create and return the folder of sockets and records, which only this user can enter.

    Raises:
        BackendUnavailable: another user has created it before.
    """
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or "/nonexistent")
    own = Path(tempfile.gettempdir()) / f"pdbox-{os.getuid()}"
    folder = runtime / "pdbox" if runtime.is_dir() else own
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise BackendUnavailable(f"{folder} is not a folder of this user alone.", "Remove it.")
    return folder


def start_time(pid: int) -> str:
    """Return the start time of a process, to tell it from a later one with the same id.

    Empty if it is gone.
    """
    try:
        # Field 22. The second field, the name in brackets, may contain anything.
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return "" if Path("/proc/self").exists() else _start_time_by_ps(pid)
    return "" if fields[0] == "Z" else fields[19]


def _start_time_by_ps(pid: int) -> str:
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()


def tail(file: Path) -> str:
    """Read the last lines of a log; empty if there is none."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")[-400:].strip()
    except OSError:
        return ""


def measure(folders: Sequence[Path]) -> int:
    """Add up the sizes of the files below folders, links and what can't be read left out."""
    total = 0
    for folder in folders:
        for top, _, names in os.walk(folder):
            for name in names:
                with contextlib.suppress(OSError):
                    total += Path(top, name).lstat().st_size
    return total


async def remove(*folders: Path) -> None:
    """Remove folders, as far as they are there."""
    for folder in folders:
        await anyio.to_thread.run_sync(lambda folder=folder: shutil.rmtree(folder, ignore_errors=True))
