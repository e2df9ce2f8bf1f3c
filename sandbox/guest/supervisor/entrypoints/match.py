"""Find the program to debug among the Python processes of a command line.

`make test` may run pip, a linter and `python -c "print(version)"` before it comes to pytest.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

from ...paths import FOREIGN_FOLDERS
from ..errors import GuestError
from .interpreter import OLDEST
from .parse import STARTERS, behind_coverage, of_command_line

_MONITORING = (3, 12)
_VERSION = re.compile(r"[-\d.]+$")
_SYSTEM = ("/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/", "/usr/games/")
_RUNS_OTHERS = re.compile(r"\bexec\b|\brunpy\b|\bimportlib\b|__import__")
_IMPORTS = re.compile(r"\b(?:from\s+([\w.]+)\s+import\b|import\s+([\w., \t]+))")
_NAMES = re.compile(r"(?:^|,)\s*(\w+)")
_STARTERS = STARTERS | {"pip", "virtualenv", "venv", "ensurepip", "pre-commit", "pre_commit"}
"""Never the program to debug."""
_TOOLS = set(
    "build twine wheel flit easy_install setuptools pip-audit pip-compile pip-sync piptools check-manifest towncrier bumpversion"
    " black ruff flake8 pyflakes pycodestyle pydocstyle mypy dmypy stubtest pyright basedpyright isort pylint bandit codespell yapf"
    " autopep8 autoflake pyupgrade vulture sphinx sphinx-build mkdocs lint-imports interrogate meson scons cmake ninja cython"
    " cythonize cffi grpc_tools compileall py_compile site sysconfig platform json zipfile tarfile zipapp base64 calendar tabnanny"
    " pydoc tokenize ast dis idlelib lib2to3 modulefinder uuid gzip webbrowser".split()
)
"""Debugged only if the command line itself names them."""
_KNOWN = set(
    "pytest py.test unittest nose nose2 stestr trial behave robot flask uvicorn gunicorn celery hypercorn daphne streamlit scrapy"
    " django-admin ipython jupyter coverage".split()
)


class Question:
    """Question of a Python process if it is to be debugged; `words` is its command line."""

    def __init__(self, version: tuple, pid: int, cwd: str, words: list) -> None:
        self.version = version
        self.pid = pid
        self.cwd = cwd
        self.words = words

    def text(self) -> str:
        """Describe its command line in at most 80 characters."""
        words = [os.path.basename(self.words[0])] + self.words[1:]
        text = " ".join(shlex.quote(word) for word in words)
        return text if len(text) <= 80 else text[:77] + "..."


class Chosen:
    """Interpreter options and target with which a process continues under the debugger."""

    def __init__(self, options: list, target: dict, notices: list) -> None:
        self.options = options
        self.target = target
        self.notices = notices


def choose(question: Question, text: str, workdir: str) -> Chosen | None:
    """Options and target of `question` if it is the program of the command line `text`; else None."""
    if question.version < OLDEST or not question.words:
        return None
    try:
        options, target = of_command_line(question.words, question.cwd)
        if not _is_meant(target, question, text, workdir):
            return None
        return _choose_target(options, target, question)
    except (GuestError, OSError):
        return None  # interactive, or a file that isn't there: Python itself says so


def choose_child(question: Question, workdir: str) -> Chosen | None:
    """Options and target of `question`, a child of the program; None if it runs no code of the repository."""
    chosen = choose(question, "", workdir)
    if chosen is not None or question.version < OLDEST:
        return chosen
    try:
        options, target = of_command_line(question.words, question.cwd)
    except (GuestError, OSError):
        return None
    if target["mode"] != "code" or not _may_come_to_the_repository(target["target"]):
        return None
    return Chosen(options, target, [])


def _may_come_to_the_repository(code: str) -> bool:
    """True if `python -c` with this code imports or runs more than parts of the standard library."""
    if "multiprocessing.spawn" in code or "multiprocessing.forkserver" in code:
        return True
    if _RUNS_OTHERS.search(code):
        return True
    library = getattr(sys, "stdlib_module_names", ())
    names = {name for pair in _imports(code) for name in _NAMES.findall(pair)}
    return any(name not in library for name in names)


def _imports(code: str) -> list:
    return [after_from or listed for after_from, listed in _IMPORTS.findall(code)]


def _choose_target(options: list, target: dict, question: Question) -> Chosen:
    # On older Pythons coverage's trace function would take the place of ours.
    if _program_name(target) == "coverage" and question.version < _MONITORING:
        measured = behind_coverage(target["args"][1:], question.cwd)
        if measured is not None:
            notice = "coverage is left out: on this Python its tracing would hide the breakpoints."
            return Chosen(options, measured, [notice])
    return Chosen(options, target, [])


def _is_meant(target: dict, question: Question, text: str, workdir: str) -> bool:
    if target["mode"] == "code":
        return _is_meant_code(target["target"], text)
    if target["mode"] == "module":
        return _is_meant_module(target, question.cwd, text, workdir)
    return _is_meant_script(target, question, text, workdir)


def _is_meant_code(code: str, text: str) -> bool:
    """True if the command line itself has this code and names nothing better; else the code is a helper's."""
    words = _words(text)
    named = code in text or code in words
    better = any(
        word == "-m" or word.endswith(".py") or os.path.basename(word) in _KNOWN
        for word in words
        if word != code
    )
    return named and not better


def _is_meant_module(target: dict, cwd: str, text: str, workdir: str) -> bool:
    name = target["target"].partition(".")[0]
    for folder in (cwd, workdir, os.path.join(workdir, "src")):
        path = os.path.join(folder, name)
        if _is_inside(path, workdir) and (os.path.isfile(path + ".py") or os.path.isdir(path)):
            return True
    return _is_meant_name(name, target["args"], text)


def _is_meant_script(target: dict, question: Question, text: str, workdir: str) -> bool:
    path = os.path.join(question.cwd, target["target"])
    if _is_inside(path, workdir):
        return os.path.basename(path) != "setup.py" or target["args"][:1] == ["test"]
    name = _program_name(target)
    if target["target"] in _words(text):
        return name not in _STARTERS and _is_meant_name(name, target["args"], text)
    folder = os.path.dirname(path)
    if os.path.basename(folder) not in ("bin", "Scripts"):
        return False
    if (folder + "/").startswith(_SYSTEM) and name not in _KNOWN and name not in _names(text):
        return False  # a part of the system that happens to be written in Python
    return _is_meant_name(name, target["args"], text)


def _is_meant_name(name: str, args: list, text: str) -> bool:
    name = _VERSION.sub("", name) or name
    if name == "coverage":
        return args[:1] == ["run"]
    return name not in _STARTERS and (name not in _TOOLS or name in _names(text))


def _program_name(target: dict) -> str:
    name = os.path.basename(target["target"])
    if target["mode"] == "module":
        return name
    return name[:-3] if name.endswith(".py") else name


def _is_inside(path: str, workdir: str) -> bool:
    """True if `path` belongs to the repository itself."""
    inside = os.path.relpath(os.path.abspath(path), workdir).split(os.sep)
    if inside[0] == os.pardir:
        inside = os.path.relpath(os.path.realpath(path), workdir).split(os.sep)
    return inside[0] != os.pardir and not FOREIGN_FOLDERS.intersection(inside)


def _words(text: str) -> list:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _names(text: str) -> set:
    return {os.path.basename(word) for word in _words(text)}
