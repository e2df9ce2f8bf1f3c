"""Resources of sessions for clients: output, patch, tests, trajectory and source files."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from mimetypes import MimeTypes
from typing import Any

import anyio.to_thread
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.shared.uri_template import UriTemplate
from mcp.types import Resource, ResourceTemplate

from mcp_server.redaction.redactor import Redactor
from mcp_server.sessions.store import SessionStore
from mcp_server.trajectories.recent import Trajectories
from sandbox.errors import InvalidArgument, NotFound, SandboxLost
from sandbox.session.session import Session
from sandbox.session.workspace import MAX_PATCH, PatchWindow
from tools import _session_uris as documents
from tools._tool import ignore_progress

PAGE = 256_000
"""Bytes of the content of one answer, as JSON or base64: far below the 400 KB that nothing may exceed."""
PLAIN = "text/plain"
PATCH = "text/x-diff"
LINES = "application/x-ndjson"
BINARY = "application/octet-stream"
_TEXTS = re.compile(r"text/.*|application/(json|javascript|xml|x-sh|.*\+xml)|image/svg\+xml")
_OFFSET = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True)
class Page:
    """A piece of a resource, from `start` to `end` of `total`, in `unit`s."""

    content: str | bytes
    mime_type: str
    start: int
    end: int
    total: int
    unit: str = "characters"
    lost: int = 0
    """Amount before `start` that is no longer kept."""


Reader = Callable[["Reading"], Awaitable[Page]]


@dataclass(frozen=True)
class Reading:
    """One read of a resource: its session, the variables of the URI and the offset."""

    session: Session
    trajectories: Trajectories
    values: dict[str, str]
    offset: int
    redactor: Redactor


@dataclass(frozen=True)
class Kind:
    """One kind of resource."""

    name: str
    title: str
    uri: str
    """Part of the URI after the session's own part."""
    mime_type: str | None
    """None: it depends."""
    description: str
    read: Reader

    @property
    def template(self) -> str:
        """Its URI template."""
        return documents.PREFIX + "{session_id}/" + self.uri + "{?offset}"


async def _output(reading: Reading) -> Page:
    return await _read_output(reading, None, "bytes")


async def _saved_output(reading: Reading) -> Page:
    number = reading.values["number"]
    if not _OFFSET.fullmatch(number):
        raise InvalidArgument(f"{number[:100]!r} is no number of an output.")
    return await _read_output(reading, int(number), "characters")


async def _read_output(reading: Reading, number: int | None, unit: str) -> Page:
    session, offset = reading.session, reading.offset
    page = await session.output.page(number, offset)
    _check_offset(offset, page.total, unit)
    while (cost := _cost(page.text)) > PAGE:
        size = (page.next - offset - page.omitted) * PAGE // cost
        page = await session.output.page(number, offset, size)
    text = await _redact(reading.redactor, page.text)
    return Page(text, PLAIN, offset + page.omitted, page.next, page.total, unit, page.omitted)


