"""Signals: each of them in a program that has it, and in one that is sound."""

from __future__ import annotations

from textwrap import dedent

import pytest

from sandbox.session.diagnosis import Diagnosis
from tests.guest.diagnosis.conftest import ODD, Diagnose
from tools._signals import signal_lines

CASE = "test_shop.Case.test_bad"


def signals(diagnose: Diagnose, shop: str, bad: str) -> list[str]:
    """The signals of a test of `shop` that fails, as text."""
    head = "import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n    def test_bad(self):\n"
    found: Diagnosis = diagnose({"shop.py": dedent(shop), "test_shop.py": f"{head}        {bad}\n"}, CASE)
    assert found.recording is not None and found.recording.problems == [], found
    return signal_lines(found.recording.signals)


SOURCE = """\
class Source:
    def __init__(self, name, relative=False):
        self.name = name
        self.relative = relative

class File(Source):
    def __init__(self, name, relative=False, optional=False):
        super().__init__(name)
        self.optional = optional

def read(name):
    return File(name, relative=True)
"""


def test_an_argument_that_is_never_used_is_told_with_its_call(diagnose: Diagnose) -> None:
    assert signals(diagnose, SOURCE, "self.assertTrue(read('x').relative)") == [
        "argument never used: relative=True in shop.py:7 File.__init__(), passed at shop.py:12 read()"
    ]


def test_a_file_that_begins_with_a_byte_order_mark_has_functions_too(diagnose: Diagnose) -> None:
    assert len(signals(diagnose, "\ufeff" + SOURCE, "self.assertTrue(read('x').relative)")) == 1


@pytest.mark.parametrize(
    "shop",
    [
        SOURCE.replace("(name)", "(name, relative)", 1),
        SOURCE.replace("relative=True", "relative=False"),
        SOURCE.replace("self.optional", "del relative; self.optional"),
        SOURCE.replace("self.optional", "self.given = locals(); self.optional"),
        SOURCE.replace("self.optional", "# `relative` has no effect here\n        self.optional"),
        SOURCE.replace("File(name", "[File][0](name"),
        SOURCE
        + "\nclass Data(Source):\n    def __init__(self, relative=False):\n        super().__init__('data')\n",
    ],
    ids=["used", "default", "deleted", "locals", "known", "indirect", "interface"],
)
def test_an_argument_that_is_used_or_given_for_an_interface_is_not_told(
    diagnose: Diagnose, shop: str
) -> None:
    found = signals(diagnose, shop, "self.assertTrue(read('x').name == 'y')")
    assert not any(one.startswith("argument never used") for one in found)


OPTIONS = """\
class Shape:
    def __init__(self, **options):
        debug = options.pop('debug', True)
        self.checks = debug

    def __setitem__(self, key, value):
        self.key = key

class Picture(Shape):
    def __init__(self, size, **options):
        super().__init__(**options)
        self['width'] = size
        self.defs = Shape()

class Group:
    def __init__(self, parent, names=None, formatted=True):
        self.formatted = formatted
        self.parent = parent

    def group(self, **options):
        return Group(self, **options)
"""


def test_an_option_that_a_caller_has_and_does_not_hand_on_is_told(diagnose: Diagnose) -> None:
    assert signals(diagnose, OPTIONS, "self.assertFalse(Picture(3, debug=False).defs.checks)") == [
        (
            "debug=True by default in shop.py:2 Shape.__init__(); its caller shop.py:13 Picture.__init__() has "
            "options['debug']=False (not handed on): self.defs = Shape()"
        )
    ]
    assert signals(diagnose, OPTIONS, "self.assertFalse(Group(None, formatted=False).group().formatted)") == [
        (
            "formatted=True by default in shop.py:16 Group.__init__(); its caller shop.py:21 Group.group() has "
            "self.formatted=False (not handed on): return Group(self, **options)"
        )
    ]


