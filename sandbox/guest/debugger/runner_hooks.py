"""Hooks into unittest and Django's test runner, put in when the program imports them. pytest has its own module."""

from __future__ import annotations

import contextlib
import functools
import sys

from . import pytest_hooks
from .import_hooks import AfterImport

__unittest = True  # unittest leaves our frames out of its tracebacks


def install(session):
    """Wait for the test runners."""
    hooks = {
        "_pytest.config": lambda module: pytest_hooks.hook(session, module),
        "unittest.case": lambda module: _unittest(session, module),
        "django.test.runner": lambda module: _django(session, module),
    }
    sys.meta_path.insert(0, AfterImport(hooks))


def fold(session):
    """A test runner is at work: its frames are folded and steps stay in the repository, unless that was refused."""
    if session.just_my_code is None:
        session.just_my_code = True


def _unittest(session, module):
    """Stop where a test fails, before its tearDown; tell which test runs."""
    outcome = module._Outcome
    original = outcome.testPartExecutor
    passing = (KeyboardInterrupt, module.SkipTest, module._ShouldStop)

    @contextlib.contextmanager
    def test_part_executor(self, test_case, *args, **kwargs):
        with original(self, test_case, *args, **kwargs):
            try:
                yield
            except passing:
                raise
            except BaseException as exc:
                expected = _expects_failure(test_case)
                if not expected and not getattr(self, "expecting_failure", False):
                    session.post_mortem(exc)
                raise

    outcome.testPartExecutor = test_part_executor
    run = module.TestCase.run

    @functools.wraps(run)
    def run_test(self, result=None):
        fold(session)
        before = session.test
        if before is None:
            session.test = self.id()
        try:
            return run(self, result)
        finally:
            session.test = before

    module.TestCase.run = run_test


def _expects_failure(test_case):
    method = getattr(test_case, getattr(test_case, "_testMethodName", ""), None)
    return getattr(test_case, "__unittest_expecting_failure__", False) or getattr(
        method, "__unittest_expecting_failure__", False
    )


def _django(session, module):
    """In worker processes breakpoints stop, failing tests don't (their exceptions are for the runner): run them in this one."""
    runner = module.DiscoverRunner
    init = runner.__init__

    @functools.wraps(init)
    def one_process(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if getattr(self, "parallel", 0) not in (0, 1):
            session.notice(
                "Django's tests run in one process: in parallel workers a test that fails would not stop."
            )
            self.parallel = 1

    runner.__init__ = one_process
    for name in ("get_max_test_processes", "default_test_processes"):
        if hasattr(module, name):
            setattr(module, name, lambda: 1)
