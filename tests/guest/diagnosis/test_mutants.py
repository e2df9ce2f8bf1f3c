"""Kinds of changes: each makes what fails hold, in the text of a module."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from sandbox.guest.diagnosis.mutation.definitions import Definitions
from sandbox.guest.diagnosis.mutation.functions import functions_in
from sandbox.guest.diagnosis.mutation.mutant import AIMED, POSSIBLE, Joined, Mutant
from sandbox.guest.diagnosis.mutation.mutants import mutants_of

DEEPLY = "with `copy.deepcopy` for `copy.copy`"
FOUND = """\
a = {n: []}
    a.get(n).append(1)
    b = a.get(n)
    b.append(2)
    return a"""
HANDED_ON = """\
a = []
    def every():
        return own()
    def own():
        return a
    every().append(n)
    return a"""
LOOKED_UP = "d = {n: None}\n    a, b = d.get(n), 1\n    c = d.get(n)\n    return c is not None, c is None"
OF_KEY = "with a test for the key `n` in `d` for `d.get(n, None)`"
OF_ITS_OWN = "with `[]` of its own for each key in `dict.fromkeys([1, n], [])`"
ENTRIES = """\
import collections
    a = collections.defaultdict(int)
    b = bool(a[n])
    return b, len(a)"""
BRANCHES = """\
def f(n):
    if n > 2:
        n += 0
    else:
        n += 1
    n -= 1
    return n
"""
SORTED = "a = [(2, 1), (1, 2), (1, n)]\n    return sorted(a, key=lambda i: (i[0], i[1]))"
CALLBACKS = "made = []\n    for i in range(n):\n        made.append(lambda: i)\n    return made"
POPPED = "a = [n]\n    if n > 3:\n        a.pop()\n        return 1\n    return a"
LIKES = "a = b = 1\n    if not a:\n        a = n\n    if not b:\n        b = n\n    return a, b"
TALLY = """\
class Tally:
    def __init__(self, names=()):
        self._names = list(names)
        self._seen, self._weights = set(), {}
        self._total: object = None
        self._recent = []
        self.index()

    def index(self):
        self._index = {name: number for number, name in enumerate(self._names)}

    def add(self, name):
        self._names.append(name)
        self._recent.append(name)

    def weigh(self, name, weight):
        self._weights[name] = weight
        return self.total()

    def total(self):
        if self._total is None:
            self._total = sum(self._weights.values())
        return self._total

    def remove(self, name):
        self._names.remove(name)

    def where(self, name):
        return self._index.get(name)

    def take(self):
        recent = self._recent
        return recent
"""


def changes(text: str, expected: str) -> list[tuple[int, str]]:
    """Changes of a module with which an expression holds that doesn't hold without: their lines and texts."""
    tree, lines = ast.parse(text), text.splitlines()
    assert not holds(tree, expected)
    definitions = Definitions({"module.py": tree})
    found: list[tuple[int, str]] = []
    for function in functions_in("shop.py", tree):
        for mutant in list(mutants_of(function, set(range(len(lines) + 1)), definitions)):
            with mutant:
                if holds(tree, expected):
                    found.append((mutant.line, mutant.describe(lines)))
    assert not holds(tree, expected)
    return found


def all_changes(text: str, words: str) -> list[tuple[str, int]]:
    """Texts and lines of all changes of a module with some words in their texts."""
    tree, lines = ast.parse(text), text.splitlines()
    definitions = Definitions({"module.py": tree})
    found = [
        (mutant.describe(lines), mutant.line)
        for function in functions_in("shop.py", tree)
        for mutant in mutants_of(function, set(range(len(lines) + 1)), definitions)
    ]
    return [one for one in found if words in one[0]]


def holds(tree: ast.Module, expected: str) -> bool:
    names: dict[str, Any] = {}
    try:
        exec(compile(ast.fix_missing_locations(tree), "shop.py", "exec"), names)
        return bool(eval(expected, names))
    except Exception:
        return False


