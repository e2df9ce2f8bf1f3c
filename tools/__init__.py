"""The tools that a model sees: their names, wording, limits and answers. Knows nothing of MCP."""
