"""Results of commands and test runs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sandbox.session.guest_data import GuestData, Long, Number, Seconds, Short


class ExecResult(GuestData):
    """Result of a finished command. `output` is stdout and stderr in the order of arrival."""

    exit_code: Number | None
    signal: Short | None = None
    timed_out: bool = False
    output: Long = ""
    omitted: Number = 0
    """Bytes of output that were left out."""
    gap: Annotated[int, Field(ge=0, le=1 << 20)] | None = None
    """The character of `output` before which they are missing."""
    kept: Number | None = None
    """Number under which `Output` stores it in full; None for a short one."""
    kept_in: Short | None = None
    """Path of a file in the sandbox that has it in full, for some time."""
    killed: Number = 0
    """Number of processes killed at its end or deadline."""
    pipe: Annotated[list[Number], Field(max_length=32)] = []
    """Exit codes of the parts of its last pipe, of which `exit_code` is the last."""
    duration_s: Seconds = 0.0
    full: Short = ""
    """After a failure: the folders that are full, and the next step."""


class TestResult(GuestData):
    """One test: its id as the runner writes it, its outcome, and the reason of a failure."""

    __test__ = False  # tells pytest that this is not a test class

    id: Short
    outcome: Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
    duration_s: Seconds = 0.0
    message: Short = ""
    frames: Annotated[list[Short], Field(max_length=64)] = []
    """Of a failing test, or one that ran at the deadline: a line for each frame, from the test down to the failure."""
    output: Short = ""
    """Output that the runner has captured, of a failing test."""
    failed_before: bool | None = None
    """True if it failed before the first edit as well; None if that is not known."""
    as_before: bool = False
    """True if it failed with the same message then."""


class Evaluation(ExecResult):
    """Result of a test run: counts, each test, and the differences from the run before."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    xfailed: int = 0
    xpassed: int = 0
    not_run: Number = 0
    """Number of tests that were collected but did not start before the run ended."""
    not_run_ids: Annotated[list[Short], Field(max_length=64)] = []
    """The first of them, if the runner has named them."""
    running: Annotated[list[Short], Field(max_length=64)] = []
    """Tests that were running when the run was ended, or their process died."""
    captured: bool = False
    """True if the runner has captured the output of all tests."""
    timeout_s: Seconds = 0.0
    tests: Annotated[list[TestResult], Field(max_length=100_000)] = []
    counts: Annotated[dict[Short, Number], Field(max_length=16)] = {}
    """Number of tests with each outcome."""
    fixed: list[Short] = []
    """Tests that failed when they were last run and pass now; modules that can be collected again."""
    broken: list[Short] = []
    """Tests that passed when they were last run and fail now; modules with such tests that can't be collected."""
    runner: Short | None = None
    restored: Annotated[list[Short], Field(max_length=100_000)] = []
    """Read-only files that the program had changed, put back before the run."""
