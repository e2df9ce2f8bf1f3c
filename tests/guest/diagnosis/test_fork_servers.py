"""Fork servers: what a test does before the first call of a changed function is done once for all changes."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.guest.diagnosis.mutation.fork_server import Stops, fork
from tests.guest.diagnosis.conftest import Diagnose
from tests.guest.diagnosis.test_mutation import CART, CASE, HEAD, changes, mutation
from tests.guest.operations.conftest import State


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A file outside of the repository in which a test says what it runs."""
    return tmp_path / "log"


def saying(log: Path) -> str:
    """Source of `say(letter)`, which all processes write with: the file is open before any begins."""
    return f"import os\nlog = os.open({str(log)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)\ndef say(letter): os.write(log, letter)\n"


SAY = "say(b'%d ' % os.getppid())"
"""Says which process has forked this one: the supervisor, the one that tries changes, or a server."""


def test_what_a_test_does_before_is_done_once(diagnose: Diagnose, log: Path) -> None:
    tests = """\
    def setUp(self):
        say(b's')
    def test_bad(self):
        cart = Cart()
        say(b'm')
        self.assertEqual(cart.add('b').add('a').add('c').lines, ['b', 'c'])
    def test_good(self):
        self.assertEqual(Cart().lines, [])
"""
    files = {"say.py": saying(log), "shop.py": CART, "test_shop.py": "from say import say\n" + HEAD + tests}
    found = diagnose(files, CASE, mutate=True).mutation
    assert found is not None and found.problems == []
    said = log.read_text()
    assert found.tried > 20
    assert said.count("s") < 20, "the set-up is run by few processes"
    assert said.count("m") < found.tried - 10, "so is what comes before `add`"


ADD = "def add(a, b):\n    return a - b\n"
MENDED = (2, "with `+` in `a - b`", 0)
SHARED = {
    "a thread": (
        "import queue, threading\ngo = threading.Event()",
        "told = queue.Queue(); threading.Thread(target=lambda: told.put(go.wait() and 3), daemon=True).start()",
        "go.set(); n = told.get(timeout=9)",
    ),
    "an open file": ("", "file = open('three')", "n = int(file.read())"),
    "a pipe": (
        "import os",
        "reading, writing = os.pipe()\n        os.write(writing, b'3')",
        "n = int(os.read(reading, 1))",
    ),
    "a file without a name": (
        "import tempfile",
        "file = tempfile.TemporaryFile()\n        file.write(b'3')\n        file.seek(0)",
        "n = int(file.read())",
    ),
    "a file of the repository": (
        "import os",
        "open('made', 'w').close(); self.addCleanup(os.unlink, 'made')",
        "file = open('made', 'a+')\n        file.write('3')\n        file.seek(0)\n        n = int(file.read())",
    ),
    "a timer": (
        "import signal",
        "heard = []\n        signal.signal(signal.SIGALRM, lambda *_: heard.append(3))\n        signal.setitimer(signal.ITIMER_REAL, 0.3)",
        "while not heard: pass\n        n = heard[0]",
    ),
    "random numbers": (
        "import random",
        "random.seed(7)",
        "n = 3 if random.random() == random.Random(7).random() else 0",
    ),
}
"""Name -> imports, statements of a test before the first call of a function, and after it, which set `n` to 3."""


@pytest.mark.parametrize("shared", SHARED)
def test_what_processes_would_share_or_lack_is_there_in_each(
    diagnose: Diagnose, state: State, shared: str
) -> None:
    imports, before, after = SHARED[shared]
    test = f"{before}\n        add(0, 0)\n        {after}\n        self.assertEqual(add(2, n), 5)\n"
    tests = f"{imports}\n{HEAD}    def test_bad(self):\n        {test}"
    found = diagnose({"three": "3", "shop.py": ADD, "test_shop.py": tests}, CASE, mutate=True).mutation
    assert found is not None and found.problems == []
    assert MENDED in changes(found)
    assert not Path(state.workdir, "made").exists()


def test_the_program_may_replace_what_children_are_made_with(diagnose: Diagnose) -> None:
    tests = HEAD.replace(
        "import unittest", "import json, os, signal, socket, unittest\nfrom unittest import mock"
    )
    tests += "".join(
        f"    @mock.patch('{name}', side_effect=RuntimeError)\n"
        for name in (
            "json.dumps",
            "os.fork",
            "os.pipe",
            "signal.signal",
            "signal.setitimer",
            "socket.socketpair",
        )
    )
    tests += "    def test_bad(self, *mocks):\n        self.assertEqual(add(2, 3), 5)\n"
    tests += "        self.assertFalse(any(one.called for one in mocks))\n"
    found = diagnose({"shop.py": ADD, "test_shop.py": tests}, CASE, mutate=True).mutation
    assert found is not None and found.problems == []
    assert MENDED in changes(found)


