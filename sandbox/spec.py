"""Records that describe sandboxes: specification, limits, lifetime, owner, image, and ones that exist already."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from sandbox.errors import InvalidArgument
from sandbox.image_names import AllowedImages


@dataclass(frozen=True)
class Limits:
    """Resource limits of one sandbox."""

    memory_bytes: int = 2 << 30
    cpus: float = 2.0
    pids: int = 512
    workspace_bytes: int = 1 << 30
    tmp_bytes: int = 512 << 20
    home_bytes: int = 1 << 30
    """The home: `pip install` puts packages there, since the system is read-only."""


@dataclass(frozen=True)
class Lifetime:
    """Time limits of a sandbox. The guest itself enforces them, with or without a server."""

    idle_s: float = 1800.0
    max_age_s: float = 24 * 3600.0
    grace_s: float = 600.0
    """Time that it goes on without any connected server."""
    kept: bool = False
    """True if it is meant to outlive its server."""

    @property
    def alone_s(self) -> float:
        """Time that it may go on without a server: without one it is idle, too."""
        return min(self.grace_s, self.idle_s)


@dataclass(frozen=True)
class Identity:
    """Owner and handle of a session. Stored outside the sandbox, and never read from programs inside it."""

    handle: str
    owner: str
    user: str = ""


@dataclass(frozen=True)
class SandboxSpec:
    """Everything that a backend needs to start one sandbox."""

    key: str
    """Hash of the session handle, hexadecimal; identifies the sandbox."""
    owner: str
    """Hash of user and principal. `Backend.find` returns sandboxes only to their owner."""
    user: str = ""
    """Hash of the user who runs the server. This user may list and remove all sandboxes of the server."""
    source: str = ""
    """Hash of the repository that it was opened for."""
    pooled: bool = False
    """True if it is started ahead of its session. `Sandbox.assign` sets key, owner and source later."""
    image: str = ""
    """Image reference; ignored by backends without images."""
    image_id: str = ""
    """Id of the image when it was chosen: a reference can come to mean another one."""
    workdir: PurePosixPath = PurePosixPath("/workspace")
    """Folder of the repository inside. A backend may choose another one and report it."""
    guarded: bool = False
    """True if some files are likely to be read-only: `Sandbox.make_roots` will be called if the backend can do that."""
    network: bool = False
    env: dict[str, str] = field(default_factory=dict[str, str])
    mounts: tuple[tuple[str, str], ...] = ()
    """(host folder, folder inside), read-only; only from the operator's own flags."""
    origin: str = ""
    """Folder of this machine that the workspace is a copy of, if the interpreter has it installed as editable."""
    folders: tuple[str, ...] = ()
    """Further empty folders that programs may write to, with the size limit of `/tmp` each."""
    limits: Limits = Limits()
    lifetime: Lifetime = Lifetime()
    server: str = ""
    """Name of the server that starts it, as `ServerFiles` gives it."""
    runtime: str = ""
    """The engine's runtime that containers are started with; empty: its default. Only from the operator's own flag."""


@dataclass(frozen=True)
class ImageRequest:
    """Image or Python version that a session asks for. The first field that is given counts."""

    image: str | None = None
    python: str | None = None
    """Version such as `3.12`, as the client gave it."""
    requires_python: str | None = None
    """Version specifiers that the repository declares (PEP 440)."""
    folder: Path | None = None
    """Folder of the repository on this machine."""
    allowed: AllowedImages | None = None
    """Images that may be pulled from a registry; None: any."""


@dataclass(frozen=True)
class ImageChoice:
    """The image to start, and a notice for the user. The notice is empty if the image is as requested."""

    image: str = ""
    notice: str = ""
    image_id: str = ""
    origin: str = ""
    """See `SandboxSpec.origin`."""


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox that exists already, as the host knows it. No field comes from programs inside."""

    key: str
    place: str
    """Container id or process id, for people."""
    created: float
    """Start of its session, in seconds since the epoch."""
    image: str = ""
    owner: str = ""
    user: str = ""
    source: str = ""
    max_age_s: float = math.inf
    pooled: bool = False
    """True if it was started ahead and has no owner yet."""
    kept: bool = False
    """True if it is left running on purpose when its server ends."""
    server: str = ""
    """Name of the server that started it; empty if it is not known."""
    alone_s: float = math.inf
    """Time that it may go on without a server."""

    @property
    def age_s(self) -> int:
        """Seconds since the start of its session."""
        return max(0, round(time.time() - self.created))

    @property
    def left_s(self) -> float:
        """Seconds until its maximum age."""
        return self.created + self.max_age_s - time.time()


def python_version(text: str) -> tuple[int, int]:
    """Parse `3.12`, `3.12.4` or `python3.12` into major and minor version.

    Raises:
        InvalidArgument: it is something else.
    """
    match = re.fullmatch(r"(?:c?python)?\s*(3)\.(\d{1,2})(?:\.\w+)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InvalidArgument(f"{text!r} is not a Python 3 version.", "Say it like 3.12.")
    return int(match[1]), int(match[2])
