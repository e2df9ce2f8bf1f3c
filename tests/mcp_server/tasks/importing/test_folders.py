"""Sources that are folders: mini_nightmare, exercises, debug-gym's configurations, any repository."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from mcp_server.cli import main
from mcp_server.tasks.folder import load_task
from mcp_server.tasks.importing.importer import Given, ImportRequest
from mcp_server.tasks.importing.patches import diff_file
from sandbox.errors import InvalidArgument
from tests.mcp_server.tasks.importing.layouts import (
    FIXED,
    GOLD,
    SHOP,
    TEST,
    files_in,
    import_all,
    write,
)

EXERCISE = {
    ".docs/instructions.md": "# Instructions\n\nAdd the prices.\n",
    ".docs/instructions.append.md": "# Append\n\nRaise nothing.\n",
    ".meta/config.json": json.dumps(
        {
            "files": {
                "solution": ["two_fer.py"],
                "test": ["two_fer_test.py"],
                "example": [".meta/example.py"],
                "editor": ["data.py"],
            }
        }
    ),
    ".meta/example.py": "def total(prices):\n    return sum(prices)",
    ".approaches/sum/content.md": "return sum(prices)\n",
    "two_fer.py": "def total(prices):\n    pass\n",
    "two_fer_test.py": TEST,
    "data.py": "",
}


def test_each_folder_of_mini_nightmare_is_a_task(tmp_path: Path) -> None:
    clone = write(
        tmp_path / "debug-gym",
        {
            "README.md": "",
            "data/mini_nightmare/shop/shop_code.py": SHOP,
            "data/mini_nightmare/shop/test.py": TEST,
            "data/mini_nightmare/shop/.debugreadonly": "*test*.py\n",
            "data/mini_nightmare/table/table_code.py": "import pandas as pd\n",
            "data/mini_nightmare/table/test.py": "",
            "data/mini_nightmare/mini_nightmare.md": "The fix is …",
        },
    )
    tasks, skipped = import_all(clone, ImportRequest(tmp_path / "out"))
    assert (sorted(tasks), skipped) == (["shop", "table"], {})
    shop, table = tasks["shop"], tasks["table"]
    assert shop.facts.entrypoint == "python -m pytest --tb=no -s test.py"
    assert shop.facts.source.benchmark == "mini_nightmare"
    assert files_in(shop) == {"shop_code.py", "test.py", ".debugreadonly"}
    assert "root cause" in shop.instruction
    assert (shop.facts.requirements, table.facts.requirements) == ([], ["pytest", "pandas"])


def test_a_single_folder_is_called_after_its_program_and_takes_a_patch(tmp_path: Path) -> None:
    folder = write(tmp_path / "repo", {"shop_code.py": SHOP, "test.py": TEST})
    gold = write(tmp_path / "golds", {"shop.patch": GOLD, "other.patch": "?"})
    tasks, _ = import_all(folder, ImportRequest(tmp_path / "out", given=Given(gold=gold)))
    assert tasks["shop"].gold_patch() == GOLD.encode()


def test_an_exercise_comes_without_its_solution_which_is_the_gold_patch(tmp_path: Path) -> None:
    track = write(tmp_path, {f"t/exercises/practice/two-fer/{name}": text for name, text in EXERCISE.items()})
    write(
        track, {"t/exercises/practice/broken/.meta/config.json": "{", "t/exercises/practice/broken/a.py": ""}
    )
    tasks, skipped = import_all(tmp_path / "t", ImportRequest(tmp_path / "out"))
    assert list(skipped) == ["broken"]
    task = tasks["two_fer"]
    assert files_in(task) == {
        "two_fer.py",
        "two_fer_test.py",
        "data.py",
        ".docs/instructions.md",
        ".docs/instructions.append.md",
    }
    assert task.instruction.startswith("# Instructions\n\nAdd the prices.\n\n# Append\n\nRaise nothing.\n\n")
    assert task.instruction.endswith(
        "Write the solution in `two_fer.py`. `two_fer_test.py`, `data.py` can't be changed."
    )
    assert task.facts.entrypoint == "python -m pytest --tb=no -s ."
    assert task.facts.read_only == ["/two_fer_test.py", "/data.py"]
    repo = task.repository
    assert repo is not None
    subprocess.run(["git", "apply", task.folder / "solution" / "gold.patch"], cwd=repo, check=True)
    assert (repo / "two_fer.py").read_text("utf-8") == EXERCISE[".meta/example.py"]


NOW = """\
task_name: sums
task_data:
  env_type: local
  path: data/sums
  entrypoint: python test.py
  debug_entrypoint: python -m pdb test.py
terminal:
  type: docker
  base_image: python:3.12-slim
  setup_commands: [pip install pytest]
env:
  run_timeout: 20
