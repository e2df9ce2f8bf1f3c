"""The diagnosis as text, compared exactly, and a whole call on a repository."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.errors import NotFound
from sandbox.session.debugger import Call as PathCall
from sandbox.session.debugger import Frame, Function, Raised, Source, Variable
from sandbox.session.diagnosis import Diagnosis, Link, Mutation, ObjectClass, Place, Recording
from sandbox.session.workspace import Marks
from tests.tools.calls import answers
from tests.tools.conftest import MakeRepo
from tools._diagnosis import render_diagnosis, select_shown
from tools._excerpts import read_excerpts
from tools._mutation import is_mending
from tools._named_places import order_places
from tools._source_parts import cut_out, find_span
from tools._stop import StopAnswer
from tools._test_ids import is_of
from tools.diagnose import (
    DiagnoseAnswer,
    select_called,
    with_named_locals,
    with_short_test,
    without_library,
)

pytestmark = pytest.mark.anyio

GROUP: dict[str, Any] = {
    "path": "shop/group.py",
    "line": 24,
    "function": "merged",
    "text": "for sku, some in groupby(lines):",
}
SHOP = '''\
class Cart:
    def __init__(self, lines):
        self.lines = lines
        self.saved = []

    def defer(self):
        self.saved = self.lines

    def end(self):
        shorten(self.lines)

    def total(self):
        return sum(self.saved)

def shorten(lines):
    """Shorten a list.

    One item
    is
    left.
    """
    while len(lines) > 1:
        lines.pop()
'''
TESTS = """\
from shop import Cart

def test_good():
    cart = Cart([1])
    cart.defer()
    assert cart.total() == 1

def test_bad():
    cart = Cart([10, 20.5])
    cart.defer()
    cart.end()
    assert cart.total() == 30.5
