"""What is done with a repository once it is in the sandbox: its own settings, its set-up, the baseline of its diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, NonNegativeInt

from sandbox.base import Progress
from sandbox.debugger import checked
from sandbox.entrypoint import default_entrypoint
from sandbox.errors import InvalidArgument
from sandbox.own_settings import OwnSettings
from sandbox.request import SessionRequest
from sandbox.rules import Rules
from sandbox.session import MAX_RULES, ExecResult, Memory, Session, checked_env

SETUP_TIMEOUT_S = 900.0
_RESTORED = (
    "Files that .debugreadonly names are protected from the tools; "
    "what programs change in them is put back before each `eval`."
)
_EMPTY = "No `repo` was given: the workspace is empty."
_READ_AT_START: tuple[str, ...] = (
    ".debugignore",
    ".debugreadonly",
    ".gitignore",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)


async def prepare(
    session: Session, request: SessionRequest, notice: str, guarded: bool, progress: Progress
) -> None:
    """Read what the repository says about itself, run its set-up, take the baseline of `diff`, and remember it all.

    Raises:
        InvalidArgument: a set-up command failed, or a file of rules is of no use.
    """
    texts = await _texts(session)
    own = OwnSettings.of(texts["pyproject.toml"])
    rules = _rules(texts)
    notices = [notice] if notice else []
    if not request.repo:
        notices.append(_EMPTY)
    if not guarded and any(map(str.strip, rules.read_only)):
        notices.append(_RESTORED)
    entrypoint = request.entrypoint or own.entrypoint
    memory = Memory(
        rules=rules,
        env=_env(session, {**own.env, **request.env}),
        entrypoint=entrypoint,
        debug_entrypoint=request.debug_entrypoint or own.debug_entrypoint or entrypoint,
        notices=tuple(notices),
    )
    session.memory = memory
    await _set_up(session, own.setup if request.setup is None else request.setup, progress)
    if entrypoint is None:
        entrypoint = await _default_entrypoint(session, texts)
        memory = replace(
            memory, entrypoint=entrypoint, debug_entrypoint=memory.debug_entrypoint or entrypoint
        )
    await session.request("files.snapshot", {"rules": rules.for_diff()}, timeout_s=300)
    await session.request("files.protect", {"rules": rules.for_tools()}, timeout_s=60)
    debug = {"entrypoint": memory.debug_entrypoint, "env": memory.env}
    await session.request("debug.configure", debug)
    await session.remember(memory)


def _rules(texts: Mapping[str, str]) -> Rules:
    """Each line is compiled here and tried on each name: of a `.gitignore` the first count, of ours there may be no more.

    Raises:
        InvalidArgument: too many lines.
    """
    hidden, read_only, untracked = (
        tuple(texts[name].splitlines()) for name in (".debugignore", ".debugreadonly", ".gitignore")
    )
    for name, lines in ((".debugignore", hidden), (".debugreadonly", read_only)):
        if len(lines) > MAX_RULES:
            raise InvalidArgument(f"{name} has {len(lines)} lines, the limit is {MAX_RULES}.")
    short = tuple(line for line in untracked[:MAX_RULES] if len(line) <= 1000)
    return Rules(hidden, read_only, short)


async def _set_up(session: Session, commands: Sequence[str], progress: Progress) -> None:
    for command in commands:
        progress(f"set-up: {command}")
        result = await session.run(command, timeout_s=SETUP_TIMEOUT_S)
        if result.exit_code != 0:
            raise InvalidArgument(
                f"The set-up command `{command}` {_ending(result)}: …{result.output[-1500:]}",
                "Sandboxes have no network unless the server was started with `--setup-network`.",
            )


def _ending(result: ExecResult) -> str:
    if result.timed_out:
        return f"did not end within {SETUP_TIMEOUT_S:g} s"
    return f"was ended by {result.signal}" if result.signal else f"failed with exit code {result.exit_code}"


class _Texts(BaseModel):
    sizes: list[NonNegativeInt | None]


async def _texts(session: Session) -> dict[str, str]:
    """What is in the files that are read at the start; nothing where there is none."""
    header, data = await session.request("files.texts", {"paths": _READ_AT_START, "max_bytes": 1 << 20})
    texts, begin = dict.fromkeys(_READ_AT_START, ""), 0
    for name, size in zip(_READ_AT_START, checked(_Texts, header).sizes, strict=False):
        end = begin + (size or 0)
        texts[name] = data[begin:end].decode("utf-8", "replace")
        begin = end
    return texts


async def _default_entrypoint(session: Session, texts: Mapping[str, str]) -> str | None:
    """What the settings say needs no look at all the names."""
    settings = texts["pyproject.toml"], texts["tox.ini"], texts["setup.cfg"]
    if entrypoint := default_entrypoint((), *settings):
        return entrypoint
    return default_entrypoint(await session.workspace.names(), *settings)


def _env(session: Session, env: dict[str, str]) -> dict[str, str]:
    """`{workspace}` in a value is the workspace's root."""
    return {
        name: value.replace("{workspace}", str(session.workspace.root))
        for name, value in checked_env(env).items()
    }
