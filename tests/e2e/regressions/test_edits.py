"""Edits: bytes of the file, the patch, and code that has become stale."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.e2e.client import pdbox
from tests.e2e.regressions.sessions import at, opened, said
from tests.repository import repository

pytestmark = pytest.mark.anyio


async def test_edits_keep_every_other_byte_of_a_file(tmp_path: Path, backend: list[str]) -> None:
    originals = {
        "crlf.py": b"a = 1\r\nb = 2\r\nc = 3\r\n",
        "bom.py": b"\xef\xbb\xbfa = 1\nb = 2\nc = 3\n",
        "latin.py": "# -*- coding: latin-1 -*-\nb = 2\nc = 'é'\n".encode("latin-1"),
        "bare.py": b"a = 1\nb = 2\nc = 3",
    }
    for name, data in originals.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / name).chmod(0o755)
    read = "import sys, os; [print(n, oct(os.stat(n).st_mode)[-3:], ascii(open(n, 'rb').read())) for n in sys.argv[1:]]"
    async with pdbox("--repo", str(tmp_path), *backend) as session:
        for name in originals:
            await session.call("rewrite", path=name, start=2, end=2, new_code="b = 22\n")
        done = await session.call("bash", command=f'python3 -c "{read}" {" ".join(originals)}')
        for name, data in originals.items():
            assert f"{name} 755 {data.replace(b'b = 2', b'b = 22')!a}" in done["output"].splitlines()
        for content in ("-n", "-e\n", "one\nEOF\nDEBUGGYM_EOF\ntouch ran\n", "$(touch ran) `touch ran`\n"):
            await session.call("rewrite", path="note.txt", new_code=content)
            shown = await session.call("view", path="note.txt")
            assert "\n".join(line[len("1\t") :] for line in shown["lines"]) == content.removesuffix("\n")
        big = "".join(f"line {number} €\n" for number in range(330_000))
        assert len(big.encode()) > 5_000_000
        await session.call("rewrite", path="big.txt", new_code=big)
        sums = await session.call("bash", command="wc -lc < big.txt; ls")
        assert sums["output"].split()[:2] == ["330000", str(len(big.encode()))]
        assert "ran" not in sums["output"].split()


async def test_the_patch_has_new_files_too_and_applies(tmp_path: Path, backend: list[str]) -> None:
    repo = repository(tmp_path / "repo", {"app.py": "x = 1\n"})
    async with pdbox("--repo", str(repo), *backend) as session:
        await session.call("rewrite", path="app.py", new_code="x = 2\n")
        await session.call("rewrite", path="new/deep.py", new_code="y = 1")
        await session.call("bash", command="printf '\\000\\001' > data.bin; mkdir -p d && : > d/empty")
        found = await session.call("diff", format="full")
    assert {file["path"]: file["kind"] for file in found["files"]} == {
        "app.py": "modified",
        "new/deep.py": "added",
        "data.bin": "added",
        "d/empty": "added",
    }
    await anyio.run_process(["git", "apply", "-"], cwd=repo, input=found["patch"].encode())
    assert (repo / "new/deep.py").read_text() == "y = 1"
    assert (repo / "data.bin").read_bytes() == b"\0\1" and (repo / "d/empty").read_bytes() == b""


async def test_code_that_was_changed_elsewhere_is_said_to_be_stale(
    tmp_path: Path, backend: list[str]
) -> None:
    async with opened(
        tmp_path,
        {"app.py": "import lib\nx = lib.f()\ny = 2\n", "lib.py": "def f():\n    v = 1\n    return v\n"},
        backend,
    ) as session:
        stop = await session.call("pdb", command="b lib.py:3\nc", entrypoint="python app.py")
        assert (at(stop), stop.get("stale", [])) == (("stopped", "lib.py", 3), [])
        await session.call(
            "bash", command="printf '# above\\ndef f():\\n    v = 2\\n    return v\\n' > lib.py"
        )
        stop = await session.call("pdb", command="p v")
        # From 3.13 on pdb itself warns, too.
        assert (stop["reply"].split()[-1], stop.get("stale", []), stop["run"]) == ("1", ["lib.py"], 1)
        stop = await session.call("pdb", command="c")
        assert (at(stop), stop["run"], stop.get("stale", [])) == (("stopped", "lib.py", 4), 2, [])
        assert any("lib.py" in notice and "restart" in notice for notice in stop["notices"])
        assert await said(session, "p v") == "2"


async def test_an_edit_of_a_text_file_keeps_the_program_where_it_is(
    tmp_path: Path, backend: list[str]
) -> None:
    async with opened(
        tmp_path, {"app.py": "x = 1\ny = x + 1\nz = 3\n", "notes.txt": "one\n"}, backend
    ) as session:
        await session.call("pdb", command="b 2\nc", entrypoint="python app.py")
        await session.call("rewrite", path="notes.txt", new_code="two\n")
        await session.call("bash", command="echo three >> notes.txt")
        stop = await session.call("pdb", command="n")
        assert (at(stop), stop["run"], stop.get("stale", [])) == (("stopped", "app.py", 3), 1, [])
        assert await said(session, "p y") == "2"
