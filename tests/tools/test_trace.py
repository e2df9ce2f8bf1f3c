"""The trace as text, compared exactly, and whole calls on a repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.session.trace import Trace
from tests.tools.calls import answers
from tests.tools.conftest import MakeRepo
from tools._trace import render_outcome, render_trace
from tools.trace import split_names

pytestmark = pytest.mark.anyio

CART = """\
class Cart:
    def __init__(self, lines):
        self.lines = lines
        self.saved = []

    def defer(self):
        self.saved = self.lines
        return self.saved

    def end(self):
        while len(self.lines) > 1:
            self.lines.pop()

    def total(self):
        return sum(net(line) for line in self.saved)

def net(line):
    return line * 2
"""
TESTS = """\
from cart import Cart

def test_bad():
    cart = Cart([10, 20.5])
    cart.defer()
    cart.end()
    assert cart.total() == 61

def test_many():
    cart = Cart(list(range(500)))
    cart.defer()
    assert cart.total() == 249500
"""


def call(number: int, **fields: Any) -> dict[str, Any]:
    return {"e": "call", "n": number, "i": number, "at": ["order.py", 8], "v": ["None", 0], **fields}


def trace(
    *events: dict[str, Any], limit: int = 4000, expressions: tuple[str, ...] = (), **fields: Any
) -> str:
    functions = [["net", "order.py", 3, len(events), True], ["total", "shop.py", 9, 1, True]]
    found = Trace.model_validate({"events": events, "functions": functions, **fields})
    return render_trace(found, expressions, limit).partition("\n")[2]


def test_calls_are_nested_with_the_place_of_their_caller() -> None:
    total = call(1, f=1, args=[["self", "<Order>", 0], ["rate", "2", 0]], v=["7", 0])
    assert trace(total, call(2, p=1, x="KeyError: 'x'"), call(3, at=None)) == (
        "total(<Order>, rate=2) → 7; from order.py:8\n  net() !! KeyError: 'x'; from :8\nnet() → None"
    )


def test_an_object_that_is_shown_again_has_a_mark_and_no_second_text() -> None:
    order = ["self", "<Order lines=[1, 2]>", 9]
    text = trace(
        call(1, args=[order, ["more", "[3]", 4]], v=["[1, 2]", 5], ch=[["self", "<Order lines=[3]>"]]),
        call(2, args=[["self", "<Order lines=[3]>", 9]], v=["[1, 2]", 5], **{"is": "self.lines"}),
    )
    assert text == (
        "net(<Order lines=[1, 2]>@1, more=[3]) → [1, 2]@2; now self=<Order lines=[3]>@1; from :8\n"
        "net(@1) → [1, 2]@2 (is self.lines); from :8\n"
        "(@n is one object; without a value it is as last shown)"
    )


def test_calls_that_are_alike_are_folded_until_the_text_fits() -> None:
    events = [call(number, args=[["n", str(number), 0]], at=["a.py", 1]) for number in range(1, 200)]
    events[150]["x"] = "KeyError: 'x'"
    text = trace(*events, limit=700)
    assert len(text) <= 700
    lines = text.split("\n")
    assert lines[0] == "net(n=1) → None; from a.py:1"
    assert "… 144 more like this" in lines
    assert "net(n=151) !! KeyError: 'x'; from a.py:1" in lines
    assert lines[-1] == "net(n=199) → None; from a.py:1"


def test_objects_are_told_shorter_before_calls_are_folded() -> None:
    long, plain = (
        f"<Order lines=[{', '.join('1234567')}], name='first', total=12, …",
        "[" + "12, " * 20 + "3]",
    )
    events = [
        call(number, args=[["self", long, 0], ["n", plain, 0]], at=["a.py", number])
        for number in range(1, 21)
    ]
    lines = trace(*events, limit=3400).split("\n")
    assert lines == [f"net({long[:47]}…, n={plain}) → None; from a.py:{number}" for number in range(1, 21)]
    assert long in trace(*events[:2], limit=4000)


def test_what_has_changed_beyond_the_shorter_text_is_not_told_to_be_as_before() -> None:
    texts = [
        f"<Order lines=[{', '.join('1234567890')}], name='first', total={total}, …" for total in (1, 1, 2)
    ]
    events = [
        call(number, args=[["self", text, 9], ["n", "12" * 40, 0]], at=["a.py", number])
        for number, text in enumerate(texts, 1)
    ]
    short = f"net({texts[0][:47]}…@1, n="
    first, same, other, _ = trace(*events, limit=560).split("\n")
    assert first.startswith(short) and same.startswith("net(@1, n=") and other.startswith(short)


def test_equal_lines_are_counted_and_a_long_text_is_cut_in_the_middle() -> None:
    assert trace(call(1), call(2), call(3)) == "net() → None; from :8  × 3"
    text = trace(*(call(number, at=["a.py", number]) for number in range(1, 300)), limit=1000)
    lines = text.split("\n")
    assert (lines[0], lines[-1]) == ("net() → None; from a.py:1", "net() → None; from a.py:299")
    assert any(line.startswith("… ") and "lines left out: name fewer functions" in line for line in lines)
    assert len(text) <= 1000


def test_calls_that_nest_deeper_than_the_stack_of_this_interpreter_are_shown() -> None:
    depth = 2 * sys.getrecursionlimit()
    events = [call(number, p=number - 1 if number != depth else 0) for number in range(1, 2 * depth - 1)]
    lines = trace(*events).split("\n")
    assert [line for line in lines if line[0] == "n"] == ["net() → None; from :8"] * 2
    assert lines[-1] == "  " * 13 + "… 1 more like this"
    change = {
        "e": "change",
        "n": depth * 2,
        "p": depth - 1,
        "name": "A.x",
        "how": "set",
        "before": "1",
        "v": ["2", 0],
    }
    assert "A.x 1 → 2" in trace(*events, change)


def test_tests_threads_generators_and_expressions_are_told() -> None:
    text = trace(
        {"e": "test", "n": 1, "name": "t.py::test_a"},
        call(
            2,
            v=["None", 0],
            k="generator",
            y=5,
            yielded=[["0", 0], ["2", 0], ["4", 0]],
            ex=["2", "!! NameError: x"],
        ),
        {"e": "test", "n": 3, "name": "t.py::test_a", "outcome": "passed"},
        {"e": "test", "n": 4, "name": "t.py::test_b"},
        call(
            5,
            t=1,
            k="coroutine",
            y=2,
            v=["3", 0],
            ex=["!! ZeroDivisionError: division by zero", "4"],
        ),
        {"e": "test", "n": 6, "name": "t.py::test_b", "outcome": "failed"},
        expressions=("len(x)", "x"),
    )
    assert text == (
        "-- t.py::test_a: passed\n"
        "[T0] net() → yielded 5: 0, 2, 4, …; end; len(x)=2; from :8\n"
        "-- t.py::test_b: failed\n"
        "[T1] net() → suspended 2 ×; 3; len(x)=!! ZeroDivisionError: division by zero; x=4; from :8"
    )


def test_changes_are_told_with_line_caller_and_other_holders() -> None:
    change = {
        "e": "change",
        "t": 0,
        "at": ["cart.py", 3],
        "in": "Cart.end",
        "name": "Cart#1.lines",
        "v": ["[1]", 0],
    }
    made = {**change, "n": 1, "i": 1, "how": "set", "s": "self.lines = lines", "in": "<module>"}
    shared = {**change, "n": 2, "i": 2, "how": "shared", "before": "Cart.saved"}
    changed = {**change, "n": 3, "i": 3, "how": "in place", "before": "[1, 2]", "by": ["test_cart.py", 9]}
    changed["same"] = ["Cart.saved, set at cart.py:7"]
    gone = {**change, "n": 4, "i": 4, "how": "deleted", "before": "[1]", "v": ["", 0]}
    found = Trace.model_validate(
        {"events": [made, shared, changed, gone], "watched": [["Cart.lines", 2, 3]], "threads": 2}
    )
    assert render_trace(found, (), 4000) == (
        "Cart.lines: 3 changes of 2 objects\n"
        "#1 cart.py:3: Cart#1.lines = [1]; self.lines = lines\n"
        "#2 cart.py:3 Cart.end(): Cart#1.lines is now also Cart.saved\n"
        "#3 cart.py:3 Cart.end(): Cart#1.lines [1, 2] → [1] in place; the same object as Cart.saved, set at cart.py:7;"
        " called from test_cart.py:9\n"
        "#4 cart.py:3 Cart.end(): Cart#1.lines [1] → deleted\n"
        "note: several threads ran: a change may have been made by another one at the same time"
    )


def test_of_a_change_in_a_long_value_the_changed_parts_are_shown() -> None:
    change = {
        "e": "change",
        "n": 1,
        "i": 1,
        "at": ["a.py", 3],
        "name": "scope",
        "how": "in place",
        "detail": "['x'] = 1",
    }
    assert (
        trace({**change, "before": "{}", "v": ["{'x': 1}", 0]}) == "#1 a.py:3: scope {} → {'x': 1} in place"
    )
    assert trace({**change, "before": "y" * 60, "v": ["z" * 60, 0]}) == "#1 a.py:3: scope in place: ['x'] = 1"


def test_a_call_by_lines_has_its_loops_folded() -> None:
    rounds = [
        [line, text, [["n", str(n)]]] for n in range(40) for line, text in ((3, "for n in x:"), (4, "f(n)"))
    ]
    steps = [[2, "x = []", []], *rounds, [5, "del n", [["n", ""]]]]
    assert trace(call(2, steps=steps)) == (
        "net#2() → None; from :8\n"
        "       2  x = []\n"
        "       3  for n in x:    # n=0\n"
        "       4  f(n)    # n=0\n"
        "       3  for n in x:    # n=1\n"
        "       4  f(n)    # n=1\n"
        "    … 37 rounds more like this\n"
        "       3  for n in x:    # n=39\n"
        "       4  f(n)    # n=39\n"
        "       5  del n    # n is gone"
    )


def test_hits_of_a_line_are_a_table() -> None:
    hits = [
        {"e": "hit", "n": n, "i": n, "at": ["a.py", 9], "ch": [["x", str(n)]], "ex": ["1"]} for n in (1, 2)
    ]
    other = {"e": "hit", "n": 3, "i": 1, "at": ["b.py", 2], "ch": [["y", "0"]]}
    assert trace(*hits, expressions=("len(x)",)) == "#1  x=1  len(x)=1\n#2  x=2  len(x)=1"
    assert trace(hits[0], other).split("\n") == ["a.py:9 #1  x=1", "b.py:2 #1  y=0"]


def test_counts_and_notes_come_with_each_trace() -> None:
    found = Trace.model_validate(
        {
            "functions": [["net", "order.py", 3, 14, True], ["nope", "order.py", 9, 0, False]],
            "events": [call(1)],
            "differs": {"counts": {"passed": 1}},
            "missing": ["nett: no such function"],
            "cut": "its time was over",
        }
    )
    assert render_trace(found, (), 4000) == (
        "net order.py:3: 14 calls, 1 shown\nnet() → None; from :8\n"
        "note: without the trace the run ends otherwise: 1 passed\n"
        "note: nett: no such function\n"
        "note: the trace is not complete: its time was over"
    )


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (
            {
                "counts": {"failed": 1, "passed": 2},
                "failures": [{"text": "KeyError: 'x'", "path": "a.py", "line": 3}],
            },
            "1 failed, 2 passed: KeyError: 'x' (a.py:3)",
        ),
        ({"exception": {"text": "ValueError: no"}, "exit_code": 1}, "ValueError: no"),
        ({"exit_code": 0}, "ended normally"),
        ({"exit_code": 3}, "exit code 3"),
        ({"signal": "SIGSEGV"}, "ended by SIGSEGV"),
        ({"signal": "SIGKILL"}, "ended by SIGKILL (perhaps it was out of memory)"),
        ({"timed_out": True, "counts": {"passed": 2}}, "2 passed; it was ended when its time was over"),
    ],
)
def test_the_outcome_is_one_line(outcome: dict[str, Any], text: str) -> None:
    assert render_outcome(Trace.model_validate({"outcome": outcome}).outcome) == text


@pytest.mark.parametrize(
    "field",
    [
        {"events": [{"e": "call", "n": "one"}]},
        {"events": [{"e": "other", "n": 1}]},
        {"events": [call(1, args=[["x", "y" * 1001, 0]])]},
        {"outcome": {"counts": {"failed": "all"}}},
        {"functions": [["f", "a.py", 1]]},
    ],
)
def test_what_a_program_forges_is_not_believed(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Trace.model_validate(field)


@pytest.fixture
def repo(make_repo: MakeRepo) -> Path:
    return make_repo({"cart.py": CART, "test_cart.py": TESTS})


async def test_the_first_failing_test_of_the_last_eval_is_traced(repo: Path) -> None:
    _, text = await answers(
        repo, ("eval", {}), ("trace", {"of": ["Cart"], "expressions": ["len(self.lines)"]})
    )
    assert text == (
        "1 failed: AssertionError: assert 20 == 61 (test_cart.py:7, test_cart.py::test_bad)\n"
        "Cart.__init__ cart.py:2: 1 call; Cart.defer cart.py:6: 1 call; Cart.end cart.py:10: 1 call; Cart.total cart.py:14: 1 call\n"
        "Cart.__init__(<Cart>@1, lines=[10, 20.5]@2) → None; now self=<Cart lines=[10, 20.5], saved=[]>@1;"
        " len(self.lines)=2; from test_cart.py:4\n"
        "Cart.defer(@1) → [10, 20.5]@2 (is self.lines, self.saved); now self=<Cart lines=[10, 20.5], saved=[10, 20.5]>@1;"
        " len(self.lines)=2; from test_cart.py:5\n"
        "Cart.end(@1) → None; now self=<Cart lines=[10], saved=[10]>@1; len(self.lines)=1; from test_cart.py:6\n"
        "Cart.total(@1) → 20; len(self.lines)=1; from test_cart.py:7\n"
        "(@n is one object; without a value it is as last shown)"
    )


async def test_the_diagnosed_test_is_traced_until_it_passes(repo: Path) -> None:
    (repo / "test_more.py").write_text(
        "from cart import Cart\ndef test_more():\n    assert Cart([5]).total() == 6\n"
    )
    edit = {"path": "test_more.py", "old_code": "== 6", "new_code": "== 0", "run": "tests"}
    _, more, _, first = await answers(
        repo,
        ("diagnose", {"test": "test_more.py::test_more"}),
        ("trace", {"of": ["Cart.total"]}),
        ("rewrite", edit),
        ("trace", {"of": ["Cart.total"]}),
    )
    assert more.startswith("1 failed: AssertionError: assert 0 == 6 (test_more.py:3")
    assert first.startswith("1 failed: AssertionError: assert 20 == 61 (test_cart.py:7")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Cart.add", ["Cart.add"]),
        ("Cart.add, shop/cart.py,", ["Cart.add", "shop/cart.py"]),
        ("rows[1, (2)], net#2", ["rows[1, (2)]", "net#2"]),
        ("rows[1, net", ["rows[1, net"]),
        ("a," * 6000, ["a," * 6000]),
    ],
)
def test_names_in_one_text_are_split(text: str, names: list[str]) -> None:
    assert list(split_names(text)) == names


async def test_a_long_trace_is_folded_and_a_name_without_calls_is_told(repo: Path) -> None:
    text, wide = await answers(
        repo,
        ("trace", {"of": "net", "test": "test_cart.py::test_many"}),
        ("trace", {"of": ["nett"], "entrypoint": "python cart.py", "max_events": 2000}),
    )
    assert text.startswith("1 passed\nnet cart.py:17: 500 calls, 30 shown\nnet(line=0) → 0; from :15\n")
    assert "… 470 more like this" in text
    assert text.endswith("net(line=499) → 998; from :15")
    assert wide == (
        "ended normally\n"
        "note: nett: no such function, class, module or attribute in the repository (did you mean net?)"
    )
