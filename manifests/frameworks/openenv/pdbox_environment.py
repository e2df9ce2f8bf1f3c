"""Debugging tasks as an OpenEnv environment (openenv 0.10): `uvicorn pdbox_environment:app --port 8000`.

It needs a server, `pdbox serve --transport http`. A session is found by its name in the URL, so each step may connect anew and
nothing is left open: OpenEnv closes an environment from another thread than the one that stepped it.
"""

import asyncio
from uuid import uuid4

import httpx
from fastmcp import Client
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
    ToolError,
    ToolErrorType,
)
from openenv.core.env_server.types import Observation, State

URL = "http://127.0.0.1:8717/mcp"
SUBMIT = Tool(name="submit", description="Hand in the changes.", input_schema={"type": "object"})


class PdboxEnvironment(Environment):
    """An episode is a session of a task; `submit` ends it and gives the reward."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state, self._task, self._session = State(), "", ""

    async def reset_async(self, seed=None, episode_id=None, task="shop_discount", **row):
        await asyncio.to_thread(self.close)
        self._state, self._task = State(episode_id=episode_id or uuid4().hex), task
        self._session = f"{URL}?session={uuid4().hex}"
        async with self._client(f"&task={task}") as client:
            instructions = client.initialize_result.instructions
        return Observation(done=False, metadata={"instructions": instructions})

    async def step_async(self, action, timeout_s=None, **options):
        self._state.step_count += 1
        if isinstance(action, ListToolsAction):
            return await self._list_tools()
        if action.tool_name == SUBMIT.name:
            return await self._submit()
        async with self._client(f"&task={self._task}") as client:
            result = await client.call_tool(action.tool_name, action.arguments, raise_on_error=False)
        text = result.content[0].text
        error = ToolError(error_type=ToolErrorType.EXECUTION_ERROR, message=text) if result.is_error else None
        return CallToolObservation(tool_name=action.tool_name, result=text, error=error)

    async def _list_tools(self):
        async with self._client(f"&task={self._task}") as client:
            found = await client.list_tools()
        tools = [
            Tool(name=one.name, description=one.description, input_schema=one.inputSchema) for one in found
        ]
        return ListToolsObservation(tools=[*tools, SUBMIT])

    async def _submit(self):
        """Score the patch in a fresh sandbox, with the hidden tests."""
        async with self._client(f"&task={self._task}&answers=structured") as client:
            diff = await client.call_tool("diff", {"format": "full"})
        await asyncio.to_thread(self.close)
        pipe = asyncio.subprocess.PIPE
        command = ["pdbox", "score", self._task, "-"]
        score = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        await score.communicate(diff.structured_content["patch"].encode())
        if score.returncode > 1:
            raise RuntimeError("the patch could not be scored")
        reward = float(score.returncode == 0)
        return CallToolObservation(tool_name=SUBMIT.name, result="", done=True, reward=reward)

    def _client(self, options):
        return Client(self._session + options)

    def close(self):
        if self._session:
            httpx.delete(self._session, timeout=60)
            self._session = ""

    def reset(self, **row):
        return asyncio.run(self.reset_async(**row))

    def step(self, action, **options):
        return asyncio.run(self.step_async(action, **options))

    @property
    def state(self):
        return self._state


app = create_app(
    PdboxEnvironment, CallToolAction, CallToolObservation, env_name="pdbox", max_concurrent_envs=64
)
