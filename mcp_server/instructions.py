"""Instructions of the server for a model, about the tools that its client sees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mcp_server.profiles import Shown
from tools._advice import leave_out

_MANY = {
    "view": '`view` takes several names and short ranges ("b.py::Order.total, a.py:10-40")',
    "rewrite": "`rewrite` several edits",
    "pdb": "`pdb` several commands",
}
_STATES = (
    "States after `pdb` and `wait`: stopped (give pdb commands) · running (no stop within timeout_s: `wait`, or `wait` with "
    "interrupt=true) · waiting_for_input (`wait` with stdin) · exited (`c` or `run` starts anew) · not_started. "
    "Breakpoints survive restarts and edits. "
)
_ANSWERS = (
    "Paths are relative to the repository; lines count from 1. What is left out of long answers is told, with how to get it. "
    "Failing tests and crashing programs are answers; isError means that the call itself could not be done, and "
    "says what to do instead."
)


@lru_cache(maxsize=64)
def instructions(shown: Shown, place: str = "") -> str:
    """The text for a client with these tools; `place`: where files are worked on in place, without a copy."""
    steps = [f"{number}. {step}" for number, step in enumerate(filter(None, _steps(shown)), 1)]
    many = [text for name, text in _MANY.items() if shown.has(name)]
    parts = [
        _beginning(shown, place),
        "\n".join(["Workflow", *steps]) if steps else "",
        f"Ask for much in one call: {', '.join(many)}." if many else "",
        (leave_out(_STATES, shown.hidden) if shown.has("pdb") else "") + _ANSWERS,
        *(tool.instructions for tool in shown.tools.values()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _beginning(shown: Shown, place: str) -> str:
    debugger = " with a pdb process that lives between calls" if shown.has("pdb") else ""
    patch = "; `diff` gives the result as a patch" if shown.has("diff") else ""
    text = f"Debug Python in a sandbox: a private copy of a repository{debugger}. Nothing on the host is changed{patch}."
    if place:
        text = f"Debug Python in {place}{debugger}. There is no copy: its own files are changed, and stay so{patch}."
    if not shown.profile.rewrites:
        return text
    names = ", ".join(f"`{name}`" for name in shown.debugger)
    return f"{text}\n{names} answer only after {_count(shown.profile.rewrites)} that did not fix the tests."


def _count(rewrites: int) -> str:
    return "a rewrite" if rewrites == 1 else f"{rewrites} rewrites"


def _steps(shown: Shown) -> Iterator[str]:
    is_late = shown.profile.rewrites > 0
    if shown.has("start_session"):
        yield (
            "`start_session` (not needed when the server was started for one repository: the first call then opens it)."
        )
    if shown.has("diagnose") and not is_late:
        calls = " `trace` shows calls, or who changed an attribute, in one run." if shown.has("trace") else ""
        yield (
            "`diagnose` without arguments runs the tests, stops `pdb` at the first failure and tells where its wrong value "
            "came from; where a small change lets it pass and no other test fail, the cause is mostly there."
            f"{calls}"
        )
    elif shown.has("eval"):
        yield "`eval` runs the tests and tells how each one fails."
    yield from (_fix(shown), _debug(shown)) if is_late else (_debug(shown), _fix(shown))


def _debug(shown: Shown) -> str:
    if not shown.has("pdb"):
        return ""
    is_next = shown.has("diagnose") and not shown.profile.rewrites
    start, place = ("goes on from there (p, pp, w, u, d), or ", "elsewhere") if is_next else ("", "at a line")
    return (
        f'`pdb` {start}with entrypoint="pytest tests/test_x.py::test_y" and command="b pkg/mod.py:12\\nc" stops {place}; '
        "then s, n, r, unt, c."
    )


def _fix(shown: Shown) -> str:
    if not shown.has("rewrite"):
        return ""
    run = ' with run="tests"' if shown.has("eval") else ""
    sooner = ": it tells sooner than reading whether it is right" if run else ""
    if shown.profile.rewrites:
        return f"Read the code. `rewrite` the cause{run}."
    patch = "" if shown.has("diff") or not shown.has("close_session") else " `close_session` gives the patch."
    return f"`rewrite` the cause{run}{sooner}.{patch}"