@pytest.mark.parametrize(
    ("shop", "bad"),
    [
        (OPTIONS.replace("Shape()", "Shape(debug=options['debug'])"), "Picture(3, debug=False).defs.checks"),
        (OPTIONS, "Picture(3, debug=True).defs.key"),
        (OPTIONS, "Group(None, formatted=False).group(formatted=False).formatted"),
        (
            OPTIONS.replace("self.parent", "self.inherited = parent and parent.formatted; self.parent"),
            "Group(None, formatted=False).group().parent is None",
        ),
        (
            OPTIONS.replace("self.formatted = formatted", "self.formatted = False"),
            "Group(None).group().formatted",
        ),
    ],
    ids=["handed on", "same", "handed on by a dict", "looked for", "nobody's choice"],
)
def test_an_option_that_is_handed_on_or_looked_for_is_not_told(
    diagnose: Diagnose, shop: str, bad: str
) -> None:
    assert signals(diagnose, shop, f"self.assertEqual({bad}, 7)") == []


RANGES = """\
class Ranges:
    def __init__(self, items):
        self.items = items

    def part(self, key):
        if key >= max(self.items):
            return self
        return Ranges({one: value for one, value in self.items.items() if one <= key})

    def __setitem__(self, key, value):
        self.items[key] = value

    def filled(self, key):
        found = self.part(key)
        found[0] = 'filled'
        return found

    def rows(self, reverse=False):
        if reverse:
            return sorted(self.items)
        return self.order

class Table(Ranges):
    def __init__(self, items):
        self.items, self.order = items, list(items)

def best(table):
    rows = table.rows()
    rows.sort()
    return rows[0]
"""


def test_an_object_that_a_method_returned_itself_and_that_is_changed_is_told(diagnose: Diagnose) -> None:
    bad = "x = Ranges({1: 2}); x.filled(1); self.assertEqual(x.items, {1: 2})"
    assert signals(diagnose, RANGES, bad) == [
        (
            "Ranges.part() returned the object itself at shop.py:7 Ranges.part(): found = self.part(key); "
            "changed at shop.py:15 Ranges.filled() as found: found[0] = 'filled'"
        )
    ]
    bad = "x = Table({2: 1, 1: 2}); best(x); self.assertEqual(x.order, [2, 1])"
    returned, _ = signals(diagnose, RANGES, bad)  # the other one tells what sorted the items
    assert returned == (
        "Ranges.rows() returned its own self.order at shop.py:21 Ranges.rows(): rows = table.rows(); "
        "changed at shop.py:29 best() as rows: rows.sort()"
    )


@pytest.mark.parametrize(
    "shop",
    [
        RANGES.replace("return self\n", "return Ranges(dict(self.items))\n"),
        RANGES.replace(
            "        return Ranges({one: value for one, value in self.items.items() if one <= key})\n",
            "        self.key = key\n        return self\n",
        ),
        RANGES.replace("found = self.part(key)", "found = self; self.part(key)"),
    ],
    ids=["copy", "fluent", "dropped"],
)
def test_a_copy_and_an_object_that_is_always_returned_are_not_told(diagnose: Diagnose, shop: str) -> None:
    bad = "x = Ranges({1: 2}); x.filled(1); self.assertEqual(x.items, {1: 3})"
    assert signals(diagnose, shop, bad) == []


SEARCH = """\
def search(providers, topic):
    text, found = None, None
    for provider in providers:
        one = provider.get(topic)
        if one is not None:
            assert one
            text, found = one.upper(), one
    return text
"""


def test_a_loop_of_which_a_later_pass_overwrites_what_was_found_is_told(diagnose: Diagnose) -> None:
    bad = "self.assertEqual(search([{}, {1: 'a'}, {}, {1: 'b'}], 1), 'A')"
    assert signals(diagnose, SEARCH, bad) == [
        "text set at shop.py:7 search() by pass 2 (='A') and again by pass 4 (='B')"
    ]


@pytest.mark.parametrize(
    "shop",
    [
        SEARCH + "            break\n",
        SEARCH.replace("            text, found = one.upper(), one", "            text, found = one.upper(), one\n            break"),
        SEARCH.replace("if one is", "if text is None and one is"),
        SEARCH.replace("text", "last"),
        SEARCH.replace("one.upper()", "'same'"),
    ][1:],
    ids=["break", "read", "last", "same"],
)  # fmt: skip
def test_a_loop_that_ends_or_that_means_the_last_is_not_told(diagnose: Diagnose, shop: str) -> None:
    bad = "self.assertEqual(search([{}, {1: 'a'}, {}, {1: 'b'}], 1), 'C')"
    assert signals(diagnose, shop, bad) == []


