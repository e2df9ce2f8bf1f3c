"""Episodes of an agent of your own, many at once on one server, by the MCP SDK (mcp 2.3).

Start the server with `pdbox serve --transport http --max-sessions 100`, then: `python pdbox_episodes.py [TASK ...]`.
"""

import asyncio
import sys
from uuid import uuid4

import httpx2
from mcp import Client

URL = "http://127.0.0.1:8717/mcp"
AT_ONCE = 16


async def give_up(instructions, tools, answers):
    """Your model: the next call as (name, arguments), or None when it is done. `answers` holds those so far."""


async def episodes(url, tasks, model, at_once=AT_ONCE):
    """Run an episode for each of `tasks`. Returns which are resolved, in their order."""
    places = asyncio.Semaphore(at_once)

    async def one(task):
        async with places:
            return await episode(url, task, model)

    return await asyncio.gather(*map(one, tasks))


async def episode(url, task, model):
    session = f"{url}?session={uuid4().hex}"
    try:
        async with Client(f"{session}&task={task}") as client:
            tools, answers = (await client.list_tools()).tools, []
            while call := await model(client.instructions, tools, answers):
                result = await client.call_tool(*call)
                answers.append(result.content[0].text)
        # After the model: its tools have text alone, this connection has data.
        async with Client(f"{session}&task={task}&answers=structured") as client:
            diff = await client.call_tool("diff", {"format": "full"})
    finally:
        async with httpx2.AsyncClient(timeout=60) as http:
            await http.delete(session)
    return await is_resolved(task, diff.structured_content["patch"])


async def is_resolved(task, patch):
    """Score a patch in a fresh sandbox, with the hidden tests."""
    pipe = asyncio.subprocess.PIPE
    score = await asyncio.create_subprocess_exec("pdbox", "score", task, "-", stdin=pipe, stdout=pipe)
    await score.communicate(patch.encode())
    if score.returncode > 1:
        raise RuntimeError("the patch could not be scored")
    return score.returncode == 0


if __name__ == "__main__":
    names = sys.argv[1:] or ["shop_discount"]
    for name, solved in zip(names, asyncio.run(episodes(URL, names, give_up)), strict=True):
        print(name, "resolved" if solved else "not resolved")