"""


def diagnosis(**fields: Any) -> str:
    return render_diagnosis(Diagnosis.model_validate(fields))


def test_suspects_tell_how_many_passing_tests_ran_the_line() -> None:
    suspects = [{**GROUP, "passing": 1, "more": [25]}, {**GROUP, "line": 30}]
    text = diagnosis(spectrum={"passed": 23, "failed": 1, "suspects": suspects, "plain": {"type": "X"}})
    assert text == (
        "suspects (lines that set this test apart from 23 passing ones):\n"
        "  shop/group.py:24 merged(): for sku, some in groupby(lines):   (in 1 of 23, also :25)\n"
        "  shop/group.py:30 merged(): for sku, some in groupby(lines):   (only here)"
    )


def test_code_that_is_the_same_and_the_class_of_an_object_are_told() -> None:
    recording = {
        "chain": [{**GROUP, "name": "total", "value": "3"}],
        "chain_end": "the object itself",
        "chain_class": {**GROUP, "line": 3, "function": "Order", "last": 9},
        "alike": [{**GROUP, "line": 40, "function": "joined", "of": "merged"}],
    }
    assert diagnosis(recording=recording) == (
        "same code with other names: merged() and shop/group.py:40 joined()\n"
        "way back from the failure:\n"
        "  total = 3  shop/group.py:24 merged()\n"
        "  ended: the object itself, of class Order shop/group.py:3"
    )


def test_both_ends_of_a_shared_object_are_told() -> None:
    alias = {
        "stored": GROUP,
        "name": "self.saved",
        "changed": {**GROUP, "line": 9},
        "through": "z.append",
        "kind": "[3 items]",
    }
    assert diagnosis(recording={"aliases": [alias]}) == (
        "shared objects:\n"
        "  [3 items] stored at shop/group.py:24 merged() as self.saved: for sku, some in groupby(lines):\n"
        "    changed at shop/group.py:9 merged() through z.append: for sku, some in groupby(lines):"
    )


@pytest.mark.parametrize(("kind", "is_told"), [("was_expected", True), ("used_up", False)])
def test_beside_an_overwritten_value_the_shared_object_that_explains_it_is_told(
    kind: str, is_told: bool
) -> None:
    alias = {"stored": GROUP, "name": "self.saved", "changed": {**GROUP, "line": 9}, "through": "z.append"}
    signal = {"kind": kind, "name": "x", "value": "1", "other": "2", "places": [GROUP] * 3}
    assert ("shared objects" in diagnosis(recording={"aliases": [alias], "signals": [signal]})) is is_told


def test_both_ends_of_state_that_is_kept_are_told() -> None:
    kept = {
        "written": GROUP,
        "read": {**GROUP, "line": 9},
        "name": "self.seen",
        "function": "Order.total",
        "score": 1.4,
    }
    others = [{**kept, "score": 1.3}, {**kept, "score": 1.3}, {**kept, "score": 1.1}]
    assert diagnosis(recording={"kept": others[2:]}) == ""
    assert diagnosis(recording={"kept": [kept, {**kept, "score": 1.2}]}).count("self.seen") == 1
    assert diagnosis(recording={"kept": [kept, *others]}) == "\n".join(
        [
            "state that one call leaves to the next:",
            *[
                "  self.seen written at shop/group.py:24 merged(): for sku, some in groupby(lines):",
                "    read in a later call of Order.total() at shop/group.py:9 merged(): for sku, some in groupby(lines):",
            ]
            * 2,
        ]
    )


def test_the_way_back_has_values_and_its_end() -> None:
    links = [{**GROUP, "name": "total", "value": "37.12"}, {**GROUP, "line": 9, "name": "found.clear()"}]
    assert diagnosis(recording={"chain": links, "chain_end": "a literal"}) == (
        "way back from the failure:\n"
        "  total = 37.12  shop/group.py:24 merged()\n"
        "  ← found.clear()  shop/group.py:9 merged(): for sku, some in groupby(lines):\n"
        "  ended: a literal"
    )


def heads(spectrum: dict[str, Any], recording: dict[str, Any]) -> list[str]:
    """The first words of the parts of the text, and the number of lines of each."""
    text = render_diagnosis(Diagnosis.model_validate({"spectrum": spectrum, "recording": recording}))
    parts = [[line] for line in text.split("\n") if line[0] != " "]
    for line in text.split("\n"):
        if line[0] == " ":
            next(part for part in reversed(parts) if text.index(part[0]) < text.index(line)).append(line)
    return [f"{part[0][:8]} {len(part) - 1}" for part in parts]


def test_shared_objects_and_state_come_first_and_little_of_the_rest_after_them() -> None:
    suspects = [{**GROUP, "line": line, "function": f"f{line}", "passing": 1} for line in range(1, 7)]
    links = [{**GROUP, "line": line, "function": f"g{line}"} for line in range(1, 11)]
    recording: dict[str, Any] = {"chain": links}
    spectrum = {"passed": 9, "suspects": suspects, "plain": {"type": "KeyError"}}
    assert heads(spectrum, recording) == ["suspects 4", "way back 6"]
    recording["calls"] = [{**GROUP, "function": f"f{line}"} for line in range(1, 11)]
    assert heads(spectrum, recording) == ["way back 3", "calls th 10"]
    recording["chain_of_value"] = True
    assert heads(spectrum, recording) == ["way back 6", "calls th 10"]
    recording["kept"] = [
        {"written": GROUP, "read": GROUP, "name": "self.seen", "function": "merged", "score": 1.5}
    ]
    assert heads(spectrum, recording) == ["calls th 8", "state th 2"]
    recording["kept"][0]["score"] = 3
    assert heads(spectrum, recording) == ["state th 2", "calls th 4"]


def test_calls_are_nested_with_arguments_results_and_lines_that_few_passing_tests_run() -> None:
    outer = {"path": "shop/cart.py", "line": 4, "function": "Cart.total", "called_at": 12, "calls": 3}
    inner = {"path": "shop/tax.py", "line": 9, "function": "tax", "depth": 1, "called_at": 12, "calls": 1}
    calls = [{**outer, "result": "37.12"}, {**inner, "arguments": "rate=7"}]
    suspects = [{"path": "shop/tax.py", "line": 11, "function": "tax", "passing": 0}]
    assert diagnosis(
        recording={"calls": calls, "functions": 8, "suspects": suspects}, spectrum={"passed": 5}
    ).startswith(
        "calls that matter most, of 8 functions; how many of 5 passing tests run a line:\n"
        "  :12 → shop/cart.py:4 Cart.total() → 37.12   (3 calls)\n"
        "    shop/tax.py:9 tax(rate=7)   (:11 in none)"
    )


def test_values_are_told_with_all_of_their_spaces_on_one_line() -> None:
    call = {**GROUP, "function": "indent", "arguments": "by='   '", "result": "'  x'"}
    links = [{**GROUP, "name": "by", "value": "'   '"}, {**GROUP, "name": "text", "value": "'\n  x'"}]
    signal = {"kind": "unused", "name": "by", "value": "'   '", "places": [GROUP] * 2}
    text = diagnosis(recording={"calls": [call], "chain": links, "signals": [signal]})
    for told in ("indent(by='   ') → '  x'", "by = '   '  shop", "text = '   x'  shop", "used: by='   ' in"):
        assert told in text


def test_what_was_called_since_and_has_not_changed_the_state_is_told() -> None:
    kept = {
        "written": GROUP,
        "read": {**GROUP, "line": 9},
        "name": "self.seen",
        "function": "merged",
        "value": "78, before it 66",
        "passed_by": [{**GROUP, "line": 40, "function": "Order.clear"}],
        "score": 1.2,
    }
    assert diagnosis(recording={"kept": [kept]}) == "\n".join(
        [
            "state that one call leaves to the next:",
            "  self.seen written at shop/group.py:24 merged(): for sku, some in groupby(lines):   (78, before it 66)",
            "    not changed by shop/group.py:40 Order.clear(), called since",
            "    read in a later call at shop/group.py:9 merged(): for sku, some in groupby(lines):",
        ]
    )


def test_limits_and_a_run_that_differs_are_told() -> None:
    text = diagnosis(
        spectrum={"cut": "the time for it was over after 3 tests"},
        recording={"differs": "KeyError: 'x' at a.py:3", "cut": "only its last 9 events were kept"},
        notes=["no recording: it took over 5 s"],
    )
    assert text == (
        "note: no recording: it took over 5 s\n"
        "note: spectrum: the time for it was over after 3 tests\n"
        "note: the test did not fail when it ran with the tests of its file\n"
        "note: the recorded run failed otherwise (KeyError: 'x' at a.py:3): its recording is not used\n"
        "note: recording: only its last 9 events were kept"
    )


def test_the_text_is_bounded() -> None:
    long = {
        **GROUP,
        "text": "x" * 1000,
        "path": "p" * 1000,
        "function": "f" * 900,
        "name": "n" * 900,
        "value": "v" * 900,
    }
    assert len(diagnosis(recording={"chain": [long] * 50, "values": [long] * 10})) <= 2500


@pytest.mark.parametrize(
    "field",
    [
        {"spectrum": {"suspects": [GROUP] * 101}},
        {"spectrum": {"suspects": [{**GROUP, "score": 7}]}},
        {"recording": {"chain": [{**GROUP, "text": "x" * 1001}]}},
        {"recording": {"events": "many"}},
        {"recording": {"kept": [{"written": GROUP, "read": GROUP, "name": "x" * 1001}]}},
        {"notes": ["x" * 1001]},
    ],
)
def test_what_a_program_forges_is_not_believed(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Diagnosis.model_validate(field)


@pytest.fixture
def repo(make_repo: MakeRepo) -> Path:
    return make_repo({"shop.py": SHOP, "test_shop.py": TESTS})


async def test_one_call_goes_from_nothing_to_the_cause(repo: Path) -> None:
    text, after = await answers(
        repo,
        ("diagnose", {"expressions": ["cart.lines", "nope"]}),
        ("pdb", {"command": "p len(cart.saved)"}),
    )
    assert "stopped at test_shop.py:12 in test_bad (post mortem" in text
    assert "expressions:\n  cart.lines = [10]\n  nope = *** NameError: name 'nope' is not defined" in text
    assert "stored at shop.py:7 Cart.defer(): self.saved = self.lines" in text
    assert "changed at shop.py:23 shorten(): lines.pop()" in text
    assert "\n  :12 → shop.py:12 Cart.total() → 10" in text
    assert "source of functions named above:\nshop.py\n1\t" in text  # all of a small file, once
    assert "22\t    while len(lines) > 1:\n23\t        lines.pop()" in text
    assert text.count("def defer") == text.count("def test_bad") == 1
    assert "1" in after  # the session stands at the failure


@pytest.mark.parametrize("arguments", [{}, {"test": "test_shop.py::test_rate"}])
async def test_what_the_test_names_of_its_file_is_shown(
    make_repo: MakeRepo, arguments: dict[str, str]
) -> None:
    tests = "from shop import rate\n\nRATES = {'de': 7}\n\ndef test_rate():\n    assert rate('de') == RATES['de']\n"
    repo = make_repo({"shop.py": "def rate(country):\n    return len(country)\n", "test_shop.py": tests})
    (text,) = await answers(repo, ("diagnose", arguments))
    assert text.endswith("\nmore of the test:\ntest_shop.py RATES\n3\tRATES = {'de': 7}")


async def test_the_run_after_an_edit_names_the_diagnosed_test_as_fixed(make_repo: MakeRepo) -> None:
    tests = (
        "from shop import rate\n\ndef test_rate():\n    assert rate() == 1\n\ndef test_other():\n    pass\n"
    )
    edit = {"path": "shop.py", "old_code": "return 2", "new_code": "return 1", "run": "tests"}
    _, run = await answers(
        make_repo({"shop.py": "def rate():\n    return 2\n", "test_shop.py": tests}),
        ("diagnose", {"test": "test_shop.py::test_rate"}),
        ("rewrite", edit),
    )
    assert run.endswith("\n2 passed (exit code 0)\nfixed since the last run: test_shop.py::test_rate")


async def test_the_run_after_an_edit_names_the_other_tests_that_were_seen_to_fail_as_fixed(
    make_repo: MakeRepo,
) -> None:
    tests = "from shop import rate\n\ndef test_rate():\n    assert rate() == 1\n\ndef test_more():\n    assert rate() < 2\n"
    edit = {"path": "shop.py", "old_code": "return 2", "new_code": "return 1"}
    _, one, all_tests, again = await answers(
        make_repo({"shop.py": "def rate():\n    return 2\n", "test_shop.py": tests}),
        ("diagnose", {"test": "test_shop.py::test_rate"}),
        ("rewrite", {**edit, "run": "test_shop.py::test_rate"}),
        ("eval", {}),
        ("eval", {}),
    )
    assert one.endswith("\nfixed since the last run: test_shop.py::test_rate")
    assert all_tests.endswith("\nfixed since the last run: test_shop.py::test_more")
    assert again == "2 passed (exit code 0)"


async def test_a_test_that_only_fails_in_the_order_of_a_diagnosis_is_not_told_as_fixed(
    make_repo: MakeRepo,
) -> None:
    shop = "seen = []\ndef see(name):\n    seen.append(name)\n    return len(seen)\n"
    tests = "from shop import see\n\ndef test_first():\n    assert see('a') == 1\n\ndef test_bad():\n    assert see('b') == 9\n"
    *_, told, after = await answers(
        make_repo({"shop.py": shop, "test_shop.py": tests}),
        ("eval", {}),
        ("diagnose", {"test": "test_shop.py::test_bad"}),
        ("eval", {}),
    )
    assert "fails too: test_shop.py::test_first" in told
    assert "fixed" not in after


async def test_a_diagnosed_unittest_test_is_told_as_fixed_once(make_repo: MakeRepo) -> None:
    head = "import unittest\nfrom shop import rate\nclass Case(unittest.TestCase):\n"
    tests = head + "    def test_rate(self):\n        self.assertEqual(rate(), 1)\n"
    broken = {"path": "shop.py", "old_code": "return 1", "new_code": "return 2"}
    edit = {"path": "shop.py", "old_code": "return 2", "new_code": "return 1", "run": "tests"}
    entrypoint = "python -m unittest"
    *_, run, again, nothing = await answers(
        make_repo({"shop.py": "def rate():\n    return 1\n", "test_shop.py": tests}),
        ("start_session", {"entrypoint": entrypoint}),
        ("eval", {}),
        ("rewrite", broken),
        ("diagnose", {"test": "test_shop.Case.test_rate"}),
        ("rewrite", edit),
        ("eval", {}),
        ("diagnose", {}),
    )
    assert run.endswith("\nfixed since the last run: test_rate (test_shop.Case.test_rate)")
    assert again == "1 passed (exit code 0)"
    assert "test_rate" not in nothing


async def test_other_failing_tests_are_named(make_repo: MakeRepo) -> None:
    tests = TESTS + "".join(
        f"\n\ndef test_more_{number}():\n    assert not {number + 1}\n" for number in range(5)
    )
    (text,) = await answers(make_repo({"shop.py": SHOP, "test_shop.py": tests}), ("diagnose", {}))
    for number in range(3):
        told = f"fails too: test_shop.py::test_more_{number}: AssertionError: assert not {number + 1}\n"
        assert told in text
    assert "\nalso failing: test_shop.py::test_more_3, test_shop.py::test_more_4\n" in text


async def test_of_a_file_that_is_not_small_the_functions_are_shown(make_repo: MakeRepo) -> None:
    longer = SHOP + "\n\ndef unused():\n" + "    print('x')\n" * 200
    (text,) = await answers(make_repo({"shop.py": longer, "test_shop.py": TESTS}), ("diagnose", {}))
    assert (
        "source of functions named above (◂ value in the call told):\n"
        "shop.py shorten\n"
        "15\tdef shorten(lines):\n"
        "… 6 lines of docstring\n"
        "22\t    while len(lines) > 1:   ◂ False\n"
        "23\t        lines.pop()"
    ) in text  # the others are among those that the failing test calls
    assert text.count("def defer") == 1


async def test_a_function_that_the_failure_passed_is_shown_once(make_repo: MakeRepo) -> None:
    filling = "def unused():\n" + "    print('x')\n" * 200
    shop = """\
class Base:
    def outer(self, x):
        return self.inner(x + 1)

    def inner(self, y):
        raise ValueError(y)

    def deep(self, x):
        return self.outer(x)

"""
    tests = "from shop import Base\n\ndef test_bad():\n    Base().deep(3)\n\ndef test_good():\n    Base()\n"
    (text,) = await answers(make_repo({"shop.py": shop + filling, "test_shop.py": tests}), ("diagnose", {}))
    assert text.count("def outer(self, x):") == text.count("def deep(self, x):") == 1


async def test_of_refused_arguments_the_function_is_shown_whole_and_nothing_else(
    make_repo: MakeRepo,
) -> None:
    body = "".join(f"        self.part_{number} = name\n" for number in range(80))
    shop = f"""\
class Cart:
    def __init__(self):
        self.lines = fill()

    def load(self, name):
        '''Take the name.

        One
        word
        will
        do.
        '''
        self.name = name
        return self.name

    def unused(self, name):
{body}

def fill():
    return []
