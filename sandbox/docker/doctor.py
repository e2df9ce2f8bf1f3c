"""Checks this machine by trying: the engine, the images, and the isolation of a real sandbox."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from sandbox.backend import Sandbox
from sandbox.docker import images
from sandbox.docker.backend import DockerBackend
from sandbox.errors import PdboxError
from sandbox.spec import SandboxSpec
from sandbox.transport.connection import GuestConnection

# Runs in the sandbox, so it is limited to old Python syntax.
_FACTS = """\
import ctypes, errno, json, os, socket
status = dict(line.rstrip().split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
def first(*paths):
    for path in paths:
        try:
            return open(path).read().split()[0]
        except OSError:
            pass
    return ""
def writable(path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        os.unlink(path)
        return True
    except OSError:
        return False
def size(path):
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize >> 20
def opens_socket(family):
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
        return True
    except OSError:
        return False
libc = ctypes.CDLL(None, use_errno=True)
def takes_io_uring():
    # A wrong address: refused with EFAULT where the call is let through.
    return libc.syscall(425, 1, None) == -1 and ctypes.get_errno() == errno.EFAULT
print(json.dumps({
    "uid": os.getuid(),
    "capabilities": status.get("CapEff", "?").strip("0") + status.get("CapBnd", "?").strip("0"),
    "no_new_privileges": libc.prctl(39, 0, 0, 0, 0) == 1,
    "kernel": os.uname().release,
    "interfaces": sorted(line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]),
    "root_writable": any(writable(place + "/.pdbox-test") for place in ("/", "/usr", "/etc")),
    "workspace_writable": writable(".pdbox-test"),
    "memory": first("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    "pids": first("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"),
    "cpu": first("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    "mib": [size(os.getcwd()), size(os.path.expanduser("~")), size("/tmp")],
    "vsock": opens_socket(40),
    "io_uring": takes_io_uring(),
}))
"""


@dataclass(frozen=True)
class Check:
    """Result of one check."""

    name: str
    ok: bool
    text: str
    fix: str = ""
    """Next step to fix it."""


async def examine(backend: DockerBackend) -> Sequence[Check]:
    """Check the engine, the images, and a real sandbox. Stops if a failure makes the rest pointless."""
    checks: list[Check] = []
    async with backend.lifespan():
        try:
            checks.append(Check("engine", True, await backend.probe()))
            checks.append(await _check_limits(backend))
            image = await _check_image(backend)
            checks.append(image)
            if image.ok:
                checks.extend(await _check_sandbox(backend))
        except PdboxError as exc:
            name = "sandbox" if checks else "engine"
            checks.append(Check(name, False, f"{exc.message} {exc.details}".strip(), exc.hint))
    return checks


async def _check_limits(backend: DockerBackend) -> Check:
    engine = await backend.engine()
    version = await backend.call(engine.version)
    missing = [name for name, can in version.limits.items() if not can]
    if missing:
        return Check(
            "limits",
            False,
            f"The engine can't limit {', '.join(missing)}.",
            "Rootless engines need cgroup v2 with systemd delegation: "
            "https://docs.docker.com/engine/security/rootless/tips/#limiting-resources",
        )
    return Check("limits", True, f"{', '.join(version.limits)} ({version.cgroup_driver})")


async def _check_image(backend: DockerBackend) -> Check:
    engine = await backend.engine()
    present = await backend.call(engine.tags, images.REPOSITORY)
    if not present:
        return Check(
            "image", False, f"No {images.REPOSITORY} image is present.", "`pdbox image build` makes one."
        )
    return Check("image", True, f"{images.REPOSITORY}: {', '.join(sorted(present, key=_by_version))}")


async def _check_sandbox(backend: DockerBackend) -> Sequence[Check]:
    """Start a sandbox, run a program in it that reports its permissions, and end it."""
    engine = await backend.engine()
    present = await backend.call(engine.tags, images.REPOSITORY)
    image = images.resolve(None, None, present).image
    spec = SandboxSpec(key=secrets.token_hex(16), owner="doctor", image=image)
    began = time.monotonic()
    sandbox = await backend.start(spec, lambda line: None)
    ready_s = time.monotonic() - began
    checks: Sequence[Check] = []
    try:
        async with anyio.create_task_group() as tasks:
            checks = await _query(backend, sandbox, tasks, ready_s)
            tasks.cancel_scope.cancel()
    finally:
        await sandbox.aclose()
    return checks


async def _query(
    backend: DockerBackend, sandbox: Sandbox, tasks: TaskGroup, ready_s: float
) -> Sequence[Check]:
    try:
        guest = await GuestConnection.open(await sandbox.connect(), tasks)
        began = time.monotonic()
        await guest.request("ping")
        ping_s = time.monotonic() - began
        args = {"argv": ["python3", "-c", _FACTS], "timeout_s": 30.0, "max_output": 100_000}
        answer, _ = await guest.request("exec", args, timeout_s=30)
        await guest.aclose()
        is_filtered = await _is_filtered(backend, sandbox)
        engine = await backend.engine()
        version = await backend.call(engine.version)
    except PdboxError as exc:
        return [Check("sandbox", False, f"{exc.message} {exc.details}".strip(), exc.hint)]
    if answer.get("exit_code") != 0:
        return [Check("sandbox", False, f"A program in it failed: {str(answer.get('output'))[:300]}")]
    facts = cast(dict[str, Any], json.loads(str(answer["output"])))
    of = f" of the runtime {backend.runtime}" if backend.runtime else ""
    # The kernel of a virtual machine, or gVisor, of which the engine's limits and filter are outside.
    kernel = f"a kernel{of} ({facts['kernel']})" if version.kernel not in ("", facts["kernel"]) else ""
    ready = f"ready in {ready_s * 1000:.0f} ms, answers in {ping_s * 1000:.1f} ms"
    return [
        Check("sandbox", True, f"{ready}; runtime {backend.runtime}" if backend.runtime else ready),
        _check_isolation(facts, is_filtered, kernel),
        _check_enforced(facts, kernel),
    ]


async def _is_filtered(backend: DockerBackend, sandbox: Sandbox) -> bool:
    """True if the engine filters system calls. Asked beside the supervisor, which has a filter of its own."""
    stream = await backend.exec(sandbox.place, ["grep", "-c", "^Seccomp:.2$", "/proc/self/status"])
    try:
        with anyio.fail_after(30):
            return (await stream.receive()).strip() == b"1"
    finally:
        await anyio.aclose_forcefully(stream)


def _check_isolation(facts: Mapping[str, Any], is_filtered: bool, kernel: str) -> Check:
    """`kernel`: description of the sandbox's kernel if it is not the machine's."""
    holes = [
        text
        for text, wrong in {
            "programs run as root": facts["uid"] == 0,
            "programs have capabilities": facts["capabilities"] != "",
            "set-uid programs gain privileges": not facts["no_new_privileges"],
            "the engine does not filter system calls": not is_filtered and not kernel,
            "there is a network": facts["interfaces"] not in (["lo"], []),
            "the system's files can be written": facts["root_writable"],
            "the workspace can't be written": not facts["workspace_writable"],
        }.items()
        if wrong
    ]
    if holes:
        return Check(
            "isolation",
            False,
            f"It does not hold: {'; '.join(holes)}.",
            "Is seccomp switched off in the engine?",
        )
    walls = [*([kernel] if kernel else []), *(["seccomp"] if is_filtered else [])]
    return Check(
        "isolation",
        True,
        f"not root, no capabilities, no new privileges, {' and '.join(walls)}, no network, read-only system{_let_through(facts)}",
    )


def _let_through(facts: Mapping[str, Any]) -> str:
    """Describe system calls that only newer engines refuse by default; empty if this one does."""
    names = [name for name in ("vsock", "io_uring") if facts[name]]
    return (
        f"; this engine's seccomp profile lets {' and '.join(names)} through, Docker 25 refuses both"
        if names
        else ""
    )


def _check_enforced(facts: Mapping[str, Any], kernel: str) -> Check:
    missing = [name for name in ("memory", "pids", "cpu") if str(facts[name]) in ("", "max", "-1")]
    # cgroup v1 writes "no limit" as a number larger than any machine's memory.
    if str(facts["memory"]).isdigit() and int(facts["memory"]) > 1 << 60:
        missing.append("memory")
    sizes = "workspace {} MiB, home {} MiB, /tmp {} MiB".format(*facts["mib"])
    if missing and kernel:
        return Check(
            "enforced limits",
            True,
            f"{', '.join(missing)}: by the engine, around {kernel}, which does not show them; {sizes}",
        )
    if missing:
        return Check("enforced limits", False, f"Not enforced in the sandbox: {', '.join(missing)}.")
    return Check(
        "enforced limits",
        True,
        f"memory {int(facts['memory']) >> 20} MiB, {facts['pids']} processes, CPU time; {sizes}",
    )


def _by_version(tag: str) -> tuple[int, ...]:
    return tuple(int(part) for part in tag.split(".") if part.isdigit())