@pytest.mark.parametrize(
    ("body", "expected", "change"),
    [
        ("if n > 2:\n        n -= 1\n    return n", "f(3) == 3", (2, "if `n > 2` were false")),
        ("return n < 3", "f(3)", (2, "with `<=` in `n < 3`")),
        ("return n != 4", "f(3) and not f(5)", (2, "with `<` in `n != 4`")),
        ("return n == 4", "f(4) and f(5)", (2, "with `>=` in `n == 4`")),
        ("return n > 0 and n < 3", "f(3)", (2, "without `n < 3` in `n > 0 and n < 3`")),
        ("return n | 1", "f(3) == 2", (2, "with `^` in `n | 1`")),
        ("return n + 1", "f(3) == 5", (2, "with `2` for `1`")),
        ("a = [n]\n    b = a\n    b.append(1)\n    return a", "f(3) == [3]", (3, "with a copy of `a`")),
        ("a = (i for i in range(n))\n    return list(a) + list(a)", "f(1) == [0, 0]", (2, "with a list of `(i for i in range(n))`")),
        ("a = map(abs, [n])\n    return list(a) + list(a)", "f(1) == [1, 1]", (2, "with a list of `map(abs, [n])`")),
        (FOUND, "f(3) == {3: [1]}", (4, "with a copy of `a.get(n)`")),
        (HANDED_ON, "f(3) == []", (4, "with a copy of `own()`")),
        ("return [i for i in range(n) if i]", "f(2) == [0, 1]", (2, "without the condition `i`")),
        ("a = [[]] * n\n    a[0].append(1)\n    return a", "f(2) == [[1], []]", (2, "with a `[]` of its own each time in `[[]] * n`")),
        ("import copy\n    a = [{}]\n    copy.copy(a)[0][1] = 2\n    return a", "f(2) == [{}]", (4, DEEPLY)),
        ("return sorted([n, 1], key=lambda i: -i)", "f(3) == [1, 3]", (2, "without `key` in `sorted([n, 1], key=lambda i: -i)`")),
        ("return pow(2, n)", "f(3) == 9", (2, "with exchanged arguments in `pow(2, n)`")),
        ("for i in 1, 2:\n        n = i\n    return n", "f(3) == 1", (2, "with `1, 2` in reverse")),
        ("m = 1\n    return str(n)", "f(3) == '1'", (3, "with `m` for `n` in `str(n)`")),
        ("a = []\n    a.append(n)\n    a.append(1)\n    return a", "f(3) == [1, 3]", (3, "with `a.append(n)` after `a.append(1)`")),
        ("old_index, new_index = n, 1\n    return {1: (n, old_index)}", "f(3) == {1: (3, 1)}", (3, "with `new_index` for `old_index`")),
        (LIKES, "f(3) == (3, 3)", (3, "if `not a` and the like were true")),
        (POPPED, "f(3) == []", (4, "with `a.pop()` before `if n > 3:…`, not in it")),
        ("return len('ab')", "f(3) == 3", (2, "with `+ 1` after `len('ab')`")),
        ("return n in (1, 2)", "f(3)", (2, "with `not in` in `n in (1, 2)`")),
        ("m = 4\n    m |= n\n    return m", "f(3) == 3", (3, "with `=` alone in `m |= n`")),
        ("return n in (1, 3)", "not f(3)", (2, "without `3` in `n in (1, 3)`")),
        ("return str(n) in '34'", "not f(3)", (2, "without `'3'` in `str(n) in '34'`")),
        ("return n - 3 or 7", "f(3) == 0", (2, "without `7` in `n - 3 or 7`")),
        ("m = n - 3\n    return str(m or 7)", "f(3) == '0'", (3, "with `7` only where `m` is None")),
        ("return bool(n) and 2", "f(3) is True", (2, "with `2` before `bool(n)`")),
        ("a = {1: n}\n    a.update({1: 2})\n    return a", "f(3) == {1: 3}", (3, "with only new keys in `a.update({1: 2})`")),
        ("return {**{1: n}, **{1: 2}}", "f(3) == {1: 3}", (2, "with `{1: 2}` before what is there first")),
        ("a = []\n    b = a\n    b += [n]\n    return a", "f(3) == []", (4, "with `b += [n]` without changing what was there")),
        ("a = []\n    b = a\n    b = b + [n]\n    return a", "f(3) == [3]", (4, "with `b = b + [n]` in place")),
        ("a = [1]\n    a.append(n)\n    return a", "f(3) == [3, 1]", (3, "with `n` at the front in `a.append(n)`")),
        ("return ('0' * n).removeprefix('0')", "f(3) == ''", (2, "with `lstrip` for `removeprefix` in `('0' * n).removeprefix('0')`")),
        ("return 'A'.lower()", "f(3) == 'A'", (2, "with `'A'` for `'A'.lower()`")),
        ("return n * 4 / 2", "f(4) == 32", (2, "with `*` in `n * 4 / 2`")),
        ("return abs(n) * -2", "f(3) == 6", (2, "without `-` in `-2`")),
        ("return sorted([1, n])", "f(3) == [3, 1]", (2, "with `reverse=True` in `sorted([1, n])`")),
        (SORTED, "f(3) == [(1, 3), (1, 2), (2, 1)]", (3, "with `-` before `i[1]` in the key `(i[0], i[1])`")),
        (SORTED, "f(3) == [(2, 1), (1, 2), (1, 3)]", (3, "with the parts of the key `(i[0], i[1])` in reverse")),
        ("return 'abcd'[n:]", "f(2) == 'd'", (2, "with `+ 1` after `n`")),
        ("i = n\n    return 'abcd'[i]", "f(2) == 'b'", (3, "with `- 1` after `i`")),
        ("found = {}\n    found['end'] = abs(n)\n    return found", "f(2) == {'end': 3}", (3, "with `+ 1` after `abs(n)`")),
        (CALLBACKS, "[one() for one in f(2)] == [0, 1]", (4, "with `i` as at that time in `lambda: i`")),
        ("return [lambda: i for i in range(n)]", "[one() for one in f(2)] == [0, 1]", (2, "with `i` as at that time in `lambda: i`")),
        (LOOKED_UP, "f(3) == (True, True)", (5, "with a test for the key `n` in `d` for `c is not None`")),
        (LOOKED_UP, "f(3) == (False, False)", (5, "with a test for the key `n` in `d` for `c is None`")),
        ("d = {n: 0}\n    if d.get(n, None):\n        return 1", "f(3) == 1", (3, OF_KEY)),
        (ENTRIES, "f(3) == (False, 0)", (4, "if `a[n]` made no entry where there is none")),
        ("a = dict.fromkeys([1, n], [])\n    a[n].append(1)\n    return a[1]", "f(3) == []", (2, OF_ITS_OWN)),
        ("return 'a b c'.split(' ')[-1]", "f(3) == 'b c'", (2, "only once in `'a b c'.split(' ')`")),
        ("return ' a '.strip()", "f(3) == 'a '", (2, "with `lstrip` for `strip` in `' a '.strip()`")),
        ("import math\n    return math.floor(n / 2)", "f(3) == 2", (3, "with `ceil` for `floor` in `math.floor(n / 2)`")),
        ("import re\n    return bool(re.match('b', 'ab'))", "f(3)", (3, "with `search` for `match` in `re.match('b', 'ab')`")),
        ("a = [1]\n    a.insert(0, n)\n    return a", "f(3) == [1, 3]", (3, "with `n` at the end in `a.insert(0, n)`")),
        ("a, b = 1, 2\n    return [a, b, n]", "f(3) == [3, 1, 2]", (3, "with `n` first in its list")),
        ("a, b = 1, 2\n    return [a, b, n]", "f(3) == [2, 3, 1]", (3, "with `a` last in its list")),
        ("a = [1, n]\n    return a.pop()", "f(3) == 1", (3, "with the first one in `a.pop()`")),
        ("a = []\n    a.append([n])\n    return a", "f(3) == [3]", (3, "with `extend` for `append` in `a.append([n])`")),
        ("return list(range(n))", "f(1) == [0, 1]", (2, "with `+ 1` after `n` in `range(n)`")),
        ("return list(range(n, 5))", "f(3) == [2, 3, 4]", (2, "with `- 1` after `n` in `range(n, 5)`")),
        ("return [i for i in (n, 1)]", "f(3) == [1, 3]", (2, "with `(n, 1)` sorted")),
        ("return list(set((64, n, 1)))", "f(3) == [64, 3, 1]", (2, "with the order kept in `set((64, n, 1))`")),
        ("return [i for i in set((64, n, 1))]", "f(3) == [64, 3, 1]", (2, "with the order kept in `set((64, n, 1))`")),
        ("return n // 2", "f(3) == 1.5", (2, "with `/` in `n // 2`")),
        ("return not n", "f(3)", (2, "without `not` in `not n`")),
        ("return n > 3 and n < 5", "f(3)", (2, "with `or` in `n > 3 and n < 5`")),
        ("return 1 if n is None else 2", "f(0) == 1", (2, "if `n` were asked for truth in `n is None`")),
        ("return 1 if n is not None else 2", "f(0) == 2 and f(3) == 1", (2, "if `n` were asked for truth in `n is not None`")),
        ("return n if n > 5 else 'é' + 'x'", "f(3) == 'xé'", (2, "with `'x'` before `'é'`")),
    ],
)  # fmt: skip
def test_changes(body: str, expected: str, change: tuple[int, str]) -> None:
    assert change in changes(f"def f(n):\n    {body}\n", expected)


