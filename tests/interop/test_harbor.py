"""Harbor takes the tasks that the importers write, and the trajectories that are exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_server.tasks.importing.importer import Given, ImportRequest
from tests.bubblewrap import LOCAL
from tests.e2e.client import PDBOX, pdbox
from tests.interop.environments import Environments
from tests.interop.episodes.script import NAMES, TASKS, calls_of
from tests.interop.program import finished
from tests.mcp_server.tasks.importing.layouts import FIXED, GOLD, SHOP, TEST, import_all, record, write
from tests.mcp_server.tasks.importing.test_folders import EXERCISE, NOW

DRIVER = Path(__file__).with_name("episodes") / "harbor_reads.py"
PATIENCE_S = 120
BUGGY = {"shop.py": SHOP, "test_shop.py": TEST}


@pytest.fixture
def harbor(environments: Environments) -> Callable[..., Any]:
    """Have Harbor read folders or a file; gives what it found."""

    def read(*words: str | Path) -> Any:
        done = finished([environments.python("harbor"), DRIVER, *words], PATIENCE_S)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return json.loads(done.stdout.strip().rpartition("\n")[2])

    return read


def mini_nightmare(folder: Path) -> tuple[Path, Given]:
    """Folders as debug-gym's mini_nightmare has them."""
    write(folder, {"a/shop_code.py": SHOP, "a/test.py": TEST, "b/cart_code.py": SHOP, "b/test.py": TEST})
    return folder, Given()


def exercism(folder: Path) -> tuple[Path, Given]:
    """Exercise of a track."""
    write(folder, {f"exercises/practice/two-fer/{name}": text for name, text in EXERCISE.items()})
    return folder, Given()


def quixbugs(folder: Path) -> tuple[Path, Given]:
    """Program with a fixed one beside it: what has no format of its own."""
    write(folder, {"buggy/kth.py": SHOP, "buggy/test_kth.py": TEST, "fixed/kth.py": FIXED})
    write(folder, {"fixed/test_kth.py": TEST})
    return folder / "buggy", Given(entrypoint="python -m pytest -q", gold=folder / "fixed", python="3.11")


def swebench(folder: Path) -> tuple[Path, Given]:
    """Record that has an image, and the patch of the tests hidden."""
    # An instruction and a name with all that TOML and Markdown could trip over.
    text = 'Quotes """ and \'\'\', \\ and \x1b, a line separator \u2028 and "é".\n```\n[metadata]\n```'
    row = record(instance_id="pallets__flask-1", repo="pallets/flask", version="2.3", problem_statement=text)
    write(folder, {"lite.jsonl": json.dumps(row)})
    return folder / "lite.jsonl", Given()


def configuration(folder: Path) -> tuple[Path, Given]:
    """Configuration of debug-gym, which names a repository."""
    write(folder, {"configs/local.yaml": NOW, "data/sums/sums.py": SHOP, "data/sums/test.py": TEST})
    return folder / "configs" / "local.yaml", Given()


def custom(folder: Path) -> tuple[Path, Given]:
    """Repository with debug-gym's files of patterns."""
    write(folder, {**BUGGY, ".debugignore": "*.log\n", ".debugreadonly": "test_*\n", "gold.patch": GOLD})
    return folder, Given(gold=folder / "gold.patch")


SOURCES = (mini_nightmare, exercism, quixbugs, swebench, configuration, custom)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_each_imported_task_is_one_of_harbor(
    source: Callable[[Path], tuple[Path, Given]], harbor: Callable[..., Any], tmp_path: Path
) -> None:
    path, given = source(tmp_path / "source")
    tasks, skipped = import_all(path, ImportRequest(tmp_path / "out", given=given))
    assert tasks and not skipped
    found = harbor("tasks", *(task.folder for task in tasks.values()))
    for one, task in zip(found, tasks.values(), strict=True):
        assert one["valid"] is True
        # Files have one kind of line ends for Harbor.
        assert one["instruction"].split() == task.instruction.split()
        assert one["image"] == task.file.environment.docker_image
        assert one["facts"]["entrypoint"] == task.facts.entrypoint


def test_the_tasks_that_ship_are_tasks_of_harbor(harbor: Callable[..., Any]) -> None:
    found = harbor("tasks", *(TASKS / name for name in NAMES))
    assert [one["valid"] for one in found] == [True] * len(NAMES)
    assert [one["name"] for one in found] == [f"pdbox/{name}" for name in NAMES]


@pytest.mark.anyio
async def test_the_export_of_an_episode_is_a_trajectory_of_harbor(
    harbor: Callable[..., Any], tmp_path: Path
) -> None:
    records = tmp_path / "records"
    async with pdbox(*LOCAL, "--task", "shop_discount", "--record", str(records)) as session:
        for name, arguments in calls_of("shop_discount"):
            await session.call(name, **arguments)
    (file,) = records.glob("*.jsonl")
    exported = tmp_path / "trajectory.json"
    done = finished([PDBOX, "export", file, "--format", "atif"], PATIENCE_S)
    exported.write_text(done.stdout, "utf-8")
    assert harbor("trajectory", exported) == {"valid": True, "errors": []}
    steps = json.loads(done.stdout)["steps"]
    assert len(steps) == 4
    assert [key for step in steps for key in ("metrics", "llm_call_count") if key in step] == []
