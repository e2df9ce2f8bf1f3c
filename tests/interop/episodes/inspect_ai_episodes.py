"""The example for Inspect, run by the scripted model. Arguments: the name of its task, epochs, samples at once, URL. Prints scores."""

# pyright: reportMissingImports=false
import json
import sys

import pdbox_tasks
from inspect_ai import eval as run
from inspect_ai.model import ChatMessageTool, ModelAPI, ModelOutput, modelapi
from script import next_call


@modelapi("scripted")
class Scripted(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        prompt = "\n".join(message.text for message in input if message.role == "user")
        call = next_call(prompt, [one.text for one in input if isinstance(one, ChatMessageTool)])
        name, arguments = call or ("submit", {"answer": "done"})
        return ModelOutput.for_tool_call("scripted/model", name, arguments)


task, epochs, at_once, *url = sys.argv[1:]
made = getattr(pdbox_tasks, task)(*url, epochs=int(epochs))
(log,) = run(made, model="scripted/model", max_samples=int(at_once), display="none", log_dir="logs")
assert log.status == "success", log.error
print(json.dumps([sample.scores.popitem()[1].value for sample in log.samples]))
