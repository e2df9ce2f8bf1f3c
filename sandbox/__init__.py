"""Where programs run, and the debugger that lives there. Knows nothing of MCP."""
