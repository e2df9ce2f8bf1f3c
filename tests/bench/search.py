"""`grep` in ten thousand files, beside the program of that name in the same sandbox."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.bench.measure import Row, since, timing
from tests.e2e.client import Session, pdbox

RATIO = 2.0
ROUNDS = 9
PATTERNS = {
    "a word": "needle_function",
    "an expression": r"def \w+_function",
    "a word of most files": "value order",
}
_TREE = """\
import os, random
random.seed(1)
words = "value order total price rate items customer invoice module import return class self cache request".split()
for number in range(10_000):
    folder = f"tree/package_{number // 1000}/module_{number // 100}"
    os.makedirs(folder, exist_ok=True)
    lines = [" ".join(random.choices(words, k=6)) for _ in range(random.randint(20, 120))]
    if number % 1000 == 7:
        lines.insert(10, "def needle_function(self):")
    with open(f"{folder}/file_{number}.py", "w") as file:
        file.write("\\n".join(lines) + "\\n")
"""
_TIMED = (
    "import subprocess, sys, time; begin = time.perf_counter();"
    # To /dev/null, GNU grep would stop at the first match of each file.
    " subprocess.run(sys.argv[1:], stdout=subprocess.PIPE); print(time.perf_counter() - begin)"
)


async def searches(repo: Path) -> list[Row]:
    """Each pattern in turns with `grep -rn`, start and end of that process included."""
    async with pdbox("--repo", str(repo), "--backend", "docker") as session:
        await session.call("rewrite", path="make_tree.py", new_code=_TREE, run="python make_tree.py")
        return [await _beside_grep(session, *item) for item in PATTERNS.items()]


async def _beside_grep(session: Session, what: str, pattern: str) -> Row:
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        theirs.append(await _grep(session, pattern))
        begin = time.perf_counter()
        text = await session.text("grep", pattern=pattern, path="tree")
        ours.append(since(begin))
        assert re.match(r"(at least )?[\d,]+ matches in [\d,]+ file", text), text
    taken, floor = timing(ours), timing(theirs)
    ratio = taken.median / floor.median
    reference = f"{ratio:.1f} × `grep -rn`, {floor.median:.0f} ms"
    return Row(f"grep, 10,000 files, {what}", taken, reference, f"{RATIO:g} ×", ratio <= RATIO)


async def _grep(session: Session, pattern: str) -> float:
    command = f"python -c '{_TIMED}' grep -rnE '{pattern}' tree"
    done = await session.call("bash", command=command)
    return float(done["output"]) * 1000
