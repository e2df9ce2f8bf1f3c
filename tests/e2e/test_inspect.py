"""Values of real programs, as clients see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bubblewrap import LOCAL
from tests.e2e.client import ToolFailed, pdbox

pytestmark = pytest.mark.anyio

PROGRAM = """\
import collections


class Loud:
    def __init__(self):
        self.size = 3
        self.label = "three"

    def __repr__(self):
        print("REPR RAN")
        raise RuntimeError("no repr")


class Endless:
    def __repr__(self):
        while True:
            pass

    def __len__(self):
        while True:
            pass

    def __getattr__(self, name):
        raise SystemExit("asked for " + name)


class Wide(list):
    def __len__(self):
        raise RuntimeError("no length")

    def __getitem__(self, index):
        raise RuntimeError("no items")


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self):
        self.left = 1


Point = collections.namedtuple("Point", "x y")
config = {"name": "shop", "prices": {"tea": [1, 2, {"deep": (3,)}], ("a", 1): None}}
big = list(range(1_000_000))
text = "line\\n" * 200_000
strange = "\\x1b[31m red \\ud800 \\u20ac"
loud, endless, wide, slotted, point = Loud(), Endless(), Wide([7, 8]), Slotted(), Point(1, 2)
loop = []
loop.append(loop)
bits = {3, 1, 2}
blob = bytes(range(256)) * 4000
mapping = {n: str(n) for n in range(100_000)}


def caller(outer):
    inner = outer + 1
    return called(inner)


def called(inner):
    return inner  # here


caller(41)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """The program alone."""
    (tmp_path / "app.py").write_text(PROGRAM)
    return tmp_path


async def test_values_are_shown_a_page_at_a_time(repo: Path, backend: list[str]) -> None:
    line = PROGRAM.splitlines().index("    return inner  # here") + 1
    async with pdbox("--repo", str(repo), "--debug-entrypoint", "python app.py", *backend) as session:
        with pytest.raises(ToolFailed, match="No program has been started"):
            await session.call("inspect", expression="config")
        stop = await session.call("pdb", command=f"b app.py:{line}\nc")
        assert stop["state"] == "stopped"

        page = await session.call("inspect", expression="big", start=999_998)
        assert (page["type"], page["length"], page["total"]) == ("list", 1_000_000, 1_000_000)
        assert [(part["name"], part["repr"]) for part in page["children"]] == [
            ("[999998]", "999998"),
            ("[999999]", "999999"),
        ]
        assert "next" not in page
        assert (await session.call("inspect", expression="big", count=200))["next"] == 200
        page = await session.call("inspect", expression="mapping", start=99_999)
        assert [(part["name"], part["repr"]) for part in page["children"]] == [("[99999]", "'99999'")]

        shown = await session.text("inspect", expression="config", depth=3)
        assert shown == (
            "config: dict, length 2\n"
            "= {'name': 'shop', 'prices': {'tea': [1, 2, {…}], ('a', 1): None}}\n"
            "  ['name'] = 'shop' (str, length 4)\n"
            "  ['prices'] = {'tea': [1, 2, {'deep': (…)}], ('a', 1): None} (dict, length 2)\n"
            "    ['tea'] = [1, 2, {'deep': (3,)}] (list, length 3)\n"
            "      [0] = 1 (int)\n"
            "      [1] = 2 (int)\n"
            "      [2] = {'deep': (3,)} (dict, length 1)\n"
            "    [('a', 1)] = None (NoneType)"
        )

        page = await session.call("inspect", expression="inner + outer", frame=1)
        assert page["repr"] == "83"
        with pytest.raises(ToolFailed, match="NameError"):
            await session.call("inspect", expression="outer")
        with pytest.raises(ToolFailed, match="frame 99 is none of them"):
            await session.call("inspect", expression="1", frame=99)
        with pytest.raises(ToolFailed, match="SyntaxError"):
            await session.call("inspect", expression="x = 1")


async def test_values_made_to_be_hard_to_look_at_do_no_harm(repo: Path, backend: list[str]) -> None:
    line = PROGRAM.splitlines().index("    return inner  # here") + 1
    async with pdbox("--repo", str(repo), "--debug-entrypoint", "python app.py", *backend) as session:
        await session.call("pdb", command=f"b app.py:{line}\nc")
        page = await session.call("inspect", expression="loud")
        assert page["repr"] == "<Loud size=3, label='three'>"
        assert [part["name"] for part in page["children"]] == ["size", "label"]
        assert (await session.call("inspect", expression="endless"))["repr"] == "<Endless>"
        page = await session.call("inspect", expression="wide")
        assert (page["length"], [part["repr"] for part in page["children"]]) == (2, ["7", "8"])
        page = await session.call("inspect", expression="slotted")
        assert [(part["name"], part["repr"]) for part in page["children"]] == [("left", "1")]
        page = await session.call("inspect", expression="point")
        assert [part["name"] for part in page["children"]] == ["x", "y"]
        page = await session.call("inspect", expression="text")
        assert (page["length"], page["total"], len(page["repr"]) < 3000) == (1_000_000, 0, True)
        page = await session.call("inspect", expression="strange")
        assert page["repr"] == repr("\x1b[31m red \ud800 €")
        assert (await session.call("inspect", expression="loop", depth=3))["children"][2]["level"] == 3
        assert (await session.call("inspect", expression="bits"))["children"][0]["name"] == "{0}"
        assert (await session.call("inspect", expression="blob"))["length"] == 1_024_000
        assert (await session.call("inspect", expression="locals()"))["children"][0]["name"] == "['inner']"
        stop = await session.call("pdb", command="p inner")
        assert (stop["reply"], stop["output"]) == ("42\n", "")
        assert "REPR RAN" not in stop["output"]


async def test_an_expression_that_never_ends_is_ended(repo: Path, backend: list[str]) -> None:
    async with pdbox("--repo", str(repo), "--debug-entrypoint", "python app.py", *backend) as session:
        await session.call("pdb", command="n")
        with pytest.raises(ToolFailed, match=r"could not be read within 10 s|KeyboardInterrupt"):
            await session.call("inspect", expression="[n for n in iter(int, 1) if n]")
        assert (await session.call("pdb", command="p 6 * 7"))["reply"] == "42\n"


async def test_arrays_are_shown_by_shape_and_type(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    program = "import numpy\ngrid = numpy.arange(12.0).reshape(3, 4)\nend = 1\n"
    (tmp_path / "app.py").write_text(program)
    flags = [*LOCAL, "--debug-entrypoint", "python app.py"]
    async with pdbox("--repo", str(tmp_path), *flags) as session:
        await session.call("pdb", command="b app.py:3\nc")
        page = await session.call("inspect", expression="grid")
        assert "shape=(3, 4) dtype=float64 min=0.0 max=11.0" in page["repr"]
        assert (page["length"], len(page["children"])) == (3, 3)
