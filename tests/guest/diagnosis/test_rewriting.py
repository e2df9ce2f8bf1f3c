"""Rewritten code does as the code itself, and what is recorded of it is true."""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import traceback
from typing import Any

import pytest

from sandbox.guest.diagnosis.events import Events
from sandbox.guest.diagnosis.recorder import catch_nothing
from sandbox.guest.diagnosis.rewriting import CAUGHT, ENTER, RECORD, Rewriter
from sandbox.guest.diagnosis.slicing import Slice

PROGRAMS = {
    "generators": """
def g(n):
    for i in range(n):
        got = yield i
    return n
def h():
    n = yield from g(3)
    yield n
print(list(h()))
""",
    "recursion": """
def f(n):
    return 1 if n < 2 else n * f(n - 1)
print(f(10))
""",
    "closures": """
def counter():
    n = 0
    def add(k=1):
        nonlocal n
        n += k
        return n
    return add
a, b = counter(), counter()
a(); a(5); b()
print(a(), b())
""",
    "classes": """
class A:
    names = ['x']
    __slots__ = ('x', 'y')
    def __init__(self, x, *, y=2):
        self.x, self.y = x, y
class B(A):
    __slots__ = ()
    def __init__(self):
        super().__init__(1)
    @property
    def both(self): return self.x + self.y
print(B().both, B.names, [n for n in B.names])
""",
    "private_names": """
class A:
    def __init__(self):
        self.__x = 1
    def get(self, __y=3):
        z = self.__x + __y
        return z
print(A().get(), vars(A()))
""",
    "comprehensions": """
k = 3
print([i * j for i in range(k) for j in range(i) if j], {i: k for i in 'ab'}, {i % 2 for i in range(5)}, sum(i for i in range(k)))
""",
    "targets": """
a = [0, 0, 0]
a[1], *b, a[2] = 1, 2, 3, 4
a[0] += 5
a[1:2] = [7, 8]
d = {}
d['x'] = d['y'] = a
del d['x'], a[0]
print(a, b, d)
""",
    "calls": """
def f(a, b=2, *c, d, e=5, **k):
    return a, b, c, d, e, k
print(f(1, *[2, 3], d=4, **{'x': 1}), (lambda x, y=1: x + y)(3))
""",
    "walrus": """
if (n := 3) > 2 and [m := n, m]:
    print(n, m)
""",
    "with": """
import contextlib
@contextlib.contextmanager
def c():
    try:
        yield 5
    finally:
        print('end')
def f():
    with c() as x:
        return x
print(f())
""",
    "exceptions": """
def f(x):
    try:
        return 1 / x
    except ZeroDivisionError as exc:
        return str(exc)
    finally:
        print('f')
print(f(0), f(2))
""",
    "loops": """
for i in range(5):
    if i == 1:
        continue
    if i == 3:
        break
else:
    print('no')
while i:
    i -= 1
else:
    print('yes', i)
""",
    "look_ups": """
class Odd:
    def __contains__(self, key): return key == 'odd'
class A:
    names = {'x': [1]}
    odd = Odd()
    def __init__(self, key):
        self.__kept = [key]
        self.has = key in self.__kept, 'odd' in self.odd, (n := 2) not in self.names['x'], n
def g(kept=(1,)):
    while (yield (yield 1) in kept):
        pass
asked = g()
print(A('x').has, [k for k in 'xy' if k in A.names], 1 in [1] in [[1]], 'a' not in 'abc')
print(next(asked), asked.send(1), asked.send(2))
'x' in 5
""",
    "f_strings": """
x = [1]
print(f'{x[0]!r:>{x[0] + 3}} {x}')
""",
    "globals": """
n = 1
def f():
    global n
    n += 1
    return globals()['n']
print(f(), n)
""",
    "docstrings": """
'module'
def f():
    'doc'
print(f.__doc__, __doc__)
""",
    "async": """
import asyncio
async def g():
    for i in (1, 2):
        yield i
async def f():
    return [i async for i in g()], await asyncio.sleep(0, 3)
print(asyncio.run(f()))
""",
    "an_error": """
def f(x):
    y = [x,
         x.missing]
    return y

f(
    3
)
""",
    "an_error_in_a_method": """
class A:
    def f(self):
        self.x = 1
        return self.x + self.y
A().f()
""",
}


def run(tree: ast.Module, names: dict[str, Any]) -> str:
    """All that a program prints, its error included."""
    out = io.StringIO()
    scope = {"__name__": "program", "__builtins__": {**vars(builtins), **names}}
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(tree, "program.py", "exec"), scope)
        except Exception as exc:
            places = [
                (frame.name, frame.lineno)
                for frame in traceback.extract_tb(exc.__traceback__)
                if frame.filename == "program.py"
            ]
            print(type(exc).__name__, exc, places)
    return out.getvalue()


def recorded(source: str) -> tuple[str, Events]:
    """Output of the rewritten program, and its events."""
    rewriter, log = Rewriter(), list[Any]()

    def record(site: int, frame: int, value: Any) -> Any:
        log.extend((site, frame, value))
        return value

    def enter(site: int, *parameters: Any) -> int:
        frame = rewriter.new_frame()
        log.extend((site, frame, None))
        for number, value in enumerate(parameters, site + 1):
            log.extend((number, frame, value))
        return frame

    tree = ast.parse(source)
    rewriter.rewrite(tree, "program.py")
    return run(tree, {RECORD: record, ENTER: enter, CAUGHT: catch_nothing}), Events(log, rewriter)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rewritten_code_does_the_same(name: str) -> None:
    output, events = recorded(PROGRAMS[name])
    assert output == run(ast.parse(PROGRAMS[name]), {})
    assert len(events)


def test_key_and_container_of_a_look_up_are_recorded() -> None:
    source = "c, k = {'a': 1}, 'b'\nk in c; 'a' in c; c.get(k[:1]); c.pop('d', None)"
    _, events = recorded(source)
    asked = [event for event in range(len(events)) if events.site(event).line == 2]
    known = [events.key_of(event) for event in asked if events.value_of[event] == {"a": 1}]
    assert known == [(True, "b"), (True, "a"), (True, "b"), (True, "d")]


def test_the_whole_slice_has_all_that_a_value_is_made_of() -> None:
    lines = ["a = 1000", "b = 2000", "c = 3000", "p = [a, b]", "p.append(c)", "q = p[2] + len(p)"]
    _, events = recorded("\n".join(lines))
    start = len(events) - 1
    way = Slice(events, [(0, start)], 1000)
    found = {events.site(event).line for event in way.distance}
    assert found == {1, 2, 3, 4, 5, 6}