@pytest.mark.parametrize(
    ("tests", "change"),
    [
        (("t = Tally('a'); t.add('b')", "t.where('b')", 1), (14, "with `self.index()` at its end")),
        (("t = Tally(); t.weigh('a', 1)", "t.weigh('a', 2)", 2), (17, "with `self._total = None` at its start")),
        (("t = Tally('a'); t.weigh('a', 1); t.remove('a')", "t._weights", {}), (26, "with `name` removed from `self._weights` at its end")),
        (("t = Tally('a'); t.add('b'); t.take()", "t.take()", []), (33, "with `self._recent = []` at its end")),
    ],
)  # fmt: skip
def test_state_of_an_object_that_is_not_kept_right(
    tests: tuple[str, str, object], change: tuple[int, str]
) -> None:
    before, asked, expected = tests
    assert change in changes(TALLY + before, f"{asked} == {expected!r}")


QUERY = """\
class Query:
    def __init__(self, name):
        self.name, self.limit, self.order = name, None, None

    def copy(self):
        made = Query(self.name)
        made.order = self.order
        return made

    def renamed(self, name):
        return type(self)(name or self.name)

q = Query("a"); q.limit, q.order = 3, "b"
"""


CACHED = """\
CACHE = {}
def f(n, m, o=()):
    seen = {}
    if n in CACHE:
        return CACHE[n]
    seen[n] = m
    CACHE[n] = n + seen[n]
    return CACHE[n]
def g(n, m):
    key = str(n)
    return CACHE.get(key) or CACHE.setdefault(key, n + m)
"""


@pytest.mark.parametrize("parameters", ["n, flag=False", "n, *, flag=False"])
def test_the_other_value_of_a_flag_that_has_a_default(parameters: str) -> None:
    text = f"def f({parameters}):\n    return n if flag else -n\n"
    for call in "f(3)", "f(3, flag=False)":
        assert (2, "if `flag` were True where it is False") in changes(text, f"{call} == 3")


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ("(f(1, 2), f(1, 3)) == (3, 4)", (4, "with `m` in the key `n` of `CACHE`")),
        ("(g(1, 2), g(1, 3)) == (3, 4)", (11, "with `m` in the key `key` of `CACHE`")),
    ],
)
def test_a_key_by_which_too_little_is_told_apart(expected: str, change: tuple[int, str]) -> None:
    assert change in changes(CACHED, expected)


def test_keys_of_what_is_no_cache_are_left_as_they_are() -> None:
    text = """\
CACHE, ROWS = {}, []
def f(n, m):
    seen = {}
    if n in seen:
        seen[n] = seen[n] + m
    ROWS[n] = ROWS[n] + m
    if 0 in CACHE:
        CACHE[0] = m
    if n in CACHE:
        del CACHE[n]
def g(n, _key):
    try:
        return CACHE[n]
    except KeyError:
        CACHE[n] = _key
"""
    assert all_changes(text, " in the key ") == [("with `_key` in the key `n` of `CACHE`", 13)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("return n.get(1) is None is n.get(2)", "asked for truth"),
        ("return n.get(1) is None is n.get(2)", "for the key"),
        ("x = n.get(1)\n    for x in n:\n        return x is None", "for the key"),
        ("x = n.get(*n)\n    return x is None", "for the key"),
        ("d = [0]\n    d[0] = collections.defaultdict(list)\n    return n[0][1:2], n.x()[2]", "no entry"),
        ("d = collections.defaultdict(list)\n    return d[1:2], d[1:2, 3]", "no entry"),
        ("return OtherDict.fromkeys(n, []), dict.fromkeys(*n, [])", "of its own"),
        ("n.insert(False, 1)", "at the end in"),
        ("n.pop(last=True)", "first one"),
        ("for i in sorted(n):\n        for j in range(n):\n            pass", "` sorted"),
    ],
)
def test_what_only_looks_like_what_is_changed_is_left_as_it_is(line: str, words: str) -> None:
    assert not all_changes(f"import collections\ndef f(n):\n    {line}\n", words)


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ("q.copy().limit == 3", (7, "with `made.limit = self.limit` after `made.order = self.order`")),
        ("q.renamed('c').limit == 3", (11, "with `.limit = self.limit` for `type(self)(name or self.name)`")),
        (
            "q.renamed('c').order == 'b'",
            (11, "with `.order = self.order` for `type(self)(name or self.name)`"),
        ),
    ],
)
def test_attributes_that_a_copy_lacks(expected: str, change: tuple[int, str]) -> None:
    assert change in changes(QUERY, expected)


MODEL = """\
class Base:
    options = {"a": 1}
    def __init_subclass__(cls):
        if not hasattr(cls, "name"):
            cls.name = cls.__name__.lower()
    def start(self, by):
        self.started = by
    def settings(self):
        return {"a": 1, "b": 2}
class Model(Base):
    def start(self, by):
        self.ready = True
    def settings(self):
        return {"b": 3}
    def own(self):
        return type(self).__dict__.get("options", "none"), "options" in vars(Model)
class Other(Model): pass
m = Model(); m.started = None; m.start(by=3)
"""


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ("m.started == 3 and m.ready", (12, "with `super(Model, self).start(by)` at its start")),
        ("m.settings() == {'a': 1, 'b': 3}", (14, "with `super(Model, self).settings()` before `{\"b\": 3}`")),
        ("Other.name == 'other'", (4, "without what is inherited in `hasattr(cls, \"name\")`")),
        ("m.own()[0] == {'a': 1}", (16, "with what is inherited in `type(self).__dict__.get(\"options\", \"none\")`")),
        ("m.own()[1]", (16, "with what is inherited in `\"options\" in vars(Model)`")),
    ],
)  # fmt: skip
def test_what_a_class_has_of_its_bases(expected: str, change: tuple[int, str]) -> None:
    assert change in changes(MODEL, expected)


