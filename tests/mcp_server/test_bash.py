"""Long and late output of `bash`."""

from __future__ import annotations

import re

import pytest

from tests.mcp_server.conftest import Connect
from tests.mcp_server.test_calls import text

pytestmark = pytest.mark.anyio


async def test_long_output_is_cut_at_its_end_and_that_of_a_failure_at_its_beginning(connect: Connect) -> None:
    async with connect(answers="text") as client:
        good = text(await client.call_tool("bash", {"command": "seq 3000"}))
        assert good.startswith("exit code 0, output:\n```\n1\n2\n3\n")
        (uri, start) = re.findall(r'Go on with view\(path="(.*)", start=(\d+)\)', good)[0]
        assert f"\n{int(start) - 1}\n[… " in good
        rest = text(await client.call_tool("view", {"path": uri, "start": int(start)}))
        assert f"  {start}  {start}\n" in rest
        bad = text(await client.call_tool("bash", {"command": "seq 3000; exit 3"}))
        assert "left out …]\n" in bad and "\n2999\n3000\n```" in bad
        (uri, end) = re.findall(r'What came before: view\(path="(.*)", start=1, end=(\d+)\)', bad)[0]
        assert f"left out …]\n{int(end) + 1}\n" in bad


async def test_at_a_time_out_there_is_what_was_printed_and_how_to_give_more_time(connect: Connect) -> None:
    async with connect(answers="text") as client:
        late = text(await client.call_tool("bash", {"command": "seq 3000; sleep 600", "timeout_s": 1.5}))
        assert late.startswith(
            "ended at its limit of 1.5 s, with all that it started; give a higher timeout_s (up to 3600) if it needs"
            " longer, output:\n```\n[… "
        )
        assert "\n2999\n3000\n```" in late


async def test_of_a_progress_bar_the_last_state_is_shown_here_and_in_what_was_saved(connect: Connect) -> None:
    bar = r"""i=0; while [ $i -lt 600 ]; do printf '\rload %d' $i; i=$((i + 1)); done; echo; seq 3000"""
    async with connect(answers="text") as client:
        shown = text(await client.call_tool("bash", {"command": bar}))
        assert shown.startswith("exit code 0, output:\n```\n[… 599 overwritten …] load 599\n1\n2\n")
        (uri, start) = re.findall(r'Go on with view\(path="(.*)", start=(\d+)\)', shown)[0]
        rest = text(await client.call_tool("view", {"path": uri, "start": int(start)}))
        assert f"  {start}  {int(start) - 1}\n" in rest
        assert "1  [… 599 overwritten …] load 599" in text(await client.call_tool("view", {"path": uri}))
