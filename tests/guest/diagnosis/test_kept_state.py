"""State that one call leaves to the next: the diagnosis names where it is written and read."""

from __future__ import annotations

from sandbox.session.diagnosis import Diagnosis
from tests.guest.diagnosis.conftest import Diagnose
from tools._diagnosis import render_diagnosis

HEAD = "import unittest\nfrom shop import *\n\nclass Case(unittest.TestCase):\n    def test_bad(self):\n"
CASE = "test_shop.Case.test_bad"
GLOBAL = "test_shop.Case.test_global"


def kept(found: Diagnosis) -> list[tuple[str, int, int, str]]:
    assert found.recording is not None, found.notes
    assert found.recording.problems == []
    return [(one.name, one.written.line, one.read.line, one.function) for one in found.recording.kept]


def test_an_attribute_that_is_set_by_its_name_and_put_back_is_not_told(diagnose: Diagnose) -> None:
    shop = """\
class Converter:
    def __init__(self):
        self.mode = 1

def convert(converter, text, name="mode"):
    old = converter.mode
    setattr(converter, name, 5)
    found = text * converter.mode
    setattr(converter, name, RESTORED)
    return found
"""
    tests = HEAD + (
        "        converter = Converter()\n        convert(converter, 'a')\n"
        "        self.assertEqual(convert(converter, 'b') * converter.mode, 'b')\n"
    )
    for restored, count in (("old", 0), ("7", 1)):
        found = diagnose({"shop.py": shop.replace("RESTORED", restored), "test_shop.py": tests}, CASE)
        assert len([name for name, *_ in kept(found) if name == "converter.mode"]) == count