@pytest.mark.parametrize(
    ("method", "other"),
    [
        ("self.started = by", '"""Start."""\n        raise NotImplementedError'),
        ("self.started = by", "yield by"),
        ("self.ready = True", "super().start(by)"),
        ("self.ready = True", "Base.start(self, by)"),
        ("self.ready = True", '"""Is ready."""'),
        ("self.ready = True", "yield True"),
        ("def start", "async def start"),
        ("start(", "__start("),
        ("    def start", "    @staticmethod\n    def start"),
        ("class Model", "class Out:\n  class Model"),
    ],
)
def test_base_methods_that_can_not_be_called_or_are_called_are_not_called_once_more(
    method: str, other: str
) -> None:
    before = MODEL.replace('{"b": 3}', "super().settings()").partition("m = Model()")[0]
    assert any("super(Model, self).start(by)" in one for one in texts(before))
    assert not any("super(Model, self)" in one for one in texts(before.replace(method, other)))


SIGNALS = """\
class Signal:
    def __init__(self, name, parent=None):
        self.name, self.parent = name, parent
class Frame:
    def settle(self, signals):
        for one in signals:
            one.parent = signals[0].name
        return signals
def moved(first, given_parent):
    made = Signal("made", first)
    return made, given_parent
"""


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ("Frame().settle([Signal('a', 'x'), Signal('b')])[0].parent == 'x'", (7, "with `one.parent` set only where it is None")),
        ("moved(1, 2)[1] == 1", (11, "with `made.parent` for `given_parent` in `return made, given_parent`")),
    ],
)  # fmt: skip
def test_attributes_that_are_overwritten_or_not_used(expected: str, change: tuple[int, str]) -> None:
    assert change in changes(SIGNALS, expected)


TABLE = """\
class Table:
    def __init__(self):
        self._rows, self._size, self._last = [], 0, -1

    def add(self, row):
        if len(row) > 9:
            self._rows.clear()
        else:
            self._rows.append(row)
            self._last = self._last + 1
            self._size += len(row)

    def last(self):
        return self._rows and self._last

t = Table(); t.add("a"); t.add("x" * 10); t.add("b")
"""


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ("t._size == 1", (7, "with `self._size = 0` after `self._rows.clear()`")),
        ("t.last() == 0", (7, "with `self._last = -1` after `self._rows.clear()`")),
        ("t.last() == 0", (14, "with `len(self._rows) - 1` for `self._last`")),
    ],
)
def test_what_is_not_reset_with_the_rest(expected: str, change: tuple[int, str]) -> None:
    assert change in changes(TABLE, expected)


READER = """\
import re

class Reader:
    patterns: dict = {}

    def __init__(self):
        self.notes, self.rules, self.ignores_case = [], {}, False
        self.found, self.text, self.size = {}, bytearray(), 1.5

    def read(self, name):
        self.rules[name] = item = Item()
        self.notes.append(name)
        item.notes = list(self.notes)
        return item.notes

    def compiled(self, text):
        if text not in Reader.patterns:
            flags = re.IGNORECASE if self.ignores_case else 0
            Reader.patterns[text] = re.compile(text, flags)
        return Reader.patterns[text]

    def matches(self, text):
        return bool(self.compiled("x").match(text))

    def forget(self, name):
        self.found.pop(name, None)

    def has_rule(self, name):
        return name in self.rules

    def has_own_rule(self, name):
        return name in self.rules and name not in self.found

    def is_known(self, name):
        return self.has_rule(name)

    def begin(self):
        self.size = 1.5

    def end(self, more):
        self.begin()
        self.text += more
        return bytes(self.text)

class Item:
    notes: list = []

r, ignoring = Reader(), Reader()
ignoring.ignores_case = True
"""


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        (
            "(r.read('a'), r.read('b')) == (['a'], ['b'])",
            (13, "with `self.notes = []` after `item.notes = list(self.notes)`"),
        ),
        (
            "(r.matches('X'), ignoring.matches('X')) == (False, True)",
            (17, "with `self.ignores_case` in the key `text` of `Reader.patterns`"),
        ),
        (
            "(r.found.update(a=1, b=2), r.forget('a'), r.found)[2] == {}",
            (26, "with all of it removed in `self.found.pop(name, None)`"),
        ),
        (
            "(r.rules.update(a=1), r.found.update(a=1), r.is_known('a'))[2] is False",
            (35, "with `has_own_rule` for `self.has_rule`"),
        ),
        (
            "(r.end(b'a'), r.end(b'b'))[1] == b'b'",
            (38, "with `self.text = bytearray()` after `self.size = 1.5`"),
        ),
    ],
)
def test_what_an_object_keeps_for_too_long_or_asks_for(expected: str, change: tuple[int, str]) -> None:
    assert change in changes(READER, expected)


def test_a_variable_is_computed_later_only_where_nothing_has_read_it() -> None:
    text = """\
def f(path, base):
    key = path.lower()
    known = path.upper()
    print(known)
    path = base + path
    if base:
        path = path.strip()
    return key, known, path
"""
    moved = (2, "with `key = path.lower()` after `path = base + path`")
    assert moved in changes(text, "f('a', 'B')[0] == 'ba'")
    assert [one for one, _ in all_changes(text, " = path.") if " after `path" in one] == [moved[1]]


@pytest.mark.parametrize("copied", ["A.known.copy()", "dict(A.known)"])
def test_an_empty_container_for_a_copy(copied: str) -> None:
    text = f"class A:\n    known = {{1: 1}}\n    def f(self, n):\n        own = {copied}\n        own[n] = n\n        return own\n"
    assert (4, f"with an empty one for `{copied}`") in changes(text, "A().f(2) == {2: 2}")


def test_all_of_a_duration_for_its_seconds() -> None:
    text = "from datetime import timedelta\ndef f(n):\n    return timedelta(seconds=n).seconds\n"
    assert (3, "with `total_seconds()` for `seconds` in `timedelta(seconds=n).seconds`") in changes(
        text, "f(0.5) == 0.5"
    )


