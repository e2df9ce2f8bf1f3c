"""Makes tasks of the rows of a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from pydantic import ValidationError

from mcp_server.tasks.importing.draft import Draft, Skipped
from mcp_server.tasks.importing.source import Source
from sandbox.errors import InvalidArgument


def read_drafts(
    source: Source, draft: Callable[[Any], Draft], name: str = "instance_id"
) -> Iterator[Draft | Skipped]:
    """Yield the tasks of the rows. `draft` makes one; `name` is the field that names a row."""
    for number, row in enumerate(source.rows(), 1):
        own = cast(dict[str, Any], row).get(name) if isinstance(row, dict) else None
        which = own if isinstance(own, str) else f"record {number}"
        try:
            yield draft(row)
        except ValidationError as exc:
            error = exc.errors()[0]
            yield Skipped(which, f"{'.'.join(map(str, error['loc']))}: {error['msg']}")
        except RecursionError:
            yield Skipped(which, "a field is nested too deeply")
        except InvalidArgument as exc:
            yield Skipped(which, str(exc))
