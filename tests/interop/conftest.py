"""Environments of the clients, and a server on HTTP for those of a file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from tests.e2e.client import PDBOX
from tests.interop.environments import CLIENTS, Environments, NotMade, cache_folder
from tests.interop.task import SAMPLE

HOME = Path(__file__).parents[2]
COMMAND = [str(PDBOX), "serve", "--backend", "docker", "--root", str(SAMPLE)]


@pytest.fixture(scope="session")
def environments() -> Generator[Environments]:
    """All environments; those missing in the cache are made meanwhile."""
    with ThreadPoolExecutor(4) as pool:
        yield Environments(pool, cache_folder(os.environ), CLIENTS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Without a package registry or the right Python there is no client to test with: a skip, unless
    PDBOX_REQUIRE_INTEROP=1."""
    try:
        return (yield)
    except NotMade as exc:
        if os.environ.get("PDBOX_REQUIRE_INTEROP") == "1":
            raise
        pytest.skip(str(exc))


@dataclass(frozen=True)
class Served:
    """Where `pdbox serve` can be reached."""

    base: str

    def url(self, transport: str) -> str:
        """The address of a transport."""
        return f"{self.base}/{'mcp' if transport == 'http' else 'sse'}"


@contextmanager
def serving(*command: str) -> Generator[str]:
    """Run a server; gives the address that it tells when clients can connect, without a path."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
        cwd=HOME,
        env=os.environ,
        start_new_session=True,  # no signal to the group of the tests ends it
    )
    assert process.stderr is not None
    said: list[str] = []
    rest = Thread(target=said.extend, args=[process.stderr], daemon=True)
    try:
        for line in process.stderr:
            said.append(line)
            if line.startswith("pdbox: serving "):
                break
        else:
            pytest.fail(f"{command} ended: {''.join(said)}")
        # Nobody else reads it, and a full pipe would hold the server.
        address = said[-1].split()[-1].removesuffix("/mcp")
        rest.start()
        yield address
        ended = process.poll()
        assert ended is None, f"{command} ended with {ended}: {''.join(said)[-4000:]}"
    finally:
        process.terminate()
        process.wait(timeout=120)
        if rest.ident is not None:
            rest.join()
        process.stderr.close()


@pytest.fixture(scope="module")
def served() -> Generator[Served]:
    """One server for all tests of a file over HTTP and SSE."""
    with serving(*COMMAND, "--transport", "http", "--port", "0") as base:
        yield Served(base)
