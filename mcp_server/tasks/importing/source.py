"""Source of an import, and the rows of a data set: JSON, JSON Lines, and Parquet or Arrow by pyarrow."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

from mcp_server.tasks.folder import read_bytes
from sandbox.errors import InvalidArgument

_MAX_JSON = 512 << 20
_MAX_LINE = 64 << 20
_MAX_FILES = 1000
_BATCH = 32
_BINARY = (".parquet", ".arrow")
SUFFIXES = (".json", ".jsonl", *_BINARY)
_IDS = frozenset({"instance_id", "docker_image"})
"""Fields by which a file of one row is told from one of rows by their ids."""
_DESCRIPTIONS = frozenset({"dataset_info.json", "dataset_dict.json", "dataset_infos.json", "state.json"})


def files_of(source: Path) -> list[Path]:
    """Data files of `source`: itself, or those in the folder of a data set. Empty if it is something else."""
    if source.is_file():
        return [source] if source.suffix.lower() in SUFFIXES else []
    if not source.is_dir():
        return []
    for pattern in ("*", "data/*", "*/*"):
        found = sorted(path for path in source.glob(pattern) if _is_data(path))
        if found:
            return found[:_MAX_FILES]
    return []


def _is_data(path: Path) -> bool:
    # Any repository has some JSON; only the file of one record is known by its name.
    is_named = path.suffix.lower() in (".jsonl", *_BINARY) or path.name == "instance.json"
    return is_named and path.name not in _DESCRIPTIONS and path.is_file()


def read_rows(files: list[Path]) -> Iterator[Any]:
    """Yield the rows in `files`, unchecked.

    Raises:
        InvalidArgument: a file can't be read, or needs pyarrow.
    """
    for file in files:
        match file.suffix.lower():
            case ".json":
                yield from _read_json(file)
            case ".jsonl":
                yield from _read_lines(file)
            case _:
                yield from _read_binary(file)


class Source:
    """File or folder that is imported. As a data set it is read once, however many readers look at its first row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._first: list[Any] = []
        self._rest: Iterator[Any] | None = None
        self._failure: InvalidArgument | None = None

    def first_row(self) -> dict[str, Any]:
        """Return the first row of a data set; empty if it is something else.

        Raises:
            InvalidArgument: it can't be read, or needs pyarrow.
        """
        if self._failure is not None:
            raise self._failure
        if self._rest is None:
            self._rest = read_rows(files_of(self.path))
            try:
                self._first = list(islice(self._rest, 1))
            except InvalidArgument as exc:
                self._failure = exc
                raise
        first = self._first[0] if self._first else None
        return cast(dict[str, Any], first) if isinstance(first, dict) else {}

    def rows(self) -> Iterator[Any]:
        """Yield all rows, unchecked. Only once: they are not kept.

        Raises:
            InvalidArgument: they can't be read, or need pyarrow.
        """
        self.first_row()
        while self._first:
            yield self._first.pop()
        yield from self._rest or ()

    def is_of(self, tell: Callable[[dict[str, Any]], bool]) -> bool:
        """Tell by the first row whether it is a data set of one kind."""
        try:
            return tell(self.first_row())
        except InvalidArgument:
            return False


def _parse(data: bytes, what: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise InvalidArgument(f"{what} is not valid JSON: {str(exc)[:200]}.") from exc


def _read_json(file: Path) -> Iterator[Any]:
    data = _parse(read_bytes(file, _MAX_JSON), file.name)
    if isinstance(data, list):
        yield from cast(list[Any], data)
    elif isinstance(data, dict) and not _IDS & data.keys():
        yield from cast(dict[str, Any], data).values()
    else:
        yield data


def _read_lines(file: Path) -> Iterator[Any]:
    try:
        with file.open("rb") as stream:
            number = 0
            while line := stream.readline(_MAX_LINE + 1):
                number += 1
                if len(line) > _MAX_LINE:
                    raise InvalidArgument(
                        f"Line {number} of {file.name} is longer than {_MAX_LINE >> 20} MiB."
                    )
                if line.strip():
                    yield _parse(line, f"Line {number} of {file.name}")
    except OSError as exc:
        raise InvalidArgument(f"Can't read {file.name}: {exc.strerror}.") from exc


def _read_binary(file: Path) -> Iterator[Any]:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as exc:
        raise InvalidArgument(
            f"Reading {file.name} needs pyarrow.", "Install it with `uv tool install 'pdbox[datasets]'`."
        ) from exc
    try:
        if file.suffix.lower() == ".parquet":
            with parquet.ParquetFile(file) as table:
                for batch in table.iter_batches(batch_size=_BATCH):
                    yield from batch.to_pylist()
        else:
            with arrow.memory_map(str(file)) as stream:
                for batch in _open_arrow(arrow, stream):
                    yield from batch.to_pylist()
    except (arrow.ArrowException, OSError) as exc:
        raise InvalidArgument(f"Can't read {file.name}: {str(exc)[:200]}.") from exc


def _open_arrow(arrow: Any, stream: Any) -> Iterator[Any]:
    """Yield the batches of a stream, which the `datasets` package writes, or of a file with an index."""
    try:
        yield from arrow.ipc.open_stream(stream)
        return
    except arrow.ArrowInvalid:
        stream.seek(0)
    table = arrow.ipc.open_file(stream)
    yield from (table.get_batch(index) for index in range(table.num_record_batches))
