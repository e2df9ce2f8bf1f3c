"""Records of whole sessions in files: the form of their lines, and reading them.

A record is JSON Lines: a header, a line for each call, and an end. Readers take a record without an end, or whose last line
is torn: its server was killed, or is still writing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sandbox.errors import InvalidArgument

FORMAT = "pdbox-trajectory"
VERSION = 1
MAX_ARGUMENTS = 2 << 20
"""Bytes of a call's arguments, as JSON, that are kept whole: more than a request over HTTP may have."""
MAX_TEXT = 256 << 10
"""Characters of a text that are kept; no answer has more."""
MAX_DATA = 256 << 10
"""Bytes of the structured form of an answer, as JSON, that are kept; of a longer one nothing is."""
MAX_PATCH = 1 << 20
"""Bytes of the final patch that are kept."""
_MAX_LINE = 16 << 20
_MAX_FILE = 1 << 30
_MAX_DEPTH = 64

Text = Annotated[str, Field(max_length=_MAX_LINE)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class _Line(BaseModel):
    # Built at its first use: a server without `--record` needs none of them.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Client(_Line):
    """The client, as it introduced itself."""

    name: Text
    version: Text = ""


class Request(_Line):
    """Arguments with which the session was opened, completed by the operator's settings."""

    repo: Text | None = None
    ref: Text | None = None
    image: Text | None = None
    python: Text | None = None
    entrypoint: Text | None = None
    debug_entrypoint: Text | None = None
    setup: list[Text] | None = None
    env: dict[Text, Text] = {}
    network: bool = False


class Header(_Line):
    """First line of a record: versions, the client, and the session."""

    kind: Literal["header"] = "header"
    format: Literal["pdbox-trajectory"] = FORMAT
    version: Annotated[int, Field(ge=1, le=VERSION)] = VERSION
    time: Text = ""
    session: Text = ""
    """Beginning of the session's key, as in the log."""
    pdbox: Text = ""
    python: Text = ""
    mcp: Text = ""
    protocol: Text = ""
    client: Client | None = None
    backend: Text = ""
    isolation: Text = ""
    image: Text = ""
    sandbox_python: Text = ""
    workdir: Text = ""
    repository: Text = ""
    """Name of the repository."""
    entrypoint: Text | None = None
    debug_entrypoint: Text | None = None
    task: Text | None = None
    answers: Literal["text", "structured", "both"] = "text"
    answer_within_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    profile: Text = "debug"
    request: Request | None = None
    """None for a session that another server opened."""
    tools: list[dict[str, Any]] = []
    """The tool list as the client saw it."""


class Call(_Line):
    """A call and its answer."""

    kind: Literal["call"] = "call"
    number: Count
    time: Text = ""
    tool: Text
    arguments: dict[str, Any] = {}
    arguments_omitted: Count = 0
    """Bytes of arguments that were too long to be kept; `arguments` is empty then."""
    text: Text = ""
    text_characters: Count = 0
    """Characters of the whole text, as the client got it."""
    text_omitted: Count = 0
    """Characters at its end that are not kept."""
    structured: dict[str, Any] | None = None
    structured_omitted: Count = 0
    """Bytes of a structured form that was too long to be kept."""
    is_error: bool = False
    cancelled: bool = False
    state: Text | None = None
    stop: Count | None = None
    duration_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    traceparent: Text | None = None
    tool_call_id: Text | None = None


class End(_Line):
    """Last line of a record."""

    kind: Literal["end"] = "end"
    time: Text = ""
    reason: Text = ""
    calls: Count = 0
    lost: Count = 0
    """Calls that could not be written."""
    patch: Text | None = None
    patch_base64: Text | None = None
    """A patch that is not UTF-8."""
    patch_omitted: Count = 0
    """Bytes of the patch that were left out."""
    patch_redacted: bool = False
    """True if secrets are masked in the patch: it does not apply."""
    patch_missing: Text = ""
    """Reason for a patch that is not there."""


class _AnyLine(_Line):
    line: Annotated[Header | Call | End, Field(discriminator="kind")]


@dataclass
class Record:
    """A record that was read."""

    path: Path
    header: Header
    calls: list[Call] = field(default_factory=list[Call])
    end: End | None = None
    is_torn: bool = False
    """True if the last line is not whole."""


def read(path: Path) -> Record:
    """Read a record. A torn last line is left out, as are kinds of lines of later versions.

    Raises:
        InvalidArgument: there is no such file, or it is no record.
    """
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size > _MAX_FILE:
                raise InvalidArgument(f"{path} is longer than {_MAX_FILE >> 30} GiB.")
            return _read_lines(path, stream.readline)
    except OSError as exc:
        raise InvalidArgument(f"{path} can't be read: {exc.strerror}.") from exc


def _read_lines(path: Path, readline: Any) -> Record:
    record: Record | None = None
    for number, line in _split(path, readline):
        if not line.endswith(b"\n"):
            if record is None:
                break
            record.is_torn = True
            return record
        parsed = _parse(path, number, line)
        match parsed:
            case Header() if record is None:
                record = Record(path, parsed)
            case Call() if record is not None:
                record.calls.append(parsed)
            case End() if record is not None:
                record.end = parsed
            case None if record is not None:
                pass
            case _:
                raise InvalidArgument(
                    f"{path}: line {number} is out of place.", "A record begins with its header."
                )
    if record is None:
        raise InvalidArgument(f"{path} is no record of a session.", "`pdbox serve --record DIR` writes them.")
    return record


def _split(path: Path, readline: Any) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := readline(_MAX_LINE):
        number += 1
        if len(line) == _MAX_LINE:
            raise InvalidArgument(f"{path}: line {number} is longer than {_MAX_LINE >> 20} MiB.")
        yield number, line


def _parse(path: Path, number: int, line: bytes) -> Header | Call | End | None:
    try:
        data = json.loads(line)
        if _is_deep(data):
            raise ValueError("nested too deeply")
        if isinstance(data, dict) and data.get("kind") not in ("header", "call", "end"):  # pyright: ignore[reportUnknownMemberType]
            return None
        return _AnyLine.model_validate({"line": data}).line
    except ValidationError as exc:
        error = exc.errors(include_url=False)[0]
        place = ".".join(map(str, error["loc"][1:]))
        raise InvalidArgument(
            f"{path}: line {number} is no line of a record: {place}: {error['msg']}."
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise InvalidArgument(f"{path}: line {number} is not JSON, or nested too deeply.") from exc


def _is_deep(value: Any) -> bool:
    """True if walking through it could need more of the stack than there is."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (
                cast(dict[str, Any], one).values() if isinstance(one, dict) else cast(list[Any], one)
            )
        ]
        if not level:
            return False
    return True
