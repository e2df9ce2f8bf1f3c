"""Whether a value may be secret, or is a word, a path, an example."""

from __future__ import annotations

import re

from mcp_server.secret.names import Strength
from mcp_server.secret.pattern import Pattern

_TEMPLATE = Pattern(r"x{4}|\*{3}|^\$|^%|[<{]\w|⟦", re.IGNORECASE)
_EXAMPLE = Pattern(
    r"(?:^|[\W_])(?:example|changeme|change|placeholder|dummy|fake|mock|sample|test|testing|your|password|passwd|secret|todo|"
    r"redacted|invalid|wrong|insert|none|null|undefined)(?:$|[\W_\d])|^(?:0123|1234|abcd|abc123|qwert)",
    re.IGNORECASE,
)
_EXAMPLES = 24
"""Characters that examples have at most; in longer values such words stand by chance."""
_PATH = Pattern(r"(?:\.{0,2}/|~/|[A-Za-z]:[\\/])[\w.@ \\/-]*")
_DOTTED = Pattern(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+")
_RANDOM = Pattern(r"[A-Za-z0-9+/=_.~%-]{16,}")
_CHANGE = Pattern(r"(?<=[a-z])[A-Z]|(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]")
LEAST = 8
"""Characters that a secret has at least."""
_LONGEST = 2000
"""Secrets are short; what is longer is only looked at by shape."""


def looks_secret(value: str, strength: Strength) -> bool:
    """Whether a value that goes by such a name may be the real thing, rather than a word, a path or an example."""
    value = value.rstrip("…")
    if not LEAST <= len(value) <= _LONGEST or is_dull(value) or any(map(str.isspace, value)):
        return False
    if strength == "weak":
        return is_random(value)
    return not (is_plain(value) or is_path(value) or "://" in value or _DOTTED.compiled.fullmatch(value))


def is_plain(value: str) -> bool:
    """Words in one case, and short numbers."""
    text = value.replace("_", "").replace("-", "").replace(".", "")
    return (text.isalpha() and (text[1:].islower() or text.isupper())) or (text.isdigit() and len(text) < 12)


def is_random(value: str) -> bool:
    """Letters, digits and capitals change often, as they don't in words and names."""
    changes = len(_CHANGE.compiled.findall(value))
    often = changes >= max(4, len(value) // 6) and any(map(str.isdigit, value))
    return often and _RANDOM.compiled.fullmatch(value) is not None


def is_path(value: str) -> bool:
    """Base64 can begin with a slash, too."""
    return _PATH.compiled.fullmatch(value) is not None and not is_random(value)


def is_dull(value: str) -> bool:
    """Too simple for a secret, a template, or an example."""
    if len(set(value)) < 5 or _TEMPLATE.compiled.search(value):
        return True
    return len(value) < _EXAMPLES and _EXAMPLE.compiled.search(value) is not None
