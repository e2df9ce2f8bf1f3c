"""Matches as text, and what of them is left out where characters run out."""

from __future__ import annotations

from sandbox.session.workspace import Match
from tools._truncation import LIMIT, truncate
from tools.grep import GrepAnswer, render


def answer(matches: list[Match]) -> GrepAnswer:
    return GrepAnswer(matches=matches, total=len(matches), total_files=1, given=len(matches))


def test_context_of_neighbours_is_one_block_and_gaps_are_marked() -> None:
    matches = [
        Match(path="a.py", line=3, text="x3", before=["2"], after=["4"]),
        Match(path="a.py", line=5, text="x5", after=["6"]),
        Match(path="a.py", line=9, text="x9", before=["8"]),
    ]
    assert render(answer(matches)) == (
        "3 matches in 1 file:\na.py\n  2- 2\n  3: x3\n  4- 4\n  5: x5\n  6- 6\n  --\n  8- 8\n  9: x9"
    )


def test_context_is_dropped_before_matches() -> None:
    lines = ["y" * 60] * 5
    matches = [Match(path="a.py", line=20 * n, text=f"x{n}", before=lines, after=lines) for n in range(1, 10)]
    cut, text = truncate(answer(matches), render, data=False)
    assert len(text) <= LIMIT
    assert text.startswith("9 matches in 1 file:\n") and len(cut.matches) == 9
    kept = {(len(match.before), len(match.after)) for match in cut.matches}
    assert kept == {(3, 3)}
    assert "(left out: 36 lines of context. Ask for less `context` or fewer files.)" in text


def test_matches_that_are_not_shown_for_want_of_characters_are_counted_as_found() -> None:
    matches = [Match(path="a.py", line=n, text="x" * 300, before=["y" * 300]) for n in range(1, 31)]
    cut, text = truncate(answer(matches), render, data=False)
    shown = len(cut.matches)
    assert 5 < shown < 15
    assert text.startswith(
        f"30 matches in 1 file, {shown} shown: characters ran out\nnot shown: a.py {30 - shown} (lines {shown + 1}-30)\n"
    )
    assert not any(match.before for match in cut.matches)


def test_files_with_matches_that_are_not_shown_are_named_and_bounded() -> None:
    matches = [Match(path=f"{'d' * 200}/{n}.py", line=7, text="x" * 100) for n in range(60)]
    cut, text = truncate(answer(matches), render)
    assert len(text) <= LIMIT
    shown = len(cut.matches)
    left = 60 - shown - 8
    assert text.split("\n")[1].endswith(f"/{shown + 7}.py 1 (line 7), {left} more files")
    assert cut.not_shown[0].endswith(f"d/{shown}.py 1 (line 7)") and len(cut.not_shown[0]) < 120


def test_as_many_lines_of_context_are_kept_as_fit_and_the_nearest_of_them() -> None:
    match = Match(path="a.py", line=5, text="hit", before=["far", "near"], after=["near", "far", "farther"])
    whole = GrepAnswer(matches=[match, match], total=2, total_files=1)
    kept = [short.matches[0] for short in map(whole.shorten, range(40, 240)) if short.matches]
    sizes = [(len(one.before), len(one.after)) for one in kept]
    assert sorted(set(sizes)) == [(0, 0), (1, 1), (2, 2), (2, 3)]
    assert sizes == sorted(sizes)
    assert all(one.before[-1:] in ([], ["near"]) and one.after[:1] in ([], ["near"]) for one in kept)
