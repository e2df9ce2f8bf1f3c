"""Programs that fail far from their bug: the diagnosis names its line."""

from __future__ import annotations

import sys

import pytest

from sandbox.session.diagnosis import Diagnosis, Recording
from tests.guest.diagnosis.conftest import PYTHON, Diagnose
from tools._diagnosis import render_diagnosis

HEAD = "import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n"
CASE = "test_shop.Case.test_bad"


def recording(found: Diagnosis) -> Recording:
    assert found.recording is not None, found.notes
    assert found.recording.problems == []
    assert found.recording.differs == ""
    return found.recording


def chain(found: Diagnosis) -> list[tuple[str, str, int]]:
    return [(link.name, link.value, link.line) for link in recording(found).chain]


def aliases(found: Diagnosis) -> list[tuple[str, int, str, int]]:
    return [(one.name, one.stored.line, one.through, one.changed.line) for one in recording(found).aliases]


def suspects(found: Diagnosis) -> list[tuple[str, int]]:
    assert found.spectrum is not None, found.notes
    assert found.spectrum.problems == []
    return [(one.function, one.line) for one in recording(found).suspects]


def test_a_list_that_two_attributes_hold(diagnose: Diagnose) -> None:
    shop = """\
class Cart:
    def __init__(self, lines):
        self.lines = lines
        self.saved = []

    def defer(self):
        self.saved = self.lines

    def end(self):
        while len(self.lines) > 1:
            self.lines.pop()

    def total(self):
        return sum(self.saved)
"""
    tests = HEAD + (
        "    def test_bad(self):\n        cart = Cart([10, 20.5])\n        cart.defer()\n        cart.end()\n"
        "        self.assertEqual(cart.total(), 30.5)\n"
        "    def test_end(self):\n        cart = Cart([1, 2])\n        cart.end()\n"
        "        self.assertEqual(cart.lines, [1])\n"
        "    def test_defer(self):\n        cart = Cart([1])\n        cart.defer()\n"
        "        self.assertEqual(cart.total(), 1)\n"
        "    def test_empty(self):\n        self.assertEqual(Cart([]).total(), 0)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert ("self.saved", 7, "self.lines.pop", 11) in aliases(found)
    assert {"Cart.end", "Cart.defer"} <= {function for function, _ in suspects(found)[:3]}
    assert ("total()", "10", 14) in chain(found)


PARSER = """\
class Parser:
    def __init__(self):
        self.messages = []

    def feed(self, text):
        self.messages = self.messages + text.split()

class Port:
    def __init__(self):
        self._parser = Parser()
        self._messages = self._parser.messages

    def send(self, text):
        self._parser.feed(text)

    def count(self):
        return len(self._messages)
"""
PARSED = HEAD + (
    "    def test_bad(self):\n        port = Port()\n        port.send('a b')\n"
    "        self.assertEqual(port.count(), 2)\n"
    "    def test_good(self):\n        self.assertEqual(Port().count(), 0)\n"
)


def test_a_list_that_two_objects_shared_until_one_set_another(diagnose: Diagnose) -> None:
    found = diagnose({"shop.py": PARSER, "test_shop.py": PARSED}, CASE)
    parted = [(one.stored.line, one.name, one.changed.line) for one in recording(found).aliases if one.parted]
    assert parted == [(11, "self._messages", 6)]
    assert (
        "[] stored at shop.py:11 Port.__init__(): self._messages = self._parser.messages\n"
        "    no longer the same object from shop.py:6 Parser.feed(): self.messages = self.messages + text.split()"
    ) in render_diagnosis(found)


def test_a_list_that_a_function_hands_over_has_not_parted(diagnose: Diagnose) -> None:
    shop = """\
class Buffer:
    def __init__(self):
        self.lines, self.last = [], []

    def flip(self):
        self.last = self.lines
        self.lines = []

    def count(self):
        return len(self.last)
"""
    tests = HEAD + (
        "    def test_bad(self):\n        buffer = Buffer()\n        buffer.lines.append(1)\n        buffer.flip()\n"
        "        self.assertEqual(buffer.count(), 2)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert not any(one.parted for one in recording(found).aliases)


def test_a_default_that_all_calls_share(diagnose: Diagnose) -> None:
    shop = "def tagged(tag, tags=[]):\n    tags.append(tag)\n    return tags\n"
    tests = HEAD + (
        "    def test_bad(self):\n        tagged('one')\n        self.assertEqual(tagged('two'), ['two'])\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert ("tags (the default)", 1, "tags.append", 2) in aliases(found)
    assert recording(found).values[0].value == "'one'"


FORMATTER = """\
class Formatter:
    def __init__(self):
        self.items = {}

    def options(self):
        return self.items

    def write(self, text):
        put(self.items, text)
        return text + str(len(self.items))

def put(items, text):
    items.setdefault(text, 1)

def clean(formatter):
    found = formatter.options()
    found.clear()

class Local(Formatter):
    def write(self, text):
        own = self.items
        own.setdefault(text, 1)
        return text + str(len(own))
"""


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        ("one = Formatter(); one.write('a'); found = one.write('b')", []),
        ("one = Formatter(); one.write('a'); clean(one); found = one.write('')", [("self.items", 3, "found.clear", 17)]),
        ("one = Local(); one.write('a'); found = one.write('b')", [("self.items", 3, "own.setdefault", 22)]),
    ],
    ids=["handed down", "returned", "by a local name"],
)  # fmt: skip
def test_what_one_object_alone_has_is_shared_if_it_was_handed_out(
    diagnose: Diagnose, write: str, expected: list[tuple[str, int, str, int]]
) -> None:
    tests = HEAD + f"    def test_bad(self):\n        {write}\n        self.assertEqual(found, 'b0')\n"
    assert aliases(diagnose({"shop.py": FORMATTER, "test_shop.py": tests}, CASE)) == expected


def test_options_that_change_their_defaults(diagnose: Diagnose) -> None:
    shop = """\
DEFAULTS = {"limit": 1000}

def options(**own):
    found = DEFAULTS
    found.update(own)
    return found

def limit(**own):
    return options(**own)["limit"]
"""
    tests = HEAD + (
        "    def test_bad(self):\n        limit(limit=2000)\n        self.assertEqual(limit(), 1000)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert ("DEFAULTS", 1, "found.update", 5) in aliases(found)
    assert ("limit()", "2000", 9) in chain(found)


def test_a_cache_with_too_short_a_key(diagnose: Diagnose) -> None:
    shop = """\
RATES = {("de", 2020): 16.0, ("de", 2021): 19.0, ("fr", 2020): 20.0}
_cache = {}

def rate(country, year):
    if country not in _cache:
        _cache[country] = RATES[country, year]
    return _cache[country]

def gross(net, country, year):
    return net * (100 + rate(country, year))
"""
    tests = HEAD + (
        "    def test_bad(self):\n        gross(1, 'de', 2020)\n        gross(1, 'fr', 2020)\n"
        "        self.assertEqual(gross(1000, 'de', 2021), 119000.0)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert {("rate()", "16.0", 7), ("_cache[…]", "16.0", 6)} <= set(chain(found))


def test_a_flag_that_is_lost_in_a_copy(diagnose: Diagnose) -> None:
    shop = """\
class Line:
    def __init__(self, price, gift=False):
        self.price = price
        self.gift = gift

def copied(lines):
    return [Line(line.price) for line in lines]

def total(lines):
    result = 0
    for line in copied(lines):
        if not line.gift:
            result += line.price
    return result
"""
    tests = HEAD + (
        "    def test_bad(self):\n        self.assertEqual(total([Line(300), Line(500, gift=True)]), 300)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert ("total()", "800", 14) in chain(found)
    assert {7, 13} & {line for _, _, line in chain(found)}


def test_state_of_an_earlier_test(diagnose: Diagnose) -> None:
    shop = "seen = []\n\ndef first(name):\n    seen.append(name)\n    return seen[0]\n"
    tests = HEAD + (
        "    def test_a(self):\n        self.assertEqual(first('anna'), 'anna')\n"
        "    def test_bad(self):\n        self.assertEqual(first('bert'), 'bert')\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE, in_order=True)
    assert ("first()", "'anna'", 5) in chain(found)
    assert ("seen.append('anna')", "", 4) in chain(found)


def test_the_way_back_begins_at_the_part_that_differs(diagnose: Diagnose) -> None:
    shop = """\
def first(rows):
    return rows[0].upper()

def last(rows):
    return rows[-1].title()

def ends(rows):
    return [first(rows), last(rows)]
"""
    tests = HEAD + (
        "    def test_bad(self):\n"
        "        self.assertEqual([end for end in ends(['anna', 'bert'])], ['Anna', 'Bert'])\n"
        "    def test_other(self):\n        self.assertEqual(ends(['eve'])[1], 'Eve')\n"
    )
    found = chain(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert ("first()", "'ANNA'", 2) in found
    assert "last()" not in [name for name, _, _ in found]


def test_a_module_that_only_this_test_imports_is_not_suspect_for_that(diagnose: Diagnose) -> None:
    shop = "def double(n):\n    import more\n    return more.half(n)\n"
    more = (
        "class Never:\n    @staticmethod\n    def run(n=2):\n        pass\n\ndef half(n):\n    return n / 2\n"
    )
    tests = (
        HEAD
        + "    def test_bad(self):\n        self.assertEqual(double(4), 8)\n    def test_good(self):\n        pass\n"
    )
    found = diagnose({"shop.py": shop, "more.py": more, "test_shop.py": tests}, CASE)
    assert sorted(suspects(found)) == [("double", 3), ("half", 7)]


def test_an_uncaught_exception_of_a_program(diagnose: Diagnose) -> None:
    app = """\
import sys

def load(text):
    found = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        found[key] = value or None
    return found

class Shop:
    def __init__(self, table):
        self.table = table

    def price(self):
        number = self.table["b"]
        return number + 1

print(Shop(load(sys.argv[1])).price())
"""
    found = diagnose({"app.py": app}, command=f"{PYTHON} app.py a=1,b")
    assert found.spectrum is not None
    assert found.spectrum.suspects == []
    assert chain(found)[0][:2] == ("number", "None")
    assert ("found[…]", "None", 7) in chain(found)


def test_the_way_back_goes_through_code_that_was_made_and_run(diagnose: Diagnose) -> None:
    shop = """\
def body_of(n):
    return "n * " + str(n + 1)

def make(n):
    source = "def times(n): return " + body_of(n)
    space = {}
    exec(compile(source, "<made>", "exec"), {}, space)
    return space["times"]
"""
    tests = (
        HEAD + "    def test_bad(self):\n        double = make(2)\n        self.assertEqual(double(5), 10)\n"
    )
    links = chain(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert [(name, line) for name, _, line in links[1:5]] == [
        ("double", 6),
        ("make()", 8),
        ("space", 7),
        ("source", 5),
    ]
    assert links[5] == ("body_of()", "'n * 3'", 2)


@pytest.mark.skipif(sys.executable != PYTHON, reason="pytest is in the Python of the tests only")
def test_parameters_that_fail_alike_count_as_one_failure(diagnose: Diagnose) -> None:
    shop = "def double(n):\n    if n > 2:\n        return n\n    return n * 2\n"
    tests = (
        "import pytest\nfrom shop import double\n\n"
        "@pytest.mark.parametrize('n', [1, 2, 3, 4])\n"
        "def test_double(n):\n    assert double(n) == 2 * n\n\n"
        "def test_other():\n    assert double(1) == 'x'\n"
    )
    found = diagnose(
        {"shop.py": shop, "test_shop.py": tests, "conftest.py": ""},
        "test_shop.py::test_double[3]",
        f"{PYTHON} -m pytest -q -p no:cacheprovider",
    )
    assert found.spectrum is not None
    assert (found.spectrum.passed, found.spectrum.failed, found.spectrum.others) == (2, 2, 1)
    assert suspects(found) == [("double", 3)]
    assert [link[:2] for link in chain(found)][:1] == [("double()", "3")]


FILLED_ONCE = """\
table = {}

def fill():
    for name in "abc":
        table[name] = len(table)

def number(name):
    if not table:
        fill()
    return table[name]

def twice(name):
    doubled = number(name) * 3
    return doubled
"""
FILLED_ONCE_TESTS = """\
import pytest
from shop import *

@pytest.fixture
def name():
    return "c"

def test_number(name): assert number(name) == 2

def test_twice(name): assert twice(name) == 4

def test_first(): assert number("a") == 0
"""


@pytest.mark.skipif(sys.executable != PYTHON, reason="pytest is in the Python of the tests only")
@pytest.mark.parametrize("passes_again", [False, True])
def test_what_runs_only_the_first_time_is_less_suspect(diagnose: Diagnose, passes_again: bool) -> None:
    """The failing test runs first, and so it fills the table; the numbers of runs are those of tests."""
    again = "import shop\n    shop.calls = getattr(shop, 'calls', 0) + 1\n    if shop.calls > 1: return\n    "
    tests = FILLED_ONCE_TESTS.replace(
        "(name): assert twice", "(name):\n    " + again * passes_again + "assert twice"
    )
    found = diagnose(
        {"shop.py": FILLED_ONCE, "test_shop.py": tests},
        "test_shop.py::test_twice",
        f"{PYTHON} -m pytest -q -p no:cacheprovider",
    )
    assert found.spectrum is not None
    assert (found.spectrum.passed, found.spectrum.failed, found.spectrum.others) == (2, 1, 0)
    told = [(one.function, one.line) for one in found.spectrum.suspects]
    assert told[0] == (("fill", 4) if passes_again else ("twice", 13))


@pytest.mark.skipif(sys.executable != PYTHON, reason="pytest is in the Python of the tests only")
def test_fixtures_that_several_tests_share_are_no_suspects(diagnose: Diagnose) -> None:
    shop = (
        "def fill():\n    return clear()\n\ndef clear():\n    return []\n\n"
        "def double(n):\n    if n > 2:\n        return n\n    return n * 2\n"
    )
    tests = (
        "import pytest, unittest\nfrom shop import *\n\n"
        "@pytest.fixture(scope='module', autouse=True)\ndef filled(request):\n"
        "    return request.getfixturevalue('cleared'), fill()\n\n"
        "@pytest.fixture(scope='session')\ndef cleared():\n    yield clear()\n\n"
        "class Case(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        clear()\n\n"
        "    def test_one(self):\n        assert double(1) == 2\n\n"
        "    def test_three(self):\n        assert double(3) == 6\n"
    )
    found = diagnose(
        {"shop.py": shop, "test_shop.py": tests, "conftest.py": ""},
        "test_shop.py::Case::test_three",
        f"{PYTHON} -m pytest -q -p no:cacheprovider",
    )
    assert suspects(found) == [("double", 9)]


@pytest.mark.skipif(sys.executable != PYTHON, reason="pytest is in the Python of the tests only")
def test_modules_of_tests_are_recorded_wherever_their_code_begins(diagnose: Diagnose) -> None:
    tests = "# A comment.\n\nfrom shop import double\n\ndef test_double():\n    assert double(3) == 6\n"
    found = diagnose(
        {"shop.py": "def double(n):\n    return n\n", "test_shop.py": tests, "conftest.py": ""},
        "test_shop.py::test_double",
        f"{PYTHON} -m pytest -q -p no:cacheprovider",
    )
    assert found.notes == []
    assert ("double()", "3") in [link[:2] for link in chain(found)]


NODES = """\
class Node:
    def __init__(self, name, parent=None):
        self.name = name
        self.above = parent.above if parent else []
        self.above.append(name)


class Tree:
    def __init__(self):
        self.nodes, self.count = {}, 0

    def add(self, name, parent=None):
        if parent and name in self.nodes[parent].above:
            raise ValueError(f"{name} is above {parent}")
        self.nodes[name] = Node(name, self.nodes.get(parent))
        self.count += 1
"""


def test_a_list_that_several_objects_take_for_their_own(diagnose: Diagnose) -> None:
    bad = "tree = Tree(); tree.add('a'); tree.add('b', 'a'); tree.add('c', 'a'); tree.add('c', 'b')"
    tests = f"import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n    def test_bad(self):\n        {bad}\n"
    found = diagnose({"shop.py": NODES, "test_shop.py": tests}, "test_shop.Case.test_bad")
    text = render_diagnosis(found)
    assert (
        "shared objects:\n"
        "  [… 3 items] of several objects stored at shop.py:4 Node.__init__(): self.above = parent.above if parent else []\n"
    ) in text
    copied = NODES.replace("parent.above if", "parent.above[:] if")
    sound = diagnose(
        {"shop.py": copied, "test_shop.py": f"{tests}        self.fail()\n"}, "test_shop.Case.test_bad"
    )
    assert sound.recording is not None and not any(one.of_peers for one in sound.recording.aliases)


TASKS = """\
class Task:
    def __init__(self, name, before=None):
        self.name = name
        self.before = before or []
        self.waits = False

    def wait_for(self, name):
        if name not in self.before:
            self.before.append(name)
            self.waits = True


def make(names, before):
    tasks = []
    for name in names:
        tasks.append(Task(name, before))
        tasks[-1].wait_for("first")
    return tasks
"""


def test_a_list_that_an_object_has_changed_before_another_one_gets_it(diagnose: Diagnose) -> None:
    bad = "self.assertTrue(all(one.waits for one in make('ab', ['all'])))"
    tests = f"import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n    def test_bad(self):\n        {bad}\n"
    good = "    def test_good(self):\n        self.assertEqual(make('', []), [])\n"
    found = diagnose({"shop.py": TASKS, "test_shop.py": tests + good}, "test_shop.Case.test_bad")
    text = render_diagnosis(found).partition("shared objects:\n")[2]
    stored = (
        "[… 2 items] of several objects stored at shop.py:4 Task.__init__(): self.before = before or []\n"
    )
    assert text.startswith(f"  {stored}")
    assert "\n    changed at shop.py:9 Task.wait_for(): self.before.append(name)" in text
    copied = TASKS.replace("before or []", "list(before or [])")
    sound = diagnose(
        {"shop.py": copied, "test_shop.py": f"{tests}        self.fail()\n{good}"}, "test_shop.Case.test_bad"
    )
    assert sound.recording is not None and not any(one.of_peers for one in sound.recording.aliases)


COMMENTS = """\
class Comment:
    def __init__(self, text, owner=None):
        self.text = text
        self.owner = owner


def produce(expected, rows):
    rows.append(Comment("x"))
    return expected


def parse(expected=None):
    rows = []
    produce(expected, rows)
    return rows
"""


def test_the_way_back_ends_at_a_default_and_takes_no_other_none_for_it(diagnose: Diagnose) -> None:
    bad = "    def test_bad(self):\n        self.assertEqual(parse()[0].owner, 1)\n"
    found = diagnose({"shop.py": COMMENTS, "test_shop.py": HEAD + bad}, "test_shop.Case.test_bad")
    assert found.recording is not None
    names = [link.name for link in found.recording.chain]
    assert "self.owner" in names and "expected" not in names
    assert "`owner` is a literal, a default" in found.recording.chain_end
