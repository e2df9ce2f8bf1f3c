"""Results of set-up commands, kept on this machine: the next session that would run them the same way starts with them.

A result is what the commands changed in the folders that programs can write to, as a tar archive which this machine never
unpacks. Its key is computed before any of the commands runs, of all that they can depend on but time and network.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import anyio
from anyio.abc import ByteStream

from sandbox.errors import SandboxError
from sandbox.host_files import in_thread, open_regular, send_pieces
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session
from sandbox.spec import SandboxSpec
from sandbox.transport import guest_bundle
from sandbox.user_folders import state_folder

log = logging.getLogger(__name__)

MAX_AGE_S = 7 * 24 * 3600.0
"""Time after which commands run again, since a package index has other versions then."""
MAX_FILES = 64
TRANSFER_S = 120.0
_FORMAT = 1
_PIECE = 1 << 20
_WHOLE = b"\npdbox: whole\n"
_MARK = "/tmp/.pdbox-setup"
_SET_MARK = f"(sleep 0.02 || sleep 1) 2>/dev/null; : > {_MARK}"
"""Sets the time from which on changes count; the clock of files is up to 10 ms late."""
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth|cookie", re.IGNORECASE)
_SECRET_URL = re.compile(r"://[^/\s@]{1,500}@")


@dataclass(frozen=True)
class KeptSetups:
    """The archives, below `folder`. Beyond `max_bytes` or `MAX_FILES` those go that were not used for longest."""

    folder: Path
    max_bytes: int
    worth_s: float = 0.5
    """Quicker set-ups are not kept: starting with a kept one takes 0.2 s."""

    @classmethod
    def in_state_folder(cls, environ: Mapping[str, str], max_bytes: int) -> KeptSetups | None:
        """Keep them where programs of this user keep their state; None if there is no such place, or no byte allowed."""
        state = state_folder(environ)
        return cls(state / "setups", max_bytes) if state is not None and max_bytes else None

    def open(self, key: str) -> BinaryIO | None:
        """Open an archive, and note its use. Blocks."""
        file = self.folder / key
        try:
            stream = os.fdopen(open_regular(file), "rb")
        except OSError:
            return None
        # The time of access is set by hand: many systems don't keep it. That of the content tells its age.
        made = os.fstat(stream.fileno()).st_mtime
        if time.time() - made > MAX_AGE_S or not _is_whole(stream):
            stream.close()
            return None
        with contextlib.suppress(OSError):
            os.utime(file, (time.time(), made))
        return stream

    def begin(self) -> tuple[BinaryIO, Path]:
        """Open a file for a new archive. Blocks."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=self.folder, prefix="draft-")
        return os.fdopen(descriptor, "wb"), Path(draft)

    def finish(self, draft: Path, key: str) -> None:
        """Give a new archive its key, and remove old ones. Blocks."""
        draft.replace(self.folder / key)
        self._prune()

    def discard(self, key: str) -> None:
        """Remove an archive. Blocks."""
        with contextlib.suppress(OSError):
            (self.folder / key).unlink()

    def _prune(self) -> None:
        found: list[tuple[float, int, Path]] = []
        for file in self.folder.iterdir():
            with contextlib.suppress(OSError):  # another server may do the same
                status = file.stat()
                last_use = 0.0 if time.time() - status.st_mtime > MAX_AGE_S else status.st_atime
                found.append((last_use, status.st_size, file))
        total = 0
        for number, (last_use, size, file) in enumerate(sorted(found, reverse=True)):
            total += size
            if number >= MAX_FILES or total > self.max_bytes or not last_use:
                with contextlib.suppress(OSError):
                    file.unlink()


