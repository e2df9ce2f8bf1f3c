"""Serve MCP to one client on stdin and stdout, or with `--transport http` to several over HTTP.

A client starts the server itself: its configuration names the command `pdbox` with the arguments `serve --repo FOLDER`.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from mcp_server import __version__, custom_tools
from mcp_server.backends import candidates, check_place, open_backend
from mcp_server.connection_options import ConnectionOptions
from mcp_server.observability import tracing
from mcp_server.server import describe_tools, owner_of
from mcp_server.sessions.admission import SessionLimits
from mcp_server.sessions.kept_edits import KeptEdits
from mcp_server.sessions.store import SessionStore
from mcp_server.settings import Settings
from mcp_server.transports import stdio
from sandbox.errors import InvalidArgument
from sandbox.image_names import AllowedImages
from sandbox.opening.kept_setups import KeptSetups
from sandbox.opening.policy import Policy, Sources
from sandbox.opening.request import SessionRequest
from sandbox.server_files import has_dead_servers
from sandbox.spec import Lifetime, Limits
from tools._catalog import add as add_tool
from tools._finish import TOOL as FINISH

if TYPE_CHECKING:
    from mcp_server.tasks.folder import Task
    from mcp_server.trajectories.recorder import Recorder

ALONE, TOGETHER, PRINCIPALS = SessionLimits(10), SessionLimits(50), SessionLimits(50, each=10)
"""Sessions by default: of the one client on stdio, of clients that are not told apart, and of those that are."""
ONE = SessionLimits(1)
"""Sessions on files that are worked on where they are."""


SETTINGS = tuple(Settings.model_fields)
USAGE = "pdbox serve [OPTIONS]"
EPILOG = (
    "Each option can also be set by a variable: --max-sessions by PDBOX_MAX_SESSIONS, on or off by 1 or 0, several values "
    "one a line. With --json, the URL of an HTTP server is told as a JSON object on stderr."
)
_AT_A_TERMINAL = (
    "pdbox: waiting for an MCP client on stdin, which is a terminal. A client starts this command itself: add `pdbox serve "
    "--repo FOLDER` to its configuration. `pdbox demo` shows a session. Ctrl-D ends the server."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """It has none but the settings."""


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Serve until the client leaves or a signal comes; ends the process by itself."""
    tracing.configure(args.environ, __version__)
    # Threads that compute give way to the event loop after a millisecond rather than five: a call takes several turns of it.
    sys.setswitchinterval(0.001)
    custom_tools.load(settings.tools_from)
    if settings.finish:
        add_tool(FINISH)
    candidates(settings)  # refuses a backend that is not allowed, before any client waits for it
    if settings.transport == "stdio":
        if sys.stdin.isatty():
            print(_AT_A_TERMINAL, file=sys.stderr)
        anyio.run(stdio.serve, stdio_store(settings), ConnectionOptions.of(settings))
    else:
        from mcp_server.transports import http  # a web server, which stdio can do without

        anyio.run(http.serve, http_store(settings), settings, args.json)
    return 0


def stdio_store(settings: Settings) -> SessionStore:
    """The store for one client on stdio. Its repository is the one given; without any --root, the working directory.

    Raises:
        InvalidArgument: no such repository or root.
    """
    here = None if settings.root or settings.task or settings.container else working_directory()
    return _store(
        settings,
        _resolve_existing(settings.repo) if settings.repo else here,
        default_session=True,
        usual=ALONE,
    )


def http_store(settings: Settings) -> SessionStore:
    """The store for any number of clients. They may have the repository and the roots that are given, and no other.

    Raises:
        InvalidArgument: no such repository or root.
    """
    usual = PRINCIPALS if settings.token_file or settings.oauth_issuer else TOGETHER
    return _store(
        settings,
        _resolve_existing(settings.repo) if settings.repo else None,
        default_session=is_in_place(settings),
        usual=usual,
    )


def _store(
    settings: Settings, repo: Path | None, *, default_session: bool, usual: SessionLimits
) -> SessionStore:
    check_place(settings)
    if is_in_place(settings):
        usual = ONE
    tasks = [_resolve_existing(root) for root in settings.tasks]
    task = _task(settings, tasks)
    request = defaults(settings, repo)
    return SessionStore(
        partial(open_backend, settings),
        policy(settings, repo),
        replace(request, task=task.name) if task else request,
        allowed=session_limits(settings, usual),
        default_session=default_session,
        redact=settings.redact,
        redact_names=settings.redact_names,
        user=owner_of(),
        pool=settings.pool,
        queue_s=settings.queue_timeout_s,
        find_task=partial(_find_task, tasks, task and task.folder),
        has_leftovers=has_dead_servers,
        recorder=_recorder(settings),
        edits=None  # they are in the files themselves
        if is_in_place(settings)
        else KeptEdits.in_state_folder(os.environ, settings.session_max_age_s),
    )


