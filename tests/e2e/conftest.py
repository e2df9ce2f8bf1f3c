"""Both places where sessions can run: the process backend (fast) and Docker (the real thing)."""

from __future__ import annotations

import pytest

collect_ignore = ["samples"]  # buggy programs on purpose


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> list[str]:
    """Flags of `pdbox serve` for one backend."""
    if request.param == "process":
        return ["--backend", "process", "--unsafe-no-isolation"]
    return ["--backend", "docker"]
