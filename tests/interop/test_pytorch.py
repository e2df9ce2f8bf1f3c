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

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
"""The Python of the tests, for which the environment's PyTorch is made."""
pytestmark = [pytest.mark.docker, pytest.mark.image(PYTHON)]
CODE = """\
import torch
from torch import nn


def normalize(x):
    # Each feature has mean 0 and deviation 1.
    deviation, mean = torch.std_mean(x, dim=1, keepdim=True)
    return (x - mean) / deviation


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
WRONG, RIGHT = "dim=1, keepdim=True", "dim=0, keepdim=True"
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
    gym = {
        "scripts/config.yaml": CONFIGURATION,
        "data/pytorch/regression.py": CODE,
        "data/pytorch/test.py": TEST,
        "data/pytorch/.debugreadonly": "test.py\n",
    }
    clone = write(tmp_path / "gym", gym)
    fixed = write(tmp_path / "fixed", {"regression.py": CODE.replace(WRONG, RIGHT), "test.py": TEST})
    given = ["--gold", str(fixed), f"--python={PYTHON}", "--env=PYTHONPATH=/torch", "--env=OMP_NUM_THREADS=1"]
    out = tmp_path / "tasks"
    assert main(["tasks", "import", str(clone / "scripts" / "config.yaml"), "--out", str(out), *given]) == 0
    assert capsys.readouterr().out == f"regression: {out / 'regression'}\n"
    return out / "regression"


def with_pytorch(environments: Environments) -> list[str]:
    """Flags for sandboxes that find PyTorch, which is that of another test's environment, on the task's path."""
    (packages,) = environments["trl-trainer"].glob("lib/python*/site-packages")
    return ["--backend", "docker", "--mount", f"{packages}:/torch"]


@pytest.mark.anyio
async def test_a_script_of_pytorch_is_debugged_and_mended(task: Path, environments: Environments) -> None:
    async with pdbox(*with_pytorch(environments), "--task", str(task)) as session:
        assert "AssertionError: the line is not found" in await session.text("eval", timeout_s=300)
        looks = "b regression.py:7\nc\np x.std(dim=1).shape, x.std(dim=0)"
        stopped = await session.text("pdb", command=looks, timeout_s=300)
        assert "stopped at regression.py:7 in normalize" in stopped
        assert "torch.Size([64])" in stopped and "tensor([ 0.2" in stopped
        mended = await session.text(
            "rewrite", path="regression.py", old_code=WRONG, new_code=RIGHT, run="eval"
        )
        assert "loss 0.000" in mended


def test_its_oracle_episode_holds(
    task: Path, environments: Environments, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", "verify", str(task), "--json", *with_pytorch(environments)]) == 0
    (verified,) = json.loads(capsys.readouterr().out)["tasks"]
    assert verified["ok"] is True, verified
