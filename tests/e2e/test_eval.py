"""Test runs as a client sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.client import pdbox

pytestmark = pytest.mark.anyio

PYTEST = """
import pytest
def test_good(): pass
@pytest.mark.xfail
def test_known(): assert 0
@pytest.mark.xfail
def test_surprise(): pass
@pytest.mark.skip
def test_skipped(): pass
def test_bad(): assert 0
def test_never(): pass
"""


async def test_each_outcome_has_its_name_and_a_module_breaks_and_is_fixed(
    tmp_path: Path, backend: list[str]
) -> None:
    (tmp_path / "test_a.py").write_text(PYTEST)
    async with pdbox("--repo", str(tmp_path), *backend) as session:
        text = await session.text("eval", entrypoint="python -m pytest -q -x")
        assert text.startswith(
            "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 not run (exit code 1)\n"
            "XPASSED test_a.py::test_surprise\nFAILED test_a.py::test_bad: "
        )
        await session.text(
            "rewrite", path="test_a.py", old_code="import pytest\n", new_code="import pytest, nope_nope\n"
        )
        text = await session.text("eval")
        assert "ERROR test_a.py: ModuleNotFoundError: No module named 'nope_nope' (test_a.py:2)\n" in text
        assert text.endswith("\nbroken since the last run: test_a.py")
        await session.text("rewrite", path="test_a.py", old_code=", nope_nope", new_code="")
        text = await session.text("eval")
        assert "fixed since the last run: test_a.py" in text


async def test_after_an_edit_folders_are_run_as_tests_and_scripts_as_commands(
    tmp_path: Path, backend: list[str]
) -> None:
    for folder in ("shop/tests", "more/checks"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"test_{folder[:4]}.py").write_text("def test_a(): pass\n")
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "test"
    script.write_text("#!/bin/sh\necho from the script\n")
    script.chmod(0o755)
    edit = {"path": "a.py", "new_code": "A = 1\n"}
    async with pdbox("--repo", str(tmp_path), *backend) as session:
        text = await session.text("rewrite", **edit, run="shop/tests more/checks")
        assert "2 passed" in text
        assert "from the script" in await session.text("rewrite", **edit, run="scripts/test")
        assert "from the script" in await session.text("rewrite", **edit, run="/bin/sh scripts/test")


SHOP = {
    "shop.py": """
def price(item):
    return item["price"]

def total(items):
    return sum(
        price(item) for item in items
    )
""",
    "test_shop.py": """
import pytest
from shop import total

@pytest.mark.parametrize("n", [1, 2, 3])
def test_total(n):
    print("for", n)
    assert total([{"cost": n}]) == n

def test_sum():
    assert total([]) == 1

def test_good():
    print("nobody wants to know")
""",
}


async def test_each_failure_has_its_way_from_the_test_and_its_output_and_nothing_is_said_of_others(
    tmp_path: Path, backend: list[str]
) -> None:
    for name, text in SHOP.items():
        (tmp_path / name).write_text(text)
    async with pdbox("--repo", str(tmp_path), *backend) as session:
        text = await session.text("eval", entrypoint="python -m pytest")
        assert text.startswith(
            "4 failed, 1 passed (exit code 1)\n"
            "FAILED test_shop.py::test_total[1]: KeyError: 'price'\n"
            '  at test_shop.py:8 in test_total: assert total([{"cost": n}]) == n\n'
            "     shop.py:6 in total: return sum(price(item) for item in items)\n"
        )
        assert (
            '     shop.py:3 in price: return item["price"]\n'
            "  output:\n"
            "    for 1\n"
            "  for the same reason: [2]; [3]\n"
            "FAILED test_shop.py::test_sum: assert 0 == 1\n"
        ) in text
        assert "nobody wants" not in text and "test session starts" not in text
