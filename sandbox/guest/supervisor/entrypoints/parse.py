"""Parse debug entry points, as people write them, into an interpreter and a target.

`pytest a::b[c-d]`, `python -m pytest -q`, `.venv/bin/python -X dev app.py x`, `FOO=1 python -m pkg`,
`cd sub && python app.py`, `python -m pdb …` (without its pdb: pdbox brings its own), a bare `app.py`, node id
or module, and console scripts.

Anything else that can be run (`make test`, `uv run pytest`, `./run.sh`, `python app.py | tee log`) is run as
it is written, and followed to the Python program in it (`discovery.py`).

A program that could be parsed is started directly. Following it would take 35 ms longer (median of 43 pairs),
could not debug one with -I, -E or -S, which loads no hook, and could not refuse an interpreter by its version.
Most of the rest serves following as well (`of_command_line`), the selection of tests, or refusals that say what
is wrong: a bare file or node id is nothing that a shell could run.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex

from ..errors import GuestError
from .test_ids import quote_ids

FORMS = (
    "Write `python app.py`, `python -m package`, `pytest tests/test_x.py::test_y` or `python -m unittest …`."
)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_PYTHON = re.compile(r"(python|pypy)(\d+(\.\d+)?)?t?(\.exe)?$")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")
_CD = re.compile(r"\s*cd\s+((?:[^\s|&;<>$`*?~'\"\\]|\\.|'[^']*'|\"[^\"$`]*\")+)\s*&&\s*")
_SHELL = re.compile(
    r"""\\. | '[^']*' | "(?:\\.|[^"\\$`])*(?P<inside>[$`])?(?:\\.|[^"\\])*" | (?P<unquoted>[^\\'"])""",
    re.X | re.S,
)
"""Parts of a command line as a shell reads it.

The groups are its special characters, in double quotes and unquoted.
"""
_COVERAGE_VALUES = "--concurrency --context --data-file --include --omit --rcfile --source --source-dirs --save-signal".split()
_FLAGS = "bBdEIOPqRsSuv"
STARTERS = frozenset(
    "uv uvx poetry pipenv pdm hatch rye conda tox nox invoke inv fab doit pipx mamba micromamba".split()
)
"""They start the program to debug; some of them are Python programs themselves."""


class Launch:
    """Parsed entry point: `interpreter` is the start of the command line, `target` is for the debugger.

    If `command` is not empty, that is started instead; the other two are known once the program in it has
    been found.
    """

    def __init__(
        self, text: str, interpreter: list, target: dict, env: dict, cwd: str, command: tuple = ()
    ) -> None:
        self.text = text
        self.interpreter = interpreter
        self.target = target
        self.env = env
        self.cwd = cwd
        self.command = list(command)
        self.arguments: list | None = None
        """Arguments of `run`, which replace the program's own."""

    def effective_target(self) -> dict:
        """Target with the requested arguments."""
        return dict(self.target, args=self.arguments) if self.arguments else self.target


def parse(text: str, workdir: str, env: dict, known=frozenset()) -> Launch:
    """Parse the entry point `text`, seen from `workdir` with the environment `env`.

    `known` are test ids that were reported.

    Raises GuestError (invalid, not_found) with the reason.
    """
    line = quote_ids(text, workdir, known)
    cwd, rest = change_folder(line, workdir)
    if needs_shell(rest):
        return _follow(text, {}, workdir, _by_shell(line, _Place(text, workdir, env)))
    words = split_words(rest, text)
    own_env, words = _assignments(words)
    if not words:
        raise GuestError("invalid", f"The entry point `{text.strip()}` names no program.", FORMS)
    place = _Place(text, cwd, dict(env, **own_env))
    if words[0].startswith("-"):  # of `env` or `time`
        return _follow(text, {}, workdir, _by_shell(line, place))
    command = _command(words, place)
    if command:
        return _follow(text, own_env, cwd, command)
    interpreter, target = _program(words, place)
    if target["mode"] == "module" and _starts_another(target["target"]):
        return _follow(text, own_env, cwd, [*interpreter, "-m", target["target"], *target["args"]])
    return Launch(text, interpreter, target, own_env, cwd)


