"""Random commands, interrupts, waits, edits, kills and cancels from two sides against one session.

`PDBOX_FUZZ_MINUTES` says how long; a few seconds without it.
"""

from __future__ import annotations

import functools
import os
import random
import re
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from tests.bubblewrap import LOCAL
from tests.e2e.client import Session, ToolFailed, pdbox
from tests.guest.supervisor.guest import Client, Guest, Refused

SECONDS = 60 * float(os.environ.get("PDBOX_FUZZ_MINUTES", "0.3"))
LATE_S = 1.5
"""Time that breaking in and looking round may take behind a deadline, on a busy machine."""
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
TOKEN = re.compile(r"token-\d+-")

FUNCTIONS = """\
import os, sys, threading, time

def add(a, b):
    total = a + b
    return total

def hang():
    while True:
        pass

"""
LOOP = (
    FUNCTIONS
    + """\
count = 0
while True:
    count = add(count, 1)
    if count % 50 == 0:
        print('count', count)
    time.sleep(0.001)
"""
)
ENDS = LOOP.replace("while True:\n    count", "for number in range(30):\n    count")
READS = LOOP.replace("    time.sleep(0.001)\n", "    input('more? ')\n")
CRASHES = ENDS + "if count:\n    os.abort()\n"
RAISES = ENDS + "raise ValueError(count)\n"
BUSY = LOOP.replace("    time.sleep(0.001)\n", "    sum(range(10**7))\n")
THREADS = (
    FUNCTIONS
    + """\
def work():
    count = 0
    while True:
        count = add(count, 1)
        time.sleep(0.01)

for number in range(3):
    threading.Thread(target=work, daemon=True).start()
work()
"""
)

COMMANDS = (
    ["n", "s", "c", "c", "r", "unt", "w", "ll", "u", "d", "a", "b"] * 6
    + ["b add", "b 4", "b 4, a % 3 == 0", "tbreak 5", "cl 1", "disable 1", "enable 1", "ignore 1 2"] * 2
    + [
        "p hang()",
        "p time.sleep(9)",
        "p sum(range(2 * 10**7))",
        "hang()",
        "x = 1;; p x",
        "p nope",
        "!",
        "j 4",
    ]
    * 2
    + ["run", "run", "q", "p os._exit(3)", "p os.abort()", "os.kill(os.getpid(), 9)"]
)


@dataclass(frozen=True)
class Pdb:
    """Commands, with a token printed before, between and behind them."""

    side: int
    commands: tuple[str, ...]
    timeout_s: float
    cancel_after: int | None
    awaited: bool


@dataclass(frozen=True)
class Cancel:
    """The client of the oldest command under way gives up."""


@dataclass(frozen=True)
class Wait:
    """`wait`, as a client has it."""

    side: int
    timeout_s: float
    interrupt: bool
    stdin: str | None
    awaited: bool


@dataclass(frozen=True)
class Inspect:
    """A look at a value."""

    side: int
    expression: str
    timeout_s: float


@dataclass(frozen=True)
class Edit:
    """A rewrite of the program, of that many comment lines at its top."""

    lines: int


@dataclass(frozen=True)
class Kill:
    """The end of the program by a call."""

    side: int


SIDES = st.integers(0, 1)
TIMES = st.sampled_from([0.02, 0.1, 0.3, 1.0, 2.0])
PDB = st.builds(
    Pdb,
    SIDES,
    st.lists(st.sampled_from(COMMANDS), max_size=3).map(tuple),
    TIMES,
    st.sampled_from([None] * 5 + [0, 3, 30, 300, 1000]),
    st.sampled_from([False, False, True]),
)
WAIT = st.builds(Wait, SIDES, TIMES, st.booleans(), st.sampled_from([None, None, "yes\n"]), st.booleans())
INSPECT = st.builds(
    Inspect, SIDES, st.sampled_from(["count", "add", "nope", "hang()", "time.sleep(9)"]), TIMES
)
EDIT = st.builds(Edit, st.integers(0, 3))
KILL = st.builds(Kill, SIDES)
CANCEL = st.builds(Cancel)
OPERATIONS = st.sampled_from([PDB] * 9 + [WAIT] * 5 + [CANCEL] * 3 + [INSPECT, EDIT] * 2 + [KILL]).flatmap(
    lambda chosen: chosen
)


