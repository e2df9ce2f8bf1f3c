"""pdbox for Agno (agno 3.1, with fastmcp>=4), which gives up on a call after 10 s unless it is told otherwise.

`MCPTools(command="pdbox …")` is refused, since Agno starts only some programs by that argument: `server_params` takes any.
"""

import asyncio
import sys

from agno.tools.mcp import MCPTools
from mcp import StdioServerParameters

SERVER = StdioServerParameters(command="pdbox", args=["serve", "--repo", "/path/to/repository"])
STDIO = {"server_params": SERVER, "timeout_seconds": 600}
HTTP = {"url": "http://127.0.0.1:8717/mcp", "transport": "streamable-http", "timeout_seconds": 600}


async def main(parameters) -> None:
    async with MCPTools(**parameters) as tools:  # then: Agent(..., tools=[tools])
        print(*tools.functions)


if __name__ == "__main__":
    asyncio.run(main(HTTP if "http" in sys.argv else STDIO))
