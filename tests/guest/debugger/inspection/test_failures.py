"""Stops after a failure: the call path, the failing test, variables, and functions that the failing line names."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

SHOP = """
import json

class Order:
    def __init__(self, items, rates):
        self.items = items
        self.rates = rates
        self._secret = 1

    def net(self, item):
        return self.rates[item] * 2

    @property
    def count(self):
        return len(self.items)

    def total(self):
        return sum(map(self.net, self.items))

def load(text):
    return json.loads(text)

def down(n):
    if n == 0:
        raise ValueError("bottom")
    return up(n)

def up(n):
    return down(n - 1)
"""


def unittest_run(start: Any, tmp_path: Path, body: str) -> Any:
    """Run a test method of unittest up to its failure; `Order` and the rest of `SHOP` are imported."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(
        "import unittest\nimport shop\nfrom shop import *\nclass T(unittest.TestCase):\n"
        "    def setUp(self):\n        self.order = Order(['a', 'b'], {'a': 1, 'b': 2})\n" + body
    )
    target = {"mode": "module", "target": "unittest", "args": ["test_shop"]}
    return start("", target=target).do("c")


def lines_of(source: dict[str, Any]) -> tuple[int, int]:
    """First and last number."""
    return source["start"], source["start"] + len(source["lines"]) - 1


def test_the_path_leads_from_the_script_to_the_failure(start: Any) -> None:
    stop = start(SHOP + "\nprint(Order(['c'], {'a': 1}).total())\n", "c").last
    path = [(call["function"], call["text"], call["skipped"]) for call in stop["call_path"]]
    assert path == [
        ("<module>", "print(Order(['c'], {'a': 1}).total())", 0),
        ("total", "return sum(map(self.net, self.items))", 0),
        ("net", "return self.rates[item] * 2", 0),
    ]
    assert stop["call_path"][-1]["path"] == stop["frame"]["path"]
    assert stop["test_source"] == []
    assert stop["source"]["lines"][0] == "    def net(self, item):"


def test_library_frames_are_counted_and_the_last_one_is_named(start: Any, tmp_path: Path) -> None:
    stop = unittest_run(start, tmp_path, "    def test_load(self):\n        load('{a')\n")
    calls = [(call["function"], call["skipped"]) for call in stop["call_path"]]
    assert calls == [("test_load", 0), ("load", 0), ("raw_decode", 2)]
    assert stop["frame"]["function"] == "load"


def test_assertion_methods_are_no_part_of_the_path(start: Any, tmp_path: Path) -> None:
    stop = unittest_run(start, tmp_path, "    def test_sum(self):\n        self.assertEqual(1, 2)\n")
    assert (stop["frame"]["function"], stop["call_path"]) == ("test_sum", [])


def test_a_recursion_is_named_once_with_its_depth(start: Any, tmp_path: Path) -> None:
    stop = unittest_run(start, tmp_path, "    def test_down(self):\n        down(300)\n")
    calls = [(call["function"], call["repeated"]) for call in stop["call_path"]]
    assert calls == [("test_down", 1), ("down", 300), ("up", 300), ("down", 1)]


def test_a_long_path_loses_its_middle(start: Any) -> None:
    functions = "".join(f"def f{n}():\n    f{n + 1}()\n" for n in range(20))
    stop = start(functions + "def f20():\n    1 / 0\nf0()\n", "c").last
    names = [call["function"] for call in stop["call_path"]]
    assert (len(names), names[:2], names[-2:]) == (12, ["<module>", "f0"], ["f19", "f20"])
    assert sum(call["skipped"] for call in stop["call_path"]) == 22 - 12


def test_the_failing_test_is_shown_from_its_def(start: Any, tmp_path: Path) -> None:
    body = "    def test_total(self):\n        first = 1\n\n        self.assertEqual(self.order.total(), 5)\n        last = 2\n"
    stop = unittest_run(start, tmp_path, body)
    assert stop["test_source"] == []
    assert lines_of(stop["source"]) == (7, 11)
    assert stop["source"]["current"] == 10