"""
    tests = "from shop import Cart\n\ndef test_bad():\n    Cart().load('a', text=False)\n\ndef test_good():\n    Cart()\n"
    (text,) = await answers(make_repo({"shop.py": shop, "test_shop.py": tests}), ("diagnose", {}))
    assert "refused the arguments  shop.py:5 Cart.load()" in text
    assert text.endswith(
        "\n11\t        do.\n12\t        '''\n13\t        self.name = name\n14\t        return self.name"
    )
    assert "source of functions named above:\nshop.py Cart.load\n5\t    def load(self, name):\n" in text
    assert "calls that matter" not in text and "def fill" not in text


async def test_the_set_up_of_a_test_is_shown_whatever_the_rest_takes(make_repo: MakeRepo) -> None:
    functions = "".join(
        f"\n\ndef step_{number}(value):\n" + "    value += 1\n" * 25 + "    return value\n"
        for number in range(8)
    )
    steps = "".join(f"        value = shop.step_{number}(value)\n" for number in range(8))
    items = "            40,\n" * 20
    tests = f"""\
import unittest
import shop

class Test(unittest.TestCase):
    def setUp(self):
        self.start = [
{items}        ][1]

    def test_bad(self):
        value = self.start
{steps}        self.assertEqual(value, self.start)
        print(1)
        print(2)
        print(3)
        print("the end")

    def test_good(self):
        shop.step_1(1)
"""
    (text,) = await answers(make_repo({"shop.py": functions, "test_shop.py": tests}), ("diagnose", {}))
    assert len(text) > 4000
    assert "called:\n  test_shop.py:5 in setUp\n5\t    def setUp(self):\n" in text
    assert 'print("the end")' in text and "more line" not in text


@pytest.mark.parametrize(
    ("frame", "calls", "selected"),
    [
        ("test_cart.py", [], ["shop/cart.py", "tests/make.py", "conftest.py", "check.py"]),
        ("test_cart.py", [GROUP], ["tests/make.py", "conftest.py"]),
        ("check.py", [GROUP], ["tests/make.py", "conftest.py", "check.py"]),
    ],
)
def test_beside_calls_only_functions_of_test_code_are_shown_as_called(
    frame: str, calls: list[dict[str, Any]], selected: list[str]
) -> None:
    paths = ["shop/cart.py", "tests/make.py", "conftest.py", "check.py"]
    stop = StopAnswer.model_construct(
        frame=Frame(path=frame, line=1, function="f"),
        called=[Function(path=path, line=1, function="f") for path in paths],
    )
    found = Diagnosis.model_validate({"recording": {"calls": calls}})
    assert [one.path for one in select_called(stop, select_shown(found))] == selected


def test_beside_a_change_that_is_mostly_at_the_cause_only_functions_of_the_failing_line_are_shown_as_called() -> (
    None
):
    called = [Function(path="test_shop.py", line=1, function=name) for name in ("total", "setUp", "rates")]
    source = Source(start=9, lines=["x = rates()", "assert (", "    total() == 1", ")"], current=10)
    stop = StopAnswer.model_construct(source=source, called=called)
    mutation = {"tried": 9, "passing": 1, "others": 2, "changes": [CHANGE]}
    shown = select_shown(Diagnosis.model_validate({"mutation": mutation}))
    assert [one.function for one in select_called(stop, shown)] == ["total"]


async def test_a_failing_test_beside_a_passing_one(repo: Path) -> None:
    (text,) = await answers(repo, ("diagnose", {"against": "test_shop.py::test_good"}))
    assert (
        "\nagainst test_shop.py::test_good (passed), 3 functions in both; each as: here | there\n"
        "  differs first: shop.py:2 Cart.__init__(): def __init__(self, lines):   lines = [10, 20.5] | [1]\n"
        "  called only here: shop.py:9 Cart.end()\n"
    ) in text


async def test_of_long_output_the_end_is_shown_and_how_to_see_the_rest(make_repo: MakeRepo) -> None:
    program = "for number in range(2000):\n    print('row', number)\nassert number < 3\n"
    (text,) = await answers(make_repo({"app.py": program}), ("diagnose", {"entrypoint": "python app.py"}))
    printed = text.partition("program output:\n```\n")[2].partition("\n```")[0]
    assert printed.endswith("row 1998\nrow 1999") and 900 < len(printed) <= 1000
    assert "characters of output" in text and "/output" in text


async def test_a_program_that_does_not_fail_has_no_diagnosis(repo: Path) -> None:
    (text,) = await answers(repo, ("diagnose", {"entrypoint": "python shop.py"}))
    assert text.endswith("no diagnosis: nothing has failed in this run")


async def test_of_a_test_that_passes_the_failure_of_another_is_no_diagnosis(repo: Path) -> None:
    (text,) = await answers(repo, ("diagnose", {"test": "test_shop.py::test_good"}))
    assert text.endswith("no diagnosis: this test has not failed, neither alone nor among all tests")
    assert "post mortem" not in text


async def test_a_test_that_fails_after_others_is_told_past_their_own_failures(make_repo: MakeRepo) -> None:
    tests = """\
        SEEN = []

        def test_first():
            SEEN.append(1)
            assert len(SEEN) == 2

        class TestAll:
            def test_last(self):
                assert not SEEN
        """
    files = {"test_seen.py": dedent(tests)}
    (text,) = await answers(make_repo(files), ("diagnose", {"test": "test_seen.py::TestAll::test_last"}))
    assert "alone this test passes: it depends on the tests before it" in text
    assert "assert not SEEN" in text.partition("alone this test")[0]
    assert "test test_seen.py::TestAll::test_last" in text.splitlines()[0]


@pytest.mark.parametrize(
    ("found", "asked", "same"),
    [
        ("t/test_a.py::test_b", "t/test_a.py::test_b", True),
        ("t/test_a.py::T::test_b[x::y]", "t/test_a.py::T::test_b", True),
        ("t/test_a.py::T::test_b", "t/test_a.py::T", True),
        ("t/test_a.py::T::test_b", "t/test_a.py", True),
        ("t/test_a.py::test_b", "test_a.py::test_b", True),
        ("test_b (t.test_a.T.test_b)", "t.test_a.T.test_b", True),
        ("test_b (t.test_a.T)", "t.test_a.T.test_b", True),
        ("t/test_a.py::test_bc", "t/test_a.py::test_b", False),
        ("t/test_a.py::test_c", "t/test_a.py::test_b", False),
        ("t/test_z.py::test_b", "t/test_a.py::test_b", False),
        ("t/test_a.py::test_b[2]", "t/test_a.py::test_b[1]", False),
        ("test_b (t.test_a.U.test_b)", "t.test_a.T.test_b", False),
    ],
)
def test_ids_of_one_test_in_several_forms(found: str, asked: str, same: bool) -> None:
    assert is_of(found, asked) is same


def test_a_long_function_is_shown_around_all_lines_that_are_named() -> None:
    lines = ["def long():", *(f"    step_{number} = '{'x' * 40}'" for number in range(2, 61))]
    marks = Marks.model_validate({"definitions": [{"name": "long", "found": [("function", 1, 60)]}]})
    place = Place(path="shop.py", line=20, function="long", text="")
    head, *shown = cut_out(place, lines, marks, [], [20, 28, 55], {}).split("\n")
    assert head == "shop.py long, parts"
    numbers = [line.split()[0] for line in shown]
    assert numbers == ["1", "…", *map(str, range(14, 35)), "…", *map(str, range(53, 58))]
    head, *shown = cut_out(place, lines, marks, [], [], {}).split("\n")
    assert [line.split()[0] for line in shown] == ["1", "…", *map(str, range(14, 27))]
    assert cut_out(place, lines, marks, [30], [20], {}) == ""


def test_of_a_long_function_with_values_the_lines_that_have_one_are_shown_with_it() -> None:
    lines = ["def long(x):", *(f"    step_{number} = '{'x' * 40}'" for number in range(2, 61))]
    marks = Marks.model_validate({"definitions": [{"name": "long", "found": [("function", 1, 60)]}]})
    place = Place(path="shop.py", line=40, function="long", text="")
    values = {30: "True", 33: "x = 7", 39: "False", 60: "None"}
    head, *shown = cut_out(place, lines, marks, [], [40], values, 485).split("\n")
    assert head == "shop.py long, parts"
    assert [line.split()[0] for line in shown] == ["1", "…", "30", "31", "32", "33", "…", "39", "40"]
    assert shown[5].endswith("'   ◂ x = 7") and shown[7].endswith("'   ◂ False")


def test_where_a_changed_line_has_its_names_from_comes_before_values_of_other_lines() -> None:
    lines = ["def long(x):", *(f"    step_{number} = '{'x' * 40}'" for number in range(2, 61))]
    lines[3], lines[39] = "    left = all_keys", "    left.discard(key)"
    marks = Marks.model_validate({"definitions": [{"name": "long", "found": [("function", 1, 60)]}]})
    place = Place(path="shop.py", line=40, function="long", text="")
    values = dict.fromkeys(range(30, 60), "True") | {60: "→ None"}
    _, *shown = cut_out(place, lines, marks, [], [40], values, 300).split("\n")
    numbers = [line.split()[0] for line in shown]
    assert "4" in numbers and "40" in numbers and "60" not in numbers


def test_all_lines_between_a_name_and_its_use_near_by_are_shown() -> None:
    lines = ["def long():", *(f"    step_{number} = '{'x' * 40}'" for number in range(2, 61))]
    lines[19], lines[38] = "    key = make()", "    self.kept[key] = 1"
    marks = Marks.model_validate({"definitions": [{"name": "long", "found": [("function", 1, 60)]}]})
    place = Place(path="shop.py", line=39, function="long", text="")
    _, *shown = cut_out(place, lines, marks, [], [], {}).split("\n")
    assert [line.split()[0] for line in shown] == ["1", "…", *map(str, range(19, 46))]


def test_what_a_loop_binds_below_for_its_next_round_is_shown() -> None:
    lines = ["def long(rows):", *(f"    step_{number} = '{'x' * 40}'" for number in range(2, 71))]
    lines[9:12] = ["    key = None", "    for row in rows:", "        kept.add(key)"]
    lines[12:60] = [f"    {line}" for line in lines[12:60]]
    lines[49], lines[65] = "        key = row.name", "    key = 1"
    marks = Marks.model_validate({"definitions": [{"name": "long", "found": [("function", 1, 70)]}]})
    place = Place(path="shop.py", line=12, function="long", text="")
    _, *shown = cut_out(place, lines, marks, [], [], {}).split("\n")
    numbers = [line.split()[0] for line in shown]
    assert {"10", "11", "12", "50"} <= {*numbers} and "66" not in numbers


def test_of_a_function_that_has_not_run_the_docstring_is_shown_if_it_refused_its_arguments() -> None:
    lines = ["def twin():", '    """One.', "", "    two", "    three", "    four", '    """', "    return 1"]
    found = [{"name": "twin", "found": [("twin", 1, 8)]}]
    marks = Marks.model_validate({"definitions": found, "unexecuted": [(2, 8)]})
    place = {"path": "shop.py", "line": 1, "function": "twin"}
    other = cut_out(Place(**place), lines, marks, [], [], {})
    assert other == "shop.py twin\n1\tdef twin():\n… 6 lines of docstring\n8\t    return 1"
    refused = cut_out(Link(**place, refused=True), lines, marks, [], [], {})
    numbers = [line.split()[0] for line in refused.split("\n")[1:] if line]
    assert numbers == [str(number) for number in range(1, 9) if number != 3]


def test_of_a_class_its_head_is_shown() -> None:
    lines = ["class Name:", "    text = 'x'", "    def first(self):", "        pass"]
    head = ObjectClass(path="shop.py", line=1, last=2, function="Name")
    assert cut_out(head, lines, Marks(), [4], [1], {}) == "shop.py Name\n1\tclass Name:\n2\t    text = 'x'"
    assert cut_out(head, lines, Marks(), [2], [1], {}) == ""
    assert (
        cut_out(ObjectClass(path="shop.py", line=1, last=9, function="Name"), lines, Marks(), [], [], {})
        == ""
    )


PLUGIN = """\
def pytest_runtest_makereport(item, call):
    if item.name == "test_bad" and call.when == WHEN:
        raise RuntimeError("broken plugin")