def of_command_line(words: list, cwd: str) -> tuple[list, dict]:
    """(interpreter options, target) of a running Python with the command line `words` in the folder `cwd`.

    Raises GuestError when it runs no script, module or code.
    """
    options, target = _python(words[0], words[1:], _Place(" ".join(words), cwd, {}))
    if target["mode"] == "script" and os.path.basename(os.path.dirname(target["target"])) in (
        "bin",
        "Scripts",
    ):
        target["mode"] = "console"
    return options[1:], target


def behind_coverage(args: list, cwd: str) -> dict | None:
    """Target of `coverage run` with these arguments; None when its configuration names it."""
    args, place = list(args), _Place("coverage run", cwd, {})
    while args:
        word = args.pop(0)
        if word in ("-m", "--module") and args:
            return _module(args.pop(0), args, place)
        if not word.startswith("-"):
            return _script(word, args, place)
        if word in _COVERAGE_VALUES and args:
            args.pop(0)
    return None


def _follow(text: str, env: dict, cwd: str, command: list) -> Launch:
    return Launch(text, [], {"mode": "", "target": "", "args": []}, env, cwd, tuple(command))


def _starts_another(name: str) -> bool:
    # coverage runs the program in itself, but may have to be left out: that depends on the Python.
    return name in STARTERS or name == "coverage"


def needs_shell(text: str) -> bool:
    """True if `text` is more than words.

    Special characters in the brackets of a node id (`a.py::b[x|y]`) don't count.
    """
    if "\n" in text.strip():
        return True
    plain = ""
    for part in _SHELL.finditer(text):
        if part.group("inside"):
            return True
        plain += part.group("unquoted") or "_"
    words = [word for word in plain.split() if word != "2>&1"]  # both come in order anyway
    return any(_is_special(word) for word in words)


def _is_special(word: str) -> bool:
    if "::" in word:
        return word.endswith(";")
    brace = re.search(r"\{[^}]*(,|\.\.)[^}]*\}", word)
    return bool(brace or re.search(r"[|&;<>$`*?]|^~|^#|^[(]|^[)]$|^!$", word))


def _by_shell(text: str, place: _Place) -> list:
    return [place.which("bash") or "/bin/sh", "-c", text]


def _command(words: list, place: _Place) -> list:
    """Command for a program that is not Python, or that starts another one; empty for a Python program."""
    name = os.path.basename(words[0])
    if _PYTHON.match(name) or name == "pdb" or name.startswith("pdb3") or words[0].endswith((".py", ".pyw")):
        return []
    program = None if "::" in words[0] else place.which(words[0])
    if program is None or (not _starts_another(name) and _python_of_script(program, place) is not None):
        return []
    with open(program, "rb") as file:
        magic = file.read(2)
    if magic == b"#!" or magic[:1] in (b"\x7f", b"\xca", b"\xcf", b"\xfe"):  # ELF, Mach-O
        return [program] + words[1:]
    return [place.which("bash") or "/bin/sh", program] + words[1:]  # a script that names no shell


