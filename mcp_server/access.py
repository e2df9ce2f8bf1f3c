"""Who may use a server on the network, and as which principal."""

from __future__ import annotations

from dataclasses import dataclass

from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl, TypeAdapter

from mcp_server.settings import Settings
from mcp_server.tokens import TokenFile

_url = TypeAdapter(AnyHttpUrl).validate_python
_NO_ISSUER = _url("http://localhost")


@dataclass(frozen=True)
class Access:
    """What the SDK needs to authenticate requests."""

    settings: AuthSettings
    verifier: TokenVerifier


@dataclass(frozen=True)
class _Either:
    """The first of several verifiers that knows a token."""

    verifiers: tuple[TokenVerifier, ...]

    async def verify_token(self, token: str) -> AccessToken | None:
        for verifier in self.verifiers:
            if (found := await verifier.verify_token(token)) is not None:
                return found
        return None


def access(settings: Settings) -> Access | None:
    """How requests are authenticated; None: not at all.

    Raises:
        InvalidArgument: a token file that can't be used; an issuer without the resource.
    """
    verifiers: list[TokenVerifier] = []
    if settings.token_file is not None:
        verifiers.append(TokenFile.read(settings.token_file))
    return Access(_auth(settings), _Either(tuple(verifiers))) if verifiers else None


def _auth(settings: Settings) -> AuthSettings:
    # Without an issuer there is nothing to publish, but the SDK wants one named.
    return AuthSettings(issuer_url=_NO_ISSUER, resource_server_url=None)
