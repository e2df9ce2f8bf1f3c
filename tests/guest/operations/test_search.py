from __future__ import annotations

import os
import re
import threading
import time

import pytest

from sandbox.guest.supervisor.errors import GuestError
from sandbox.guest.supervisor.files import search
from sandbox.guest.supervisor.files.match_cost import variable_repeats
from sandbox.guest.supervisor.files.required_text import required_texts
from sandbox.guest.supervisor.files.workspace import workspace_of
from tests.guest.operations.conftest import OPS, Guest


def found(guest: Guest, pattern: str, **args: object) -> list[tuple[str, int, str]]:
    return [
        (match["path"], match["line"], match["text"])
        for match in guest.ask("files.search", pattern=pattern, **args)["matches"]
    ]


def test_matches_come_in_the_order_of_paths_with_their_lines(guest: Guest) -> None:
    guest.write({"b.py": "x = 1\r\ny = 2\r\n", "a/c.py": "y\nx = 3", "d.bin": b"x = 1\0"})
    answer = guest.ask("files.search", pattern=r"^x = \d$")
    assert [(match["path"], match["line"], match["text"]) for match in answer["matches"]] == [
        ("a/c.py", 2, "x = 3"),
        ("b.py", 1, "x = 1"),
    ]
    assert (answer["omitted"], answer["complete"], answer["skipped"]) == (0, True, 1)


def test_literal_text_and_case(guest: Guest) -> None:
    guest.write({"a.py": "f(x)[0]\nF(X)[0]\nfx0\n"})
    assert [line for _, line, _ in found(guest, "f(x)[0]", regex=False)] == [1]
    assert [line for _, line, _ in found(guest, "f(x)[0]", regex=False, ignore_case=True)] == [1, 2]
    assert [line for _, line, _ in found(guest, r"F\(", regex=True, ignore_case=True)] == [1, 2]


def test_what_is_left_out_is_counted_exactly(guest: Guest) -> None:
    guest.write({f"f{i}.txt": "hit\nmiss\nhit\n" for i in range(50)})
    answer = guest.ask("files.search", pattern="hit", max_results=7)
    assert len(answer["matches"]) == 7
    assert (answer["omitted"], answer["complete"]) == (93, True)


def test_context_lines_stop_at_the_ends_of_the_file(guest: Guest) -> None:
    guest.write({"a.txt": "1\n2\nhit\n4\n"})
    (match,) = guest.ask("files.search", pattern="hit", context=3)["matches"]
    assert (match["before"], match["after"]) == (["1", "2"], ["4"])


def test_no_line_is_in_the_context_of_two_matches(guest: Guest) -> None:
    guest.write({"a.txt": "".join(f"{n}{' hit' * (n in (3, 5, 8, 14))}\n" for n in range(1, 20))})
    matches = guest.ask("files.search", pattern="hit", context=2)["matches"]
    shown = [(match["before"], match["line"], match["after"]) for match in matches]
    assert shown == [
        (["1", "2"], 3, ["4"]),
        ([], 5, ["6", "7"]),
        ([], 8, ["9", "10"]),
        (["12", "13"], 14, ["15", "16"]),
    ]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("total", [1, 4, 6, 7, 9]),
        ("Order.total|Cart", [1, 4, 6, 7, 9, 10]),
        ("class Cart", [10]),
        ("tot\\w+", [1, 4, 6, 7, 9, 11]),
        ("tota", []),
    ],
)
def test_definitions_are_lines_that_define_the_name(guest: Guest, pattern: str, lines: list[int]) -> None:
    source = (
        "total = 1\nprint(total)\ntotal == 2\nclass total: pass\ntotal += 1\n    async def total(self):\n"
        "  self.total: int = 3\nf(total=3)\na, total, b = 1, 2, 3\nclass Cart:\ntotals = 3\n"
    )
    guest.write({"a.py": source, "a.js": source})
    assert [line for _, line, _ in found(guest, pattern, definitions=True)] == lines
    assert len(found(guest, "Cart", definitions=True, glob="*.{py,js}")) == 2


