"""Programs and command scripts whose text must be that of `python -m pdb`, byte for byte.

To add a case: a program that prints nothing to stdout, and commands that don't reach its end (the last is `q`).
"""

from __future__ import annotations

PROGRAMS = {
    "calls": '''
def add(a, b=2, *rest, key=None):
    """Docstring."""
    total = a + b
    for item in rest:
        total += item
    return total


class Box:
    size = 3

    def grow(self, by):
        self.size += by
        return self.size


box = Box()
first = add(1)
second = add(1, 2, 3, 4, key="k")
third = box.grow(second)
done = True
''',
    "errors": '''
def outer(n):
    try:
        inner(n)
    except ZeroDivisionError as error:
        reason = str(error)
    finally:
        closed = True
    return closed


def inner(n):
    return 1 / n


result = outer(0)
text = """two
lines"""
end = 1
''',
    "generators": """
def numbers(n):
    for i in range(n):
        yield i * i


def consume():
    found = []
    for value in numbers(3):
        found.append(value)
    squares = [x * x for x in found]
    return squares, lambda y: y + 1


values, plus = consume()
more = plus(2)
last = None
""",
    "asynchronous": """
import asyncio


async def fetch(n):
    await asyncio.sleep(0)
    return n * 2


async def main():
    a = await fetch(1)
    b = await fetch(a)
    return a + b


total = asyncio.run(main())
end = 1
""",
}

SCRIPTS = [
    ("calls", ["n", "n", "n", "s", "s", "a", "p total", "n", "n", "w", "r", "retval", "n", "p first", "q"]),
    (
        "calls",
        [
            "b add",
            "c",
            "p a, b",
            "c",
            "a",
            "l",
            "l",
            "l .",
            "ll",
            "u",
            "p second",
            "d",
            "unt",
            "unt 7",
            "w",
            "q",
        ],
    ),
    (
        "calls",
        [
            "b 7, item > 3",
            "b",
            "c",
            "b",
            "pp rest",
            "whatis total",
            "whatis add",
            "source add",
            "condition 1",
            "b",
            "q",
        ],
    ),
    ("calls", ["tbreak 14", "c", "p self.size", "p by", "b", "j 15", "w", "j 99", "n", "q"]),
    (
        "calls",
        [
            "b 6",
            "disable 1",
            "b",
            "enable 1",
            "ignore 1 2",
            "b",
            "cl 1",
            "b",
            "b 999",
            "b 1",
            "b 9",
            "cl 7",
            "q",
        ],
    ),
    ("calls", ["b add", "commands 1", "silent", "p a", "end", "c", "c", "b", "q"]),
    ("calls", ["b 7", "commands", "p item", "c", "b", "c", "p 1", "q"]),
    ("calls", ["b 8", "b nowhere", "b 8, total ==", "cl", "n", "cl", "y", "b", "q"]),
    (
        "calls",
        [
            "alias pi p %1",
            "pi 1 + 1",
            "alias",
            "alias pi",
            "unalias pi",
            "alias pi",
            "h p",
            "h nothing",
            "h",
            "q",
        ],
    ),
    (
        "calls",
        [
            "b 5",
            "c",
            "display total",
            "n",
            "n",
            "n",
            "display",
            "undisplay total",
            "undisplay nothing",
            "n",
            "q",
        ],
    ),
    ("calls", ["b 5", "c", "!b = 40", "p b", "n", "p total", "total", "total = 1;; p total", "q"]),
    ("calls", ["b 5", "c", "c", "debug add(3)", "s", "s", "n", "w", "c", "p a", "n", "q"]),
    (
        "calls",
        [
            "x = 3",
            "p x",
            "p undefined",
            "p 1 +",
            "!import os",
            "p os.sep",
            "p 'a;b'",
            "pp {'k': [1, 2]}",
            "q",
        ],
    ),
    ("calls", ["n", "", "", "l 3, 5", "l 3, 2", "l x", "ll", "args", "retval", "unt 3", "j", "d", "q"]),
    ("errors", ["b inner", "c", "n", "n", "n", "n", "n", "n", "p reason", "n", "n", "w", "q"]),
    ("errors", ["b 13", "c", "s", "s", "s", "s", "s", "s", "s", "q"]),
    ("errors", ["b outer", "c", "r", "n", "n", "p text", "q"]),
    ("generators", ["b numbers", "c", "n", "n", "p i", "n", "w", "c", "n", "n", "q"]),
    ("generators", ["b 9", "c", "s", "s", "s", "s", "s", "s", "s", "q"]),
    ("generators", ["b 11", "c", "p found", "n", "p squares", "n", "n", "n", "s", "s", "s", "s", "q"]),
    (
        "generators",
        ["b 11", "c", "p found", "b 12", "cl 12", "tbreak consume", "b", "until 12", "r", "n", "q"],
    ),
    ("asynchronous", ["b 5", "c", "p n", "n", "n", "n", "n", "n", "n", "q"]),
]

# Where pdb does better not to be followed: with a breakpoint in the file it stops inside of what `n` steps over,
# at an "Internal StopIteration". The stock engine does.
QUIRKS = [
    ("asynchronous", ["b 11", "c", "n", "p a", "n", "p b", "n", "q"]),
]
