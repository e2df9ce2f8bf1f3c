"""Clients over HTTP, while containers are killed and stopped, streams cut, and the server killed at any moment.

`make chaos MINUTES=10 CLIENTS=20 BACKEND=bubblewrap` does it for longer, on one backend or on both.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from mcp_server.server import owner_of
from mcp_server.sessions.kept_edits import KeptEdits
from sandbox.bubblewrap.backend import BubblewrapBackend
from tests.bubblewrap import REASON
from tests.docker_client import docker
from tests.e2e.client import Session, ToolFailed
from tests.e2e.served import OVER_HTTP, Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.long]
SECONDS = 60 * float(os.environ.get("PDBOX_CHAOS_MINUTES", "0.4"))
CLIENTS = int(os.environ.get("PDBOX_CHAOS_CLIENTS", "4"))
SEED = int(os.environ.get("PDBOX_CHAOS_SEED", "0")) or random.randrange(1 << 30)
NOT_NOW = REASON or ("" if "PDBOX_CHAOS_MINUTES" in os.environ else "`make chaos` runs it")
LONG = pytest.param("bubblewrap", marks=pytest.mark.skipif(bool(NOT_NOW), reason=NOT_NOW or "it works"))
LIMITS = f"--max-sessions {3 * CLIENTS} --max-sessions-per-principal {3 * CLIENTS} --session-grace 60".split()
HANG_S = 150.0
"""A call has its own limits far below; on a busy machine they come late."""
APP = """import time

MARK = 'none'


def step(n):
    value = (MARK, n)
    return value


for n in range(3):
    step(n)
print(MARK)
"""
TOLD = (
    "kept: ",
    "unknown or has expired",
    "opens a new",
    "Call again",
    "No edits of such a session",
    "doesn't answer",
    "`pdbox doctor`",
)
"""Parts of messages about a loss that say what to do next."""


class Relay:
    """A socket in front of the engine's, whose connections can be cut."""

    def __init__(self, real: str) -> None:
        self._real = real
        self._open: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def listening(self, path: str) -> AsyncIterator[None]:
        """Relay until the block ends."""
        async with await asyncio.start_unix_server(self._connect, path):
            yield
            self.cut(1.0)

    def cut(self, share: float) -> None:
        """Cut this share of the connections."""
        for writer in [one for one in self._open if random.random() <= share]:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_unix_connection(self._real)
        self._open |= {writer, ours}
        try:
            await asyncio.gather(_pump(reader, ours), _pump(theirs, writer))
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            self._open -= {writer, ours}
            for one in (writer, ours):
                one.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
        return
    writer.transport.abort()


