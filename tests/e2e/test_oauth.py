"""A server whose tokens come from an OAuth issuer, with a real issuer's metadata, keys and signatures."""

from __future__ import annotations

import base64
import hmac
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from mcp_server.auth.authentication import build_access
from mcp_server.auth.oauth import JwtVerifier
from mcp_server.settings import Settings
from sandbox.errors import InvalidArgument
from tests.bubblewrap import LOCAL
from tests.e2e.client import PDBOX, ToolFailed
from tests.e2e.served import OVER_HTTP, STREAMABLE, Server, Way, initialize, serving

pytestmark = pytest.mark.anyio

RESOURCE = "https://pdbox.example/mcp"
STATIC = "s" * 32


class Issuer:
    """Signs tokens, and publishes its metadata and keys."""

    def __init__(self) -> None:
        self.keys = {"one": rsa.generate_private_key(65537, 2048)}
        self.asked: list[str] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                body = issuer.pages().get(self.path)
                self.send_response(404 if body is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/realm"

    def pages(self) -> dict[str, Any]:
        return {
            "/.well-known/oauth-authorization-server/realm": {
                "issuer": self.url,
                "jwks_uri": self.url + "/keys",
            },
            "/realm/keys": {"keys": [self.jwk(kid) for kid in self.keys]},
        }

    def jwk(self, kid: str) -> dict[str, Any]:
        public = RSAAlgorithm.to_jwk(self.keys[kid].public_key(), as_dict=True)
        return {**public, "kid": kid, "use": "sig", "alg": "RS256"}

    def public_pem(self) -> bytes:
        return (
            self.keys["one"]
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        usual = {"iss": self.url, "aud": RESOURCE, "sub": "alice", "client_id": "ide", "scope": "debug"}
        claims = {**usual, "iat": now, "exp": now + 600, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, kid: str = "one", **changes: Any) -> str:
        return jwt.encode(self.claims(**changes), self.keys[kid], "RS256", {"kid": kid})

    @contextmanager
    def running(self) -> Iterator[Issuer]:
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            thread.join()
            self.server.server_close()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer().running() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def server(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repo = tmp_path_factory.mktemp("repo")
    (repo / "app.py").write_text("print(1)\n")
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"ci {STATIC}\nalice {STATIC}2\n")
    oauth = ["--oauth-issuer", issuer.url, "--oauth-resource", RESOURCE, "--oauth-scope", "debug"]
    with serving("--repo", str(repo), "--token-file", str(tokens), *oauth, *LOCAL) as server:
        yield server


def signed_with_the_public_key(issuer: Issuer) -> str:
    """Made by hand: the library refuses to."""
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "kid": "one"}, issuer.claims())]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.digest(issuer.public_pem(), text, "sha256")
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


async def status(server: Server, token: str) -> int:
    async with server.http(token, **STREAMABLE) as http:
        return (await http.post("/mcp", json=initialize())).status_code


async def test_clients_are_told_which_issuer_to_ask(server: Server, issuer: Issuer) -> None:
    async with server.http() as http:
        refused = await http.post("/mcp", json=initialize())
        place = "/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="https://pdbox.example{place}"' in refused.headers["www-authenticate"]
        metadata = (await http.get(place)).json()
        assert metadata["resource"] == RESOURCE
        assert metadata["authorization_servers"] == [issuer.url]
        assert metadata["scopes_supported"] == ["debug"]


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_a_session_belongs_to_the_subject_of_a_token(server: Server, issuer: Issuer, way: Way) -> None:
    bob = issuer.token(sub="bob", client_id="ide")
    async with server.connected(way, issuer.token()) as alice, server.connected(way, bob) as other:
        handle = (await alice.call("start_session"))["session_id"]
        # The same name in the token file is somebody else.
        async with server.connected(way, f"{STATIC}2") as namesake:
            for stranger in (other, namesake):
                with pytest.raises(ToolFailed, match="unknown or has expired"):
                    await stranger.call("listdir", session_id=handle)
        async with server.connected(way, issuer.token(client_id="another", iat=1)) as again:
            await again.call("close_session", session_id=handle)


async def test_tokens_of_a_file_go_along_with_an_issuer(server: Server) -> None:
    assert await status(server, STATIC) == 200


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 200),
        ({"aud": [RESOURCE, "https://other.example"]}, 200),
        ({"scope": None, "scp": ["other", "debug"]}, 200),
        ({"scope": "other"}, 403),
        ({"aud": "https://other.example/mcp"}, 401),
        ({"aud": None}, 401),
        ({"iss": "https://evil.example"}, 401),
        ({"exp": 1}, 401),
        ({"exp": None}, 401),
        ({"nbf": 4_000_000_000}, 401),
        ({"sub": None}, 401),
    ],
)
async def test_only_tokens_made_for_this_server_are_accepted(
    server: Server, issuer: Issuer, changes: dict[str, Any], expected: int
) -> None:
    assert await status(server, issuer.token(**changes)) == expected


async def test_forged_tokens_are_refused(server: Server, issuer: Issuer) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    header, _, signature = issuer.token().split(".")
    body = jwt.encode(issuer.claims(sub="root"), stranger, "RS256").split(".")[1]
    forged = [
        jwt.encode(issuer.claims(), stranger, "RS256", {"kid": "one"}),
        jwt.encode(issuer.claims(), "", "none", {"kid": "one"}),
        f"{header}.{body}.{signature}",
        # The public key is no secret: it must not do as one.
        signed_with_the_public_key(issuer),
        "a.b.c",
        "x" * 5000,
    ]
    for token in forged:
        assert await status(server, token) == 401


async def test_unknown_keys_do_not_make_us_ask_the_issuer_each_time(server: Server, issuer: Issuer) -> None:
    assert await status(server, issuer.token()) == 200
    before = len(issuer.asked)
    for _ in range(20):
        forged = jwt.encode(issuer.claims(), issuer.keys["one"], "RS256", {"kid": "unknown"})
        assert await status(server, forged) == 401
    assert len(issuer.asked) <= before + 1


async def test_an_issuer_that_calls_itself_otherwise_is_not_trusted(issuer: Issuer) -> None:
    verifier = JwtVerifier(issuer.url + "/", RESOURCE)
    assert await verifier.verify_token(issuer.token(iss=issuer.url + "/")) is None


async def test_an_issuer_that_does_not_answer_lets_nobody_in() -> None:
    issuer = Issuer()
    issuer.server.server_close()
    assert await JwtVerifier(issuer.url, RESOURCE).verify_token(issuer.token()) is None


@pytest.mark.parametrize("missing", ["jwt", "cryptography"])
def test_an_issuer_without_the_extra_is_refused_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.delitem(sys.modules, "mcp_server.auth.oauth")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InvalidArgument) as caught:
        build_access(Settings(oauth_issuer="https://issuer.example", oauth_resource=RESOURCE))
    assert f"({missing})" in str(caught.value) and "pip install 'pdbox[oauth]'" in (caught.value.hint or "")
    assert build_access(Settings()) is None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--oauth-issuer", "https://issuer.example"], "go together"),
        (["--oauth-resource", RESOURCE], "go together"),
        (["--oauth-issuer", "http://issuer.example", "--oauth-resource", RESOURCE], "Not an https URL"),
        (["--oauth-issuer", "nonsense", "--oauth-resource", RESOURCE], "Not an https URL"),
    ],
)
def test_half_an_issuer_is_refused_at_start(tmp_path: Path, flags: list[str], said: str) -> None:
    command = [PDBOX, "serve", "--transport", "http", "--port", "0", "--repo", tmp_path, *LOCAL, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line
