from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.tasks.catalog import SHIPPED, TaskCatalog, resolve_tasks
from mcp_server.tasks.dockerfile import Dockerfile
from mcp_server.tasks.folder import Task, TaskContent, find_tasks, load_task, to_toml, write_task
from mcp_server.tasks.model import TaskFacts, TaskLimits, TaskSource, schema_text
from mcp_server.tasks.opening import complete_request, to_score
from sandbox.errors import InvalidArgument, NotFound
from sandbox.opening.request import SessionRequest
from tests.repository import repository


def foreign(folder: Path, toml: str = 'version = "1.0"\n', **files: str) -> Path:
    """A task that was made without pdbox."""
    return repository(folder, {"task.toml": toml, "instruction.md": "Do it.\n", **files})


def test_the_published_schema_is_that_of_the_model() -> None:
    assert (SHIPPED / "task.schema.json").read_text("utf-8") == schema_text() + "\n", "run `make manifests`"


def test_a_task_is_read_as_it_was_written(tmp_path: Path) -> None:
    facts = TaskFacts(
        repo="code/src",
        python="3.12",
        requirements=["pytest==8.4.2"],
        setup=["echo 'a\nb'"],
        env={"PYTHONPATH": "{workspace}/src"},
        fail_to_pass=['t.py::test_x["é\\ \x7f\n]'],
        pass_to_pass=["t.py::test_y"],
        ignore=["secret/"],
        read_only=["tests/"],
        limits=TaskLimits(timeout_s=9.5, memory_mb=512),
        profile="debug_5",
        source=TaskSource(benchmark="b", instance_id="i"),
    )
    source = repository(tmp_path / "source", {"a.py": "a"})
    (source / "link").symlink_to("a.py")
    content = TaskContent(
        "org/t", "Fix\nit", facts, source, "gold", b"\xffhidden", metadata={"difficulty": "easy"}
    )
    task = write_task(tmp_path / "t", content)
    added = {"gold_patch": "gold.patch", "test_patch": "test.patch"}
    assert task.facts == facts.model_copy(update=added)
    assert (task.instruction, task.gold_patch(), task.test_patch()) == ("Fix\nit", b"gold", b"\xffhidden")
    assert task.repository is not None
    assert task.repository == task.folder / "environment/code/src"
    assert (task.repository / "link").readlink() == Path("a.py")
    assert task.file.metadata["difficulty"] == "easy"
    assert not task.is_foreign
    assert {path.name for path in task.folder.iterdir()} == {
        "task.toml",
        "instruction.md",
        "environment",
        "tests",
        "solution",
    }