"""
VERSION_1_0 = """\
task_name: sums
base:
  env_kwargs: {
    "path": "data/sums",
    "entrypoint": "python test.py",
    "debug_entrypoint": "python -m pdb test.py",
    "run_timeout": 20,
  }
  terminal:
    base_image: python:3.12-slim
    setup_commands: [pip install pytest]
"""


@pytest.mark.parametrize("config", [NOW, VERSION_1_0])
def test_a_configuration_of_debug_gym_names_repository_and_commands(tmp_path: Path, config: str) -> None:
    clone = write(
        tmp_path / "gym", {"configs/local.yaml": config, "data/sums/sums.py": SHOP, "data/sums/test.py": TEST}
    )
    tasks, _ = import_all(clone / "configs" / "local.yaml", ImportRequest(tmp_path / "out"))
    facts = tasks["sums"].facts
    assert facts.entrypoint == "python test.py"
    assert facts.debug_entrypoint == "python -m pdb test.py"
    assert (facts.image, facts.setup) == ("python:3.12-slim", ["pip install pytest"])
    assert facts.limits.timeout_s == 20
    assert files_in(tasks["sums"]) == {"sums.py", "test.py"}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            "dataset: {type: aider}\n",
            "names no `path` of a repository. Import the files of aider themselves.",
        ),
        ("task_data: {path: ../../secret}\n", "names the folder '../../secret', which is in none of"),
        ("task_data: {path: x, env_type: FreeEnv}\n", "not 'FreeEnv'"),
        ("task_data: {path: data}\nterminal: {env_vars: {A-B: c}}\n", "terminal.env_vars.A-B"),
        ("task_data: [", "can't be read"),
        ("- 1", "is not a configuration of debug-gym"),
        (
            "task_data: {path: data, entrypoint: [1]}\n",
            "task_data.entrypoint: Input should be a valid string",
        ),
    ],
)
def test_other_configurations_are_refused_with_the_reason(tmp_path: Path, config: str, said: str) -> None:
    write(tmp_path, {"secret/x.py": "", "gym/configs/a.yaml": config})
    with pytest.raises(InvalidArgument) as raised:
        import_all(tmp_path / "gym" / "configs" / "a.yaml", ImportRequest(tmp_path / "out"))
    assert said in str(raised.value)


def test_a_folder_becomes_a_task_with_what_the_command_line_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    buggy = write(
        tmp_path / "My Shop", {"shop.py": SHOP, "test_shop.py": TEST, ".git/config": "", "gone.py": "1\n"}
    )
    fixed = write(tmp_path / "fixed", {"shop.py": FIXED, "test_shop.py": TEST, "new file.py": "2"})
    out = tmp_path / "out"
    words = [
        "--entrypoint",
        "pytest -q",
        "--requirement",
        "pytest>=7",
        "--env",
        "A=b",
        "--setup",
        "make",
        "--python=3.11",
    ]
    assert main(["tasks", "import", str(buggy), "--out", str(out), "--gold", str(fixed), *words]) == 0
    assert capsys.readouterr().out == f"My_Shop: {out / 'My_Shop'}\n"
    task = load_task(out / "My_Shop")
    assert task.facts.entrypoint == "pytest -q"
    assert (task.facts.requirements, task.facts.env) == (["pytest>=7"], {"A": "b"})
    assert (task.facts.setup, task.facts.python) == (["make"], "3.11")
    assert task.facts.source.instance_id == "My Shop"
    repo = task.repository
    assert repo is not None
    assert files_in(task) == {"shop.py", "test_shop.py", "gone.py"}
    subprocess.run(["git", "apply", task.folder / "solution" / "gold.patch"], cwd=repo, check=True)
    assert {path.name: path.read_text("utf-8") for path in repo.iterdir()} == {
        "shop.py": FIXED,
        "test_shop.py": TEST,
        "new file.py": "2",
    }


def test_what_was_written_and_what_was_not_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {f"t/{name}/{name}_code.py": SHOP for name in ("a", "b", "c")})
    write(tmp_path, {f"t/{name}/test.py": TEST for name in ("a", "b", "c")})
    command = ["tasks", "import", str(tmp_path / "t"), "--out", str(tmp_path / "out")]
    assert main([*command, "--select", "a", "b"]) == 0
    capsys.readouterr()
    assert main([*command, "--select", "b", "c", "d"]) == 1
    told = capsys.readouterr()
    assert told.out == f"c: {tmp_path / 'out' / 'c'}\n1 tasks written, 2 skipped.\n"
    assert told.err == (
        f"b: skipped: {tmp_path / 'out' / 'b'} exists; remove it to import the task again\n"
        "d: skipped: the source has no such task\n"
    )
    assert main([*command, "--json", "--select", "d"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "tasks": [],
        "skipped": [{"name": "d", "reason": "the source has no such task"}],
        "not_listed": [],
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "b", "c"]


def test_a_source_that_nobody_knows_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "t", {"shop.py": SHOP})
    assert main(["tasks", "import", str(tmp_path / "t"), "--out", str(tmp_path / "out")]) == 2
    assert (
        "is of no known format (swesmith, swegym, r2egym, swebench, mini_nightmare, exercism, custom, folder)."
        in capsys.readouterr().err
    )
    assert main(["tasks", "import", str(tmp_path / "t")]) == 2
    assert capsys.readouterr().err == "pdbox: Name what to import, and `--out DIR`.\n"


def test_archives_are_unpacked_and_nothing_of_them_lands_elsewhere(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "good.zip", "w") as archive:
        archive.writestr("mini/shop/shop_code.py", SHOP)
        archive.writestr("mini/shop/test.py", TEST)
    tasks, _ = import_all(tmp_path / "good.zip", ImportRequest(tmp_path / "out"))
    assert list(tasks) == ["shop"]
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("../../evil.py", "")
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        link = tarfile.TarInfo("up")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        tar.addfile(link)
        member = tarfile.TarInfo("up/evil.py")
        tar.addfile(member, io.BytesIO())
    (tmp_path / "cut.tar.gz").write_bytes(b"\x1f\x8b\x08")
    for name in ("bad.zip", "bad.tar", "cut.tar.gz"):
        with pytest.raises(InvalidArgument):
            import_all(tmp_path / name, ImportRequest(tmp_path / "out"))
    assert not list(tmp_path.rglob("evil.py"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["shop"]


def test_links_out_of_a_repository_do_not_bring_files_of_this_machine(tmp_path: Path) -> None:
    write(tmp_path, {"secret/key": "s3cret", "t/shop_code.py": SHOP, "t/test.py": TEST, "t/a/b/c.txt": "c"})
    repo = tmp_path / "t"
    (repo / "key").symlink_to(tmp_path / "secret" / "key")
    (repo / "secret").symlink_to("../secret")
    (repo / "inside").symlink_to("a/b")
    (repo / "a" / "b" / "up").symlink_to("../../inside")
    (repo / "a" / "b" / "out").symlink_to("up/../../../secret")  # inside by its text alone
    (repo / "loop").symlink_to("loop")
    tasks, _ = import_all(repo, ImportRequest(tmp_path / "out"))
    assert files_in(tasks["shop"]) == {"shop_code.py", "test.py", "a/b/c.txt", "a/b/up", "inside"}


def test_an_exercise_whose_solution_is_a_file_of_this_machine_is_skipped(tmp_path: Path) -> None:
    secret = write(tmp_path / "home", {"key.py": "s3cret"}) / "key.py"
    folder = write(tmp_path / "two-fer", EXERCISE)
    (folder / ".meta" / "link").symlink_to(secret.parent)
    config = json.loads(EXERCISE[".meta/config.json"])
    config["files"]["example"] = [".meta/link/key.py"]
    (folder / ".meta" / "config.json").write_text(json.dumps(config), "utf-8")
    tasks, skipped = import_all(folder, ImportRequest(tmp_path / "out"))
    assert (tasks, skipped) == ({}, {"two_fer": ".meta/link/key.py leads out of two-fer."})
    config["files"]["solution"] = ["../../evil.py"]
    (folder / ".meta" / "config.json").write_text(json.dumps(config), "utf-8")
    _, skipped = import_all(folder, ImportRequest(tmp_path / "out"))
    assert skipped["two_fer"].endswith("must stay below its folder")


def test_a_repository_is_copied_without_the_folder_that_tasks_are_written_to(tmp_path: Path) -> None:
    repo = write(tmp_path / "shop", {"shop.py": SHOP, "tests/test_shop.py": TEST, "a/b.py": ""})
    given = Given(entrypoint="pytest")
    tasks, skipped = import_all(repo, ImportRequest(repo / "a" / "out", given=given))
    assert (files_in(tasks["shop"]), skipped) == ({"shop.py", "tests/test_shop.py"}, {})


def test_a_tree_that_is_too_deep_is_skipped(tmp_path: Path) -> None:
    write(tmp_path / "deep", {"/".join("a" * 150) + "/b.py": ""})
    _, skipped = import_all(
        tmp_path / "deep", ImportRequest(tmp_path / "out", given=Given(entrypoint="pytest"))
    )
    assert skipped == {"deep": "It has folders that are more than 100 deep."}


def test_files_that_no_patch_can_hold_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="not text"):
        diff_file("a.bin", b"\0", b"\1")
    with pytest.raises(InvalidArgument, match="can't stand in a patch"):
        diff_file('a\n+++ b/"x"', b"", b"x")
