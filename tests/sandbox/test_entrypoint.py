"""Command lines for tests."""

from __future__ import annotations

import pytest

from sandbox.entrypoint import default_entrypoint, requires_python, tools_of, with_tests
from sandbox.errors import InvalidArgument
from sandbox.own_settings import OwnSettings


@pytest.mark.parametrize(
    ("entrypoint", "expected"),
    [
        ("python -m pytest -q", "python -m pytest -q 't.py::test_a[x-y]'"),
        ("python -m pytest -q t.py other/", "python -m pytest -q 't.py::test_a[x-y]'"),
        ("FOO=1 pytest -k 'a b' t.py::test_b -x", "FOO=1 pytest -k 'a b' -x 't.py::test_a[x-y]'"),
        (".venv/bin/pytest .", ".venv/bin/pytest 't.py::test_a[x-y]'"),
        ("python -m unittest -v", "python -m unittest -v 't.py::test_a[x-y]'"),
    ],
)
def test_tests_take_the_place_of_the_paths_of_the_entry_point(entrypoint: str, expected: str) -> None:
    assert with_tests(entrypoint, ["t.py::test_a[x-y]"], ["t.py", "other", "other/u.py"]) == expected


@pytest.mark.parametrize("entrypoint", ["make test", "cd a && pytest", "python check.py", "pytest 'x"])
def test_an_entry_point_that_is_no_plain_runner_is_refused(entrypoint: str) -> None:
    with pytest.raises(InvalidArgument):
        with_tests(entrypoint, ["t.py::test_a"], ["t.py"])


@pytest.mark.parametrize("test", ["--collect-only", "-p evil", "a\0b"])
def test_an_option_is_not_a_test_id(test: str) -> None:
    with pytest.raises(InvalidArgument, match="not a test id"):
        with_tests("pytest", [test], [])


@pytest.mark.parametrize(
    ("files", "pyproject", "tox", "setup_cfg"),
    [
        (["tests/test_a.py"], "", "", ""),
        (["conftest.py"], "", "", ""),
        (["test.py"], "", "", ""),
        (["a.py"], "[tool.pytest.ini_options]\n", "", ""),
        (["a.py"], "", "[pytest]\n", ""),
        (["a.py"], "", "", "[tool:pytest]\n"),
    ],
)
def test_a_repository_that_looks_like_pytest_gets_pytest(
    files: list[str], pyproject: str, tox: str, setup_cfg: str
) -> None:
    assert default_entrypoint(files, pyproject, tox, setup_cfg) == "python -m pytest -q"


def test_a_repository_without_a_sign_of_tests_gets_none() -> None:
    assert default_entrypoint(["app.py", "contest.py"], "[tool.ruff]\n", "broken[", "x") is None


@pytest.mark.parametrize(
    "text", ["", "tool = 1", "[tool", "project = []\ntool = []", f"[tool]\nx = 1{'0' * 5000}"]
)
def test_a_strange_pyproject_says_nothing(text: str) -> None:
    assert tools_of(text) == {}
    assert requires_python(text) is None


def test_a_number_without_end_is_no_value_of_the_environment() -> None:
    table = f"[tool.pdbox.env]\nLONG = 0x1{'0' * 5000}\nPORT = 8080\nNAME = 'x'\n"
    assert OwnSettings.of(table).env == {"PORT": "8080", "NAME": "x"}


def test_requires_python_is_read() -> None:
    assert requires_python('[project]\nrequires-python = ">=3.9,<3.12"\n') == ">=3.9,<3.12"
