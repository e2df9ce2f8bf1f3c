"""Configuration of sandbox containers, and the reverse: session data from their labels and names."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from sandbox.docker import images
from sandbox.docker.engine import Container, Image
from sandbox.guest.protocol.signals import STOP
from sandbox.spec import SandboxInfo, SandboxSpec

UID = 10001
HOME = PurePosixPath("/run/pdbox")
USER_HOME = PurePosixPath("/home/sandbox")
HOME_BYTES = 32 << 20
SHM_BYTES = 64 << 20

LABEL = "pdbox"
SESSION, OWNER, USER, SOURCE, CREATED, MAX_AGE, ALONE, SERVER, POOL, KEPT, WORKDIR, ISOLATION = (
    f"{LABEL}.{name}"
    for name in (
        "session",
        "owner",
        "user",
        "source",
        "created",
        "max_age",
        "alone",
        "server",
        "pool",
        "kept",
        "workdir",
        "isolation",
    )
)
COMPILING = f"{LABEL}.compiling"
"""Label instead of `LABEL` for a helper container: not a sandbox, it ends after one task.

To compile the guest, or to give a folder of its image.
"""

# The labels of a container are fixed at creation, but its name is not. The name of a pooled container
# therefore holds its owner once it is assigned.
_ASSIGNED = re.compile(r"pdbox-([0-9a-f]+)-([0-9a-f]+)-([0-9a-f]+)-([0-9]+)")

# Finds the interpreter of a foreign image. The environment of SWE-bench images comes first: it
# is the one with the repository's requirements, and only an interactive shell would activate it.
PROBE = """\
for p in /opt/miniconda3/envs/testbed/bin/python python3 python /opt/*/bin/python3 /opt/*/bin/python \
/usr/local/bin/python3 /usr/bin/python3 /venv/bin/python; do
  p=$(command -v "$p" 2>/dev/null) || continue
  "$p" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null ||
    { found="${found:- $p is $("$p" -V 2>&1).}"; continue; }
  PATH="$(dirname "$p"):$PATH"; export PATH
  exec "$p" "$@"
done
echo "no Python 3.8 or newer in this image.$found" >&2
exit 127
"""


def confinement(spec: SandboxSpec) -> str:
    """Describe the permanent restrictions of the container, for people and models."""
    limits = spec.limits
    parts = [
        *([f"runtime {spec.runtime}"] if spec.runtime else []),
        "no capabilities",
        "not root",
        "read-only system",
        f"{limits.memory_bytes >> 20} MiB memory",
        f"{limits.cpus:g} CPUs",
        f"{limits.pids} processes",
        f"{limits.workspace_bytes >> 20} MiB workspace",
        f"{limits.home_bytes >> 20} MiB home",
        f"{limits.tmp_bytes >> 20} MiB /tmp",
    ]
    return ", ".join(parts)


def config_of(spec: SandboxSpec, image: Image, arguments: Sequence[str]) -> dict[str, Any]:
    """Build the configuration of a container. `arguments`: arguments of the interpreter."""
    probe = [] if image.labels.get(images.OWN) == "1" else ["/bin/sh", "-c", PROBE, "pdbox"]
    argv = [*(probe or ["python3"]), *arguments]
    return {
        "image": image.reference,
        # Set both, to override the image's own entry point.
        "entrypoint": argv[:1],
        "command": argv[1:],
        # With `detach` left False this sets StdinOnce: the guest sees EOF when the server dies.
        "stdin_open": True,
        "user": f"{UID}:{UID}",
        "working_dir": str(spec.workdir),
        # The supervisor is the first process: it gets no SIGTERM, nor any other signal of the programs.
        "stop_signal": str(STOP),
        "hostname": "sandbox",
        "environment": _environment(spec),
        "healthcheck": {"test": ["NONE"]},
        "labels": {
            LABEL: "1",
            **({POOL: "1"} if spec.pooled else {SESSION: spec.key, OWNER: spec.owner, SOURCE: spec.source}),
            **({KEPT: "1"} if spec.lifetime.kept else {}),
            USER: spec.user,
            CREATED: f"{time.time():.3f}",
            MAX_AGE: f"{spec.lifetime.max_age_s:.3f}",
            ALONE: f"{spec.lifetime.alone_s:.3f}",
            SERVER: spec.server,
            WORKDIR: str(spec.workdir),
            ISOLATION: confinement(spec),
        },
    }


def _environment(spec: SandboxSpec) -> dict[str, str]:
    return {
        "HOME": str(USER_HOME),
        # Images seldom have a name for this user id; getpass and git look here first.
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        # pip's cache would double the use of the home, and is never read.
        "PIP_NO_CACHE_DIR": "1",
        **spec.env,
    }


def host_config(spec: SandboxSpec) -> dict[str, Any]:
    """Build the host configuration: resource limits, mounts and restrictions."""
    limits = spec.limits
    own = f"uid={UID},gid={UID},mode=0755"
    # With protected files the folder belongs to root and is sticky: all can create files, only root can
    # remove root's.
    whose = "mode=1777" if spec.guarded else own
    tmpfs = {
        "/tmp": f"rw,nosuid,nodev,exec,size={limits.tmp_bytes},mode=1777",
        str(HOME): f"rw,nosuid,nodev,exec,{own},size={HOME_BYTES}",
        str(USER_HOME): f"rw,nosuid,nodev,exec,{own},size={limits.home_bytes}",
        str(spec.workdir): f"rw,nosuid,nodev,exec,{whose},size={limits.workspace_bytes}",
        **dict.fromkeys(spec.folders, f"rw,nosuid,nodev,exec,{own},size={limits.tmp_bytes}"),
    }
    # Files in a tmpfs count as memory: if it were full, every later process would be killed.
    tmpfs_bytes = limits.tmp_bytes + limits.home_bytes + limits.workspace_bytes + HOME_BYTES + SHM_BYTES
    memory = limits.memory_bytes + tmpfs_bytes
    return {
        "auto_remove": True,
        "runtime": spec.runtime or None,
        "network_mode": "bridge" if spec.network else "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "read_only": True,
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
        # Its output is the protocol; a log of it would fill the engine's disk.
        "log_config": {"Type": "none", "Config": {}},
        "oom_score_adj": 500,
    }


def size_settings(spec: SandboxSpec) -> dict[PurePosixPath, str]:
    """Return the folders that `host_config` limits in size, each with the operator's setting for it."""
    return {
        PurePosixPath("/tmp"): "--tmp-size",
        USER_HOME: "--home-size",
        spec.workdir: "--workspace-size",
    }


def info_of(container: Container) -> SandboxInfo:
    """Read session data from labels and name of a container that was created with `config_of`."""
    labels = container.labels
    found = SandboxInfo(
        key=labels.get(SESSION, ""),
        place=container.id[:12],
        created=_number(labels.get(CREATED), container.created),
        image=container.image,
        owner=labels.get(OWNER, ""),
        user=labels.get(USER, ""),
        source=labels.get(SOURCE, ""),
        max_age_s=_number(labels.get(MAX_AGE), math.inf),
        kept=labels.get(KEPT) == "1",
        server=labels.get(SERVER, ""),
        alone_s=_number(labels.get(ALONE), math.inf),
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