ITERATOR = """\
def labels(layers):
    names = (one.upper() for one in layers)
    for name in names:
        if name == 'B':
            break
    return sorted(set().union(*names))

def totals(rows):
    numbers = map(int, rows)
    largest = max(numbers)
    return [one / largest for one in numbers]

def pairs(left, right):
    found = []
    right = filter(None, right)
    for one in left:
        for other in right:
            found.append((one, other))
    return found
"""


def test_an_iterator_that_is_read_again_is_told(diagnose: Diagnose) -> None:
    assert signals(diagnose, ITERATOR, "self.assertEqual(labels('aBc'), list('ABC'))") == [
        (
            "the generator names of shop.py:2 labels() was read in part at :3: for name in names:; "
            "read again at :6: return sorted(set().union(*names))"
        )
    ]
    chosen = ITERATOR.replace("set().union(*names)", "names) if layers else list(()")
    assert signals(diagnose, chosen, "self.assertEqual(labels('aBc'), list('ABC'))") == [
        (
            "the generator names of shop.py:2 labels() was read in part at :3: for name in names:; "
            "read again at :6: return sorted(names) if layers else list(())"
        )
    ]
    assert signals(diagnose, ITERATOR, "self.assertEqual(totals(['1', '2']), [0.5, 1])") == [
        (
            "the map numbers of shop.py:9 totals() was used up at :10: largest = max(numbers); "
            "read again at :11: return [one / largest for one in numbers]"
        )
    ]
    assert signals(diagnose, ITERATOR, "self.assertEqual(pairs([1, 2], [3]), [(1, 3), (2, 3)])") == [
        (
            "the filter right of shop.py:15 pairs() was used up at :17: for other in right:; "
            "read again at :17: for other in right:"
        )
    ]


@pytest.mark.parametrize(
    ("shop", "bad"),
    [
        (ITERATOR.replace("(one.upper() for one in layers)", "[one.upper() for one in layers]"), "labels('aBc')"),
        (ITERATOR.replace("map(int, rows)", "list(map(int, rows))"), "totals(['1', '2'])"),
        (ITERATOR.replace("            break", "            next(names)"), "labels('aBcd')"),
        (ITERATOR, "pairs([1], [3])"),
    ],
    ids=["list", "list of a map", "next", "once"],
)  # fmt: skip
def test_a_list_that_is_read_again_and_an_iterator_read_on_are_not_told(
    diagnose: Diagnose, shop: str, bad: str
) -> None:
    assert signals(diagnose, shop, f"self.assertEqual({bad}, 7)") == []


BUFFER = """\
class Buffer:
    def __init__(self):
        self.items = {}
        self.order = []
        self.heavy = []

    def put(self, key, size):
        self.items[key] = size
        self.order.append(key)
        if size > 9:
            self.heavy.append(key)

    def drop(self, key):
        del self.items[key]
        self.order.remove(key)

    def next(self):
        return self.heavy[0] if self.heavy else None
"""
USES = "one = Buffer(); one.put('a', 12); one.drop('a'); self.assertIsNone(one.next())"


def test_a_key_that_is_left_in_one_of_several_containers_is_told(diagnose: Diagnose) -> None:
    assert signals(diagnose, BUFFER, USES) == [
        (
            "'a' was removed from self.items, self.order at shop.py:15 Buffer.drop(), but not from self.heavy, "
            "where it had been put at shop.py:11 Buffer.put()"
        )
    ]


@pytest.mark.parametrize(
    ("shop", "bad"),
    [
        (BUFFER.replace("del self.items[key]", "self.heavy.clear(); del self.items[key]"), USES.replace("None(", "NotNone(")),
        (BUFFER.replace("del self.items[key]", "del self.items[key]; self.heavy.remove(key)"), USES.replace("None(", "NotNone(")),
        (BUFFER, USES.replace("one.next()", "one.items or 1")),
        (BUFFER, USES.replace("drop('a')", "put('b', 10); one.drop('b'); one.heavy.pop()")),
        (BUFFER.replace("if size > 9:", "self.mark(key)\n\n    def mark(self, key):\n        if key:"), USES),
    ],
    ids=["cleared", "removed", "not used", "taken by the test", "put by another call"],
)  # fmt: skip
def test_a_key_that_is_gone_or_came_by_itself_is_not_told(diagnose: Diagnose, shop: str, bad: str) -> None:
    assert not any("was removed from" in one for one in signals(diagnose, shop, bad))