def test_the_failing_test_is_shown_beside_the_frame_below_it(start: Any, tmp_path: Path) -> None:
    stop = unittest_run(start, tmp_path, "    def test_load(self):\n        text = 'x'\n        load(text)\n")
    (test,) = stop["test_source"]
    assert (lines_of(test), test["current"]) == ((7, 9), 9)
    assert stop["source"]["lines"] == ["def load(text):", "    return json.loads(text)"]


def test_a_short_function_is_shown_to_its_end_and_of_a_long_test_the_rest_is_counted(
    start: Any, tmp_path: Path
) -> None:
    rest = "".join(f"        x{n} = {n}\n" for n in range(15))
    stop = unittest_run(start, tmp_path, f"    def test_load(self):\n        load('x')\n{rest}")
    (test,) = stop["test_source"]
    assert (lines_of(test), test["current"], test["more"]) == ((7, 10), 8, 13)
    text = "def f(a):\n    b = a / 0\n    c = 1\n    d = 2\n    e = 3\n    return b + c + d + e\nf(1)\n"
    stop = start(text, "c").last
    assert (lines_of(stop["source"]), stop["source"]["more"]) == ((1, 6), 0)


def test_a_text_at_the_left_margin_does_not_end_a_test(start: Any, tmp_path: Path) -> None:
    text = '"""\nfirst\n' + "word\n" * 10 + '"""'
    body = f"    def test_load(self):\n        load(\n            {text},\n        )\n\n    def test_other(self):\n        pass\n"
    stop = unittest_run(start, tmp_path, body)
    (test,) = stop["test_source"]
    assert [line.strip() for line in test["lines"][-3:]] == ["word", '""",', ")"]
    assert test["more"] == 0


def test_variables_that_are_one_object_and_objects_in_each_other_are_told_once(start: Any) -> None:
    text = (
        "class Node:\n    def __init__(self, up):\n        self.up, self.down = up, []\n"
        "        if up: up.down.append(self)\n"
        "def f(first, second, number):\n    assert not first\n"
        "top = Node(None)\nNode(top)\nf(top, top, 1)\n"
    )
    stop = start(text, "c").last
    assert [(each["name"], each["value"]) for each in stop["locals"]] == [
        ("first", "<Node up=None, down=[<Node up=<Node>, down=[]>]>"),
        ("second", "the same object as first"),
        ("number", "1"),
    ]


def test_a_long_test_loses_its_middle(start: Any, tmp_path: Path) -> None:
    filler = "".join(f"        x{n} = {n}\n" for n in range(60))
    stop = unittest_run(start, tmp_path, f"    def test_load(self):\n{filler}        load('x')\n")
    head, tail = stop["test_source"]
    assert (lines_of(head), lines_of(tail)) == ((7, 11), (49, 68))
    stop = unittest_run(start, tmp_path, f"    def test_long(self):\n{filler}        assert not x1\n")
    assert [lines_of(head) for head in stop["test_source"]] == [(7, 11)]
    assert lines_of(stop["source"]) == (49, 68)


@pytest.mark.parametrize("above", [0, 40])
def test_a_long_docstring_of_a_test_is_left_out(start: Any, tmp_path: Path, above: int) -> None:
    filler = "".join(f"        x{n} = {n}\n" for n in range(above))
    docstring = '        """Long.\n\n        Steps:\n        """\n'
    body = f"    def test_it(\n        self\n    ):\n{docstring}{filler}        self.fail()\n"
    stop = unittest_run(start, tmp_path, body)
    assert [lines_of(head) for head in stop["test_source"]] == [(7, 9)]
    assert lines_of(stop["source"]) == ((33, 54) if above else (14, 14))


@pytest.mark.parametrize(
    "text",
    [
        '"""Short.\n\n        """',
        '"""One line."""',
        'x = """\n\n\n\n"""',
        "'''One''' '''more'''",
        "if 1: pass",
    ],
)
def test_other_texts_of_a_test_are_shown(start: Any, tmp_path: Path, text: str) -> None:
    stop = unittest_run(start, tmp_path, f"    def test_it(self):\n        {text}\n        self.fail()\n")
    assert stop["test_source"] == []
    assert stop["source"]["start"] == 7