@dataclass(frozen=True)
class Reuse:
    """All that the set-up of one session depends on, besides its commands and their environment."""

    kept: KeptSetups
    spec: SandboxSpec
    owner: str
    content: str
    """Digest of the repository."""
    ref: str

    @classmethod
    def of(
        cls,
        kept: KeptSetups | None,
        spec: SandboxSpec,
        request: SessionRequest,
        owner: str,
        content: str | None,
    ) -> Reuse | None:
        """None if its set-up must run: it may depend on, or write, what can't be compared."""
        if kept is None or not (content and owner and spec.image_id):
            return None
        if spec.mounts or spec.guarded or request.in_place:
            return None
        return cls(kept, spec, owner, content, request.ref or "")

    def key(self, commands: Sequence[str], env: Mapping[str, str]) -> str | None:
        """Hash everything that the commands depend on; None if there is a secret among it, which the result may hold."""
        if any(map(_SECRET_NAME.search, env)) or any(map(_SECRET_URL.search, [*commands, *env.values()])):
            return None
        spec = self.spec
        facts = [
            _FORMAT,
            self.owner,
            spec.user,
            self.content,
            self.ref,
            list(commands),
            sorted(env.items()),
            sorted(spec.env.items()),
            spec.image_id,
            str(spec.workdir),
            spec.network,
            spec.folders,
            asdict(spec.limits),
        ]
        return hashlib.sha256(json.dumps(facts).encode("utf-8", "surrogatepass")).hexdigest()

    async def load(self, session: Session, key: str) -> bool:
        """Repeat the changes of an earlier set-up; False if none is kept, or the sandbox can't.

        Raises:
            SandboxError: it failed halfway.
        """
        file = await in_thread(self.kept.open, key)
        if file is None:
            return False
        with file:
            stream = await self._start(session, "load")
            if stream is None:
                return False
            try:
                with anyio.fail_after(TRANSFER_S):
                    await send_pieces(_pieces(file), stream)
                    answer = await stream.receive()
            except (TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError):
                answer = b""
            finally:
                await anyio.aclose_forcefully(stream)
        if answer.strip() != b"done":
            await in_thread(self.kept.discard, key)
            raise SandboxError(
                "The set-up that was kept from an earlier session can't be used; it is removed now.",
                "Call start_session again: the set-up commands will run.",
            )
        return True

    async def mark(self, session: Session) -> bool:
        """Begin to note changes. False if that is not possible."""
        result = await session.run(_SET_MARK, timeout_s=30)
        return result.exit_code == 0

    async def save(self, session: Session, key: str) -> None:
        """Keep what has changed since `mark`. A failure is logged: the next session runs the commands."""
        try:
            with anyio.fail_after(TRANSFER_S):
                stream = await self._start(session, "save", _MARK)
                if stream is not None:
                    await self._store(stream, key)
        except (TimeoutError, OSError, SandboxError, anyio.BrokenResourceError) as exc:
            log.info("a set-up is not kept: %s", exc)

    async def _start(self, session: Session, *arguments: str) -> ByteStream | None:
        folders = [str(self.spec.workdir), *self.spec.folders]
        return await session.sandbox.run_apart(guest_bundle.setup_changes_arguments(*arguments), folders)

    async def _store(self, stream: ByteStream, key: str) -> None:
        file, draft = await in_thread(self.kept.begin)
        try:
            with file:
                await _receive(stream, file, self.kept.max_bytes)
            await in_thread(self.kept.finish, draft, key)
        finally:
            with anyio.CancelScope(shield=True):
                await in_thread(_unlink, draft)
                await anyio.aclose_forcefully(stream)


def _is_whole(stream: BinaryIO) -> bool:
    """True if it ends as it was written. It is at its beginning after that. Blocks."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - len(_WHOLE)))
    is_whole = stream.read() == _WHOLE
    stream.seek(0)
    return is_whole


def _unlink(draft: Path) -> None:
    draft.unlink(missing_ok=True)


async def _receive(stream: ByteStream, file: BinaryIO, limit: int) -> None:
    """Write the stream to the file.

    Raises:
        OSError: it is too large, or not whole.
    """
    size, waiting, end = 0, bytearray(), b""
    with contextlib.suppress(anyio.EndOfStream):
        while True:
            data = await stream.receive()
            size += len(data)
            if size > limit:
                raise OSError(f"it is larger than {limit} bytes")
            waiting += data
            end = (end + data)[-len(_WHOLE) :]
            if len(waiting) >= _PIECE:
                await in_thread(file.write, bytes(waiting))
                waiting.clear()
    await in_thread(file.write, bytes(waiting))
    if end != _WHOLE:
        raise OSError("it did not arrive as a whole")


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(_PIECE), b"")
