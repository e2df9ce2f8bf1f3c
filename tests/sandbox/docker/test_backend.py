"""What only containers promise: confinement, limits, images of all kinds."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sandbox.backend import Sandbox
from sandbox.docker import images
from sandbox.docker.backend import DockerBackend
from sandbox.docker.doctor import examine
from sandbox.errors import BackendUnavailable, InvalidArgument, PdboxError
from sandbox.spec import ImageRequest
from sandbox.transport.connection import GuestConnection
from tests.docker_client import docker
from tests.sandbox.conftest import Place, quiet, shell

pytestmark = pytest.mark.docker
Connect = Callable[[Sandbox], Awaitable[GuestConnection]]


@pytest.fixture
def place(docker_place: Place) -> Place:
    """Docker alone."""
    return docker_place


async def _derived(backend: DockerBackend, dockerfile: str) -> str:
    """An image made of ours for one test, as a user's own one would be: without our label."""
    name = f"pdbox-test-{uuid.uuid4().hex[:8]}:1"
    context = images.context(f"FROM {images.reference('3.11')}\n{dockerfile}\n".encode())
    engine = await backend.engine()
    await backend.call(engine.build, context, name, {}, {images.OWN: "0"}, quiet)
    return name


async def _drop(backend: DockerBackend, image: str) -> None:
    await backend.compile(image)  # it may be at it
    await backend.call(docker, "rmi", image)


async def test_a_program_has_no_way_to_privileges(
    guest: GuestConnection, sandbox: Sandbox, backend: DockerBackend
) -> None:
    _, status = await shell(guest, "cat /proc/self/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"
    assert facts["Uid"].split() == ["10001"] * 4
    # Beside the supervisor, whose own filter is one too: that of the engine.
    command = ("exec", sandbox.place, "grep", "Seccomp:", "/proc/self/status")
    assert await backend.call(docker, *command) == "Seccomp:\t2"


async def test_no_program_reads_or_changes_the_relay_of_a_connection(
    guest: GuestConnection, sandbox: Sandbox, connect: Connect
) -> None:
    """It is started beside the supervisor, so the supervisor's filter of system calls is not on it."""
    second = await connect(sandbox)
    find = "for p in /proc/[0-9]*; do if tr '\\0' ' ' < $p/cmdline | grep -q '/[r]elay.py'; then"
    _, output = await shell(guest, f"{find} echo found; cat $p/maps; fi; done 2>&1")
    found, refusal = output.splitlines()
    assert (found, refusal.rpartition(": ")[2]) == ("found", "Permission denied")
    assert await second.request("ping") == ({}, b"")


async def test_only_the_workspace_and_temporary_folders_can_be_written(guest: GuestConnection) -> None:
    for place in ("/", "/usr", "/etc", "/var/tmp", "/opt"):
        code, output = await shell(guest, f"touch {place}/x")
        assert code == 1, output
    assert await shell(guest, "touch ./x /tmp/x ~/x && pwd") == (0, "/workspace\n")


async def test_nothing_of_the_kernel_or_the_server_that_is_hidden_can_be_read(guest: GuestConnection) -> None:
    _, hidden = await shell(
        guest,
        "for name in keys timer_list sched_debug kcore slabinfo vmallocinfo kpagecount; do"
        " head -c 1 /proc/$name 2>/dev/null; done; true",
    )
    assert hidden == ""
    _, variables = await shell(guest, "cat /proc/1/environ")
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert "PYTEST_CURRENT_TEST" not in variables


async def test_there_is_no_network(guest: GuestConnection) -> None:
    assert await shell(guest, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '") == (0, "lo\n")
    code, output = await shell(
        guest, "python3 -c 'import socket; socket.create_connection((\"10.0.0.1\", 80), 2)'"
    )
    assert code == 1
    assert "unreachable" in output


async def test_a_network_can_be_had_and_taken_away(
    backend: DockerBackend, docker_place: Place, connect: Connect
) -> None:
    sandbox = await backend.start(docker_place.spec(network=True), quiet)
    try:
        guest = await connect(sandbox)
        count = "tail -n +3 /proc/net/dev | grep -vc ' lo:'"
        assert await shell(guest, count) == (0, "1\n")
        assert "with network" in sandbox.isolation
        await sandbox.cut_network()
        assert await shell(guest, count) == (1, "0\n")
        assert "no network" in sandbox.isolation
        (found,) = await backend.find(docker_place.owner)
        assert (await backend.adopt(found)).isolation == sandbox.isolation
    finally:
        await sandbox.aclose()


async def test_a_program_out_of_memory_is_killed_and_the_session_lives(guest: GuestConnection) -> None:
    code, _ = await shell(guest, "python3 -c 'x = bytearray(1 << 30)'")
    assert code != 0
    assert await guest.request("ping") == ({}, b"")


async def test_a_fork_bomb_is_held_and_the_session_lives(guest: GuestConnection) -> None:
    bomb = "import os, time\ntry:\n    while True:\n        if not os.fork(): time.sleep(1000)\nexcept OSError as exc: print(exc)"
    code, output = await shell(guest, f"python3 -c '{bomb}'")
    assert (code, output) == (0, "[Errno 11] Resource temporarily unavailable\n")
    assert await shell(guest, "echo fine") == (0, "fine\n")


async def test_a_full_workspace_ends_no_program(guest: GuestConnection) -> None:
    code, output = await shell(guest, "head -c 100M /dev/zero > big")
    assert code == 1
    assert "No space left" in output
    assert await shell(guest, "rm big && echo fine") == (0, "fine\n")


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (
            "~",
            "/home/sandbox is full (16 MiB): remove something there, or start the server with a larger `--home-size`.",
        ),
        (
            "/tmp",
            "/tmp is full (16 MiB): remove something there, or start the server with a larger `--tmp-size`.",
        ),
        (
            ".",
            "/workspace is full (64 MiB): remove something there, or start the server with a larger `--workspace-size`.",
        ),
    ],
)
async def test_a_full_folder_is_named_with_its_setting_at_each_failure(
    guest: GuestConnection, folder: str, said: str
) -> None:
    async def full(command: str) -> object:
        args = {"command": command, "timeout_s": 60, "max_output": 1000}
        return (await guest.request("exec", args, timeout_s=60))[0].get("full")

    assert await full("false") is None
    assert await full(f"head -c 100M /dev/zero > {folder}/big") == said
    assert await full("true") is None
    assert await full("false") == said
    with pytest.raises(PdboxError, match=re.escape(said)):
        await guest.request("files.read", {"path": "nowhere"})
    assert await full(f"rm {folder}/big; false") is None