STYLE = """\
class Style:
    def __init__(self):
        self.widths = []

def write(lines, style):
    style.widths.append(max(map(len, lines)))
    return " ".join(line.rjust(max(style.widths)) for line in lines)

def widen(style):
    style.widths.append(9)

class Writer:
    def __init__(self, style):
        style.widths.append(9)
"""
WRITES = "style = Style(); write(['abc'], style); self.assertEqual(write(['a'], style), 'a')"


def test_an_object_of_the_test_that_a_call_has_changed_is_told(diagnose: Diagnose) -> None:
    assert signals(diagnose, STYLE, WRITES) == [
        (
            "style, given at :6, was changed at shop.py:6 write(): style.widths.append(max(map(len, lines))); "
            "used again at :6"
        )
    ]


@pytest.mark.parametrize(
    "bad",
    [
        "style = Style(); self.assertEqual(write(['abc'], style), 'a')",
        "style = Style(); widen(style); self.assertEqual(style.widths, [])",
        "style = Style(); Writer(style); self.assertEqual(style.widths, [])",
        "self.assertEqual((write(['abc'], Style()), write(['a'], Style())), 'a')",
    ],
    ids=["used once", "a call for that", "constructor", "two objects"],
)
def test_an_object_that_is_given_to_be_changed_or_once_is_not_told(diagnose: Diagnose, bad: str) -> None:
    assert signals(diagnose, STYLE, bad) == []


