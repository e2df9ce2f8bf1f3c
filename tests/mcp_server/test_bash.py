"""Long and late output of `bash`."""

from __future__ import annotations

import re

import pytest

from tests.mcp_server.conftest import Connect
from tests.mcp_server.test_calls import text

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("end", "ratio"), [("", 2), ("; exit 3", 0.5)])
async def test_of_long_output_the_middle_is_cut_nearer_to_the_end_that_matters_less(
    connect: Connect, end: str, ratio: float
) -> None:
    async with connect(answers="text") as client:
        shown = text(await client.call_tool("bash", {"command": f"seq 10001 13000{end}"}))
        first, last, start, stop, uri = gap_of(shown, r'view\(path="(.*)", start=(\d+), end=(\d+)\)')
        assert (start, stop) == (first, last)
        head, tail = first - 1, 3000 - last
        assert shown.partition("output:")[2].startswith("\n```\n10001\n10002\n10003\n")
        assert f"\n{10000 + head}\n[… " in shown and f"…]\n{10001 + last}\n" in shown
        assert "\n12999\n13000\n```" in shown
        assert 0.9 * ratio < head / tail < 1.1 * ratio
        rest = text(await client.call_tool("view", {"path": uri, "start": start, "end": stop}))
        assert f"\n{start}\t{10000 + start}\n" in rest


@pytest.mark.parametrize("command", ["seq 10001 13000", "printf '\\r1\\r2\\n'; seq 10002 13000; exit 3"])
async def test_a_client_without_view_gets_the_missing_lines_from_a_file(
    connect: Connect, command: str
) -> None:
    async with connect(answers="text", profile="bash") as client:
        shown = text(await client.call_tool("bash", {"command": command}))
        first, last, start, stop, file = gap_of(shown, r"`sed -n (\d+),(\d+)p (.*)`", file_last=True)
        assert (start, stop) == (first, last)
        assert "view" not in shown
        rest = text(await client.call_tool("bash", {"command": f"sed -n {start},{start + 99}p {file}"}))
        wanted = "\n".join(str(10000 + line) for line in range(start, start + 100))
        assert rest == f"exit code 0, output:\n```\n{wanted}\n```"


async def test_of_a_long_line_the_rest_can_be_read_as_well(connect: Connect) -> None:
    async with connect(answers="text", profile="bash") as client:
        command = "echo one; python3 -c 'print(*range(10000, 12000))'"
        shown = text(await client.call_tool("bash", {"command": command}))
        (advised, column) = re.findall(r"`(sed -n 2p \S+ \| cut -c (\d+)-)`", shown)[0]
        seen = shown.partition("```\none\n")[2].partition("[… ")[0]
        assert len(seen) == int(column) - 1
        rest = text(await client.call_tool("bash", {"command": f"{advised} | head -c 100"}))
        assert rest.partition("```\n")[2][:100] in " ".join(map(str, range(10000, 12000)))
        assert (seen + rest.partition("```\n")[2][:100]).startswith("10000 10001 ")


def gap_of(shown: str, advice: str, *, file_last: bool = False) -> tuple[int, int, int, int, str]:
    """The lines that the gap names, then lines and file that the advice does."""
    ((first, last),) = re.findall(r"\[… lines (\d+)-(\d+) of the output left out …\]\n", shown)
    (found,) = re.findall(rf"characters of output\. Show them: {advice}\.\)", shown)
    start, stop, file = found if file_last else (*found[1:], found[0])
    return int(first), int(last), int(start), int(stop), file


async def test_a_failure_before_the_last_part_of_a_pipe_is_told(connect: Connect) -> None:
    async with connect(answers="text") as client:
        failed = text(await client.call_tool("bash", {"command": "(echo 1 failed; exit 1) | tail -3"}))
        assert failed == "exit code 0 (parts of the pipe: 1, 0), output:\n```\n1 failed\n```"
        enough = text(await client.call_tool("bash", {"command": "seq 100000 | head -1"}))
        assert enough == "exit code 0, output:\n```\n1\n```"


async def test_at_a_time_out_there_is_what_was_printed_and_how_to_give_more_time(connect: Connect) -> None:
    async with connect(answers="text") as client:
        late = text(await client.call_tool("bash", {"command": "seq 3000; sleep 600", "timeout_s": 1.5}))
        assert late.startswith(
            "ended at its limit of 1.5 s, with all that it started; give a higher timeout_s (up to 3600) if it needs"
            " longer, output:\n```\n1\n2\n"
        )
        assert "\n2999\n3000\n```" in late


async def test_of_a_progress_bar_the_last_state_is_shown_here_and_in_what_was_saved(connect: Connect) -> None:
    bar = r"""i=0; while [ $i -lt 600 ]; do printf '\rload %d' $i; i=$((i + 1)); done; echo; seq 3000"""
    async with connect(answers="text") as client:
        shown = text(await client.call_tool("bash", {"command": bar}))
        assert shown.startswith("exit code 0, output:\n```\n[… 599 overwritten …] load 599\n1\n2\n")
        _, _, start, _, uri = gap_of(shown, r'view\(path="(.*)", start=(\d+), end=(\d+)\)')
        rest = text(await client.call_tool("view", {"path": uri, "start": start}))
        assert f"\n{start}\t{start - 1}\n" in rest
        assert "1\t[… 599 overwritten …] load 599" in text(await client.call_tool("view", {"path": uri}))