async def test_commands_that_setup_installs_in_the_home_are_on_the_path(guest: GuestConnection) -> None:
    script = "mkdir -p ~/.local/bin && printf '#!/bin/sh\\necho hello' > ~/.local/bin/greet"
    assert await shell(guest, f"{script} && chmod +x ~/.local/bin/greet") == (0, "")
    assert await shell(guest, "greet") == (0, "hello\n")


async def test_our_images_have_the_commands_that_projects_start_their_tests_with(
    guest: GuestConnection,
) -> None:
    commands = ("git", "make", "pip", "pytest", "python")
    code, output = await shell(guest, " && ".join(f"command -v {name}" for name in commands))
    assert code == 0, f"{output} `make image` makes images that are out of date anew"


async def test_mounted_folders_are_read_only(
    backend: DockerBackend, docker_place: Place, connect: Connect, tmp_path: Path
) -> None:
    sandbox = await backend.start(docker_place.spec(mounts=((str(tmp_path), "/data"),)), quiet)
    try:
        code, output = await shell(await connect(sandbox), "ls -d /data && touch /data/x")
        assert code == 1
        assert output.startswith("/data\n")
    finally:
        await sandbox.aclose()


async def test_an_image_without_python_says_so(backend: DockerBackend, docker_place: Place) -> None:
    image = await _derived(backend, "RUN rm -f /usr/bin/python3*")
    try:
        with pytest.raises(BackendUnavailable, match="no Python 3"):
            await backend.start(docker_place.spec(image=image), quiet)
    finally:
        await _drop(backend, image)


