"""Patterns of `.gitignore`: what they name, by the library that is known to be right; and that none of them can run away."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from sandbox.errors import InvalidArgument
from sandbox.ignore_rules import Decision, Matcher, compile_rules, lenient

SEGMENTS = st.text("ab*?.", min_size=1, max_size=6) | st.sampled_from(
    ["**", "*", "[ab]", "[a-c]x", "[]a]b", "\\*a", "[a-", "[b-a]", "x[a"]
)
PATTERNS = st.builds(
    lambda negation, root, segments, end: f"{negation}{root}{'/'.join(segments)}{end}",
    st.sampled_from(["", "!"]),
    st.sampled_from(["", "/"]),
    st.lists(SEGMENTS, min_size=1, max_size=5),
    st.sampled_from(["", "/", "/**", " "]),
)
PATHS = st.lists(
    st.text("abc.x]*", min_size=1, max_size=5).filter(lambda name: name not in (".", "..")),
    min_size=1,
    max_size=6,
).map("/".join)


def by_pathspec(pattern: str, path: str) -> bool | str | None:
    """True, False: it names the path or a folder above it, to include or to exclude it; None: it does not."""
    try:
        found = GitIgnoreSpecPattern(pattern)
    except ValueError:
        return "no pattern"
    except re.error:  # a range that goes backwards
        return None
    return found.include if found.regex is not None and found.match_file(path) else None


def by_us(pattern: str, path: str) -> bool | str | None:
    try:
        rules = Matcher(compile_rules([pattern], "a test"))
    except InvalidArgument:
        return "no pattern"
    parts = path.split("/")
    names = [*("/".join(parts[:count]) + "/" for count in range(1, len(parts))), path]
    found = next((found for found in map(rules.decide, names) if found is not Decision.OPEN), Decision.OPEN)
    return {Decision.NAMED: True, Decision.EXCEPTED: False, Decision.OPEN: None}[found]


@given(PATTERNS, PATHS)
def test_patterns_name_what_pathspec_says(pattern: str, path: str) -> None:
    # Of `a/**/` pathspec takes files in `a` as well; git does not.
    if not pattern.rstrip().endswith("**/"):
        assert by_us(pattern, path) == by_pathspec(pattern, path)


def test_a_folder_that_is_taken_in_again_does_not_bring_ignored_files_along() -> None:
    rules = Matcher(lenient(["/*", "!/src/", "*.log"]))
    assert [rules.decide(name) for name in ("src/", "src/a.py", "src/a.log", "doc/")] == [
        Decision.EXCEPTED, Decision.OPEN, Decision.NAMED, Decision.NAMED,
    ]  # fmt: skip


def test_a_star_with_a_slash_names_folders_alone() -> None:
    rules = Matcher(lenient(["*/"]))
    assert [rules.has_named(name) for name in ("a/", "a/b/", "a", "a/b")] == [True, True, False, False]


def test_the_contents_of_a_folder_are_not_the_folder() -> None:
    rules = Matcher(lenient(["build/**", "!build/keep"]))
    assert [rules.decide(name) for name in ("build/", "build/x", "build/keep")] == [
        Decision.OPEN, Decision.NAMED, Decision.EXCEPTED,
    ]  # fmt: skip


def test_a_set_never_holds_a_slash() -> None:
    rules = Matcher(lenient(["a[!b]c", "d[+-0]e"]))
    assert [rules.has_named(name) for name in ("axc", "a/c", "d.e", "d/e")] == [True, False, True, False]


HOSTILE = [
    "*a*a*a/" * 30,
    "**/" + "*a*a*a/" * 30 + "b",
    "**/a/" * 100 + "b",
    "*a" * 400 + "b",
    "*" + "a?" * 100 + "b*c",
]


@pytest.mark.timeout(60)  # with backtracking, none of these would end within years
@pytest.mark.parametrize("pattern", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_pattern_is_done_with_soon(pattern: str) -> None:
    rules = Matcher(compile_rules([pattern], "a test"))
    for path in ("/".join(["a" * 250] * 16), "/".join("a" * 2000), "a" * 4000):
        assert rules.decide(path) is Decision.OPEN


def test_a_pattern_is_bounded() -> None:
    assert lenient(["a" * 1001, "b"]) == lenient(["b"])
    with pytest.raises(InvalidArgument, match="longer than 1000"):
        compile_rules(["a" * 1001], ".debugignore")
