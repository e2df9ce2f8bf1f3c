"""`watch`: the program stops where a value has changed, and tells which line did it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CART = """
    class Cart:
        def __init__(self):
            self.total = 0
            self.lines = []
            self.limits = {"a": [1]}

        def add(self, line, price):
            self.lines.append(line)
            self.total += price


    def fill(basket):
        basket.add("a", 3)
        basket.total = basket.total
        basket.limits["a"].append(2)


    def main():
        cart = Cart()
        other = cart
        fill(other)
        cart.lines = list(cart.lines)
        return cart.total


    main()
    print("done")
"""


def watches(answer: dict[str, Any]) -> list[str]:
    """The lines about watches in the text of a stop."""
    return [line for line in answer["text"].splitlines() if line.startswith("watch ")]


def place(answer: dict[str, Any]) -> tuple[str, int]:
    return answer["frame"]["function"], answer["frame"]["line"]


def test_an_attribute_is_watched_under_every_name_of_its_object(start: Any) -> None:
    program = start(CART, "b 20", "c")
    set_ = program.do("watch cart.total")
    assert set_["text"] == "Watch 1: cart.total = 0 (of this Cart, wherever it is changed)\n"
    stop = program.do("c")
    assert stop["reason"] == "watch"
    (text,) = watches(stop)
    assert text == (
        "watch 1: cart.total: 0 -> 3, changed by app.py:9 in add: `self.total += price`,"
        ' called from app.py:13 in fill: `basket.add("a", 3)`'
    )
    # Its last line has run, and its frame is still there.
    assert place(stop) == ("add", 9)
    assert program.do("p price")["text"] == "3\n"
    end = program.do("c")
    assert end["event"] == "end"  # the same value again is no change
    (notice,) = end["notices"]
    assert notice.startswith(
        ("watch 1 (cart.total) did not change again", "watch 1 ended: its object is gone")
    )
    assert program.finish() == 0


def test_changes_in_place_are_found_and_named(start: Any) -> None:
    program = start(CART, "b 20", "c", "watch cart.lines", "watch cart.limits")
    stop = program.do("c")
    assert place(stop) == ("add", 9)
    (text,) = watches(stop)
    assert text.startswith(
        "watch 1: cart.lines: [] -> ['a'] (in place: [0] = 'a'), changed by app.py:8 in add: `self.lines.append(line)`, called"
    )
    (text,) = watches(program.do("c"))
    assert text.startswith(
        "watch 2: cart.limits: {'a': [1]} -> {'a': [1, 2]} (in place: ['a'][1] = 2), changed by app.py:15"
    )
    stop = program.do("c")
    assert watches(stop)[0].startswith(
        "watch 1: cart.lines: ['a'] -> ['a'] (another object), changed by app.py:22 in main"
    )
    assert place(stop) == ("main", 23)
    assert (
        program.do("watch")["text"] == "1 cart.lines = ['a'], hit 2×\n2 cart.limits = {'a': [1, 2]}, hit 1×\n"
    )


CONTAINERS = """
    class Plain:
        pass

    class Slots:
        __slots__ = ("one", "two")

    def main():
        import collections
        numbers, names, pairs = [1, 2, 3], {"x"}, {"k": 1}
        deep = [[Plain()]]
        deep[0][0].field = 1
        slots, queue, data = Slots(), collections.deque([1]), bytearray(b"ab")
        slots.one = 1
        both = (numbers, 1)
        numbers[1] = 9
        names.add("y")
        names.discard("x")
        pairs["k"] = 2
        del pairs["k"]
        deep[0][0].field = 2
        slots.two = 5
        queue.append(2)
        data[0] = 0
        numbers = None
        return both

    main()
