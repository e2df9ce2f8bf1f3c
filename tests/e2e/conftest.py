"""What end-to-end tests share: both places where sessions can run, and a plugin of pytest for sandboxes."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sandbox.docker.images import REPOSITORY
from tests.bubblewrap import LOCAL
from tests.docker_client import docker

collect_ignore = ["samples"]  # buggy programs on purpose


@pytest.fixture(params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> list[str]:
    """Flags of `pdbox serve` for one backend."""
    if request.param == "local":
        return LOCAL
    return ["--backend", request.param]


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, runtime: str) -> None:
    """Sessions outside of Docker that others have on this machine are not seen, nor servers that have ended."""
    monkeypatch.setenv("XDG_STATE_HOME", f"{runtime}/state")
    if not request.node.get_closest_marker("docker"):  # an engine without root may be found by the variable
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)


@pytest.fixture(scope="session")
def xdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pytest-xdist, for PYTHONPATH: sandboxes have no network."""
    return _installed(tmp_path_factory.mktemp("xdist"), "pytest-xdist==3.6.1", "execnet==2.1.1")


@pytest.fixture(scope="session", params=["6.2.5", "7.4.4"])
def old_pytest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pytest before version 8, and what only that needs."""
    needs = ["py==1.11.0", "toml==0.10.2", "attrs>=22"]
    return _installed(tmp_path_factory.mktemp("pytest"), f"pytest=={request.param}", *needs)


@pytest.fixture(scope="session")
def pyfakefs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pyfakefs; among our own packages it would be a plugin of our own tests."""
    return _installed(tmp_path_factory.mktemp("pyfakefs"), "pyfakefs>=5.10")


def _installed(folder: Path, *requirements: str) -> Path:
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*command, *requirements], check=True, capture_output=True)
    return folder


@pytest.fixture
def derived() -> Iterator[Callable[[str], str]]:
    """Makes images of ours changed as `docker commit --change` says. No container of theirs may be left in the end."""
    with ExitStack() as made:

        def derive(change: str) -> str:
            name = f"pdbox-test-{uuid.uuid4().hex[:8]}"
            container = docker("create", f"{REPOSITORY}:3.11", "true")
            docker("commit", "--change", change, container, name)
            docker("rm", container)
            made.callback(_remove, name)
            return name

        yield derive


def _remove(image: str) -> None:
    # A server has asked for the removal of its containers when it ends; on a busy engine that takes its time.
    while docker("ps", "-aq", "--filter", f"ancestor={image}"):
        pass
    docker("rmi", image)
