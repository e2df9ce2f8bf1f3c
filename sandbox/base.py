"""The contract of a backend: an isolated place in which the guest runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import ClassVar

from anyio.abc import ByteStream

Progress = Callable[[str], None]
"""Told in one short line what is going on; may be called from any task of the event loop."""


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use."""

    memory_bytes: int = 2 << 30
    cpus: float = 2.0
    pids: int = 512
    workspace_bytes: int = 1 << 30
    tmp_bytes: int = 256 << 20


@dataclass(frozen=True)
class Lifetime:
    """How long a sandbox lives; the guest itself keeps to it, with or without a server."""

    idle_s: float = 1800.0
    max_age_s: float = 24 * 3600.0
    grace_s: float = 600.0
    """How long it goes on without any connected server."""


@dataclass(frozen=True)
class SandboxSpec:
    """All that a backend needs to start one sandbox."""

    key: str
    """Hash of the session handle, hexadecimal; what the sandbox is found by."""
    owner: str
    """Whose it is: a hash of user and principal; `find` only gives an owner's own."""
    image: str = ""
    """Image reference; ignored by backends without images."""
    workdir: PurePosixPath = PurePosixPath("/workspace")
    """Where the repository lies inside; a backend may choose another place and say so."""
    keep_workdir: bool = False
    """The image brings the repository at `workdir`: don't mount an empty one over it."""
    guarded: bool = False
    """Some files of the workspace will be put there by `Sandbox.lay`."""
    network: bool = False
    env: dict[str, str] = field(default_factory=dict[str, str])
    mounts: tuple[tuple[str, str], ...] = ()
    """(host folder, place inside), read-only; only from the operator's own flags."""
    limits: Limits = Limits()
    lifetime: Lifetime = Lifetime()


@dataclass(frozen=True)
class Wanted:
    """What a session asks of its image; the first that is given counts."""

    image: str | None = None
    python: str | None = None
    """Version such as `3.12`, as the client asked for it."""
    requires_python: str | None = None
    """What the repository declares (PEP 440 specifiers)."""


@dataclass(frozen=True)
class Chosen:
    """The image to start, and what to tell the user about it (empty: just what was asked for)."""

    image: str = ""
    notice: str = ""


@dataclass(frozen=True)
class Found:
    """A sandbox that exists already."""

    key: str
    place: str
    """Container id or process id, for people."""
    created: float
    """Seconds since the epoch."""
    image: str = ""


class Sandbox(ABC):
    """A started sandbox. The streams to its guest are opened with `connect`."""

    backend: ClassVar[str]
    isolation: str
    """One line for people and models: what protects the host from what runs inside."""
    place: str
    image: str = ""
    python: str = ""
    environ: Mapping[str, str] = MappingProxyType({})
    """What programs find in their environment besides what the session gives them."""

    @abstractmethod
    async def connect(self) -> ByteStream:
        """Open a stream to the guest. Any number may be open, one after another or at once.

        Raises:
            SandboxLost: the sandbox is gone.
        """

    async def lay(self, pieces: Iterator[bytes]) -> bool:
        """Extract a tar stream into the empty workspace so that no program in the sandbox can change or remove what it brings.

        False: this sandbox can't, and nothing was done. Only where `SandboxSpec.guarded` was set.

        Raises:
            SandboxError: it went wrong, or the sandbox is gone.
        """
        return False

    async def cut_network(self) -> None:  # noqa: B027 - not every backend has one to cut
        """Take away the network that set-up commands had. Nothing to do where there was none.

        Raises:
            SandboxLost: the sandbox is gone.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Remove the sandbox and all that runs in it. Idempotent, at most 2 s, never raises when it is gone."""


class Backend(ABC):
    """Starts and finds sandboxes of one kind."""

    name: ClassVar[str]

    @abstractmethod
    def session(self) -> AbstractAsyncContextManager[None]:
        """Hold what all its sandboxes share (a client, a task group) while it is open."""

    @abstractmethod
    async def probe(self) -> str:
        """One line on what it is and runs on (engine and version).

        Raises:
            BackendUnavailable: with what to do about it.
        """

    async def choose(self, wanted: Wanted, progress: Progress) -> Chosen:
        """The image for a session, built or pulled if it is missing.

        Raises:
            BackendUnavailable: there is none and none can be had.
        """
        return Chosen()

    @abstractmethod
    async def start(self, spec: SandboxSpec, progress: Progress) -> Sandbox:
        """Start a sandbox with the guest in it.

        Raises:
            BackendUnavailable: no engine, no such image, start failed; nothing is left behind.
        """

    @abstractmethod
    async def find(self, owner: str, key: str | None = None) -> Sequence[Found]:
        """Sandboxes of `owner` that live, whichever server started them."""

    @abstractmethod
    async def adopt(self, found: Found) -> Sandbox:
        """Take over a sandbox that `find` gave.

        Raises:
            SandboxLost: it has gone meanwhile.
        """
