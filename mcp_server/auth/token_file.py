"""Bearer tokens from a file, each with the principal that it stands for."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mcp.server.auth.provider import AccessToken

from sandbox.errors import InvalidArgument
from sandbox.host_files import open_regular

MIN_LENGTH = 16
_MAX_SIZE = 1 << 20
_FORM = (
    "A line is a principal's name and its token; `#` starts a comment. `openssl rand -hex 32` makes a token."
)


@dataclass(frozen=True)
class TokenFile:
    """The tokens of a file, of which only hashes are kept. A verifier as the SDK takes it."""

    entries: tuple[tuple[bytes, str], ...]
    """Hash of a token, and its principal."""
    scopes: tuple[str, ...] = ()
    """Scopes of all tokens."""

    @classmethod
    def read(cls, path: Path, scopes: Sequence[str] = ()) -> Self:
        """The tokens in `path`, one `principal token` a line.

        Raises:
            InvalidArgument: no such regular file, one that others may read or write, a line of another form, no token.
        """
        entries: dict[bytes, str] = {}
        for number, line in enumerate(_private_text(path).splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) != 2 or len(words[1]) < MIN_LENGTH or not words[1].isascii():
                # Without the line itself: it may hold a token.
                raise InvalidArgument(
                    f"{path}, line {number}: no principal with a token of {MIN_LENGTH} ASCII characters or more.",
                    _FORM,
                )
            if entries.setdefault(_hash(words[1]), words[0]) != words[0]:
                raise InvalidArgument(f"{path}, line {number}: another principal has the same token.", _FORM)
        if not entries:
            raise InvalidArgument(f"There is no token in {path}.", _FORM)
        return cls(tuple(entries.items()), tuple(scopes))

    async def verify_token(self, token: str) -> AccessToken | None:
        """Identify the owner of a token, or None. Compares with every entry, to take constant time."""
        hashed = _hash(token)
        principal: str | None = None
        for known, name in self.entries:
            if hmac.compare_digest(known, hashed):
                principal = name
        if principal is None:
            return None
        # The token itself is not handed on: nobody behind this needs it.
        return AccessToken(token="", client_id=principal, subject=principal, scopes=[*self.scopes])


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _private_text(path: Path) -> str:
    """The file's text, if nobody else could have written it, and of a file of ours nobody else can read it.

    Root's are taken: where secrets are mounted for a server of another user, they belong to root.
    """
    try:
        # A link is followed first: mounted secrets are links, and `open_regular` opens none.
        with os.fdopen(open_regular(path.expanduser().resolve(strict=True)), encoding="utf-8") as file:
            _check_owner(path, os.fstat(file.fileno()))
            text = file.read(_MAX_SIZE + 1)
    except (OSError, RuntimeError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
        if isinstance(exc, RuntimeError):
            reason = "there is no such home"
        raise InvalidArgument(f"The token file {path} can't be read: {reason}.") from exc
    if len(text) > _MAX_SIZE:
        raise InvalidArgument(f"The token file {path} is longer than {_MAX_SIZE} characters.", _FORM)
    return text


def _check_owner(path: Path, info: os.stat_result) -> None:
    """Raise InvalidArgument if others could have written the tokens, or may read ours."""
    if not hasattr(os, "getuid"):
        return
    if info.st_uid not in (0, os.getuid()):
        raise InvalidArgument(
            f"{path} belongs to another user (uid {info.st_uid}), who can change its tokens.",
            f"`chown {os.getuid()} {path}` makes it this server's.",
        )
    if info.st_uid == os.getuid() and stat.S_IMODE(info.st_mode) & 0o077:
        raise InvalidArgument(f"Others may read {path}.", f"`chmod 600 {path}` keeps its tokens yours.")
    if stat.S_IMODE(info.st_mode) & 0o022:
        raise InvalidArgument(f"Others may write to {path}.", f"`chmod go-w {path}` keeps them out.")