"""


@pytest.mark.parametrize(
    ("when", "stopped"), [("call", "test_i.py:2 in test_bad"), ("setup", "conftest.py:3 in")]
)
async def test_when_pytest_itself_fails_the_test_that_ran_is_diagnosed(
    make_repo: MakeRepo, when: str, stopped: str
) -> None:
    plugin = PLUGIN.replace("WHEN", repr(when))
    files = {"conftest.py": plugin, "test_i.py": "def test_good(): pass\ndef test_bad(): assert 1 == 2\n"}
    (text,) = await answers(make_repo(files), ("diagnose", {}))
    assert stopped in text.splitlines()[0]
    assert "closed file" not in text


@pytest.mark.parametrize(
    "bound", ["key, other = found", "for key in found:", "key: str = found", "key += found"]
)
def test_a_long_function_is_also_shown_where_a_name_of_the_line_is_bound(bound: str) -> None:
    lines = ["def long():", *(f"    step_{number} = '{'x' * 40}'" for number in range(2, 61))]
    lines[4], lines[8], lines[49] = (
        f"    {bound}",
        "    use(key == found, of.key)",
        "    self.kept[key] = step_49",
    )
    marks = Marks.model_validate({"definitions": [{"name": "long", "found": [("function", 1, 60)]}]})
    _, *shown = cut_out(
        Place(path="shop.py", line=50, function="long", text=""), lines, marks, [], [], {}
    ).split("\n")
    assert [line.split()[0] for line in shown] == [*map(str, range(1, 7)), "…", *map(str, range(44, 57))]


async def test_blocks_that_the_test_has_not_run_are_folded_until_the_file_changes(
    make_repo: MakeRepo,
) -> None:
    idle = "\n\ndef idle(value):\n    value += 1\n    value += 2\n    return value\n"
    longer = f"{SHOP}{idle}\n\n# the end\n" + "LIMIT = 1\n" * 120
    edit = {"path": "shop.py", "old_code": "# the end", "new_code": "# the last lines"}
    before, _, after, short, several, parts, other_parts, _, again = await answers(
        make_repo({"shop.py": longer, "test_shop.py": TESTS}),
        ("view", {"path": "shop.py"}),
        ("diagnose", {}),
        ("view", {"path": "shop.py"}),
        ("view", {"path": "shop.py", "name": "idle"}),
        ("view", {"path": "shop.py::idle, shop.py:30-160"}),
        ("view", {"path": "shop.py:21-100, shop.py:101-160"}),
        ("view", {"path": "shop.py:21-40, shop.py:41-150"}),
        ("rewrite", edit),
        ("view", {"path": "shop.py"}),
    )
    assert "value += 2" in before and "not run" not in before
    assert "def idle(value):\n… lines 27-29 not run\n" in after and "value += 2" not in after
    assert "note: the diagnosed test has not run the folded lines" in after
    assert "def shorten(lines):" in after and "lines.pop()" in after
    assert "value += 2" in short and "not run" not in short
    assert "value += 2" in several and "not run" not in several  # it was asked for
    assert "… lines 27-29 not run\n" in parts
    assert "value += 2" in other_parts  # it is in a short part
    assert "the last lines" in again and "value += 2" in again and "not run" not in again


CHANGE = {
    "path": "shop/cart.py",
    "line": 7,
    "function": "Cart.add",
    "change": "without `lines.sort()`",
    "ran": 30,
}


def test_changes_of_the_code_with_which_the_test_passes_are_told_first() -> None:
    mutation: dict[str, Any] = {"tried": 300, "passing": 3, "others": 30}
    mutation["changes"] = [
        CHANGE,
        {**CHANGE, "change": "with a copy of `lines`"},
        {**CHANGE, "line": 9, "function": "Cart.total", "change": "if `n` were true", "broken": 2, "ran": 4},
        {
            **CHANGE,
            "line": 12,
            "function": "Cart.clear",
            "broken": 3,
            "breaks": ["test_a.py::Case::test_b", "test_c"],
        },
    ]
    difference = {"place": "[1]", "actual": "2", "expected": "3"}
    assert diagnosis(recording={"difference": difference}, mutation=mutation) == (
        "differs first at [1]: 2 instead of 3\n"
        "changes with which the test passes (the best of 3; 300 tried); 30 other tests ran with each:\n"
        "  breaks none: shop/cart.py:7 Cart.add(): without `lines.sort()`\n"
        "  breaks 2 of the 4 that ran: shop/cart.py:9 Cart.total(): if `n` were true"
    )
    only_here = [{**one, "only_here": True} for one in mutation["changes"]]
    text = diagnosis(mutation={**mutation, "changes": only_here})
    assert "  breaks none (no passing test runs it): shop/cart.py:7 Cart.add()" in text
    assert "  breaks 2 of the 4 that ran: shop/cart.py:9 Cart.total()" in text
    mutation["changes"] = mutation["changes"][2:]
    assert "  breaks 3 (test_b, test_c … 1 more): shop/cart.py:12 Cart.clear()" in diagnosis(
        mutation=mutation
    )
    del mutation["others"]
    assert "(the best of 3; 300 tried):\n  shop/cart.py:9" in diagnosis(mutation=mutation)


def test_a_change_with_which_a_function_does_nothing_comes_after_what_a_recording_has_found() -> None:
    signal = {"kind": "lost", "places": [{**CHANGE, "function": "Cart.total"}]}
    for hollow, functions in (False, ["Cart.add", "Cart.total"]), (True, ["Cart.total", "Cart.add"]):
        mutation = {"tried": 9, "passing": 1, "changes": [{**CHANGE, "ran": 0, "hollow": hollow}]}
        found = Diagnosis.model_validate({"recording": {"signals": [signal]}, "mutation": mutation})
        places = order_places(select_shown(found), found.recording or Recording(), ())
        assert [one.function for one, *_ in places] == functions


def test_of_a_change_that_computes_anew_what_is_kept_the_function_that_computes_it_is_shown() -> None:
    computed = {"path": "shop/cache.py", "line": 3, "function": "compute"}
    mutation = {"tried": 9, "passing": 1, "others": 30, "changes": [{**CHANGE, "computed_by": computed}]}
    found = Diagnosis.model_validate({"recording": {}, "mutation": mutation})
    places = order_places(select_shown(found), Recording(), ())
    assert [one.function for one, *_ in places] == ["Cart.add", "compute"]


@pytest.mark.parametrize(
    ("change", "calls", "functions"),
    [
        ({}, [], ["Cart.add"]),
        ({"broken": 1}, ["Cart.add", "f2", "f1"], ["Cart.add", "f2", "f1"]),
        ({"ran": 0}, ["Cart.add", "f2", "f1"], ["Cart.add", "f2", "f1"]),  # nobody knows what it harms
        ({"hollow": True}, ["Cart.add", "f2", "f1"], ["Cart.add", "f2", "f1"]),
        ({"failing": 2}, ["Cart.add", "f2", "f1"], ["Cart.add", "f2", "f1"]),  # others fail as before
        ({"failing": 2, "mended": 1}, [], ["Cart.add"]),
    ],
)
def test_beside_a_change_that_is_mostly_at_the_cause_no_calls_are_told(
    change: dict[str, Any], calls: list[str], functions: list[str]
) -> None:
    others = [{**GROUP, "function": f"f{number}", "score": number} for number in range(3)]
    made = {**GROUP, "path": "shop/cart.py", "function": "Cart.add", "score": 9}
    mutation = {"tried": 9, "passing": 1, "others": 30, "failing": change.pop("failing", 0)}
    mutation["changes"] = [{**CHANGE, **change}]
    found = Diagnosis.model_validate({"recording": {"calls": [made, *others]}, "mutation": mutation})
    told = sorted(select_shown(found).calls, key=lambda one: -one.score)
    assert [one.function for one in told] == calls
    places = order_places(select_shown(found), found.recording or Recording(), ())
    assert [one.function for one, *_ in places][: len(functions)] == functions
    assert len(places) == (4 if calls else 1)


def test_how_many_of_the_tests_that_fail_too_a_change_mends() -> None:
    mutation = {"tried": 9, "passing": 1, "others": 30, "failing": 2, "changes": [{**CHANGE, "mended": 1}]}
    assert diagnosis(mutation=mutation) == (
        "changes with which the test passes (9 tried); 30 other tests and 2 that fail too ran with each:\n"
        "  breaks none, mends 1: shop/cart.py:7 Cart.add(): without `lines.sort()`"
    )


def test_beside_a_change_that_mends_all_no_other_breaks_a_test() -> None:
    better, other = {**CHANGE, "mended": 2}, {**CHANGE, "function": "Cart.total", "broken": 2, "mended": 2}
    mutation = {"tried": 9, "passing": 2, "others": 30, "failing": 2, "changes": [better, other]}
    assert "Cart.total" not in diagnosis(mutation=mutation)
    assert "Cart.total" in diagnosis(mutation={**mutation, "failing": 3})


def test_a_change_that_breaks_nothing_is_told_behind_one_that_mends_more() -> None:
    better, other = {**CHANGE, "broken": 1, "mended": 2}, {**CHANGE, "function": "Cart.total"}
    mutation = {"tried": 9, "passing": 2, "others": 30, "failing": 2, "changes": [better, other]}
    assert "Cart.total" in diagnosis(mutation=mutation)
    better["broken"] = 0
    assert "Cart.total" not in diagnosis(mutation=mutation)


def test_changes_with_which_the_test_comes_further() -> None:
    further = [
        {**CHANGE, "fails_at": "test_a.py:9"},
        {**CHANGE, "fails_at": "test_a.py:9", "change": "another one of its line"},
        {**CHANGE, "fails_at": "test_a.py:8", "line": 12, "function": "Cart.clear", "broken": 3},
        {**CHANGE, "fails_at": "test_a.py:8", "line": 13, "function": "Cart.clear", "ran": 0},
        {
            **CHANGE, "fails_at": "test_a.py:8", "line": 20, "function": "Cart.total", "broken": 1, "breaks": ["a.py::test_b[::x]"],
        },
    ]  # fmt: skip
    mutation: dict[str, Any] = {"tried": 9, "others": 30, "further": further}
    assert diagnosis(mutation=mutation) == (
        "no small change makes the test pass (9 tried); with these it comes further; 30 other tests ran with each:\n"
        "  breaks none: shop/cart.py:7 Cart.add(): without `lines.sort()`, then fails at test_a.py:9\n"
        "  breaks 1 (test_b[::x]): shop/cart.py:20 Cart.total(): without `lines.sort()`, then fails at test_a.py:8"
    )
    found = Diagnosis.model_validate({"recording": {}, "mutation": mutation})
    assert [one.function for one, *_ in order_places(select_shown(found), Recording(), ())] == [
        "Cart.add",
        "Cart.total",
    ]
    mutation = {**mutation, "passing": 4, "changes": [{**CHANGE, "broken": 9}]}
    assert diagnosis(mutation=mutation).startswith(
        "no small change makes the test pass without breaking others (9 tried); with these it comes further;"
    )
    del mutation["further"]
    assert (
        diagnosis(mutation=mutation)
        == "no small change makes the test pass without breaking others (9 tried)"
    )


@pytest.mark.parametrize(
    ("broken", "mended", "is_told"), [(3, 0, True), (4, 0, False), (5, 4, False), (4, 4, True)]
)
def test_changes_that_break_many_tests_and_mend_no_other_are_not_told(
    broken: int, mended: int, is_told: bool
) -> None:
    change = {**CHANGE, "broken": broken, "mended": mended}
    mutation = {"tried": 9, "passing": 1, "others": 30, "failing": 4, "changes": [change]}
    assert ("Cart.add" in diagnosis(mutation=mutation)) is is_told


def test_a_change_that_breaks_many_tests_hides_none_that_mends_others() -> None:
    harmful = {**CHANGE, "broken": 8}
    better = {**CHANGE, "function": "Cart.total", "broken": 9, "mended": 9}
    mutation = {"tried": 9, "passing": 2, "others": 30, "failing": 9, "changes": [harmful, better]}
    text = diagnosis(mutation=mutation)
    assert "Cart.total" in text and "Cart.add" not in text


@pytest.mark.parametrize(
    ("other", "is_told"),
    [({"mended": 2}, True), ({"mended": 1}, False), ({"mended": 4, "function": "Cart.__eq__"}, False)],
)
def test_changes_that_mend_less_or_only_make_unequal_objects_equal_are_not_told_behind_a_better_one(
    other: dict[str, Any], is_told: bool
) -> None:
    changes = [{**CHANGE, "mended": 4}, {**CHANGE, "function": "Cart.total", "line": 9, **other}]
    mutation = {"tried": 9, "passing": 2, "others": 30, "failing": 4, "changes": changes}
    assert ("cart.py:9" in diagnosis(mutation=mutation)) is is_told
    assert "cart.py:9" in diagnosis(mutation={**mutation, "changes": changes[1:]})


def test_without_a_change_other_functions_that_ran_are_named_by_file() -> None:
    ran = [
        {"path": path, "line": 3, "function": name}
        for path, name in (("a.py", "f"), ("b.py", "C.g"), ("a.py", "told"), ("a.py", "h"))
    ]
    calls = [{"path": "a.py", "line": 3, "function": "told", "score": 1}]
    recording = {"ran": [*ran, *({**ran[0], "function": "x" * number} for number in range(9, 99))]}
    text = diagnosis(recording={**recording, "calls": calls}, mutation={"tried": 9})
    line = text.splitlines()[-1]
    assert line.startswith("others that ran, the most suspect first: a.py: f, h, xxxxxxxxx, ")
    assert line.endswith("; b.py: C.g") and len(line) < 600
    mutation = {"tried": 9, "passing": 1, "changes": [CHANGE]}
    assert "others that ran" not in diagnosis(recording=recording, mutation=mutation)


def test_that_no_change_makes_the_test_pass_is_told() -> None:
    assert diagnosis(mutation={"tried": 40}) == "no small change makes the test pass (40 tried)"


def test_changes_in_many_functions_say_little() -> None:
    changes = [{**CHANGE, "function": f"f{number}", "line": number} for number in range(1, 13)]
    assert diagnosis(mutation={"tried": 40, "passing": 12, "changes": changes}) == ""
    few = diagnosis(mutation={"tried": 40, "passing": 11, "changes": changes[:11]})
    assert few.count("\n") == 4
    assert diagnosis(mutation={"problem": "other threads run when the test begins"}) == ""


def test_source_of_a_function_with_the_code_of_a_changed_one_comes_behind_it() -> None:
    twin = {"path": "shop/cart.py", "line": 30, "function": "Cart.drop", "of": "Cart.add"}
    mutation = {"tried": 40, "passing": 2, "changes": [CHANGE, {**CHANGE, "function": "Cart.total"}]}
    found = Diagnosis.model_validate({"recording": {"alike": [twin]}, "mutation": mutation})
    assert [
        places[0].function for places in order_places(select_shown(found), found.recording or Recording(), ())
    ] == [*("Cart.add", "Cart.drop", "Cart.total")]


@pytest.mark.parametrize(
    ("kind", "broken", "order"),
    [
        ("not_set", 0, ["Cart.add", "log"]),
        ("not_set", 2, ["log", "Cart.add", "count"]),
        ("unused", 0, ["Cart.add"]),  # it is in programs without a fault, too
        ("unused", 2, ["Cart.add", "count", "log"]),
    ],
)
def test_a_change_without_harm_comes_before_signals_and_others_behind_them(
    kind: str, broken: int, order: list[str]
) -> None:
    places = [{"path": "shop/log.py", "line": line, "function": "log"} for line in (3, 4)]
    signal = {"kind": kind, "name": "x", "places": places}
    mutation = {"tried": 40, "passing": 1, "changes": [{**CHANGE, "ran": 4, "broken": broken}]}
    calls = [
        {"path": "shop/count.py", "line": 1, "function": "count", "depth": 0, "called_at": 1, "calls": 1}
    ]
    recording = {"signals": [signal], "calls": calls}
    found = Diagnosis.model_validate({"recording": recording, "mutation": mutation})
    shown = select_shown(found)
    places = order_places(shown, shown.recording, ())
    assert [one.function for one, *_ in places] == order


def test_where_the_first_exception_was_raised_comes_before_signals() -> None:
    signal = {
        "kind": "unused",
        "name": "x",
        "places": [{"path": "shop/log.py", "line": 3, "function": "log"}],
    }
    mutation = {"tried": 40, "passing": 1, "changes": [{**CHANGE, "ran": 4}]}
    found = Diagnosis.model_validate({"recording": {"signals": [signal]}, "mutation": mutation})
    origin = Place(path="shop/load.py", line=9, function="load")
    places = order_places(select_shown(found), found.recording or Recording(), (), origin)
    assert [one.function for one, *_ in places] == ["Cart.add", "load", "log"]


def test_tests_that_the_best_change_mends_and_what_was_caught_are_not_told() -> None:
    failing = [{"test": "test_a.py::test_b", "type": "KeyError", "message": "x"}]
    caught = {"type": "KeyError", "message": "y", **GROUP, "raised": GROUP}
    plain = {"type": "KeyError", "message": "x"}
    spectrum = {"passed": 3, "failing": failing, "plain": plain}
    fields = {"spectrum": spectrum, "recording": {"caught": [caught]}}
    change = {**CHANGE, "mended": 1}
    mutation: dict[str, Any] = {"tried": 9, "passing": 1, "others": 3, "failing": 1, "changes": [change]}
    told = "  breaks none, mends 1: shop/cart.py:7 Cart.add(): without `lines.sort()`"
    assert diagnosis(mutation=mutation, **fields).endswith(told)
    failing.append({**failing[0], "test": "test_a.py::test_later"})
    assert "fails too: test_a.py::test_later" in diagnosis(
        mutation=mutation, **fields
    )  # no change has met it
    mutation["failing"] = 2
    assert "fails too: test_a.py::test_b" in diagnosis(mutation=mutation, **fields)
    change["broken"] = 1
    assert "was raised at" in diagnosis(mutation=mutation, **fields)


@pytest.mark.parametrize(
    ("path", "seen", "is_shown"),
    [("/usr/lib/runner.py", False, False), ("/usr/lib/runner.py", True, True), ("runner.py", False, True)],
)
def test_a_failure_outside_of_the_repository_is_told_without_source(
    path: str, *, seen: bool, is_shown: bool
) -> None:
    frame = Frame(path=path, line=4, function="fail")
    stop = DiagnoseAnswer.model_construct(
        frame=frame,
        project_frame=Frame(path="shop.py", line=1, function="total") if seen else None,
        source=Source(start=4, lines=["raise Failed"], current=4),
        locals=[Variable(name="reason", value="'x'")],
        locals_omitted=3,
        call_path=[],
    )
    answer = without_library(stop)
    assert answer.frame == frame
    assert (bool(answer.source), len(answer.locals), answer.locals_omitted) == (
        (True, 1, 3) if is_shown else (False, 0, 0)
    )


def test_beside_such_a_change_only_the_locals_that_the_failing_line_names_are_told() -> None:
    frame = Frame(path="test_cart.py", line=4, function="test_add")
    source = Source(start=3, lines=["cart = make()", "assert cart.lines == wanted"], current=4)
    names = ["cart.lines", "wanted", "cart", "other"]
    shown = [Variable(name=name, value="1") for name in names]
    stop = DiagnoseAnswer.model_construct(
        frame=frame, source=source, locals=shown, locals_omitted=0, exception=None
    )
    answer = with_named_locals(stop)
    assert [one.name for one in answer.locals] == names[:3]
    told = Raised(type="AssertionError", message="assert 1 == 2")
    assert with_named_locals(stop.model_copy(update={"exception": told})).locals == []
    assert answer.locals_omitted == 1
    for unknown in (None, Source(start=48, lines=[], current=50)):
        assert with_named_locals(stop.model_copy(update={"source": unknown})).locals == shown


@pytest.mark.parametrize("is_below", [False, True])
@pytest.mark.parametrize(("above", "told"), [(12, range(3, 18)), (13, [3, *range(8, 19)])])
def test_beside_such_a_change_a_long_test_is_shown_in_short(
    above: int, told: Sequence[int], *, is_below: bool
) -> None:
    lines = ["def test_bad():", *(f"    x{number} = 0" for number in range(above + 2))]
    test = Source(start=3, lines=lines, current=3 + above)
    call = PathCall(path="test_shop.py", line=3 + above, function="test_bad", text="x()")
    stop = {"call_path": [call], "test_source": [test]} if is_below else {"source": test}
    answer = DiagnoseAnswer.model_construct(**{"call_path": [], "test_source": [], "source": None, **stop})
    short = with_short_test(answer)
    pieces = [*short.test_source, *([short.source] if short.source else [])]
    assert [number for one in pieces for number, _ in enumerate(one.lines, one.start)] == list(told)
    assert pieces[-1].lines[pieces[-1].current - pieces[-1].start] == f"    x{above - 1} = 0"


async def test_of_a_wrapped_exception_the_function_that_raised_the_first_is_shown(
    make_repo: MakeRepo,
) -> None:
    filling = "\n".join(f"# {number}" for number in range(400))
    source = f"""\
