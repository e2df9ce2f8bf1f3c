"""Everything that can be set, in one place."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field

BackendName = Literal["auto", "docker", "bubblewrap", "process"]
AnswerForm = Literal["text", "structured", "both"]


@dataclass(frozen=True)
class Group:
    """A heading of `pdbox serve --help`."""

    title: str


REPOSITORY = Group("repository and its programs")
SANDBOX = Group("sandbox")
NETWORK = Group("network of sandboxes")
SESSIONS = Group("sessions")
TOOLS = Group("tools")
ANSWERS = Group("answers")
CONNECTION = Group("connection of clients")
LOG = Group("log")


LIMITS = ("memory", "cpus", "pids", "workspace_size", "home_size", "tmp_size")
"""Settings that limit what a sandbox may use."""


class Settings(BaseModel):
    """The operator's settings: flags, then `PDBOX_*` variables (lists: one item a line), then these defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repo: Annotated[Path | None, REPOSITORY] = None
    """Repository for sessions whose client names none (default: the working directory)."""
    root: Annotated[list[Path], REPOSITORY] = []
    """Folder that clients may choose repositories from; repeatable (default: the repository alone)."""
    ref: Annotated[str | None, REPOSITORY] = None
    """Commit, branch or tag to check out."""
    task: Annotated[str | None, REPOSITORY] = None
    """Task for sessions whose client names none: its folder, or its name."""
    tasks: Annotated[list[Path], REPOSITORY] = []
    """Folder of task folders, which clients may choose by name besides those that come with pdbox; repeatable."""
    entrypoint: Annotated[str | None, REPOSITORY] = None
    """Command by which `eval` runs the tests (default: found out from the repository)."""
    debug_entrypoint: Annotated[str | None, REPOSITORY] = None
    """Command that `pdb` debugs (default: that of --entrypoint)."""
    setup: Annotated[list[str], REPOSITORY] = []
    """Shell command to run in a new sandbox before its session begins; repeatable."""
    env: Annotated[list[str], REPOSITORY] = []
    """Environment variable for the programs in the sandbox; repeatable."""
    backend: Annotated[BackendName, SANDBOX] = "auto"
    """Isolation of programs: Docker containers, namespaces (bubblewrap, Linux), or `process`: none. `auto`: docker, else bubblewrap."""
    runtime: Annotated[str, SANDBOX] = ""
    """Runtime of the Docker engine for sandboxes, such as runsc (gVisor) or kata-runtime (default: the engine's)."""
    unsafe_no_isolation: Annotated[bool, SANDBOX] = False
    """Allow --backend process, which runs programs without any isolation."""
    container: Annotated[str | None, SANDBOX] = None
    """Running container to debug in, on its own files and with its own Python, instead of a sandbox with a copy: name or id."""
    workdir: Annotated[str | None, SANDBOX] = None
    """Folder of the repository in --container (default: the container's working directory)."""
    in_place: Annotated[bool, SANDBOX] = False
    """Debug the files of --repo themselves, on this machine: for a server inside of a container. Programs get the server's rights."""
    image: Annotated[str | None, SANDBOX] = None
    """Container image for sessions whose client names none (default: pdbox-sandbox with the Python that suits)."""
    allow_image: Annotated[list[str], SANDBOX] = []
    """Pattern of images that clients may have pulled, such as swebench/* or registry.example/org/*; repeatable. Those present need none."""
    python: Annotated[str | None, SANDBOX] = None
    """Python version for sessions whose client names none, such as 3.12 (default: by the repository)."""
    network: Annotated[bool, NETWORK] = False
    """Let clients ask for sandboxes with a network."""
    setup_network: Annotated[bool, NETWORK] = False
    """Give set-up commands and git clones a network, which is closed before the session begins."""
    index_url: Annotated[str | None, NETWORK] = None
    """Package index that `pip` and `uv` of set-up commands use instead of PyPI."""
    ca_bundle: Annotated[Path | None, NETWORK] = None
    """PEM file of certificates that set-up commands and git clones trust besides the usual ones."""
    mount: Annotated[list[str], SANDBOX] = []
    """Folder of this machine to mount in sandboxes, read-only; repeatable."""
    memory: Annotated[ByteSize, SANDBOX] = Field(default=ByteSize(2 << 30), validate_default=True)
    """Memory of one sandbox, such as 512MiB."""
    cpus: Annotated[float, SANDBOX] = Field(default=2.0, gt=0)
    """CPUs of one sandbox."""
    pids: Annotated[int, SANDBOX] = Field(default=512, ge=16)
    """Processes and threads of one sandbox."""
    workspace_size: Annotated[ByteSize, SANDBOX] = Field(default=ByteSize(1 << 30), validate_default=True)
    """Size of the repository's copy, with all that programs write there."""
    home_size: Annotated[ByteSize, SANDBOX] = Field(default=ByteSize(1 << 30), validate_default=True)
    """Size of the home folder, where `pip install` puts packages."""
    tmp_size: Annotated[ByteSize, SANDBOX] = Field(default=ByteSize(512 << 20), validate_default=True)
    """Size of /tmp."""
    session_ttl_s: Annotated[float, SESSIONS] = Field(default=1800, gt=0)
    """Time without a call after which a session ends."""
    session_max_age_s: Annotated[float, SESSIONS] = Field(default=24 * 3600, gt=0)
    """Time after which a session ends in any case."""
    session_grace_s: Annotated[float, SESSIONS] = Field(default=600, gt=0)
    """Time that a session lasts after its server was killed, for the next server to take it over."""
    max_sessions: Annotated[int | None, SESSIONS] = Field(default=None, ge=1)
    """Sessions that may be open at once (default: 10 on stdio, 50 on HTTP)."""
    max_sessions_per_principal: Annotated[int | None, SESSIONS] = Field(default=None, ge=1)
    """Sessions that one principal may have open at once (default: 10 where there are tokens)."""
    queue_timeout_s: Annotated[float, SESSIONS] = Field(default=30.0, ge=0, allow_inf_nan=False)
    """Seconds that a new session waits for a place when there are as many as there may be; 0 refuses it at once."""
    pool: Annotated[int, SESSIONS] = Field(default=0, ge=0, le=100)
    """Sandboxes to start ahead, so that sessions open at once."""
    keep_sessions: Annotated[bool, SESSIONS] = False
    """Leave sessions running when the server ends, until their --session-ttl: for hosts that start a server for each call."""
    keep_setups: Annotated[ByteSize, SESSIONS] = Field(default=ByteSize(4 << 30), validate_default=True)
    """Disk for results of set-up commands, for later sessions of the same principal on the same repository; 0 keeps none."""
    transport: Annotated[Literal["stdio", "http", "sse"], CONNECTION] = "stdio"
    """Way in which clients connect: `stdio`, `http` (streamable HTTP at /mcp, the older SSE at /sse), or `sse` alone."""
    host: Annotated[str, CONNECTION] = "127.0.0.1"
    """Address to listen on; any but a loopback address needs --token-file or --oauth-issuer."""
    port: Annotated[int, CONNECTION] = Field(default=8717, ge=0, le=65535)
    """Port to listen on; 0 takes a free one. The URL is printed to stderr."""
    token_file: Annotated[Path | None, CONNECTION] = None
    """Bearer tokens, one `principal token` a line. A session can only be reached by its principal."""
    oauth_issuer: Annotated[str | None, CONNECTION] = None
    """URL of an OAuth issuer whose tokens (signed JWTs) are accepted, too; needs --oauth-resource and `pdbox[oauth]`."""
    oauth_resource: Annotated[str | None, CONNECTION] = None
    """URL of this server for its clients, e.g. https://pdbox.example/mcp: the audience that tokens must name."""
    oauth_scope: Annotated[list[str], CONNECTION] = []
    """Scope that tokens of the issuer must have; repeatable."""
    allowed_host: Annotated[list[str], CONNECTION] = []
    """Name by which clients may address the server besides loopback and --host; repeatable."""
    allowed_origin: Annotated[list[str], CONNECTION] = []
    """Web origin whose pages may be clients, e.g. https://app.example; repeatable."""
    profile: Annotated[str, TOOLS] = "debug"
    """Tools for clients: `debug` (all), `rewrite` (no debugger), `debug_5` (the debugger after 5 rewrites that did not fix the
    tests; any number), or a list such as eval,pdb. Over HTTP a client may choose: ?profile=rewrite."""
    tools_from: Annotated[list[Path], TOOLS] = []
    """Python file with a tool of your own; repeatable. Those of installed packages are found by their entry points."""
    finish: Annotated[bool, TOOLS] = False
    """Add a tool `finish` for tasks: it hands the changes in and ends the session; the score is for the harness (POST /score)."""
    answers: Annotated[AnswerForm, ANSWERS] = "text"
    """Form of answers: `text`, `structured` data with output schemas, or `both`. Over HTTP a client may choose: ?answers=both."""
    answer_within_s: Annotated[float | None, ANSWERS] = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds after which each call answers at the latest. Over HTTP a client may choose: ?answer_within=4."""
    max_connections: Annotated[int, CONNECTION] = Field(default=1000, ge=4)
    """HTTP connections open at once; at most a third of the process's file descriptors."""
    max_connections_per_address: Annotated[int | None, CONNECTION] = Field(default=None, ge=2)
    """HTTP connections from one address; else nine tenths of all. A principal may have half as many requests in flight."""
    max_protocol_sessions: Annotated[int | None, CONNECTION] = Field(default=None, ge=1)
    """Idle MCP sessions (`initialize` over HTTP) of one principal; the oldest makes room. Else 100, or 1000 without tokens."""
    request_timeout_s: Annotated[float, CONNECTION] = Field(default=30.0, gt=0)
    """Seconds in which an HTTP request must arrive, else its connection is closed."""
    redact: Annotated[bool, ANSWERS] = True
    """Mask secrets in answers and logs: values of the environment, and keys of well-known vendors."""
    redact_names: Annotated[bool, ANSWERS] = False
    """Mask values by their names, too, such as `password = …` or 'token': '…' outside of source code."""
    record: Annotated[Path | None, LOG] = None
    """Folder for records of sessions: each call with its answer, as JSON Lines, for `pdbox replay`, `export` and `report`."""
    log_format: Annotated[Literal["text", "json"], LOG] = "text"
    """Form of the log on stderr: `text` for people, or `json`, one object a line."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LOG] = "warning"
    """Least severity that is logged; `info` gives a line for each call."""


def group_of(name: str) -> Group:
    """The heading below which the setting `name` is explained."""
    (group,) = (one for one in Settings.model_fields[name].metadata if isinstance(one, Group))
    return group


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