def test_a_mode_that_a_converter_keeps(diagnose: Diagnose) -> None:
    shop = """\
class Converter:
    def __init__(self):
        self.upper = False

    def convert(self, text):
        if text.startswith("^"):
            self.upper = True
            text = text[1:]
        return text.upper() if self.upper else text

_converter = Converter()

def convert(text):
    return _converter.convert(text)

def convert_all(texts):
    return [convert(text) for text in texts]
"""
    tests = HEAD + "        self.assertEqual(convert_all(['^one', 'two']), ['ONE', 'two'])\n"
    found = kept(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert found == [("self.upper", 7, 9, "Converter.convert")]


def test_a_cache_behind_a_helper_names_the_function_that_is_called_again(diagnose: Diagnose) -> None:
    shop = """\
class Loader:
    def __init__(self):
        self.cache = {}

    def keep(self, name, text):
        self.cache[name] = text

    def load(self, folder, name):
        if name in self.cache:
            return self.cache[name]
        text = folder + "/" + name
        self.keep(name, text)
        return text
"""
    tests = HEAD + (
        "        loader = Loader()\n        loader.load('one', 'page')\n"
        "        self.assertEqual(loader.load('two', 'page'), 'two/page')\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert kept(found)[0] == ("self.cache['page']", 6, 10, "Loader.load")
    text = render_diagnosis(found)
    written = "shop.py:6 Loader.keep(): self.cache[name] = text   ('one/page')   in load(folder='one')"
    assert written in text
    assert "shop.py:10 Loader.load(): return self.cache[name]   in load(folder='two')" in text


def test_what_a_class_of_containers_keeps_inside_comes_after_what_is_kept_in_it(diagnose: Diagnose) -> None:
    shop = """\
class Cache:
    def __init__(self):
        self.values, self.newest = {}, None

    def __getitem__(self, key):
        value = self.values[key]
        self.touch(key)
        return value

    def __setitem__(self, key, value):
        self.values[key] = value

    def touch(self, key):
        if self.newest is None or key != self.newest:
            self.newest = key


class Loader:
    def __init__(self):
        self.cache = Cache()

    def load(self, folder, name):
        try:
            return self.cache[name]
        except KeyError:
            size = len(folder)
        self.cache[name] = size
        return size
"""
    tests = HEAD + (
        "        loader = Loader()\n        loader.load('one', 'page'), loader.load('one', 'page')\n"
        "        self.assertEqual(sum(map(loader.load, ['three'], ['page'])), 5)\n"
        "    def test_good(self):\n        self.assertEqual(Loader().load('one', 'page'), 3)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert kept(found)[0] == ("self.cache['page']", 27, 24, "Loader.load")
    assert "return self.cache[name]   in load(folder='three')" in render_diagnosis(found)


def test_options_that_a_call_writes_into_the_shared_ones(diagnose: Diagnose) -> None:
    shop = """\
class Page:
    def __init__(self):
        self.options = {"strict": True}

    def render(self, **options):
        found = self.options
        found.update(options)
        return found["strict"]
"""
    tests = HEAD + (
        "        page = Page()\n        page.render(strict=False)\n"
        "        self.assertEqual(page.render(), True)\n"
    )
    found = kept(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert ("found", 7, 6, "Page.render") in found


def test_construction_hand_over_and_counters_are_not_told(diagnose: Diagnose) -> None:
    shop = """\
class Order:
    def __init__(self, price):
        self.price = price
        self.count = 0

    def double(self):
        self.price = self.price * 2

    def total(self):
        self.count += 1
        return self.price + 1

def total(price):
    order = Order(price)
    order.double()
    order.total()
    return order.total()
"""
    tests = HEAD + "        total(1)\n        self.assertEqual(total(10), 20)\n"
    assert kept(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)) == []


def test_an_attribute_of_the_class_is_told_apart_from_those_of_instances(diagnose: Diagnose) -> None:
    shop = """\
class Prices:
    cache = {}
    limits: dict = {}

    def __init__(self, factor):
        self.factor = factor
        self.limits = {}

    def price(self, name):
        if name not in self.cache:
            self.cache[name] = len(name) * self.factor
        return self.cache[name]

    def limit(self, name):
        if name not in self.limits:
            self.limits[name] = self.price(name)
        return self.limits[name]
"""
    tests = HEAD + (
        "        twice = Prices(2)\n        twice.limit('tea')\n        twice.limit('tea')\n"
        "        self.assertEqual(Prices(3).price('tea'), 9)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert found.recording is not None
    shared = {one.name: one.shared_at for one in found.recording.kept}
    assert shared == {"self.cache['tea']": 2, "self.limits['tea']": 0}
    assert (
        "self.cache['tea'] (class attribute of :2, the same for all instances) written at"
        in render_diagnosis(found)
    )


def test_a_global_tells_who_keeps_the_object_with_the_state(diagnose: Diagnose) -> None:
    shop = """\
_converter = None

class Converter:
    upper = False

    def convert(self, text):
        if text.startswith("^"):
            self.upper = True
        return text.upper() if self.upper else text

def convert(text):
    global _converter
    if _converter is None:
        _converter = Converter()
    return _converter.convert(text)
"""
    tests = HEAD + "        convert('^one')\n        self.assertEqual(convert('two'), 'two')\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert kept(found) == [("self.upper", 8, 9, "Converter.convert")]
    assert "self.upper (of the object in _converter, set at shop.py:14 convert()) written at shop.py:8" in (
        render_diagnosis(found)
    )


def test_a_global_that_different_functions_write_and_read(diagnose: Diagnose) -> None:
    shop = """\
_kinds = ["a", "b"]

def remove(kind):
    _kinds.remove(kind)

class Reader:
    def __enter__(self):
        remove("a")
        return self

    def __exit__(self, *args):
        remove("b")
        _kinds.append("a")

def count():
    return sum(1 for kind in _kinds if kind)
"""
    tests = HEAD + (
        "        with Reader():\n            pass\n        self.assertEqual(count(), 2)\n"
        "    def test_good(self):\n        self.assertTrue(count())\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert ("_kinds", 13, 16, "") in kept(found)
    assert (
        '    by shop.py:13 Reader.__exit__(): _kinds.append("a")\n    by shop.py:7 Reader.__enter__()\n'
        in render_diagnosis(found)
    )


def test_a_global_written_by_a_helper_names_its_caller(diagnose: Diagnose) -> None:
    shop = """\
_kinds = ["a", "b"]

def remove(kind):
    _kinds.remove(kind)

class Reader:
    def close(self):
        remove("b")

def count():
    return len(_kinds)
"""
    tests = HEAD + "        Reader().close()\n        self.assertEqual(count(), 2)\n"
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert kept(found) == [("_kinds", 4, 11, "")]
    assert (
        "_kinds (a global) changed at shop.py:4 remove(): _kinds.remove(kind)\n"
        "    by shop.py:7 Reader.close()\n" in (render_diagnosis(found))
    )


def test_an_attribute_that_gets_a_value_of_another_type(diagnose: Diagnose) -> None:
    shop = """\
class Sorted(list):
    def append(self, item):
        super().append(item)
        self.sort()

class Queue:
    def __init__(self):
        self.items = Sorted()

    def put(self, item):
        self.items.append(item)

    def cancel(self, item):
        self.items = [one for one in self.items if one != item]

    def step(self, cancelled, *items):
        for item in items:
            self.put(item)
        if cancelled:
            self.cancel(cancelled)
        return self.items[0]
"""
    tests = HEAD + (
        "        queue = Queue()\n        queue.step(2, 1, 2)\n"
        "        self.assertEqual(queue.step(None, 5, 0), 0)\n"
    )
    text = render_diagnosis(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert "self.items (it was a Sorted) written at shop.py:14 Queue.cancel(): " in text


def test_functions_that_could_have_reset_it_are_told_though_they_did_not_run(diagnose: Diagnose) -> None:
    shop = """\
_kinds = ["a"]

class Basket:
    def __init__(self):
        self.seen = {}

    def clear(self):
        self.seen = {}

    def forget(self, name):
        self.seen.pop(name)

    def price(self, name, price):
        if name in self.seen:
            return self.seen[name]
        self.seen[name] = price
        return price

def remove(kind):
    _kinds.remove(kind)

def reset():
    global _kinds
    _kinds = ["a"]

def local():
    _kinds = []
    _kinds.append("b")
    return _kinds

def given(_kinds):
    _kinds.append("b")

def count():
    return len(_kinds)
"""
    tests = (
        HEAD
        + "        basket = Basket()\n        basket.price('a', 1)\n        self.assertEqual(basket.price('a', 2), 2)\n"
        + "    def test_global(self):\n        remove('a')\n        self.assertEqual(count(), 1)\n"
    )
    files = {"shop.py": shop, "test_shop.py": tests}
    for test, others in ((CASE, [("Basket.clear", 8), ("Basket.forget", 11)]), (GLOBAL, [("reset", 24)])):
        recording = diagnose(files, test).recording
        assert recording is not None
        assert [(one.function, one.line) for one in recording.kept[0].others] == others
    assert "    also changed by shop.py:24 reset()\n" in render_diagnosis(diagnose(files, GLOBAL))


def test_a_local_name_of_another_function_is_not_taken_for_state(diagnose: Diagnose) -> None:
    shop = """\
class Registry:
    def __init__(self):
        self.tables = {}

    def add(self, name, price):
        found = self.tables.setdefault("all", {})
        if name in found:
            return found[name]
        found[name] = price
        return price

def other():
    found = {}
    found["x"] = 1
    return found
"""
    body = "        one = Registry()\n        one.add('a', 1)\n        self.assertEqual(one.add('a', 2), 2)\n"
    recording = diagnose({"shop.py": shop, "test_shop.py": HEAD + body}, CASE).recording
    assert recording is not None
    assert [(one.name, one.others) for one in recording.kept] == [("found['a']", [])]


TABLES = """\
class Tables:
    def __init__(self, rows):
        self.rows, self.opened, self.count = rows, {}, 0

    def open(self, name):
        self.count += 1
        if name in self.opened:
            return self.opened[name]
        self.opened[name] = list(self.rows[name])
        return self.opened[name]

    def drop(self, name):
        self.rows[name] = []

    def rename(self, old, new):
        self.opened[new] = self.opened.pop(old)
"""


def test_a_method_that_should_have_dropped_what_is_kept_is_named(diagnose: Diagnose) -> None:
    tests = HEAD + (
        "        tables = Tables({'orders': [1]})\n"
        "        self.assertEqual(tables.open('orders'), [1])\n"
        "        tables.drop('orders')\n"
        "        self.assertEqual(tables.open('orders'), [])\n"
    )
    found = diagnose({"shop.py": TABLES, "test_shop.py": tests}, CASE)
    assert kept(found)[0] == ("self.opened['orders']", 9, 8, "Tables.open")
    assert "    not changed by shop.py:12 Tables.drop(), called since\n" in render_diagnosis(found)


def test_state_of_an_object_that_another_method_leaves_and_the_last_one_reads(diagnose: Diagnose) -> None:
    shop = """\
class Settings:
    def __init__(self):
        self.values, self.defaults = {}, []

    def validate(self):
        for name in ("host", "port"):
            self.fill(name)

    def fill(self, name):
        self.values[name] = 1
        self.defaults.append(name)

    def __setitem__(self, name, value):
        self.values[name] = value

    def write(self):
        out = []
        for name, value in self.values.items():
            if name in self.defaults:
                continue
            out.append(f"{name} = {value}")
        return out
"""
    tests = HEAD + (
        "        settings = Settings()\n        settings.validate()\n"
        "        self.assertEqual(settings.write(), [])\n"
        "        settings['port'] = 9\n"
        "        self.assertEqual(settings.write(), ['port = 9'])\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert kept(found)[0] == ("self.defaults", 11, 19, "")
    assert "    not changed by shop.py:13 Settings.__setitem__(), called since\n" in render_diagnosis(found)


def test_an_attribute_that_a_call_sets_back_is_not_kept(diagnose: Diagnose) -> None:
    shop = """\
class Writer:
    def __init__(self):
        self.plain, self.lines = True, 0

    def write(self, text):
        before = self.plain
        self.plain = False
        self.lines = text.count("x")
        self.plain = before
        return text if self.plain else None
"""
    tests = HEAD + (
        "        writer = Writer()\n        writer.write('a')\n        self.assertEqual(writer.write('b'), 'c')\n"
    )
    assert kept(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)) == []


def test_the_value_that_was_kept_is_told_with_the_one_before(diagnose: Diagnose) -> None:
    shop = """\
class Reader:
    def __init__(self):
        self.table = 66

    def read(self, text):
        if text[:1] == "^":
            self.table = 78
        return self.table
"""
    tests = (
        HEAD
        + "        reader = Reader()\n        reader.read('^')\n        self.assertEqual(reader.read('a'), 66)\n"
    )
    text = render_diagnosis(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE))
    assert "self.table written at shop.py:7 Reader.read(): self.table = 78   (78, before it 66)" in text


def test_a_write_that_repeats_the_value_is_no_change(diagnose: Diagnose) -> None:
    shop = """\
class Reader:
    def __init__(self):
        self.plain = True
        self.table = 66

    def read(self, text):
        self.plain = True
        if text[:1] == "^":
            self.table = 78
        elif text[:1] == "v":
            self.table = 78
        return self.table if self.plain else None
"""
    tests = HEAD + (
        "        reader = Reader()\n        reader.read('^')\n        reader.read('v')\n"
        "        self.assertEqual(reader.read('a'), 66)\n"
    )
    found = diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)
    assert [(name, written) for name, written, _, _ in kept(found)] == [("self.table", 9)]


def test_a_count_of_the_objects_of_a_class_is_less_suspect_and_told_without_what_was_added(
    diagnose: Diagnose,
) -> None:
    counted = """\
class Dummy:
    count = 0

    def __init__(self, name=None):
        self.name = make_name(name)

def make_name(name):
    number = Dummy.count
    Dummy.count += 1
    return f"dummy {number}" if name is None else name
"""
    assigned = counted.replace("count += 1", "count = number + 1")
    tests = HEAD + "        self.assertEqual([Dummy(), Dummy('a'), Dummy()][2].name, 'dummy 1')\n"
    found = [
        diagnose({"shop.py": shop, "test_shop.py": tests}, CASE).recording for shop in (counted, assigned)
    ]
    (count,), (number,) = [one.kept for one in found if one is not None]
    assert (count.name, count.value) == ("Dummy.count", "")
    assert (number.name, number.value) == ("Dummy.count", "2, before it 1")
    assert count.score < number.score


def test_what_a_function_sets_in_an_object_that_it_makes_is_not_kept(diagnose: Diagnose) -> None:
    shop = """\
class Model:
    pass

class Child(Model):
    pass

def make(name, base=None):
    model = Child() if base else Model()
    above = base.fields if base else []
    model.fields = [name, *above]
    return model
"""
    tests = HEAD + "        self.assertEqual(make('b', make('a')).fields, ['b'])\n"
    assert kept(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)) == []


def test_a_function_that_a_library_calls_after_another_is_not_called_by_it(diagnose: Diagnose) -> None:
    shop = """\
def read(name):
    found = {"name": name}
    found["schema"] = name.upper()
    return found

def build(found):
    made = {"of": found["name"]}
    made["schema"] = found["schema"]
    return made

def parse(names):
    return list(map(build, map(read, names)))
"""
    tests = HEAD + "        self.assertEqual([one['schema'] for one in parse('ab')], ['A', 'b'])\n"
    assert kept(diagnose({"shop.py": shop, "test_shop.py": tests}, CASE)) == []