FIELDS = """\
class Field:
    def __init__(self, name, optional=False, default=None):
        self.name, self.optional, self.default = name, optional, default

def is_free(field):
    return field.optional or field.default

def count(fields):
    return sum(1 for field in fields if field.optional)

def index(fields):
    found = {}
    for field in fields:
        field_name = field.name.lower()
        found[field.name] = field
    return found

class Stream:
    depth = 0

    def end(self, size):
        self.depth += 1
        if not size:
            return None
        self.depth = 0
        return size
s = Stream(); s.end(0)
"""


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ("count([Field('a', default=1)]) == 1", (9, "with `or field.default` after `field.optional`")),
        ("list(index([Field('A')])) == ['a']", (15, "with `field_name` in place of `field.name`")),
        ("s.depth == 0", (24, "with `self.depth = 0` before `return None`, too")),
    ],
)
def test_what_is_done_elsewhere_in_a_like_case(expected: str, change: tuple[int, str]) -> None:
    assert change in changes(FIELDS, expected)


CLOSED = """\
class Stream:
    def __init__(self):
        self.a, self.b, self.rows = 1, 2, []

    def stop(self):
        self.a = 1
        self.close()
        self.b = 2

    def size(self, is_known):
        if is_known:
            return self.a or self.b
        if not self.rows:
            self.a = 1
            return 0
        self.a = 1
        return 1

    def of(self, is_known):
        if is_known:
            return self.b
        return Stream(self.a)
"""


def test_changes_are_of_lines_that_have_run_and_do_something() -> None:
    lines = CLOSED.splitlines()
    tree = ast.parse(CLOSED)
    definitions = Definitions({"module.py": tree})
    executed = {6, 7, 11, 13, 14, 15, 20, 22}
    found = {
        (one.line, one.describe(lines))
        for function in functions_in("shop.py", tree)
        for one in mutants_of(function, executed, definitions)
    }
    assert (6, "with `self.b = 2` after `self.a = 1`") in found  # the last reset that has run
    assert not [
        text for line, text in found if line == 8 or "before `return 0`, too" in text
    ]  # that one does it
    assert (11, "with `or self.b` after `self.a`") not in found  # it is there
    assert (22, "with `.b = self.b` for `Stream(self.a)`") in found


def test_two_statements_are_exchanged_early_where_one_reads_what_the_other_sets() -> None:
    tree = ast.parse("def f(o, p):\n    o.a = 1\n    p.b = o.a\n    p.c = 2\n")
    [function] = functions_in("shop.py", tree)
    found = mutants_of(function, {1, 2, 3, 4}, Definitions({"module.py": tree}))
    exchanged = {one.line: one.likelihood for one in found if one.kind == "with {} after {}"}
    assert exchanged == {2: AIMED, 3: POSSIBLE}


def test_many_names_make_few_changes() -> None:
    body = "".join(f"    v{number}_id = o.id\n" for number in range(200))
    operands = " or ".join(f"o.a{number}" for number in range(600))
    tree = ast.parse(f"def f(o):\n{body}    return {operands}\n")
    definitions = Definitions({"module.py": tree})
    assert all(len(names) <= 6 for names in definitions.alternatives.values())
    (function,) = functions_in("shop.py", tree)
    lines = set(range(203))
    assert sum(1 for one in mutants_of(function, lines, definitions) if " in place of " in one.kind) == 1200


def test_what_members_are_added_to_is_a_container_whatever_made_it() -> None:
    source = """\
class Names(list):
    add = list.append

class Queue:
    def __init__(self):
        self.sizes = dict()
        self.heavy = Names()

    def put(self, key):
        self.sizes[key] = 1
        self.heavy.add(key)

    def drop(self, key):
        del self.sizes[key]

q = Queue(); q.put("a"); q.drop("a")
"""
    assert (14, "with `key` removed from `self.heavy` at its end") in changes(source, "q.heavy == []")