def _recorder(settings: Settings) -> Recorder | None:
    if not settings.record:
        return None
    from mcp_server.trajectories.recorder import Environment, Recorder  # most servers record nothing

    tools = partial(describe_tools, settings.profile, data=False)
    return Recorder.open(settings.record, Environment(__version__, tools))


def is_in_place(settings: Settings) -> bool:
    """True if files are worked on where they are: there is one session then, which the first call opens."""
    return settings.in_place or settings.container is not None


def _task(settings: Settings, roots: list[Path]) -> Task | None:
    """The task that the server is started for.

    Raises:
        InvalidArgument, NotFound: there is no such task, or a repository is given, too.
    """
    if settings.task is None:
        return None
    if settings.repo is not None:
        raise InvalidArgument("--task and --repo are given.", "A task has its own repository.")
    from mcp_server.tasks.folder import FILE, load_task

    folder = Path(settings.task).expanduser()
    return load_task(folder) if (folder / FILE).is_file() else _find_task(roots, None, settings.task)


def _find_task(roots: list[Path], folder: Path | None, name: str) -> Task:
    """Load a task by name: the one in `folder`, one below `roots`, or one that comes with pdbox."""
    from mcp_server.tasks.catalog import TaskCatalog

    return TaskCatalog(roots, [folder] if folder else []).find(name)


def session_limits(settings: Settings, usual: SessionLimits) -> SessionLimits:
    """Limits for the number of sessions; `usual` if the settings give none."""
    total = settings.max_sessions or usual.total
    return SessionLimits(
        total, settings.max_sessions_per_principal or (usual.each and min(usual.each, total))
    )


def policy(settings: Settings, repo: Path | None) -> Policy:
    """The policy for requests of clients."""
    roots = [_resolve_existing(root) for root in settings.root]
    if repo is not None:
        roots.append(repo)
    return Policy(
        roots=tuple(roots),
        limits=Limits(
            memory_bytes=settings.memory,
            cpus=settings.cpus,
            pids=settings.pids,
            workspace_bytes=settings.workspace_size,
            home_bytes=settings.home_size,
            tmp_bytes=settings.tmp_size,
        ),
        lifetime=Lifetime(
            idle_s=settings.session_ttl_s,
            max_age_s=settings.session_max_age_s,
            # Kept ones do without a server until they are idle for too long.
            grace_s=settings.session_max_age_s if settings.keep_sessions else settings.session_grace_s,
            kept=settings.keep_sessions,
        ),
        allow_network=settings.network,
        setup_network=settings.setup_network,
        setups=KeptSetups.in_state_folder(os.environ, settings.keep_setups),
        sources=Sources(settings.index_url, _certificates(settings.ca_bundle)),
        images=AllowedImages.of(settings.image, settings.allow_image),
        mounts=tuple(_pair(mount, ":", "--mount HOST:INSIDE") for mount in settings.mount),
    )


def defaults(settings: Settings, repo: Path | None) -> SessionRequest:
    """Defaults for sessions, from the operator's settings."""
    return SessionRequest(
        repo=str(repo) if repo else None,
        in_place=_name_of_place(settings, repo),
        ref=settings.ref,
        image=settings.image,
        python=settings.python,
        entrypoint=settings.entrypoint,
        debug_entrypoint=settings.debug_entrypoint,
        setup=tuple(settings.setup) or None,
        env=dict(_pair(item, "=", "--env NAME=VALUE") for item in settings.env),
    )


def _name_of_place(settings: Settings, repo: Path | None) -> str:
    if settings.container is not None:
        return f"the container {settings.container}"
    if settings.in_place and repo is None:
        raise InvalidArgument("--in-place needs the folder to work on.", "--repo names it.")
    return str(repo) if settings.in_place else ""


def _certificates(file: Path | None) -> bytes:
    if file is None:
        return b""
    try:
        data = file.expanduser().read_bytes()
    except OSError as exc:
        raise InvalidArgument(f"--ca-bundle {file} can't be read: {exc.strerror}.") from exc
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise InvalidArgument(f"There is no certificate in --ca-bundle {file}.", "It takes a PEM file.")
    return data


def _resolve_existing(path: Path) -> Path:
    real = path.expanduser().resolve()
    if not real.exists():
        raise InvalidArgument(f"No such folder: {path}.", "--repo and --root take folders that exist.")
    return real


def working_directory() -> Path | None:
    """None where desktop clients start their servers: nobody means to debug `/` or all of a home."""
    here = Path.cwd().resolve()
    return None if here == Path(here.anchor) or here == Path.home().resolve() else here


def _pair(text: str, separator: str, form: str) -> tuple[str, str]:
    left, found, right = text.partition(separator)
    if not (left and found):
        raise InvalidArgument(f"{text!r} is not of the form {form}.")
    return left, right
