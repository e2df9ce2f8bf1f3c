"""Inspect with a server in `use_tools`, which gives each call a connection of its own. Arguments: URL of a session, calls as JSON.

Prints the answers that the model got.
"""

# pyright: reportMissingImports=false
import json
import sys

from inspect_ai import Task
from inspect_ai import eval as run
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageTool, ModelAPI, ModelOutput, modelapi
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import mcp_server_http

url, calls = sys.argv[1], json.loads(sys.argv[2])


@modelapi("scripted")
class Scripted(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        assert not [tool.name for tool in tools if "session_id" in tool.parameters.properties]
        made = sum(isinstance(one, ChatMessageTool) for one in input)
        if made == len(calls):
            return ModelOutput.from_content("scripted/model", "done")
        return ModelOutput.for_tool_call("scripted/model", *calls[made])


solver = [use_tools(mcp_server_http(url=url)), generate()]
made = Task(dataset=[Sample(input="Debug.")], solver=solver)
(log,) = run(made, model="scripted/model", display="none", log_dir="logs")
assert log.status == "success", log.error
print(json.dumps([one.text for one in log.samples[0].messages if isinstance(one, ChatMessageTool)]))