@pytest.mark.parametrize(
    ("expected", "change", "text"),
    [
        ("f(3) == [3]", (2, "with `seen = []` at its start"), """\
def f(n, seen=[]):
    seen.append(n)
    return seen
f(0)
"""),
        ("f(3) == []", (2, "with a copy of its argument `seen`"), """\
def g(seen):
    seen.append(1)
def f(n):
    a = []
    g(a)
    return a
"""),
        ("f(3, 2) == 6", (4, "if `known` were empty each time"), """\
known = {}
def f(n, by=1):
    if n not in known:
        known[n] = n * by
    return known[n]
f(3)
"""),
        ("f(3, 2) == 6", (7, "if `A.known` were empty each time"), """\
class A:
    known = {}
def f(n, by=1):
    try:
        return A.known[n]
    except KeyError:
        A.known[n] = n * by
        return A.known[n]
f(3)
"""),
        ("f(3) is True", (4, "with `deep=deep` in `g(n)`"), """\
def g(n, deep=False):
    return deep
def f(n, deep=True):
    return g(n)
"""),
        ("f(3) == 5", (8, "with `deep=self.deep` in `self.g(n)`"), """\
class A:
    deep = 5
    def g(self, n, deep=0):
        return deep
    def h(self):
        return self.deep
    def f(self, n):
        return self.g(n)
f = A().f
"""),
        ("f(2) == [[0, 1], [0, 1]]", (5, "with a list of `g(n)`"), """\
def g(n):
    for i in range(n):
        yield i
def f(n):
    a = g(n)
    return [list(a), list(a)]
"""),
        ("f(3) is True", (4, "with `deep=True` in `g(*[n])`"), """\
def g(n, *, deep=False):
    return deep
def f(n):
    return g(*[n])
"""),
        ("f(3) == 1", (5, "with `break` after `found = i`"), """\
def f(n):
    found = None
    for i in 1, 2:
        if i < n:
            found = i
    return found
"""),
        ("f(3) == 1", (5, "with `m = 1` after the block of `if n > 5:…`, not in it"), """\
def f(n):
    m = 0
    if n > 5:
        n = 5
        m = 1
    return m
"""),
        ("f(3) == 3", (5, "with `m += n` in the block of `for i in range(n):…`"), """\
def f(n):
    m = 0
    for i in range(n):
        n = i
    m += n
    return m
"""),
        ("f(3) == 0", (6, "with what follows `yield` in a `finally`"), """\
from contextlib import contextmanager
opened = []
@contextmanager
def g():
    opened.append(1)
    yield
    opened.pop()
def f(n):
    try:
        with g():
            n / 0
    except ZeroDivisionError:
        return len(opened)
"""),
        ("f(3) == 4", (4, "with `deep_level=self._deep_l` in `self.g(n)`"), """\
class A:
    _deep_l = 1
    def f(self, n):
        return self.g(n)
    def g(self, n, deep_level=0):
        return n + deep_level + self._deep_l * 0
f = A().f
"""),
        ("f(3) == 3", (8, "with `order.note = None` at its end"), """\
class Order:
    def __init__(self):
        self.note = None
order = Order()
order.note = 3
def hand_over(order, other):
    other.note = order.note
    return other
def f(n):
    other = hand_over(order, Order())
    return other.note if order.note is None else 0
"""),
        ("f(3) == 2", (6, "with `self.lines_after` for `self.lines_before`"), """\
class A:
    def __init__(self):
        self.lines_before = [1]
        self.lines_after = [1, 2]
    def f(self, n):
        return len(self.lines_before)
f = A().f
"""),
        ("f(3) == 3", (9, "with `self.count = 0` at its start"), """\
from dataclasses import dataclass, field
@dataclass
class Tally:
    count: int = 0
    names: list = field(default_factory=list)
    def add(self, n):
        self.count += n
    def reset(self):
        self.names.clear()
tally = Tally()
tally.add(2)
def f(n):
    tally.reset()
    tally.add(n)
    return tally.count
"""),
        ("f(3) == [True, False]", (5, "with `self.late` staying true once it is"), """\
class A:
    def __init__(self):
        self.late = self.early = False
    def meet(self, n):
        self.late = n > 2
        self.early = self.early or n < 2
def f(n):
    a = A()
    for one in (n, 2):
        a.meet(one)
    return [a.late, a.early]
"""),
        ("f([1, 2]) is False", (4, "with `good` staying false once it is"), """\
def f(n):
    good = True
    for one in n:
        good = one > 1
    return good
"""),
        ("f({'a': 1}) == {'a': 1, 'b': 2}", (5, "with `options` added to what `self.options` had"), """\
class A:
    def __init__(self, options):
        self.options = options
    def set(self, options):
        self.options = options
def f(n):
    a = A(n)
    a.set({'b': 2})
    return a.options
"""),
        ("f(3) == [1, 2]", (8, "without the cache around `cls.parse`, line 4"), """\
import functools
class A:
    @classmethod
    @functools.lru_cache()
    def parse(cls, text):
        return [cls and text]
    def f(cls, n):
        return cls.parse(n)
    f = classmethod(f)
def f(n):
    A.f(1).append(2)
    return A.f(1)[:1] + [len(A.f(1)) + n - 2]
"""),
        ("f(3) == 6", (10, "if `a.total` were computed anew, line 3"), """\
import functools
class A:
    @functools.cached_property
    def total(self):
        return self.n * 2
def f(n):
    a = A()
    a.n = 0
    a.n = n + a.total
    return a.total
"""),
        ("f(3) == 6", (16, "if `a.total` were computed anew, line 10"), """\
class cachedattribute:
    def __init__(self, made):
        self.made, self.name = made, made.__name__
    def __get__(self, one, owner):
        kept = vars(one).setdefault("kept", {})
        if self.name not in kept:
            kept[self.name] = self.made(one)
        return kept[self.name]
class A:
    @cachedattribute
    def total(self):
        return self.n * 2
def f(n):
    a = A(); a.n = 0
    a.n = n + a.total
    return a.total
"""),
        ("f([3]) == [3]", (4, "if `not n` were asked for None alone"), """\
class Notes(list):
    def __len__(self): return self.clear() or 1
def f(n):
    n = Notes(n); n = [] if not n else n
    return list(iter(n))
"""),
        ("f(0) == 0", (2, "if `n` were asked for None alone"), """\
def f(n):
    if n and n != 1: return n
    return 5
"""),
        ("f(3) == 4", (7, "with `made.hash = None` after `made = copy(self)`"), """\
from copy import copy
class A:
    def __init__(self, n):
        self.n = n
        self.hash = None
    def next(self):
        made = copy(self)
        made.n += 1
        return made
    def __hash__(self):
        self.hash = self.hash or self.n
        return self.hash
def f(n):
    a = A(n)
    return hash(a) and hash(a.next())
"""),
        ("f(3) == 4", (7, "with `.hash = None` for `copy.copy(self)`"), """\
import copy
class A:
    hash = None
    def next(self):
        self.n += 1
        self.hash = self.n - 1
        return copy.copy(self)
    def __hash__(self):
        self.hash = self.hash or self.n
        return self.hash
def f(n):
    a = A()
    a.n = n
    return hash(a.next())
"""),
        ("f({'rate': 7}) == 7", (4, "with `state` for `make_state()`"), """\
def make_state():
    return {'rate': 1}
def f(state):
    return make_state()['rate'] if state else 0
"""),
        ("f([3, None, 5]) == {3: 0, 5: 1}", (3, "counting only what `one is None` does not skip"), """\
def f(n):
    found = {}
    for number, one in enumerate(n):
        if one is None:
            continue
        found[one] = number
    return found
"""),
        ("f('a b c') == 3", (2, "with `rfind` for `find` in `n.find(' ')`"), """\
def f(n):
    return n.find(' ')
"""),
        ("f(3) == [3, 3]", (5, "if `A.found` were empty each time"), """\
class A:
    found = []
    def add(self, n):
        if n not in A.found:
            A.found.append(n)
def f(n):
    A().add(n)
    A().add(n)
    return A.found[-2:]
"""),
        ("f(([1], [2])) == [[1], [2]]", (5, "with `new = []` in each round of `for one in n:…`"), """\
def f(n):
    made = []
    other = 0
    new = []
    for one in n:
        new += one
        made.append(new)
    return made
"""),
        ("f(3) == [(1, 3), (2, 3)]", (7, "with `and self.a == other.a` after `self.b == other.b`"), """\
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
        self.seen = 0
    def __eq__(self, other):
        self.seen += 1
        return self.b == other.b
def f(n):
    found = []
    for one in Pair(1, n), Pair(2, n), Pair(1, n):
        if one not in found:
            found.append(one)
    return [(one.a, one.b) for one in found]
"""),
        ("f(3) == 1", (6, "if only the same object were equal"), """\
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __eq__(self, other):
        other = other
        return self.b == other.b
def f(n):
    a, b = Pair(1, n), Pair(2, n)
    return [a, b].index(b)
"""),
        ("f(3) == [3, 4, 3]", (5, "with `self.depth` at its end as it was before"), """\
class A:
    def __init__(self, found):
        self.depth, self.found = 0, found
    def visit(self, depth):
        self.depth = depth
        self.found.append(self.depth)
        if depth < 4:
            self.visit(depth + 1)
            self.found.append(self.depth)
def f(n):
    found = []
    A(found).visit(n)
    return found
"""),
        ("f(3) == [3]", (5, "with `self.waiting = []` in place"), """\
class A:
    def __init__(self):
        self.waiting = []
    def run(self):
        self.waiting = []
def f(n):
    a = A()
    kept = a.waiting
    a.run()
    kept.append(n)
    return a.waiting
"""),
        ("f(3) == {3: 1}", (5, "with `self.sizes = {one: 1 for one in self.sizes}` in place"), """\
class A:
    def __init__(self, n):
        self.sizes = {n: 2}
    def level(self):
        self.sizes = {one: 1 for one in self.sizes}
def f(n):
    a = A(n)
    kept = a.sizes
    a.level()
    return kept
"""),
        ("f(3) == [3]", (6, "with a new container in `self.found.clear()`"), """\
class A:
    def run(self, n):
        self.found.append(n)
        return self.found
    def reset(self):
        self.found.clear()
def f(n):
    a = A()
    a.found = []
    kept = a.run(n)
    a.reset()
    return kept
"""),
        ("f([1]) == 2", (3, "with `len(n)` evaluated anew in `lambda: size`"), """\
def f(n):
    size = len(n)
    later = lambda: size
    n.append(2)
    return later()
"""),
        ("f([1]) == 2", (3, "with `len(n)` evaluated anew in `lambda: nodes`"), """\
def f(n):
    nodes = len(n)
    later = lambda: nodes
    n.append(2)
    return later()
"""),
        ("f([1]) == [1]", (5, "with a copy of `found` before `found.append(2)`"), """\
def held(n):
    return n
def f(n):
    found = held(n)
    found.append(2)
    return n
"""),
        ("f({}) == 'b'", (8, "with a copy of `first` and its containers before `first.add('n', 'b')`"), """\
class Settings:
    def __init__(self, **values):
        self.values = values
    def add(self, name, value):
        self.values.setdefault(name, value)
def f(n, made=[Settings()]):
    first = made[0]
    first.add('n', 'b')
    return first.values['n'] if not made[0].values else made
"""),
        ("f(3) == [2]", (4, "with `a.append(one)` in the block of `if one > 1:…`, not before it"), """\
def f(n):
    a = []
    for one in range(n):
        a.append(one)
        if one > 1:
            return a
"""),
        ("f(4) == 5", (6, "with `a.last = n` once more after `if n > 3:…`"), """\
class A:
    pass
def f(n):
    a = A()
    n = int(n)
    a.last = n
    if n > 3:
        n += 1
    return a.last
"""),
        ("f(4) == [4]", (4, "with the `read` of `B`"), """\
class A:
    def read(self, n, *, more=0):
        '''Give it.'''
        return n + more
class B(A):
    def read(self, n, *, more=0):
        return [super().read(n, more=more)]
def f(n):
    return A.read(B(), n)
"""),
        ("f(4) == [4]", (3, "with the `read` that replaces it in the class of its object"), """\
class A:
    def read(self, n):
        return n
class B(A):
    def read(self, n):
        return [n, *([super().read(n), A.read(C(), n)] if n > 4 else [])]
class C(A):
    def read(self, n):
        return [n]
def f(n):
    return A.read(C(), n) if A.read(A(), n) == n and B().read(5) == [5, 5, [5]] else None
"""),
        ("f(4) == 8", (5, "with `a.kept = held(n)`, then returned, for `return held(n)`"), """\
def held(n):
    return n * 2
def find(a, n, anew):
    if anew:
        return held(n)
    if a.kept is None:
        a.kept = held(n)
    return a.kept
class A:
    kept = 0
def f(n, a=A):
    find(a, n, True)
    return a.kept
"""),
        ("f({1}) == {1}", (4, "with `found |= {2}` without changing what was there"), """\
def f(n):
    for _ in range(1):
        found = n
        found |= {2}
    return n
"""),
        ("f([{1}, {2}]) == [{1}, {2}]", (3, "with `operator.or_` for `operator.ior`"), """\
import functools, operator
def f(n):
    functools.reduce(operator.ior, n)
    return n
"""),
        ("f(3) == 1", (4, "without `by` in the key `n, by`"), """\
def f(n):
    kept = {}
    for by in 1, 2:
        cache_key = n, by
        kept[cache_key] = by
    return len(kept)
"""),
        ("f(3) == 1", (2, "without `*by` in the key `(n, *by)`"), """\
def key(n, *by):
    return hash((n, *by))
def f(n):
    return len({key(n, by) for by in (1, 2)})
"""),
        ("f([]) == []", (2, "if it returned its argument `n` at once"), """\
def f(n):
    return [n]
"""),
    ],
)  # fmt: skip
def test_additions(expected: str, change: tuple[int, str], text: str) -> None:
    assert change in changes(text, expected)