async def _patch(reading: Reading) -> Page:
    workspace, offset = reading.session.workspace, reading.offset
    head, window = PatchWindow(0, MAX_PATCH), PatchWindow(offset, PAGE // 2)

    def take(piece: bytes) -> None:
        head.take(piece)
        window.take(piece)

    await workspace.read_patch(take)
    if head.total <= MAX_PATCH:
        text = await _redact(reading.redactor, head.data.decode("utf-8", "surrogateescape"), source=True)
        return _make_page(text.encode("utf-8", "surrogateescape"), None, PATCH, offset)
    # Too long to be held: its pages are of the patch as it is, each masked for itself.
    _check_offset(offset, window.total, "bytes")
    data = window.whole_lines()
    if (text := _decode(data)) is None:
        return Page(data, PATCH, offset, offset + len(data), window.total, "bytes")
    text = _cut_to_page(text, 0)
    end = offset + len(text.encode())
    return Page(await _redact(reading.redactor, text, source=True), PATCH, offset, end, window.total, "bytes")


async def _redact(redactor: Redactor, text: str, *, source: bool = False) -> str:
    """In a thread: a long text takes its time."""
    return await anyio.to_thread.run_sync(lambda: redactor.text(text, source=source))


async def _tests(reading: Reading) -> Page:
    text = await documents.document(reading.session, documents.TESTS)
    text = await _redact(reading.redactor, text)
    return _make_page(text.encode("utf-8", "backslashreplace"), None, PLAIN, reading.offset)


async def _trajectory(reading: Reading) -> Page:
    text = reading.trajectories.of(reading.session)
    return _make_page(text.encode(), None, LINES, reading.offset)


async def _source(reading: Reading) -> Page:
    path = reading.session.workspace.path(reading.values["path"])
    data, text = await reading.session.workspace.content(path)
    text = text and await _redact(reading.redactor, text, source=True)
    return _make_page(data, text, mime_type_of(path, is_text=text is not None), reading.offset)


KINDS = (
    Kind(
        "output",
        "Program output",
        "output",
        PLAIN,
        "What the program under the debugger has printed in its present or last run, the last 4 MiB.",
        _output,
    ),
    Kind(
        "patch",
        "Patch",
        "patch",
        PATCH,
        "Everything changed in the repository since the session began, for `git apply`.",
        _patch,
    ),
    Kind(
        "tests", "Test results", "tests", PLAIN, "The last outcome of each test that `eval` has run.", _tests
    ),
    Kind(
        "trajectory",
        "Trajectory",
        "trajectory",
        LINES,
        "The last calls on this session through this server, a JSON object each.",
        _trajectory,
    ),
    Kind(
        "answer-output",
        "Output of a call",
        "output/{number}",
        PLAIN,
        "All output of a call whose answer had to leave some out, by the number it gave; the last few are kept.",
        _saved_output,
    ),
    Kind(
        "source",
        "Source file",
        "source/{+path}",
        None,
        "A file of the session's copy of the repository, by its path.",
        _source,
    ),
)


def list_templates() -> list[ResourceTemplate]:
    """All templates, always the same."""
    return [
        ResourceTemplate(
            name=kind.name,
            title=kind.title,
            uri_template=kind.template,
            description=kind.description,
            mime_type=kind.mime_type,
        )
        for kind in KINDS
    ]


def list_resources(sessions: list[Session]) -> list[Resource]:
    """List the resources with fixed names, for each session."""
    return [
        Resource(
            name=f"{kind.name} {number}",
            title=f"{kind.title} of session {number}",
            uri=documents.uri_of(session, kind.uri),
            description=kind.description,
            mime_type=kind.mime_type,
        )
        for number, session in enumerate(sessions, 1)
        for kind in KINDS
        if "{" not in kind.uri
    ]


async def contents(
    store: SessionStore, owner: str, trajectories: Trajectories, uri: str, handle: str | None = None
) -> list[ReadResourceContents]:
    """Read a resource, or a page of it with a second item that gives the URI of the next page.

    `handle`: of the one session whose resources may be read; None: of all of `owner`.

    Raises:
        NotFound: no such resource, or no such session of `owner`.
        PdboxError: it can't be read.
    """
    kind, values = _parse(uri)
    offset = _offset(values.pop("offset", ""))
    if handle not in (None, of := values.pop("session_id")):
        raise NotFound("This connection has its own session, and the resource is of another.")
    session = await store.get(owner, of, ignore_progress)
    try:
        page = await kind.read(Reading(session, trajectories, values, offset, store.redactor(session)))
    except SandboxLost:
        await store.check(owner, session)
        raise
    return _with_note(page, uri.partition("?")[0])


def _parse(uri: str) -> tuple[Kind, dict[str, str]]:
    for kind in KINDS:
        found = UriTemplate.parse(kind.template).match(uri)
        if found is not None:
            return kind, {name: value for name, value in found.items() if isinstance(value, str)}
    raise NotFound("There is no such resource.", f"There are: {', '.join(kind.template for kind in KINDS)}.")


def _offset(text: str) -> int:
    if text and not _OFFSET.fullmatch(text):
        raise InvalidArgument(f"{text[:100]!r} is no offset.", "Pages tell where to go on.")
    return int(text or 0)


def _with_note(page: Page, uri: str) -> list[ReadResourceContents]:
    if not page.start and page.end >= page.total:
        return [ReadResourceContents(page.content, page.mime_type)]
    following = f"{uri}?offset={page.end}" if page.end < page.total else None
    meta: dict[str, Any] = {
        "pdbox/start": page.start,
        "pdbox/end": page.end,
        "pdbox/total": page.total,
        "pdbox/next": following,
    }
    lost = f" {page.lost:,} {page.unit} before them are no longer kept." if page.lost else ""
    more = f" Go on with {following}" if following else " This is the end."
    note = f"(This is {page.unit} {page.start:,} to {page.end:,} of {page.total:,}.{lost}{more})"
    return [ReadResourceContents(page.content, page.mime_type, meta), ReadResourceContents(note, PLAIN)]


def _make_page(data: bytes, text: str | None, mime_type: str, offset: int) -> Page:
    """Make a page from `offset` on of a text, or of `data` if it is not text."""
    if text is None:
        text = _decode(data)
    total, unit = (len(data), "bytes") if text is None else (len(text), "characters")
    _check_offset(offset, total, unit)
    content = data[offset : offset + PAGE * 3 // 4] if text is None else _cut_to_page(text, offset)
    return Page(content, mime_type, offset, offset + len(content), total, unit)


def _check_offset(offset: int, total: int, unit: str) -> None:
    if offset > total:
        raise InvalidArgument(f"It has {total:,} {unit}; offset={offset} is beyond its end.")


def _decode(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None  # as it is, in base64: a patch with other bytes would not apply


def _cut_to_page(text: str, offset: int) -> str:
    """Whole lines, if a line fits."""
    piece = text[offset : offset + PAGE]
    while (cost := _cost(piece)) > PAGE:
        piece = piece[: len(piece) * PAGE // cost]
    if offset + len(piece) == len(text):
        return piece
    return piece[: piece.rfind("\n") + 1] or piece


def _cost(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace"))


@cache
def _types() -> MimeTypes:
    """Python's own list: that of the machine differs from one to the next."""
    return MimeTypes()


def mime_type_of(path: str, *, is_text: bool) -> str:
    """The MIME type of a file, by its name and its content (text or binary)."""
    kind, packed = _types().guess_type(path, strict=False)
    if packed is not None or kind is None:
        kind = "application/gzip" if packed == "gzip" else BINARY
    if is_text:
        return kind if _TEXTS.fullmatch(kind) else PLAIN
    return BINARY if _TEXTS.fullmatch(kind) else kind
