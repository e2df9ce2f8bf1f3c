"""The HTML page of a recorded session."""

from __future__ import annotations

import html
import json
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcp_server.cli import main
from mcp_server.trajectories.page import to_page
from mcp_server.trajectories.record import Call, End, Header, Record
from tests.mcp_server.trajectories.conftest import Calls, RecordCalls

pytestmark = pytest.mark.anyio
CALLS: Calls = [
    ("pdb", {"command": "b app.py:2\nc"}),
    ("pdb", {"command": "n"}),
    ("pdb", {"command": "p result"}),
    ("pdb", {"comand": "n"}),
    ("rewrite", {"path": "app.py", "old_code": "n * 2", "new_code": "n * 3"}),
    ("eval", {}),
]
HOSTILE = [
    "</script><script>document.title='pwned'</script>",
    "<!--<script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "]]>\u2028\u2029{{record}}{{policy}}",
    "javascript:document.title='pwned'",
]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


def data_in(page: str) -> dict[str, Any]:
    """The data of a page, as its script reads it."""
    (found,) = re.findall(r'<script type="application/json" id="record">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def hostile() -> Record:
    """A record whose every text is an attack."""
    bad = "\n".join(HOSTILE)
    point = {"id": bad, "path": bad, "line": bad, "condition": bad, "hits": bad}
    data: dict[str, Any] = {
        "frame": {"path": bad, "line": bad, "function": bad},
        "source": ["> " + bad, bad],
        "changed": [{"name": bad, "value": bad, "old": bad, "kind": bad}, 3],
        "locals": [{"name": bad, "value": [bad]}],
        "breakpoints": [point, bad],
        "exception": {"type": bad, "message": bad},
        "output": bad,
        "diff": bad,
        "run": {
            "exit_code": bad,
            "passed": bad,
            "fixed": [bad],
            "broken": bad,
            "tests": [{"id": bad, "message": bad}],
        },
    }
    calls = [
        Call(
            number=number,
            tool=tool,
            arguments={bad: bad},
            text=bad,
            structured=data,
            state="stopped",
            time=bad,
        )
        for number, tool in enumerate(("pdb", "rewrite", bad), 1)
    ]
    header = Header(session=bad, repository=bad, image=bad, time=bad, pdbox=bad)
    return Record(Path("x"), header, calls, End(reason=bad, patch=bad))


def dom_of(page: Path, folder: Path) -> str:
    """The page as Chromium has it after its script."""
    assert CHROMIUM is not None
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder}",
    ]
    done = subprocess.run(
        [CHROMIUM, *flags, "--virtual-time-budget=5000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout


async def test_the_page_has_stops_changes_breakpoints_edits_and_tests(
    record_calls: RecordCalls, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = await record_calls(CALLS, answers="text")
    target = tmp_path / "report.html"
    assert main(["report", str(record.path), "-o", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"page": str(target), "bytes": target.stat().st_size}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    data = data_in(target.read_text("utf-8"))
    first, second, third, refused, edit, run = data["calls"]
    assert data["title"] == "repo"
    assert first["place"] == "app.py:2 in double"
    assert [line.strip() for line in first["source"] if line.lstrip().startswith(">")] == [
        ">2\t    result = n * 2"
    ]
    assert first["breakpoints"][0]["place"] == "app.py:2"
    assert {"name": "result", "value": "42", "kind": "new"} in second["changed"]
    assert "source" not in third and third["text"].endswith("42")
    assert refused["kind"] == "failed" and refused["mark"] == "refused"
    assert "+    result = n * 3" in edit["diff"] and edit["kind"] == "edit" and "breakpoints" not in edit
    assert run["tests"]["exit_code"] == 0
    assert "+    result = n * 3" in data["patch"]


def test_nothing_is_loaded_and_only_the_own_script_may_run() -> None:
    page = to_page(hostile())
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert "<img" not in page and "<!--" not in page
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert not re.search(r"(?:src|href)=|url\(|@import", to_page(Record(Path("x"), Header())))
    assert data_in(page)["calls"][0]["text"] == "\n".join(HOSTILE)


def test_five_hundred_calls_are_below_two_megabytes() -> None:
    line = "> 12      value = compute(everything, at='once')  # <&>"
    data = {
        "source": [line] * 40,
        "changed": [{"name": f"name{number}", "value": "é" * 300, "kind": "new"} for number in range(30)],
        "locals": [{"name": "x", "value": "<" * 3_000}],
        "output": "o" * 5_000,
        "frame": {"path": "a.py", "line": 12, "function": "f"},
    }
    calls = [
        Call(
            number=number,
            tool="pdb",
            arguments={"command": "n"},
            text="t" * 4_000,
            structured=data,
            state="stopped",
        )
        for number in range(1, 501)
    ]
    page = to_page(Record(Path("x"), Header(), calls, End(patch="+" * 900_000)))
    assert len(page.encode()) < 2_000_000
    found = data_in(page)["calls"]
    assert len(found) == 500
    assert found[-1]["source"][0] == line, "short texts are whole"
    assert found[0]["output"].endswith("…") and found[0]["is_cut"]


def test_a_record_without_calls_has_a_page() -> None:
    data = data_in(to_page(Record(Path("x"), Header())))
    assert data["calls"] == [] and "has no end" in data["gaps"][0]


def with_keys(page: str, *keys: str) -> str:
    """The page, with a script that presses keys."""
    presses = "".join(f"dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}));" for key in keys)
    return page.replace("</body>", f"<script>{presses}</script></body>")


def without_policy(page: str) -> str:
    return re.sub(r"<meta http-equiv[^>]*>", "", page)


@needs_chromium
def test_chromium_runs_nothing_of_a_hostile_record_even_without_the_policy(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(without_policy(with_keys(to_page(hostile()), "j", "j", "k")), "utf-8")
    dom = dom_of(page, tmp_path / "profile")
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert title is not None and title[1] != "pwned" and title[1].endswith("· pdbox report")
    assert "<img" not in dom
    assert html.escape(HOSTILE[2], quote=False) in dom


@needs_chromium
async def test_keys_go_from_call_to_call_in_chromium(record_calls: RecordCalls, tmp_path: Path) -> None:
    page = with_keys(to_page(await record_calls(CALLS)), "j", "ArrowDown", "j", "k", "j", "j")
    (tmp_path / "blocked.html").write_text(page, "utf-8")
    # Under its own policy the script of the page runs, and a foreign one does not.
    assert 'class="dim">call 1 of 6' in dom_of(tmp_path / "blocked.html", tmp_path / "profile")
    (tmp_path / "keys.html").write_text(without_policy(page), "utf-8")
    dom = dom_of(tmp_path / "keys.html", tmp_path / "profile")
    assert 'class="dim">call 5 of 6' in dom
    assert '<span class="add">+    result = n * 3</span>' in dom
