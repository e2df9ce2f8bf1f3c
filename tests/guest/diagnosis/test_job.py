"""The job of an observed run belongs to one process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.guest.diagnosis.job import Job


@pytest.fixture
def switches() -> Iterator[None]:
    """Threads that take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switches")
def test_threads_that_claim_a_job_at_once_all_have_it(tmp_path: Path) -> None:
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        job = Job(str(folder), {"root": str(tmp_path)}, None)
        claimed: list[bool] = []
        ready = threading.Barrier(4)

        def claim() -> None:
            ready.wait()  # noqa: B023  (the threads end within the loop)
            claimed.append(job.claim())  # noqa: B023

        threads = [threading.Thread(target=claim) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert claimed == [True] * 4
        assert not Job(str(folder), {"root": str(tmp_path)}, None).claim()
