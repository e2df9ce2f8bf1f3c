"""Code that a diagnosis names: calls that were refused, classes behind objects, functions with the same code."""

from __future__ import annotations

from pathlib import Path

from sandbox.guest.diagnosis.sources import Sources
from tests.guest.diagnosis.conftest import PYTHON, Diagnose
from tests.guest.diagnosis.test_distant_bugs import CASE, HEAD, recording, suspects

QUEUES = """\
class Put:
    def __init__(self, store):
        self.store, self.done = store, False
        store.puts.append(self)

    def cancel(self):
        if not self.done:
            queue = self.store.puts
            self.store.puts = [one for one in queue if one is not self]

class Get:
    def __init__(self, store):
        self.store, self.done = store, False
        store.gets.append(self)

    def cancel(self) -> None:
        "Cancel it."
        if not self.done:
            waiting = self.store.gets
            self.store.gets = [each for each in waiting if each is not self]

class Store:
    def __init__(self):
        self.puts, self.gets = [], []
        self.view = self.puts

    def size(self):
        return len(self.view)
"""


def test_a_call_that_was_refused_is_told_by_its_definition_alone(diagnose: Diagnose) -> None:
    shop = """\
def default():
    return {"path": "/tmp"}

class Config:
    def __init__(self, values):
        self.values = values

    def load(self, name, silent=False):
        return name

def make():
    return Config(default())
"""
    tests = HEAD + "    def test_bad(self):\n        make().load('x', text=False)\n"
    found = recording(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert [(one.function, one.line, one.refused) for one in found.chain] == [("Config.load", 8, True)]


def test_the_class_of_the_object_that_a_failure_comes_from_is_told_with_its_head(diagnose: Diagnose) -> None:
    shop = """\
class Checker:
    def __new__(cls):
        made = super().__new__(cls)
        return made

    def __call__(self, text):
        if self.pattern not in text:
            raise ValueError(text)

class Name(Checker):
    pattern = "n"
    message = "no name"

    @property
    def other(self):
        return 1
"""
    tests = HEAD + (
        "    def test_bad(self):\n        name = Name()\n"
        "        with self.assertRaises(ValueError):\n            name('man')\n"
    )
    found = recording(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert found.chain_end == "the object itself"
    assert found.chain_class is not None
    one = found.chain_class
    assert (one.path, one.function, one.line, one.last) == ("shop.py", "Name", 10, 13)


def test_a_function_with_the_code_of_a_suspect_is_told(diagnose: Diagnose) -> None:
    tests = HEAD + (
        "    def test_bad(self):\n        store = Store()\n        put = Put(store)\n        put.cancel()\n"
        "        self.assertEqual(store.size(), 0)\n"
        "    def test_good(self):\n        store = Store()\n        Put(store)\n"
        "        self.assertEqual(store.size(), 1)\n"
    )
    found = recording(diagnose({"shop.py": QUEUES, "test_shop.py": tests}, CASE))
    assert [(one.of, one.function, one.line) for one in found.alike] == [("Put.cancel", "Get.cancel", 16)]


def test_functions_are_alike_by_their_statements_not_by_names_texts_and_annotations(tmp_path: Path) -> None:
    other = "\n".join(
        [
            "    def same_but_less(self):",
            "        if self.done:",
            "            queue = self.store.puts",
            "            self.store.puts = [one for one in queue if one is not self]",
            "    def mixed(self):",
            "        if not self.done:",
            "            queue = self.store.puts",
            "            self.store.gets = [one for one in queue if one is not self]",
        ]
    )
    file = tmp_path / "shop.py"
    file.write_text(QUEUES + other)
    assert Sources().alike(str(file), 8) == [("Get.cancel", 16)]
    assert Sources().alike(str(file), 23) == []
    file.write_text("def one(a):\n    return a\ndef two(b):\n    return b\n")
    assert Sources().alike(str(file), 1) == []
    file.write_text("def broken(:\n")
    assert Sources().alike(str(file), 1) == []


def test_lines_that_most_passing_tests_run_are_no_suspects(diagnose: Diagnose) -> None:
    shop = """\
def total(lines):
    result = sum(lines)
    if result > 100:
        result -= 10
    return result
"""
    tests = HEAD + "    def test_bad(self):\n        self.assertEqual(total([60, 60]), 120)\n"
    for number in range(3):
        tests += f"    def test_{number}(self):\n        self.assertEqual(total([{number}]), {number})\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert [(one.line, one.more) for one in recording(found).suspects] == [(4, [])]


def test_a_clause_that_an_exception_passes_is_no_suspect(diagnose: Diagnose) -> None:
    shop = """\
def bind(fields, name):
    try:
        value = fields[name]
        return value.upper()
    except KeyError:
        return None
    finally:
        fields.clear()
"""
    tests = HEAD + (
        "    def test_bad(self):\n        bind({'a': 1}, 'a')\n"
        "    def test_good(self):\n        self.assertEqual(bind({'a': 'x'}, 'a'), 'X')\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE, command=f"{PYTHON} -m unittest")
    assert all(line not in (5, 7) for _, line in suspects(found))


def test_a_text_that_an_assertion_without_operands_names_is_looked_for(diagnose: Diagnose) -> None:
    shop = """\
class Store:
    def __init__(self):
        self.pages = {}

    def add(self, name):
        path = name + ".html"
        self.pages[path] = True

    def has(self, path):
        return path in self.pages
"""
    tests = HEAD + (
        "    def test_bad(self):\n        store = Store()\n        store.add('index')\n"
        "        self.assertFalse(store.has('index.html'))\n"
    )
    found = recording(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert [(one.name, one.value, one.line) for one in found.values] == [("path", "'index.html'", 6)]
