"""Tasks in images that are laid out as those of the benchmarks: they hold, and no answer is left in the sandbox."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcp_server.backends import open_backend
from mcp_server.commands.tasks import sandboxes_of
from mcp_server.settings import Settings
from mcp_server.tasks.importing.importer import Given
from mcp_server.tasks.opening import Sandboxes
from mcp_server.tasks.verifying import verify_task
from tests.docker_client import docker
from tests.mcp_server.tasks.importing.layouts import FIXED, SHOP, TEST, record, write
from tests.mcp_server.tasks.importing.test_training_sets import CLASS, OTHER, gym, import_one, r2e, smith

pytestmark = [pytest.mark.docker, pytest.mark.anyio]
GIT = "git -c user.name=t -c user.email=t@t"
COMMIT = f"{GIT} commit -q"
BEGIN = f"FROM pdbox-sandbox:3.13\nCOPY testbed /testbed\nWORKDIR /testbed\nRUN git init -q -b main && git add -A && {COMMIT} -m"
OF_SMITH = f"{BEGIN} original\n"
OF_R2E = f"""\
{BEGIN} old && git tag old && sed -i 's/ + 1//' shop.py && {COMMIT} -am fix && git tag new \\
    && git clone -q --bare . /tmp/o && git remote add origin /tmp/o && git fetch -q && git remote set-head origin main \\
    && git checkout -q old && rm -r /tmp/o && echo pytest > run_tests.sh && echo '{{}}' > parsed_commit.json
COPY r2e_tests /r2e_tests
"""
OF_SWEBENCH = f"""\
{BEGIN} start && sed -i 's/ + 1//' shop.py && {COMMIT} -am 'the fix' && {GIT} tag -a -m later v2 \\
    && git clone -q --bare . /opt/o && git remote add origin /opt/o && git fetch -q && rm -r /opt/o \\
    && git branch future && {COMMIT} --amend -m 'the fix, dangling' && git reset -q --hard HEAD^
"""
READ_ALL = """\
git log --all --format=%s; git reflog; git fsck --unreachable --no-reflogs; git status --short
git log -1 --format=last:%s; for object in $(git cat-file --batch-all-objects --batch-check='%(objectname)')
do git cat-file -p $object; done | grep -c 'the fix\\|return sum(prices)$'; git show v2; git show future
"""
"""Looks for later commits in every way that git has."""
USE = f"""\
echo '# more' >> shop.py; git diff --stat | tail -1; {GIT} stash -q; git status --short; {GIT} stash pop -q
git add -A; {COMMIT} -m mine; git log --format=%s
"""


@pytest.fixture
async def boxes() -> AsyncIterator[Sandboxes]:
    """Sandboxes in containers."""
    settings = Settings(backend="docker")
    async with open_backend(settings) as backend:
        yield sandboxes_of(backend, settings)


@contextmanager
def built(folder: Path, dockerfile: str) -> Iterator[str]:
    """An image of the files in `folder`."""
    write(folder, {"Dockerfile": dockerfile})
    name = f"pdbox-test-{uuid.uuid4().hex[:8]}:1"
    docker("build", "-q", "-t", name, str(folder))
    try:
        yield name
    finally:
        docker("rmi", "-f", name)


async def test_a_bug_of_smith_is_in_its_image_and_the_program_before_it_is_not(
    boxes: Sandboxes, tmp_path: Path
) -> None:
    tests = TEST + OTHER.partition("\n")[2]
    place = write(tmp_path / "image", {"testbed/shop.py": FIXED, "testbed/tests/test_shop.py": tests})
    write(place, {"testbed/conftest.py": ""})
    with built(place, OF_SMITH) as image:
        task = import_one(tmp_path, smith(), given=Given(image=image))
        verified = await verify_task(boxes, task, print)
        assert verified.ok, verified
        async with boxes.open(task, print) as session:
            found = await session.run(
                "cat shop.py; git log --all --format=%s; git status --short", timeout_s=60
            )
            assert found.output == f"{SHOP}Start\n"


@pytest.mark.parametrize(
    "row",
    [record(repo="pallets/flask", version="2.3"), gym(repo="iterative/dvc")],
    ids=["swebench", "swegym"],
)
async def test_nothing_of_a_later_commit_can_be_read_in_an_image_of_swebench(
    boxes: Sandboxes, tmp_path: Path, row: dict[str, object]
) -> None:
    place = write(tmp_path / "image", {"testbed/shop.py": SHOP, "testbed/conftest.py": ""})
    with built(place, OF_SWEBENCH) as image:
        seen = docker("run", "--rm", "--network=none", "--entrypoint=sh", image, "-c", READ_ALL)
        assert "the fix, dangling" in seen and "v2" in seen
        task = import_one(tmp_path, row, given=Given(image=image))
        verified = await verify_task(boxes, task, print)
        assert verified.ok, verified
        async with boxes.open(task, print) as session:
            found = await session.run(READ_ALL, timeout_s=60)
            assert found.output.splitlines()[:3] == ["start", "last:start", "0"], found.output
            assert found.output.count("fatal: ambiguous argument") == 2
            used = await session.run(USE, timeout_s=60)
            assert used.output == " 1 file changed, 1 insertion(+)\nmine\nstart\n"


async def test_nothing_of_the_fix_of_r2e_is_left_in_its_image(boxes: Sandboxes, tmp_path: Path) -> None:
    place = write(tmp_path / "image", {"testbed/shop.py": SHOP, "testbed/conftest.py": ""})
    write(place, {"r2e_tests/test_1.py": CLASS, "r2e_tests/__init__.py": ""})
    with built(place, OF_R2E) as image:
        task = import_one(tmp_path, r2e(), given=Given(image=image))
        verified = await verify_task(boxes, task, print)
        assert verified.ok, verified
        async with boxes.open(task, print) as session:
            found = await session.run(f"{READ_ALL}ls -A . /r2e_tests", timeout_s=60)
            shown = "old\nlast:old\n0\n", ".:\n.git\nconftest.py\nshop.py\n\n/r2e_tests:\n"
            assert (found.output[: len(shown[0])], found.output[-len(shown[1]) :]) == shown
