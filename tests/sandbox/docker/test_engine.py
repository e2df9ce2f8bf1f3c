"""Where an engine is looked for, and what is said when there is none."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from sandbox.docker import endpoint
from sandbox.docker.backend import DockerBackend
from sandbox.docker.doctor import examine
from sandbox.docker.endpoint import locate, usual_sockets
from sandbox.docker.engine import Engine
from sandbox.docker.sdk import errors
from sandbox.errors import BackendUnavailable, SandboxLost


@contextmanager
def listening(path: Path) -> Iterator[None]:
    """Something that accepts connections there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without an engine; gives the folder in which one would be found."""
    monkeypatch.setattr(endpoint, "usual_sockets", lambda environ: (tmp_path / "a.sock", tmp_path / "b.sock"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_docker_host_comes_before_any_socket(no_sockets: Path) -> None:
    with listening(no_sockets / "a.sock"):
        found = locate({"DOCKER_HOST": "tcp://127.0.0.1:2375"})
    assert (found.url, found.source) == ("tcp://127.0.0.1:2375", "DOCKER_HOST")


def test_the_first_usual_socket_that_answers_is_taken(no_sockets: Path) -> None:
    (no_sockets / "a.sock").touch()
    with listening(no_sockets / "b.sock"):
        assert locate({}).url == f"unix://{no_sockets}/b.sock"


def test_an_unknown_context_is_named(no_sockets: Path) -> None:
    with pytest.raises(BackendUnavailable, match="No Docker context 'nowhere'"):
        locate({"DOCKER_CONTEXT": "nowhere"})


def test_no_engine_says_where_it_was_looked_for_and_the_next_step(no_sockets: Path) -> None:
    with pytest.raises(BackendUnavailable, match="No Docker engine answers") as refused:
        locate({})
    for place in ("DOCKER_HOST", "context", f"{no_sockets}/a.sock", f"{no_sockets}/b.sock"):
        assert place in refused.value.message
    assert "make docker" in refused.value.hint


def test_rootless_sockets_are_looked_for_without_xdg_runtime_dir() -> None:
    assert any(path.match("/run/user/*/docker.sock") for path in usual_sockets({}))
    assert Path("/x/podman/podman.sock") in usual_sockets({"XDG_RUNTIME_DIR": "/x"})


def test_a_socket_that_refuses_this_user_says_how_to_be_let_in() -> None:
    with pytest.raises(BackendUnavailable) as refused, errors():
        raise PermissionError(13, "Permission denied")
    assert "usermod -aG docker" in refused.value.hint


def test_an_engine_that_breaks_off_is_no_incident(tmp_path: Path) -> None:
    with (
        _answering_once(tmp_path / "engine.sock") as environ,
        closing(Engine.connect(environ)) as engine,
        pytest.raises(BackendUnavailable, match="The Docker engine can't be reached"),
    ):
        engine.exec_create("container", ["true"])


@contextmanager
def _answering_once(path: Path) -> Iterator[Mapping[str, str]]:
    """An engine that says its version, and hangs up at the next request; gives the environment in which it is found."""
    body = b'{"ApiVersion": "1.44"}'
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def answer(server: socket.socket) -> None:
        answers = [head + body, b""]
        while answers:
            connection, _ = server.accept()
            with connection:
                if connection.recv(4096):  # else it was only tried whether somebody listens
                    connection.sendall(answers.pop(0))

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(5)
        thread = Thread(target=answer, args=(server,))
        thread.start()
        yield {"DOCKER_HOST": f"unix://{path}"}
        thread.join()


@pytest.mark.docker
async def test_a_container_that_was_removed_before_its_start_says_the_next_step() -> None:
    with (
        closing(await DockerBackend({}).engine()) as engine,
        pytest.raises(SandboxLost, match="did not start: it has gone") as lost,
    ):
        engine.start("no-such-container-of-ours")
    assert lost.value.hint == "start_session opens a new one."


@pytest.mark.parametrize("url", ["unix:///nonexistent/docker.sock", "tcp://127.0.0.1:1"])
async def test_an_engine_that_is_not_there_is_one_clear_line(url: str) -> None:
    with pytest.raises(BackendUnavailable, match="No Docker engine answers") as refused:
        await DockerBackend({"DOCKER_HOST": url}).probe()
    assert refused.value.message == f"No Docker engine answers at {url} (DOCKER_HOST)."


async def test_doctor_says_what_to_do_without_an_engine() -> None:
    (check,) = await examine(DockerBackend({"DOCKER_HOST": "unix:///nonexistent/docker.sock"}))
    assert (check.name, check.ok) == ("engine", False)
    assert check.fix


@pytest.mark.parametrize("by", ["variable", "configuration"])
def test_the_context_of_the_docker_command_is_followed(no_sockets: Path, by: str) -> None:
    config = no_sockets / "config"
    meta = config / "contexts" / "meta" / hashlib.sha256(b"remote").hexdigest()
    meta.mkdir(parents=True)
    described = {"Name": "remote", "Endpoints": {"docker": {"Host": "ssh://me@far.example"}}}
    (meta / "meta.json").write_text(json.dumps(described), encoding="utf-8")
    environ = {"DOCKER_CONFIG": str(config)}
    if by == "variable":
        environ["DOCKER_CONTEXT"] = "remote"
    else:
        (config / "config.json").write_text('{"currentContext": "remote"}', encoding="utf-8")
    found = locate(environ)
    assert (found.url, found.source) == ("ssh://me@far.example", "Docker context 'remote'")
