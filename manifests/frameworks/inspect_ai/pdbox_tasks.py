"""Debugging tasks for Inspect (inspect-ai 0.3.285): `inspect eval pdbox_tasks.py@over_stdio --model MODEL`.

`over_http` uses one server for all samples, started with `pdbox serve --transport http`. A server goes to `react`, or into
`mcp_connection`: with `use_tools` alone each call gets a connection of its own, and over stdio that is a new server.
"""

import json
import subprocess
from uuid import uuid4

import httpx
from inspect_ai import Task, task
from inspect_ai.agent import as_solver, react
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver
from inspect_ai.tool import ToolDef, mcp_connection, mcp_server_http, mcp_server_stdio
from inspect_ai.util import subprocess as run_program
from mcp import Client

NAMES = "intervals_hidden,ledger_rates,minigrad_momentum,shop_discount"


@task
def over_stdio(names=NAMES, epochs=1):
    return Task(dataset=samples(names), epochs=epochs, solver=debug_over_stdio(), scorer=tests_pass())


@task
def over_http(url="http://127.0.0.1:8717/mcp", names=NAMES, epochs=1):
    return Task(dataset=samples(names), epochs=epochs, solver=debug_over_http(url), scorer=resolved(url))


def samples(names):
    """A sample for each task; an agent sees no instructions of a server, so it gets the task's text here."""
    shown = subprocess.check_output(["pdbox", "tasks", "show", *names.split(","), "--json"])
    return [Sample(id=one["name"], input=one["instruction"]) for one in json.loads(shown)["tasks"]]


@solver
def debug_over_stdio():
    async def solve(state, generate):
        server = mcp_server_stdio(command="pdbox", args=["serve", "--task", str(state.sample_id)])
        async with mcp_connection(server):
            state = await as_solver(react(tools=[server]))(state, generate)
            # The session ends with its server: the tests run before.
            tests = next(tool for tool in await server.tools() if ToolDef(tool).name == "eval")
            state.metadata["tests"] = (await tests())[0].text
        return state

    return solve


@scorer(metrics=[accuracy()])
def tests_pass():
    async def score(state, target):
        return Score(value="(exit code 0)" in state.metadata["tests"].partition("\n")[0])

    return score


@solver
def debug_over_http(url):
    async def solve(state, generate):
        state.metadata["session"] = name = uuid4().hex
        server = mcp_server_http(url=f"{url}?session={name}&task={state.sample_id}")
        return await as_solver(react(tools=[server]))(state, generate)

    return solve


@scorer(metrics=[accuracy()])
def resolved(url):
    """The patch in a fresh sandbox, with the hidden tests."""

    async def score(state, target):
        session = f"{url}?session={state.metadata['session']}"
        async with Client(f"{session}&task={state.sample_id}&answers=structured") as client:
            diff = await client.call_tool("diff", {"format": "full"})
        async with httpx.AsyncClient(timeout=60) as http:
            await http.delete(session)
        patch = diff.structured_content["patch"]
        scored = await run_program(["pdbox", "score", str(state.sample_id), "-"], input=patch)
        if scored.returncode > 1:
            raise RuntimeError(scored.stderr)
        return Score(value=scored.returncode == 0, explanation=scored.stdout)

    return score
