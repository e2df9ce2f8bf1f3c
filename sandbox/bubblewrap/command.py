"""Command line of bubblewrap for a sandbox: its namespaces, its files, and the limits of its processes."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.errors import BackendUnavailable
from sandbox.spec import SandboxSpec

UID = 10001
HOME = PurePosixPath("/run/pdbox")
USER_HOME = PurePosixPath("/home/sandbox")
HOME_BYTES = 32 << 20
SHM_BYTES = 64 << 20
OPEN_FILES = 4096
_PROC_READ_ONLY = ("bus", "fs", "irq", "mtrr", "pressure", "sysrq-trigger")
_PROC_HIDDEN = tuple(
    Path("/proc", name)
    for name in (
        "acpi",
        "asound",
        "kcore",
        "key-users",
        "keys",
        "kpagecgroup",
        "kpagecount",
        "kpageflags",
        "latency_stats",
        "sched_debug",
        "scsi",
        "slabinfo",
        "timer_list",
        "timer_stats",
        "vmallocinfo",
    )
)
"""As the OCI runtime specification's defaults for maskedPaths and readonlyPaths, and files that only root may read."""
BELOW = PurePosixPath("/run/venv")
"""Place of a virtual environment's own files: under its name lies a writable layer over them."""
INFO_FD, FILTER_FD, OPTIONS_FD, PATHS_FD = 4, 5, 6, 7
"""Descriptors on which bubblewrap writes the process id, and reads the filter, its options and `path_file`."""

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Whatever else is in /etc is the host's own business.
_ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "mime.types", "nsswitch.conf", "os-release", "pki", "protocols", "services", "ssl/certs", "ssl/openssl.cnf",
    "terminfo", "timezone",
)  # fmt: skip
_ETC_NETWORK = ("hosts", "resolv.conf")
_MAX_ALIASES = 2000
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Interpreter:
    """A Python of this machine, and the folders that it needs."""

    executable: Path
    folders: tuple[Path, ...]
    """Its prefixes: that of a virtual environment, and that of the installation below."""
    packages: tuple[Path, ...] = ()
    """Folders in which it has its packages."""
    is_environment: bool = False
    """True if the first of `folders` is a virtual environment."""

    def is_installed_from(self, repository: Path) -> bool:
        """True if a package is an editable installation of `repository`: its files are not in the environment."""
        name = os.fsencode(repository)
        files = (
            file
            for folder in self.packages
            for pattern in ("*.pth", "__editable__*.py")
            for file in folder.glob(pattern)
        )
        return any(name in _beginning(file) for file in files)


