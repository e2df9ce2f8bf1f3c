"""Prepares an uploaded repository: reads its configuration, runs its set-up, takes the baseline of its diff."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, NonNegativeInt

from sandbox.backend import Progress
from sandbox.host_files import in_thread
from sandbox.ignore_rules import MAX_RULES, MAX_TEXT, Rules, rule_lines
from sandbox.opening.kept_setups import Reuse
from sandbox.opening.project_config import OwnSettings
from sandbox.opening.request import SessionRequest
from sandbox.opening.setup_commands import run_or_reuse
from sandbox.session.guest_data import validate
from sandbox.session.metadata import SessionMetadata
from sandbox.session.session import Session, validate_env
from sandbox.session.test_command import (
    DJANGO_FILES,
    NESTED_DJANGO_FILES,
    OWN_PYTEST_FILES,
    PYTEST,
    PYTEST_FILES,
    configures_pytest,
    django_entrypoint,
    why_unread,
)

Restore = Callable[[Session], Awaitable[str]]
"""Callback that makes the changes of an earlier session in a new one, and returns a notice about them."""
_RESTORED = (
    "Files that .debugreadonly names are protected from the tools; "
    "what programs change in them is put back before each `eval`."
)
_REUSED = "Set-up kept from an earlier session: its commands did not run again."
_EMPTY = "No `repo` was given: the workspace is empty."
_READ_AT_START: tuple[str, ...] = (
    ".debugignore",
    ".debugreadonly",
    ".gitignore",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
    *DJANGO_FILES,
)
_FIND_ENVIRONMENT = 'for name in .venv venv; do [ -x "$name/bin/python" ] && printf "%s\\n%s" "$PWD/$name" "$PATH" && break; done; true'


async def prepare(
    session: Session,
    request: SessionRequest,
    notice: str,
    can_guard: bool,
    setup_env: Mapping[str, str],
    progress: Progress,
    restore: Restore | None = None,
    reuse: Reuse | None = None,
) -> bool:
    """Read the repository's configuration, run its set-up, take the baseline of `diff`, and save the metadata.

    False if it has read-only files, and this sandbox can't keep programs from changing them, although one that is
    started as guarded can (`can_guard`). Nothing of the repository has run then.

    `restore` is called before that: until the metadata is saved, no server takes the session over.
    `reuse` gives the result of the same set-up in an earlier session.

    Raises:
        InvalidArgument: a set-up command failed, or a rule file is invalid.
    """
    texts = await _read_texts(session)
    pyproject = texts["pyproject.toml"]
    own = await in_thread(OwnSettings.of, pyproject)
    rules = session.rules = _rules(texts, request)
    notices = [notice] if notice else []
    if not (request.repo or request.in_place):
        notices.append(_EMPTY)
    if reason := why_unread(pyproject):
        notices.append(reason)
    if any(map(str.strip, rules.read_only)):
        if request.guard and session.sandbox.is_guarded:
            await session.lock(rules)
        elif request.guard and can_guard:
            return False
        else:
            notices.append(_RESTORED)
    entrypoint = request.entrypoint or own.entrypoint
    metadata = SessionMetadata(
        # Set-up commands get `setup_env` in any case.
        env=_expand_env(session, {**(setup_env if request.network else {}), **own.env, **request.env}),
        entrypoint=entrypoint,
        debug_entrypoint=request.debug_entrypoint or own.debug_entrypoint or entrypoint,
        notices=tuple(notices),
    )
    session.metadata = metadata
    # Files that somebody else works on are left as they are, unless the operator or the client wants it.
    usual = () if request.in_place else own.setup
    commands = usual if request.setup is None else request.setup
    if commands and await run_or_reuse(session, commands, setup_env, progress, reuse):
        metadata = replace(metadata, notices=(*metadata.notices, _REUSED))
    if commands or request.in_place:
        metadata = replace(metadata, env={**await _find_virtual_environment(session), **metadata.env})
    await session.protect(rules)
    if entrypoint is None:
        entrypoint = await _default_entrypoint(session, texts)
        metadata = replace(
            metadata, entrypoint=entrypoint, debug_entrypoint=metadata.debug_entrypoint or entrypoint
        )
    debug = {"entrypoint": metadata.debug_entrypoint, "env": metadata.env}
    await session.request("debug.configure", debug)
    # Last: the guest goes on storing files after its answer, which would slow the requests above down.
    for_diff = await in_thread(rules.for_diff)
    await session.request("files.snapshot", {"rules": for_diff}, timeout_s=300)
    if restore is not None:
        metadata = replace(metadata, notices=(*metadata.notices, await restore(session)))
    await session.save_metadata(metadata)
    return True


async def _find_virtual_environment(session: Session) -> dict[str, str]:
    """Find a virtual environment that set-up commands created, and return the variables that activate it."""
    result = await session.run(_FIND_ENVIRONMENT, timeout_s=30)
    folder, _, path = result.output.partition("\n")
    return {"VIRTUAL_ENV": folder, "PATH": f"{folder}/bin:{path}"} if path and result.exit_code == 0 else {}


def _rules(texts: Mapping[str, str], request: SessionRequest) -> Rules:
    """Read the rule files, and add the patterns of the request. Their length is limited, because each line is tried on each name.

    Only the first lines of a `.gitignore` count.

    Raises:
        InvalidArgument: a rule file of pdbox is too long.
    """
    hidden, read_only = (rule_lines(texts[name], name) for name in (".debugignore", ".debugreadonly"))
    hidden, read_only = (*hidden, *request.ignore), (*read_only, *request.read_only)
    return Rules(hidden, read_only, tuple(texts[".gitignore"][:MAX_TEXT].splitlines()[:MAX_RULES]))


class _Texts(BaseModel):
    sizes: list[NonNegativeInt | None]


async def _read_texts(session: Session, names: Sequence[str] = _READ_AT_START) -> dict[str, str]:
    """Read these files; the text of a missing one is empty."""
    header, data = await session.request("files.texts", {"paths": names, "max_bytes": 1 << 20})
    texts, begin = dict.fromkeys(names, ""), 0
    for name, size in zip(names, validate(_Texts, header).sizes, strict=False):
        end = begin + (size or 0)
        texts[name] = data[begin:end].decode("utf-8", "replace")
        begin = end
    return texts


async def _default_entrypoint(session: Session, texts: Mapping[str, str]) -> str | None:
    """Detect pytest or Django's own runner.

    Check the config files first; search the files only if they don't decide.
    """
    settings = texts["pyproject.toml"], texts["tox.ini"], texts["setup.cfg"]
    if await in_thread(configures_pytest, *settings):
        return PYTEST
    # In one request: each one walks through all files.
    own, nested, usual = await session.workspace.first_of(OWN_PYTEST_FILES, NESTED_DJANGO_FILES, PYTEST_FILES)
    if own:
        return PYTEST
    django = {name: texts[name] for name in DJANGO_FILES}
    if nested:
        django |= await _read_texts(session, [nested])
    if entrypoint := django_entrypoint(django):
        return entrypoint
    return PYTEST if usual else None


def _expand_env(session: Session, env: dict[str, str]) -> dict[str, str]:
    """Replace `{workspace}` in values by the root of the workspace."""
    return {
        name: value.replace("{workspace}", str(session.workspace.root))
        for name, value in validate_env(env).items()
    }