@pytest.mark.parametrize(
    ("expected", "change", "text"),
    [
        ("f() == ['A']", (10, "with `name = self._clean(name)` at its start"), """\
class A:
    def __init__(self):
        self.known = {}
    def _clean(self, name):
        return name.upper()
    def add(self, name):
        self.known[self._clean(name)] = 1
    def twice(self, name):
        name = self._clean(name)
    def find(self, name): return [one for one in self.known if one == name]
def f():
    a = A()
    a.add('a')
    return a.find('a')
"""),
        ("f() == []", (4, "with a `self.items` of its own"), """\
class A:
    items = []
    def __init__(self):
        self.size = 0
def f():
    A().items.append(1)
    return A().items
"""),
        ("f() == []", (6, "with a `cls.items` of its own"), """\
class A:
    items = []

    def __init_subclass__(cls):
        # each has its own
        cls.names = {}
def f():
    class B(A): pass
    B.items.append(1)
    return A.items
"""),
        ("f([[]]) == [[]]", (2, "with a deep copy for `list(n)`"), """\
def f(n):
    made = list(n)
    made[0].append(1)
    return n
"""),
        ("f([[]]) == [[]]", (2, "with a deep copy for `n.copy()`"), """\
def f(n):
    made = n.copy()
    made[0].append(1)
    return n
"""),
        ("f(0, 1) == [1, 2]", (3, "if `b` were enough for `a`"), """\
def f(a, b):
    found = []
    if a:
        found.append(1)
    if b:
        found.append(2)
    return found
"""),
        ("f([]) == [2]", (6, "with `known.append(2)` before `if not known:…`, not after it"), """\
def f(known):
    if not known:
        known.append(3)
        known.pop()
        return known
    known.append(2)
    return known
"""),
        ("f([1]) == 2", (7, "with `self.items` read once more from line 9 on"), """\
class A:
    def __init__(self, items):
        self.items = items
    def grow(self):
        self.items = [*self.items, 2]
    def size(self):
        items = self.items
        self.grow()
        return len(items)
def f(n):
    return A(n).size()
"""),
        ("f(3) == {1: 3}", (3, "with an assignment for `kept.setdefault(1, n)`"), """\
def f(n):
    kept = {1: 2}
    kept.setdefault(1, n)
    return kept
"""),
        ("f(3) == {1: 2}", (3, "with `kept[1] = n` only where there is none"), """\
def f(n):
    kept = {1: 2}
    kept[1] = n
    return kept
"""),
        ("f(4) == [1, 2, 3]", (3, "with `if` for each `elif` after `if n > 3:…`"), """\
def f(n):
    found = []
    if n > 3:
        found.append(1)
    elif n > 2:
        found.append(2)
    elif n > 1:
        found.append(3)
    else:
        found.append(4)
    return found
"""),
        ("f(3) == 3", (6, "with `n -= 1` in the `else` of `if n > 2:…`"), BRANCHES),
        ("f(1) == 2", (6, "with `n -= 1` in the block of `if n > 2:…`"), BRANCHES),
        ("f(3) == [0, 1, 2]", (5, "with `type(self).made` for `self.made`"), """\
class A:
    made = 0
    def __init__(self):
        self.number = self.made
        self.made += 1
def f(n):
    A.made = 0
    return [A().number for _ in range(n)]
"""),
        ("f(3) == [(0, 3)]", (9, "with `self.active = n` before `self.tell(self.active)`, which is given the old value"), """\
class A:
    def __init__(self):
        self.active, self.told = 0, []
    def tell(self, old):
        self.told.append((old, self.active))
    def turn(self, n):
        self.told.clear()
        self.tell(self.active)
        self.active = n
        return self.told
def f(n):
    return A().turn(n)
"""),
        ("f(3) == 3", (8, "with `amount` for `(pot or []).net_amount`"), """\
class Pot:
    net_amount: int = 0
    def __init__(self, n):
        self.fee = 1
        self.amount, self.net_amount = n, n - self.fee
def f(n):
    pot = Pot(n)
    return (pot or []).net_amount
"""),
    ],
)  # fmt: skip
def test_values_that_are_shared_stale_or_not_converted(
    expected: str, change: tuple[int, str], text: str
) -> None:
    assert change in changes(text, expected)


