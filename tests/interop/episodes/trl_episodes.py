"""TRL's environment class, used as its trainer uses it: its arguments are the URL and a task. Prints the rewards before and after."""

# pyright: reportMissingImports=false
import inspect
import json
import sys

from pdbox_environment import environment
from script import next_call
from transformers.utils import get_json_schema

url, task = sys.argv[1:]
made = environment(url)
one = made()
tools = {
    name: getattr(one, name)
    for name, _ in inspect.getmembers(made, predicate=inspect.isfunction)
    if name not in ("reset", "get_reward") and not name.startswith("_")
}
schemas = {name: get_json_schema(tool)["function"] for name, tool in tools.items()}
assert schemas["pdb"]["parameters"]["required"] == ["command"], schemas["pdb"]
one.reset(task=task)
before = one.get_reward()
prompt, answers = one.reset(task=task, prompt="ignored"), []
while call := next_call(prompt, answers):
    answers.append(tools[call[0]](**call[1]))
print(json.dumps({"tools": sorted(schemas), "rewards": [before, one.get_reward()]}))
one.reset(task=task)
