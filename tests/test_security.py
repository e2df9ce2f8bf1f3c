"""What SECURITY.md claims is tested."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")


def test_each_test_that_it_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    assert len(named) > 30
    trees = (ast.parse(file.read_text("utf-8")) for file in (ROOT / "tests").rglob("test_*.py"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert named <= {node.name for tree in trees for node in tree.body if isinstance(node, functions)}


def test_each_claim_of_a_table_names_its_test() -> None:
    tables = re.findall(r"^\| protects from .*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 30
    assert [row for row in rows if not re.search(r"\| `test_\w+` \|$", row)] == []


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 120
    prose = [line for line in TEXT.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 120
