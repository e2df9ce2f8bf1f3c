"""Arguments of absurd size."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mcp_server.conftest import Connect
from tests.mcp_server.test_calls import refused, text

pytestmark = pytest.mark.anyio

DEEP = "a/" * 2000 + "x"
DIGITS = "1" * 5000


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("view", {"path": DEEP}),
        ("listdir", {"path": DEEP}),
        ("grep", {"pattern": "x", "path": DEEP}),
        ("rewrite", {"path": DEEP, "new_code": "x"}),
        ("bash", {"command": "true", "cwd": DEEP}),
    ],
)
async def test_a_path_of_2_000_levels_is_one_clear_line(
    connect: Connect, tool: str, arguments: dict[str, Any]
) -> None:
    async with connect() as client:
        said = await refused(client, tool, **arguments)
        assert "has 2,001 levels; 250 are possible." in said and len(said) < 300


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("pdb", {"command": f"b app.py:{DIGITS}"}),
        ("pdb", {"command": f"b {DIGITS}"}),
        ("view", {"path": "app.py", "start": DIGITS}),
        ("view", {"path": "app.py", "start": int(DIGITS[:4000])}),
        ("trace", {"of": [f"app.py:{DIGITS}"]}),
        ("bash", {"command": "true", "timeout_s": int(DIGITS[:4000])}),
    ],
)
async def test_a_number_of_5_000_digits_is_one_clear_line(
    connect: Connect, tool: str, arguments: dict[str, Any]
) -> None:
    async with connect() as client:
        said = text(await client.call_tool(tool, arguments))
        assert "incident" not in said and "failed at" not in said and "Traceback" not in said, said[:1000]
        assert tool == "pdb" or len(said) < 1500  # pdb repeats what it refuses
