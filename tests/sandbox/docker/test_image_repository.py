"""Repositories that an image brings, and images that clients may name."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from sandbox.docker import images
from sandbox.docker.backend import DockerBackend
from sandbox.errors import InvalidArgument, PdboxError
from sandbox.image_names import AllowedImages
from sandbox.opening.open import open_session
from sandbox.opening.policy import Policy
from sandbox.opening.request import SessionRequest
from sandbox.session.session import Session
from sandbox.spec import Identity, ImageRequest
from tests.docker_client import docker
from tests.sandbox.conftest import SMALL, Place, quiet

pytestmark = pytest.mark.docker
TESTBED = """\
FROM pdbox-sandbox:3.13
RUN mkdir -p /testbed/pkg /opt/env && cd /testbed && git init -q && echo 'n = 1' > pkg/mod.py && chmod 600 pkg/mod.py \
 && printf '#!/bin/sh\\necho ran\\n' > run.sh && chmod 755 run.sh && ln -s pkg/mod.py link && ln -s /testbed /linked \
 && printf '[project]\\nname = "pkg"\\nversion = "1"\\n[build-system]\\nrequires = []\\n\
build-backend = "setuptools.build_meta"\\n[tool.setuptools]\\npackages = ["pkg"]\\n' > pyproject.toml \
 && echo /testbed > /usr/local/lib/python3.13/dist-packages/pkg.pth && mkdir /opt/large && head -c 80M /dev/zero > /opt/large/a
ENTRYPOINT ["false"]
"""


@pytest.fixture
def place(docker_place: Place) -> Place:
    """Docker alone."""
    return docker_place


@pytest.fixture
async def image(backend: DockerBackend) -> AsyncGenerator[str]:
    """An image like those of SWE-bench: its repository is root's, and installed in its own Python."""
    name = f"pdbox-test-{uuid.uuid4().hex[:8]}:1"
    engine = await backend.engine()
    await backend.call(engine.build, images.context(TESTBED.encode()), name, {}, {images.OWN: "0"}, quiet)
    yield name
    await backend.compile(name)  # it may be at it
    await backend.call(docker, "rmi", name)


@asynccontextmanager
async def opened(
    backend: DockerBackend, place: Place, repo: str, image: str, folders: tuple[str, ...] = ()
) -> AsyncGenerator[Session]:
    """A session for that repository."""
    identity = Identity(uuid.uuid4().hex, place.owner, place.owner)
    request = SessionRequest(repo=repo, image=image, folders=folders)
    async with anyio.create_task_group() as tasks:
        session = await open_session(backend, request, Policy(limits=SMALL), identity, quiet, tasks)
        try:
            yield session
        finally:
            await session.aclose()
            tasks.cancel_scope.cancel()


async def refusal(backend: DockerBackend, place: Place, repo: str, image: str) -> PdboxError:
    """The error that opening a session gives."""
    identity = Identity(uuid.uuid4().hex, place.owner, place.owner)
    request = SessionRequest(repo=repo, image=image)
    async with anyio.create_task_group() as tasks:
        with pytest.raises(PdboxError) as refused:
            await open_session(backend, request, Policy(limits=SMALL), identity, quiet, tasks)
    return refused.value


async def output(session: Session, command: str) -> str:
    """Its output, once it has succeeded."""
    result = await session.run(command, timeout_s=60)
    assert result.exit_code == 0, result.output
    return result.output


async def test_a_repository_of_the_image_has_the_limits_of_any_other(
    backend: DockerBackend, place: Place, image: str
) -> None:
    async with opened(backend, place, "image:/testbed", image) as session:
        assert str(session.workspace.root) == "/testbed"
        assert await output(session, "id -u && stat -c %u . pkg/mod.py") == "10001\n" * 3
        assert "not root, read-only system" in session.sandbox.isolation
        assert (
            await output(session, "! touch /opt/x /testbed/../x 2>/dev/null && echo refused") == "refused\n"
        )
        filled = await session.run("head -c 100M /dev/zero > big", timeout_s=60)
        assert "No space left" in filled.output
        status = await output(session, "grep CapEff /proc/self/status")
        assert status == f"CapEff:\t{'0' * 16}\n"


