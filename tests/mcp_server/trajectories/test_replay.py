"""`pdbox replay`: the same calls in a new sandbox."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.cli import main
from mcp_server.commands.replay import (
    Outcome,
    _in_order,  # pyright: ignore[reportPrivateUsage]
    replay,
)
from mcp_server.settings import Settings
from mcp_server.trajectories.comparison import Comparison
from mcp_server.trajectories.record import Call, Header, Record, read
from tests.mcp_server.conftest import Connect, cancel_once_begun

pytestmark = pytest.mark.anyio
SETTINGS = Settings(backend="process", unsafe_no_isolation=True)
FLAGS = ["--backend", "process", "--unsafe-no-isolation"]
KEY = "ghp_" + "a1B2c3D4e5F6" * 3

PROGRAM = """\
import os, tempfile, time

class Thing:
    pass

def double(n):
    result = n * 2
    return result

started, thing, folder = time.time(), Thing(), tempfile.mkdtemp()
print(thing, "pid", os.getpid(), folder, f"took {time.time() - started:.6f} s")
print(double(21))
"""
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("view", {"path": "app.py"}),
    ("pdb", {"command": "b app.py:7\nc"}),
    ("pdb", {"comand": "n"}),
    ("inspect", {"expression": "n"}),
    ("pdb", {"command": "p thing"}),
    ("rewrite", {"path": "app.py", "old_code": "n * 2", "new_code": "n * 3"}),
    ("pdb", {"command": "c"}),
    ("pdb", {"command": "n\nn"}),
    ("bash", {"command": "date; echo $$ >/dev/null; ls"}),
    ("eval", {}),
    ("diff", {}),
    ("list_sessions", {}),
    ("close_session", {}),
]


@pytest.fixture
def repo(repo: Path) -> Path:
    """The repository, with output that differs from run to run."""
    (repo / "app.py").write_text(PROGRAM)
    return repo


async def record(
    connect: Connect, folder: Path, calls: list[tuple[str, dict[str, Any]]], **settings: Any
) -> Path:
    """Make `calls` and give the file they were recorded in."""
    async with connect(record=folder, **settings) as client:
        for tool, arguments in calls:
            await client.call_tool(tool, arguments)
    return next(folder.glob("*.jsonl"))  # noqa: ASYNC240  (nothing else runs)


async def replayed(file: Path, settings: Settings = SETTINGS) -> Outcome:
    """The outcome of a replay, which has an event loop of its own."""
    return await anyio.to_thread.run_sync(replay, read(file), settings)


@pytest.mark.parametrize("answers", ["text", "both"])
async def test_a_session_replays_without_divergence(connect: Connect, tmp_path: Path, answers: str) -> None:
    file = await record(connect, tmp_path / "records", CALLS, answers=answers)
    outcome = await replayed(file)
    assert outcome.divergence is None, outcome.as_text()
    assert (outcome.calls, outcome.compared, outcome.notes) == (len(CALLS), len(CALLS) - 1, [])
    assert outcome.as_text() == f"no divergence in {len(CALLS) - 1} calls"


async def test_the_first_divergence_is_told_with_its_field(
    connect: Connect, tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [("pdb", {"command": "b app.py:8\nc"}), ("pdb", {"command": "p result"}), *CALLS[5:]]
    file = await record(connect, tmp_path / "records", calls)
    (repo / "app.py").write_text(PROGRAM.replace("n * 2", "n * 2 + 1"))
    code = await anyio.to_thread.run_sync(main, ["replay", str(file), *FLAGS])
    assert (code, capsys.readouterr().out) == (
        1,
        (
            "divergence at call 1, pdb: structured.source[1]\n  recorded: 7\t    result = n * 2\n"
            "  now:      7\t    result = n * 2 + 1\n"
        ),
    )
    assert await anyio.to_thread.run_sync(main, ["replay", str(file), "--json", *FLAGS]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["divergence"]["call"], data["divergence"]["tool"], data["compared"]) == (1, "pdb", 1)


async def test_another_folder_can_be_replayed_on(connect: Connect, tmp_path: Path, repo: Path) -> None:
    file = await record(connect, tmp_path / "records", CALLS)
    moved = repo.rename(tmp_path / "elsewhere")  # noqa: ASYNC240
    lost = await anyio.to_thread.run_sync(main, ["replay", str(file), *FLAGS])
    assert lost == 2
    outcome = await replayed(file, SETTINGS.model_copy(update={"repo": moved}))
    assert outcome.divergence is None, outcome.as_text()


async def test_calls_that_depend_on_time_are_not_compared(
    connect: Connect, tmp_path: Path, repo: Path
) -> None:
    (repo / "app.py").write_text("import time\nx = 1\nwhile x: time.sleep(0.01)\nprint('end')\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("pdb", {"command": "b app.py:2\nc"}),
        ("pdb", {"command": "c", "timeout_s": 0.2}),
        ("wait", {"interrupt": True}),
        ("pdb", {"command": "p x"}),
    ]
    file = await record(connect, tmp_path / "records", calls)
    outcome = await replayed(file)
    assert outcome.divergence is None, outcome.as_text()
    assert outcome.compared == 2
    assert outcome.notes == [
        "call 2, pdb, was not compared: its answer depends on time",
        "call 3, wait, was not compared: its answer depends on time",
    ]


async def test_a_call_that_was_answered_early_is_not_compared(connect: Connect, tmp_path: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("bash", {"command": "echo first"}),
        ("bash", {"command": "sleep 6; echo slept"}),
        ("wait", {"timeout_s": 60}),
        ("view", {"path": "app.py"}),
    ]
    file = await record(connect, tmp_path / "records", calls, answers="text", answer_within_s=4)
    assert "running: `bash`" in read(file).calls[1].text and "slept" in read(file).calls[2].text
    outcome = await replayed(file)
    assert outcome.divergence is None, outcome.as_text()
    assert outcome.compared == 2


async def test_a_cancelled_call_is_left_out(connect: Connect, tmp_path: Path, repo: Path) -> None:
    async with connect(record=tmp_path / "records") as client:
        await cancel_once_begun(client, repo)
        await client.call_tool("bash", {"command": "echo here"})
    (repo / "begun").unlink()
    (file,) = (tmp_path / "records").glob("*.jsonl")
    outcome = await replayed(file)
    assert outcome.divergence is None, outcome.as_text()
    assert outcome.compared == 1 and "cancelled" in outcome.notes[0]


async def test_masked_arguments_are_not_taken_for_the_secrets(connect: Connect, tmp_path: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("bash", {"command": f"echo {KEY} > out.txt"}),
        ("bash", {"command": "echo other"}),
    ]
    settings = {"env": ["DB_PASSWORD=c0rrect-Horse-9", "MODE=fast"]}
    file = await record(connect, tmp_path / "records", calls, **settings)
    outcome = await replayed(file)
    assert outcome.compared == 1
    assert outcome.notes == [
        "secret, and so not in the record: DB_PASSWORD of the environment",
        "call 1, bash, was left out: secrets are masked in its arguments",
    ]


async def test_the_final_patch_is_compared(connect: Connect, tmp_path: Path) -> None:
    calls = [("bash", {"command": "head -c 8 /dev/urandom | od -An -tx1 > out.txt"})]
    outcome = await replayed(await record(connect, tmp_path / "records", calls))
    assert outcome.divergence is not None
    call, difference = outcome.divergence
    assert call is None and difference.field.startswith("final patch, line ")


async def test_what_is_no_record_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.jsonl").write_text("{}\n")
    for name in ("no.jsonl", "missing.jsonl"):
        assert await anyio.to_thread.run_sync(main, ["replay", str(tmp_path / name), *FLAGS]) == 2
    assert "is out of place" in (said := capsys.readouterr().err) and "No such file" in said


async def test_a_record_does_not_choose_the_isolation(connect: Connect, tmp_path: Path) -> None:
    file = await record(connect, tmp_path / "records", CALLS[:1])
    assert await anyio.to_thread.run_sync(main, ["replay", str(file), "--backend", "process"]) == 2


def test_long_texts_are_compared_in_linear_time() -> None:
    comparison, start = Comparison(Header(), Header()), time.thread_time()
    for piece in ("1", "1.", "/tmp/", "0x", "pid  ", "12:", "1e-", "id="):
        comparison.normalize(piece * (300_000 // len(piece)))
    assert time.thread_time() - start < 10  # seconds of CPU; minutes, if one of them were quadratic


def test_records_of_overlapping_calls_are_replayed_in_the_order_of_their_starts() -> None:
    first = Call(number=2, tool="pdb", time="2026-01-01T00:00:00.000+00:00", duration_ms=5000)
    second = Call(number=1, tool="wait", time="2026-01-01T00:00:01.000+00:00", duration_ms=1000)
    third = Call(number=3, tool="diff", time="2026-01-01T00:00:06.000+00:00")
    record = Record(Path("x"), Header(), [second, first, third])
    ordered, overlapping = _in_order(record.calls)
    assert [call.number for call in ordered] == [2, 1, 3]
    assert overlapping == {1, 2}
