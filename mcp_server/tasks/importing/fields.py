"""Types of the fields of a data set's rows: as benchmarks write them, and bounded in size."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from mcp_server.tasks.folder import MAX_INSTRUCTION, MAX_PATCH
from mcp_server.tasks.model import TestIds


def _parse_list(value: Any) -> Any:
    """Accept a list, and a list as JSON in a string."""
    if isinstance(value, str):
        return json.loads(value) if value.strip() else []
    return [] if value is None else value


def _text(value: Any) -> Any:
    return "" if value is None else str(value) if isinstance(value, int | float) else value


Short = Annotated[str, Field(max_length=4096), BeforeValidator(_text)]
Statement = Annotated[str, Field(max_length=MAX_INSTRUCTION), BeforeValidator(_text)]
Patch = Annotated[str, Field(max_length=MAX_PATCH), BeforeValidator(_text)]
Ids = Annotated[TestIds, BeforeValidator(_parse_list)]
Commands = Annotated[list[Short], Field(max_length=1000), BeforeValidator(_parse_list)]