"""


def test_every_kind_of_container(start: Any) -> None:
    program = start(CONTAINERS, "b 15", "c")
    for name in ("both", "names", "pairs", "deep", "slots", "queue", "data", "numbers"):
        assert f"{name} = " in program.do(f"watch {name}")["text"], name
    found = {}
    stop = program.do("c")
    while stop["event"] == "prompt":
        for text in watches(stop):
            words = text.split("changed by app.py:")
            found.setdefault(words[1].split(" ")[0], []).append(words[0])
        stop = program.do("c")
    assert found == {
        "15": [
            "watch 1: both: ([1, 2, 3], 1) -> ([1, 9, 3], 1) (in place: [0][1] = 9 (was 2)), ",
            "watch 8: numbers: [1, 2, 3] -> [1, 9, 3] (in place: [1] = 9 (was 2)), ",
        ],
        "16": [found["16"][0]],
        "17": ["watch 2: names: " + found["17"][0][16:]],
        "18": ["watch 3: pairs: {'k': 1} -> {'k': 2} (in place: ['k'] = 2 (was 1)), "],
        "19": ["watch 3: pairs: {'k': 2} -> {} (in place: 2 removed), "],
        "20": [
            "watch 4: deep: [[<Plain field=1>]] -> [[<Plain field=2>]] (in place: [0][0].field = 2 (was 1)), "
        ],
        "21": [
            "watch 5: slots: <Slots one=1> -> <Slots one=1, two=5> (in place: .two = 5 (was <undefined>)), "
        ],
        "22": ["watch 6: queue: deque([1]) -> deque([1, 2]) (in place: [1] = 2), "],
        "23": ["watch 7: data: bytearray(b'ab') -> bytearray(b'\\x00b') (in place: [0] = 0 (was 97)), "],
        "24": ["watch 8: numbers: [1, 9, 3] -> None, "],
    }
    assert "'y' added" in found["16"][0] and "'x' removed" in found["17"][0]


LOCALS = """
    def count(limit):
        n = 0
        for i in range(limit):
            n += i
        del i
        return n

    count(4)
    count(2)
    last = 1
"""


def test_a_local_is_watched_until_its_frame_returns(start: Any) -> None:
    program = start(LOCALS, "b 2", "c", "cl 1", "b 9")
    assert program.do("watch n, n > 3")["text"] == "Watch 1: n = <undefined> if n > 3 (until count returns)\n"
    program.do("watch i")
    assert "watch 2: i: <undefined> -> 0, changed by app.py:3 in count" in program.do("c")["text"]
    program.do("unwatch i")
    stop = program.do("c")  # 1 and 3 don't satisfy the condition
    assert watches(stop)[0].startswith(
        "watch 1: n: 3 -> 6, changed by app.py:4 in count: `n += i`, called from app.py:8"
    )
    stop = program.do("c")
    assert stop["reason"] == "breakpoint"
    assert stop["notices"] == ["watch 1 ended: its frame has returned (n = 6)."]
    assert program.do("watch")["text"] == "No expression is being watched\n"
    assert program.do("c")["event"] == "end"


def test_undefined_is_a_value(start: Any) -> None:
    program = start(LOCALS, "b 5", "c", "watch i")
    assert watches(program.do("c"))[0].startswith(
        "watch 1: i: 3 -> <undefined>, changed by app.py:5 in count: `del i`"
    )


ATTRIBUTION = """
    class Box:
        value = 0

    box = Box()

    def set_and_return():
        box.value = 1
        return 2

    def number():
        return 3

    def steps():
        yield 1
        box.value = 5
        yield 2

    def fail():
        box.value = 6; raise ValueError

    def use():
        set_and_return()
        box.value = number()
        box.value = list(map(lambda each: each + 1, [number()]))[0]
        for _ in steps():
            pass
        try:
            fail()
        except ValueError:
            pass
        return box

    use()
    box.value = 7
    print("end")