@dataclass
class Run:
    """One run: the server of the moment, and what was found."""

    backend: str
    relay: Relay
    flags: list[str]
    env: dict[str, str]
    owners: set[str]
    ends: float
    calm: anyio.Event = field(default_factory=anyio.Event)
    """Set when nothing is broken any more."""
    servers: ExitStack = field(default_factory=ExitStack)
    server: Server | None = None
    wrong: list[str] = field(default_factory=list[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    done: Counter[str] = field(default_factory=Counter[str])

    @property
    def is_over(self) -> bool:
        """True when the time is over, and files have been compared in it, however busy the machine is."""
        return time.monotonic() > self.ends and self.done["compared"] > 0

    def start(self) -> None:
        """Start a server; the one before must be dead."""
        self.server = self.servers.enter_context(serving(*self.flags, **self.env))

    async def kept(self) -> list[str]:
        """Edits that are left on this machine. Of sessions without any, the request that opened them may be left for a day."""
        folder = Path(os.environ["XDG_STATE_HOME"]) / "pdbox" / "edits"
        found = [(owner, path.name) for owner in self.owners for path in folder.glob(f"{owner}/*")]
        all_kept = [await KeptEdits(folder).load(owner, key) for owner, key in found]
        return [path for kept in all_kept if kept is not None for path in kept.files]

    def sandboxes(self) -> list[str]:
        """Containers of this run's principals, or the first process of each sandbox."""
        if self.backend == "bubblewrap":
            found = anyio.from_thread.run(BubblewrapBackend({**os.environ, **self.env}).living)
            return [one.place for one in found if one.owner in self.owners]
        out = docker("ps", "-a", "--no-trunc", "--filter", "label=pdbox",
                     "--format", '{{.ID}} {{.Label "pdbox.owner"}}')  # fmt: skip
        pairs = [line.split() for line in out.splitlines()]
        return [pair[0] for pair in pairs if len(pair) == 2 and pair[1] in self.owners]

    def first_process(self, sandbox: str) -> int:
        """The process ID, on this machine, of a sandbox's first process."""
        if self.backend == "bubblewrap":
            return int(sandbox)
        pid = int(docker("inspect", "-f", "{{.State.Pid}}", sandbox))
        # It has ended, or the number is one of another machine.
        assert pid and sandbox in Path(f"/proc/{pid}/cgroup").read_text()
        return pid


@dataclass
class Worker:
    """One client: it knows what every file must have."""

    run: Run
    number: int
    token: str
    repo: Path
    handle: str = ""
    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    doubtful: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Contents of the edits since then that were not answered: each may have been made, and also be lost with its sandbox."""
    tried: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Hashes of all contents that were ever sent."""

    async def work(self) -> None:
        """Connect again and again."""
        way = OVER_HTTP[self.number % len(OVER_HTTP)]
        while not self.run.is_over:
            server = self.run.server
            assert server is not None
            try:
                async with server.connected(way, self.token) as client:
                    while not self.run.is_over and server is self.run.server:
                        await self.once(client)
            except (Exception, BaseExceptionGroup):
                if server is self.run.server and server.process.poll() is None:
                    self.run.done["connection failed"] += 1
                await anyio.sleep(0.1)
        await self.run.calm.wait()
        await self.finish(way)

    async def finish(self, way: Any) -> None:
        """In the end everything must still be there."""
        assert self.run.server is not None
        async with self.run.server.connected(way, self.token) as client:
            if self.handle:
                for _ in range(3):
                    try:
                        await self.compare(client)
                        break
                    except ToolFailed as exc:
                        await self.recover(client, str(exc))
                else:
                    self.run.wrong.append(f"{self.number}: not reached at the end")
                await self.call(client, "close_session", session_id=self.handle)

    async def once(self, client: Session) -> None:
        """One step of work; after a loss, resume."""
        try:
            if not self.handle:
                await self.open(client)
            await random.choice([self.rewrite, self.rewrite, self.pdb, self.eval, self.compare])(client)
        except ToolFailed as exc:
            if not any(part in str(exc) for part in TOLD):
                self.run.wrong.append(f"{self.number}: unclear: {exc}")
            await self.recover(client, str(exc))

    async def open(self, client: Session) -> None:
        opened = await self.call(client, "start_session", repo=str(self.repo), entrypoint="python app.py")
        self.handle, self.acknowledged = opened["session_id"], {"app.py": APP}
        self.doubtful, self.tried = {}, {}

    async def recover(self, client: Session, told: str) -> None:
        """Do what the message says."""
        if not self.handle:
            return
        has_edits = self.acknowledged != {"app.py": APP}
        try:
            await self.call(client, "view", path="app.py", session_id=self.handle)
        except ToolFailed as exc:
            if "kept: " in str(exc):
                await self.call(client, "start_session", resume=self.handle)
                self.run.done["resumed"] += 1
                await self.compare(client)
            elif "unknown or has expired" in str(exc):
                if has_edits:
                    self.run.wrong.append(f"{self.number}: lost {sorted(self.acknowledged)}: {told} / {exc}")
                self.handle = ""

    async def rewrite(self, client: Session) -> None:
        path = random.choice(["app.py", "note.txt", "new/deep.txt"])
        mark = uuid.uuid4().hex
        content = APP.replace("none", mark) if path == "app.py" else f"{mark}\n" * random.randrange(1, 200)
        self.doubtful.setdefault(path, []).append(content)
        self.tried.setdefault(path, []).append(_hash(content))
        await self.call(client, "rewrite", path=path, new_code=content, session_id=self.handle)
        self.acknowledged[path] = content
        del self.doubtful[path]

    async def pdb(self, client: Session) -> None:
        mark = uuid.uuid4().hex
        answer = await self.call(
            client, "pdb", command=f"b step\nc\np MARK, '{mark}'", session_id=self.handle
        )
        if mark not in answer["reply"] or not any(one in answer["reply"] for one in self.marks()):
            self.run.wrong.append(f"{self.number}: pdb: {answer['state']} {answer['reply'][:300]}")
        await self.call(client, "pdb", command="clear\nq", session_id=self.handle)

    async def eval(self, client: Session) -> None:
        answer = await self.call(client, "eval", session_id=self.handle)
        if answer["output"].strip() not in self.marks():
            self.run.wrong.append(f"{self.number}: eval: {answer['output'][:300]!r}, not {self.marks()}")

    async def compare(self, client: Session) -> None:
        """Check each file."""
        for path in {*self.acknowledged, *self.doubtful}:
            texts = [*self.doubtful.get(path, []), self.acknowledged.get(path, "")]
            command = f"cat {path} 2>/dev/null | sha256sum"
            found = (await self.call(client, "bash", command=command, session_id=self.handle))["output"][:64]
            if found not in map(_hash, texts):
                tried = self.tried.get(path, [])
                back = len(tried) - tried.index(found) if found in tried else None
                self.run.wrong.append(
                    f"{self.number}: {path} is none of {len(texts)} versions, edit {back} from the last of {len(tried)}"
                )
        self.run.done["compared"] += 1

    def marks(self) -> set[str]:
        texts = [self.acknowledged["app.py"], *self.doubtful.get("app.py", [])]
        return {text.partition("MARK = '")[2].partition("'")[0] for text in texts}

    async def call(self, client: Session, tool: str, **arguments: Any) -> Any:
        with anyio.move_on_after(HANG_S) as scope:
            self.run.done[tool] += 1
            return await client.call(tool, **arguments)
        assert scope.cancelled_caught
        self.run.wrong.append(f"{self.number}: `{tool}` hung")
        raise ConnectionError


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def break_things(run: Run) -> None:
    """One fault after the other, at random moments, while the clients work."""
    deeds = ["kill"] * 4 + ["rm"] * 2 + ["cut"] * 3 + ["server"]
    if run.backend == "bubblewrap" or os.geteuid() == 0:
        deeds += ["stop"] * 2
    random.shuffle(deeds)
    number = 0
    while not run.is_over:
        await anyio.sleep(
            random.uniform(0.2, 2)
        )  # a fault must come at any moment, not at one that was waited for
        deed = deeds[number % len(deeds)]
        number += 1
        # It has gone by itself, or the engine hangs.
        with suppress(AssertionError, OSError, subprocess.TimeoutExpired):
            await _break(run, deed)
        run.faults[deed] += 1
    run.calm.set()


async def _break(run: Run, deed: str) -> None:
    in_thread = anyio.to_thread.run_sync
    if deed == "cut":
        run.relay.cut(random.choice([0.3, 1.0]))
    elif deed == "server":
        assert run.server is not None
        run.server.process.kill()
        await in_thread(run.server.process.wait)
        await in_thread(run.start)
    elif found := await in_thread(run.sandboxes):
        one = random.choice(found)
        if deed == "stop":
            await _stop_for_a_while(await in_thread(run.first_process, one))
        elif run.backend == "bubblewrap":
            os.kill(int(one), signal.SIGKILL)  # with which all end
        else:
            await in_thread(docker, *(["rm", "-f"] if deed == "rm" else ["kill"]), one)


async def _stop_for_a_while(first: int) -> None:
    """Stop the first process of a sandbox and those below it. `docker pause` hangs the engine where it meets a `docker exec`."""
    pids = _with_children(first)
    try:
        _signal_all(pids, signal.SIGSTOP)
        await anyio.sleep(random.uniform(0.5, 3))
    finally:
        _signal_all(pids, signal.SIGCONT)


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def _with_children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            children += map(int, file.read_text().split())
    return [pid, *(below for child in children for below in _with_children(child))]


@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("backend", [pytest.param("docker", marks=pytest.mark.docker), LONG])
async def test_no_acknowledged_edit_is_lost_and_nothing_is_left_whatever_breaks(
    tmp_path: Path, backend: str
) -> None:
    random.seed(SEED)
    names = [f"chaos-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    tokens = {name: uuid.uuid4().hex for name in names}
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{name} {token}\n" for name, token in tokens.items()))
    real = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    with tempfile.TemporaryDirectory(prefix="pdbox-test-") as runtime:
        relay = Relay(real)
        run = Run(
            backend,
            relay,
            ["--backend", backend, "--root", str(tmp_path), "--token-file", str(file), *LIMITS],
            {"DOCKER_HOST": f"unix://{runtime}/engine", "XDG_RUNTIME_DIR": runtime},
            {owner_of(json.dumps([issuer, "subject", name])) for name in names for issuer in (None, "")},
            time.monotonic() + SECONDS,
        )
        async with relay.listening(f"{runtime}/engine"):
            with run.servers:
                await anyio.to_thread.run_sync(run.start)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(break_things, run)
                    for number in range(CLIENTS):
                        (repo := tmp_path / f"repo{number}").mkdir()
                        (repo / "app.py").write_text(APP)
                        worker = Worker(run, number, tokens[names[number % 2]], repo)
                        tasks.start_soon(worker.work)
                print(f"seed {SEED}; done {dict(run.done)}; faults {dict(run.faults)}; wrong {run.wrong}")
                assert run.server is not None
                await run.server.end(signal.SIGTERM)
            with anyio.fail_after(300):
                while await anyio.to_thread.run_sync(run.sandboxes):  # noqa: ASYNC110 - asked no more often
                    await anyio.sleep(0.5)
    assert not run.wrong
    assert run.done["compared"] and run.faults
    assert not await run.kept()