class Store:
    def __init__(self, rows):
        self.rows = rows

    def clear(self):
        self.rows = {{}}

    def find(self, key):
        return self.rows[key]

{filling}
def load(store):
    return int(store.find("port"))

def configure(store):
    try:
        return load(store)
    except KeyError as exc:
        raise ValueError(f"no port: {{exc}}") from exc
"""
    tests = """\
from settings import *

def test_port():
    store = Store({"port": "80"})
    store.clear()
    assert configure(store) == 80

def test_none():
    assert Store({}).rows == {}
"""
    (text,) = await answers(make_repo({"settings.py": source, "test_settings.py": tests}), ("diagnose", {}))
    assert "caused by KeyError: 'port', raised at settings.py:9 in find\n" in text
    assert "9\t        return self.rows[key]" in text
    assert ".rows of the failing line was set at settings.py:6 Store.clear(): self.rows = {}" in text


class Workspace:
    """Files of one sandbox, as far as excerpts need them."""

    def __init__(self, *, unexecuted: Sequence[tuple[int, int]] = (), **files: str) -> None:
        self._files = {f"{name}.py": text.splitlines() for name, text in files.items()}
        self._unexecuted = list(unexecuted)
        self.workspace = self

    async def read_marked(
        self, path: str, names: list[str], *, unexecuted: bool
    ) -> tuple[SimpleNamespace, Marks]:
        if path not in self._files:
            raise NotFound(path)
        lines = self._files[path]
        spans = {name: [(name, *_span(lines, f"def {name}("))] for name in names}
        found = [{"name": name, "found": each} for name, each in spans.items()]
        marks = {"definitions": found, "unexecuted": self._unexecuted if unexecuted else []}
        return SimpleNamespace(lines=lines), Marks.model_validate(marks)


def _span(lines: Sequence[str], head: str) -> tuple[int, int]:
    """First and last line of a function, up to an empty one."""
    first = next(number for number, line in enumerate(lines, 1) if line.lstrip().startswith(head))
    ends = (number for number in range(first, len(lines)) if not lines[number].strip())
    return first, next(ends, len(lines))


HELPED = f"""\
def total(lines):
    found = first(lines)
    other = made()
    if is_due(lines):
        found.append(other)
    log(lines)
    return found