class Stalls:
    """How long this machine let us wait for nothing: a busy one is late with everything."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()

    def between(self, start: float, end: float) -> float:
        """Seconds lost in that time."""
        return sum(late for when, late in self._seen if start <= when <= end + 0.05)

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._ended.wait(0.01):
            now = time.monotonic()
            if now - before > 0.02:
                self._seen.append((now, now - before - 0.01))
            before = now


@dataclass
class Sent:
    """A call under way."""

    client: Client
    number: int
    start: float
    timeout_s: float
    tokens: list[str] = field(default_factory=list)
    is_command: bool = False
    cancelled: bool = False


class Fuzz:
    """One session, what was asked of it, and what it said."""

    def __init__(self, guest: Guest, source: str, stalls: Stalls) -> None:
        self._guest = guest
        self._source = source
        self._stalls = stalls
        self._clients = [guest.client, guest.connect()]
        self._sent: list[Sent] = []
        self._numbers = 0
        self._owners: dict[str, Sent] = {}
        self._told: set[str] = set()
        self._gave_up: set[int] = set()

    def run(self, operations: list[Any]) -> None:
        self._guest.write("app.py", self._source)
        self._guest.client.pdb("p 0", entrypoint="python app.py")
        for operation in operations:
            self._do(operation)
        self._gather()
        self._check_truth()

    def _do(self, operation: Any) -> None:
        match operation:
            case Pdb():
                self._pdb(operation)
            case Wait(side, timeout_s, interrupt, stdin, awaited):
                args = {"timeout_s": timeout_s, "interrupt": interrupt, "stdin": stdin, "eof": False}
                self._send(side, "debug.wait", args, awaited)
            case Inspect(side, expression, timeout_s):
                args = {"expression": expression, "frame": 0, "start": 0, "count": 5, "depth": 1}
                self._send(side, "debug.inspect", {**args, "timeout_s": timeout_s}, awaited=True)
            case Cancel():
                self._cancel()
            case Edit(lines):
                self._edit("# line\n" * lines + self._source)
            case Kill(side):
                self._send(side, "debug.kill", {}, awaited=True)
            case _:
                raise AssertionError(operation)

    def _cancel(self) -> None:
        for sent in self._sent:
            if sent.is_command and not sent.cancelled:
                sent.cancelled = True
                sent.client.cancel(sent.number)
                return

    def _edit(self, text: str) -> None:
        client = self._guest.client
        digest = client.request("files.read", path="app.py", max_bytes=1 << 20)["digest"]
        client.request("files.write", text.encode(), files=[{"path": "app.py", "expect_digest": digest}])

    def _pdb(self, operation: Pdb) -> None:
        tokens = [self._token() for _ in range(len(operation.commands) + 1)]
        lines = [f"p '{tokens[0]}'"]
        for command, token in zip(operation.commands, tokens[1:], strict=True):
            lines += [command, f"p '{token}'"]
        args = {"lines": lines, "timeout_s": operation.timeout_s}
        sent = self._send(operation.side, "debug.command", args, awaited=False)
        sent.tokens, sent.is_command = tokens, True
        self._owners.update(dict.fromkeys(tokens, sent))
        if operation.cancel_after is not None:
            for _ in range(operation.cancel_after):
                self._guest.client.request("debug.state")
            sent.cancelled = True
            sent.client.cancel(sent.number)
        if operation.awaited:
            self._gather()

    def _token(self) -> str:
        self._numbers += 1
        return f"token-{self._numbers}-"

    def _send(self, side: int, op: str, args: dict[str, Any], awaited: bool) -> Sent:
        client, start = self._clients[side], time.monotonic()
        sent = Sent(client, client.start(op, **args), start, args.get("timeout_s", 1.0))
        self._sent.append(sent)
        if awaited:
            self._gather()
        return sent

    def _gather(self) -> None:
        sent, self._sent = self._sent, []
        answers = [(call, self._answer(call)) for call in sent]
        # A `wait` may tell what a command left untold: the commands are looked at first.
        for call, stop in sorted(answers, key=lambda answer: not answer[0].is_command):
            if stop is not None:
                self._check_reply(call, stop)

    def _answer(self, call: Sent) -> dict[str, Any] | None:
        try:
            stop = call.client.result(call.number)
        except Refused as exc:
            if exc.code not in ("conflict", "cancelled", "invalid"):
                raise
            stop = None
        end = call.client.answered[call.number]
        late = end - call.start - call.timeout_s
        assert late <= LATE_S + self._stalls.between(call.start, end), (call, late, stop)
        return stop if stop is not None and "reply" in stop else None

    def _check_reply(self, call: Sent, stop: dict[str, Any]) -> None:
        seen = TOKEN.findall(stop["reply"])
        assert len(seen) == len(set(seen)) and not self._told & set(seen), (call, stop)
        self._told |= set(seen)
        for token in seen:
            owner = self._owners[token]
            # Only what the command's own call could not tell any more may come with another.
            assert owner is call or (not call.is_command and owner.number in self._gave_up), (
                call,
                owner,
                stop,
            )
        if not call.is_command:
            return
        if stop["state"] != "stopped":
            self._gave_up.add(call.number)
        if call.cancelled:
            self._gave_up.add(call.number)
            return
        broken = "KeyboardInterrupt" in stop["reply"] or any(
            "interrupted" in text for text in stop["notices"]
        )
        if stop["state"] == "stopped" and not stop["not_run"] and not broken:
            assert seen == call.tokens, (call, stop)

    def _check_truth(self) -> None:
        client = self._guest.client
        state = self._settled_state()
        note(f"in the end it is {state}")
        if state in ("running", "waiting_for_input"):
            state = client.wait(interrupt=True)["state"]
        if state == "stopped":
            token = self._token()
            assert f"'{token}'" in client.pdb(f"p '{token}'")["reply"]
        if state in ("running", "waiting_for_input"):
            assert client.pdb("q")["state"] == "exited"
        client.request("debug.kill")
        assert self._settled_state() in ("exited", "not_started")

    def _settled_state(self) -> str:
        """The state that the session reports, once it agrees with the process table."""
        end = time.monotonic() + 120
        while True:
            state = self._guest.client.request("debug.state")["state"]
            alive = bool(programs_of(self._guest.process.pid))
            if alive == (state in ("stopped", "running", "waiting_for_input")):
                return state
            assert time.monotonic() < end, (state, alive)


def programs_of(pid: int) -> list[int]:
    """Processes that were started by `pid` and have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def test_no_reply_is_another_ones_none_is_late_and_the_state_is_true() -> None:
    end = time.monotonic() + SECONDS

    # What two sides do at once is never the same twice: nothing is gained by shrinking it, or by keeping it.
    @settings(
        max_examples=max(20, int(SECONDS * 2)),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=SLOW,
    )
    @given(
        st.sampled_from([LOOP, ENDS, READS, CRASHES, RAISES, BUSY, THREADS]),
        st.lists(OPERATIONS, min_size=8, max_size=24),
    )
    def fuzz(source: str, operations: list[Any]) -> None:
        if time.monotonic() > end:
            return
        with tempfile.TemporaryDirectory() as folder, Stalls() as stalls, Guest(Path(folder)) as guest:
            Fuzz(guest, source, stalls).run(operations)

    fuzz()


