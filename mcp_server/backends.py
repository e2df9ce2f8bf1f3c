"""Choice of the backend. Their modules are imported at first use, because `initialize` must not wait for them."""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mcp_server.settings import Settings
from sandbox.backend import Backend
from sandbox.errors import BackendUnavailable, InvalidArgument

log = logging.getLogger(__name__)

CONTAINER, IN_PLACE = "container", "in place"
_AUTOMATIC = ("docker", "bubblewrap")
_OF_SANDBOXES = (
    "backend",
    "runtime",
    "image",
    "root",
    "ref",
    "task",
    "tasks",
    "mount",
    "network",
    "setup_network",
    "pool",
    "keep_sessions",
)
"""Settings that mean nothing without a sandbox of pdbox's own."""
_MODULES = {
    "docker": "sandbox.docker.backend",
    "bubblewrap": "sandbox.bubblewrap.backend",
    "process": "sandbox.process",
}


def create_backend(name: str) -> Backend:
    """Create the backend of that name; it is not open yet."""
    return importlib.import_module(_MODULES[name]).BACKEND()


def _create(name: str, settings: Settings) -> Backend:
    if name == CONTAINER:
        assert settings.container is not None
        from sandbox.docker.in_container import ContainerBackend

        return ContainerBackend(settings.container, settings.workdir)
    if name == IN_PLACE:
        from sandbox.process import ProcessBackend

        return ProcessBackend(in_place=(settings.repo or Path()).expanduser().resolve())
    if name == "docker" and settings.runtime:
        from sandbox.docker.backend import DockerBackend

        return DockerBackend(runtime=settings.runtime)
    return create_backend(name)


def check_place(settings: Settings) -> None:
    """Check the settings of a server that works on files where they are.

    Raises:
        InvalidArgument: others contradict them.
    """
    flag = "--container" if settings.container is not None else "--in-place"
    if settings.workdir is not None and settings.container is None:
        raise InvalidArgument("--workdir is given without --container.", "It is a folder of that container.")
    if settings.container is None and not settings.in_place:
        return
    others = [*_OF_SANDBOXES, *(("repo", "in_place", "python") if settings.container is not None else ())]
    for name in others:
        if getattr(settings, name) not in (None, False, 0, "", [], "auto"):
            raise InvalidArgument(
                f"{flag} and --{name.replace('_', '-')} are given.",
                f"With {flag} there is no sandbox to start: the files are worked on where they are.",
            )


def candidates(settings: Settings) -> list[str]:
    """Names of the backends to try, in order. Never one with less isolation than was asked for.

    Raises:
        InvalidArgument: no isolation, without the flag that admits it.
    """
    check_place(settings)
    if settings.container is not None:
        return [CONTAINER]
    if settings.in_place:
        return [IN_PLACE]
    if settings.backend == "process" and not settings.unsafe_no_isolation:
        raise InvalidArgument(
            "The process backend runs programs on this machine without any isolation.",
            "Add --unsafe-no-isolation if you trust the repository and the client.",
        )
    if settings.runtime and settings.backend not in ("auto", "docker"):
        raise InvalidArgument(
            f"--runtime and --backend {settings.backend} are given.", "Only Docker has runtimes."
        )
    if settings.backend == "auto":
        return ["docker"] if settings.runtime else list(_AUTOMATIC)
    return [settings.backend]


@asynccontextmanager
async def open_each(settings: Settings) -> AsyncGenerator[tuple[Mapping[str, Backend], Mapping[str, str]]]:
    """All kinds of sandboxes that this machine can have, or the one that `settings` name; and why others can't be asked.

    They are to be looked through: none is started, so each kind may be among them.
    """
    found: dict[str, Backend] = {}
    reasons: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for name in _MODULES if settings.backend == "auto" else [settings.backend]:
            backend = create_backend(name)
            try:
                await stack.enter_async_context(backend.lifespan())
                await backend.check()
                found[name] = backend
            except BackendUnavailable as exc:
                reasons[name] = str(exc)
        yield found, reasons


@asynccontextmanager
async def open_backend(settings: Settings) -> AsyncGenerator[Backend]:
    """The backend that `settings` name, or with `auto` the first that works, while it is open.

    Raises:
        BackendUnavailable: none works; says what each lacks.
    """
    reasons: list[str] = []
    for name in candidates(settings):
        backend = _create(name, settings)
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
                if settings.backend != "auto" or name not in _AUTOMATIC:
                    raise
                reasons.append(f"{name}: {exc}")
                continue
            yield backend
            return
    raise BackendUnavailable(
        "No sandbox is available here.", " ".join([*reasons, "`pdbox doctor` tells more."])
    )
