"""Compiles the guest with the Python of an image, in a separate container.

Without it a cold `start_session` takes 200 ms longer (1481 instead of 1276 ms on a busy machine, where a bare
container takes 765), and the first stop of its program 240 ms longer (525 instead of 281).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio
from anyio.abc import ByteReceiveStream

from sandbox.concurrency import KeyedLocks
from sandbox.docker.attach import attach
from sandbox.docker.bytecode_cache import MAX_BYTES, BytecodeCache, is_whole
from sandbox.docker.container import COMPILING, HOME, USER, config_of, host_config
from sandbox.docker.engine import Engine, Image
from sandbox.errors import PdboxError
from sandbox.spec import Limits, SandboxSpec
from sandbox.transport import guest_bundle

T = TypeVar("T")
log = logging.getLogger(__name__)

COMPILE_S = 60.0
"""Time limit for compiling, on a loaded machine."""
_LIMITS = Limits(
    memory_bytes=256 << 20,
    cpus=1.0,
    pids=64,
    workspace_bytes=16 << 20,
    tmp_bytes=16 << 20,
    home_bytes=16 << 20,
)


class InThread(Protocol):
    """Runs a blocking call in a thread."""

    async def __call__(self, function: Callable[..., T], *args: Any) -> T: ...


class Compiler:
    """Compiles once for each image. A failure is only logged, since compiling just saves time."""

    def __init__(self, environ: Mapping[str, str], call: InThread, runtime: str = "") -> None:
        """`environ`: environment that locates the user's cache. `runtime`: as in `SandboxSpec`."""
        self._environ = environ
        self._runtime = runtime
        self._call = call
        self._locks = KeyedLocks()
        self._known: dict[str, bool] = {}
        """Image id to True if there is bytecode for it."""

    def package(self, image: Image) -> bytes:
        """Build the guest package for a sandbox of `image`, with bytecode if there is some. Blocks."""
        return guest_bundle.package(self._cache().read(image.id))

    async def compile(self, engine: Engine, image: Image, user: str = "") -> bool:
        """Compile the guest unless the cache has it; False on failure.

        `user`: hash of the user who may remove the container if this server can't.
        """
        if not image.id:
            return False
        async with self._locks.hold(image.id):
            if image.id not in self._known:
                cache = await self._call(self._cache)
                if not await self._call(cache.read, image.id):
                    await self._compile(engine, image, user, cache)
                self._known[image.id] = bool(await self._call(cache.read, image.id))
            return self._known[image.id]

    def _cache(self) -> BytecodeCache:
        return BytecodeCache.of(self._environ, guest_bundle.digest(guest_bundle.GUEST))

    async def _compile(self, engine: Engine, image: Image, user: str, cache: BytecodeCache) -> None:
        try:
            data = await self._compile_in_container(engine, image, user)
        except (PdboxError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
            log.info("the guest was not compiled for %s: %s", image.reference, exc)
            return
        if is_whole(data):
            await self._call(cache.write, image.id, data)
        else:
            log.info("the guest was not compiled for %s", image.reference)

    async def _compile_in_container(self, engine: Engine, image: Image, user: str) -> bytes:
        """Compile the guest in a container of the image and return the bytecode."""
        spec = SandboxSpec("", "", user=user, limits=_LIMITS, runtime=self._runtime)
        config = config_of(spec, image, guest_bundle.compile_arguments(HOME))
        config["labels"] = {COMPILING: "1", USER: user}
        create = partial(engine.create, None, config, host_config(spec))
        container = await self._call(create)
        try:
            stream = await attach(engine.endpoint(), engine.api, container)
            try:
                await self._call(engine.start, container)
                with anyio.fail_after(COMPILE_S):
                    await stream.send(guest_bundle.package())
                    return await _read_all(stream)
            finally:
                await anyio.aclose_forcefully(stream)
        finally:
            with anyio.CancelScope(shield=True):
                await self._call(engine.remove, container)


async def _read_all(stream: ByteReceiveStream) -> bytes:
    """Read until EOF, or until more than MAX_BYTES have arrived."""
    data = b""
    with contextlib.suppress(anyio.EndOfStream):
        while len(data) <= MAX_BYTES:
            data += await stream.receive()
    return data
