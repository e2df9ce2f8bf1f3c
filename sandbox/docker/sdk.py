"""Imports Docker's SDK on first use, and maps its exceptions to pdbox's own, each with a hint."""

from __future__ import annotations

import contextlib
import errno
import importlib
from collections.abc import Generator
from typing import Any

from sandbox.errors import BackendUnavailable, NotFound, PdboxError, SandboxError, SandboxLost

PERMISSION_HINT = (
    "Add yourself to its group (`sudo usermod -aG docker $USER`, then log in again) or use rootless Docker."
)
ENGINE_HINT = (
    "Start it: `sudo systemctl start docker`, or Docker Desktop, or `colima start`; in a checkout of pdbox on "
    "Debian, `make docker` installs and starts one. Elsewhere: DOCKER_HOST. `pdbox doctor` checks it."
)


@contextlib.contextmanager
def errors(doing: str = "", where: str = "") -> Generator[None]:
    """Map exceptions of Docker and its transport to pdbox's own, each with a hint.

    `where`: address of the engine, for messages while connecting.
    """
    docker = sdk()
    requests = importlib.import_module("requests.exceptions")
    try:
        yield
    except PdboxError:
        raise  # mapped already; some are OSErrors too
    except docker.errors.APIError as exc:
        raise refusal(doing, int(exc.status_code or 0), str(exc.explanation or exc)) from exc
    except (docker.errors.DockerException, requests.RequestException, OSError) as exc:
        raise _unreachable(exc, where) from exc


def refusal(doing: str, status: int, words: str) -> SandboxError | NotFound:
    """Translate an engine's refusal by its status and text. The text goes only into `details`."""
    what = doing or "The Docker engine refused"
    lower, said = words.lower(), words.strip()[:2000]
    if "no space left" in lower:
        hint = "`docker system prune` frees some."
        return BackendUnavailable(f"{what}: the engine's disk is full.", hint, said)
    if "no such image" in lower or "manifest unknown" in lower or "pull access denied" in lower:
        hint = "Check the name; `pdbox image build` makes pdbox's own images."
        return BackendUnavailable(f"{what}: there is no such image, or it needs `docker login`.", hint, said)
    if any(sign in lower for sign in ("no such host", "i/o timeout", "connection refused", "client.timeout")):
        hint = "On Debian as root, `pdbox image build` needs none."
        return BackendUnavailable(f"{what}: the registry can't be reached.", hint, said)
    if status == 404:
        return SandboxLost(f"{what}: it has gone.", "start_session opens a new one.", said)
    hint = "The server's log has the engine's reason; `pdbox doctor` shows what works here."
    return BackendUnavailable(f"{what}.", hint, said)


def _unreachable(exc: BaseException, where: str) -> BackendUnavailable:
    """Explain a missing answer. The cause is deep in the exception chains of urllib3 and requests."""
    words = f"{exc!r} {exc.__context__!r}"
    if isinstance(exc, PermissionError) or "PermissionError" in words or "Permission denied" in words:
        return BackendUnavailable(f"The Docker engine's socket refuses this user{where}.", PERMISSION_HINT)
    if "FileNotFoundError" in words or "ConnectionRefused" in words or "Connection refused" in words:
        return BackendUnavailable(f"No Docker engine answers{where}.", ENGINE_HINT)
    if isinstance(exc, OSError) and exc.errno == errno.ENOSPC:
        return BackendUnavailable("No space left on this machine.", "Free some in the temp folder.")
    if "timed out" in words.lower():
        return BackendUnavailable(
            "The Docker engine doesn't answer in time.", "Is it busy? `docker info` tells."
        )
    return BackendUnavailable("The Docker engine can't be reached.", ENGINE_HINT, str(exc)[:2000])


def sdk() -> Any:
    """Import the package `docker`. This takes longer than importing the rest of the server."""
    docker = importlib.import_module("docker")
    importlib.import_module("docker.errors")
    return docker
