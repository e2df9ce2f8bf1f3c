"""The contract of a backend: an isolated place in which the guest runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import ClassVar

import anyio.to_thread
from anyio.abc import ByteStream

from sandbox.errors import InvalidArgument, SandboxError, SandboxLost
from sandbox.server_files import ServerFiles
from sandbox.spec import ImageChoice, ImageRequest, Lifetime, SandboxInfo, SandboxSpec

Progress = Callable[[str], None]
"""Callback for progress, one short line each. May be called from any task of the event loop."""
OVERTIME_S = 120.0
"""Time past its maximum age after which a sandbox is removed: a call that is running then gets a minute."""


class Sandbox(ABC):
    """A running sandbox. `connect` opens streams to its guest."""

    backend: ClassVar[str]
    isolation: str
    """One line for people and models on the protection of the host from programs inside."""
    place: str
    image: str = ""
    can_cut_network: ClassVar[bool] = True
    """True if `cut_network` takes away a network that was for set-up only."""
    is_in_place: bool = False
    """True if its workspace is no copy: others may use the files, and they outlive the sandbox."""
    environ: Mapping[str, str] = MappingProxyType({})
    """Environment variables of programs, besides those of the session."""

    @property
    def has_network(self) -> bool:
        """True if programs in it can reach a network now."""
        return True

    @abstractmethod
    async def connect(self) -> ByteStream:
        """Open a stream to the guest. Any number may be open, one after another or at once.

        Raises:
            SandboxLost: the sandbox is gone.
        """

    @property
    def is_guarded(self) -> bool:
        """True if `make_roots` works here."""
        return False

    async def make_roots(self, folder: str) -> None:
        """Move all that is in a folder of the workspace into the workspace, and make it root's.

        Programs can neither change nor remove it then. `folder` is relative.

        Raises:
            SandboxError: it failed, or the sandbox is gone.
        """
        raise SandboxError("This sandbox has no files that programs can't change.")

    async def run_apart(self, arguments: Sequence[str], folders: Sequence[str]) -> ByteStream | None:
        """Run a Python beside the guest, as the user of programs, and return its standard streams.

        `arguments` are followed by `folders` and all others that programs can write to. None if this sandbox can't
        do it, or programs can write elsewhere.

        Raises:
            SandboxLost: the sandbox is gone.
        """
        return None

    def image_folder(self, folder: PurePosixPath) -> AbstractAsyncContextManager[Iterator[bytes]]:
        """Open a folder of the sandbox's image as a tar stream of its content.

        Raises:
            InvalidArgument: there is no such folder.
        """
        raise InvalidArgument("Without isolation there are no images.", "Give the path of the repository.")

    @abstractmethod
    async def assign(self, key: str, owner: str, source: str) -> None:
        """Assign a sandbox that was started ahead to its session: from now on `find` returns it to `owner` only.

        Raises:
            SandboxLost: the sandbox is gone.
        """

    async def cut_network(self) -> None:  # noqa: B027 - not every backend has one to cut
        """Remove the network that set-up commands had. Does nothing if there was none.

        Raises:
            SandboxLost: the sandbox is gone.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Remove the sandbox and all its processes. Idempotent, at most 2 s, never raises when it is gone."""


class Backend(ABC):
    """Starts and finds sandboxes of one kind."""

    name: ClassVar[str]

    @property
    def can_guard(self) -> bool:
        """True if sandboxes with `SandboxSpec.guarded` keep programs from changing read-only files."""
        return False

    @abstractmethod
    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Hold the resources that all its sandboxes share (a client, a task group) while it is open."""

    @abstractmethod
    async def probe(self) -> str:
        """Describe the backend in one line (engine and version).

        Raises:
            BackendUnavailable: the hint says how to fix it.
        """

    async def check(self) -> None:
        """Check that it can be used.

        Raises:
            BackendUnavailable: the hint says how to fix it.
        """
        await self.probe()

    async def choose(self, wanted: ImageRequest, progress: Progress) -> ImageChoice:
        """Choose the image for a session. It is built or pulled if it is missing.

        Raises:
            BackendUnavailable: there is none, and none can be built or pulled.
        """
        return ImageChoice()

    @abstractmethod
    async def start(self, spec: SandboxSpec, progress: Progress) -> Sandbox:
        """Start a sandbox with the guest in it.

        Raises:
            BackendUnavailable: no engine, no such image, start failed; nothing is left behind.
        """

    @abstractmethod
    async def living(self) -> Sequence[SandboxInfo]:
        """List all running sandboxes, of every server."""

    async def find(self, owner: str, key: str | None = None) -> Sequence[SandboxInfo]:
        """List the running sessions of `owner`, of every server, except those past their maximum age."""
        return [
            one
            for one in await self.living()
            if one.owner == owner and key in (None, one.key) and not one.pooled and one.left_s > 0
        ]

    async def of_user(self, user: str) -> Sequence[SandboxInfo]:
        """List all sandboxes that servers of `user` started, assigned to an owner or not."""
        return [one for one in await self.living() if one.user == user]

    async def sweep(self, user: str) -> None:
        """Remove sandboxes past their maximum age, and those whose server is gone for longer than they may go on alone.

        A backend may also remove unfinished ones of servers that were killed.
        """
        found = await self.of_user(user)
        over = [one for one in found if not one.pooled and one.left_s < -OVERTIME_S]
        if (servers := self.server_files) is not None:
            orphans = await anyio.to_thread.run_sync(servers.orphans, found)
            over += [one for one in orphans if one not in over]
        for one in over:
            await self.remove(one)

    async def unserved(self, user: str) -> Sequence[SandboxInfo]:
        """List sandboxes past their maximum age, and those whose servers are gone and that were not kept on purpose."""
        found = await self.of_user(user)
        over = [one for one in found if not one.pooled and one.left_s < -OVERTIME_S]
        if (servers := self.server_files) is not None:
            gone = await anyio.to_thread.run_sync(servers.unserved, found)
            over += [one for one in gone if one not in over]
        return over

    async def size(self, found: SandboxInfo) -> int:
        """Bytes on the disk that its removal frees; 0 if that is not known."""
        return 0

    @property
    def server_files(self) -> ServerFiles | None:
        """Files that tell which servers live; None if sandboxes always end with their server."""
        return None

    async def beat(self) -> None:
        """Show that this server lives. Called at intervals of `BEAT_S`."""
        if (servers := self.server_files) is not None:
            await anyio.to_thread.run_sync(servers.beat)

    async def keep(self, found: SandboxInfo, lifetime: Lifetime) -> None:
        """Note that this server has taken over a sandbox: no sweep removes it while both live."""
        if (servers := self.server_files) is not None:
            await anyio.to_thread.run_sync(servers.note, found.place, lifetime)

    async def remove(self, found: SandboxInfo) -> None:
        """Remove a sandbox that `of_user` returned, in use or not."""
        try:
            sandbox = await self.adopt(found)
        except SandboxLost:
            return  # it has ended by itself meanwhile
        await sandbox.aclose()

    @abstractmethod
    async def adopt(self, found: SandboxInfo) -> Sandbox:
        """Take over a sandbox that `find` returned.

        Raises:
            SandboxLost: it is gone.
        """
