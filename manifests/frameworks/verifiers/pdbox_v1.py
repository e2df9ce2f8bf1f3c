"""Debugging tasks for verifiers (verifiers 0.4), with this folder on the import path:

    vf-eval pdbox_v1 --env.agent.harness.id pdbox_v1 --env.agent.runtime.type subprocess --model MODEL

It needs a server, `pdbox serve --transport http`. The harness gives each rollout a session by the URL of its tools, so there is no
tool server in between.
"""

import asyncio
import json
import os
import subprocess

import httpx2
import verifiers.v1 as vf
from mcp import Client
from verifiers.v1.harnesses.null import NullHarness

__all__ = ["PdboxHarness", "PdboxTaskset"]

URL = os.environ.get("PDBOX_URL", "http://127.0.0.1:8717/mcp")


class PdboxData(vf.TaskData):
    task: str


class PdboxTask(vf.Task[PdboxData, vf.State]):
    @vf.reward(weight=1.0)
    async def resolved(self, trace: vf.Trace) -> float:
        """The patch in a fresh sandbox, with the hidden tests."""
        session = f"{URL}?session={trace.id}"
        async with Client(f"{session}&task={self.data.task}&answers=structured") as client:
            diff = await client.call_tool("diff", {"format": "full"})
        async with httpx2.AsyncClient(timeout=60) as http:
            await http.delete(session)
        pipe = asyncio.subprocess.PIPE
        command = ["pdbox", "score", self.data.task, "-"]
        score = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        await score.communicate(diff.structured_content["patch"].encode())
        if score.returncode > 1:
            raise RuntimeError("the patch could not be scored")
        return float(score.returncode == 0)


class PdboxConfig(vf.TasksetConfig):
    names: tuple[str, ...] = ("intervals_hidden", "ledger_rates", "minigrad_momentum", "shop_discount")


class PdboxTaskset(vf.Taskset[PdboxTask, PdboxConfig]):
    def load(self):
        shown = subprocess.check_output(["pdbox", "tasks", "show", *self.config.names, "--json"])
        for task in json.loads(shown)["tasks"]:
            yield PdboxTask(PdboxData(name=task["name"], task=task["name"], prompt=task["instruction"]))


class PdboxHarness(NullHarness):
    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, *rest, **options):
        urls = {**mcp_urls, "": f"{URL}?session={trace.id}&task={data.task}"}
        return await super().launch(ctx, trace, runtime, endpoint, secret, urls, data, *rest, **options)