def test_variables_of_the_failing_line_come_first(start: Any) -> None:
    text = "import os\nLIMIT = 3\ndef f(a, b, c):\n    def inner(): pass\n    assert c.order + b > LIMIT\n"
    made = "class C: pass\nthing = C()\nthing.order = 1\nf(0, 1, thing)\n"
    stop = start(text + made, "c").last
    assert [(each["name"], each["value"]) for each in stop["locals"]] == [
        ("c.order", "1"),
        ("b", "1"),
        ("LIMIT", "3"),
        ("a", "0"),
        ("c", "<C order=1>"),
    ]
    assert (stop["locals_omitted"], stop["changed"]) == (0, [])


def test_variables_have_a_budget(start: Any) -> None:
    names = ", ".join(f"name_{n:02d}" for n in range(40))
    stop = start(f"def f({names}):\n    1 / 0\nf(*['x' * 500] * 40)\n", "c").last
    assert all(len(each["value"]) <= 100 for each in stop["locals"])
    assert 200 < sum(len(each["name"]) + len(each["value"]) for each in stop["locals"]) <= 400
    assert len(stop["locals"]) + stop["locals_omitted"] == 40


def test_variables_of_the_failing_line_have_a_larger_budget(start: Any) -> None:
    text = "class Order:\n    def __init__(self):\n        self.lines = ['x' * 70] * 9\n"
    text += "def f(one, two, order, other):\n    assert one + two == order\n"
    stop = start(text + "f(*['y' * 500] * 2, Order(), 'z' * 500)\n", "c").last
    sizes = {each["name"]: len(each["value"]) for each in stop["locals"]}
    assert list(sizes) == ["one", "two", "order", "other"]
    assert 200 < sizes["one"] == sizes["two"] <= 300
    assert 100 < sizes["order"] <= 160
    assert 80 < sizes["other"] <= 100


def test_what_a_test_case_has_set_up_is_shown(start: Any, tmp_path: Path) -> None:
    stop = unittest_run(start, tmp_path, "    def test_it(self):\n        self.fail('so')\n")
    assert [(each["name"], each["value"]) for each in stop["locals"]] == [
        ("self.order", "<Order items=['a', 'b'], rates={'a': 1, 'b': 2}, …>")
    ]


def test_of_what_a_test_case_has_set_up_what_the_test_uses_is_shown(start: Any, tmp_path: Path) -> None:
    body = "        for name in 'abcdef': setattr(self, name, name)\n    def test_it(self):\n"
    body += "        other = self.e\n        self.assertEqual(self.c, self.order.items)\n"
    stop = unittest_run(start, tmp_path, body)
    names = [each["name"] for each in stop["locals"]]
    assert names[:2] == ["self.c", "self.order.items"]
    assert {*names[2:]} == {"other", "self.e", "self.order"}
    assert stop["locals_omitted"] == 4


def test_all_that_a_test_case_has_set_up_is_shown_where_the_test_uses_none_of_it(
    start: Any, tmp_path: Path
) -> None:
    body = "        self.a = self.b = 1\n    def test_it(self):\n        order = Order([1], {})\n"
    stop = unittest_run(start, tmp_path, body + "        self.assertEqual(order.items, 2)\n")
    names = {each["name"] for each in stop["locals"]}
    assert names == {"order.items", "order", "self.order", "self.a", "self.b"}
    body += "        self.assertEqual(order.items, [self.b for _ in '12'])\n"
    stop = unittest_run(start, tmp_path, body)
    assert {each["name"] for each in stop["locals"]} == {"order.items", "order", "self.b"}


def test_functions_that_have_returned_are_shown(start: Any, tmp_path: Path) -> None:
    body = "    def test_it(self):\n        order = Order([], {})\n        assert order.total() == order.count + shop.up\n"
    stop = unittest_run(start, tmp_path, body.replace("+ shop.up", "+ 1"))
    assert [(each["path"], each["function"]) for each in stop["called"]] == [
        ("shop.py", "total"),
        ("shop.py", "count"),
        ("shop.py", "__init__"),
        ("test_shop.py", "setUp"),
    ]
    assert stop["called"][0]["lines"] == [
        "    def total(self):",
        "        return sum(map(self.net, self.items))",
    ]


