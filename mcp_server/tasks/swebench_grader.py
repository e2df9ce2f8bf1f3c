"""Grades the log of a test run with SWE-bench's own grader: `python -P swebench_grader.py FOLDER EXIT_CODE`.

FOLDER has `record.json`, `patch.diff` and `output.txt`, the output of the tests. Writes `test_output.txt`, as the harness
leaves it, and `report.json` there, and prints a line of JSON. The log is a program's: this process has limits of its own.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

NAME = "pdbox"
"""The name of the model in reports: which one wrote a patch is not known here."""
_MEMORY = 4 << 30
_CPU_S = 100


def main(folder: Path, exit_code: str) -> None:
    """Grade, and leave log and report as the harness names them."""
    _limit()
    from swebench.harness.constants import END_TEST_OUTPUT, START_TEST_OUTPUT, TEST_EXIT_CODE
    from swebench.harness.grading import get_eval_report
    from swebench.harness.utils import make_test_spec

    record = json.loads((folder / "record.json").read_text("utf-8"))
    output = (folder / "output.txt").read_text("utf-8")
    log = folder / "test_output.txt"
    ended = f"\n{TEST_EXIT_CODE}: {exit_code}" if exit_code else ""
    log.write_text(f"{START_TEST_OUTPUT}\n{output}\n{END_TEST_OUTPUT}{ended}\n", "utf-8")
    prediction = {
        "instance_id": record["instance_id"],
        "model_name_or_path": NAME,
        "model_patch": (folder / "patch.diff").read_text("utf-8", "replace"),
    }
    spec = make_test_spec({**_defaults(record), **record})
    report = get_eval_report(spec, prediction, str(log), include_tests_status=True)
    (folder / "report.json").write_text(json.dumps(report, indent=4), "utf-8")
    found = report[record["instance_id"]]
    statuses = found.get("tests_status") or {}
    passed = {name: len(lists.get("success") or ()) for name, lists in statuses.items()}
    total = {name: passed[name] + len(lists.get("failure") or ()) for name, lists in statuses.items()}
    answer = {"resolved": found["resolved"], "is_read": bool(statuses), "passed": passed, "total": total}
    sys.stdout.write(json.dumps(answer) + "\n")


def _defaults(record: dict[str, Any]) -> dict[str, str]:
    """Fields that rows of the first generation lack: the parser was found by the repository."""
    from swebench.harness.log_parsers import PARSER_REGISTRY
    from swebench.harness.log_parsers.python import MAP_REPO_TO_PARSER_PY

    parser = MAP_REPO_TO_PARSER_PY.get(record["repo"], PARSER_REGISTRY["parse_log_pytest"])
    (name, *_) = [name for name, one in PARSER_REGISTRY.items() if one is parser]
    return {"image": "", "eval_script": "", "version": "", "log_parser": name, "eval_type": "pass_and_fail"}


def _limit() -> None:
    """Allow no network, which the package asks for when it is imported, and bounded memory and time."""
    socket.getaddrinfo = _refuse
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))


def _refuse(*address: object, **options: object) -> Any:
    raise OSError("a grader needs no network")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