def test_a_program_that_sees_its_callers_is_not_served(diagnose: Diagnose, log: Path) -> None:
    shop = """\
import sys

def add(a, b):
    if sys._getframe(1).f_code.co_name != 'test_bad':
        raise RuntimeError
    return a - b
"""
    tests = "    def test_bad(self):\n        say(b's')\n        self.assertEqual(add(2, 3), 5)\n"
    files = {"say.py": saying(log), "shop.py": shop, "test_shop.py": "from say import say\n" + HEAD + tests}
    found = diagnose(files, CASE, mutate=True).mutation
    assert found is not None and (6, MENDED[1], 0) in changes(found)
    assert log.read_text().count("s") > found.tried - 10, "each runs the test from its start"


def test_a_copy_of_a_function_stops_it_once(diagnose: Diagnose) -> None:
    tests = """\
    def test_bad(self):
        copied = types.FunctionType(add.__code__, vars(shop))
        copied(0, 0), copied(0, 0)
        self.assertEqual(add(2, 3), 5)
"""
    files = {"shop.py": ADD, "test_shop.py": "import types\nimport shop\n" + HEAD + tests}
    found = diagnose(files, CASE, mutate=True).mutation
    assert found is not None and found.problems == []
    assert MENDED in changes(found)


def test_a_change_that_passes_because_of_the_server_alone_is_not_told(diagnose: Diagnose) -> None:
    shop = """\
import sys

def caller():
    return sys._getframe(2).f_code.co_name

def f(n):
    return caller() if n > 0 else ''
"""
    tests = "    def test_bad(self):\n        self.assertEqual(f(1), 'call')\n"
    found = mutation(diagnose, shop, tests)
    assert found.tried > 0 and found.changes == []


@pytest.mark.parametrize(
    ("shop", "call", "change"),
    [
        ("def f(n):\n    yield n - 1\n", "list(f(1)), [2]", "with `+` in `n - 1`"),
        (
            "async def g(n):\n    return n - 1\n\nimport asyncio\n\ndef f(n):\n    return asyncio.run(g(n))\n",
            "f(1), 2",
            "with `+` in `n - 1`",
        ),
        (
            "def made(step):\n    def f(n, /, *rest, by=1, **more):\n        return n - by * step\n    return f\n\nf = made(1)\n",
            "f(1, 2, by=1, x=3), 2",
            "with `+` in `n - by * step`",
        ),
        (
            "class B:\n    def f(self, n):\n        return n\n\nclass D(B):\n    def f(self, n):\n        return super().f(n) - 1\n",
            "D().f(1), 2",
            "with `+` in `super().f(n) - 1`",
        ),
        (
            "import functools\n\n@functools.lru_cache(None)\ndef f(n):\n    return n - 1\n",
            "f(1), 2",
            "with `+` in `n - 1`",
        ),
        (
            "class C:\n    @property\n    def f(self):\n        return self.__n - 1\n    __n = 1\n",
            "C().f, 2",
            "with `+` in `self.__n - 1`",
        ),
    ],
)
def test_functions_of_all_kinds_are_changed_there(
    diagnose: Diagnose, log: Path, shop: str, call: str, change: str
) -> None:
    tests = (
        f"    def test_bad(self):\n        self.addCleanup(lambda: {SAY})\n        self.assertEqual({call})\n"
    )
    files = {"say.py": saying(log), "shop.py": shop, "test_shop.py": f"from say import *\n{HEAD}{tests}"}
    found = diagnose(files, CASE, mutate=True).mutation
    assert found is not None and change in {one.change for one in found.changes}
    assert len({*log.read_text().split()}) > 2 or "async" in shop


def f_plain(a: int, b: int = 2) -> Any:
    return a, b


def f_all(a: int, /, b: int, *rest: int, c: int, d: int = 4, **more: int) -> Any:
    return a, b, rest, c, d, more


def f_keywords(*, call: int, _: int = 1) -> Any:
    return call, _


def f_around() -> Callable[..., Any]:
    x, y = 1, 2
    return lambda z, *a: (x, y, z, a)


@pytest.mark.parametrize(
    ("function", "args", "keywords"),
    [
        (f_plain, (1,), {}),
        (f_plain, (1,), {"b": 5}),
        (f_all, (1, 2, 3, 4), {"c": 5, "e": 6}),
        (f_all, (1,), {"b": 2, "c": 3, "a": 9}),
        (f_keywords, (), {"call": 1}),
        (f_around(), (1, 2, 3), {}),
    ],
)
def test_a_function_before_which_it_stops_looks_and_is_called_as_before(
    function: Callable[..., Any], args: tuple[int, ...], keywords: dict[str, int]
) -> None:
    wanted, code, signature = function(*args, **keywords), function.__code__, inspect.signature(function)
    reached: list[int] = []

    class Here(Stops):
        def _reach(self, number: int) -> None:
            function.__code__ = code
            reached.append(number)

    servers = SimpleNamespace(groups=[[function]], theirs=[], ending=0)
    Here(servers, None, None, {}, keeps_random=True)
    made = function.__code__
    assert made is not code and inspect.signature(function) == signature
    assert inspect.getsource(made) == inspect.getsource(code)
    assert function(*args, **keywords) == wanted == function(*args, **keywords)
    assert reached == [0]


def test_a_child_goes_on_with_the_same_random_numbers() -> None:
    random.seed(3)
    reading, writing = os.pipe()
    if not fork(keeps_random=True):
        os.write(writing, repr(random.random()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        assert float(file.read()) == random.random()
    os.wait()