def test_of_lines_that_do_not_lead_to_the_failing_one_only_functions_of_the_test_file_are_shown(
    start: Any, tmp_path: Path
) -> None:
    body = (
        "    def test_it(self):\n        helper()\n        first = Order(\n            [], {})\n"
        "        items = first.items\n        self.three = load('3')\n        self.assertEqual(len(items), 1)\n"
        "def helper(): pass\n"
    )
    stop = unittest_run(start, tmp_path, body)
    assert [each["function"] for each in stop["called"]] == ["__init__", "helper", "setUp"]
    stop = unittest_run(start, tmp_path, body.replace("len(items)", "self.three"))
    assert [each["function"] for each in stop["called"]] == ["load", "helper", "setUp"]


def test_what_has_prepared_the_test_is_shown(start: Any, tmp_path: Path) -> None:
    for body in ("self.assertEqual(self.order.items, 1)", "self.order.items.nothing", "load('x')"):
        stop = unittest_run(start, tmp_path, f"    def test_it(self):\n        {body}\n")
        assert [(each["function"], each["lines"]) for each in stop["called"]] == [
            ("setUp", ["    def setUp(self):", "        self.order = Order(['a', 'b'], {'a': 1, 'b': 2})"])
        ]


def test_fixtures_that_are_arguments_of_the_test_are_shown(start: Any, tmp_path: Path, python: str) -> None:
    if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode:
        pytest.skip("this interpreter has no pytest")
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef rates():\n    yield {'a': 1}\n\n"
        "@pytest.fixture\ndef unused():\n    return 2\n\n"
        "@pytest.fixture\ndef long():\n" + "    x = 'a long line'\n" * 40
    )
    (tmp_path / "test_rates.py").write_text(
        "import pytest\n\ndef item():\n    return 'b'\n\n"
        "class TestRates:\n    @pytest.fixture()\n    def name(self):\n        return 'a'\n\n"
        "    def setup_method(self):\n        self.count = 1\n\n"
        "    def test_it(self, name, rates, long, tmp_path):\n        assert rates[name] == 2\n"
    )
    target = {"mode": "module", "target": "pytest", "args": ["-q", "-p", "no:cacheprovider", "test_rates.py"]}
    stop = start("", target=target).do("c")
    assert [(each["path"], each["function"], each["lines"]) for each in stop["called"]] == [
        ("test_rates.py", "setup_method", ["    def setup_method(self):", "        self.count = 1"]),
        ("test_rates.py", "name", ["    def name(self):", "        return 'a'"]),
        ("conftest.py", "rates", ["def rates():", "    yield {'a': 1}"]),
    ]


def test_a_function_that_is_on_the_path_is_not_shown_again(start: Any, tmp_path: Path) -> None:
    stop = unittest_run(start, tmp_path, "    def test_load(self):\n        load('x')\n")
    assert [each["function"] for each in stop["called"]] == ["setUp"]


def test_long_functions_are_named_only(start: Any) -> None:
    long = "def long():\n" + "    x = 1\n" * 60
    stop = start(long + "def f():\n    assert long()\nf()\n", "c").last
    assert [(each["function"], each["line"], each["lines"]) for each in stop["called"]] == [("long", 1, [])]


def test_no_code_of_the_program_runs_for_a_description(start: Any) -> None:
    text = """
        class Hostile:
            def __getattribute__(self, name):
                print("RAN getattribute", name)
                return object.__getattribute__(self, name)
            def __repr__(self): print("RAN repr")
            def __eq__(self, other): print("RAN eq")
            def __len__(self): print("RAN len")
            def __bool__(self): print("RAN bool")
            def __hash__(self): print("RAN hash")
            __class__ = property(lambda self: print("RAN class"))
            value = property(lambda self: print("RAN value"))

        def f(hostile):
            raise KeyError  # hostile.value.more(Hostile.other, hostile)

        f(Hostile())
        """
    program = start(text, "c")
    assert program.last["reason"] == "post_mortem"
    assert [each["name"] for each in program.last["locals"]] == ["hostile"]
    program.do("c")
    program.finish()
    ran = [line for line in program.text.splitlines() if line.startswith("RAN")]
    assert ran == []
