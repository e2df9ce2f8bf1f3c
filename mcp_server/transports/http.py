"""Serving over HTTP: streamable HTTP at `/mcp` and the old SSE transport at `/sse`, in one app."""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import NoReturn

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_server.auth.authentication import build_access
from mcp_server.bodies import MAX_BYTES, BodyLimit
from mcp_server.connection_options import ConnectionMiddleware, ConnectionOptions
from mcp_server.server import PdboxServer, build_server
from mcp_server.sessions.store import SessionStore
from mcp_server.settings import Settings
from mcp_server.transports.admission import OF_ALL, PER_PRINCIPAL, Admission
from mcp_server.transports.delivery import DeliveryMiddleware
from mcp_server.transports.health import HEALTH, READY, Readiness, health
from mcp_server.transports.scoring import SCORE, ScoreRoute
from mcp_server.transports.session_end import SessionEnd
from mcp_server.transports.shutdown import run_until_shutdown
from mcp_server.transports.tcp_connections import Connections, Limits, limits_of
from sandbox.errors import InvalidArgument, PdboxError

log = logging.getLogger(__name__)

MCP = "/mcp"
SSE = "/sse"
ANSWER_S = 0.3
"""Time for sending the answers of interrupted calls, once their sessions are closed."""
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


async def serve(store: SessionStore, settings: Settings, as_json: bool) -> NoReturn:
    """Serve any number of clients until a signal comes, then end the process.

    Raises:
        InvalidArgument: an address that others reach, without tokens.
        PdboxError: the address is not available.
    """
    allowed = build_access(settings)
    listener = listen(settings, protected=allowed is not None)
    app = build_app(build_server(store, allowed, ConnectionOptions.of(settings)), store, settings)
    server = Server(app, limits_of(settings), lambda: _announce(settings, listener, as_json))
    finished = anyio.Event()

    async def work(_: anyio.Event) -> None:
        try:
            await server.serve(sockets=[listener])
        finally:
            finished.set()

    async def close() -> None:
        server.should_exit = True
        if server.started:  # else the store is not open yet
            await store.aclose()
        # Streams that clients keep open may last for ever; answers are on their way.
        with anyio.move_on_after(ANSWER_S):
            await finished.wait()

    await run_until_shutdown(work, close)


def build_app(server: PdboxServer, store: SessionStore, settings: Settings) -> Starlette:
    """The ASGI app for `server`: both transports, both eras of the protocol, health. `store` is open while it runs."""
    security = security_of(settings)
    http = server.streamable_http_app(
        streamable_http_path=MCP,
        max_request_body_size=MAX_BYTES,
        transport_security=security,
        host=settings.host,
    )
    sse = server.sse_app(
        sse_path=SSE, max_request_body_size=MAX_BYTES, transport_security=security, host=settings.host
    )
    readiness = Readiness(store.probe)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        # Not the SDK's lifespan: over SSE it is entered once per connection.
        async with store, readiness, server.session_manager.run():
            yield

    scoring = ScoreRoute(store, needs_token=bool(http.user_middleware))
    # With an issuer both have the route of its metadata; the first one counts.
    routes = [
        *http.routes,
        *sse.routes,
        Route(HEALTH, health),
        Route(READY, readiness.answer),
        Route(SCORE, scoring.answer, methods=["POST"]),
    ]
    usual = PER_PRINCIPAL if http.user_middleware else OF_ALL
    sessions = settings.max_protocol_sessions or usual
    middleware = [
        Middleware(_Guard, security),
        *_cors(settings),
        Middleware(ConnectionMiddleware, ConnectionOptions.of(settings), SSE),
        *http.user_middleware,
        Middleware(Admission, path=MCP, sessions=sessions, requests=limits_of(settings).requests),
        Middleware(SessionEnd, path=MCP, named=server.named, needs_token=bool(http.user_middleware)),
        Middleware(BodyLimit),
        Middleware(DeliveryMiddleware),
    ]
    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)


def security_of(settings: Settings) -> TransportSecuritySettings:
    """Allowed values of `Host` and `Origin`; checked on every address.

    A page of any site can have its own name resolve to this machine, but then `Host` and `Origin` name that site.
    """
    own = [] if settings.host in ("0.0.0.0", "::", "") else [_bracketed(settings.host)]
    names = dict.fromkeys([*_LOOPBACK, *own, *settings.allowed_host])
    return TransportSecuritySettings(
        allowed_hosts=[pattern for name in names for pattern in (name, f"{name}:*")],
        allowed_origins=[f"http://{name}:*" for name in _LOOPBACK] + settings.allowed_origin,
    )


class _Guard:
    """Checks `Host` and `Origin` before anything else does: the SDK's SSE route would log each refusal as a crash."""

    def __init__(self, app: ASGIApp, security: TransportSecuritySettings) -> None:
        self._app = app
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Orchestrators ask for health by address, and it tells nobody anything.
        if scope["type"] == "http" and scope["path"] not in (HEALTH, READY):
            refused = await self._security.validate_request(Request(scope, receive))
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _cors(settings: Settings) -> list[Middleware]:
    """Lets the pages of `--allowed-origin` read answers: without it their browser would not let them."""
    if not settings.allowed_origin:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origin,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
        )
    ]


class Server(uvicorn.Server):
    """uvicorn with limited connections and an announced address; `shutdown` handles the signals."""

    def __init__(self, app: ASGIApp, limits: Limits, announce: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="on",
                http=Connections(limits).protocol(),
                backlog=limits.backlog,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                # Longer than we take to leave: it would log each stream that it cuts as a crash.
                timeout_graceful_shutdown=3,
            )
        )
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        if sys.platform == "win32":
            with super().capture_signals():
                yield
        else:
            yield


def listen(settings: Settings, *, protected: bool) -> socket.socket:
    """A listening TCP socket on `--host` and `--port`.

    Raises:
        InvalidArgument: no such address; one that others reach while the server is not `protected` by tokens.
        PdboxError: the address is in use or may not be used.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host or None, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as exc:
        raise InvalidArgument(f"No such address: {settings.host}.") from exc
    if not protected and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise InvalidArgument(
            f"{settings.host} can be reached from other machines, and a client runs programs here.",
            "Add --token-file (or --oauth-issuer), or stay on 127.0.0.1.",
        )
    try:
        listener = socket.create_server(address[:2], family=family)
    except OSError as exc:
        raise PdboxError(
            f"{settings.host}:{settings.port} is not available: {exc.strerror}.",
            "--port 0 takes any free port.",
        ) from exc
    # asyncio sets TCP_NODELAY only on sockets that say which protocol they are of, and accepted ones say what this one does.
    # Without it, an answer's second segment waits for the client's delayed acknowledgement: 40 ms a call.
    return socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, listener.detach())


def _announce(settings: Settings, listener: socket.socket, as_json: bool) -> None:
    """One line on stderr: the last word is the URL; with `--json`, or where logs are JSON, an object."""
    base = f"http://{_bracketed(settings.host or '0.0.0.0')}:{listener.getsockname()[1]}"
    url = base + (SSE if settings.transport == "sse" else MCP)
    line = (
        json.dumps({"transport": settings.transport, "url": url})
        if as_json or settings.log_format == "json"
        else f"pdbox: serving {url}"
    )
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - not stdout


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
