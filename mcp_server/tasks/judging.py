"""Judges a test run by the lists of a task, and decides which files a patch can't change."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from mcp_server.tasks.folder import Task
from mcp_server.tasks.patched_paths import named_files, pattern_of
from sandbox.session.results import TestResult

GOOD = frozenset({"passed", "xfailed", "xpassed"})
MAX_ID = 4000
"""Characters after which the sandbox cuts the id of a test."""
CONFIGURATION = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
)
"""Files that decide which tests run and how. A patch that changes them is scored with those of the task."""
SHADOWS = ("pytest.py", "pytest", "_pytest", "unittest.py", "unittest", "pluggy.py", "pluggy")
"""Modules that would take the place of a test runner's, unless the task itself has them."""
_UNITTEST = re.compile(r"(\w+) \(([\w.]{1,4000})\)")


class Tally(BaseModel):
    """Outcomes of one of the two lists of a task."""

    model_config = ConfigDict(frozen=True)

    passed: int
    total: int
    failed: list[str] = []
    """Tests that ran and did not pass."""
    missing: list[str] = []
    """Tests that did not run."""

    @property
    def is_complete(self) -> bool:
        """True if all of them passed."""
        return self.passed == self.total


class Outcomes:
    """Outcomes of a test run, found by the names that benchmarks write."""

    def __init__(self, tests: Iterable[TestResult]) -> None:
        self._outcomes: dict[str, str] = {}
        for test in tests:
            name = canonical(test.id)
            # Of several results of one name the worst counts.
            if self._outcomes.get(name) in (None, *GOOD):
                self._outcomes[name] = test.outcome
        self._names = sorted(self._outcomes)

    def tally(self, listed: Sequence[str]) -> Tally:
        """Judge the `listed` tests."""
        outcomes = {name: self.of(name) for name in listed}
        failed = [name for name, outcome in outcomes.items() if outcome not in (None, *GOOD)]
        missing = [name for name, outcome in outcomes.items() if outcome is None]
        passed = len(outcomes) - len(failed) - len(missing)
        return Tally(passed=passed, total=len(outcomes), failed=failed, missing=missing)

    def of(self, name: str) -> str | None:
        """Outcome of the test that a task calls `name`; None if it did not run."""
        known = canonical(name)
        if known in self._outcomes:
            return self._outcomes[known]
        if len(known) > MAX_ID:
            return self._outcomes.get(known[:MAX_ID])
        if not is_truncated(known):
            return None
        found = [self._outcomes[one] for one in self._beginning_with(known)]
        return next((one for one in found if one not in GOOD), found[0] if found else None)

    def _beginning_with(self, prefix: str) -> Iterator[str]:
        for name in self._names[bisect_left(self._names, prefix) :]:
            if not name.startswith(prefix):
                return
            yield name


def is_truncated(name: str) -> bool:
    """True for an id that ends within its parameters: SWE-bench Verified cuts some at a space."""
    return "[" in name and not name.endswith("]")


def canonical(name: str) -> str:
    """Bring an id of unittest into the form of Python 3.10: `test_x (module.Class)`; others stay."""
    match = _UNITTEST.fullmatch(name)
    if match is None:
        return name
    test, place = match.groups()
    return f"{test} ({place.removesuffix(f'.{test}')})"


def protected_patterns(task: Task, read_only: Sequence[str], top: Container[str]) -> tuple[str, ...]:
    """Return patterns of the files that scoring takes from the task.

    Args:
        read_only: lines of the repository's `.debugreadonly`.
        top: names in the task's repository.
    """
    facts = task.facts
    patterns = dict.fromkeys([*read_only, *facts.read_only, *facts.tests])
    patterns |= dict.fromkeys(CONFIGURATION)
    patterns |= dict.fromkeys(f"/{name}" for name in SHADOWS if name not in top)
    patterns |= dict.fromkeys(_files_of_tests([*facts.fail_to_pass, *facts.pass_to_pass]))
    patterns |= dict.fromkeys(pattern_of(path) for path in named_files(task.test_patch() or b""))
    return tuple(patterns)


def _files_of_tests(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if "::" in name:
            yield pattern_of(name.partition("::")[0])
        elif match := _UNITTEST.fullmatch(name):
            parts = match[2].split(".")[:8]
            yield from (f"**/{'/'.join(parts[:end])}.py" for end in range(1, len(parts)))
