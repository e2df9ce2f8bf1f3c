"""A script of PyTorch with a wrong number, imported by a configuration of debug-gym, debugged, mended and scored."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mcp_server.cli import main
from tests.e2e.client import pdbox
from tests.interop.environments import Environments
from tests.mcp_server.tasks.importing.layouts import write

pytestmark = pytest.mark.docker
WRONG = "    return (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True)\n"
RIGHT = "    return (x - x.mean(dim=0)) / x.std(dim=0)\n"
CODE = (
    """\
import torch
from torch import nn


def normalize(x):
    # Each feature has mean 0 and deviation 1.
"""
    + WRONG
    + """\


def train(steps=300):
    torch.manual_seed(0)
    x = torch.rand(64, 3) * torch.tensor([1.0, 10.0, 100.0])
    y = x @ torch.tensor([[2.0], [-0.3], [0.01]])
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    x = normalize(x)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()
"""
)
TEST = """\
from regression import train

loss = train()
print(f"loss {loss:.6f}")
assert loss < 0.001, "the line is not found"
"""
CONFIGURATION = """\
task_name: regression
task_data:
  path: data/pytorch
  entrypoint: python test.py
  debug_entrypoint: python -m pdb test.py
env:
  run_timeout: 300
"""


@pytest.fixture
def task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The task that the configuration becomes."""
    clone = write(
        tmp_path / "gym",
        {
            "scripts/config.yaml": CONFIGURATION,
            "data/pytorch/regression.py": CODE,
            "data/pytorch/test.py": TEST,
            "data/pytorch/.debugreadonly": "test.py\n",
        },
    )
    fixed = write(tmp_path / "fixed", {"regression.py": CODE.replace(WRONG, RIGHT), "test.py": TEST})
    python = f"--python={sys.version_info[0]}.{sys.version_info[1]}"
    given = ["--gold", str(fixed), "--env", "PYTHONPATH=/torch", "--env", "OMP_NUM_THREADS=1", python]
    words = [str(clone / "scripts" / "config.yaml"), "--out", str(tmp_path / "tasks"), *given]
    assert main(["tasks", "import", *words]) == 0
    return Path(capsys.readouterr().out.split(": ", 1)[1].strip())


@pytest.fixture
def flags(environments: Environments) -> list[str]:
    """PyTorch of another environment, as sandboxes find it at the task's path."""
    (packages,) = environments["trl-trainer"].glob("lib/python*/site-packages")
    return ["--backend", "docker", "--mount", f"{packages}:/torch"]


@pytest.mark.anyio
async def test_a_script_of_pytorch_is_debugged_and_mended(task: Path, flags: list[str]) -> None:
    async with pdbox(*flags, "--task", str(task)) as session:
        assert "AssertionError: the line is not found" in await session.text("eval", timeout_s=500)
        line = 1 + CODE[: CODE.index(WRONG)].count("\n")
        commands = f"b regression.py:{line}\nc\np x.std(dim=1).shape, x.std(dim=0)"
        stopped = await session.text("pdb", command=commands)
        assert "regression.py:7" in stopped and "in normalize" in stopped
        assert "torch.Size([64])" in stopped and "tensor([ 0.2" in stopped
        mended = await session.text(
            "rewrite", path="regression.py", old_code=WRONG, new_code=RIGHT, run="eval"
        )
        assert "loss 0.000" in mended


def test_its_oracle_episode_holds(task: Path, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "verify", str(task), "--json", *flags]) == 0
    (verified,) = json.loads(capsys.readouterr().out)["tasks"]
    assert verified["ok"] is True, verified
