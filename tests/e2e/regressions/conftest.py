"""The places where these tests run: this Python without isolation, and a Python of each tracing engine in Docker."""

from __future__ import annotations

import pytest

from tests.bubblewrap import LOCAL


@pytest.fixture(
    params=[
        "local",
        pytest.param("3.11", marks=pytest.mark.docker),
        pytest.param("3.13", marks=pytest.mark.docker),
        pytest.param("3.14", marks=[pytest.mark.docker, pytest.mark.image("3.14")]),
    ]
)
def backend(request: pytest.FixtureRequest) -> list[str]:
    """Flags of `pdbox serve` for one of these."""
    if request.param == "local":
        return LOCAL
    return ["--backend", "docker", "--python", request.param]
