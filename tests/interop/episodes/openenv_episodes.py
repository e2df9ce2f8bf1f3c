"""The example for OpenEnv, served and stepped by the scripted model: its arguments are the URL and tasks. Prints the rewards."""

# pyright: reportMissingImports=false
import asyncio
import json
import sys
import threading
import time

import pdbox_environment
import uvicorn
from openenv.core.generic_client import GenericEnvClient
from script import next_call


def served():
    server = uvicorn.Server(uvicorn.Config(pdbox_environment.app, port=0, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"


async def episode(base, task):
    async with GenericEnvClient(base_url=base, message_timeout_s=120) as client:
        seen = await client.reset(task=task)
        listed = await client.step({"type": "list_tools"})
        assert "submit" in {tool["name"] for tool in listed.observation["tools"]}
        answers = []
        while call := next_call(text(seen.observation), answers):
            seen_now = await client.step({"type": "call_tool", "tool_name": call[0], "arguments": call[1]})
            answers.append(seen_now.observation["result"])
        ended = await client.step({"type": "call_tool", "tool_name": "submit", "arguments": {}})
        assert ended.done
        return ended.reward


def text(observation):
    return json.dumps(observation, ensure_ascii=False)


async def main(url, tasks):
    pdbox_environment.URL = url
    base = served()
    # One that is begun and left, as a trainer that is interrupted leaves it.
    async with GenericEnvClient(base_url=base) as client:
        await client.reset(task=tasks[0])
        await client.step({"type": "call_tool", "tool_name": "listdir", "arguments": {}})
    return await asyncio.gather(*(episode(base, task) for task in tasks))


print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2:]))))
