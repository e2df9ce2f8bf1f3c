"""Harbor reads what pdbox writes. Arguments: `tasks` and folders, or `trajectory` and a file. Prints what it found, as JSON."""

# pyright: reportMissingImports=false
import json
import sys

from harbor.models.task.task import Task
from harbor.utils.trajectory_validator import TrajectoryValidator


def read_task(folder):
    task = Task(folder)
    return {
        "valid": Task.is_valid_dir(folder),
        "name": task.name,
        "instruction": task.instruction,
        "image": task.config.environment.docker_image,
        "facts": task.config.metadata["pdbox"],
    }


kind, *given = sys.argv[1:]
if kind == "tasks":
    print(json.dumps([read_task(folder) for folder in given]))
else:
    validator = TrajectoryValidator()
    print(json.dumps({"valid": validator.validate(given[0]), "errors": validator.errors}))