@given(st.dictionaries(st.text(min_size=1), st.text() | st.lists(st.text()) | st.integers() | st.booleans()))
def test_any_text_survives_toml(table: dict[str, object]) -> None:
    text = to_toml({"a": table})
    whole = {key.encode("utf-8", "replace").decode(): value for key, value in table.items()}
    if all(sign < "\ud800" or sign > "\udfff" for sign in str(table)) and len(whole) == len(table):
        assert tomllib.loads(text) == {"a": table}
    else:
        tomllib.loads(text)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('schema_version = "2.0"', "schema_version: "),
        ("[[steps]]\nname = 'a'", "it has several steps"),
        ("[environment]\nos = 'Windows'", "its operating system is 'windows'"),
        ("[environment]\ngpus = 1", "it needs GPUs"),
        ("[verifier.environment]\ncpus = 1", "container of their own"),
        ("[metadata.pdbox]\nentry_point = 'pytest'", "entry_point: Extra inputs are not permitted"),
        ("[metadata.pdbox]\ngold_patch = '../x'", "gold_patch: must stay below its folder"),
        ("[metadata.pdbox]\nrepo = 'a/../../b'", "repo: must be a plain relative path"),
        ("[metadata.pdbox.env]\n'a b' = ''", "env.a b"),
        ("[metadata.pdbox]\nhidden_folders = ['tests']", "hidden_folders.0: must be a plain absolute path"),
        ("[metadata.pdbox]\nhidden_folders = ['/']", "hidden_folders.0: must be a plain absolute path"),
        ("a = ", "is not valid TOML"),
        (f"[{'a.' * 5000}b]", "too many dots"),
    ],
)
def test_an_unusable_task_is_refused_by_the_field(tmp_path: Path, toml: str, said: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        load_task(foreign(tmp_path / "t", toml))
    assert said in str(refused.value)


def test_a_link_out_of_a_task_is_not_followed(task: Task, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (task.solution_folder / "gold.patch").unlink()
    (task.solution_folder / "gold.patch").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidArgument, match="leads out of its folder"):
        task.gold_patch()


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "1.4"])
def test_a_folder_of_anybody_is_a_task(tmp_path: Path, version: str) -> None:
    dockerfile = (
        "FROM python:3.12 AS base\nFROM base\nWORKDIR /srv\nENV A=1 \\\n  B='x y'\nRUN <<EOF\nFROM no\nEOF\n"
    )
    folder = foreign(
        tmp_path / "t",
        f'schema_version = "{version}"\n[metadata]\nsince = 2025-01-01\n[environment]\nmemory = "2G"\n',
        **{"environment/Dockerfile": dockerfile, "instruction.md": "<!-- canary 1 -->\n# CANARY\n\nDo it.\n"},
    )
    task = load_task(folder)
    assert task.is_foreign
    assert task.instruction == "Do it."
    assert (task.image, task.workdir, task.facts.env) == ("python:3.12", "/srv", {"A": "1", "B": "x y"})
    assert task.repository == folder / "environment"


def test_a_prebuilt_image_has_the_repository_in_its_folder(tmp_path: Path) -> None:
    task = load_task(
        foreign(tmp_path / "t", '[environment]\ndocker_image = "org/x:1"\nworkdir = "/testbed"\n')
    )
    assert (task.image, task.facts.image_folder, task.repository) == ("org/x:1", "/testbed", None)


def test_what_a_task_hides_of_its_image_is_hidden_from_the_model_and_from_a_patch(task: Task) -> None:
    content = TaskContent(
        "a/b", "Do it.", TaskFacts(image="org/x:1", repo="/testbed", hidden_folders=["/r2e_tests"])
    )
    hiding = write_task(task.folder, content)
    request = complete_request(hiding, SessionRequest(), SessionRequest())
    assert request.folders == ("/r2e_tests",)
    assert to_score(request, foreign=False).folders == ("/r2e_tests",)


def test_an_image_that_is_an_argument_is_unknown() -> None:
    assert Dockerfile.parse("ARG V=1\nFROM python:$V\nWORKDIR a\n") == Dockerfile(None, "/a")


def test_names_are_looked_up_and_never_used_as_paths(task: Task, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("a/one", "b/one", "two"):
        foreign(root / name)
    foreign(root / ".hidden/three")
    catalog = TaskCatalog([root])
    assert [name for name, _ in catalog.folders()][:3] == ["a/one", "b/one", "two"]
    assert catalog.find("a/one").folder == root / "a/one"
    assert catalog.find("shop_discount").folder == SHIPPED / "shop_discount"
    with pytest.raises(InvalidArgument, match="2 tasks are called 'one': a/one, b/one"):
        catalog.find("one")
    for name in (str(task.folder), "../tasks/double", ".hidden/three", "three"):
        with pytest.raises(NotFound, match="There is no task"):
            catalog.find(name)


def test_people_may_name_folders(task: Task) -> None:
    words = [str(task.folder.parent), "shop_discount"]
    assert resolve_tasks(words, TaskCatalog()) == [task.folder, SHIPPED / "shop_discount"]


def test_no_task_ships_without_a_solution_and_tests() -> None:
    shipped = [load_task(folder) for folder in find_tasks(SHIPPED)]
    assert len(shipped) >= 4
    assert all(task.gold_patch() and task.facts.fail_to_pass and task.facts.pass_to_pass for task in shipped)
