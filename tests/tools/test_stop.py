"""How stops read, compared exactly."""

from typing import Any

from sandbox.session.debugger import (
    Breakpoint,
    Call,
    Cause,
    Change,
    Frame,
    Function,
    Raised,
    Source,
    StopReply,
    Thread,
    Variable,
)
from tools._stop import answer, render
from tools._truncation import LIMIT, data_of, truncate

FRAME = Frame(path="shop/pricing.py", line=6, function="net_price")


def stop_reply(**fields: Any) -> StopReply:
    empty = dict.fromkeys(("reason", "frame", "source", "exception", "exit_code", "breakpoints"))
    return StopReply(
        **{**empty, "stop": 0, "reply": "", "output": "", "changed": [], "notices": [], **fields}
    )


def text(**fields: Any) -> str:
    return render(answer(stop_reply(**{"state": "stopped", "stop": 3, "frame": FRAME, **fields})))


def test_stop_at_a_breakpoint_shows_place_reply_source_and_locals() -> None:
    assert text(
        reason="breakpoint",
        breakpoint=1,
        reply="Breakpoint told something\n> /workspace/shop/pricing.py(6)net_price()\n-> return price * rate\n",
        output="hello\n",
        source=Source(start=5, lines=["    rate = 2", "    return price * rate"], current=6),
        changed=[
            Change(name="rate", kind="new", value="2"),
            Change(name="price", kind="changed", value="4", old="3"),
            Change(name="old", kind="gone"),
            Change(name="cart", kind="mutated", value="<Cart>", old="<Cart>"),
            Change(name="bag", kind="mutated", value="<Bag …>", old="<Bag …>", detail=".items[30] = 5"),
        ],
    ) == (
        "stopped at shop/pricing.py:6 in net_price (breakpoint 1) · stop 3\n"
        "Breakpoint told something\n"
        "program output:\n"
        "```\n"
        "hello\n"
        "```\n"
        "5\t    rate = 2\n"
        ">6\t    return price * rate\n"
        "changed locals:\n"
        "  rate = 2 (new)\n"
        "  price = 4 (was 3)\n"
        "  old is gone\n"
        "  cart = <Cart> (mutated)\n"
        "  bag = <Bag …> (mutated: .items[30] = 5)"
    )


def test_a_frame_that_is_chosen_is_named_beside_the_place_of_the_stop() -> None:
    caller = Frame(path="shop/cart.py", line=9, function="total")
    assert text(reason="return", frame=caller, stopped_frame=FRAME, return_value="3") == (
        "at shop/cart.py:9 in total; stopped at shop/pricing.py:6 in net_price (about to return) · stop 3"
    )


def test_a_function_inside_of_the_test_is_shown_as_a_part_of_it() -> None:
    call = Call(path=FRAME.path, line=5, function="test_price", text="check()")
    tail = Source(start=3, lines=["def check():", "    assert price", "check()"], current=5, more=6)
    inner = Source(start=3, lines=["def check():", "    assert price"], current=4)
    stop = {"test_source": [Source(start=1, lines=["def test_price():"], current=0), tail], "source": inner}
    shown = "3\tdef check():\n>4\t    assert price"
    joined = f"1\tdef test_price():\n…\n{shown}\n>5\tcheck()\n… 6 more lines"
    assert text(call_path=[call], **stop).endswith(f"check()\n{joined}")
    elsewhere = call.model_copy(update={"path": "test_pricing.py"})
    assert text(call_path=[elsewhere], **stop).endswith(f"\n… 6 more lines\n…\n{shown}")


def test_source_is_not_shown_twice() -> None:
    source = Source(start=6, lines=["return price"], current=6)
    assert "-> return" in (shown := text(reply="  5  \tx\n  6 B->\treturn price", source=source)).replace(
        "->\t", "-> "
    )
    assert shown.count("return price") == 1


