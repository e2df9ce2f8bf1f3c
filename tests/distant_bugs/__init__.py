"""Bugs in packages of others whose buggy function is not in the traceback of the failing test: 31 task folders.

Each archive holds one folder in Harbor's format: a release of the package, changed by hand so that state is not reset,
a cache is keyed wrongly, an object is shared, and so on. `metadata.pdbox.source` has the package, its version and its
licence, whose text is in the package. The lists of `diagnose` were written with 21 of them in view, without `UNSEEN`.
"""

from __future__ import annotations

import re
from pathlib import Path

from mcp_server.tasks.folder import Task, load_task
from mcp_server.tasks.importing import trees
from sandbox.guest.diagnosis.sources import Sources

NAMES = sorted(path.name.partition(".")[0] for path in Path(__file__).parent.glob("*.tar.xz"))
UNSEEN = (
    "anytree_glob",
    "beautifultable_slices",
    "bibtexparser_format",
    "gpxpy_speed",
    "injector_shared",
    "jsonmerge_versions",
    "pypubsub_providers",
    "routes_members",
    "sievelib_roundtrip",
    "zict_buffer",
)
"""Ten on which `diagnose` was first run when its lists had been written; of these and two more it named a function of the fix for 4.

Changes since then had them in view: the share that the benchmark prints is no longer of bugs that nobody had seen.
"""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")


def unpack(name: str, folder: Path) -> Task:
    """Unpack one of `NAMES` into `folder`."""
    return load_task(trees.unpack(Path(__file__).with_name(f"{name}.tar.xz"), folder / "of" / name))


def changed_functions(repo: Path, patch: str) -> set[tuple[str, str]]:
    """(path, qualified name) of the functions in `repo` of which a patch changes lines."""
    sources, found = Sources(), set[tuple[str, str]]()
    path, number = "", 0
    for line in patch.splitlines():
        if line.startswith("--- "):
            path = line.removeprefix("--- a/").partition("\t")[0]
        elif hunk := _HUNK.match(line):
            number = int(hunk[1]) - 1
        elif line[:1] in "- ":
            number += 1
        if line[:1] in "-+" and not line.startswith(("---", "+++")):
            found.add((path, sources.function_at(str(repo / path), number)[0]))
    return {(path, name) for path, name in found if name != "<module>"}
