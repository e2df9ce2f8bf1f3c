"""Everything that can be set, in one place."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field

BackendName = Literal["auto", "docker", "process"]


class Settings(BaseModel):
    """What the operator chose: flags, then `PDBOX_*` variables, then these defaults. Lists have one item a line there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repo: Path | None = None
    """Repository of sessions that name none; else the working directory."""
    root: list[Path] = []
    """Folder that clients may take repositories from; repeatable. Without it only the repository itself."""
    ref: str | None = None
    """Commit, branch or tag to check out."""
    entrypoint: str | None = None
    """How `eval` runs the tests, if the client does not say."""
    debug_entrypoint: str | None = None
    """What `pdb` debugs, if the client does not say."""
    setup: list[str] = []
    """Shell command to run in a new sandbox; repeatable."""
    env: list[str] = []
    """NAME=VALUE for the programs in the sandbox; repeatable."""
    backend: BackendName = "auto"
    """Where sandboxes run; `auto` takes what isolates, never less: docker."""
    unsafe_no_isolation: bool = False
    """Allow `--backend process`, which runs programs without any isolation."""
    image: str | None = None
    """Container image for sessions that name none."""
    python: str | None = None
    """Python version for sessions that name none, e.g. 3.12."""
    network: bool = False
    """Let clients ask for sandboxes with network access."""
    setup_network: bool = False
    """Open the network to set-up commands and git clones."""
    mount: list[str] = []
    """HOST:INSIDE folder to mount read-only; repeatable."""
    memory: ByteSize = Field(default=ByteSize(2 << 30), validate_default=True)
    """Memory of one sandbox, e.g. 512MiB."""
    cpus: float = Field(default=2.0, gt=0)
    """CPUs of one sandbox."""
    pids: int = Field(default=512, ge=16)
    """Processes and threads of one sandbox."""
    workspace_size: ByteSize = Field(default=ByteSize(1 << 30), validate_default=True)
    """Largest copy of a repository, with all that programs write there."""
    session_ttl_s: float = Field(default=1800, gt=0)
    """Seconds without a call after which a session ends."""
    session_max_age_s: float = Field(default=24 * 3600, gt=0)
    """Seconds after which a session ends in any case."""
    session_grace_s: float = Field(default=600, gt=0)
    """Seconds that a session outlives a server that was killed."""
    max_sessions: int | None = Field(default=None, ge=1)
    """Sessions that may be open at once; else 10 on stdio, 50 on HTTP."""
    max_sessions_per_principal: int | None = Field(default=None, ge=1)
    """Sessions that one principal may have open at once; else 10 where there are tokens."""
    pool: int = Field(default=0, ge=0, le=100)
    """Sandboxes of the usual image that are started ahead, so that sessions open at once."""
    keep_sessions: bool = False
    """Leave sessions running when the server ends, until they are idle for too long: for hosts that start a server for each call."""
    transport: Literal["stdio", "http", "sse"] = "stdio"
    """How clients connect: `stdio`, `http` (streamable HTTP at /mcp) or `sse` (the old one at /sse)."""
    host: str = "127.0.0.1"
    """Address to listen on; any but a loopback address needs --token-file or --oauth-issuer."""
    port: int = Field(default=8717, ge=0, le=65535)
    """Port to listen on; 0 takes a free one. The URL is printed to stderr."""
    token_file: Path | None = None
    """Bearer tokens, one `principal token` a line. A session can only be reached by its principal."""
    oauth_issuer: str | None = None
    """URL of an OAuth issuer whose tokens (signed JWTs) are accepted, too; needs --oauth-resource."""
    oauth_resource: str | None = None
    """URL of this server for its clients, e.g. https://pdbox.example/mcp: the audience that tokens must name."""
    oauth_scope: list[str] = []
    """Scope that tokens of the issuer must have; repeatable."""
    allowed_host: list[str] = []
    """Name by which clients may address the server besides loopback and --host; repeatable."""
    allowed_origin: list[str] = []
    """Web origin whose pages may be clients, e.g. https://app.example; repeatable."""
    redact: bool = True
    """Mask what looks like a password, key or token in all that clients get and in logs."""
    log_format: Literal["text", "json"] = "text"
    """How stderr is logged to: `text` for people, `json` for one object a line."""
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """Least severity that is logged to stderr."""


def descriptions() -> dict[str, str]:
    """The docstring under each field. Read only for `--help`: pydantic's own way would cost every start 20 ms."""
    (cls,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(cls, ast.ClassDef)
    found: dict[str, str] = {}
    for field, text in zip(cls.body, cls.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as words)):
                found[name] = words
            case _:
                pass
    return found
