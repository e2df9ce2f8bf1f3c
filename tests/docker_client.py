"""Docker's own client, for what a user would do beside pdbox."""

from __future__ import annotations

import subprocess


def docker(*arguments: str) -> str:
    """Run it, and return its output. An engine can hang on a container that is paused while others use it."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