OPTIONS_BY_NAME = """\
class Parser:
    def __init__(self):
        self.kept = set()
        self.values = {}

    def read(self, lines):
        for line in lines:
            name, value = line.split('=')
            self.kept.add(name)
            self.values[name.lower()] = value

    def is_kept(self, key):
        return key in self.kept

    def value(self, key):
        return self.values.get(key)

    def item(self, key):
        try:
            return self.values[key]
        except KeyError:
            return None

    def take(self, key):
        return self.values.pop(key, None)

PARSER = Parser()
PARSER.read(['NH=1'])
FIELDS = {'author.tag', 'title'}

def is_field(name):
    if name not in FIELDS:
        return False
    return True

def is_number(number, numbers=('1', '2')):
    return number in numbers
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            "PARSER.is_kept('nh')",
            (
                "'nh' was not found in self.kept at shop.py:13 Parser.is_kept(): return key in self.kept; "
                "it holds 'NH', put in at shop.py:9 Parser.read()"
            ),
        ),
        (
            "PARSER.value('NH')",
            (
                "'NH' was not found in self.values at shop.py:16 Parser.value(): return self.values.get(key); "
                "it holds 'nh', put in at shop.py:10 Parser.read()"
            ),
        ),
        (
            "PARSER.item('NH')",
            (
                "'NH' was not found in self.values at shop.py:20 Parser.item(): return self.values[key]; "
                "it holds 'nh', put in at shop.py:10 Parser.read()"
            ),
        ),
        (
            "PARSER.take(' nh')",
            (
                "' nh' was not found in self.values at shop.py:25 Parser.take(): return self.values.pop(key, None); "
                "it holds 'nh', put in at shop.py:10 Parser.read()"
            ),
        ),
        (
            "is_field('tag')",
            "'tag' was not found in FIELDS at shop.py:32 is_field(): if name not in FIELDS:; it holds 'author.tag'",
        ),
        (
            "is_field(b'title')",
            "b'title' was not found in FIELDS at shop.py:32 is_field(): if name not in FIELDS:; it holds 'title'",
        ),
        (
            "is_number(2)",
            "2 was not found in numbers at shop.py:37 is_number(): return number in numbers; it holds '2'",
        ),
        (
            "PARSER.is_kept('NH') and PARSER.values['NH']",
            (
                "'NH' was not found in PARSER.values at test_shop.py:6: self.assertTrue(PARSER.is_kept('NH') and PARSER.values['NH'…; "
                "it holds 'nh', put in at shop.py:10 Parser.read()"
            ),
        ),
    ],
    ids=["in", "get", "caught", "pop", "last part", "bytes", "number", "failure"],
)
def test_a_key_that_was_not_found_but_is_there_in_another_form_is_told(
    diagnose: Diagnose, call: str, told: str
) -> None:
    assert signals(diagnose, OPTIONS_BY_NAME, f"self.assertTrue({call})") == [told]


@pytest.mark.parametrize(
    ("shop", "call"),
    [
        (OPTIONS_BY_NAME, "PARSER.is_kept('NL')"),
        (OPTIONS_BY_NAME, "not PARSER.is_kept('NH')"),
        (OPTIONS_BY_NAME, "[PARSER.take('nh'), PARSER.take('nh')][1]"),
        (OPTIONS_BY_NAME, "PARSER.is_kept('x') or PARSER.read(['X=2'])"),
        (OPTIONS_BY_NAME, "PARSER.value('x') or PARSER.values.update({'X': 1})"),
        (OPTIONS_BY_NAME.replace("get(key)", "get(key) or self.values.get(key.lower())"), "PARSER.value('NH') == 2"),
        (OPTIONS_BY_NAME.replace("in self.kept", "in self.kept or key.upper() in self.kept"), "PARSER.is_kept('nh') == 2"),
        (OPTIONS_BY_NAME, "[PARSER.read(['Nh=3']), PARSER.is_kept('nh')][1]"),
        (OPTIONS_BY_NAME, "[PARSER.is_kept('x'), PARSER.kept.add('x')][0]"),
        (OPTIONS_BY_NAME, "[PARSER.kept.discard('NH'), PARSER.is_kept('nh')][1]"),
        (OPTIONS_BY_NAME.replace("{'author.tag', ", "{'author.tag', 'book.tag', "), "is_field('tag')"),
        (OPTIONS_BY_NAME, "is_number('1.')"),
        (OPTIONS_BY_NAME.replace("('1', '2')", "('a', 'b')"), "is_number('A')"),
        (OPTIONS_BY_NAME.replace("numbers=('1', '2')", "numbers='1.2'"), "is_number('2.1')"),
        (OPTIONS_BY_NAME.replace("{'author.tag', ", "{*map(str, range(2000)), "), "is_field('Title')"),
    ],
    ids=[
        "another key",
        "found",
        "taken out",
        "put in later",
        "perhaps put in later",
        "fallback",
        "both asked",
        "two forms held",
        "put in itself later",
        "removed",
        "two such names",
        "number",
        "letters",
        "text",
        "large",
    ],
)  # fmt: skip
def test_a_key_that_is_meant_or_comes_later_is_not_told(diagnose: Diagnose, shop: str, call: str) -> None:
    assert signals(diagnose, shop, f"self.assertTrue({call})") == []


SETTINGS = """\
class Source:
    def __init__(self, name, base=False, depth=1):
        self.name = name
        self.base = bool(name.startswith('/')) and base
        self.depth = depth or 10

def options(color=True, **more):
    more['color'] = color and False
    return more

def read():
    return Source('x', base=True)
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            "read().base",
            (
                "base=True was given at shop.py:12 read(), but self.base = False at shop.py:4 Source.__init__(): "
                "self.base = bool(name.startswith('/')) and base"
            ),
        ),
        (
            "Source('x', False, 0).depth == 0",
            (
                "depth=0 was given at test_shop.py:6, but self.depth = 10 at shop.py:5 Source.__init__(): "
                "self.depth = depth or 10"
            ),
        ),
        (
            "options(color=True)['color']",
            (
                "color=True was given at test_shop.py:6, but more['color'] = False at shop.py:8 options(): "
                "more['color'] = color and False"
            ),
        ),
    ],
    ids=["bool", "number", "item"],
)
def test_an_argument_that_is_kept_otherwise_is_told(diagnose: Diagnose, call: str, told: str) -> None:
    assert signals(diagnose, SETTINGS, f"self.assertTrue({call})") == [told]