def first(lines):
    return lines[0]

def made():
    return 1

def is_due(lines):
    return bool(lines)

def log(lines):
    print("{"x" * 500}")
    print(lines)
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        # Its condition, then where the changed object comes from, then those of the other lines shown.
        (5, ["total", "is_due", "first", "made"]),
        (3, ["total", "made", "first", "is_due"]),
        (6, ["total", "first", "made", "is_due"]),  # without the one that is too long
    ],
)
async def test_short_functions_that_the_shown_lines_call_are_shown(line: int, told: list[str]) -> None:
    place = {"path": "shop.py", "line": line, "function": "total"}
    calls = {"made": 3, "first": 2, "is_due": 4, "log": 6}
    helpers = [
        {
            "path": "shop.py",
            "function": name,
            "line": _span(HELPED.splitlines(), f"def {name}(")[0],
            "by": {**place, "line": at},
            "results": ["1", "None"] if name == "made" else [],
        }
        for name, at in calls.items()
    ]
    found = Diagnosis.model_validate({"recording": {"chain": [place], "helpers": helpers}})
    session = Workspace(shop=HELPED + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 3000)  # type: ignore[arg-type] - all that it uses of one
    assert [one.function for one in excerpts] == told
    heads = [one.text.partition("\n")[0] for one in excerpts]
    assert heads[told.index("made")] == "shop.py made, called at :3 → 1, None"
    assert heads[told.index("first")] == "shop.py first"


async def test_a_long_result_is_shortened() -> None:
    place = {"path": "shop.py", "line": 3, "function": "total"}
    line = _span(HELPED.splitlines(), "def made(")[0]
    results = ["x" * 40, "y" * 41, "z\nw"]
    helper = {"path": "shop.py", "function": "made", "line": line, "by": place, "results": results}
    found = Diagnosis.model_validate({"recording": {"chain": [place], "helpers": [helper]}})
    session = Workspace(shop=HELPED + "# more\n" * 500)
    *_, made = await read_excerpts(session, found, [], 3000)  # type: ignore[arg-type] - all that it uses of one
    head = made.text.partition("\n")[0]
    assert head == f"shop.py made, called at :3 → {'x' * 40}, {'y' * 39}…, z w"


async def test_functions_are_measured_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set[int]()

    def find(place: Place, lines: Sequence[str], marks: Marks) -> tuple[int, int] | None:
        threads.add(threading.get_ident())
        return find_span(place, lines, marks)

    monkeypatch.setattr("tools._excerpts.find_span", find)
    names = ["total", "first"]
    spans = {name: _span(HELPED.splitlines(), f"def {name}(") for name in names}
    chain = [{"path": "shop.py", "line": spans[name][0], "function": name} for name in names]
    found = Diagnosis.model_validate({"recording": {"chain": chain}})
    session = Workspace(shop=HELPED + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 3000)  # type: ignore[arg-type] - all that it uses of one
    assert [one.function for one in excerpts] == names
    assert threads and threading.get_ident() not in threads