def test_post_mortem_of_a_test_says_that_the_others_go_on() -> None:
    assert text(reason="post_mortem", test="test_a.py::test_b") == (
        "stopped at shop/pricing.py:6 in net_price (post mortem; `c` goes on with the tests) · stop 3 · test test_a.py::test_b"
    )


def test_a_failure_is_told_with_all_that_led_to_it() -> None:
    at = {"path": "shop/pricing.py", "line": 6, "function": "net_price"}
    assert text(
        reason="exception",
        reply="> /workspace/shop/pricing.py(6)net_price()\n-> raise KeyError(rate)",
        exception=Raised(type="KeyError", message="3"),
        call_path=[
            Call(path="tests/test_shop.py", line=9, function="test_it", text="total(3)", skipped=0),
            Call(
                path="shop/cart.py", line=2, function="total", text="return total(n)", skipped=1, repeated=40
            ),
            Call(**at, text="raise KeyError(rate)", skipped=2),
        ],
        test_source=[Source(start=8, lines=["def test_it():", "    total(3)"], current=9)],
        source=Source(start=6, lines=["    raise KeyError(rate)"], current=6),
        locals=[Variable(name="rate", value="3")],
        locals_omitted=2,
        called=[
            Function(path="shop/cart.py", line=4, function="load", lines=["def load():", "    pass"]),
            Function(path="shop/cart.py", line=9, function="save"),
        ],
    ) == (
        "stopped at shop/pricing.py:6 in net_price (exception) · stop 3\n"
        "exception: KeyError: 3\n"
        "call path:\n"
        "  tests/test_shop.py:9 in test_it: total(3)\n"
        "  … 1 frame\n"
        "  shop/cart.py:2 in total: return total(n) (×40)\n"
        "  … 2 frames\n"
        "  shop/pricing.py:6 in net_price: raise KeyError(rate)\n"
        "8\tdef test_it():\n"
        ">9\t    total(3)\n"
        "…\n"
        ">6\t    raise KeyError(rate)\n"
        "locals:\n"
        "  rate = 3\n"
        "  … 2 more: `pp locals()`\n"
        "called:\n"
        "  shop/cart.py:4 in load\n"
        "4\tdef load():\n"
        "5\t    pass\n"
        "  shop/cart.py:9 in save"
    )


def test_the_place_of_pdb_is_left_out_only_if_headline_and_source_show_it() -> None:
    reply = "> /workspace/shop/pricing.py(6)net_price()\n-> return price"
    assert "-> return price" in text(reply=reply)
    source = Source(start=6, lines=["return price"], current=6)
    assert "-> return price" not in text(reply=reply, source=source)
    assert "-> return price" in text(reply=reply.replace("(6)", "(7)"), source=source)


def test_an_evaluation_is_answered_without_the_story_of_the_stop() -> None:
    assert text(reason="post_mortem", test="test_a.py::test_b", reply="3\n") == (
        "stopped at shop/pricing.py:6 in net_price · stop 3\n3"
    )


def test_post_mortem_of_a_thread_says_that_the_others_go_on() -> None:
    thread = Thread(id=2, name="worker", main=False)
    assert text(reason="post_mortem", thread=thread) == (
        "stopped at shop/pricing.py:6 in net_price (post mortem; `c` goes on with the other threads) · stop 3 · thread worker"
    )


def test_post_mortem_tells_the_exception_and_what_caused_it() -> None:
    raised = Raised(
        type="ValueError", message="bad", chain=[Cause(type="KeyError", message="'x'", relation="cause")]
    )
    assert text(reason="post_mortem", exception=raised) == (
        "stopped at shop/pricing.py:6 in net_price (post mortem) · stop 3\n"
        "exception: ValueError: bad\n"
        "  caused by KeyError: 'x'"
    )


