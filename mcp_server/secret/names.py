"""How much a name says that its value is secret."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from mcp_server.secret.pattern import Pattern

Strength = Literal["", "weak", "strong"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS = Pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_STRONG = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
)
"""Ends of words."""
_STRONG_WORDS = frozenset(
    {"pwd", "passwords", "secrets", "credential", "credentials", "accesstoken", "authtoken"}
)
_WEAK = _words("token auth authorization jwt cookie bearer")
_KEYS = _words("api access secret private signing encryption auth")
_WEAK_KEYS = _words("master account storage ssh license service")
_TOKENS = _words("""
    access auth refresh bearer api id session bot security deploy personal github gitlab gh npm pypi
    slack aws hf
""")
_QUALIFIERS = _words("""
    value str string raw plain plaintext b base bytes hex hash hashed encoded old new prod production
    dev staging live current default
""")
_TAIL = 120
"""Characters of an expression that are looked at, from its end."""

_NAME_WORDS = (
    "passw",
    "passphr",
    "passco",
    "_pass",
    "pwd",
    "secret",
    "credential",
    "token",
    "auth",
    "jwt",
    "cookie",
    "bearer",
)
"""One of these, or a key, is in every name (in small letters) that `strength` takes."""
_KEY_NAME = Pattern(
    r"(?:api|access|secret|private|signing|encryption|master|account|storage|ssh|license|service)[ _-]?key"
)


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength:
    """How much a name (or an expression that ends with one) says that its value is secret.

    Its last words count: `db_password` and `config.apiKey` do, `password_length` and `token_type` don't.
    """
    words = [word.lower() for word in _WORDS.compiled.findall(name[-_TAIL:])]
    while words and (words[-1].isdigit() or words[-1] in _QUALIFIERS):
        words.pop()
    if not words:
        return ""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "pwd" and ("PWD" in name and before in ("", "environ", "old")):
        return ""  # the shell's working directory
    if last.endswith(_STRONG) or last in _STRONG_WORDS:
        return "strong"
    if (last == "key" and before in _KEYS) or (last == "token" and before in _TOKENS):
        return "strong"
    weak = last in _WEAK or (last == "pass" and before) or (last == "key" and before in _WEAK_KEYS)
    return "weak" if weak else ""


def strongest(expressions: Sequence[str]) -> Strength:
    """What the last names in some expressions say, at most."""
    found = {strength(line.strip()[-_TAIL:]) for text in expressions for line in text.splitlines()[:50]}
    return "strong" if "strong" in found else "weak" if "weak" in found else ""


def last_word(name: str) -> str:
    """In small letters."""
    return _WORDS.compiled.findall(name)[-1].lower() if _WORDS.compiled.search(name) else ""


def has_name(lower: str) -> bool:
    """Whether a text in small letters can have a name that `strength` takes."""
    for word in _NAME_WORDS:  # `any` takes twice as long
        if word in lower:
            return True
    return "key" in lower and _KEY_NAME.compiled.search(lower) is not None