@pytest.mark.parametrize(
    ("shop", "call"),
    [
        (SETTINGS.replace("bool(name.startswith('/')) and base", "base"), "not read().base"),
        (SETTINGS, "options()['color']"),
        (SETTINGS.replace("bool(name.startswith('/')) and base", "name.startswith('/')"), "read().base"),
        (SETTINGS.replace("= depth or", "= base; self.base = depth or"), "not read().base"),
        (SETTINGS.replace("depth or 10", "max(depth, 10)"), "Source('x', False, 0).depth == 0"),
        (SETTINGS.replace("depth or 10", "depth * 60"), "Source('x', False, 2).depth == 2"),
        (SETTINGS.replace("depth or 10", "10 if depth < 1 else depth"), "Source('x', False, 0).depth == 0"),
        (SETTINGS.replace("depth or 10", "base; self.base = base"), "not read().base"),
        (SETTINGS.replace("self.name = name", "self.name = name; base = base and name != 'x'"), "read().base"),
    ],
    ids=["same", "default", "another value", "set again", "limit", "unit", "compared", "right later", "set before"],
)  # fmt: skip
def test_an_argument_that_is_kept_or_limited_is_not_told(diagnose: Diagnose, shop: str, call: str) -> None:
    found = signals(diagnose, shop, f"self.assertTrue({call})")
    assert not any(" was given at " in one for one in found)


def test_no_signal_calls_code_of_the_objects_of_the_program(diagnose: Diagnose) -> None:
    shop = ODD + dedent("""\
            class Shop(Odd):
                pass

            def call(first, given=1, option=2):
                return [option is None]

            def use(items, option=None):
                found = None
                for item in items:
                    if item is not None:
                        found = item
                values = found
                [each for each in (values if items is None else [])]
                if items is None:
                    list(values); list(values)
                call(found, given=items[0])
                return look_up('key', found, name=True) is found is None

            class Key(str):
                def __eq__(self, other): raise RuntimeError("eq")
                def __hash__(self): return str.__hash__(self)

            def look_up(key, odd, name=True):
                given = {Key('KEY'): odd, 'other': odd}
                given['name'] = name and given
                odd = odd if key in given else given.get(key)
                return given.pop(key, odd)
            """)
    assert signals(diagnose, shop, "self.assertTrue(use([Shop(), Shop()], option=Shop()))") == [
        "argument never used: option=<Shop> in shop.py:20 use(), passed at test_shop.py:6",
        "argument never used: given=<Shop> in shop.py:17 call(), passed at shop.py:29 use()",
        "found set at shop.py:24 use() by pass 1 (=<Shop>) and again by pass 2 (=<Shop>)",
    ]


RULES = """\
class Rule:
    def __init__(self, text):
        self.text = text
        self.owner = None

class Style:
    def __init__(self, texts):
        self.rules = []
        self.fill(texts)

    def fill(self, texts):
        new = [Rule(text) for text in texts]
        for rule in self.rules:
            rule.owner = self
        self.rules = new
"""
BAD_RULES = "s = Style(['a']); self.assertIs(s.rules[0].owner, s)"


def test_a_skipped_store_of_an_attribute_that_is_read_unset_is_told(diagnose: Diagnose) -> None:
    (told,) = signals(diagnose, RULES, BAD_RULES)
    assert told == (
        "owner, read at test_shop.py:6, is None since shop.py:4 Rule.__init__(); "
        "shop.py:14 Style.fill() ran, but not its line that sets it: rule.owner = self"
    )


@pytest.mark.parametrize(
    "shop",
    [
        RULES.replace("in self.rules", "in ()").replace("rule.owner", "rule.other"),
        RULES.replace("self.owner = None", "self.owner = 5"),
        RULES.replace("self.fill(texts)", "self.rules = [Rule(text) for text in texts]"),
        RULES.replace("            rule.owner = self", "            self.owner = rule"),
        RULES.replace("self.rules:", "new:").replace("owner = self", "owner = None"),
    ],
    ids=["none", "set", "not called", "of another class", "run"],
)
def test_a_store_that_ran_or_is_of_another_function_or_class_is_not_told(
    diagnose: Diagnose, shop: str
) -> None:
    assert not any("not its line that sets it" in one for one in signals(diagnose, shop, BAD_RULES))


