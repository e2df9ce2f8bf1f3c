"""Runs set-up commands before a session is handed over, and explains a failure by its reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
from pydantic import BaseModel, Field

from sandbox.backend import Progress
from sandbox.errors import InvalidArgument
from sandbox.host_files import in_thread
from sandbox.opening.kept_setups import Reuse
from sandbox.opening.policy import Sources
from sandbox.session.guest_data import validate
from sandbox.session.results import ExecResult
from sandbox.session.session import Session

SETUP_TIMEOUT_S = 900.0
_SEARCHED = 8000
"""Number of characters at the end of the output that are searched for the reason."""
_CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
)
_NOT_FOUND = re.compile(
    r"([\w./+-]{1,80}): (?:command )?not found|command '([^'\n]{1,80})' failed: No such file"
)
_NETWORK = (
    "Temporary failure in name resolution",
    "Name or service not known",
    "Could not resolve host",
    "Network is unreachable",
    "Failed to establish a new connection",
    "dns error",
    "getaddrinfo",
    "(from versions: none)",
    "tcp connect error",
)


@dataclass(frozen=True)
class _Reason:
    signs: tuple[str, ...]
    hint: str


_REASONS = (
    _Reason(
        ("No space left on device", "[Errno 28]", "Disk quota exceeded"),
        "A folder was full. Start the server with a larger `--home-size` (pip installs there), `--tmp-size` or `--workspace-size`.",
    ),
    _Reason(
        ("User site-packages are not visible in this virtualenv",),
        "Leave `--user` out: what is installed goes into this session's own layer over the virtual environment.",
    ),
    _Reason(
        ("externally-managed-environment", "No module named pip"),
        "The session's Python is {python}, and this `pip` is none of its own: "
        "begin with `python -m ensurepip`, and install with `python -m pip install …`.",
    ),
    _Reason(
        (
            "CERTIFICATE_VERIFY_FAILED",
            "certificate verify failed",
            "SSL certificate problem",
            "unable to get local issuer certificate",
            "self-signed certificate",
            "invalid peer certificate",
        ),
        "The certificate of the other side is not trusted. Start the server with `--ca-bundle FILE`: a PEM file with your company's.",
    ),
    _Reason(
        (
            "requires a different Python",
            "require a different python",
            "current Python version",
            "does not satisfy Python",
            "No interpreter found for Python",
            "is not supported by the project",
        ),
        "It needs another Python than {python}: give `python` to start_session, or start the server with `--python`.",
    ),
)
_NO_NETWORK = "This sandbox has no network: start the server with `--setup-network`, which opens one to set-up commands alone."
_NO_NETWORK_AT_ALL = "This sandbox has no network: start the server with `--network`, which opens one for the whole session, or use Docker."
_UNREACHED = (
    "The sandbox had a network, but this address was not reached. A package index of your own is set with `--index-url`, "
    "a proxy with `--env HTTPS_PROXY=…`."
)


class _Trusted(BaseModel):
    path: str = Field(max_length=4096)


async def source_env(session: Session, sources: Sources) -> dict[str, str]:
    """Return variables that make package managers and git use `sources`.

    Copies the certificates into the sandbox.
    """
    env: dict[str, str] = {}
    if sources.index_url:
        env |= {"PIP_INDEX_URL": sources.index_url, "UV_DEFAULT_INDEX": sources.index_url}
    if sources.ca_bundle:
        header, _ = await session.request("trust", {}, sources.ca_bundle)
        env |= dict.fromkeys(_CERTIFICATE_VARIABLES, validate(_Trusted, header).path)
    return env


async def run_or_reuse(
    session: Session,
    commands: Sequence[str],
    env: Mapping[str, str],
    progress: Progress,
    reuse: Reuse | None,
) -> bool:
    """Start with the result of the same commands in an earlier session, else run them. True if there was one.

    Raises:
        InvalidArgument: a command failed.
        SandboxError: the kept result can't be used.
    """
    key = reuse and await in_thread(reuse.key, commands, {**session.metadata.env, **env})
    if reuse is None or key is None:
        await run_setup(session, commands, env, progress)
        return False
    if await reuse.load(session, key):
        return True
    is_noted = await reuse.mark(session)
    begin = anyio.current_time()
    await run_setup(session, commands, env, progress)
    if is_noted and anyio.current_time() - begin >= reuse.kept.worth_s:
        await reuse.save(session, key)
    return False


async def run_setup(
    session: Session, commands: Sequence[str], env: Mapping[str, str], progress: Progress
) -> None:
    """Run `commands` one after another with `env` on top of the session's environment.

    Raises:
        InvalidArgument: one failed.
    """
    for command in commands:
        progress(f"set-up: {command}")
        result = await session.run(command, timeout_s=SETUP_TIMEOUT_S, env=dict(env))
        if result.exit_code != 0:
            raise InvalidArgument(
                f"The set-up command `{command}` {_ending(result)}: …{result.output[-1500:]}",
                await _hint(session, result),
            )


def _ending(result: ExecResult) -> str:
    if result.timed_out:
        return f"did not end within {SETUP_TIMEOUT_S:g} s"
    return f"was ended by {result.signal}" if result.signal else f"failed with exit code {result.exit_code}"


async def _hint(session: Session, result: ExecResult) -> str:
    """Choose the hint for the reason that the output shows."""
    output = result.output[-_SEARCHED:]
    if result.full:
        return result.full
    if result.signal == "SIGKILL" or result.exit_code == 137:
        return "Was it out of memory? Start the server with a larger `--memory`."
    missing = _NOT_FOUND.search(output)
    if missing and (result.exit_code == 127 or missing[2]):
        name = missing[1] or missing[2]
        image = session.sandbox.image
        return f"There is no `{name}` in {image}: install it in an earlier set-up command, or choose an `image` that has it."
    for reason in _REASONS:
        if any(sign in output for sign in reason.signs):
            return reason.hint.format(python=(await session.connect()).hello.python[:50])
    if any(sign in output for sign in _NETWORK):
        if session.sandbox.has_network:
            return _UNREACHED
        return _NO_NETWORK if session.sandbox.can_cut_network else _NO_NETWORK_AT_ALL
    return 'To find out why, open a session with `setup=["true"]` and run the command with `bash`.'
