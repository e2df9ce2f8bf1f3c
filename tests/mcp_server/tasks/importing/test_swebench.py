"""Records of SWE-bench: both generations of fields, kinds of files, images and trees."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from mcp_server.tasks.importing.git_history import FORGET_LATER
from mcp_server.tasks.importing.importer import Given, ImportRequest
from mcp_server.tasks.importing.test_commands import CONDA_PATH, from_table
from sandbox.errors import InvalidArgument
from tests.mcp_server.tasks.importing.layouts import (
    GOLD,
    SHOP,
    TEST_PATCH,
    files_in,
    git,
    import_all,
    record,
    write,
)

SCRIPT = f"""\
#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
export LC_ALL=en_US.UTF-8
export NOTHING=$HOME
git apply -v - <<'EOF'
{TEST_PATCH}
: '>>>>> Start Test Output'
rm -rf /
: '>>>>> End Test Output'
EOF
: '>>>>> Start Test Output'
pytest -rA --tb=no tests/test_shop.py
: '>>>>> End Test Output'
git checkout 000 tests/test_shop.py
"""


def rows(path: Path, *records: object) -> Path:
    """Write records as JSON Lines."""
    path.write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    return path


def test_a_record_of_the_first_generation_takes_image_and_command_by_the_conventions(tmp_path: Path) -> None:
    row = record(instance_id="pallets__flask-1", repo="pallets/flask", version="2.3")
    tasks, skipped = import_all(rows(tmp_path / "lite.jsonl", row), ImportRequest(tmp_path / "out"))
    assert skipped == {}
    task = tasks["pallets__flask-1"]
    facts = task.facts
    assert facts.image == "swebench/sweb.eval.x86_64.pallets_1776_flask-1:latest"
    assert (facts.repo, facts.env["PATH"]) == ("/testbed", CONDA_PATH)
    assert facts.entrypoint == "python -m pytest -rA tests/test_shop.py"
    assert facts.fail_to_pass == ["tests/test_shop.py::test_total"]
    assert task.instruction == "The total is one too high."
    assert task.gold_patch() == GOLD.encode()
    assert task.test_patch() == TEST_PATCH.encode()
    assert facts.source.commit == "0" * 40
    assert json.loads((task.folder / "tests" / "config.json").read_text("utf-8")) == row
    assert facts.setup == [FORGET_LATER]


def test_a_record_of_the_second_generation_brings_its_own(tmp_path: Path) -> None:
    row = record(
        image="registry.example/shop:7",
        eval_script=SCRIPT,
        log_parser="parse_log_pytest",
        FAIL_TO_PASS=["tests/test_shop.py::test_total"],
        PASS_TO_PASS=["tests/test_shop.py::test_none"],
    )
    tasks, _ = import_all(rows(tmp_path / "verified.jsonl", row), ImportRequest(tmp_path / "out"))
    facts = tasks["acme__shop-1"].facts
    assert facts.image == "registry.example/shop:7"
    assert facts.entrypoint == "python -m pytest -rA --tb=short tests/test_shop.py"
    assert facts.env == {"PATH": CONDA_PATH, "LC_ALL": "C.UTF-8"}
    assert facts.pass_to_pass == ["tests/test_shop.py::test_none"]


def test_a_record_of_live_has_commands_and_an_image_without_conda(tmp_path: Path) -> None:
    row = record(
        test_cmds=["pip list", "pytest -rA"], FAIL_TO_PASS=["tests/test_shop.py::test_total"], PASS_TO_PASS=[]
    )
    other = record(instance_id="b__b-2", test_cmds=["npm test"], FAIL_TO_PASS=["adds"], docker_image="x/y")
    tasks, skipped = import_all(rows(tmp_path / "live.jsonl", row, other), ImportRequest(tmp_path / "out"))
    facts = tasks["acme__shop-1"].facts
    assert facts.image == "starryzhang/sweb.eval.x86_64.acme_1776_shop-1"
    assert (facts.entrypoint, facts.env) == ("python -m pytest -rA", {})
    assert (facts.source.benchmark, facts.setup) == ("swebench_live", [FORGET_LATER])
    assert skipped == {
        "b__b-2": "no command is known that runs its tests in Python Name one with `--entrypoint`."
    }


@pytest.mark.parametrize(
    ("repo", "version", "python", "entrypoint"),
    [
        (
            "django/django",
            "3.0",
            "3.6",
            "python tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 a.test_b",
        ),
        ("django/django", "1.9", "3.5", "python tests/runtests.py --verbosity 2 a.test_b"),
        ("sympy/sympy", "1.11", "3.9", "python -m pytest -rA tests/a/test_b.py"),
        ("pydicom/pydicom", "2.4", "3.11", "python -m pytest -rA tests/a/test_b.py"),
    ],
)
def test_repositories_have_their_own_commands(repo: str, version: str, python: str, entrypoint: str) -> None:
    found = from_table(repo, version, ["tests/a/test_b.py"])
    assert found is not None
    assert (found.python, found.entrypoint) == (python, entrypoint)


def test_names_of_functions_alone_get_the_file_of_the_test_patch(tmp_path: Path) -> None:
    row = record(repo="sympy/sympy", FAIL_TO_PASS=["test_total"], PASS_TO_PASS=["test_x (a.B)", "a::b"])
    tasks, _ = import_all(rows(tmp_path / "a.jsonl", row), ImportRequest(tmp_path / "out"))
    facts = tasks["acme__shop-1"].facts
    assert facts.fail_to_pass == ["tests/test_shop.py::test_total"]
    assert facts.pass_to_pass == ["test_x (a.B)", "a::b"]


def test_every_kind_of_file_holds_the_same_records(tmp_path: Path) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    records = [
        record(instance_id=f"acme__shop-{number}", FAIL_TO_PASS=["a::b"], PASS_TO_PASS=[])
        for number in (1, 2)
    ]
    table: Any = arrow.Table.from_pylist(records)
    (tmp_path / "list.json").write_text(json.dumps(records), "utf-8")
    (tmp_path / "by_id.json").write_text(
        json.dumps({str(one["instance_id"]): one for one in records}), "utf-8"
    )
    rows(tmp_path / "lines.jsonl", *records)
    (tmp_path / "hub" / "data").mkdir(parents=True)
    parquet.write_table(table, tmp_path / "hub" / "data" / "test-00000-of-00001.parquet")
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "dataset_info.json").write_text("{}", "utf-8")
    with arrow.ipc.new_stream(str(tmp_path / "disk" / "data-00000-of-00001.arrow"), table.schema) as stream:
        stream.write_table(table)
    with arrow.ipc.new_file(str(tmp_path / "indexed.arrow"), table.schema) as file:
        file.write_table(table)
    for name in ("list.json", "by_id.json", "lines.jsonl", "hub", "disk", "indexed.arrow"):
        tasks, skipped = import_all(tmp_path / name, ImportRequest(tmp_path / "out" / name))
        assert (sorted(tasks), skipped) == (["acme__shop-1", "acme__shop-2"], {}), name
        assert tasks["acme__shop-2"].facts.fail_to_pass == ["a::b"], name


@pytest.mark.parametrize("end", ["]", ""], ids=["whole", "damaged"])
def test_a_file_is_parsed_once_however_many_formats_look_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    text = f"[{json.dumps(record())}{end}"
    (tmp_path / "rows.json").write_text(text, "utf-8")
    parsed: list[int] = []
    loads = json.loads

    def note(data: str | bytes) -> Any:
        parsed.append(len(data))
        return loads(data)

    monkeypatch.setattr("mcp_server.tasks.importing.source.json.loads", note)
    with nullcontext() if end else pytest.raises(InvalidArgument, match=r"rows\.json is not valid JSON"):
        assert list(import_all(tmp_path / "rows.json", ImportRequest(tmp_path / "out"))[0]) == [
            "acme__shop-1"
        ]
    assert parsed.count(len(text)) == 1


def test_a_clone_gives_each_record_the_tree_of_its_commit(tmp_path: Path) -> None:
    clone = write(
        tmp_path / "clones" / "shop",
        {"shop.py": SHOP, ".gitattributes": "kept.py export-ignore\n", "kept.py": ""},
    )
    git(clone, "init", "-q")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "base")
    commit = git(clone, "rev-parse", "HEAD")
    (clone / "shop.py").write_text("later\n", "utf-8")
    git(clone, "commit", "-qam", "later")
    source = rows(tmp_path / "a.jsonl", record(base_commit=commit), record(instance_id="acme__shop-2"))
    tasks, skipped = import_all(source, ImportRequest(tmp_path / "out", source=tmp_path / "clones"))
    assert skipped == {"acme__shop-2": f"shop has no commit {'0' * 40} Fetch it into the clone."}
    task = tasks["acme__shop-1"]
    assert files_in(task) == {"shop.py", ".gitattributes", "kept.py"}
    assert task.repository is not None
    assert (task.repository / "shop.py").read_text("utf-8") == SHOP
    assert (task.facts.image, task.facts.env) == (None, {})
    assert task.facts.setup == ["python -m pip install -q --disable-pip-version-check --no-input -e ."]
    assert git(clone, "status", "--porcelain") == ""


def test_no_command_that_a_clone_names_is_run(tmp_path: Path) -> None:
    clone = write(
        tmp_path / "clones" / "shop",
        {"shop.py": SHOP, ".gitattributes": "*.py filter=own\n", "run.sh": "#!/bin/sh\n"},
    )
    git(clone, "init", "-q")
    (clone / "run.sh").chmod(0o755)
    (clone / "link").symlink_to("shop.py")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "base")
    git(clone, "config", "filter.own.smudge", f"touch {tmp_path}/ran; cat")
    git(clone, "config", "filter.own.required", "true")
    source = rows(tmp_path / "a.jsonl", record(base_commit=git(clone, "rev-parse", "HEAD")))
    tasks, skipped = import_all(source, ImportRequest(tmp_path / "out", source=tmp_path / "clones"))
    assert not skipped and not (tmp_path / "ran").exists()
    laid = tasks["acme__shop-1"].repository
    assert laid is not None
    assert (laid / "shop.py").read_text("utf-8") == SHOP
    assert (laid / "run.sh").stat().st_mode & 0o111 and (laid / "link").readlink() == Path("shop.py")


def test_a_tree_takes_what_is_given_and_must_be_the_right_one(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"shop.py": SHOP, "setup.py": "", "shop/x.py": ""})
    source = rows(
        tmp_path / "a.jsonl", record(), record(instance_id="acme__shop-2", patch=GOLD.replace("+ 1", "+ 2"))
    )
    given = Given(requirements=["attrs==23.1.0"], env={"PYTHONPATH": "{workspace}/src"}, python="3.8")
    tasks, skipped = import_all(source, ImportRequest(tmp_path / "out", source=tree, given=given))
    assert list(tasks) == ["acme__shop-1"]
    assert skipped["acme__shop-2"].startswith(
        "Its gold patch can't be applied: error: patch failed: shop.py:1"
    )
    facts = tasks["acme__shop-1"].facts
    assert (facts.requirements, facts.setup, facts.python) == (["attrs==23.1.0"], [], "3.8")
    assert facts.env == {"PYTHONPATH": "{workspace}/src"}


def test_the_test_patch_is_hidden_unless_it_is_wished_for(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"shop.py": SHOP, "setup.py": ""})
    source = rows(tmp_path / "a.jsonl", record())
    # Within somebody's repository git would take other paths.
    git(tmp_path, "init", "-q")
    for apply in (False, True):
        request = ImportRequest(tmp_path / f"out-{apply}", source=tree, apply_test_patch=apply)
        task = import_all(source, request)[0]["acme__shop-1"]
        assert ("tests/test_shop.py" in files_in(task)) is apply
        assert (task.test_patch() is None) is apply
        assert task.facts.tests == (["/tests/data.json", "/tests/test_shop.py"] if apply else [])


def test_in_an_image_the_test_patch_is_applied_by_the_set_up(tmp_path: Path) -> None:
    long = TEST_PATCH + "".join(f"# {number * 7919 % 100_003}\n" for number in range(20_000))
    source = rows(tmp_path / "a.jsonl", record(test_patch=long))
    task = import_all(source, ImportRequest(tmp_path / "out", apply_test_patch=True))[0]["acme__shop-1"]
    assert (task.facts.setup[0], len(task.facts.setup) > 3) == (FORGET_LATER, True)
    assert task.facts.setup[-1].endswith("apply --whitespace=nowarn - && rm .pdbox-test.patch")
    assert task.test_patch() is None


def test_hostile_records_write_nothing_outside(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"shop.py": SHOP, "setup.py": ""})
    (tree / "up").symlink_to(tmp_path)
    evil = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+../..\n"
    source = rows(
        tmp_path / "a.jsonl",
        record(instance_id="../../evil"),
        record(instance_id="..%2F..", test_patch=evil.format("../../evil.py")),
        record(instance_id="link", test_patch=evil.format("up/evil.py")),
        record(instance_id="planted", test_patch=evil.format("planted").replace("100644", "120000")),
        record(instance_id="///"),
        record(instance_id=".._evil"),
        record(instance_id="x\x1b[2J\nx", FAIL_TO_PASS="[" * 100_000),
        record(instance_id="y", FAIL_TO_PASS="{}"),
        record(instance_id="z", problem_statement=""),
        record(instance_id="w", patch="\ud800", test_patch="\udfff"),
        {"instance_id": 5},
        "text",
        None,
    )
    out = tmp_path / "deep" / "out"
    tasks, skipped = import_all(source, ImportRequest(out, source=tree, apply_test_patch=True))
    assert set(tasks) == {"evil", "link", "planted"}
    # The link had led out of the tree, and was left out: a folder of that name was made.
    assert [path.relative_to(out).as_posix() for path in tmp_path.rglob("evil.py")] == [
        "link/environment/repo/up/evil.py"
    ]
    assert "planted" not in files_in(tasks["planted"])
    assert {path.name for path in tmp_path.iterdir()} == {"tree", "a.jsonl", "deep"}
    assert {path.name for path in out.iterdir()} == set(tasks)
    assert skipped[".._evil"] == "another task is called evil, too"
    assert "invalid path" in skipped["..%2F.."]
    assert skipped["///"] == "its name has no letter or digit"
    assert {"x\x1b[2J\nx", "y", "z", "w", "record 11", "record 12", "record 13"} <= set(skipped)


def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.jsonl", record())
    path.write_text(path.read_text("utf-8") + "{\n", "utf-8")
    with pytest.raises(InvalidArgument, match=r"Line 2 of a\.jsonl is not valid JSON"):
        import_all(path, ImportRequest(tmp_path / "out"))
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidArgument, match=r"Can't read b\.parquet"):
        import_all(tmp_path / "b.parquet", ImportRequest(tmp_path / "out"))
