"""The arrows between the packages: mcp_server → tools → sandbox, and who may import what from outside."""

from __future__ import annotations

import ast
import graphlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOST = [
    file
    for package in ("mcp_server", "tools", "sandbox")
    for file in sorted((ROOT / package).rglob("*.py"))
    if ROOT / "sandbox" / "guest" not in file.parents
]
GUEST = sorted((ROOT / "sandbox" / "guest").rglob("*.py"))
PROTOCOL = [file for file in GUEST if file.parent.name == "protocol"]


def imports(file: Path) -> Iterator[str]:
    """Every module that the file imports, wherever in it; relative ones with their leading dots."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
            # `from tools import view` imports tools.view as much as `import tools.view` does.
            yield from (f"{node.module}.{alias.name}" for alias in node.names if not node.level)


def tops(file: Path) -> set[str]:
    """The packages that the file imports from."""
    return {name.partition(".")[0] for name in imports(file)}


def shown(file: Path) -> str:
    """The path for a test's name."""
    return file.relative_to(ROOT).as_posix()


def test_there_is_something_to_look_at() -> None:
    assert {"mcp_server", "tools", "sandbox"} == {file.relative_to(ROOT).parts[0] for file in HOST}
    assert len(GUEST) > 3
    assert len(PROTOCOL) > 3


FLOORS = """
sandbox.guest.protocol sandbox.guest.paths sandbox.guest.hooks sandbox.guest.supervisor.syscall_filter
sandbox.guest.supervisor.errors sandbox.guest.supervisor.pdb_syntax sandbox.guest.debugger.isolation
sandbox.guest.supervisor.entrypoints sandbox.guest.supervisor.files
sandbox.guest.debugger.tracing sandbox.guest.debugger.inspection sandbox.guest.debugger.control
sandbox.guest.diagnosis sandbox.guest.supervisor.processes sandbox.guest.debugger.pdb sandbox.guest.debugger.runners
sandbox.guest.supervisor.program sandbox.guest.supervisor.connection sandbox.guest.debugger.main
sandbox.guest.supervisor.server
sandbox.guest.supervisor.main
sandbox.errors
sandbox.concurrency sandbox.host_files sandbox.ignore_rules sandbox.image_names sandbox.user_folders
sandbox.spec
sandbox.server_files
sandbox.backend sandbox.transport
sandbox.local_guests
sandbox.docker sandbox.bubblewrap sandbox.process sandbox.session
sandbox.opening
tools
mcp_server.settings mcp_server.redaction mcp_server.bodies mcp_server.custom_tools
mcp_server.auth mcp_server.backends mcp_server.options mcp_server.observability
mcp_server.errors mcp_server.profiles mcp_server.tasks
mcp_server.connection_options mcp_server.rewrite_count mcp_server.instructions
mcp_server.trajectories
mcp_server.sessions
mcp_server.prompts mcp_server.resources
mcp_server.completions
mcp_server.server
mcp_server.transports
mcp_server.commands
mcp_server.cli
"""
"""Rooms, from the ground up: a room imports from itself and from lower floors, never from one beside it."""
FLOOR = {room: number for number, line in enumerate(FLOORS.split("\n")) for room in line.split()}


def room_of(module: str) -> str | None:
    """The room that a module is in; None for those that start something and are in none."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in FLOOR), None)


def module_of(file: Path) -> str:
    """The dotted name of a file."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(file: Path) -> Iterator[str]:
    """Absolute names of all that the file imports, wherever in it, annotations included."""
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join((*above, *(node.module or "").split("."))).strip(".")
            yield from (f"{name}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("file", HOST + GUEST, ids=shown)
def test_arrows_between_rooms_point_down(file: Path) -> None:
    own = room_of(module_of(file))
    for name in imported_modules(file):
        room = room_of(name)
        if own is not None and room is not None and room != own:
            assert FLOOR[room] < FLOOR[own], f"{shown(file)} imports {name}"
    if own is None:
        assert file.name in (
            "__init__.py",
            "boot.py",
            "clean_up.py",
            "find_guests.py",
            "relay.py",
            "launch.py",
            "precompile.py",
            "lock_readonly.py",
            "setup_changes.py",
        )


def test_no_module_imports_itself_by_way_of_others() -> None:
    files = {module_of(file): file for file in HOST + GUEST}

    def module_in(name: str) -> str:
        while name and name not in files:
            name = name.rpartition(".")[0]
        return name

    graph = {
        module: {module_in(name) for name in imported_modules(file)} - {module, ""}
        for module, file in files.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError


def test_every_room_is_there() -> None:
    there = {room_of(module_of(file)) for file in HOST + GUEST}
    assert set(FLOOR) <= there


@pytest.mark.parametrize("file", HOST, ids=shown)
def test_the_host_imports_nothing_of_the_guest_but_the_protocol(file: Path) -> None:
    guest = {name for name in imports(file) if f"{name}.".startswith("sandbox.guest.")}
    assert all(f"{name}.".startswith("sandbox.guest.protocol.") for name in guest), guest


@pytest.mark.parametrize("file", PROTOCOL, ids=shown)
def test_the_protocol_imports_nothing_of_the_project(file: Path) -> None:
    assert tops(file) <= sys.stdlib_module_names


@pytest.mark.parametrize("file", HOST, ids=shown)
def test_libraries_are_imported_in_one_place_only(file: Path) -> None:
    found = tops(file)
    if file.relative_to(ROOT).parts[0] != "mcp_server":
        assert not found & {"mcp", "mcp_types", "starlette", "uvicorn"}
    if shown(file) != "sandbox/docker/sdk.py":
        assert "docker" not in found


@pytest.mark.parametrize("file", sorted((ROOT / "tools").glob("[a-z]*.py")), ids=shown)
def test_tools_never_import_each_other(file: Path) -> None:
    others = {f"tools.{other.stem}" for other in (ROOT / "tools").glob("[a-z]*.py") if other != file}
    assert not others & set(imports(file))


@pytest.mark.parametrize("file", GUEST, ids=shown)
def test_the_guest_needs_the_standard_library_only(file: Path) -> None:
    own = {
        "__future__",
        "pdbox_guest",
        "_pdbox",
        *(hook.stem for hook in GUEST if hook.parent.name == "hooks"),
    }
    # pytest: where the program runs under it, so do we.
    outside = {name.partition(".")[0] for name in imports(file) if not name.startswith(".")}
    assert not outside - sys.stdlib_module_names - own - {"pytest", "_pytest"}


@pytest.mark.parametrize("file", GUEST, ids=shown)
def test_the_guest_is_python_3_8(file: Path) -> None:
    # Any Python of the image loads the hooks; `sitecustomize` turns them off below 3.6.
    version = (3, 6) if file.parent.name == "hooks" else (3, 8)
    ast.parse(file.read_text(encoding="utf-8"), feature_version=version)
