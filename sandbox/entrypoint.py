"""Command lines as people write them: how tests are run, and which of them."""

from __future__ import annotations

import configparser
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, cast

from sandbox.errors import InvalidArgument

PYTEST = "python -m pytest"
_SHELL = set("&|;<>`$\n")
_PYTEST_FILES = ("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py")


def default_entrypoint(files: Iterable[str], pyproject: str, tox: str, setup_cfg: str) -> str | None:
    """`python -m pytest -q` if the repository looks like it, else None."""
    names = set(files)
    if names.intersection(_PYTEST_FILES) or any(_looks_like_test(name) for name in names):
        return f"{PYTEST} -q"
    sections = (("tool:pytest", setup_cfg), ("pytest", tox))
    if any(_has_section(text, section) for section, text in sections) or "pytest" in tools_of(pyproject):
        return f"{PYTEST} -q"
    return None


def tools_of(pyproject: str) -> dict[str, Any]:
    """The `[tool]` table of a `pyproject.toml`; empty when it is absent or broken."""
    return _table(pyproject, "tool")


def requires_python(pyproject: str) -> str | None:
    """`requires-python` of a `pyproject.toml`, if it says so."""
    value = _table(pyproject, "project").get("requires-python")
    return value if isinstance(value, str) else None


def _table(pyproject: str, name: str) -> dict[str, Any]:
    import tomllib  # with the first session rather than at the server's start

    try:
        table = tomllib.loads(pyproject).get(name)
    except (ValueError, RecursionError):  # an integer of thousands of digits is no TOMLDecodeError
        return {}
    return cast(dict[str, Any], table) if isinstance(table, dict) else {}


def with_tests(entrypoint: str, tests: Sequence[str], files: Iterable[str]) -> str:
    """`entrypoint`, running only `tests`: its own test paths give way to them.

    Raises:
        InvalidArgument: no pytest or unittest command line, or an id that is an option.
    """
    for test in tests:
        if test.startswith("-") or "\0" in test:
            raise InvalidArgument(
                f"{test!r} is not a test id.", "Give ids such as tests/test_a.py::test_b[1-2]."
            )
    words = _split(entrypoint)
    if _SHELL.intersection(entrypoint):
        raise InvalidArgument(
            f"`{entrypoint}` is a shell command, so `tests` can't choose among its tests.",
            "Give the whole command as `entrypoint`.",
        )
    runner = next(
        (i for i, word in enumerate(words) if word.rsplit("/", 1)[-1] in ("pytest", "py.test", "unittest")),
        None,
    )
    if runner is None:
        raise InvalidArgument(
            f"`{entrypoint}` is not a pytest or unittest command, so `tests` can't choose among its tests.",
            "Give the whole command as `entrypoint`.",
        )
    known = set(files)
    kept = [word for word in words[runner + 1 :] if word.startswith("-") or not _is_test_path(word, known)]
    return shlex.join([*words[: runner + 1], *kept, *tests])


def _split(entrypoint: str) -> list[str]:
    try:
        return shlex.split(entrypoint)
    except ValueError as exc:
        raise InvalidArgument(f"The entry point `{entrypoint}` has a quoting error: {exc}.") from exc


def _is_test_path(word: str, known: set[str]) -> bool:
    return "::" in word or word == "." or word.rstrip("/") in known


def _looks_like_test(name: str) -> bool:
    base = name.rsplit("/", 1)[-1]
    return base.endswith(".py") and (
        base.startswith("test_") or base.endswith("_test.py") or base in ("test.py", "tests.py")
    )


def _has_section(text: str, section: str) -> bool:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return False
    return parser.has_section(section)
