"""How answers say that their source left something out."""

import pytest

from sandbox.session.results import Evaluation, ExecResult, TestResult
from sandbox.session.workspace import FileChange, Match, Matches
from tools._patch import changes
from tools._truncation import Omitted, truncate
from tools.bash import bash
from tools.bash import render as bash_text
from tools.eval_ import eval_
from tools.eval_ import render as eval_text
from tools.grep import grep
from tools.grep import render as grep_text

pytestmark = pytest.mark.anyio


class Answering:
    """A session that has one answer to everything."""

    def __init__(self, answer: object) -> None:
        self.workspace = self
        self.handle = "H"
        self._answer = answer

    async def run(self, *_: object, **__: object) -> object:
        return self._answer

    evaluate = search = run


async def test_missing_output_is_marked_where_it_is_missing() -> None:
    done = ExecResult(exit_code=0, output="first\nlast\n", omitted=1_000_000, gap=6)
    answer = await bash(Answering(done), "x")  # type: ignore[arg-type] - all that it uses of a session
    assert bash_text(answer) == (
        "exit code 0, output:\n```\nfirst\n[… 1,000,000 bytes were not kept …]\nlast\n```"
    )
    assert answer.omitted == [
        Omitted(field="output", count=1_000_000, unit="bytes", hint="They were not kept.")
    ]


async def test_failed_tests_that_are_not_listed_are_counted() -> None:
    done = Evaluation(
        exit_code=1,
        passed=250_000,
        failed=200_000,
        errors=1,
        tests=[TestResult(id="t::a", outcome="failed", message="assert 0")],
        counts={"passed": 250_000, "failed": 200_000, "error": 1},
    )
    answer = await eval_(Answering(done), lambda *_: None)  # type: ignore[arg-type] - as above
    _, text = truncate(answer, eval_text)
    assert text.startswith("200,000 failed, 1 error, 250,000 passed (exit code 1)\nFAILED t::a: assert 0\n")
    assert text.endswith("(left out: 200,000 items of tests. They are counted all the same.)")


async def test_a_search_that_was_ended_early_says_so_whatever_it_has_counted() -> None:
    match = Match(path="a.py", line=1, text="x")
    found = Matches(matches=[match], omitted=0, complete=False, searched=5000)
    _, text = truncate(await grep(Answering(found), "x"), grep_text)  # type: ignore[arg-type] - as above
    assert text.startswith("at least 1 match in 1 file:\n")
    assert text.endswith("\nThe search took too long and ended after 5,000 files: narrow `path`.")
    found = Matches(matches=[match], omitted=7, omitted_files=2, complete=False, searched=5000)
    _, text = truncate(await grep(Answering(found), "x"), grep_text)  # type: ignore[arg-type] - as above
    assert text.startswith("at least 8 matches in 3 files, 1 shown: max_results\n")
    assert "\nCounting ended after 5,000 files: there are at least so many." in text
    found = Matches(matches=[], complete=False, searched=5000)
    _, text = truncate(await grep(Answering(found), "x"), grep_text)  # type: ignore[arg-type] - as above
    assert text.startswith("No matches. The search took too long and ended after 5,000 files")
    found = Matches(matches=[match], omitted=0)
    _, text = truncate(await grep(Answering(found), "x"), grep_text)  # type: ignore[arg-type] - as above
    assert text == "1 match in 1 file:\na.py\n  1: x"


def test_a_file_too_large_for_the_patch_is_marked() -> None:
    files = [
        FileChange(path="a.py", kind="modified", added=1, removed=2),
        FileChange(path="big.bin", kind="added", omitted=True),
    ]
    assert changes(files, 2) == (
        "2 files changed:\n  a.py (modified, +1 -2)\n  big.bin (added, too large for the patch)"
    )


async def test_what_a_command_had_left_in_the_background_is_said_to_have_ended() -> None:
    done = ExecResult(exit_code=0, killed=2)
    text = bash_text(await bash(Answering(done), "x"))  # type: ignore[arg-type] - as above
    assert text.startswith(
        "exit code 0, no output\nnote: What it had left running in the background was ended"
    )
