"""Characters that would steer a terminal or mislead a reader."""

from __future__ import annotations

import pytest

from tools._text import show_hidden


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
