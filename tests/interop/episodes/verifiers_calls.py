"""verifiers' own tool client makes calls. Arguments: the URL, and the calls as JSON. Prints their answers."""

# pyright: reportMissingImports=false
import asyncio
import json
import sys
from contextlib import AsyncExitStack

from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp


async def main(url, calls):
    async with AsyncExitStack() as stack:
        _, dispatch, servers = await connect_mcp({"mcpServers": {"": {"url": url}}}, stack)
        return [await call_mcp(servers, dispatch, name, arguments) for name, arguments in calls]


print(json.dumps(asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))))
