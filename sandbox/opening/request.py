"""Request of a client to open a session."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SessionRequest:
    """Arguments of a client that opens a session."""

    repo: str | None = None
    """A folder or an archive on this machine, a git URL, or `image:/path` for a folder of the image."""
    in_place: str = ""
    """Name of the place whose own files are worked on; empty: a copy is. Only the operator chooses it."""
    ref: str | None = None
    """Commit, branch or tag to check out."""
    image: str | None = None
    python: str | None = None
    entrypoint: str | None = None
    debug_entrypoint: str | None = None
    setup: tuple[str, ...] | None = None
    """Shell commands; None for those in the repository's own configuration."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    network: bool = False
    resume: str | None = None
    """Handle of a session that lost its sandbox, to be opened again with its edits."""
    task: str | None = None
    """Name of a task, which says all of this but `entrypoint`, `debug_entrypoint` and `env`."""
    instruction: str = ""
    """Text of the task, for the model that works in the session."""
    whole: bool = False
    """True to copy all files that `.gitignore` matches too."""
    ignore: tuple[str, ...] = ()
    """Patterns of files that tools don't show, besides those in `.debugignore`."""
    read_only: tuple[str, ...] = ()
    """Patterns of files that can't be changed, besides those in `.debugreadonly`."""
    guard: bool = True
    """False if programs may change read-only files: to score a patch, which may touch them."""
    workdir: str | None = None
    """Folder of the repository in a container, unless it is one of the image."""
    folders: tuple[str, ...] = ()
    """Folders outside of the workspace that programs may write to, such as `/logs`."""
