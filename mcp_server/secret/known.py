"""Secrets that are known by value: those of environments."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from mcp_server.secret.mask import mask
from mcp_server.secret.names import last_word, strength
from mcp_server.secret.shapes import URL
from mcp_server.secret.values import LEAST, is_dull, is_path, is_plain, is_random

_MANY = 200
"""Known values of one environment at most."""


class Known(NamedTuple):
    """A value that must not be shown, in one of its spellings, and what stands in its place."""

    spelling: str
    mask: str


@lru_cache(maxsize=64)
def known_in(environment: tuple[tuple[str, str], ...]) -> tuple[Known, ...]:
    """The secrets of an environment in the spellings in which programs print them, longest first."""
    found = {
        secret: mask(f"${name}", secret) for name, value in environment for secret in _secrets(name, value)
    }
    spelled = {spelling: text for value, text in found.items() for spelling in _spellings(value)}
    longest = sorted(spelled.items(), key=lambda pair: -len(pair[0]))
    return tuple(Known(*pair) for pair in longest[:_MANY])


def _secrets(name: str, value: str) -> list[str]:
    named = strength(name) or (last_word(name) == "key" and is_random(value))
    inside = [found["secret"] for found in URL.compiled.finditer(value)] if "://" in value else []
    return [one for one in ([value] if named else []) + inside if not _trivial(one)]


def _trivial(value: str) -> bool:
    """Such values stand in the text for something else as well."""
    plain = is_plain(value) and len(value) < 16
    return len(value.strip()) < LEAST or plain or is_dull(value) or is_path(value)


def _spellings(value: str) -> set[str]:
    return {
        value,
        repr(value)[1:-1],
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, "", errors="replace"),  # bytes of another encoding come as lone surrogates
    }
