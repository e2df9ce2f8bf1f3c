"""The same episodes in debug-gym's own loop, for its environment. Arguments: image, how many at once. Tasks as JSON on stdin.

Prints the seconds of each episode and what was wrong with them, as JSON.
"""

# pyright: reportMissingImports=false
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from debug_gym.gym.envs.local import LocalEnv
from debug_gym.gym.terminals.docker import DockerTerminal
from debug_gym.gym.tools.tool import ToolCall
from debug_gym.gym.tools.toolbox import Toolbox


def episode(image, task):
    began = time.perf_counter()
    terminal = DockerTerminal(base_image=image, working_dir="/mnt/git")
    entrypoints = {"entrypoint": task["entrypoint"], "debug_entrypoint": task["debug_entrypoint"]}
    env = LocalEnv(path=task["repo"], terminal=terminal, **entrypoints)
    for name in ("pdb", "edit", "eval"):
        env.add_tool(Toolbox.get_tool(name))
    env.reset()
    seen = []
    for number, (tool, arguments) in enumerate(task["calls"]):
        info = env.step(ToolCall(id=str(number), name=tool, arguments=arguments))
        seen.append(info.step_observation.observation)
    patch, tests = env.patch, env.last_eval
    env.close()
    stop = seen[1]
    faults = {
        f"no stop: {stop}": f"/{task['stopped']}\n\nContext around" not in stop,
        f"not mended: {patch}": not all(line in patch for line in task["mended"]),
        f"tests fail: {tests.output}": not tests.success,
    }
    wrong = [fault[:300] for fault, is_so in faults.items() if is_so]
    return time.perf_counter() - began, wrong


def main(image, at_once):
    tasks = json.load(sys.stdin)
    began = time.perf_counter()
    with ThreadPoolExecutor(int(at_once)) as pool:
        done = list(pool.map(lambda task: episode(image, task), tasks))
    took = time.perf_counter() - began
    wrong = [fault for _, faults in done for fault in faults]
    print(json.dumps({"took": took, "times": [seconds for seconds, _ in done], "wrong": wrong}))


main(*sys.argv[1:])
