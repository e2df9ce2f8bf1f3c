"""What looks like a secret is masked in all that leaves the server: answers, errors, progress, resources, records and logs.

Three ways to know one, from the surest to the weakest:

- *by value*: what environment entries with a secret's name hold, wherever that text appears;
- *by shape*: keys that say themselves what they are (`_SHAPES`);
- *by name*: `api_key = '…'`, `"password": "…"`, a local or an attribute of such a name, if its value looks random enough.

Programs have variables named `token` and tests with `password="x"`: names alone mask nothing, and in source code (`view`,
`grep`, patches, listings) they are no reason at all, for its literals are the repository's. It is a guard against accidents: a
program that prints its password letter by letter is not stopped.

All of it is linear in the length of the text. What can't match is found out first by plain searches for fixed words, which
cost a few microseconds for a usual answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar, cast
from urllib.parse import quote

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from sandbox.errors import InvalidArgument
from tools._budget import Answer

MARK = "⟦redacted "
"""Begins every mask. No Python literal, no base64 and hardly any prose has it."""

SOURCE = frozenset({"lines", "diff", "patch", "text", "before", "after"})
"""Fields of answers that hold source code."""
_VALUES = frozenset({"value", "old", "new", "repr"})
"""Fields that hold, as Python writes it, the value of what `name` (or `expression`) names beside them."""
_VARIABLES = re.compile(
    r"(?:^|/)(?:\.env(?:\.[^/]*)?|[^/]*\.env|\.envrc|\.netrc|\.pgpass|\.pypirc|\.npmrc|credentials)$"
)
"""Files that are lists of variables rather than source code."""

Strength = Literal["", "weak", "strong"]
A = TypeVar("A", bound=Answer)


class Known(NamedTuple):
    """A value that must not be shown, in one of its spellings, and what stands in its place."""

    spelling: str
    mask: str


@dataclass
class Redactor:
    """Masks what looks like a secret, and whatever `learn` was told of. Without `enabled` it changes nothing."""

    enabled: bool = True
    known: tuple[Known, ...] = ()

    def learn(self, environment: Mapping[str, str]) -> None:
        """Mask the values of those entries whose names say that they are secret."""
        if self.enabled and environment:
            self.known += _known(tuple(environment.items()))

    def text(self, text: str, *, source: bool = False) -> str:
        """`text` with masks. `source`: it is code, where names are no reason."""
        found = self._found(text)
        return found.text(text, source=source) if found else text

    def data(self, value: Any) -> Any:
        """JSON data or a model with masks, otherwise the same; by the names of its keys too."""
        try:
            found = self._found(_dumped(value))
            return found.value(value, "", "") if found else value
        except RecursionError:  # data of a client, which can be nested as deeply as it likes
            return f"{MARK}data, nested too deeply to be looked at⟧"

    def answer(self, answer: A, asked: Sequence[str] = ()) -> A:
        """`answer` with masks, which it then mentions. `asked`: the expressions whose values it gives.

        A patch with masks in it no longer applies. It is masked all the same, since the model reads it like any other text; and
        the notice says so, lest somebody writes a mask into a file.
        """
        run = self._found(_dumped(answer), _asked(asked))
        if run is None:
            return answer
        masked = cast(A, run.value(answer, "", ""))
        return masked.model_copy(update={"redacted": _notice(run, masked)}) if run.count else masked

    def _found(self, text: str | None, asked: Strength = "") -> _Pass | None:
        """What to look for more closely, going by all the text there is (None: it can't be told); None: nothing."""
        if not self.enabled:
            return None
        if text is None:
            return _Pass(self.known, _SHAPES, named=True, asked=asked)
        lower = text.lower()
        known = [one for one in self.known if _may_be_in(text, one.spelling)] if self.known else ()
        shapes = list(dict.fromkeys([shape for word, shape in _PROBES if word in lower]))
        named = _has_name(lower)
        return _Pass(known, shapes, named, asked) if known or shapes or named or asked else None

    def refuse_masks(self, arguments: Mapping[str, Any]) -> None:
        """See that no mask gets into a file.

        Raises:
            InvalidArgument: an argument has one.
        """
        for name, value in arguments.items():
            if self.enabled and isinstance(value, str) and MARK in value:
                raise InvalidArgument(
                    f"`{name}` has the mask of a value that was not shown ({MARK}…⟧); written to the file, it would replace it.",
                    "Leave out the lines with masks: replace only lines before and after them, by `start` and `end`.",
                )


def _notice(run: _Pass, answer: Answer) -> str:
    what = (
        "1 value looks like a secret and is"
        if run.count == 1
        else f"{run.count:,} values look like secrets and are"
    )
    patched = any(MARK in str(getattr(answer, name, "")) for name in ("patch", "diff"))
    spoilt = " A patch with masks does not apply." if patched else ""
    return (
        f"{what} shown as {MARK}…⟧.{spoilt} The operator of this server can turn that off with --no-redact."
    )


# --- names


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
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


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength:
    """How much a name (or an expression that ends with one) says that its value is secret.

    Its last words count: `db_password` and `config.apiKey` do, `password_length` and `token_type` don't.
    """
    words = [word.lower() for word in _WORDS.findall(name[-_TAIL:])]
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


def _asked(expressions: Sequence[str]) -> Strength:
    found = {strength(line.strip()[-_TAIL:]) for text in expressions for line in text.splitlines()[:50]}
    return "strong" if "strong" in found else "weak" if "weak" in found else ""


# --- values


_TEMPLATE = re.compile(r"x{4}|\*{3}|^\$|^%|[<{]\w|⟦", re.IGNORECASE)
_EXAMPLE = re.compile(
    r"(?:^|[\W_])(?:example|changeme|change|placeholder|dummy|fake|mock|sample|test|testing|your|password|passwd|secret|todo|"
    r"redacted|invalid|wrong|insert|none|null|undefined)(?:$|[\W_\d])|^(?:0123|1234|abcd|abc123|qwert)",
    re.IGNORECASE,
)
_EXAMPLES = 24
"""Characters that examples have at most; in longer values such words stand by chance."""
_PATH = re.compile(r"(?:\.{0,2}/|~/|[A-Za-z]:[\\/])[\w.@ \\/-]*")
_DOTTED = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+")
_RANDOM = re.compile(r"[A-Za-z0-9+/=_.~%-]{16,}")
_CHANGE = re.compile(r"(?<=[a-z])[A-Z]|(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]")
_LEAST = 8
_LONGEST = 2000
"""Secrets are short; what is longer is only looked at by shape."""


def looks_secret(value: str, strength: Strength) -> bool:
    """Whether a value that goes by such a name may be the real thing, rather than a word, a path or an example."""
    value = value.rstrip("…")
    if not _LEAST <= len(value) <= _LONGEST or _dull(value) or any(map(str.isspace, value)):
        return False
    if strength == "weak":
        return _random(value)
    return not (_plain(value) or _path(value) or "://" in value or _DOTTED.fullmatch(value))


def _plain(value: str) -> bool:
    """Words in one case, and short numbers."""
    text = value.replace("_", "").replace("-", "").replace(".", "")
    return (text.isalpha() and (text[1:].islower() or text.isupper())) or (text.isdigit() and len(text) < 12)


def _random(value: str) -> bool:
    """Letters, digits and capitals change often, as they don't in words and names."""
    changes = len(_CHANGE.findall(value))
    often = changes >= max(4, len(value) // 6) and any(map(str.isdigit, value))
    return often and _RANDOM.fullmatch(value) is not None


def _path(value: str) -> bool:
    """Base64 can begin with a slash, too."""
    return _PATH.fullmatch(value) is not None and not _random(value)


def _dull(value: str) -> bool:
    """Too simple for a secret, a template, or an example."""
    if len(set(value)) < 5 or _TEMPLATE.search(value):
        return True
    return len(value) < _EXAMPLES and _EXAMPLE.search(value) is not None


def mask(kind: str, value: str) -> str:
    """What stands for `value`."""
    return f"{MARK}{kind}, {len(value)} chars⟧"


_MANY = 200
"""Known values of one environment at most."""


@lru_cache(maxsize=64)
def _known(environment: tuple[tuple[str, str], ...]) -> tuple[Known, ...]:
    """The secrets of an environment in the spellings in which programs print them, longest first."""
    found = {
        secret: mask(f"${name}", secret) for name, value in environment for secret in _secrets(name, value)
    }
    spelled = {spelling: text for value, text in found.items() for spelling in _spellings(value)}
    longest = sorted(spelled.items(), key=lambda pair: -len(pair[0]))
    return tuple(Known(*pair) for pair in longest[:_MANY])


def _secrets(name: str, value: str) -> list[str]:
    named = strength(name) or (_last_word(name) == "key" and _random(value))
    inside = [found["secret"] for found in _URL.finditer(value)] if "://" in value else []
    return [one for one in ([value] if named else []) + inside if not _trivial(one)]


def _last_word(name: str) -> str:
    return _WORDS.findall(name)[-1].lower() if _WORDS.search(name) else ""


def _trivial(value: str) -> bool:
    """Such values stand in the text for something else as well."""
    plain = _plain(value) and len(value) < 16
    return len(value.strip()) < _LEAST or plain or _dull(value) or _path(value)


def _spellings(value: str) -> set[str]:
    return {
        value,
        repr(value)[1:-1],
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, "", errors="replace"),  # bytes of another encoding come as lone surrogates
    }


# --- shapes


class _Shape(NamedTuple):
    kind: str
    words: tuple[str, ...]
    """One of these is in every text that has the shape."""
    pattern: re.Pattern[str]


def _shape(kind: str, words: str, pattern: str, flags: int = 0) -> _Shape:
    return _Shape(kind, tuple(words.split()), re.compile(pattern, flags))


# Not in the middle of a word; but the `n` of a `\n` in a repr is none.
_B = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
# RFC 3986, section 3.2.1; gitleaks and detect-secrets (BasicAuthDetector)
_URL = re.compile(r"://[^\s/?#:@'\"<>\\]{0,200}+:(?P<secret>[^\s/?#@'\"<>\\]{6,}+)@")

# RFC 7468. In a repr line ends are `\n`. Its end may have been cut off, and all lines stay, for they have numbers.
_PEM = re.compile(r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----)([A-Za-z0-9+/=:,\s\\\"' -]*+)")
_PEM_LINE = re.compile(r"(?:(?<=\\n)|(?<=\\r)|(?<![A-Za-z0-9+/=\\]))[A-Za-z0-9+/=]+")
_PEM_LEAST = 20
"""Characters of a line of a key whose end is not there; what follows may be something else."""

# The rules of gitleaks (config/gitleaks.toml) and detect-secrets (plugins/) for the same services, and where
# there is one, the vendor's own page. `secret` is the part that is masked; without it, all of it.
_SHAPES = (
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html, "Understanding unique ID prefixes"
    _shape("AWS key", "AKIA ASIA", _B + r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    # github.blog/2021-04-05-behind-githubs-new-authentication-token-formats
    _shape("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _shape("GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    # docs.gitlab.com/security/tokens, "Token prefixes"
    _shape("GitLab token", "glpat- gldt- glrt- glptt-", r"gl(?:pat|dt|rt|ptt)-[\w.-]{20,300}"),
    # docs.slack.dev/authentication/tokens; gitleaks slack-*
    _shape("Slack token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{20,300}"),
    _shape("Slack token", "xapp-", r"xapp-\d-[A-Z0-9]{5,50}-\d{5,50}-[a-z0-9]{10,200}"),
    _shape(
        "Slack webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w+/-]{40,200})",
    ),
    # docs.stripe.com/keys; test keys are meant to be shown
    _shape("Stripe key", "k_live_", r"[sr]k_live_[A-Za-z0-9]{16,255}"),
    _shape("Stripe webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/]{24,255}"),
    # gitleaks openai-api-key and anthropic-api-key; detect-secrets OpenAIDetector
    _shape(
        "API key",
        "sk-",
        _B + r"sk-(?:(?:ant|proj|svcacct|admin|or-v1)-[\w-]{20,300}|[A-Za-z0-9]{32,300}(?![\w-]))",
    ),
    _shape("API key", "gsk_", _B + r"gsk_[A-Za-z0-9]{40,100}"),
    # gitleaks gcp-api-key; cloud.google.com/docs/authentication/api-keys
    _shape("Google API key", "AIza", _B + r"AIza[\w-]{35}(?![\w-])"),
    _shape("Google client secret", "GOCSPX-", r"GOCSPX-[\w-]{28}"),
    # github.blog/2021-09-23-announcing-npms-new-access-token-format; pypi.org/help/#apitoken
    _shape("npm token", "npm_", _B + r"npm_[A-Za-z0-9]{36}(?![\w-])"),
    _shape("PyPI token", "pypi-AgE", r"pypi-AgE[\w-]{50,1000}"),
    # gitleaks huggingface-access-token, sendgrid-api-token, digitalocean-pat, shopify-access-token; detect-secrets
    _shape("Hugging Face token", "hf_", _B + r"hf_[A-Za-z0-9]{34,40}(?![\w-])"),
    _shape("SendGrid key", "SG.", _B + r"SG\.[\w-]{22}\.[\w-]{43}"),
    _shape("DigitalOcean token", "_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _shape("Shopify token", "shp", r"shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}"),
    _shape("Docker token", "dckr_pat_", r"dckr_pat_[\w-]{27,60}"),
    # detect-secrets AzureStorageKeyDetector
    _shape("Azure key", "AccountKey=", r"AccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)"),
    # RFC 7519: base64url of `{"`
    _shape("JWT", "eyJ", _B + r"eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]*+"),
    # RFC 6750 and 7617: the schemes whose credentials can be used again
    _shape(
        "credentials",
        "bearer basic",
        r"\b(?:bearer|basic)[ \t]{1,4}+(?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,}+)",
        re.IGNORECASE,
    ),
    _Shape("password", ("://",), _URL),
    _Shape("private key", ("PRIVATE KEY-----",), _PEM),
)
_PROBES = tuple((word.lower(), shape) for shape in _SHAPES for word in shape.words)

# --- text


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
_KEY_NAME = re.compile(
    r"(?:api|access|secret|private|signing|encryption|master|account|storage|ssh|license|service)[ _-]?key"
)
_QUOTED = r"[bBrRuUfF]{0,2}'(?:[^'\\\n]|\\.)*+'|[bBrRuUfF]{0,2}\"(?:[^\"\\\n]|\\.)*+\""
_CUT_OFF = r"[bBrRuUfF]{0,2}['\"][^'\"\\\n]{8,}+(?=$)"
_LITERAL = re.compile(rf"{_QUOTED}|{_CUT_OFF}", re.MULTILINE)
_LISTING = r"^[ ]{0,7}+\d{1,7}+[ ][ B>-]{0,4}+\t.*+$"
"""A line of source code as pdb lists it."""
_NAMED = re.compile(
    rf"""
    {_LISTING}
    | (?: (?P<lead>^(?:[+-]|[ \t]{{1,8}}|export[ ]|declare[ ]-x[ ])?+) | (?<![\w.-]) )
      -{{0,2}}+
      (?P<name>[A-Za-z_][\w.-]{{0,99}}+) (?![\w.-])
      \\{{0,3}}+['"]?+\]?+
      [ \t]{{0,40}}+ (?: :=? | = ) (?![:=]) [ \t]{{0,40}}+
    """,
    re.VERBOSE | re.MULTILINE,
)
_VALUE = re.compile(
    rf"""
    (?P<literal> {_QUOTED} | \\{{1,3}}+["'][^"'\\\n]*+\\{{1,3}}+["'] | {_CUT_OFF} )
    | (?P<bare> [^\s'"`,;()\[\]{{}}<>|&\\⟦⟧]{{8,}}+ ) (?P<end>[ \t]*+$)?
    """,
    re.VERBOSE | re.MULTILINE,
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]+")
"""Attributes, types, constants."""


@dataclass
class _Pass:
    """One walk over an answer, counting what it masks."""

    known: Sequence[Known]
    shapes: Sequence[_Shape]
    named: bool
    asked: Strength = ""
    count: int = field(default=0, init=False)

    def value(self, value: Any, name: str, outer: str) -> Any:
        """Models, lists and mappings with their strings masked. `name`: the field; `outer`: the expression all this belongs to."""
        match value:
            case str():
                return self.text(value, source=name in SOURCE)
            case BaseModel():
                return self._model(value, outer)
            case dict():
                return self._mapping(cast(dict[Any, Any], value), outer)
            case list() | tuple():
                return self._items(cast(Sequence[Any], value), name, outer)
            case _:
                return value

    def text(self, text: str, *, source: bool = False) -> str:
        if len(text) < _LEAST:
            return text
        text = self._shapes(self._known(text))
        return self._by_name(text) if self.named and not source and _has_name(text.lower()) else text

    def _model(self, model: BaseModel, outer: str) -> BaseModel:
        fields = {name: getattr(model, name) for name in type(model).model_fields}
        masked = self._fields(fields, outer)
        updates = {name: value for name, value in masked.items() if value is not fields[name]}
        return model.model_copy(update=updates) if updates else model

    def _mapping(self, data: Mapping[Any, Any], outer: str) -> dict[Any, Any]:
        masked: dict[Any, Any] = {**self._fields(data, outer)}
        for name, value in masked.items():
            if isinstance(value, str) and (found := strength(str(name))) and looks_secret(value, found):
                masked[name] = self._masked("value", value)
        return {self.text(name) if isinstance(name, str) else name: value for name, value in masked.items()}

    def _fields(self, fields: Mapping[str, Any], outer: str) -> dict[str, Any]:
        own = str(fields.get("expression") or fields.get("name") or "")
        # `[0]` and `.password` go on from what was looked at as a whole.
        whole = f"{outer}{own}" if own[:1] in (".", "[") else own
        found = strength(whole) if whole else ""
        listed = _VARIABLES.search(str(fields.get("path") or "")) is not None
        return {name: self._field(name, value, found, whole, listed) for name, value in fields.items()}

    def _field(self, name: str, value: Any, found: Strength, whole: str, listed: bool) -> Any:
        if isinstance(value, str):
            if name == "reply" and self.asked:
                value = self._literals(value, self.asked)
            elif name in _VALUES and found:
                value = self._literals(value, found)
        return self.value(value, "" if listed else name, whole)

    def _items(self, items: Sequence[Any], name: str, outer: str) -> Sequence[Any]:
        if name in SOURCE and all(isinstance(item, str) and "\n" not in item for item in items):
            # A key may go over several lines, each an item; masks keep lines.
            masked = self.text("\n".join(items), source=True)
            return masked.split("\n") if MARK in masked else items
        changed = [self.value(item, name, outer) for item in items]
        return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed

    def _known(self, text: str) -> str:
        for spelling, replacement in self.known:
            if spelling in text:
                self.count += text.count(spelling)
                text = text.replace(spelling, replacement)
        return text

    def _shapes(self, text: str) -> str:
        for shape in self.shapes:
            replace = self._pem if shape.pattern is _PEM else self._replaced(shape.kind)
            text = shape.pattern.sub(replace, text)
        return text

    def _replaced(self, kind: str) -> Callable[[re.Match[str]], str]:
        def replaced(match: re.Match[str]) -> str:
            group = "secret" if "secret" in match.re.groupindex else 0
            secret = match[group]
            if (
                "EXAMPLE" in secret
                or len(set(secret)) < 6
                or (match.re is _URL and (_plain(secret) or _dull(secret)))
            ):
                return match[0]
            before, after = (
                match[0][: match.start(group) - match.start()],
                match[0][match.end(group) - match.start() :],
            )
            return f"{before}{self._masked(kind, secret)}{after}"

        return replaced

    def _pem(self, match: re.Match[str]) -> str:
        body, end, rest = match[2].partition("-----END")
        least = 4 if end else _PEM_LEAST
        masked = _PEM_LINE.sub(
            lambda line: line[0] if len(line[0]) < least else mask("private key", line[0]), body
        )
        self.count += masked != body
        return f"{match[1]}{masked}{end}{rest}"

    def _by_name(self, text: str) -> str:
        parts: list[str] = []
        done = at = 0
        while (match := _NAMED.search(text, at)) is not None:
            at = match.end()
            name = match["name"]
            if name is None or not (found := strength(name)) or (value := _VALUE.match(text, at)) is None:
                continue
            if value["bare"]:
                at = value.end()
            if (masked := self._named(match, value, found)) is not None:
                parts += [text[done : value.start()], masked]
                done = at = value.end()
        return "".join([*parts, text[done:]]) if parts else text

    def _named(self, match: re.Match[str], value: re.Match[str], found: Strength) -> str | None:
        """What stands in the place of a named value; None if it may be shown."""
        if value["literal"]:
            opening, inner, closing = _split(value["literal"])
            return f"{opening}{self._masked('value', inner)}{closing}" if looks_secret(inner, found) else None
        # Without quotes it may be code: unless it stands alone on its line, as `env` prints, only what is clearly random.
        bare, end = value["bare"], value["end"]
        alone = (
            match["lead"] is not None and end is not None and (found == "strong" or match["name"].isupper())
        )
        if _CODE.fullmatch(bare) or not looks_secret(bare, "strong" if alone else "weak"):
            return None
        return f"{self._masked('value', bare)}{end or ''}"

    def _literals(self, text: str, found: Strength) -> str:
        def literal(match: re.Match[str]) -> str:
            opening, inner, closing = _split(match[0])
            if not looks_secret(inner, found):
                return match[0]
            return f"{opening}{self._masked('value', inner)}{closing}"

        return _LITERAL.sub(literal, text)

    def _masked(self, kind: str, value: str) -> str:
        self.count += 1
        return mask(kind, value)


def _split(literal: str) -> tuple[str, str, str]:
    """Opening, text and closing of a literal. The closing may have been cut off."""
    start = next(number for number, char in enumerate(literal) if char in "'\"")
    closing = (
        literal[len(literal) - 1 - literal.count("\\", 0, start) :]
        if literal.endswith(literal[start])
        else ""
    )
    return literal[: start + 1], literal[start + 1 : len(literal) - len(closing)], closing


def _has_name(lower: str) -> bool:
    for word in _NAME_WORDS:  # `any` takes twice as long
        if word in lower:
            return True
    return "key" in lower and _KEY_NAME.search(lower) is not None


def _may_be_in(text: str, spelling: str) -> bool:
    # What has quotes or backslashes may be spelled in any way after some rounds of escaping.
    return spelling in text or "\\" in spelling or '"' in spelling


def _dumped(value: Any) -> str | None:
    """All its text at once; None if that can't be had."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        return json.dumps(value, ensure_ascii=False)
    except (PydanticSerializationError, TypeError, ValueError):
        return None
