"""Command line of bubblewrap for a sandbox: its namespaces, its files, and the limits of its processes."""

from __future__ import annotations

import math
import os
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
INFO_FD, FILTER_FD, OPTIONS_FD = 4, 5, 6
"""Descriptors on which bubblewrap writes the process id and reads the filter and its options."""

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Whatever else is in /etc is the host's own business.
_ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "mime.types", "nsswitch.conf", "os-release", "pki", "protocols", "services", "ssl/certs", "ssl/openssl.cnf",
    "terminfo", "timezone",
)  # fmt: skip
_ETC_NETWORK = ("hosts", "resolv.conf")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Interpreter:
    """A Python of this machine, and the folders that it needs."""

    executable: Path
    folders: tuple[Path, ...]
    """Its prefixes: that of a virtual environment, and that of the installation below."""


def confinement(spec: SandboxSpec, grouped: bool) -> str:
    """Describe the protection of the host, for people and models. `grouped`: it has control groups."""
    limits = spec.limits
    memory = f"{limits.memory_bytes >> 20} MiB memory"
    # The number that a user may have does not hold for root.
    counted = grouped or os.geteuid() != 0
    parts = [
        "this machine's network, its local services included" if spec.network else "no network",
        "no capabilities",
        "not root",
        "read-only system",
        memory if grouped else f"{memory} a process",
        f"{limits.cpus:g} CPUs" if grouped else "no limit on CPUs",
        f"{limits.pids} processes" if counted else "no limit on processes",
    ]
    return f"bubblewrap sandbox: {', '.join(parts)}."


def tmpfs_bytes(spec: SandboxSpec) -> int:
    """Return the size of all its file systems in memory."""
    limits = spec.limits
    folders = (1 + len(spec.folders)) * limits.tmp_bytes
    return folders + limits.home_bytes + limits.workspace_bytes + HOME_BYTES + SHM_BYTES


def environment(spec: SandboxSpec, python: Interpreter) -> dict[str, str]:
    """Return the whole environment of programs."""
    return {
        "PATH": f"{python.executable.parent}:{_PATH}",
        "HOME": str(USER_HOME),
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "LANG": "C.UTF-8",
        "PIP_NO_CACHE_DIR": "1",
        **spec.env,
    }


def size_settings(spec: SandboxSpec) -> dict[PurePosixPath, str]:
    """Return the folders of limited size, each with the operator's setting for it."""
    return {
        PurePosixPath("/tmp"): "--tmp-size",
        USER_HOME: "--home-size",
        spec.workdir: "--workspace-size",
    }


def bwrap_options(spec: SandboxSpec, python: Interpreter, env: Mapping[str, str]) -> list[str]:
    """Build the options that describe the sandbox."""
    return [
        *_namespaces(spec.network),
        *_variables(env),
        *_system(spec.network),
        *_writable(spec),
        *_python(python),  # it may be in /tmp of this machine
        *(part for host, inside in spec.mounts for part in ("--ro-bind", host, inside)),
        *("--chdir", str(spec.workdir)),
        # Last: the folders above are made in it first.
        *("--remount-ro", "/"),
    ]


def lifetime_arguments(seconds: float) -> list[str]:
    """Return a command that kills the one after it at that age: nothing inside can put it off."""
    return ["timeout", "-s", "KILL", str(math.ceil(seconds))] if math.isfinite(seconds) else []


def limit_arguments(spec: SandboxSpec) -> list[str]:
    """Return a command that limits the one after it. Set inside, the number of processes is that of the sandbox alone."""
    limits = spec.limits
    return [
        "prlimit",
        f"--nproc={limits.pids}",
        f"--data={limits.memory_bytes}",
        f"--nofile={OPEN_FILES}",
        "--core=0",
        "--",
    ]


def _namespaces(network: bool) -> Iterator[str]:
    yield "--unshare-all"
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
    yield from ("--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")


def _python(python: Interpreter) -> Iterator[str]:
    shown: list[Path] = [Path("/usr")]
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