async def test_a_repository_of_the_image_is_itself_and_can_be_written(
    backend: DockerBackend, place: Place, image: str
) -> None:
    async with opened(backend, place, "image:/testbed", image) as session:
        assert await output(session, "./run.sh && cat link && git status --porcelain -uno") == "ran\nn = 1\n"
        assert await output(
            session,
            "echo 'n = 2' > pkg/mod.py && cd / && python3 -c 'import pkg.mod as m; print(m.n, m.__file__)'",
        ) == ("2 /testbed/pkg/mod.py\n")


async def test_packages_of_the_image_s_repository_can_be_installed(
    backend: DockerBackend, place: Place, image: str
) -> None:
    async with opened(backend, place, "image:/testbed", image) as session:
        pip = "python3 -m pip install -q --break-system-packages --no-build-isolation --no-deps -e . 2>&1"
        await output(session, pip)
        assert "pkg" in await output(session, "python3 -m pip list --user 2>/dev/null")


@pytest.mark.parametrize("folder", ["/linked", "/testbed/"])
async def test_a_link_to_the_repository_is_followed(
    backend: DockerBackend, place: Place, image: str, folder: str
) -> None:
    async with opened(backend, place, f"image:{folder}", image) as session:
        assert await output(session, "cat pkg/mod.py") == "n = 1\n"


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("/nowhere", "There is no folder /nowhere in pdbox-sandbox:3.13"),
        ("/", "is a folder of the system"),
        ("/usr/", "is a folder of the system"),
        ("//usr//lib", "is a folder of the system"),
        ("/proc/self", "is a folder of the system"),
        ("/home/sandbox", "is a folder of the system"),
    ],
)
async def test_a_folder_that_cannot_be_the_repository_is_refused(
    backend: DockerBackend, place: Place, folder: str, said: str
) -> None:
    assert said in str(await refusal(backend, place, f"image:{folder}", "pdbox-sandbox:3.13"))
    assert not await place.leftovers()


async def test_a_folder_that_is_too_large_says_which_setting_helps(
    backend: DockerBackend, place: Place, image: str
) -> None:
    refused = str(await refusal(backend, place, "image:/opt/large", image))
    assert "/opt/large is full (64 MiB)" in refused and "--workspace-size" in refused
    assert not await place.leftovers()


async def test_an_image_that_is_present_may_be_named_by_any_client(
    backend: DockerBackend, image: str
) -> None:
    nothing = AllowedImages()
    assert (await backend.choose(ImageRequest(image, allowed=nothing), quiet)).image == image


@pytest.mark.parametrize(
    "name", ["127.0.0.1:9/x", "localhost:9/x", "pdbox-test-nowhere", "pdbox-sandbox:3.13@sha256:" + "0" * 64]
)
async def test_an_image_that_is_not_present_is_pulled_for_no_client(
    backend: DockerBackend, name: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await backend.choose(ImageRequest(name, allowed=AllowedImages()), quiet)
    assert (
        refused.value.message
        == f"The image {name} is not present, and this server does not pull it for clients."
    )


@pytest.mark.parametrize(
    "allowed", [AllowedImages(("127.0.0.1:9/x",)), AllowedImages(patterns=("127.0.0.1:9/*",))]
)
async def test_the_operator_s_images_are_pulled_and_clients_don_t_get_the_engine_s_words(
    backend: DockerBackend, allowed: AllowedImages
) -> None:
    with pytest.raises(PdboxError) as refused:
        await backend.choose(ImageRequest("127.0.0.1:9/x", allowed=allowed), quiet)
    assert refused.value.message == "Pulling 127.0.0.1:9/x failed: the registry can't be reached."
    assert "dial tcp" in refused.value.details and "dial tcp" not in str(refused.value)


async def test_a_folder_of_the_image_is_empty_if_the_request_says_so(
    backend: DockerBackend, place: Place, image: str
) -> None:
    for folders, files in (((), "a\n"), (("/opt/large",), "")):
        async with opened(backend, place, "image:/testbed", image, folders) as session:
            assert await output(session, "ls -A /opt/large") == files