async def test_an_image_whose_python_is_too_old_says_so_at_its_start(
    backend: DockerBackend, docker_place: Place
) -> None:
    old = "printf '#!/bin/sh\\n[ \"$1\" != -V ] || echo Python 3.7.16; exit 1\\n' > /usr/bin/python3"
    image = await _derived(backend, f"RUN rm -f /usr/bin/python3* && {old} && chmod +x /usr/bin/python3")
    try:
        with pytest.raises(BackendUnavailable) as refused:
            await backend.start(docker_place.spec(image=image), quiet)
        said = f"There is no Python 3.8 or newer in {image}. /usr/bin/python3 is Python 3.7.16."
        assert refused.value.message == said
    finally:
        await _drop(backend, image)


async def test_a_runtime_that_the_engine_lacks_is_named_with_those_that_it_lists(docker_place: Place) -> None:
    backend = DockerBackend(docker_place.environ, runtime="walls")
    async with backend.lifespan():
        with pytest.raises(BackendUnavailable) as refused:
            await backend.start(docker_place.spec(), quiet)
        listed = ", ".join((await backend.call((await backend.engine()).version)).runtimes)
    assert "runc" in listed
    assert refused.value.message == f"The engine has no runtime 'walls'; it lists {listed}."


@pytest.mark.parametrize("runtime", ["", "runc"])
async def test_isolation_names_the_runtime_that_was_asked_for(docker_place: Place, runtime: str) -> None:
    backend = DockerBackend(docker_place.environ, runtime=runtime)
    async with backend.lifespan():
        sandbox = await backend.start(docker_place.spec(), quiet)
        try:
            (found,) = await backend.find(docker_place.owner)
            assert sandbox.isolation == (await backend.adopt(found)).isolation
            assert ("no network, runtime runc, no capabilities" in sandbox.isolation) == (runtime == "runc")
            used = await backend.call(docker, "inspect", "--format", "{{.HostConfig.Runtime}}", sandbox.place)
            assert used == "runc" or not runtime
        finally:
            await sandbox.aclose()


async def test_the_python_asked_for_is_chosen_and_a_missing_one_is_replaced_with_a_notice(
    backend: DockerBackend,
) -> None:
    assert await backend.choose(ImageRequest(python="3.11"), quiet) == await backend.choose(
        ImageRequest(requires_python="==3.11.*"), quiet
    )
    chosen = await backend.choose(ImageRequest(requires_python=">=3.10"), quiet)
    assert (chosen.image, chosen.notice) == ("pdbox-sandbox:3.13", "")
    with pytest.raises(InvalidArgument, match="not a Python 3 version"):
        await backend.choose(ImageRequest(python="newest"), quiet)


async def test_an_image_made_by_an_older_recipe_is_out_of_date(backend: DockerBackend) -> None:
    engine = await backend.engine()

    async def is_current(labels: dict[str, str]) -> bool:
        name = f"pdbox-test-{uuid.uuid4().hex[:8]}:1"
        context = images.context(f"FROM {images.reference('3.11')}\n".encode())
        await backend.call(engine.build, context, name, {}, labels, quiet)
        try:
            image = await backend.call(engine.image, name)
            assert image is not None
            return images.is_current(image)
        finally:
            await backend.call(docker, "rmi", name)

    assert not await is_current({images.OWN: "1", images.RECIPE: "before"})
    assert await is_current({images.OWN: "1", images.RECIPE: images.recipe_digest()})
    assert await is_current({images.OWN: "0"})


async def test_an_image_of_the_users_own_is_taken_as_it_is(backend: DockerBackend) -> None:
    chosen = await backend.choose(ImageRequest(image="pdbox-sandbox:3.11", python="3.13"), quiet)
    assert chosen.image == "pdbox-sandbox:3.11"


async def test_doctor_finds_all_in_order(docker_place: Place) -> None:
    checks = await examine(DockerBackend(docker_place.environ))
    names = ("engine", "limits", "image", "sandbox", "isolation", "enforced limits")
    assert {check.name: check.ok for check in checks} == dict.fromkeys(names, True), checks
    assert checks[-1].text.endswith("workspace 1024 MiB, home 1024 MiB, /tmp 512 MiB")
    assert checks[4].text.endswith("read-only system"), (
        "vsock and io_uring are refused whatever the engine's age"
    )


async def test_isolation_tells_the_sizes_of_the_folders(sandbox: Sandbox) -> None:
    assert "64 MiB workspace, 16 MiB home, 16 MiB /tmp" in sandbox.isolation
