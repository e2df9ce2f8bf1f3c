"""Characters that would steer a terminal or mislead a reader."""

from __future__ import annotations

from typing import Any

import pytest

from tools._text import (
    Fold,
    fold_unexecuted,
    long_docstrings,
    number_folded,
    show_hidden,
    without_overwritten,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07\x9b31m\x7f\x00", r"\x1b[2J\x1b]0;title\x07\x9b31m\x7f\x00"),
        ("a \u202egnp.exe\u2066\u200f", r"a \u202egnp.exe\u2066\u200f"),
        ("a\u200b\ufeff\u2028b\U000e0041", r"a\u200b\ufeff\u2028b\U000e0041"),
        ("old\rnew\r\nnext\tcolumn\n", "old\\rnew\r\nnext\tcolumn\n"),
        ("ünïcödé € 日本 👩\u200d💻 نمی\u200cخواهم", "ünïcödé € 日本 👩\u200d💻 نمی\u200cخواهم"),
    ],
)
def test_hidden_characters_are_shown_escaped_and_letters_as_they_are(text: str, shown: str) -> None:
    assert show_hidden(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\r\n", "a\r\nb\r\n"),
        ("load:   0%\rload:  50%\rload: 100%\nend\n", "[… 2 overwritten …] load: 100%\nend\n"),
        ("\r 0%\r 50%\r100%\r\n", "[… 2 overwritten …] 100%\r\n"),
        ("\r100%", "100%"),
        ("\r\r\n", "\r\r\n"),
        ("", ""),
    ],
)
def test_of_a_line_that_was_overwritten_the_last_state_is_shown(text: str, shown: str) -> None:
    assert without_overwritten(text) == shown


class Counted(list[str]):
    """Lines that count how often one is looked at."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1 if isinstance(index, int) else len(range(*index.indices(len(self))))
        return super().__getitem__(index)


@pytest.mark.parametrize("piece", [[":", ""], ["d:", '"""', *"x" * 8, '"""'], ["d:", '"""', "e:", "'''"]])
def test_docstrings_are_found_by_a_few_looks_at_each_line(piece: list[str]) -> None:
    lines = Counted(piece * 1000)
    folds = list(long_docstrings(lines))
    assert lines.looks < 8 * len(lines)
    assert len(folds) == (1000 if len(piece) > 4 else 0)


def test_folds_that_overlap_are_left_out() -> None:
    blocks = [(1, 4), (2, 3), (3, 9), (5, 6), (6, 4), (8, 99)] + [(5, 6)] * 1000
    assert fold_unexecuted(blocks, 1, 10, [range(1, 3), range(7, 9)]) == [
        Fold(range(1, 3)),
        Fold(range(4, 6)),
        Fold(range(7, 9), is_docstring=True),
    ]
    lines = list("abcdefgh")
    shown = number_folded(lines, 1, [Fold(range(1, 5)), Fold(range(2, 3)), Fold(range(6, 20))])
    assert shown.split("\n") == ["1\ta", "… lines 2-5 not run", "6\tf", "7\tg", "8\th"]
