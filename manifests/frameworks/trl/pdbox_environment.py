"""Debugging tasks as an environment for TRL's GRPOTrainer (trl 1.16, mcp 2.3).

It needs a server, `pdbox serve --transport http`. `GRPOTrainer(..., environment_factory=environment())` with rows of
`{"prompt": [{"role": "user", "content": ""}], "task": "shop_discount"}`: `reset` adds the task's text to the prompt.
"""

import asyncio
import atexit
import inspect
import subprocess
from uuid import uuid4

import httpx2
from mcp import Client

TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


def environment(url="http://127.0.0.1:8717/mcp"):
    """Make the class of the environments: a session of a task each, and a method for each tool."""

    class PdboxEnvironment:
        def __init__(self):
            self._session, self._task = "", ""
            atexit.register(
                self._close
            )  # the trainer keeps its environments, and resets them for the next rows

        def reset(self, task, **row):
            self._close()
            self._session, self._task = f"{url}?session={uuid4().hex}", task
            return asyncio.run(read_instructions(f"{self._session}&task={task}"))

        def get_reward(self):
            """Score the patch in a fresh sandbox, with the hidden tests."""
            diff = asyncio.run(
                call(f"{self._session}&task={self._task}&answers=structured", "diff", {"format": "full"})
            )
            patch = diff.structured_content["patch"].encode()
            command = ["pdbox", "score", self._task, "-"]
            score = subprocess.run(command, input=patch, stdout=subprocess.DEVNULL, check=False)
            if score.returncode > 1:
                raise RuntimeError("the patch could not be scored")
            return float(score.returncode == 0)

        def _close(self):
            if self._session:
                httpx2.delete(self._session, timeout=60)
                self._session = ""

    for tool in asyncio.run(list_tools(url)):
        setattr(PdboxEnvironment, tool.name, method(tool))
    return PdboxEnvironment


def method(tool):
    """A function with the tool's name, arguments and texts, from which `transformers` makes its schema again."""

    def run(self, **arguments):
        given = {name: value for name, value in arguments.items() if value is not None}
        result = asyncio.run(call(f"{self._session}&task={self._task}", tool.name, given))
        return result.content[0].text

    properties, required = tool.input_schema["properties"], tool.input_schema.get("required", [])
    run.__name__ = run.__qualname__ = tool.name
    arguments = [f"    {name}: {one_line(shown['description'])}" for name, shown in properties.items()]
    run.__doc__ = "\n".join([tool.description, "", "Args:", *arguments])
    run.__signature__ = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        + [parameter(name, shown, name in required) for name, shown in properties.items()]
    )
    run.__annotations__ = {
        name: one.annotation for name, one in run.__signature__.parameters.items() if name != "self"
    }
    return run


def parameter(name, schema, required):
    kind = TYPES[schema["type"]]
    if kind is list:
        item = TYPES[schema["items"]["type"]]
        kind = list[item]
    default = inspect.Parameter.empty if required else schema.get("default")
    annotation = kind if required or default is not None else kind | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def one_line(text):
    return " ".join(text.split())


async def list_tools(url):
    async with Client(f"{url}?session={uuid4().hex}") as client:
        return (await client.list_tools()).tools


async def read_instructions(url):
    async with Client(url) as client:
        return client.instructions


async def call(url, tool, arguments):
    async with Client(url) as client:
        return await client.call_tool(tool, arguments)
