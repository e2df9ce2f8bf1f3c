"""Image names, and the list of images that may be pulled for clients."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sandbox.errors import InvalidArgument

DOCKER_HUB = "docker.io"
MAX_LENGTH = 500
# The grammar of github.com/distribution/reference, by which engines parse a name. A name outside it could
# address another path of the engine's API.
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*"
# Compiled at the first use, as a server starts without them: they take 4 ms.
_REGISTRY = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PATH = rf"{_COMPONENT}(?:/{_COMPONENT})*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,128}"
_PATTERN = r"[A-Za-z0-9_.:/@*+\[\]-]+"


@dataclass(frozen=True)
class ImageName:
    """Parts of an image name, or of a pattern for names."""

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def split(cls, text: str) -> ImageName:
        """Split `text` into its parts, with the defaults that an engine adds."""
        rest, _, digest = text.partition("@")
        begin = rest.rfind(":")
        tag = rest[begin + 1 :] if begin > rest.rfind("/") else ""
        name = rest[:begin] if begin > rest.rfind("/") else rest
        first, slash, path = name.partition("/")
        if not slash or not (first == "localhost" or re.search(r"[.:\[]", first)):
            first, path = DOCKER_HUB, name
        if first == f"index.{DOCKER_HUB}":
            first = DOCKER_HUB
        if first == DOCKER_HUB and "/" not in path:
            path = f"library/{path}"
        return cls(first, path, tag, digest)

    @property
    def version(self) -> str:
        """Digest if there is one (the tag is ignored then), else the tag."""
        return f"@{self.digest}" if self.digest else self.tag or "latest"


def parse(text: str) -> ImageName:
    """Parse the name of an image.

    Raises:
        InvalidArgument: it is not an image name.
    """
    name = ImageName.split(text) if len(text) <= MAX_LENGTH else ImageName("", "")
    if (
        not re.fullmatch(_REGISTRY, name.registry)
        or not re.fullmatch(_PATH, name.path)
        or (name.tag and not re.fullmatch(_TAG, name.tag))
        or (name.digest and not re.fullmatch(_DIGEST, name.digest))
        or text.endswith((":", "@"))
    ):
        raise InvalidArgument(
            f"{text[:200]!r} is not the name of an image.",
            'Say it like "python:3.12" or "registry.example/org/name:tag".',
        )
    return name


@dataclass(frozen=True)
class AllowedImages:
    """Images that may be pulled for a client. It gets others only if they are present."""

    names: tuple[str, ...] = ()
    """Exact names."""
    patterns: tuple[str, ...] = ()
    """Patterns. `*` matches any text within the registry, the path, or the tag."""

    @classmethod
    def of(cls, image: str | None, patterns: list[str]) -> AllowedImages:
        """Build the list from the operator's default image and patterns.

        Raises:
            InvalidArgument: a pattern can't match any name.
        """
        for pattern in patterns:
            if not re.fullmatch(_PATTERN, pattern):
                raise InvalidArgument(
                    f"--allow-image {pattern!r} is not an image pattern.",
                    "Say it like swebench/*, python:3.* or registry.example/org/*; without a registry it is Docker Hub.",
                )
        return cls((image,) if image else (), tuple(patterns))

    def include(self, text: str) -> bool:
        """True if the image of that name is allowed."""
        name = parse(text)
        return text in self.names or any(_matches(name, ImageName.split(one)) for one in self.patterns)


def _matches(name: ImageName, pattern: ImageName) -> bool:
    # Compared part by part: `python:*` must not match `python:5000/x`, which is on another machine.
    return (
        fnmatchcase(name.registry, pattern.registry)
        and fnmatchcase(name.path, pattern.path)
        and (not (pattern.tag or pattern.digest) or fnmatchcase(name.version, pattern.version))
    )
