"""The example for plain asyncio, run by the scripted model: its arguments are the URL and tasks. Prints which are resolved."""

# pyright: reportMissingImports=false
import asyncio
import json
import sys

from pdbox_episodes import episodes
from script import next_call


async def model(instructions, tools, answers):
    assert not {"start_session", "close_session"} & {tool.name for tool in tools}
    return next_call(instructions, answers)


url, *tasks = sys.argv[1:]
print(json.dumps(asyncio.run(episodes(url, tasks, model))))
