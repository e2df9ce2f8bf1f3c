"""Docker's own client, for what a user would do beside pdbox."""

from __future__ import annotations

import subprocess


def docker(*arguments: str) -> str:
    """What it prints."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