"""


def test_the_line_that_changed_it_is_told_wherever_the_change_is_found(start: Any) -> None:
    program = start(ATTRIBUTION, "b 21", "c", "watch box.value")
    found = []
    stop = program.do("c")
    while stop["event"] == "prompt":
        found += [text.split(", called")[0] for text in watches(stop)]
        stop = program.do("c")
    assert found == [
        "watch 1: box.value: 0 -> 1, changed by app.py:7 in set_and_return: `box.value = 1`",
        "watch 1: box.value: 1 -> 3, changed by app.py:23 in use: `box.value = number()`",
        "watch 1: box.value: 3 -> 4, changed by app.py:24 in use: `box.value = list(map(lambda each: each + 1, [number()]))[0]`",
        "watch 1: box.value: 4 -> 5, changed by app.py:15 in steps: `box.value = 5`",
        "watch 1: box.value: 5 -> 6, changed by app.py:19 in fail: `box.value = 6; raise ValueError`",
        "watch 1: box.value: 6 -> 7, changed by app.py:34 in <module>: `box.value = 7`",
    ]
    assert stop["event"] == "end"


def test_what_code_outside_of_the_repository_changes_is_found_at_the_next_line(
    start: Any, tmp_path: Path
) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "lib.py").write_text(
        "def change(box):\n    box.value += 1\n\ndef call(function, box):\n    function()\n    box.value = 'called'\n"
    )
    text = """
        import sys
        sys.path.append("site-packages")
        import lib

        class Box:
            value = 0

        def callback():
            return 1

        def main(box):
            lib.change(box)
            lib.call(callback, box)
            return box

        main(Box())
    """
    program = start(text, "b 12", "c", "watch box.value")
    stop = program.do("c")
    assert place(stop) == ("main", 13)
    assert watches(stop)[0].startswith(
        "watch 1: box.value: 0 -> 1, changed by app.py:12 in main: `lib.change(box)` (in a call to code outside of the repository)"
    )
    stop = program.do("c")
    assert place(stop) == ("main", 14)
    assert (
        "changed by code outside of the repository (site-packages/lib.py:5 in call, or later)"
        in watches(stop)[0]
    )


def test_steps_and_breakpoints_report_a_change_in_the_same_stop(start: Any) -> None:
    program = start(CART, "b 20", "c", "watch cart.total", "b 16")
    stop = program.do("n")  # over `other = cart`
    assert (stop["reason"], watches(stop)) == ("step", [])
    stop = program.do("n")  # over the call, which changes it
    assert (stop["reason"], place(stop)) == ("watch", ("add", 9))
    stop = program.do("n")  # as at a return: on in the caller
    assert (stop["reason"], place(stop)) == ("step", ("fill", 14))
    program.do("b 15")
    program.do("!basket.total = 50")
    stop = program.do("c")  # what was typed at the prompt is not a change of the program
    assert (stop["reason"], place(stop), watches(stop)) == ("breakpoint", ("fill", 15), [])
    program.do("watch basket.limits")
    program.do("b 22")
    stop = program.do("r")
    assert place(stop) == ("fill", 15) and "watch 2: basket.limits" in stop["text"]
    stop = program.do("c")
    assert stop["reason"] == "breakpoint"
    program.do("watch cart.lines")
    stop = program.do("n")
    assert (stop["reason"], place(stop)) == ("watch", ("main", 23)) and "watch 3" in stop["text"]


def test_a_watch_does_not_keep_its_object_alive(start: Any) -> None:
    text = """
        class Box:
            value = 0

        def use():
            box = Box()
            box.value = 1
            return 2

        use()
        after = 1
        last = 2
    """
    program = start(text, "b 6", "c", "b 11", "watch box.value", "c")
    assert program.last["reason"] == "watch"
    stop = program.do("c")
    assert stop["notices"] == ["watch 1 ended: its object is gone (box.value = 1)."]


GUARDED = """
    import time

    class Box:
        def __init__(self):
            self.value, self.fails, self.slow, self.asked = 1, False, False, 0

        @property
        def double(self):
            self.asked += 1
            if self.fails:
                raise RuntimeError
            while self.slow:
                pass
            return [self.value * 2]

    def main():
        box = Box()
        box.value = 1
        box.value = 5
        box.fails = True
        box.fails = False
        box.slow = True
        box.value = 7
        print("end", box.value)

    main()