@pytest.mark.parametrize("is_changed", [True, False])
async def test_the_caller_of_the_first_function_is_shown_if_it_is_short(is_changed: bool) -> None:
    changed = {"path": "dates.py", "line": 2, "function": "is_late"}
    callers = [
        {"path": path, "line": line, "function": name, "by": changed}
        for path, line, name in (("shop.py", 19, "log"), ("shop.py", 4, "total"), ("lost.py", 1, "gone"))
    ]
    change = {**changed, "change": "without `x`"}
    mutation = {"tried": 1, "passing": 1, "changes": [change]} if is_changed else {"tried": 1}
    found = Diagnosis.model_validate(
        {"recording": {"callers": callers, "chain": [changed]}, "mutation": mutation}
    )
    late = "def is_late(lines):\n    return lines\n" + "# more\n" * 500
    session = Workspace(dates=late, shop=HELPED + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 3000)  # type: ignore[arg-type] - all that it uses of one
    assert [one.function for one in excerpts] == ["is_late", "total"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (1, ["total", "caller"]),  # what the changed line calls comes before the caller
        (6, ["total", "log", "shop.py, calls of total"]),
        # What sets a variable of the changed line before it does, too, the last of these.
        (5, ["total", "made", "shop.py, calls of total"]),
    ],
)
async def test_beside_a_change_that_harms_no_other_test_one_short_function_is_shown(
    line: int, told: list[str]
) -> None:
    source = HELPED.replace("x" * 500, "x") + "\ndef caller(lines):\n    return total(lines)\n"
    changed = {"path": "shop.py", "line": line, "function": "total"}
    helpers = [
        {"path": "shop.py", "function": name, "line": at, "by": {**changed, "line": by}}
        for name, at, by in (("first", 9, 2), ("made", 12, 3), ("is_due", 15, 4), ("log", 18, 6))
    ]
    callers = [{"path": "shop.py", "function": "caller", "line": 22, "by": {**changed, "line": 1}}]
    mutation = {"tried": 1, "passing": 1, "others": 2, "changes": [{**changed, "change": "…", "ran": 2}]}
    found = Diagnosis.model_validate(
        {"recording": {"helpers": helpers, "callers": callers}, "mutation": mutation}
    )
    session = Workspace(shop=source + "\n" + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 3000)  # type: ignore[arg-type] - all that it uses of one
    assert [one.function for one in excerpts] == told


async def test_what_sets_the_variable_of_a_changed_line_in_another_branch_is_told() -> None:
    source = (
        "def total(lines):\n    if lines:\n        found = first(lines)\n    else:\n        found = [0]\n"
        "    return found.pop()\n\ndef first(lines):\n    return lines\n\n"
    )
    changed = {"path": "shop.py", "line": 6, "function": "total"}
    helper = {"path": "shop.py", "function": "first", "line": 8, "by": {**changed, "line": 3}}
    mutation = {"tried": 1, "passing": 1, "others": 2, "changes": [{**changed, "change": "…", "ran": 2}]}
    found = Diagnosis.model_validate({"recording": {"helpers": [helper]}, "mutation": mutation})
    session = Workspace(shop=source + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 3000)  # type: ignore[arg-type] - all that it uses of one
    assert [one.function for one in excerpts] == ["total", "first"]