CATALOG = """\
class Row:
    def __init__(self, name, rank):
        self.name, self.rank = name, rank

def names(rows):
    rows.sort(key=lambda row: row.rank)
    return [row.name for row in rows]

def catalog(rows):
    other = sorted([3, 1])
    found = names(rows)
    keys = sorted(found)
    return [key for key in found if key in keys]
"""
UNSORTED = "self.assertEqual({}, {})".format(
    "catalog([Row('a', 2), Row('b', 1), Row('c', 3)])", "['a', 'b', 'c']"
)


def test_items_in_another_order_are_told_with_what_sorted_them(diagnose: Diagnose) -> None:
    (told,) = signals(diagnose, CATALOG, UNSORTED)
    assert told == (
        "the same items in another order; sorted at shop.py:12 catalog(): keys = sorted(found); "
        "shop.py:6 names(): rows.sort(key=lambda row: row.rank)"
    )


def test_lines_of_a_text_in_another_order_are_told(diagnose: Diagnose) -> None:
    shop = "def text(rows):\n    return '\\n'.join(sorted(rows, reverse=True))\n"
    (told,) = signals(diagnose, shop, "self.assertEqual(text(['a', 'b']), 'a\\nb')")
    assert told.startswith("the same lines in another order; sorted at shop.py:2 text(): return ")


@pytest.mark.parametrize(
    ("shop", "expected"),
    [
        (CATALOG, "['a', 'b', 'd']"),
        (
            CATALOG.replace("rows.sort(key=lambda row: row.rank)", "rows = rows[::-1]").replace(
                "sorted", "list"
            ),
            "['a', 'b', 'c']",
        ),
    ],
    ids=["other items", "not sorted"],
)
def test_other_differences_and_orders_that_nothing_sorted_are_not_told(
    diagnose: Diagnose, shop: str, expected: str
) -> None:
    rows = "catalog([Row('a', 2), Row('b', 1), Row('c', 3)])"
    found = signals(diagnose, shop, f"self.assertEqual({rows}, {expected})")
    assert not any("in another order" in one for one in found)


SUBTITLES = """\
class File:
    def __init__(self):
        self.rate = 0
        self.lines = 0

def read(text, rate=None):
    file = File()
    parse(file, text)
    file.rate = rate
    return file

def parse(file, text):
    for line in text.split():
        file.rate = float(line)
"""


def test_an_attribute_that_had_the_expected_value_before_is_told(diagnose: Diagnose) -> None:
    assert signals(diagnose, SUBTITLES, "self.assertEqual(read('24.5').rate, 24.5)") == [
        "rate had the expected 24.5, set at shop.py:14 parse(), until None was set at shop.py:9 read(): file.rate = rate"
    ]


@pytest.mark.parametrize(
    ("shop", "bad"),
    [
        (SUBTITLES, "self.assertEqual(read('24.5').rate, 23.0)"),  # it never had it
        (SUBTITLES, "self.assertEqual(read('24.5').rate, 0)"),  # a default
        (
            SUBTITLES.replace("file.rate = float(line)", "file.rate += 1"),
            "self.assertEqual(read('a b', 2).rate, 1)",
        ),
        (SUBTITLES, "file = read('24.5', 1.5); file.rate = 2.5; self.assertEqual(file.rate, 1.5)"),
    ],
)
def test_an_attribute_that_never_had_the_expected_value_or_counts_is_not_told(
    diagnose: Diagnose, shop: str, bad: str
) -> None:
    assert signals(diagnose, shop, bad) == []


def test_an_item_that_had_the_expected_value_before_is_told(diagnose: Diagnose) -> None:
    shop = """\
        def fill(places):
            places["b"]["rate"] = "right"
            for name in places:
                keep(places[name], "wrong")
            return places

        def keep(place, value):
            place["rate"] = value
        """
    bad = "self.assertEqual(fill({'a': {}, 'b': {}})['b']['rate'], 'right')"
    (found,) = signals(diagnose, shop, bad)
    assert found.startswith(
        "item 'rate' had the expected 'right', set at shop.py:2 fill(), until 'wrong' was set"
    )
    assert found.endswith(' at shop.py:8 keep(): place["rate"] = value')