def _beginning(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(1 << 20)
    except OSError:
        return b""


def confinement(spec: SandboxSpec, *, grouped: bool, watched: bool) -> str:
    """Describe the protection of the host, for people and models.

    `grouped`: it has control groups. `watched`: the server kills what uses too much memory.
    """
    limits = spec.limits
    memory = f"{limits.memory_bytes >> 20} MiB memory"
    # The number that a user may have does not hold for root.
    counted = grouped or os.geteuid() != 0
    parts = [
        "this machine's network, its local services included" if spec.network else "no network",
        "no capabilities",
        "not root",
        "read-only system",
        memory if grouped or watched else f"{memory} a process",
        f"{limits.cpus:g} CPUs" if grouped else "no limit on CPUs",
        f"{limits.pids} processes" if counted else "no limit on processes",
    ]
    return f"bubblewrap sandbox: {', '.join(parts)}."


def tmpfs_bytes(spec: SandboxSpec, python: Interpreter) -> int:
    """Return the size of all its file systems in memory."""
    limits = spec.limits
    folders = (1 + len(spec.folders)) * limits.tmp_bytes
    homes = (1 + python.is_environment) * limits.home_bytes
    return folders + homes + limits.workspace_bytes + HOME_BYTES + SHM_BYTES


def environment(spec: SandboxSpec, python: Interpreter) -> dict[str, str]:
    """Return the whole environment of programs."""
    return {
        "PATH": f"{python.executable.parent}:{_PATH}",
        "HOME": str(USER_HOME),
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "LANG": "C.UTF-8",
        "PIP_NO_CACHE_DIR": "1",
        **_where_to_install(python),
        **spec.env,
    }


def _where_to_install(python: Interpreter) -> dict[str, str]:
    """Return variables by which package managers install into what the sandbox can write to."""
    if python.is_environment:
        return {"VIRTUAL_ENV": str(python.folders[0])}
    # A distribution's Python refuses to be changed. It can't be: the system is read-only, and pip takes the home.
    return {"PIP_BREAK_SYSTEM_PACKAGES": "1"}


def size_settings(spec: SandboxSpec, python: Interpreter) -> dict[PurePosixPath, str]:
    """Return the folders of limited size, each with the operator's setting for it."""
    return {
        PurePosixPath("/tmp"): "--tmp-size",
        USER_HOME: "--home-size",
        spec.workdir: "--workspace-size",
        **({PurePosixPath(python.folders[0]): "--home-size"} if python.is_environment else {}),
    }


def bwrap_options(spec: SandboxSpec, python: Interpreter, env: Mapping[str, str]) -> list[str]:
    """Build the options that describe the sandbox."""
    return [
        *_namespaces(spec.network),
        *_variables(env),
        *_system(spec.network),
        *_writable(spec),
        *_python(python, spec),  # it may be in /tmp of this machine
        *(part for host, inside in spec.mounts for part in ("--ro-bind", host, inside)),
        *("--chdir", str(spec.workdir)),
        # Last: the folders above are made in it first.
        *("--remount-ro", "/"),
    ]


def path_file(spec: SandboxSpec, python: Interpreter) -> bytes:
    """Return a line for the writable layer of a virtual environment that adds the packages of the environment itself.

    Editable installations of the repository lead to its copy.
    """
    below = [str(BELOW / _within(python.folders[0], folder)) for folder in python.packages]
    line = f"import os, site, sys; list(map(site.addsitedir, {below!r}))"
    if spec.origin:
        old, new = str(spec.origin), str(spec.workdir)
        copied = f"(p + '/').startswith({old + '/'!r}) and os.path.exists({new!r} + p[{len(old)}:])"
        line += (
            f"; sys.path[:] = dict.fromkeys({new!r} + p[{len(old)}:] if {copied} else p for p in sys.path)"
        )
    return f"{line}\n".encode()


def lifetime_arguments(seconds: float) -> list[str]:
    """Return a command that kills the one after it at that age: nothing inside can put it off."""
    return ["timeout", "-s", "KILL", str(math.ceil(seconds))] if math.isfinite(seconds) else []


def limit_arguments(spec: SandboxSpec) -> list[str]:
    """Return a command that limits the one after it. Set inside, the number of processes is that of the sandbox alone."""
    limits = spec.limits
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return [
        "prlimit",
        f"--nproc={limits.pids}",
        f"--data={limits.memory_bytes}",
        f"--nofile={min(OPEN_FILES, most) if most != resource.RLIM_INFINITY else OPEN_FILES}",
        "--core=0",
        "--",
    ]


def _namespaces(network: bool) -> Iterator[str]:
    # As the first process, the supervisor gets no signals of the programs.
    yield from ("--unshare-all", "--as-pid-1")
    yield from ("--unshare-user", "--disable-userns", "--new-session", "--die-with-parent", "--clearenv")
    yield from ("--uid", str(UID), "--gid", str(UID), "--hostname", "sandbox", "--cap-drop", "ALL")
    if network:
        yield "--share-net"


def _variables(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        yield from ("--setenv", name, value)


def _system(network: bool) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        else:
            yield from ("--ro-bind-try", str(folder), str(folder))
    pythons = sorted(path.name for path in Path("/etc").glob("python3*"))
    for name in (*_ETC, *pythons, *(_ETC_NETWORK if network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield from ("--proc", "/proc", "--dev", "/dev")
    # Below a server that is root, programs are root to the kernel where it asks for the owner alone, as in these files.
    yield from ("--ro-bind", "/proc/sys", "/proc/sys")
    for name in _PROC_READ_ONLY:
        yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
    for path in filter(Path.exists, _PROC_HIDDEN):
        if path.is_dir():
            yield from ("--tmpfs", str(path), "--remount-ro", str(path))
        else:
            yield from ("--ro-bind", "/dev/null", str(path))
    yield from ("--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")


def _python(python: Interpreter, spec: SandboxSpec) -> Iterator[str]:
    shown: list[Path] = [Path("/usr")]
    if spec.origin:
        yield from _alias(Path(spec.origin), spec.workdir, python)
    if python.is_environment:
        shown.append(python.folders[0])
        yield from _layered(python, spec.limits.home_bytes)
    for folder in python.folders:
        for path in dict.fromkeys((folder, folder.resolve())):
            if not any(path.is_relative_to(one) for one in shown):
                shown.append(path)
                yield from ("--ro-bind", str(path), str(path))
    link = python.executable
    while link.is_symlink():
        target = Path(os.path.normpath(link.parent / link.readlink()))
        if not any(target.is_relative_to(one) for one in shown):
            yield from _linked(target)
        link = target


def _layered(python: Interpreter, size: int) -> Iterator[str]:
    """Arguments that show a virtual environment under a writable layer, so that `pip install` works and changes nothing.

    Folders that pip writes to are in the layer, with links to what they contain.
    """
    root = python.folders[0]
    packages = [root / _within(root, folder) for folder in python.packages]
    folders = {root, root / "bin", *packages}
    for folder in packages:
        folders.update(parent for parent in folder.parents if parent.is_relative_to(root))
    yield from (
        "--ro-bind",
        str(root),
        str(BELOW),
        "--size",
        str(size),
        "--perms",
        "0755",
        "--tmpfs",
        str(root),
    )
    for folder in sorted(folders):
        yield from ("--dir", str(folder))
        entries = [] if folder in packages else sorted(folder.iterdir())
        for entry in entries:
            if entry.is_symlink():
                yield from ("--symlink", str(entry.readlink()), str(entry))
            elif entry not in folders:
                yield from ("--symlink", str(BELOW / entry.relative_to(root)), str(entry))
    # The last of its folder, so that what is installed into the layer comes first.
    yield from ("--file", str(PATHS_FD), str(packages[0] / "zz_pdbox.pth"))


def _within(root: Path, folder: Path) -> Path:
    """Return the real place of a folder of an environment, relative to it: `lib64` is often a link."""
    return folder.resolve().relative_to(root.resolve())


def _alias(origin: Path, workdir: PurePosixPath, python: Interpreter) -> Iterator[str]:
    """Arguments that show the copy under the name of the original, for editable installations that name it."""
    if any(map(origin.is_relative_to, ("/usr", workdir, *python.folders))):
        return
    for entry in sorted(origin.iterdir())[:_MAX_ALIASES]:
        if not any(folder.is_relative_to(entry) for folder in python.folders):
            yield from ("--symlink", str(workdir / entry.name), str(entry))


def _linked(path: Path) -> Iterator[str]:
    """Arguments that show one file of a chain of links, and nothing beside it."""
    if path.is_symlink():
        yield from ("--symlink", str(path.readlink()), str(path))
    else:
        yield from ("--ro-bind", str(path), str(path))


def _writable(spec: SandboxSpec) -> Iterator[str]:
    limits = spec.limits
    for folder, size, mode in (
        ("/tmp", limits.tmp_bytes, "1777"),
        (str(HOME), HOME_BYTES, "0700"),
        (str(USER_HOME), limits.home_bytes, "0755"),
        (str(spec.workdir), limits.workspace_bytes, "0755"),
        *((folder, limits.tmp_bytes, "0755") for folder in spec.folders),
    ):
        yield from ("--perms", mode, "--size", str(size), "--tmpfs", folder)


def check_folders(folders: Sequence[Path]) -> None:
    """Check that the folders of an interpreter show nothing else.

    Raises:
        BackendUnavailable: one of them contains a home.
    """
    homes = {Path.home(), Path("/root"), Path("/home")}
    for folder in folders:
        if any(home.is_relative_to(folder.resolve()) for home in homes):
            raise BackendUnavailable(
                f"The Python in {folder} can't be shown to a sandbox without a home directory.",
                "Install Python, or pdbox, into a folder of its own.",
            )
