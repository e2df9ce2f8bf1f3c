"""The first files of some kinds, however many files there are."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.ignore_rules import lenient
from tests.guest.operations.conftest import Guest


def first(guest: Guest, *kinds: Sequence[str], depth: int = 6) -> list[str | None]:
    """The first file of each kind."""
    return guest.ask("files.first", named=[lenient(patterns) for patterns in kinds], depth=depth)["paths"]


def test_a_file_is_found_among_more_than_ten_thousand(guest: Guest) -> None:
    guest.write({**{f"a/{number}.txt": "" for number in range(10_500)}, "z/test_it.py": ""})
    assert first(guest, ["/conftest.py", "test_*.py"]) == ["z/test_it.py"]
    assert first(guest, ["/test_*.py"]) == [None]
    assert first(guest, ["test_*.py"], depth=1) == [None]


def test_each_kind_has_its_first_file(guest: Guest) -> None:
    guest.write(dict.fromkeys(["a/settings.py", "b/settings.py", "b/test_a.py", "c/test_b.py"], ""))
    assert first(guest, ["pytest.ini"], ["settings.py"], ["test_*.py"]) == [
        None,
        "a/settings.py",
        "b/test_a.py",
    ]
    assert first(guest) == []


def test_a_file_of_the_first_kind_ends_the_search(guest: Guest) -> None:
    guest.write(dict.fromkeys(["a/settings.py", "b/pytest.ini", "c/test_a.py"], ""))
    assert first(guest, ["pytest.ini"], ["settings.py"], ["test_*.py"]) == [
        "b/pytest.ini",
        "a/settings.py",
        None,
    ]


def test_hidden_files_and_folders_are_not_found(guest: Guest) -> None:
    guest.write({"secret/test_a.py": "", "test_b.py/data": ""})
    guest.ask("files.protect", rules={"ignore": lenient(["secret/"])})
    assert first(guest, ["test_*.py"]) == [None]
