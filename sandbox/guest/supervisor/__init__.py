"""The process that outlives connections: files, commands, the debugged program and what it printed."""
