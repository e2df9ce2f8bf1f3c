"""Sessions as resources, in both eras of the protocol."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp import Client, MCPError
from mcp.types import (
    INVALID_PARAMS,
    BlobResourceContents,
    ReadResourceResult,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from mcp_server.commands.serve import stdio_store
from mcp_server.errors import read_safely
from mcp_server.redaction.redactor import Redactor
from mcp_server.resources import contents, mime_type_of
from mcp_server.server import build_server, owner_of
from mcp_server.settings import Settings
from mcp_server.trajectories.recent import MAX_BYTES, Ongoing, Trajectories
from tests.bubblewrap import UNSAFE
from tests.e2e.client import pdbox
from tests.e2e.served import OVER_HTTP, Way, serving
from tests.mcp_server.conftest import Connect, cancel_once_begun

pytestmark = pytest.mark.anyio
MOST = 400_000
GONE = "This session_id is unknown or has expired. `start_session` opens a new session."


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """2026-07-28, and the eras with a handshake."""
    return request.param


async def data(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def handle(client: Client) -> str:
    return (await data(client, "start_session"))["session_id"]


async def read(client: Client, uri: str) -> ReadResourceResult:
    result = await client.read_resource(uri)
    assert len(result.model_dump_json(by_alias=True).encode()) <= MOST
    return result


async def text(client: Client, uri: str) -> str:
    """The whole resource, which is one page of text."""
    (content,) = (await read(client, uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def followed(client: Client, uri: str) -> bytes:
    """All pages of a resource, as each names the next."""
    whole, following = b"", uri
    while following:
        first, *note = (await read(client, following)).contents
        if isinstance(first, BlobResourceContents):
            whole += base64.b64decode(first.blob)
        else:
            whole += first.text.encode()
        following = (first.meta or {}).get("pdbox/next")
        if note:
            (note,) = note
            assert isinstance(note, TextResourceContents)
            assert (following or "This is the end") in note.text
    return whole


async def apply(repo: Path, patch: bytes) -> None:
    await anyio.run_process(["git", "apply", "-"], cwd=repo, input=patch)


async def refusal(client: Client, uri: str) -> tuple[int, str]:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    return caught.value.code, caught.value.message


async def test_templates_and_resources_of_open_sessions_are_listed(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        assert (await client.list_resources()).resources == []
        own = await handle(client)
        listed = (await client.list_resources(cache_mode="refresh")).resources
        assert [resource.uri for resource in listed] == [
            f"pdbox://session/{own}/{name}" for name in ("output", "patch", "tests", "trajectory")
        ]
        for resource in listed:
            await read(client, resource.uri)
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == [
            f"pdbox://session/{{session_id}}/{name}{{?offset}}"
            for name in ("output", "patch", "tests", "trajectory", "output/{number}", "source/{+path}")
        ]


async def test_nothing_to_subscribe_to_is_offered(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        offered = client.server_capabilities.resources
        assert offered is not None
        assert not offered.subscribe and not offered.list_changed


async def test_output_is_what_the_program_printed(connect: Connect, repo: Path, era: str) -> None:
    (repo / "app.py").write_text("print('one \\u00fc')\nprint('(Pdb) ')\nx = 1\n")
    async with connect(era) as client:
        own = await handle(client)
        assert await text(client, f"pdbox://session/{own}/output") == ""
        await data(client, "pdb", command="b app.py:3\nc")
        assert await text(client, f"pdbox://session/{own}/output") == "one ü\n(Pdb) \n"
        rest, note = (await read(client, f"pdbox://session/{own}/output?offset=7")).contents
        assert isinstance(rest, TextResourceContents) and isinstance(note, TextResourceContents)
        assert (rest.text, note.text) == ("(Pdb) \n", "(This is bytes 7 to 14 of 14. This is the end.)")


async def test_patch_applies_to_the_repository(connect: Connect, repo: Path, era: str) -> None:
    async with connect(era) as client:
        own = await handle(client)
        await data(client, "bash", command="printf 'a\\0b' > blob.bin; sed -i s/21/22/ app.py")
        result = await read(client, f"pdbox://session/{own}/patch")
        assert result.contents[0].mime_type == "text/x-diff"
        patch = await text(client, f"pdbox://session/{own}/patch")
    await apply(repo, patch.encode())
    assert "double(22)" in (repo / "app.py").read_text()
    assert (repo / "blob.bin").read_bytes() == b"a\0b"


async def test_patch_of_a_latin_1_file_is_sent_byte_by_byte(connect: Connect, repo: Path) -> None:
    (repo / "old.txt").write_bytes("caf\xe9\n".encode("latin-1"))
    async with connect() as client:
        own = await handle(client)
        await data(client, "bash", command="printf 'th\\351\\n' >> old.txt")
        (content,) = (await read(client, f"pdbox://session/{own}/patch")).contents
    assert isinstance(content, BlobResourceContents)
    await apply(repo, base64.b64decode(content.blob))
    assert (repo / "old.txt").read_bytes() == "caf\xe9\nth\xe9\n".encode("latin-1")


async def test_outcomes_of_all_tests_can_be_read(connect: Connect, repo: Path) -> None:
    (repo / "test_a.py").write_text("def test_x(): pass\ndef test_y(): assert 0\n")
    async with connect(entrypoint="python -m pytest -q") as client:
        own = await handle(client)
        await data(client, "eval")
        assert await text(client, f"pdbox://session/{own}/tests") == (
            "passed test_a.py::test_x\nfailed test_a.py::test_y\n"
        )


async def test_trajectory_has_the_calls_on_this_session_and_no_others(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        own, other = await handle(client), await handle(client)
        await data(client, "view", path="app.py", session_id=own)
        await client.call_tool("view", {"path": "nope.py", "session_id": own})
        await data(client, "bash", command="echo other", session_id=other)
        result = await read(client, f"pdbox://session/{own}/trajectory")
        assert result.contents[0].mime_type == "application/x-ndjson"
        lines = (await text(client, f"pdbox://session/{own}/trajectory")).splitlines()
    first, second = map(json.loads, lines)
    assert (first["number"], first["tool"], first["arguments"]) == (1, "view", {"path": "app.py"})
    assert first["answer"].startswith("app.py, lines 1-5 of 5") and not first["is_error"]
    assert second["is_error"] and second["answer"].startswith("No such file or folder: nope.py")
    assert own not in "".join(lines)


async def test_cancelled_call_is_in_the_trajectory(connect: Connect, repo: Path) -> None:
    async with connect() as client:
        own = await handle(client)
        await cancel_once_begun(client, repo)
        with anyio.fail_after(60):
            # The next call is served when the cancelled one has ended.
            await data(client, "bash", command="true")
        lines = await text(client, f"pdbox://session/{own}/trajectory")
    entry = min(map(json.loads, lines.splitlines()), key=lambda entry: entry["at"])
    assert (entry["tool"], entry["answer"], entry["is_error"]) == ("bash", "cancelled", True)


async def test_trajectory_stays_bounded_and_keeps_the_latest(connect: Connect) -> None:
    async with connect() as client:
        own = await handle(client)
        for number in range(150):
            await data(client, "rewrite", path="big.txt", new_code=f"{number}\n" + "x" * 50_000)
        lines = (await text(client, f"pdbox://session/{own}/trajectory")).splitlines()
    assert sum(map(len, lines)) <= MAX_BYTES
    assert json.loads(lines[-1])["number"] == 150
    assert json.loads(lines[0])["number"] > 1


async def test_of_a_long_text_the_trajectory_has_the_beginning_with_masks(connect: Connect) -> None:
    async with connect() as client:
        own = await handle(client)
        key = "ghp_" + "a1B2c3D4e5F6" * 3
        code = "x" * 980 + f"\n{key}\n" + "x" * 100_000
        await data(client, "rewrite", path="big.txt", new_code=code)
        line = (await text(client, f"pdbox://session/{own}/trajectory")).splitlines()[-1]
    kept = json.loads(line)["arguments"]["new_code"]
    assert kept.startswith("x" * 980) and kept.endswith(f"… ({len(code):,} characters)")
    assert "ghp_" not in kept and len(kept) < 1100


async def test_source_files_come_with_their_types(connect: Connect, repo: Path, era: str) -> None:
    (repo / "my data").mkdir()
    (repo / "my data" / "ü #1?.py").write_text("x = 1\n")
    (repo / "pixel.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (repo / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    async with connect(era) as client:
        own = f"pdbox://session/{await handle(client)}/source"
        (python,) = (await read(client, f"{own}/my%20data/%C3%BC%20%231%3F.py")).contents
        assert isinstance(python, TextResourceContents)
        assert (python.text, python.mime_type) == ("x = 1\n", "text/x-python")
        (image,) = (await read(client, f"{own}/pixel.png")).contents
        assert isinstance(image, BlobResourceContents)
        assert image.mime_type == "image/png"
        assert base64.b64decode(image.blob) == b"\x89PNG\r\n\x1a\n\0\0"
        assert "x = 'é'" in await text(client, f"{own}/latin.py")


@pytest.mark.parametrize(
    ("path", "is_text", "expected"),
    [
        ("a.py", True, "text/x-python"),
        ("a.json", True, "application/json"),
        ("Makefile", True, "text/plain"),
        ("a.toml", True, "text/plain"),
        ("a.png", True, "text/plain"),
        ("a.png", False, "image/png"),
        ("a.py", False, "application/octet-stream"),
        ("a.tar.gz", False, "application/gzip"),
        ("a.unknown", False, "application/octet-stream"),
    ],
)
def test_type_follows_name_and_content(path: str, is_text: bool, expected: str) -> None:
    assert mime_type_of(path, is_text=is_text) == expected


async def test_hidden_and_outer_files_are_refused(connect: Connect, repo: Path, era: str) -> None:
    (repo / ".debugignore").write_text("secret.txt\n")
    (repo / "secret.txt").write_text("hidden\n")
    (repo / "link.py").symlink_to("/etc/passwd")
    async with connect(era) as client:
        own = f"pdbox://session/{await handle(client)}/source"
        for path in (
            "secret.txt",
            "./secret.txt",
            "x/../secret.txt",
            "secret%2Etxt",
            "../app.py",
            "%2E%2E/%2E%2E/etc/passwd",
            "/etc/passwd",
            "%2Fetc%2Fpasswd",
            "link.py",
            "a%00b",
            "",
            ".",
            ".git/config",
            "nope.py",
        ):
            code, message = await refusal(client, f"{own}/{path}")
            assert code == INVALID_PARAMS, path
            assert "unexpectedly" not in message


async def test_large_file_comes_in_pages_that_name_the_next(connect: Connect, repo: Path, era: str) -> None:
    big = "".join(f"line {number} é\n" for number in range(80_000))
    (repo / "big.txt").write_text(big, encoding="utf-8")
    async with connect(era) as client:
        own = await handle(client)
        assert await followed(client, f"pdbox://session/{own}/source/big.txt") == big.encode()
        (page, _) = (await read(client, f"pdbox://session/{own}/source/big.txt")).contents
        assert isinstance(page, TextResourceContents)
        assert page.text.endswith("\n")


@pytest.mark.parametrize("piece", ["\x01", "\u4e2d", "\U0001f600", "a", "\n", '"'])
async def test_no_page_is_over_the_limit_whatever_is_in_it(connect: Connect, repo: Path, piece: str) -> None:
    (repo / "big.txt").write_text(piece * 500_000, encoding="utf-8")
    (repo / "app.py").write_text(
        f"import sys\nsys.stdout.reconfigure(encoding='utf-8')\nprint({piece!r} * 500_000, end='')\n"
    )
    async with connect() as client:
        own = await handle(client)
        await data(client, "pdb", command="c")
        for name in ("source/big.txt", "output", "patch"):
            whole = await followed(client, f"pdbox://session/{own}/{name}")
            assert name == "patch" or whole == piece.encode() * 500_000


async def test_binary_file_comes_in_pages(connect: Connect, repo: Path) -> None:
    (repo / "blob.bin").write_bytes(bytes(range(256)) * 4000)
    async with connect() as client:
        own = await handle(client)
        assert await followed(client, f"pdbox://session/{own}/source/blob.bin") == bytes(range(256)) * 4000


async def test_pages_of_output_say_what_is_no_longer_kept(connect: Connect, repo: Path) -> None:
    (repo / "app.py").write_text("print('\\n'.join(map(str, range(1_000_000))))\n")
    printed = "".join(f"{n}\n" for n in range(1_000_000)).encode()
    async with connect() as client:
        own = await handle(client)
        await data(client, "pdb", command="c")
        first, note = (await read(client, f"pdbox://session/{own}/output")).contents
        lost = len(printed) - (4 << 20)
        assert first.meta is not None and first.meta["pdbox/start"] == lost
        assert isinstance(note, TextResourceContents)
        assert f"{lost:,} bytes before them are no longer kept" in note.text
        assert await followed(client, f"pdbox://session/{own}/output") == printed[lost:]


@pytest.mark.parametrize("offset", ["x", "-1", "999999999999", "1.5", "%00", "0" * 40])
async def test_offset_that_is_none_is_refused(connect: Connect, offset: str) -> None:
    async with connect() as client:
        own = await handle(client)
        for name in ("source/app.py", "output", "patch", "trajectory", "tests"):
            code, message = await refusal(client, f"pdbox://session/{own}/{name}?offset={offset}")
            assert code == INVALID_PARAMS
            assert "offset" in message


async def test_unknown_and_closed_sessions_get_one_error(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        own = await handle(client)
        await data(client, "close_session", session_id=own)
        for name in ("output", "patch", "tests", "trajectory", "source/app.py", "output/1"):
            for other in (own, "x", "%00", own[:-1]):
                assert await refusal(client, f"pdbox://session/{other}/{name}") == (INVALID_PARAMS, GONE)


async def test_session_of_another_owner_gets_the_error_of_an_unknown_one(repo: Path) -> None:
    settings = Settings(repo=repo, backend="process", unsafe_no_isolation=True)
    async with stdio_store(settings) as store:
        session = await store.get(owner_of(), None, lambda *_, **__: None)
        assert store.list_held("somebody else") == []
        seen: set[str] = set()
        for name in (session.handle, "x"):
            uri = f"pdbox://session/{name}/source/app.py"
            with pytest.raises(Exception, match="unknown or has expired") as caught:
                await read_safely(contents(store, "somebody else", Trajectories(), uri))
            seen.add(f"{type(caught.value).__name__}: {caught.value}")
        assert len(seen) == 1
        assert await contents(store, owner_of(), Trajectories(), f"pdbox://session/{session.handle}/patch")


async def test_session_whose_sandbox_was_killed_is_unknown_from_then_on(connect: Connect) -> None:
    async with connect() as client:
        own = await handle(client)
        listed = (await data(client, "list_sessions"))["sessions"]
        (session,) = [session for session in listed if session["session_id"] == own]
        os.kill(int(session["place"]), signal.SIGKILL)
        await refusal(client, f"pdbox://session/{own}/output")
        assert await refusal(client, f"pdbox://session/{own}/output") == (INVALID_PARAMS, GONE)
        assert (await client.list_resources(cache_mode="refresh")).resources == []


async def test_reading_opens_no_session(connect: Connect) -> None:
    async with connect() as client:
        await refusal(client, "pdbox://session//output")
        assert (await client.list_resources()).resources == []


@pytest.mark.parametrize(
    "uri", ["", "pdbox:", "file:///etc/passwd", "pdbox://session/x", "pdbox://session/a/b", "x"]
)
async def test_other_uris_are_refused_with_those_that_exist(connect: Connect, uri: str, era: str) -> None:
    async with connect(era) as client:
        code, message = await refusal(client, uri)
        assert code == INVALID_PARAMS
        assert "pdbox://session/{session_id}/patch" in message


async def test_whole_output_of_a_command_is_reachable_by_tool_and_resource(
    connect: Connect, era: str
) -> None:
    printed = "".join(f"{n}\n" for n in range(1, 30_001))
    async with connect(era) as client:
        await handle(client)
        answer = await client.call_tool("bash", {"command": "seq 30000"})
        await data(client, "bash", command="seq 7 40000")  # a later one takes nothing away
        (block,) = answer.content
        assert isinstance(block, TextContent)
        assert len(block.text) <= 4000
        assert answer.structured_content is not None
        (omitted,) = answer.structured_content["omitted"]
        uri = omitted["hint"].split('"')[1]
        kept = answer.structured_content["output"]
        head, gap, tail = re.split(r"\[… lines (\d+-\d+) of the output left out …\]\n", kept)
        start, end = head.count("\n") + 1, 30_000 - tail.count("\n")
        assert gap == f"{start}-{end}"
        assert (
            f'characters of output. Show them: view(path="{uri}", start={start}, end={end}).)' in block.text
        )
        assert len(printed) == omitted["count"] + len(head) + len(tail)
        assert await followed(client, uri) == printed.encode()
        first = await data(client, "view", path=uri)
        assert (first["total_lines"], first["lines"][0].split()) == (30_000, ["1", "1"])
        last = await data(client, "view", path=uri, start=29_999, end=-1)
        assert [line.split()[-1] for line in last["lines"]] == ["29999", "30000"]


async def test_rest_of_each_kind_of_answer_is_reachable(connect: Connect, repo: Path) -> None:
    tests = "".join(f"def test_{n}(): assert {n} >= 40, 'x' * 400\n" for n in range(700))
    (repo / "test_many.py").write_text(tests + "def test_loud():\n    print('loud ' * 9000)\n    assert 0\n")
    (repo / "app.py").write_text("big = {n: 'v' * 50 for n in range(2000)}\nprint('p' * 99_000)\nx = 1\n")
    async with connect(entrypoint="python -m pytest -q") as client:
        own = await handle(client)

        def hints(answer: dict[str, Any]) -> dict[str, str]:
            return {omitted["field"]: omitted["hint"].rpartition(" ")[2] for omitted in answer["omitted"]}

        ran = hints(await data(client, "eval"))
        assert len((await text(client, ran["tests"])).splitlines()) == 701
        assert "loud " * 9000 in await text(client, ran["output"])
        stop = await data(client, "pdb", entrypoint="python app.py", command="b app.py:3\nc")
        assert await text(client, hints(stop)["output"]) == "p" * 99_000 + "\n"
        assert (await data(client, "view", path=hints(stop)["output"]))["total_lines"] == 99
        reply = hints(await data(client, "pdb", command="p big"))["reply"]
        assert "1999: '" in await text(client, reply)
        await data(client, "rewrite", path="long.txt", new_code="".join(f"row {n}\n" for n in range(9000)))
        patch = hints(await data(client, "diff"))["patch"]
        assert patch == f"pdbox://session/{own}/patch"
        assert "+row 8999\n" in await text(client, patch)
        assert (await data(client, "view", path=patch, start=9000))["lines"]


async def test_view_refuses_uris_of_other_sessions_and_of_nothing(connect: Connect) -> None:
    async with connect() as client:
        own, other = await handle(client), await handle(client)
        for uri, expected in (
            (f"pdbox://session/{other}/patch", "no URI of the session"),
            ("pdbox://session/x/patch", "no URI of the session"),
            ("pdbox:", "no URI of the session"),
            (f"pdbox://session/{own}/nope", "nothing called 'nope'"),
            (f"pdbox://session/{own}/output/99", "Output 99 is not kept"),
            (f"pdbox://session/{own}/source/../../etc/passwd", "outside of the repository"),
        ):
            result = await client.call_tool("view", {"path": uri, "session_id": own})
            (block,) = result.content
            assert result.is_error and isinstance(block, TextContent)
            assert expected in block.text
        shown = await data(client, "view", path=f"pdbox://session/{own}/source/app.py", session_id=own)
        assert shown["path"] == "app.py"


async def test_resources_work_over_stdio(repo: Path, era: str) -> None:
    (repo / "app.py").write_text("print('over stdio')\n")
    flags = ("--repo", str(repo), "--backend", "process", "--unsafe-no-isolation")
    async with pdbox(*flags, mode=era) as session:
        await session.call("pdb", command="c", entrypoint="python app.py")
        output, *_ = (await session.client.list_resources()).resources
        assert await text(session.client, output.uri) == "over stdio\n"
        assert (await refusal(session.client, "pdbox://session/x/output"))[0] == INVALID_PARAMS


def test_record_of_a_call_without_a_session_is_nowhere() -> None:
    trajectories = Trajectories()
    trajectories.note(Ongoing("listdir", {}), None, Redactor())
    assert not trajectories._records  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("way", OVER_HTTP, ids=str)
async def test_resources_and_completions_of_another_principal_are_not_there(
    repo: Path, tmp_path: Path, way: Way
) -> None:
    alice, bob = "a" * 32, "b" * 32
    tokens = tmp_path / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"alice {alice}\nbob {bob}\n")
    source = ResourceTemplateReference(uri="pdbox://session/{session_id}/source/{+path}{?offset}")
    with serving("--repo", str(repo), "--token-file", str(tokens), *UNSAFE) as server:
        async with server.client(way, alice) as owner, server.client(way, bob) as other:
            own = await handle(owner)
            assert "result = n * 2" in await text(owner, f"pdbox://session/{own}/source/app.py")
            found = await owner.complete(source, {"name": "path", "value": ""}, {"session_id": own})
            assert found.completion.values == ["app.py"]
            assert len((await owner.list_resources()).resources) == 4
            assert (await other.list_resources()).resources == []
            for name in ("source/app.py", "output", "trajectory"):
                assert await refusal(other, f"pdbox://session/{own}/{name}") == (INVALID_PARAMS, GONE)
            for argument in ("path", "session_id"):
                found = await other.complete(source, {"name": argument, "value": ""}, {"session_id": own})
                assert found.completion.values == []


async def test_secrets_are_masked_in_output_and_trajectory(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import os\nprint(os.environ['DB_PASSWORD'])\n")
    settings = Settings(
        repo=tmp_path, backend="process", unsafe_no_isolation=True, env=["DB_PASSWORD=hunter2Zq9vXk"]
    )
    async with stdio_store(settings) as store, Client(build_server(store)) as client:
        await client.call_tool("pdb", {"command": "n\nn", "entrypoint": "python app.py"})
        await client.call_tool("bash", {"command": "echo $DB_PASSWORD"})
        read: dict[str, str] = {}
        for resource in (await client.list_resources()).resources:
            contents = (await client.read_resource(resource.uri)).contents
            read[str(resource.uri).rpartition("/")[2]] = "".join(
                item.text for item in contents if isinstance(item, TextResourceContents)
            )
        assert "redacted" in read["output"] and "redacted" in read["trajectory"]
        assert not any("hunter2" in text for text in read.values())