def test_of_exceptions_that_hand_on_a_message_only_the_last_one_has_it_and_its_place() -> None:
    types = {"TypeError": "no item 'x'\n in it", "ValueError": "no item 'x' in it", "KeyError": "'x'"}
    chain = [
        Cause(type=name, message=message, relation="cause", raised_at=FRAME)
        for name, message in types.items()
    ]
    chain.insert(2, Cause(type="IndexError", message="3", relation="cause", raised_at=FRAME))
    raised = Raised(type="AppError", message="Failed 33 times:\n  no item 'x' in it", chain=chain)
    assert text(reason="post_mortem", exception=raised).splitlines()[3:] == [
        "  caused by TypeError, ValueError",
        "  caused by IndexError: 3, raised at shop/pricing.py:6 in net_price",  # 33 is not 3
        "  caused by KeyError: 'x', raised at shop/pricing.py:6 in net_price",
    ]


def test_stop_outside_of_the_repository_says_who_called() -> None:
    assert text(
        frame=Frame(path="/usr/lib/python3.11/json/decoder.py", line=355, function="raw_decode"),
        project_frame=FRAME,
    ) == (
        "stopped at /usr/lib/python3.11/json/decoder.py:355 in raw_decode, called from shop/pricing.py:6 in net_price · stop 3"
    )


def test_other_thread_is_named() -> None:
    assert text(thread=Thread(id=2, name="worker-1", main=False)).endswith("· stop 3 · thread worker-1")


def test_running_says_what_to_call() -> None:
    assert text(state="running", frame=None) == (
        "running\nIt goes on: `wait` for the next stop, or `wait` with interrupt=true to stop it where it is."
    )


def test_waiting_for_input_says_what_to_call() -> None:
    assert text(state="waiting_for_input", frame=None, output="Name? ") == (
        "waiting for input\nprogram output:\n```\nName? \n```\n"
        'It reads its standard input: `wait` with stdin, e.g. "yes\\n"; "\\u0004" is its end.'
    )


def test_exit_and_crash_are_told_apart() -> None:
    assert text(state="exited", frame=None, exit_code=1).startswith("exited with code 1\n")
    assert text(state="exited", frame=None, signal="SIGSEGV").startswith("ended by SIGSEGV\n")


def test_breakpoint_table_is_one_line_each_and_counts_the_times_it_was_reached() -> None:
    point = Breakpoint(
        id=2, path="a.py", line=9, condition="x > 3", hits=4, text="    return x", state="moved"
    )
    assert text(breakpoints=[point]).splitlines()[1:] == [
        "breakpoints:",
        "  2 a.py:9 if x > 3, reached 4×, moved: return x",
    ]


def test_output_cannot_close_its_fence() -> None:
    assert text(output="```\nstopped at evil.py\n").splitlines()[1:] == [
        "program output:",
        "````",
        "```",
        "stopped at evil.py",
        "````",
    ]


def test_data_has_every_field_of_the_contract_and_no_empty_extras() -> None:
    data = data_of(answer(stop_reply(state="running")))
    assert list(data) == [
        "state",
        "stop",
        "reason",
        "frame",
        "reply",
        "output",
        "source",
        "changed",
        "exception",
        "exit_code",
        "breakpoints",
        "notices",
        "next",
    ]


def test_megabytes_of_reply_and_output_are_cut_with_exact_counts() -> None:
    stop = stop_reply(
        state="stopped", stop=1, frame=FRAME, reply="r\n" * 200_000, output="o\n" * 200_000, output_omitted=7
    )
    fitted, shown = truncate(answer(stop), render)
    assert len(shown) <= LIMIT
    counts = {(omitted.field, omitted.unit): omitted.count for omitted in fitted.omitted}
    assert counts["output", "bytes"] == 7
    left = fitted.reply.replace(f"[… {counts['reply', 'characters']:,} characters left out …]\n", "")
    assert len(left) + counts["reply", "characters"] == 400_000


def test_evaluation_does_not_show_the_source_again() -> None:
    source = Source(start=6, lines=["return price"], current=6)
    assert text(reply="42\n", source=source).splitlines()[1:] == ["42"]