class _Place:
    """Folder and environment in which the names of an entry point are resolved."""

    def __init__(self, text: str, cwd: str, env: dict) -> None:
        self.text = text
        self.cwd = cwd
        self.env = env

    def which(self, name: str) -> str | None:
        """Path of the program that a shell would run for `name`."""
        if "/" in name:
            path = os.path.join(self.cwd, name)
            return path if os.path.isfile(path) and os.access(path, os.X_OK) else None
        for folder in self.env.get("PATH", os.defpath).split(os.pathsep):
            path = os.path.join(self.cwd, folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return None

    def python(self) -> str:
        """Interpreter for an entry point that names none."""
        found = self.which("python") or self.which("python3")
        if found is None:
            raise GuestError(
                "not_found",
                "There is no Python on the PATH of the sandbox.",
                "Name one: `/path/to/python app.py`.",
            )
        return found


def change_folder(text: str, workdir: str) -> tuple[str, str]:
    """(folder that `cd sub && …` goes to, rest of the line)."""
    cwd = workdir
    match = _CD.match(text)
    while match:
        cwd = os.path.join(cwd, "".join(shlex.split(match.group(1))))
        if not os.path.isdir(cwd):
            raise GuestError("not_found", f"There is no folder `{match.group(1)}` for `{text.strip()}`.")
        text = text[match.end() :]
        match = _CD.match(text)
    return os.path.normpath(cwd), text


def split_words(rest: str, text: str) -> list:
    """Words of `rest`, the end of the entry point `text`. Raises GuestError (invalid) for a quoting error."""
    try:
        words = shlex.split(rest)
    except ValueError as exc:
        raise GuestError(
            "invalid",
            f"The entry point `{text.strip()}` has a quoting error: {exc}.",
            "Close the quote.",
        ) from exc
    return [word for word in words if word != "2>&1"]


def _assignments(words: list) -> tuple[dict, list]:
    env: dict = {}
    words = list(words)
    while words and (words[0] in ("env", "exec", "time") or ASSIGNMENT.match(words[0])):
        word = words.pop(0)
        if "=" in word:
            name, _, value = word.partition("=")
            env[name] = value
    return env, words


def _program(words: list, place: _Place) -> tuple[list, dict]:
    word, args = words[0], words[1:]
    name = os.path.basename(word)
    if _PYTHON.match(name):
        return _python(_interpreter(word, place), args, place)
    if name == "pdb" or name.startswith("pdb3"):
        return [place.python()], _behind_pdb(args, place)
    if "::" in word:
        return [place.python()], {"mode": "module", "target": "pytest", "args": words}
    if word.endswith((".py", ".pyw")):
        return _bare_file(words, place)
    script = place.which(word)
    python = None if script is None else _python_of_script(script, place)
    if python is not None:
        return python, {"mode": "console", "target": script, "args": args}
    if name in ("pytest", "py.test"):
        return [place.python()], {"mode": "module", "target": "pytest", "args": args}
    if _MODULE.match(word) and is_module(word, place.cwd):
        return [place.python()], {"mode": "module", "target": word, "args": args}
    if os.path.isfile(os.path.join(place.cwd, word)):
        raise GuestError("invalid", f"`{word}` is not executable.", f"Write `bash {word}`, or `chmod +x` it.")
    raise GuestError("not_found", f"There is no program, script or module `{word}`.", FORMS)


def _interpreter(word: str, place: _Place) -> str:
    found = place.which(word)
    if found is None and "/" not in word and word in ("python", "python3"):
        return place.python()
    if found is None:
        raise GuestError(
            "not_found",
            f"There is no interpreter `{word}` in the sandbox.",
            "Name one that is there, such as `python3`.",
        )
    return found


def _python(python: str, args: list, place: _Place) -> tuple[list, dict]:
    options = [python]
    args = list(args)
    while args:
        word = args.pop(0)
        if word == "--check-hash-based-pycs" and args:
            options += [word, args.pop(0)]
        elif not word.startswith("-") or word == "-":
            return options, _script(word, args, place)
        else:
            target = _option(word, args, options, place)
            if target is not None:
                return options, target
    raise GuestError(
        "invalid", f"The entry point `{place.text.strip()}` names no script or module to run.", FORMS
    )


def _option(word: str, args: list, options: list, place: _Place) -> dict | None:
    """Parse one word of short options; returns the target if it is among them."""
    for position, letter in enumerate(word[1:], 1):
        if letter in "cmWX":
            value = word[position + 1 :] or (args.pop(0) if args else None)
            if value is None:
                raise GuestError(
                    "invalid",
                    f"`-{letter}` lacks its argument in the entry point `{place.text.strip()}`.",
                    FORMS,
                )
            if letter in "WX":
                options += ["-" + letter, value]
                return None
            return (
                _module(value, args, place)
                if letter == "m"
                else {"mode": "code", "target": value, "args": args}
            )
        if letter == "i":
            continue  # the debugger stays at the end anyway
        if letter not in _FLAGS:
            raise GuestError("invalid", f"Python's option `{word}` can't be part of an entry point.", FORMS)
        options.append("-" + letter)
    return None


def _module(name: str, args: list, place: _Place) -> dict:
    if name == "pdb":
        return _behind_pdb(args, place)
    if not all(part.isidentifier() for part in name.split(".")):
        raise GuestError("invalid", f"`{name}` is no module name.", FORMS)
    return {"mode": "module", "target": name, "args": args}


def _behind_pdb(args: list, place: _Place) -> dict:
    args = list(args)
    while args:
        word = args.pop(0)
        if word in ("-c", "--command") and args:
            args.pop(0)
        elif word == "-m" and args:
            return _module(args.pop(0), args, place)
        elif not word.startswith("-"):
            return _script(word, args, place)
    raise GuestError(
        "invalid", f"The entry point `{place.text.strip()}` names no script or module to run.", FORMS
    )


def _script(word: str, args: list, place: _Place) -> dict:
    path = os.path.join(place.cwd, word)
    if os.path.isfile(path) or os.path.isfile(os.path.join(path, "__main__.py")):
        return {"mode": "script", "target": word, "args": args}
    if os.path.isdir(path):
        raise GuestError("invalid", f"`{word}` is a folder without a `__main__.py`.", FORMS)
    raise GuestError("not_found", f"There is no file `{word}`.", _similar(word, place.cwd))


def _bare_file(words: list, place: _Place) -> tuple[list, dict]:
    target = _script(words[0], words[1:], place)
    name = os.path.basename(words[0])
    if name.startswith("test_") or name.endswith("_test.py"):
        return [place.python()], {"mode": "module", "target": "pytest", "args": words}
    return [place.python()], target


def _python_of_script(script: str, place: _Place) -> list | None:
    """Interpreter that the script's first lines name; None when it isn't Python."""
    with open(script, "rb") as file:
        head = file.read(1024).decode("utf-8", "replace").splitlines()[:2]
    if not head or not head[0].startswith("#!"):
        return None
    words = head[0][2:].split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S"]
    if words and _PYTHON.match(os.path.basename(words[0])):
        found = place.which(words[0])
        return None if found is None else [found] + words[1:]
    # Installers write a shell line when the interpreter's path is too long: '''exec' /path/python "$0" "$@"
    match = re.match(r"'''exec' (\S+|\"[^\"]*\") ", head[1]) if len(head) > 1 else None
    return [match.group(1).strip('"')] if match else None


def is_module(name: str, cwd: str) -> bool:
    """True if a folder has a module of that name, or a package that can be run."""
    path = os.path.join(cwd, *name.split("."))
    return os.path.isfile(path + ".py") or os.path.isfile(os.path.join(path, "__main__.py"))


def _similar(word: str, cwd: str) -> str:
    """A hint with the files that have almost this name."""
    names = []
    for folder, folders, files in os.walk(cwd):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and name not in ("node_modules", "__pycache__")
        ]
        names += [os.path.relpath(os.path.join(folder, name), cwd) for name in files if name.endswith(".py")]
        if len(names) > 5000:
            break
    same = sorted(name for name in names if os.path.basename(name) == os.path.basename(word))
    close = same[:3] or difflib.get_close_matches(word, names, 3, 0.6)
    return "Did you mean {}?".format(" or ".join(f"`{name}`" for name in close)) if close else FORMS
