"""Plans a session before anything is started: its source, image and sandbox specification."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.backend import Backend, Progress
from sandbox.errors import InvalidArgument
from sandbox.host_files import in_thread, open_regular
from sandbox.opening import tar
from sandbox.opening.policy import Policy
from sandbox.opening.project_config import OwnSettings
from sandbox.opening.request import SessionRequest
from sandbox.session.test_command import requires_python
from sandbox.spec import ImageRequest, SandboxSpec

_SYSTEM = re.compile(
    r"//?|/(bin|boot|etc|lib\w*|opt|run|sbin|tmp|usr|usr/\w+|var|home/sandbox)|/(dev|proc|sys|run/pdbox)(/.*)?"
)
"""Folders of an image that a copy must not hide, because programs need them."""
_HINT = 256 << 10
"""Bytes at the beginning and the end of an archive in which a name is looked for."""
_GZIP = 31
"""zlib's number for its format."""


@dataclass(frozen=True)
class Source:
    """Origin of the repository, if there is one."""

    folder: Path | None = None
    archive: Path | None = None
    """A tar or zip file."""
    url: str | None = None
    inside: str | None = None
    """A folder of the image."""
    guard: bool = False
    """True if programs are likely to be kept from changing some files. It is known for sure after the upload."""
    has_setup: bool = False
    """True if set-up commands for `folder` may run, of which a later session can have the result."""


@dataclass(frozen=True)
class Plan:
    """Result of planning a request: specification of the sandbox without its owner, and a notice."""

    spec: SandboxSpec
    notice: str


async def plan_session(
    backend: Backend, request: SessionRequest, source: Source, policy: Policy, progress: Progress
) -> Plan:
    """Plan the sandbox for `request`, with the repository in `source`. A missing image is built or pulled.

    Raises:
        InvalidArgument: the request can't be met.
        BackendUnavailable: there is no image, and none can be built or pulled.
    """
    own, required = await in_thread(_pythons, source.folder)
    wanted = ImageRequest(request.image, request.python or own, required, source.folder, policy.images)
    chosen = await backend.choose(wanted, progress)
    spec = SandboxSpec(
        key="",
        owner="",
        image=chosen.image,
        image_id=chosen.image_id,
        workdir=PurePosixPath(source.inside or request.workdir or "/workspace"),
        guarded=source.guard,
        network=request.network or policy.setup_network,
        mounts=policy.mounts,
        origin=chosen.origin,
        folders=request.folders,
        limits=policy.limits,
        lifetime=policy.lifetime,
    )
    return Plan(spec, chosen.notice)


def _pythons(folder: Path | None) -> tuple[str | None, str | None]:
    """Read the Python version that the repository in `folder` sets, and its `requires-python`."""
    pyproject = _host_text(folder / "pyproject.toml") if folder else ""
    return OwnSettings.of(pyproject).python, requires_python(pyproject)


def source_of(request: SessionRequest) -> str:
    """Hash the requested repository, to find its sessions again; empty if there is none."""
    repo = request.in_place or request.repo
    if not repo:
        return ""
    return hashlib.sha256(json.dumps([repo, request.ref, request.image]).encode()).hexdigest()[:32]


def find_source(request: SessionRequest, policy: Policy) -> Source:
    """Find the repository of `request`. Only its rule files are read yet.

    Raises:
        PathRefused, NotFound, InvalidArgument: it does not exist, or is not allowed.
    """
    if request.network and not policy.allow_network:
        raise InvalidArgument(
            "This server gives sandboxes no network.", "Its operator can allow it with `--network`."
        )
    if request.workdir:
        _check_folder(request.workdir)
    repo = request.repo
    if request.in_place or not repo:
        return Source()
    guard = request.guard and any(map(str.strip, request.read_only))
    if repo.startswith("image:"):
        place = repo.removeprefix("image:")
        if not place.startswith("/") or ".." in place.split("/") or not request.image:
            raise InvalidArgument(f"`{repo}` must be `image:/absolute/path`, together with `image`.")
        return Source(inside=_check_folder(place), guard=guard)
    if re.match(r"(https?|git|ssh)://", repo):
        if not (policy.setup_network or request.network):
            raise InvalidArgument(
                f"Cloning {repo} needs a network, and this server's sandboxes have none.",
                "Start it with `--setup-network`, or give the path of a clone.",
            )
        return Source(url=repo, guard=guard)
    place = tar.resolve_repository(repo, policy.roots)
    if not place.is_dir():
        return Source(archive=place, guard=guard or (request.guard and _hints_at_rules(place)))
    return Source(
        folder=place,
        guard=guard or (request.guard and _has_rules(place)),
        has_setup=policy.setups is not None and _has_setup(place, request),
    )


def _has_setup(folder: Path, request: SessionRequest) -> bool:
    """True if set-up commands may run: of the request, or of the repository, whose revision `ref` may have others.

    Its configuration is parsed after the upload: here it is enough that there is one.
    """
    if request.setup is not None or request.ref:
        return request.setup != ()
    return "pdbox" in _host_text(folder / "pyproject.toml")


def _check_folder(place: str) -> str:
    place = posixpath.normpath(place.replace("//", "/"))
    if _SYSTEM.fullmatch(place):
        raise InvalidArgument(
            f"{place} is a folder of the system, and the copy would hide what programs need.",
            "Name the folder of the repository, e.g. `image:/testbed`.",
        )
    return place


def _has_rules(folder: Path) -> bool:
    return bool(_host_text(folder / ".debugreadonly").strip())


def _hints_at_rules(archive: Path) -> bool:
    """True if an archive begins, or ends, with what names a `.debugreadonly`: the opening is quicker if that is known."""
    try:
        with os.fdopen(open_regular(archive), "rb") as stream:
            data = stream.read(_HINT)
            stream.seek(-min(_HINT, stream.seek(0, os.SEEK_END)), os.SEEK_END)
            end = stream.read()  # there a zip has its names
        # At most so many bytes of both sides: it may be a bomb.
        begin = zlib.decompressobj(_GZIP).decompress(data, _HINT) if data.startswith(b"\x1f\x8b") else data
    except (OSError, zlib.error):
        return False
    return any(b".debugreadonly" in part for part in (begin, end))


def _host_text(file: Path) -> str:
    """Read the first MiB of a regular file of the repository on this machine.

    Follows no link, waits for no pipe.
    """
    try:
        with os.fdopen(open_regular(file), "rb") as stream:
            return stream.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""