@pytest.mark.parametrize(("length", "broken", "is_shown"), [(14, 0, True), (15, 0, False), (14, 1, False)])
async def test_a_docstring_of_the_function_that_is_mostly_the_cause_is_shown(
    length: int, broken: int, is_shown: bool
) -> None:
    docstring = "\n".join(['    """The contract.', *["    more"] * (length - 2), '    """'])
    source = f"def total(lines):\n{docstring}\n    return lines\n\n"
    change = {"path": "shop.py", "line": length + 2, "function": "total", "ran": 9, "broken": broken}
    mutation = {"tried": 9, "passing": 1, "others": 9, "changes": [{**change, "change": "without `lines`"}]}
    found = Diagnosis.model_validate({"mutation": mutation})
    session = Workspace(shop=source + "# more\n" * 500)
    (excerpt,) = await read_excerpts(session, found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    assert ("The contract." in excerpt.text) is is_shown
    assert (f"… {length} lines of docstring" in excerpt.text) is not is_shown


async def test_beside_changes_there_is_room_for_the_function_that_shares_an_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tools._excerpts._LEAST_SECOND", 0)
    monkeypatch.setattr("tools._excerpts._LEAST_CHANGED", 150)
    filling = "\n".join(f"    x{number} = lines" for number in range(60))
    names = ["first", "second", "third"]
    source = "".join(f"def {name}(lines):\n{filling}\n    lines.clear()\n\n" for name in names)
    places = [
        {"path": "shop.py", "line": 63 * number + 62, "function": name} for number, name in enumerate(names)
    ]
    changes = [{**one, "change": "with a copy of `lines`"} for one in places[:2]]
    alias = {"stored": places[2], "name": "self.saved", "changed": places[0], "through": "lines.clear"}
    mutation = {"tried": 9, "passing": 2, "changes": changes}
    found = Diagnosis.model_validate({"mutation": mutation, "recording": {"aliases": [alias]}})
    session = Workspace(shop=source + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 0)  # type: ignore[arg-type] - all that it uses of one
    assert [one.function for one in excerpts] == names


@pytest.mark.parametrize(("length", "is_folded"), [(12, False), (13, True)])
async def test_a_short_block_that_has_not_run_is_shown_in_a_changed_function(
    length: int, is_folded: bool
) -> None:
    filling = [f"        lines.append({number})" for number in range(length)]
    source = ["def total(lines):", "    if not lines:", *filling, "    return lines"]
    change = {"path": "shop.py", "line": 2, "function": "total", "change": "if `not lines` were true"}
    found = Diagnosis.model_validate({"mutation": {"tried": 9, "passing": 1, "changes": [change]}})
    session = Workspace(shop="\n".join([*source, *["", "# more"] * 500]), unexecuted=[(3, 2 + length)])
    (excerpt,) = await read_excerpts(session, found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    assert (f"… lines 3-{2 + length} not run" in excerpt.text) == is_folded
    assert ("lines.append(0)" in excerpt.text) != is_folded


async def test_the_block_of_a_changed_condition_is_shown() -> None:
    filling = [f"    x{number} = lines" for number in range(200)]
    head = [
        "    if lines \\",
        "            and x1:",
        "        first = 1",
        "        last = 2",
        "    return x1",
    ]
    source = "\n".join(["def total(lines):", *filling, *head])
    place = {"path": "shop.py", "line": 202, "function": "total"}
    change = {**place, "change": "if `lines …` were false"}
    calls = [{**place, "line": 1, "lines": [(line, f"x{line} = 1") for line in range(2, 100)]}]
    found = Diagnosis.model_validate(
        {"recording": {"calls": calls}, "mutation": {"tried": 9, "passing": 1, "changes": [change]}}
    )
    session = Workspace(shop=source + "\n" + "# more\n" * 500)
    (excerpt,) = await read_excerpts(session, found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    assert "202\t    if lines \\\n203\t            and x1:\n204\t        first = 1" in excerpt.text
    assert "205\t        last = 2" in excerpt.text


@pytest.mark.parametrize("order", [["save", "each"], ["each", "save"]])
async def test_a_function_inside_of_another_is_shown_once(order: list[str]) -> None:
    source = "def save(rows):\n    rows = list(rows)\n    def each(row):\n        return rows[row]\n\n"
    chain = [{"path": "shop.py", "line": {"save": 2, "each": 4}[name], "function": name} for name in order]
    found = Diagnosis.model_validate({"recording": {"chain": chain}})
    session = Workspace(shop=source + "# more\n" * 500)
    (excerpt,) = await read_excerpts(session, found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    assert (excerpt.function, [line for _, line in excerpt.lines()]) == ("save", [1, 2, 3, 4])


@pytest.mark.parametrize("finding", ["", "change", "signal", "alias", "kept", "only"])
async def test_a_function_that_only_returns_an_attribute_is_left_out_unless_a_finding_names_it(
    finding: str,
) -> None:
    source = "def total(rows):\n    return sum(rows)\n\ndef rate(self):\n    return self._rate\n\n"
    place = {"path": "shop.py", "line": 5, "function": "rate"}
    total = {"path": "shop.py", "line": 2, "function": "total"}
    alias = {"stored": place, "changed": total, "name": "x", "through": "y"}
    recording: dict[str, Any] = {
        "chain": [place, *([] if finding == "only" else [total])],
        "plain": [{**place, "line": 4}],
        "signals": [{"kind": "unused", "places": [total, place]}] if finding == "signal" else [],
        "aliases": [alias] if finding == "alias" else [],
        "kept": [{"written": place, "read": total, "name": "x", "score": 3}] if finding == "kept" else [],
    }
    changes = [{**place, "change": "without it"}] if finding == "change" else []
    found = Diagnosis.model_validate({"recording": recording, "mutation": {"tried": 1, "changes": changes}})
    session = Workspace(shop=source + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 3000)  # type: ignore[arg-type] - all that it uses of one
    assert ("rate" in {one.function for one in excerpts}) is bool(finding)


@pytest.mark.parametrize(("few", "is_whole"), [(5, True), (40, False)])
async def test_few_lines_of_a_function_are_not_left_out(few: int, is_whole: bool) -> None:
    long = "def total(rows):\n" + "    rows.append(1)\n" * 70 + "\n"
    rest = "\n".join(f"    rows.last = {number}" for number in range(few))
    second = "def second(rows):\n" + "    first = rows[0]\n" * 20 + rest + "\n\n"
    calls = [
        {"path": "shop.py", "line": 1, "function": "total", "score": 2},
        {"path": "shop.py", "line": 73, "function": "second", "lines": [(n, "1") for n in range(74, 94)]},
    ]
    found = Diagnosis.model_validate({"recording": {"calls": calls}})
    session = Workspace(shop=long + second + "# more\n" * 500)
    _, excerpt = await read_excerpts(session, found, [], 2100)  # type: ignore[arg-type] - all that it uses of one
    assert ("rows.last = 4" in excerpt.text, "second, parts" in excerpt.text) == (is_whole, not is_whole)
    assert "94\t" in excerpt.text or not is_whole


async def test_each_changed_function_is_shown_and_other_lines_with_the_state() -> None:
    long = "\n".join(f"    x{number} = lines" for number in range(60))
    names = ["first", "second", "third"]
    source = "\n".join(f"def {name}(lines):\n{long}\n    lines.seen = 1\n" for name in names)
    changes = [
        {"path": "shop.py", "line": 63 * number + 62, "function": name, "change": "without `lines.seen = 1`"}
        for number, name in enumerate(names)
    ]
    uses = [
        {"path": "shop.py", "line": line, "function": function, "text": text, "is_written": is_written}
        for line, function, text, is_written in (
            (62, "first", "lines.seen = 1", True),
            (191, "Shop.clear", "lines.seen = 0", True),
            (193, "<module>", "lines.seen is None", False),
        )
    ]
    state = {"name": "seen", "uses": uses}
    mutation = {"tried": 9, "passing": 3, "changes": changes, "state": state}
    found = Diagnosis.model_validate({"mutation": mutation})
    session = Workspace(shop=source + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    assert [one.function for one in excerpts[:3]] == names
    assert all("lines.seen = 1" in one.text for one in excerpts[:3])
    assert excerpts[3].text.splitlines() == [
        "shop.py, other lines with `seen`",
        "191\tclear(): lines.seen = 0",
        "193\tlines.seen is None",
    ]


@pytest.mark.parametrize(
    ("forced", "only_here", "is_believed"),
    [(False, False, True), (True, False, True), (False, True, True), (True, True, False)],
)
def test_what_decides_a_condition_that_no_passing_test_asks_is_not_believed(
    forced: bool, only_here: bool, is_believed: bool
) -> None:
    place = {"path": "shop.py", "line": 2, "function": "total"}
    change = {**place, "change": "if `x` were true", "ran": 5, "forced": forced, "only_here": only_here}
    mutation = Mutation.model_validate({"tried": 9, "passing": 1, "others": 5, "changes": [change]})
    assert is_mending(mutation.changes, mutation) is is_believed


async def test_what_a_long_function_does_with_what_it_is_given_by_a_changed_call() -> None:
    """Its lines with that, and with what is made of it, also where the call has several lines."""
    calling = "def total(memo):\n    return fill(\n        1,\n        memo,\n    )\n\n"
    long = "\n".join(f"    x{number} = 1" for number in range(40))
    called = f"def fill(rate, memo):\n{long}\n    known = memo.get\n{long}\n    known(rate)\n{long}\n"
    place = {"path": "shop.py", "line": 2, "function": "total"}
    changes = [{**place, "change": "with a copy of `memo` in `fill(…`", "ran": 5}]
    by = {**place, "line": 4, "function": "total.inner"}
    helper = {"path": "shop.py", "line": 7, "function": "fill", "by": by}
    mutation = {"tried": 9, "passing": 1, "others": 5, "changes": changes}
    found = Diagnosis.model_validate({"mutation": mutation, "recording": {"helpers": [helper]}})
    session = Workspace(shop=calling + called + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    assert excerpts[1].text.splitlines() == [
        "shop.py fill, parts",
        "7\tdef fill(rate, memo):",
        "…",
        "48\t    known = memo.get",
        "…",
        "89\t    known(rate)",
    ]


async def test_the_function_whose_kept_result_the_best_change_computes_anew_is_shown() -> None:
    lines = "\n".join(f"    x{number} = rows" for number in range(60))
    source = f"def total(rows):\n{lines}\n    return rate()\n\n@cache\ndef rate():\n{lines}\n\n"
    change = {
        "path": "shop.py",
        "line": 62,
        "function": "total",
        "change": "without the cache around `rate`",
        "ran": 5,
    }
    kept = {"path": "shop.py", "line": 65, "function": "rate"}
    mutation = {"tried": 9, "passing": 1, "others": 5, "changes": [{**change, "computed_by": kept}]}
    found = Diagnosis.model_validate({"mutation": mutation})
    session = Workspace(shop=source + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 700)  # type: ignore[arg-type] - all that it uses of one
    assert excerpts[1].text.splitlines()[:2] == ["shop.py rate", "65\tdef rate():"]
    assert "x59" in excerpts[1].text


@pytest.mark.parametrize(("broken", "written"), [(0, 0), (0, 3), (1, 3)])
async def test_lines_with_what_else_the_best_changes_name(broken: int, written: int) -> None:
    """By file, of more than five those that write it; none where the change harms a test."""
    place = {"path": "shop.py", "line": 2, "function": "total"}
    change = {**place, "change": "without `RATE`", "broken": broken, "ran": 5}
    uses = [
        {
            "path": path,
            "line": line,
            "function": "<module>",
            "text": f"RATE = {line}",
            "is_written": line - 10 < written,
        }
        for path, line in [("shop.py", 2), *(("tax.py", 10 + number) for number in range(6))]
    ]
    mutation = {
        "tried": 9,
        "passing": 1,
        "others": 5,
        "changes": [change],
        "beside": [{"name": "RATE", "uses": uses}],
    }
    found = Diagnosis.model_validate({"mutation": mutation})
    session = Workspace(shop="def total():\n    return RATE\n\n" + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    told = [one.text.splitlines() for one in excerpts[1:]]
    lines = [f"{10 + number}\tRATE = {10 + number}" for number in range(written)]
    assert told == ([["tax.py, other lines with `RATE`", *lines]] if written and not broken else [])


@pytest.mark.parametrize(
    ("imports", "told"),
    [
        ("import os, copy\nfrom . import tax\n", ["shop.py, `copy` among its imports", "1\timport os, copy"]),
        (
            "from . import copy\nimport os # import copy\n",
            ["shop.py, no `copy` among its imports", "2\timport os # import copy"],
        ),
        ("import os\nimport copy\n", ["shop.py, `copy` among its imports", "2\timport copy"]),
        (
            "from copy import deepcopy\nimport os\n",
            ["shop.py, `copy` among its imports", "1\tfrom copy import deepcopy"],
        ),
        ("import os\nimport sys\n", ["shop.py, no `copy` among its imports", "2\timport sys"]),
        ("", None),
    ],
)
async def test_whether_copy_is_imported_where_a_copy_would_help(imports: str, told: list[str] | None) -> None:
    line = 3 if imports else 1
    change = {
        "path": "shop.py",
        "line": line + 1,
        "function": "total",
        "change": "with a copy of `rows`",
        "ran": 5,
    }
    mutation = {"tried": 9, "passing": 1, "others": 5, "changes": [change]}
    found = Diagnosis.model_validate({"mutation": mutation})
    session = Workspace(shop=f"{imports}def total(rows):\n    return rows\n\n" + "# more\n" * 500)
    excerpts = await read_excerpts(session, found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    assert [one.text.splitlines() for one in excerpts[1:]] == ([told] if told else [])


@pytest.mark.parametrize(("broken", "is_second"), [(0, False), (0, True), (1, False)])
async def test_calls_of_a_changed_function_in_long_functions(broken: int, is_second: bool) -> None:
    """With no other test failing they tell how it is used; else there are calls of other functions, too."""
    equal = "def equal(one, other):\n    return one.key == other.key\n\n"
    long = "\n".join(["def group(rows):", *(f"    x{number} = rows" for number in range(200))])
    first = "\ndef first(rows):\n    return rows[0]\n"
    source = f"{equal}{long}\n    return rows.index(x1)\n{first}" + "# more\n" * 500
    place = {"path": "shop.py", "line": 2, "function": "equal"}
    change = {**place, "change": "if only the same object were equal", "broken": broken, "ran": 5}
    call = {"path": "shop.py", "line": 205, "function": "group", "text": "return rows.index(x1)", "by": place}
    better = [{**change, "function": "first", "line": 208}] if is_second else []
    mutation = {"tried": 9, "passing": 1, "others": 5, "changes": [*better, change]}
    found = Diagnosis.model_validate({"mutation": mutation, "recording": {"callers": [call]}})
    excerpts = await read_excerpts(Workspace(shop=source), found, [], 1000)  # type: ignore[arg-type] - all that it uses of one
    texts = [one.text.splitlines() for one in excerpts]
    told = ["shop.py, calls of equal", "205\tgroup(): return rows.index(x1)"]
    assert (told in texts) == (not broken)


def test_where_attributes_were_set_that_functions_of_the_failure_read() -> None:
    place = {"path": "shop.py", "function": "Order.__init__", "line": 3, "text": "self.rate = rate"}
    read = {"path": "shop.py", "function": "Order.total", "line": 9}
    maker = {"path": "cart.py", "function": "order", "line": 5, "text": "return Order(rate)"}
    written = {"path": "shop.py", "function": "Order.clear", "line": 7, "text": "self.lines = None"}
    attributes = [
        {**place, "name": "rate", "value": "3", "read": read, "maker": maker},
        {**written, "name": "lines", "read": read},
        {**written, "name": "others", "read": read, "line": 8},
    ]
    assert diagnosis(recording={"attributes": attributes}) == (
        ".rate = 3, read in total():9, was set at shop.py:3 Order.__init__(): self.rate = rate;"
        " made at cart.py:5 order(): return Order(rate)\n"
        ".lines, read in total():9, was set at shop.py:7 Order.clear(): self.lines = None"
    )
    told = diagnosis(recording={"written": [{**written, "name": "lines"}], "attributes": attributes[1:2]})
    assert told == ".lines of the failing line was set at shop.py:7 Order.clear(): self.lines = None"


def test_signals_without_their_places_are_not_told() -> None:
    for kind in ("unused", "stale", "used_up"):
        signal = {"kind": kind, "name": "x", "places": [GROUP]}
        assert diagnosis(recording={"signals": [signal]}) == ""
