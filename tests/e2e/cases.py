"""Real buggy programs as test data: a folder of manifests (`case.json`) beside programs, patches and expected values."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mcp_server.tasks.importing import trees

PROJECT = Path(__file__).resolve().parents[2]
SHARED = PROJECT.parent / "shared" / "cases"
OWN = Path(__file__).parent / "samples"
LAID = os.environ.get("PDBOX_CASES")
"""A folder with the programs that are laid from clones of their sources."""
BACKPORTS = ("exceptiongroup", "tomli", "typing-extensions")
QUICK_REPOSITORIES = ("pallets__flask-4992", "marshmallow-code__marshmallow-1359", "pytest-dev__pytest-7168")


@dataclass(frozen=True)
class Probe:
    """Where to stop, and what an expression must be there."""

    file: str
    line: int
    hit: int
    condition: str | None
    expression: str
    expected: str
    debug_entrypoint: str


@dataclass(frozen=True)
class Hunk:
    """The text `old`, said to be at lines `start..end` (1-based; none where `end < start`), becomes `new`."""

    start: int
    end: int
    old: str
    new: str


@dataclass(frozen=True)
class Case:
    """One manifest and its folder."""

    folder: Path

    @cached_property
    def data(self) -> dict[str, Any]:
        return json.loads((self.folder / "case.json").read_text("utf-8"))

    @property
    def id(self) -> str:
        return self.data["id"]

    @property
    def debug_entrypoint(self) -> str:
        return self.data["debug_entrypoint"]

    @property
    def probes(self) -> list[Probe]:
        return [
            Probe(
                file=probe["breakpoint"]["file"],
                line=probe["breakpoint"]["line"],
                hit=probe["breakpoint"]["hit"] or 1,
                condition=probe["breakpoint"]["condition"],
                expression=probe["expression"],
                expected=probe["expected_value"],
                debug_entrypoint=probe.get("debug_entrypoint", self.debug_entrypoint),
            )
            for probe in (self.data, *self.data.get("extra_probes", []))
        ]

    def lay(self, place: Path) -> Path:
        """The program before the fix, as a git repository with one commit, in a new folder of `place`."""
        target = place / "workspace"
        tree = self.data["tree"]
        if tree["kind"] == "dir":
            shutil.copytree(self.folder / tree["path"], target, symlinks=True)
        else:
            trees.unpack(self.folder / tree["path"], place / "tar").rename(target)
        for path in (target, *target.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o700 if path.is_dir() else 0o600))
        for patch in self.data["setup_patches"]:
            _git(target, "apply", str(self.folder / patch))
        _git(target, "init", "-q")
        _git(target, "add", "-A", "-f")
        _git(target, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "before")
        return target

    def entrypoints(self) -> dict[str, str]:
        """Each failing test with the entry point that runs it alone."""
        if self.data.get("order_dependent") or self.data.get("failing_may_be_missing"):
            # It fails only after the others; or they only because of it, for it ends the whole run.
            return {self.data["expected_first_failure"]["test"]: self.data["entrypoint"]}
        command = self.data["entrypoint"].rpartition(" ")[0]
        return {test: f"{command} {_selector(test)}" for test in self.data["failing_tests"]}

    def edits(self) -> dict[str, list[Hunk]]:
        """The fix, as line replacements per file, last line first."""
        return parse_patch((self.folder / self.data["gold_patch"]).read_text("utf-8"))


def _selector(test: str) -> str:
    """unittest reports `test_x (package.Class)` and takes `package.Class.test_x`."""
    named = re.fullmatch(r"(\w+) \((.+)\)", test)
    return f"{named[2]}.{named[1]}" if named else test


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def parse_patch(text: str) -> dict[str, list[Hunk]]:
    """Per file, the hunks of a unified diff without their context, last one first."""
    edits: dict[str, list[Hunk]] = {}
    lines = text.split("\n")
    path, index = "", 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if line.startswith("+++ "):
            path = line[4:].split("\t")[0].removeprefix("b/")
        elif found := re.match(r"@@ -(\d+)(?:,(\d+))? \+", line):
            start, count = int(found[1]), int(found[2] or 1)
            body: list[str] = []
            while (
                index < len(lines)
                and lines[index][:1] in (" ", "+", "-", "\\")
                and not lines[index].startswith("--- ")
            ):
                body.append(lines[index])
                index += 1
            old, new = ("".join(f"{line[1:]}\n" for line in body if line[:1] in (" ", sign)) for sign in "-+")
            first = start if count else start + 1
            edits.setdefault(path, []).insert(0, Hunk(first, first + count - 1, old, new))
    return edits


def find_cases() -> list[Case]:
    """The cases that are here: the project's own samples, shared ones, and those laid from clones of their sources."""
    found = sorted(SHARED.glob("mini_nightmare/*/case.json")) + sorted(SHARED.glob("swebench/*/case.json"))
    if os.environ.get("PDBOX_ALL_CASES") != "1":
        found = [
            path for path in found if path.parts[-3] != "swebench" or path.parts[-2] in QUICK_REPOSITORIES
        ]
    if LAID:
        found += sorted(Path(LAID).glob("*/*/case.json"))
    return [Case(path.parent) for path in [*sorted(OWN.glob("*/case.json")), *found]]


def nearest_python(version: str) -> str:
    """The image of the tests that is closest to what the case was verified with."""
    return {"3.7": "3.9", "3.8": "3.9", "3.10": "3.11", "3.11": "3.11", "3.12": "3.13", "3.13": "3.13"}[
        version
    ]


def wheels(requirements: list[str], python: str, cache: Path, *platforms: str) -> Path:
    """A folder with the wheels of `requirements` for CPython `python`, fetched once.

    `platforms` are wanted first; what is there for none of them is taken for any that all our images have.
    """
    folder = cache / python
    folder.mkdir(parents=True, exist_ok=True)
    # pip decides by the Python that it runs on what an older one needs besides.
    wanted = sorted([*requirements, *(BACKPORTS if python in ("3.9", "3.10") else ())])
    stamp = folder / f"{hash_of(wanted)}.done"
    if requirements and not stamp.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--dest",
            str(folder),
            "--only-binary=:all:",
        ]
        wanted_for = [
            *platforms,
            "manylinux_2_28_x86_64",
            "manylinux_2_17_x86_64",
            "manylinux2014_x86_64",
            "manylinux2010_x86_64",
            "manylinux1_x86_64",
        ]
        command += [f"--platform={name}" for name in wanted_for] + [f"--python-version={python}", *wanted]
        subprocess.run(command, check=True, capture_output=True)
        stamp.touch()
    return folder


def hash_of(words: list[str]) -> int:
    """A hash that is the same in every process."""
    return zlib.crc32("\n".join(words).encode())