"""


def test_an_expression_may_run_code_of_the_program_raise_and_be_slow(start: Any) -> None:
    program = start(GUARDED, "b 18", "c", "b 10")
    assert program.do("watch box.double")["text"].startswith("Watch 1: box.double = [2] (of this Box")
    stop = program.do("c")  # not at the breakpoint in it, and an equal new list is no change
    assert (stop["reason"], place(stop)) == ("watch", ("main", 20))
    assert watches(stop)[0].startswith("watch 1: box.double: [2] -> [10], changed by app.py:19 in main")
    assert "watch 1: box.double: [10] -> <undefined>, changed by app.py:20" in program.do("c")["text"]
    assert "watch 1: box.double: <undefined> -> [10], changed by app.py:21" in program.do("c")["text"]
    end = program.do("c")
    assert end["event"] == "end"
    assert end["notices"] == [
        "watch 1 ended: its evaluation takes too long at each line (box.double = [10])."
    ]
    program.finish()
    assert "end 7" in program.text


def test_other_threads_are_watched_and_named(start: Any) -> None:
    text = """
        import threading

        class Box:
            value = 0

        def work(box, ready, go):
            ready.set()
            go.wait()
            box.value = 1
            return box

        def main():
            box, ready, go = Box(), threading.Event(), threading.Event()
            thread = threading.Thread(target=work, args=(box, ready, go), name="worker")
            thread.start()
            ready.wait()
            mark = 1
            go.set()
            thread.join()
            return mark

        main()
    """
    program = start(text, "b 17", "c", "watch box.value", "c")
    (text,) = watches(program.last)
    assert text.startswith("watch 1: box.value: 0 -> 1, changed by app.py:")
    assert "app.py:9 in work" in text or "worker is at app.py:" in text


def test_coroutines_are_watched(start: Any) -> None:
    text = """
        import asyncio

        class Box:
            value = 0

        async def change(box, value):
            await asyncio.sleep(0)
            box.value = value

        async def main():
            box = Box()
            mark = 1
            await asyncio.gather(change(box, 1), change(box, 2))
            return box

        asyncio.run(main())
    """
    program = start(text, "b 12", "c", "watch box.value")
    for before, after in ((0, 1), (1, 2)):
        text = f"watch 1: box.value: {before} -> {after}, changed by app.py:8 in change: `box.value = value`"
        assert program.do("c")["text"].startswith(text)


def test_paths_items_lengths_and_locations(start: Any) -> None:
    text = """
        import collections

        class Config:
            debug = False

        counts = collections.defaultdict(int)

        def main():
            rows, key = [{"n": 1}], "k"
            mark = 1
            Config.debug = True
            counts["x"] += 1
            rows[0]["n"] = 2
            rows.append(3)
            first, rows = rows, []
            first[0]["n"] = 3
            data = {"k": 1}
            data["k"] = 2
            key = None
            data["k"] = 3
            return key

        main()
    """
    program = start(text, "b 10", "c")
    for expression in ("Config.debug", 'counts["x"]', "rows[0]['n']", "len(rows)", "-l rows[0]['n']"):
        program.do(f"watch {expression}")
    assert program.do("p len(counts)")["text"] == "0\n"  # looking at an item adds none
    found = []
    for _ in range(6):
        found += [each.split(", changed")[0] for each in watches(program.do("c"))]
    assert found == [
        "watch 1: Config.debug: False -> True",
        'watch 2: counts["x"]: <undefined> -> 1',
        "watch 3: rows[0]['n']: 1 -> 2",
        "watch 5: rows[0]['n']: 1 -> 2",
        "watch 4: len(rows): 1 -> 2",
        "watch 4: len(rows): 2 -> 0",
        "watch 3: rows[0]['n']: 2 -> 3",
        "watch 5: rows[0]['n']: 2 -> 3",
    ]
    program.do("unwatch")
    program.do("b 18", "c")
    assert program.do("watch -l data[key]")["text"].startswith("Watch 6: data[key] = 1 (of this dict")
    assert "data[key]: 1 -> 2, changed by app.py:18" in program.do("c")["text"]
    assert "data[key]: 2 -> 3, changed by app.py:20" in program.do("c")["text"]


def test_what_is_refused_and_how_it_is_listed(start: Any) -> None:
    program = start(CART, "b 20", "c")
    assert program.do("watch")["text"] == "No expression is being watched\n"
    refused = program.do("watch cart.", "c")
    assert "*** Unable to watch cart.: SyntaxError" in refused["text"]
    assert refused["not_run"] == ["c"]
    assert program.do("unwatch 3")["text"] == "*** No watch 3\n"
    assert "watch [-l] [expression [, condition]]" in program.do("help watch")["text"]
    program.do("watch cart.total if cart.total > 100")
    assert program.do("watch")["text"] == "1 cart.total = 0 if cart.total > 100\n"
    assert program.do("unwatch cart.total")["text"] == ""
    assert program.do("c")["event"] == "end"


def test_variables_of_that_name_stay_variables(start: Any) -> None:
    program = start("watch = [1]\nlast = 1\n", "n")
    assert program.do("watch[0]")["text"] == "1\n"
    assert program.do("watch = 5")["text"] == ""
    assert program.do("p watch")["text"] == "5\n"
