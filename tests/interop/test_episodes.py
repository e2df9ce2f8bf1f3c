"""The examples for evaluation and training do real episodes on tasks, with a model that follows a script."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client

from tests.docker_client import docker
from tests.e2e.breaking_proxy import breaking
from tests.e2e.client import PDBOX
from tests.interop.conftest import serving
from tests.interop.environments import SYSTEM_CERTIFICATES, Environments
from tests.interop.episodes.endpoint import endpoint
from tests.interop.episodes.script import NAMES
from tests.interop.program import finished

pytestmark = pytest.mark.docker
EXAMPLES = Path(__file__).parents[2] / "manifests" / "frameworks"
DRIVERS = Path(__file__).with_name("episodes")
PATIENCE_S = 540
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    """One server for all episodes over HTTP, which has no session left at the end."""
    with serving(str(PDBOX), "serve", "--backend", "docker", "--transport", "http", "--port", "0") as base:
        yield f"{base}/mcp"
        assert anyio.run(_list_sessions, f"{base}/mcp") == []


@pytest.fixture
def run(environments: Environments, tmp_path: Path) -> Run:
    """Run a program in an environment, with the example of a folder; gives what its last line says."""

    def started(environment: str, example: str, *command: str | Path, **variables: str) -> Any:
        folder = environments[environment] / "bin"
        env = {
            **os.environ,
            **SYSTEM_CERTIFICATES,
            "PATH": os.pathsep.join([str(PDBOX.parent), str(folder), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(EXAMPLES / example), str(DRIVERS)]),
            **variables,
        }
        done = finished([folder / command[0], *command[1:]], PATIENCE_S, tmp_path, env)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout.strip().rpartition("\n")[2]

    return started


def test_asyncio_resolves_each_task_and_tells_when_one_is_not(run: Run, url: str) -> None:
    driver = DRIVERS / "asyncio_episodes.py"
    assert json.loads(run("mcp", "asyncio", "python", driver, url, *NAMES)) == [True] * 4
    example = EXAMPLES / "asyncio" / "pdbox_episodes.py"
    address = f"import pdbox_episodes as e, asyncio; print(asyncio.run(e.episodes({url!r}, ['intervals_hidden'], e.give_up)))"
    assert example.is_file() and run("mcp", "asyncio", "python", "-c", address) == "[False]"


def test_inspect_solves_8_samples_with_a_server_each_and_no_container_is_left(
    run: Run, tmp_path: Path
) -> None:
    driver = DRIVERS / "inspect_ai_episodes.py"
    # The servers get nothing of the environment but the home, so that is where each shows that it lives.
    scores = run("inspect-ai", "inspect_ai", "python", driver, "over_stdio", "2", "4", HOME=str(tmp_path))
    assert json.loads(scores) == [True] * 8
    # The file of a server that leaves no container is removed at its end, unless the client kills it before.
    servers = tmp_path / ".local" / "state" / "pdbox" / "servers"
    left = [docker("ps", "-aq", "--filter", f"label=pdbox.server={file.name}") for file in servers.iterdir()]
    assert [one for one in left if one] == []


def test_inspect_solves_12_samples_on_one_server(run: Run, url: str) -> None:
    driver = DRIVERS / "inspect_ai_episodes.py"
    scores = run("inspect-ai", "inspect_ai", "python", driver, "over_http", "3", "4", url)
    assert json.loads(scores) == [True] * 12


def test_inspect_stays_at_the_stop_when_each_call_has_a_connection_of_its_own(run: Run, url: str) -> None:
    session = f"{url}?session=connections&task=shop_discount"
    calls = [("pdb", {"command": "b shop/order.py:31\nc"}), ("pdb", {"command": "p products[0].quantity"})]
    driver = DRIVERS / "inspect_ai_connections.py"
    stopped, shown = json.loads(run("inspect-ai", "inspect_ai", "python", driver, session, json.dumps(calls)))
    assert httpx2.delete(f"{url}?session=connections", timeout=60).status_code == 204
    stop = re.findall(r"stop \d+", stopped)
    assert len(stop) == 1 and re.findall(r"stop \d+", shown) == stop and "60" in shown


def test_verifiers_gives_full_reward(run: Run, url: str, tmp_path: Path) -> None:
    with endpoint() as model:
        options = {
            "--env.agent.harness.id": "pdbox_v1",
            "--env.agent.runtime.type": "subprocess",
            "--client.base-url": model,
            "--client.api-key-var": "SCRIPTED_KEY",
            "--model": "scripted",
            "--max-concurrent": "2",
            "--output-dir": str(tmp_path / "out"),
        }
        words = [word for option in options.items() for word in option]
        command = ["vf-eval", "pdbox_v1", *words, "--no-push", "--no-rich"]
        run("verifiers", "verifiers", *command, PDBOX_URL=url, SCRIPTED_KEY="none")
    (traces,) = (tmp_path / "out").rglob("traces.jsonl")
    rollouts = [json.loads(line)["traces"][0] for line in traces.read_text("utf-8").splitlines()]
    assert [one["rewards"]["resolved"]["score"] for one in rollouts] == [1.0] * 4


def test_verifiers_repeats_a_call_whose_answer_was_lost_and_the_program_moves_once(
    run: Run, url: str
) -> None:
    calls = [("pdb", {"command": command}) for command in ("b shop/order.py:31", "c", "n", "w")]
    with breaking(url, rb'"command":\s*"n"', "asked") as proxy:
        session = f"{proxy.url}?session=repeated&task=shop_discount"
        said = run(
            "verifiers", "verifiers", "python", DRIVERS / "verifiers_calls.py", session, json.dumps(calls)
        )
        assert proxy.broken == 1
    _, reached, moved, where = json.loads(said)
    assert "stop 2" in reached and "note: this call was carried out before" in moved and "stop 3" in moved
    assert "stop 3" in where
    assert httpx2.delete(f"{url}?session=repeated", timeout=60).status_code == 204


def test_openenv_gives_full_reward_and_leaves_nothing(run: Run, url: str) -> None:
    driver = DRIVERS / "openenv_episodes.py"
    assert json.loads(run("openenv", "openenv", "python", driver, url, *NAMES, *NAMES)) == [1.0] * 8
    assert anyio.run(_list_sessions, url) == []


def test_trl_environment_goes_from_0_to_1(run: Run, url: str) -> None:
    seen = json.loads(run("trl", "trl", "python", DRIVERS / "trl_episodes.py", url, "shop_discount"))
    assert seen["rewards"] == [0.0, 1.0]
    assert {"pdb", "rewrite", "eval"} <= set(seen["tools"]) and "start_session" not in seen["tools"]


def test_trl_trains_a_step_on_a_solved_and_an_abandoned_episode(run: Run, url: str) -> None:
    driver = DRIVERS / "trl_training.py"
    offline = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    # Threads of OpenMP spin while they wait for each other, which costs most where all processors are taken.
    alone = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    seen = json.loads(run("trl-trainer", "trl", "python", driver, url, "shop_discount", **offline, **alone))
    assert (seen["reward"], seen["moved"]) == (0.5, True) and seen["deviation"] > 0
    assert (seen["calls"], seen["failures"]) == (2.0, 0.0)


async def _list_sessions(url: str) -> list[str]:
    """Handles of the sessions that this server holds; those of other servers have none here."""
    async with Client(f"{url}?answers=structured") as client:
        found = (await client.call_tool("list_sessions", {})).structured_content
    assert found is not None
    return [one["session_id"] for one in found["sessions"] if one["session_id"]]
