"""The floor: a server of the same SDK with one tool that does nothing."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("noop")


@server.tool(structured_output=False)
async def noop(command: str) -> str:
    """Do nothing."""
    return command


if __name__ == "__main__":
    server.run("stdio")
