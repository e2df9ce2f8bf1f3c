"""Make the calls of a recorded session again in a new sandbox, and find the first answer that differs.

Differences by nature don't count: times, durations, addresses, process ids and temporary paths. Exit code 0: no divergence,
1: a divergence, 2: the record can't be replayed. The sandbox is of the kind and limits that the options say, never of those
in the record; repository, Python, entry points, set-up commands and environment are the record's.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from mcp import Client
from mcp.types import TextContent

from mcp_server.backends import candidates
from mcp_server.commands.serve import stdio_store
from mcp_server.connection_options import ConnectionOptions
from mcp_server.errors import one_line
from mcp_server.redaction.mask import MARK
from mcp_server.server import build_server
from mcp_server.sessions.store import SessionStore
from mcp_server.settings import LIMITS, Settings
from mcp_server.trajectories.comparison import Comparison, Difference
from mcp_server.trajectories.record import Call, Record, read
from sandbox.errors import InvalidArgument, PdboxError

SETTINGS = (
    "repo",
    "backend",
    "runtime",
    "unsafe_no_isolation",
    "image",
    "allow_image",
    "network",
    "setup_network",
    "index_url",
    "ca_bundle",
    *LIMITS,
    "log_level",
)
USAGE = "pdbox replay FILE [--repo PATH] [OPTIONS]"
_START, _WAIT = "start_session", "wait"
_UNCOMPARED = ("list_sessions",)
"""Tools whose answers are about more than the session."""
_PRECISION_S = 0.005


def arguments(parser: argparse.ArgumentParser) -> None:
    """The record."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="record that `pdbox serve --record` has written"
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Replay, then print what was found."""
    candidates(settings)
    try:
        outcome = replay(read(args.file), settings)
    except PdboxError as exc:
        print(f"pdbox: {one_line(exc)}", file=sys.stderr)
        return 2
    print(json.dumps(outcome.as_data(), indent=2, ensure_ascii=False) if args.json else outcome.as_text())
    return 1 if outcome.divergence is not None else 0


@dataclass
class Outcome:
    """Result of a replay."""

    calls: int = 0
    compared: int = 0
    divergence: tuple[Call | None, Difference] | None = None
    """The call, or None at the end of the session, and what differs."""
    notes: list[str] = field(default_factory=list[str])

    def as_data(self) -> dict[str, Any]:
        """For `--json`."""
        found = None
        if self.divergence is not None:
            call, difference = self.divergence
            found = {"call": call and call.number, "tool": call and call.tool, **asdict(difference)}
        return {"calls": self.calls, "compared": self.compared, "divergence": found, "notes": self.notes}

    def as_text(self) -> str:
        """For people."""
        notes = [f"note: {note}" for note in self.notes]
        if self.divergence is None:
            return "\n".join([*notes, f"no divergence in {self.compared} calls"])
        call, difference = self.divergence
        place = f"call {call.number}, {call.tool}" if call is not None else "the end"
        return "\n".join(
            [
                *notes,
                f"divergence at {place}: {difference.field}",
                f"  recorded: {_show(difference.recorded)}",
                f"  now:      {_show(difference.now)}",
            ]
        )


def replay(record: Record, settings: Settings) -> Outcome:
    """Make the calls of `record` again, up to the first difference.

    Raises:
        PdboxError: the session can't be opened again.
    """
    with TemporaryDirectory(prefix="pdbox-replay-") as folder:
        chosen = {
            # As the record was made: so both sides are compared in the same form.
            "record": Path(folder),
            "repo": _repository(record, settings),
            "answers": record.header.answers,
            "answer_within_s": record.header.answer_within_s,
            "profile": record.header.profile,
        }
        return _Replay(record, settings.model_copy(update=chosen), Path(folder)).run()


def _repository(record: Record, settings: Settings) -> Path | None:
    if settings.repo is not None:
        return settings.repo
    request = record.header.request
    if request is None or request.repo is None:
        raise InvalidArgument(
            "The record does not say which repository it is about.", "`--repo PATH` names its folder."
        )
    if _is_elsewhere(request.repo):
        return None
    folder = Path(request.repo)
    if not folder.exists():
        raise InvalidArgument(
            f"The repository of the record is not here: {folder}.", "`--repo PATH` names its folder."
        )
    return folder


def _is_elsewhere(repo: str) -> bool:
    return "://" in repo or repo.startswith(("image:", "git@"))


class _Replay:
    def __init__(self, record: Record, settings: Settings, folder: Path) -> None:
        self._record = record
        self._settings = settings
        self._folder = folder
        self._outcome = Outcome(calls=len(record.calls))
        self._failure: PdboxError | None = None
        self._overlapping: set[int] = set()
        self._depends_on_time = False
        """True since a call was answered before the program stopped, until both sessions are at the same stop again."""

    def run(self) -> Outcome:
        anyio.run(self._run)
        if self._failure is not None:
            raise self._failure
        if self._outcome.divergence is None:
            self._compare_ends()
        if self._record.is_torn:
            self._note("the last line of the record is torn and was left out")
        return self._outcome

    async def _run(self) -> None:
        options = ConnectionOptions.of(self._settings)
        store = stdio_store(self._settings)
        async with store, Client(build_server(store, defaults=options)) as client:
            # Kept, not raised: the task groups around would wrap it.
            try:
                self._compare_sessions(await self._open(client, store))
                calls, self._overlapping = _in_order(self._record.calls)
                for call in calls:
                    if not await self._repeat(call, client, store):
                        break
            except PdboxError as exc:
                self._failure = exc

    async def _open(self, client: Client, store: SessionStore) -> Record:
        result = await client.call_tool(_START, self._request())
        if result.is_error:
            text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
            raise InvalidArgument(f"The session can't be opened again. {text}")
        return await self._now(store)

    def _request(self) -> dict[str, Any]:
        request = self._record.header.request
        if request is None:
            self._note("another server had opened the session: with which arguments is not known")
            return {"repo": str(self._settings.repo)}
        given: Mapping[str, Any] = request.model_dump(exclude_none=True, exclude_defaults=True)
        env = {name: value for name, value in request.env.items() if MARK not in value}
        if masked := sorted(set(request.env) - set(env)):
            self._note(f"secret, and so not in the record: {', '.join(masked)} of the environment")
        repo = request.repo if self._settings.repo is None else str(self._settings.repo.absolute())
        # An image of the operator's own choice wins over the record's.
        image = self._settings.image or request.image
        return {**given, "env": env, "repo": repo, "image": image}

    async def _now(self, store: SessionStore) -> Record:
        assert store.recorder is not None
        await store.recorder.flush()
        (file,) = self._folder.glob("*.jsonl")
        return await anyio.to_thread.run_sync(read, file)

    def _compare_sessions(self, now: Record) -> None:
        self._comparison = Comparison(self._record.header, now.header)
        for name, what in (("image", "image"), ("sandbox_python", "Python"), ("pdbox", "pdbox")):
            recorded, here = getattr(self._record.header, name), getattr(now.header, name)
            if recorded != here:
                self._note(f"{what} {recorded or 'none'} when recorded, {here or 'none'} now")

    async def _repeat(self, call: Call, client: Client, store: SessionStore) -> bool:
        """Make one call again and compare; False ends the replay."""
        if call.tool == _START:
            return True
        if (reason := _reason_to_skip(call)) is not None:
            self._note(f"call {call.number}, {call.tool}, was left out: {reason}")
            return True
        await client.call_tool(call.tool, call.arguments)
        now = (await self._now(store)).calls[-1]
        if call.tool in _UNCOMPARED:
            return True
        if self._is_timed(call, now) or call.number in self._overlapping:
            self._note(f"call {call.number}, {call.tool}, was not compared: its answer depends on time")
            return True
        self._outcome.compared += 1
        difference = self._comparison.find(call, now)
        if difference is not None:
            self._outcome.divergence = call, difference
        return difference is None

    def _is_timed(self, recorded: Call, now: Call) -> bool:
        if _is_running(recorded) or _is_running(now):
            self._depends_on_time = True
            return True
        if not self._depends_on_time and not recorded.arguments.get("interrupt"):
            return False
        same = (recorded.state, recorded.stop) == (now.state, now.stop)
        self._depends_on_time = not same and recorded.tool == _WAIT
        return recorded.tool == _WAIT

    def _compare_ends(self) -> None:
        ended = self._record.end
        (file,) = self._folder.glob("*.jsonl")
        now = read(file).end
        if ended is None or now is None or ended.patch is None or now.patch is None:
            return
        difference = self._comparison.find_in_text("final patch", ended.patch, now.patch)
        if difference is not None:
            self._outcome.divergence = None, difference

    def _note(self, text: str) -> None:
        if text not in self._outcome.notes:
            self._outcome.notes.append(text)


def _in_order(calls: Sequence[Call]) -> tuple[list[Call], set[int]]:
    """The calls in the order in which they were made, and the numbers of those that ran while another one did.

    A record has them in the order of their answers.
    """
    try:
        starts = {call.number: datetime.fromisoformat(call.time).timestamp() for call in calls}
    except (ValueError, OverflowError):
        return list(calls), set()
    ordered = sorted(calls, key=lambda call: starts[call.number])
    overlapping: set[int] = set()
    busy, last = 0.0, 0
    for call in ordered:
        if starts[call.number] < busy - _PRECISION_S:
            overlapping |= {call.number, last}
        if (ends := starts[call.number] + call.duration_ms / 1000) > busy:
            busy, last = ends, call.number
    return ordered, overlapping


def _is_running(call: Call) -> bool:
    """True for an answer before the end: that of the debugger at a deadline, or of any call with `--answer-within`."""
    is_early = call.structured is None and not call.is_error and "running: `" in call.text[:200]
    return is_early or call.state == "running"


def _reason_to_skip(call: Call) -> str | None:
    if call.cancelled:
        return "its client had cancelled it, when is not known; the program may have gone elsewhere since"
    if call.arguments_omitted:
        return "its arguments were too long to be recorded"
    if MARK in json.dumps(call.arguments, ensure_ascii=False) and not call.is_error:
        return "secrets are masked in its arguments"
    return None


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