SETTLED = """\
def f(n):
    if n > 0 and n < 9:
        n += 1
    else:
        n -= 1
    while n == 0:
        n += 2
    if n != 5: return n
    n += 0
    if n == 7:
        n += 9
    if found(n):
        n += 8
    if n == 5:
        pass
    return 0
"""


def texts(text: str, at_any_time: set[int] | None = None) -> set[str]:
    tree, lines = ast.parse(text), text.splitlines()
    definitions, every = Definitions({"module.py": tree}), set(range(len(lines) + 1))
    return {
        one.describe(lines)
        for function in functions_in("shop.py", tree)
        for one in mutants_of(function, every, definitions, at_any_time)
    }


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [
        (
            5,
            {
                "if `n > 0 and n < 9` were true", "without `n > 0` in `n > 0 and n < 9`", "without `n < 9` in `n > 0 and n < 9`",
            },
        ),
        (3, {"if `n > 0 and n < 9` were false"}),
        (11, {"if `n == 7` were false", "with `!=` in `n == 7`"}),
        (7, set()),  # a loop
        (13, set()),  # a call
        (15, set()),  # `pass`
        (None, set()),
    ],
)  # fmt: skip
def test_conditions_are_not_set_to_the_only_outcome_they_had(left_out: int | None, missing: set[str]) -> None:
    """Nor are their parts left out or their signs turned then, which changes as little, or as much as the other outcome."""
    run = set(range(SETTLED.count("\n") + 1)) - {left_out}
    assert texts(SETTLED, None) - texts(SETTLED, run) == missing


@pytest.mark.parametrize(
    ("text", "is_forced"),
    [
        ("without {}", True),
        ("if {} were true", True),
        ("if {} were empty each time", False),
        ("with {} twice", False),
    ],
)
def test_changes_that_decide_a_condition_or_leave_something_out(text: str, is_forced: bool) -> None:
    node = ast.parse("a = 1").body[0]
    mutant = Mutant(node, {}, node, AIMED, text, node)
    assert mutant.is_forced is is_forced
    assert Joined(mutant, Mutant(node, {}, node, AIMED, "with {}", node), {}).is_forced is is_forced


def test_two_changes_at_once() -> None:
    tree = ast.parse("def f(n):\n    n += 1\n    n += 2\n    return n\n")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    first, second, last = function.body
    none = ast.Pass(lineno=2, col_offset=4)
    one = Mutant(function, {"body": [none, second, last]}, first, AIMED, "without {}", first)
    other = Mutant(function, {"body": [first, none, last]}, second, AIMED, "without {}", second)
    shorter = Mutant(function, {"body": [second, last]}, first, AIMED, "short")
    joined = Joined.of(one, other)
    assert joined is not None
    with joined:
        assert holds(tree, "f(3) == 3")
    assert holds(tree, "f(3) == 6")
    assert joined.describe(ast.unparse(tree).splitlines()) == "without `n += 1`, and :3 without `n += 2`"
    assert Joined.of(one, one) is None and Joined.of(one, shorter) is None
