"""SWE-bench's own grader reads logs of test runs. Arguments: a file with the record, and logs. Prints which are resolved, as JSON."""

# pyright: reportMissingImports=false
import json
import socket
import sys
from pathlib import Path


def refuse(*address, **options):
    raise OSError("no names are looked up in this test")


socket.getaddrinfo = refuse

from swebench.harness.grading import get_eval_report  # noqa: E402 - it looks for the network when it is imported
from swebench.harness.utils import make_test_spec  # noqa: E402

record, *logs = sys.argv[1:]
row = json.loads(Path(record).read_text("utf-8"))
how = {"image": "", "eval_script": "", "log_parser": "parse_log_pytest", "eval_type": "pass_and_fail"}
spec = make_test_spec(row | how)
prediction = {"instance_id": row["instance_id"], "model_patch": "a", "model_name_or_path": "pdbox"}
reports = [get_eval_report(spec, prediction, log, include_tests_status=True) for log in logs]
print(json.dumps([report[row["instance_id"]]["resolved"] for report in reports]))
