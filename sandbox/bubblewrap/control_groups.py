"""Control groups for sandboxes: limits on all their processes together, where this user may make groups."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sandbox.spec import Limits

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000


def make_groups(name: str, limits: Limits, tmpfs_bytes: int) -> Sequence[Path]:
    """Make groups for a sandbox and set their limits. Empty if that is not possible.

    `tmpfs_bytes`: size of its file systems in memory, which count as memory.
    """
    if os.geteuid() != 0:
        return []  # an ordinary user has groups to make only from systemd, in a scope that has to be started
    memory = str(limits.memory_bytes + tmpfs_bytes)
    made: list[Path] = []
    for controllers, parent in _parents():
        group = parent / f"pdbox-{name}"
        try:
            group.mkdir()
            made.append(group)
            for controller in controllers:
                for file, value in _settings(controller, limits, memory).items():
                    (group / file).write_text(value, encoding="ascii")
        except OSError:
            remove_groups(made)
            return []
    return made


def remove_groups(groups: Sequence[Path]) -> None:
    """Remove groups that have no processes."""
    for group in groups:
        with contextlib.suppress(OSError):
            group.rmdir()


def _parents() -> Iterator[tuple[Sequence[str], Path]]:
    """Yield folders in which groups can be made, each with its controllers."""
    wanted = ("pids", "memory", "cpu")
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        if not names:
            # In version 2 a group with processes has no groups with limits in it: make them beside ours.
            parent = (_ROOT / path.lstrip("/")).parent if path != "/" else _ROOT
            with contextlib.suppress(OSError):
                enabled = (parent / "cgroup.subtree_control").read_text(encoding="ascii").split()
                if found := [f"{name}2" for name in wanted if name in enabled]:
                    yield found, parent
        elif found := [name for name in wanted if name in names.split(",")]:
            parent = _ROOT / names / path.lstrip("/")
            yield found, parent if parent.is_dir() else _ROOT / names


def _settings(controller: str, limits: Limits, memory: str) -> Mapping[str, str]:
    quota = round(limits.cpus * _PERIOD_US)
    return {
        "pids": {"pids.max": str(limits.pids)},
        "pids2": {"pids.max": str(limits.pids)},
        "memory": {"memory.limit_in_bytes": memory},
        "memory2": {"memory.max": memory},
        "cpu": {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(quota)},
        "cpu2": {"cpu.max": f"{quota} {_PERIOD_US}"},
    }[controller]