def test_what_is_over_the_number_is_counted_in_files_and_lines(guest: Guest) -> None:
    guest.write({f"f{i}.txt": "hit hit\nmiss\nhit" for i in range(5)})
    for pattern in ("hit", "hi[t]", "h.t"):
        answer = guest.ask("files.search", pattern=pattern, max_results=3)
        assert (len(answer["matches"]), answer["omitted"], answer["omitted_files"]) == (3, 7, 3)
        assert (answer["complete"], answer["searched"]) == (True, 5)


def test_a_search_in_too_many_files_gives_what_it_has_found(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_DEADLINE_S", 0)
    guest.write({f"f{i}.txt": "hit" for i in range(5)})
    answer = guest.ask("files.search", pattern="hit")
    assert (len(answer["matches"]), answer["complete"], answer["searched"]) == (1, False, 0)


def test_a_file_that_became_a_link_or_a_pipe_is_not_read(guest: Guest) -> None:
    guest.write({"a.txt": "hit"})
    os.mkfifo(guest.root / "pipe")
    (guest.root / "link").symlink_to("a.txt")
    call = guest.call()
    looking = search._Search(
        search._Job({"pattern": "hit"}), workspace_of(guest.state), None, call.cancelled.is_set
    )
    assert looking._read(str(guest.root / "link")) is None
    assert looking._read(str(guest.root / "pipe")) in (None, b"")


def test_long_lines_are_cut_round_the_match(guest: Guest) -> None:
    guest.write({"a.txt": "a" * 5000 + "NEEDLE" + "b" * 5000})
    ((_, _, text),) = found(guest, "NEEDLE")
    assert "aNEEDLEb" in text
    assert len(text) == 302


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("**/deep/**", ["src/deep/c.py", "src/deep/d.txt"]),
        ("src/d*", ["src/deep/c.py", "src/deep/d.txt"]),
        ("[!a].py", ["src/b.py", "src/deep/c.py"]),
        ("?.txt", ["src/deep/d.txt"]),
        ("*.{py,md}", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/{b.py,deep/*.{txt,md}}", ["src/b.py", "src/deep/d.txt"]),
        ("{a}.py", []),
    ],
)
def test_a_glob_chooses_files_by_relative_path(guest: Guest, glob: str, names: list[str]) -> None:
    guest.write(dict.fromkeys(["a.py", "src/b.py", "src/deep/c.py", "src/deep/d.txt"], "hit"))
    assert [path for path, _, _ in found(guest, "hit", glob=glob)] == names


def test_a_path_is_a_folder_or_a_file(guest: Guest) -> None:
    guest.write({"a/b.py": "hit", "c.py": "hit"})
    assert [path for path, _, _ in found(guest, "hit", path="a")] == ["a/b.py"]
    assert [path for path, _, _ in found(guest, "hit", path="c.py")] == ["c.py"]
    with pytest.raises(GuestError) as caught:
        found(guest, "hit", path="nope")
    assert caught.value.code == "not_found"


def test_ignored_files_are_not_searched(guest: Guest) -> None:
    guest.write({"a.py": "hit", "junk/b.py": "hit", ".git/c": "hit"})
    guest.ask("files.protect", rules={"ignore": [["^junk/", True]]})
    for pattern in ("hit", "(h*)*it"):  # the second one is searched in a process of its own
        assert [path for path, _, _ in found(guest, pattern)] == ["a.py"]


def test_texts_in_other_encodings_are_found(guest: Guest) -> None:
    guest.write({"latin.py": "# café".encode("latin-1"), "utf8.py": "# café"})
    guest.write({"bom.py": b"\xef\xbb\xbfcaf\xc3\xa9", "wide.txt": "café".encode("utf-16")})
    assert [path for path, _, _ in found(guest, "^(# )?café$")] == [
        "bom.py",
        "latin.py",
        "utf8.py",
        "wide.txt",
    ]


def test_a_broken_expression_says_where(guest: Guest) -> None:
    with pytest.raises(GuestError) as caught:
        found(guest, "foo(")
    assert caught.value.code == "invalid"
    assert "at position 3" in caught.value.message
    assert "regex=false" in caught.value.hint


def test_a_runaway_expression_is_ended_and_others_go_on(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_DEADLINE_S", 0.5)
    guest.write({"a.txt": "a" * 40 + "b"})
    with pytest.raises(GuestError) as caught:
        found(guest, r"(a+)+$")
    assert caught.value.code == "invalid"
    assert guest.state.children.wait_all(60)
    assert [line for _, line, _ in found(guest, "a{40}b")] == [1]


def test_a_risky_expression_that_behaves_gives_the_same_as_any(guest: Guest) -> None:
    guest.write({"a.txt": "abab\nnope\nab €\n"})
    answer = guest.ask("files.search", pattern=r"(?:ab)+(?= €|$)")
    assert [match["text"] for match in answer["matches"]] == ["abab", "ab €"]
    assert answer["complete"]


def test_a_cancelled_search_ends(guest: Guest) -> None:
    guest.write({"a.txt": "a" * 40 + "b"})
    call = guest.call()
    threading.Timer(0.2, call.cancel).start()
    started = time.monotonic()
    with pytest.raises(GuestError) as caught:
        OPS["files.search"]({"pattern": r"(a+)+$"}, b"", call)
    assert caught.value.code == "cancelled"
    assert time.monotonic() - started < search._DEADLINE_S


@pytest.mark.parametrize(
    ("pattern", "repeats"),
    [
        (r"foo", 0),
        (r"def \w+\(", 1),
        (r"https?://\S+", 2),
        (r"a|b*|c+", 2),
        (r"\d{4}-\d{2}", 0),
        (r"^(?P<name>\w+) = ", 1),
        (r"(a+)+", None),
        (r"(a|b)*", None),
        (r"(a)\1", None),
        (r"(?=a)b", None),
    ],
)
def test_how_risky_an_expression_is(pattern: str, repeats: int | None) -> None:
    re.compile(pattern)
    assert variable_repeats(pattern) == repeats


def test_a_glob_that_runs_away_is_ended(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    guest.write({"a" * 200 + ".py": "x\n", "a_b_c_d.py": "x\n"})
    assert found(guest, "x", glob="*_*_*_*.py") == [("a_b_c_d.py", 1, "x")]
    monkeypatch.setattr(search, "_DEADLINE_S", 0.5)
    with pytest.raises(GuestError, match="runs away"):
        found(guest, "x", glob="*a" * 11 + "b")


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("needle", ["needle"]),
        (r"^def \w+_price$", ["_price"]),
        ("foo|barbaz", ["foo", "barbaz"]),
        ("x(?:abc)+y?", ["abc"]),
        ("(abc)?d", ["d"]),
        ("a*", []),
        ("a|b*", []),
        ("é", []),
        ("(?i:abc)", []),
        ("(?x) a b", []),
        (r"\bx\b(?=abc)", ["x"]),
        (r"(?!abc)\d", []),
        (r"(?<=abc)\d", []),
    ],
)
def test_texts_that_each_match_has(pattern: str, texts: list[str]) -> None:
    assert required_texts(pattern, re.compile(pattern).flags) == texts


@pytest.mark.parametrize("pattern", ["KELVIN", "kelvin", "(?i)kelvin|nope", "[k]elvin"])
def test_other_case_is_found_beyond_ascii(guest: Guest, pattern: str) -> None:
    guest.write({"a.txt": "x\nelvin\n\u212aelvin\n", "b.txt": "\nKelvin", "c.txt": "kelvin".encode("utf-16")})
    assert [(path, line) for path, line, _ in found(guest, pattern, ignore_case=True)] == [
        ("a.txt", 3),
        ("b.txt", 2),
        ("c.txt", 1),
    ]
