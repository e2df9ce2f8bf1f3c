"""Choice of the backend. Their modules are imported at first use, because `initialize` must not wait for them."""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from mcp_server.settings import Settings
from sandbox.backend import Backend
from sandbox.errors import BackendUnavailable, InvalidArgument

log = logging.getLogger(__name__)

_AUTOMATIC = ("docker", "bubblewrap")
_MODULES = {
    "docker": "sandbox.docker.backend",
    "bubblewrap": "sandbox.bubblewrap.backend",
    "process": "sandbox.process",
}


def create_backend(name: str) -> Backend:
    """Create the backend of that name; it is not open yet."""
    return importlib.import_module(_MODULES[name]).BACKEND()


def candidates(settings: Settings) -> list[str]:
    """Names of the backends to try, in order. Never one with less isolation than was asked for.

    Raises:
        InvalidArgument: no isolation, without the flag that admits it.
    """
    if settings.backend == "process" and not settings.unsafe_no_isolation:
        raise InvalidArgument(
            "The process backend runs programs on this machine without any isolation.",
            "Add --unsafe-no-isolation if you trust the repository and the client.",
        )
    return list(_AUTOMATIC) if settings.backend == "auto" else [settings.backend]


@asynccontextmanager
async def open_backend(settings: Settings) -> AsyncGenerator[Backend]:
    """The backend that `settings` name, or with `auto` the first that works, while it is open.

    Raises:
        BackendUnavailable: none works; says what each lacks.
    """
    reasons: list[str] = []
    for name in candidates(settings):
        backend = create_backend(name)
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(backend.lifespan())
                await backend.check()
                if name == "bubblewrap" and settings.setup_network and not settings.network:
                    raise BackendUnavailable(
                        "bubblewrap can't take a network away after set-up.",
                        "Use Docker, or leave --setup-network out.",
                    )
                log.info("backend %s", name)
            except BackendUnavailable as exc:
                if settings.backend != "auto":
                    raise
                reasons.append(f"{name}: {exc}")
                continue
            yield backend
            return
    raise BackendUnavailable(
        "No sandbox is available here.", " ".join([*reasons, "`pdbox doctor` tells more."])
    )
