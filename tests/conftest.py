"""Shared by all tests: async tests run under asyncio, and containers are there or their absence is a failure."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import HealthCheck, settings

from sandbox.docker import images
from sandbox.docker.backend import DockerBackend
from sandbox.docker.engine import Engine
from sandbox.errors import BackendUnavailable

# `make test` tells the makes below it that they are below, and who runs it may have settings of their own: programs of the tests
# must not know.
_NAMES = """
    MAKEFLAGS MAKELEVEL MFLAGS TOX_OVERRIDE TOX_TESTENV_PASSENV PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE
    PYTEST_XDIST_WORKER PYTEST_XDIST_WORKER_COUNT PYTEST_XDIST_TESTRUNUID
"""
for _name in _NAMES.split():
    os.environ.pop(_name, None)

# On a busy machine an example takes longer than Hypothesis allows it.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """What the server runs under."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what servers keep of sessions out of the home of whoever runs the tests."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def fewer_plugins() -> None:
    """Spare the runs of pytest that tests start two large plugins of ours, which take two thirds of a small run.

    Not at import: the workers of a parallel run would be without them.
    """
    os.environ["PYTEST_ADDOPTS"] = "-p no:hypothesispytest -p no:anyio"


@pytest.fixture
def runtime() -> Iterator[str]:
    """A folder for XDG_RUNTIME_DIR, not below pytest's own: the path of a socket has 108 bytes at most."""
    with TemporaryDirectory(prefix="pdbox-test-", ignore_cleanup_errors=True) as folder:
        yield folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs Docker where no engine answers (`make test` insists on one); leave out Pythons whose image is not here."""
    _put_long_files_first(items)
    in_docker = [item for item in items if item.get_closest_marker("docker")]
    if not in_docker:
        return
    reason = _missing_engine()
    if not reason:
        absent = _of_absent_images(in_docker)
        items[:] = [item for item in items if item not in absent]
        config.hook.pytest_deselected(items=absent)
    elif os.environ.get("PDBOX_REQUIRE_DOCKER") != "1":
        for item in in_docker:
            item.add_marker(pytest.mark.skip(reason=reason))


def _put_long_files_first(items: list[pytest.Item]) -> None:
    """Start what takes long first: of a parallel run, each worker takes a file at a time, and all wait for the last one."""
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.get_closest_marker("long") is None, -sizes[item.path], str(item.path)))


def _of_absent_images(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    wanted = {item: marker.args[0] for item in items if (marker := item.get_closest_marker("image"))}
    if not wanted:
        return []
    with closing(Engine.connect(os.environ)) as engine:
        present = engine.tags(images.REPOSITORY)
    return [item for item, python in wanted.items() if python not in present]


def _missing_engine() -> str:
    try:
        anyio.run(DockerBackend(os.environ).probe)
    except BackendUnavailable as exc:
        return exc.message
    return ""