@pytest.mark.anyio
async def test_calls_of_a_client_that_cancels_never_get_replies_of_others(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LOOP)
    chance = random.Random(3)
    flags = [*LOCAL, "--entrypoint", "python app.py"]
    async with pdbox("--repo", str(tmp_path), *flags) as session:
        await session.call("pdb", command="b add")
        with anyio.move_on_after(min(SECONDS, 5)):
            async with anyio.create_task_group() as tasks:
                for side in range(2):
                    tasks.start_soon(functools.partial(_chat, session, side, chance))
        stop = await session.call("wait", interrupt=True, timeout_s=60)
        assert stop["state"] in ("stopped", "exited")
        assert "last" in (await session.call("pdb", command="run\np 'last'"))["reply"]


async def _chat(session: Session, side: int, chance: random.Random) -> None:
    for number in range(100_000):
        token = f"token-{side}{number}-"
        command = chance.choice(["n", "c", "s", "cl 1", "b 4", "w", "p hang()", "p time.sleep(3)", "run"])
        with anyio.move_on_after(chance.choice([0.05, 0.2, 9])):
            try:
                stop = await session.call("pdb", command=f"p '{token}'\n{command}", timeout_s=0.3)
            except ToolFailed as exc:
                if not re.search("running|cancelled|exited", str(exc)):
                    raise
                await session.call("wait", interrupt=True, timeout_s=2)
                continue
            seen = TOKEN.findall(stop["reply"])
            assert set(seen) <= {token}, stop
            # What is still running has its reply to come; what was broken into may not have come to its token.
            whole = stop["state"] == "stopped" and not stop.get("not_run") and not stop.get("notices")
            assert seen == [token] or not whole, stop
