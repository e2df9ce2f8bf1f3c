"""`python -m mcp_server`; the console script `pdbox` is the better way to start it."""

import sys

# `python -m` puts the working directory first, and that may be a repository with a `tools/` or a `json.py` of its own,
# which would run on the host. Drop it before anything else is imported; what we need lies beside this package.
if not sys.flags.safe_path:
    del sys.path[0]
sys.path.append(__file__.rpartition("mcp_server")[0].rstrip("/\\"))

from mcp_server.cli import main

sys.exit(main())
