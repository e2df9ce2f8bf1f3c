"""Each case, through an MCP client, in a Docker sandbox: it fails, it stops where it should, it is fixed, it passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.cases import Case, Hunk, Probe, find_cases, nearest_python, wheels
from tests.e2e.client import Session, ToolFailed, pdbox

pytestmark = [pytest.mark.docker, pytest.mark.anyio]
CASES = find_cases()
INSTALL = "python -m pip install -q --no-index --find-links /wheels"


@pytest.fixture(scope="session")
def wheel_cache(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return Path(request.config.cache.mkdir("wheels"))


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
async def test_case_fails_stops_is_fixed_and_passes(case: Case, tmp_path: Path, wheel_cache: Path) -> None:
    async with opened(case, tmp_path, wheel_cache) as session:
        await assert_outcomes(session, case, fixed=False)
        for probe in case.probes:
            await assert_probe(session, probe)
        await apply(session, case.edits())
        await assert_outcomes(session, case, fixed=True)


@asynccontextmanager
async def opened(case: Case, place: Path, wheel_cache: Path) -> AsyncIterator[Session]:
    """A session on the case's program, laid in `place`, with its requirements installed."""
    repository = case.lay(place)
    python = nearest_python(case.data["language_version"])
    requirements = case.data["requirements"]
    folder = wheels(requirements, python, wheel_cache)
    async with pdbox("--repo", str(repository), "--mount", f"{folder}:/wheels") as session:
        await session.call(
            "start_session",
            repo=str(repository),
            python=python,
            entrypoint=case.data["entrypoint"],
            debug_entrypoint=case.debug_entrypoint,
            env=case.data["env"],
            setup=[f"{INSTALL} {' '.join(requirements)}"] if requirements else [],
        )
        yield session


async def read_outcomes(session: Session) -> dict[str, str]:
    """The last outcome of each test. The answer itself lists only those that did not pass."""
    listed = (await session.call("list_sessions"))["sessions"]
    (own,) = (
        one["session_id"] for one in listed if one["session_id"]
    )  # those of other servers have none here
    read = await session.client.read_resource(f"pdbox://session/{own}/tests")
    lines = "".join(getattr(content, "text", "") for content in read.contents).splitlines()
    return {test: outcome for outcome, test in (line.split(" ", 1) for line in lines)}


async def assert_outcomes(session: Session, case: Case, fixed: bool) -> None:
    result = await session.call("eval", timeout_s=case.data["timeout_s"])
    outcomes = await read_outcomes(session)
    for test in case.data["failing_tests"]:
        if fixed:
            assert outcomes.get(test) == "passed", (test, result["output"][-2000:])
        elif case.data.get("failing_may_be_missing"):
            assert outcomes.get(test, "missing") in ("failed", "error", "missing"), test
        else:
            assert outcomes.get(test) in ("failed", "error"), (test, result["output"][-2000:])
    for test in case.data["passing_tests"]:
        assert outcomes.get(test) in ("passed", "skipped", "xfailed"), (test, result["output"][-2000:])
    assert (result["exit_code"] == 0) is fixed


async def assert_probe(session: Session, probe: Probe) -> None:
    condition = f", {probe.condition}" if probe.condition else ""
    stop = await session.call(
        "pdb", command=f"b {probe.file}:{probe.line}{condition}", entrypoint=probe.debug_entrypoint
    )
    number = max(bp["id"] for bp in stop["breakpoints"])
    if probe.hit > 1:
        await session.call("pdb", command=f"ignore {number} {probe.hit - 1}")
    stop = await session.call("pdb", command="c", timeout_s=180)
    assert stop["state"] == "stopped", stop
    assert (stop["frame"]["path"], stop["frame"]["line"]) == (probe.file, probe.line), stop
    assert stop["breakpoint"] == number
    stop = await session.call("pdb", command=f"p {probe.expression}")
    assert stop["reply"].strip() == probe.expected
    await session.call("pdb", command=f"cl {number}\nq")


async def apply(session: Session, edits: dict[str, list[Hunk]]) -> None:
    for path, hunks in edits.items():
        for hunk in hunks:
            await replace(session, path, hunk)


async def replace(session: Session, path: str, hunk: Hunk) -> None:
    """By its text, for patches may be off by some lines; by its lines where the text does not stand just once."""
    try:
        await session.call("rewrite", path=path, new_code=hunk.new, old_code=hunk.old)
    except ToolFailed:
        await session.call("rewrite", path=path, new_code=hunk.new, start=hunk.start, end=hunk.end)


REPOSITORIES = [case for case in CASES if case.id.startswith("swebench/")]


@pytest.mark.skipif(not REPOSITORIES, reason="the repositories are not here")
@pytest.mark.parametrize("case", REPOSITORIES, ids=[case.id for case in REPOSITORIES])
async def test_each_failing_test_stops_at_its_failing_frame_by_one_command(
    case: Case, tmp_path: Path, wheel_cache: Path
) -> None:
    async with opened(case, tmp_path, wheel_cache) as session:
        for test, entrypoint in case.entrypoints().items():
            stop = await session.call("pdb", command="c", entrypoint=entrypoint, timeout_s=180)
            assert (stop["state"], stop["reason"]) == ("stopped", "post_mortem"), (test, stop)
            assert not stop["frame"]["path"].startswith("/"), stop["frame"]
            expected = case.data["expected_first_failure"]
            if test == expected["test"]:
                assert stop["exception"]["type"].startswith(expected["exception"].replace("assert", "Assert"))
