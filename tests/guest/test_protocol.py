"""Agreements of `guest/protocol`: both sides take them from there, or have the same."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox.errors import BY_CODE
from sandbox.guest.hooks import _pdbox_attach, _pdbox_breakpoint, _pdbox_failure
from sandbox.guest.paths import FOREIGN_FOLDERS
from sandbox.guest.protocol import attach_question
from sandbox.guest.protocol.codes import CLOSING_CODES, ERROR_CODES
from sandbox.guest.protocol.operations import OPERATIONS
from sandbox.guest.supervisor import server

ROOT = Path(__file__).resolve().parents[2]
GUEST = ROOT / "sandbox" / "guest"


def calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call in the file, with the name of its function."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, node


def test_each_operation_has_a_handler_and_each_handler_is_of_an_operation() -> None:
    one = server.Server(SimpleNamespace(loading=threading.RLock()), {})
    one._load_next(len(one._modules))
    assert one._ops.keys() == OPERATIONS.keys()


def test_the_host_asks_for_each_operation_and_for_no_other() -> None:
    asked = {
        call.args[0].value
        for package in ("sandbox", "mcp_server")
        for file in (ROOT / package).rglob("*.py")
        if GUEST not in file.parents
        for name, call in calls(file)
        if name in ("request", "_request", "_ask", "tell")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert asked == OPERATIONS.keys()


def test_each_code_of_a_refusal_is_known_and_a_class_on_the_host() -> None:
    raised = {
        call.args[0].value
        for file in GUEST.rglob("*.py")
        for name, call in calls(file)
        if name == "GuestError" and call.args and isinstance(call.args[0], ast.Constant)
    }
    assert raised == ERROR_CODES == BY_CODE.keys()


@pytest.mark.parametrize("file", sorted(GUEST.rglob("*.py")), ids=lambda file: file.stem)
def test_refusals_name_their_code(file: Path) -> None:
    computed = [
        call.lineno
        for name, call in calls(file)
        # `search` passes on what another process of ours has refused.
        if name == "GuestError" and not call.keywords and not isinstance(call.args[0], ast.Constant)
    ]
    assert not computed


def test_the_hooks_spell_the_attach_question_as_the_supervisor_does() -> None:
    for module, names in (
        (_pdbox_attach, ("CHANNEL", "DUMP", "PASS", "FORGET", "MAX_ANSWER")),
        (_pdbox_breakpoint, ("JOIN",)),
    ):
        for name in names:
            assert getattr(module, name) == getattr(attach_question, name), name


def test_counts_of_breakpoints_are_read_as_they_were_written() -> None:
    points = [SimpleNamespace(number=1, hits=2, ignore=0), SimpleNamespace(number=12, hits=0, ignore=30)]
    assert attach_question.parse_counts(attach_question.pack_counts(points)) == {1: (2, 0), 12: (0, 30)}
    assert attach_question.parse_counts(attach_question.pack_counts([])) == {}


def test_a_session_that_ends_says_so_with_a_code_that_is_known() -> None:
    ends = {server._IDLE, server._AGE, server._ALONE, server._UNUSED}
    assert {code for code, _ in ends} <= CLOSING_CODES


def test_the_hooks_name_the_same_folders_of_foreign_code() -> None:
    assert set(_pdbox_failure.FOREIGN_FOLDERS) == FOREIGN_FOLDERS