@pytest.mark.parametrize(
    ("bad", "is_told"),
    [
        ("self.assertEqual([vars(read('24.5', 30.5))], [{'rate': 24.5, 'lines': 0}])", True),
        ("self.assertEqual([vars(read('24.5', 30.5))], [{'rate': 24.0, 'lines': 0}])", False),
    ],
)
def test_a_part_of_a_container_that_was_as_expected_before_is_told(
    diagnose: Diagnose, bad: str, is_told: bool
) -> None:
    told = "rate had the expected 24.5, set at shop.py:14 parse(), until 30.5 was set at shop.py:9 read(): file.rate = rate"
    assert signals(diagnose, SUBTITLES, bad) == ([told] if is_told else [])


STALE = """\
class Schema:
    def __init__(self):
        self.fields = {}
        self._keys = None

    @property
    def keys(self):
        if self._keys is None:
            self._keys = frozenset(name.lower() for name in self.fields)
        return self._keys

    def add(self, name):
        self.fields[name] = 1

def check(schema, name):
    return name in schema.keys
"""
STALE_TEST = "s = Schema(); s.add('A'); check(s, 'a'); s.add('B'); self.assertTrue(check(s, 'b'))"


KEPT = (
    "self._keys, computed at shop.py:9 Schema.keys(): self._keys = frozenset(name.lower() for name in self.fields), was read "
    "again at :10 as it was, after shop.py:13 Schema.add() had changed what it comes from: self.fields[name] = 1"
)


def test_a_kept_value_that_is_used_after_what_it_comes_from_has_changed_is_told(diagnose: Diagnose) -> None:
    assert signals(diagnose, STALE, STALE_TEST) == [KEPT]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.fields[name] = 1", "self.fields[name] = 1; self._keys = None"),
        ("if self._keys is None", "if len(self._keys or ()) < len(self.fields) - 1"),
        ("frozenset(name.lower() for name in self.fields)", "self.fields"),
        ("frozenset(name.lower() for name in self.fields)", "Names(self.fields)"),
        ("self.fields[name] = 1", "self.other = name"),
        ("if self._keys is None", "if True"),
        ("frozenset(name.lower() for name in self.fields)", "bool(self.fields)"),
    ],
)
def test_a_kept_value_that_follows_or_is_made_anew_is_not_told(
    diagnose: Diagnose, before: str, after: str
) -> None:
    names = (
        "class Names:\n    def __init__(self, names):\n        self.names = names\n    def __iter__(self):\n"
    )
    shop = STALE.replace(before, after) + "\n" + names + "        return iter(self.names)\n"
    test = STALE_TEST.replace("check(s, 'b')", "check(s, '')")
    assert not [one for one in signals(diagnose, shop, test) if "computed at" in one]


DERIVED = """\
class Number:
    def __init__(self, sign, digits):
        self.sign = sign
        self.digits = digits
        self.value: int = -int(digits) if sign == "-" else int(digits)

    def negate(self):
        self.sign = "-"

def load(number):
    return number.value
"""
DERIVED_TEST = "n = Number('+', '3'); n.negate(); self.assertEqual(load(n), -3)"


def test_a_value_that_a_constructor_computed_of_what_was_set_anew_is_told(diagnose: Diagnose) -> None:
    told = (
        '.value=3, computed at shop.py:5 Number.__init__(): self.value: int = -int(digits) if sign == "-" else int(digi…, was not '
        'computed again when .sign was set at shop.py:8 Number.negate(): self.sign = "-"; read at shop.py:11 load()'
    )
    assert signals(diagnose, DERIVED, DERIVED_TEST) == [told]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('self.sign = "-"', 'self.sign = "-"; self.value = -int(self.digits) + 1'),  # it was set anew
        ('self.sign = "-"', 'self.sign = "+"'),  # to what it was
        ('self.sign = "-"', 'self.other = "-"'),
        ('-int(digits) if sign == "-" else int(digits)', "int(digits)"),  # not of that
        ('-int(digits) if sign == "-" else int(digits)', '[digits, sign == "-"] and None or 3 * (digits != sign)')
    ],
)  # fmt: skip
def test_a_value_that_is_set_anew_or_computed_of_something_else_is_not_told(
    diagnose: Diagnose, before: str, after: str
) -> None:
    found = signals(diagnose, DERIVED.replace(before, after), DERIVED_TEST)
    is_computed_of_it = "digits != sign" in after
    assert any(".value=" in one for one in found) is is_computed_of_it
