"""Typed client for a Docker engine. Its calls block: the backend runs them in threads."""

from __future__ import annotations

import contextlib
import importlib
import ssl
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from sandbox.backend import Progress
from sandbox.docker.attach import Endpoint
from sandbox.docker.endpoint import Location, knock, locate
from sandbox.docker.sdk import errors, refusal, sdk
from sandbox.errors import BackendUnavailable, SandboxLost

MINIMUM_API = (1, 40)
ARCHIVE_PIECE = 1 << 20
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Version:
    """Version and abilities of an engine."""

    name: str
    number: str
    api: str
    rootless: bool
    cgroup_driver: str
    limits: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Limits (`memory`, `pids`, `cpu`), and True for those that it can enforce."""
    kernel: str = ""
    """Release of the kernel that it runs on."""
    runtimes: Sequence[str] = ()


@dataclass(frozen=True)
class Image:
    """An image that is present."""

    reference: str
    env: Mapping[str, str]
    labels: Mapping[str, str]
    id: str = ""


@dataclass(frozen=True)
class Container:
    """A container that exists."""

    id: str
    image: str
    created: float
    labels: Mapping[str, str]
    running: bool = True
    networks: Sequence[str] = ()
    """Networks that it is connected to, except `none`."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    state: str = ""
    """`running`, `paused`, `exited` and the like."""
    workdir: str = ""


class Engine:
    """A connection to one engine."""

    def __init__(self, client: Any, location: Location) -> None:
        self._client = client
        self.location = location

    @classmethod
    def connect(cls, environ: Mapping[str, str], host: str | None = None) -> Engine:
        """Connect to the engine that `locate` finds.

        Raises:
            BackendUnavailable: the hint says how to fix it.
        """
        location = locate(environ, host)
        docker = sdk()
        with errors(where=f" at {location.url} ({location.source})"):
            if location.url.startswith("unix://"):
                # The SDK leaks a socket if nothing listens on it.
                knock(Path(location.url.removeprefix("unix://")))
            client = docker.APIClient(
                base_url=location.url,
                version="auto",
                timeout=_TIMEOUT_S,
                tls=location.tls or False,
                # Uses the user's ssh command: keys, jump hosts and agents work as they do for `docker`.
                use_ssh_client=True,
                max_pool_size=64,
            )
            api = str(client.api_version)
        if tuple(int(part) for part in api.split(".")) < MINIMUM_API:
            client.close()
            raise BackendUnavailable(
                f"The Docker engine's API is {api}, too old.", "Docker 19.03 (API 1.40) or newer is needed."
            )
        return cls(client, location)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    @property
    def api(self) -> str:
        """Version of the API in use, such as `1.41`."""
        return str(self._client.api_version)

    def endpoint(self) -> Endpoint:
        """Return the address of the engine for raw streams."""
        url, tls = self.location.url, self.location.tls
        return Endpoint(url, _ssl_context(tls) if tls else None, lambda: _named_pipe(url))

    def version(self) -> Version:
        """Ask the engine for its version and abilities."""
        with errors():
            info = cast(dict[str, Any], self._client.info())
        options = [str(option) for option in info.get("SecurityOptions") or ()]
        return Version(
            name="Podman" if "podman" in str(info.get("ServerVersion", "")).lower() else "Docker",
            number=str(info.get("ServerVersion", "?")),
            api=self.api,
            rootless=any("rootless" in option for option in options),
            cgroup_driver=str(info.get("CgroupDriver", "")),
            limits={
                "memory": bool(info.get("MemoryLimit")),
                "pids": bool(info.get("PidsLimit")),
                "cpu": bool(info.get("CpuCfsQuota")),
            },
            kernel=str(info.get("KernelVersion", "")),
            runtimes=sorted(info.get("Runtimes") or ()),
        )

    def image(self, reference: str) -> Image | None:
        """Return the image, or None if it is not present."""
        docker = sdk()
        with errors():
            try:
                data = cast(dict[str, Any], self._client.inspect_image(reference))
            except docker.errors.ImageNotFound:
                return None
        config = cast(dict[str, Any], data.get("Config") or {})
        return Image(
            reference,
            env=_variables(config),
            labels=config.get("Labels") or {},
            id=str(data.get("Id", "")),
        )

    def tags(self, repository: str) -> Mapping[str, str]:
        """Return the present tags of `repository`, with the ids of their images."""
        with errors():
            images = cast(list[dict[str, Any]], self._client.images(name=repository))
        named = [(str(name), str(image["Id"])) for image in images for name in image.get("RepoTags") or ()]
        start = f"{repository}:"
        return {name.removeprefix(start): number for name, number in sorted(named) if name.startswith(start)}

    def pull(self, reference: str, progress: Progress) -> None:
        """Pull an image from its registry.

        Raises:
            BackendUnavailable: there is no such image, or the registry is not reachable.
        """
        with errors(f"Pulling {reference} failed"):
            lines = self._client.pull(reference, stream=True, decode=True)
            _follow(lines, progress, f"Pulling {reference} failed")

    def build(
        self,
        context: BinaryIO,
        tag: str,
        arguments: Mapping[str, str],
        labels: Mapping[str, str],
        progress: Progress,
    ) -> None:
        """Build an image from a tar stream with a Dockerfile in it.

        Raises:
            BackendUnavailable: the build failed, with its last line.
        """
        with errors(f"Building {tag} failed"):
            lines = self._client.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs=dict(arguments),
                rm=True,
                forcerm=True,
                decode=True,
                labels=dict(labels),
            )
            _follow(lines, progress, f"Building {tag} failed")

    def import_root(self, tar: BinaryIO, repository: str, tag: str, changes: Sequence[str]) -> None:
        """Create an image from the tar stream of a root file system."""
        with errors(f"Importing {repository}:{tag} failed"):
            # `import_image` has a time limit on the whole upload.
            answer = self._client.import_image_from_data(
                iter(lambda: tar.read(1 << 20), b""), repository=repository, tag=tag, changes=list(changes)
            )
        if '"error"' in str(answer):
            raise BackendUnavailable(f"Importing {repository}:{tag} failed.", details=str(answer)[-2000:])

    def create(self, name: str | None, config: Mapping[str, Any], host: Mapping[str, Any]) -> str:
        """Create a container; `config` and `host` as `create_container` and `create_host_config` take them."""
        try:
            with errors("The container was not created"):
                answer = self._client.create_container(
                    name=name, host_config=self._client.create_host_config(**host), **config
                )
        except BackendUnavailable as exc:
            self._check_runtime(host.get("runtime"), exc)
            raise
        return str(answer["Id"])

    def _check_runtime(self, runtime: str | None, cause: BackendUnavailable) -> None:
        """Explain the refusal of a container by a runtime that the engine does not list.

        Only afterwards: names such as `io.containerd.kata.v2` are listed nowhere.
        """
        if runtime and runtime not in (listed := self.version().runtimes):
            raise BackendUnavailable(
                f"The engine has no runtime {runtime!r}; it lists {', '.join(listed)}.",
                "--runtime is the operator's to correct, or `runtimes` of the engine's daemon.json.",
                cause.details,
            ) from cause

    def folder(self, container: str, folder: PurePosixPath) -> Generator[bytes] | None:
        """Open the content of a container's folder as a tar stream; None if there is no such folder."""
        docker = sdk()
        with errors("The folder was not read"):
            try:
                # With a dot the engine follows links, and names are relative to the folder.
                pieces, _ = self._client.get_archive(container, f"{folder}/.", chunk_size=ARCHIVE_PIECE)
            except docker.errors.APIError as exc:
                if exc.status_code not in (400, 404):
                    raise
                return None
        return _join(cast(Iterator[bytes], pieces))

    def start(self, container: str) -> None:
        """Start a container that was created."""
        with errors("The container did not start"):
            self._client.start(container)

    def remove(self, container: str) -> None:
        """Kill and remove a container if it exists. Returns when it is gone."""
        docker = sdk()
        with errors():
            try:
                self._client.remove_container(container, force=True, v=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError as exc:
                if exc.status_code != 409:
                    raise
                # It ended by itself and is already being removed.
                with contextlib.suppress(docker.errors.NotFound):
                    self._client.wait(container, timeout=2, condition="removed")

    def container(self, identifier: str) -> Container | None:
        """Return the container, or None if it does not exist."""
        docker = sdk()
        with errors():
            try:
                data = cast(dict[str, Any], self._client.inspect_container(identifier))
            except docker.errors.NotFound:
                return None
        config = cast(dict[str, Any], data["Config"])
        networks = cast(dict[str, Any], data["NetworkSettings"].get("Networks") or {})
        return Container(
            str(data["Id"]),
            str(config.get("Image", "")),
            0.0,
            config.get("Labels") or {},
            bool(data["State"].get("Running")),
            [name for name in networks if name != "none"],
            _variables(config),
            str(data.get("Name", "")).lstrip("/"),
            str(data["State"].get("Status", "")),
            str(config.get("WorkingDir", "")),
        )

    def rename(self, container: str, name: str) -> None:
        """Give a container another name.

        Raises:
            SandboxLost: it is gone.
        """
        with errors("The container was not renamed"):
            self._client.rename(container, name)

    def disconnect(self, identifier: str) -> None:
        """Disconnect a running container from all its networks.

        Raises:
            SandboxLost: it is gone.
        """
        container = self.container(identifier)
        if container is None:
            raise SandboxLost("The sandbox's container has gone.")
        with errors("The network was not taken away"):
            for network in container.networks:
                self._client.disconnect_container_from_network(identifier, network, force=True)

    def containers(
        self, labels: Mapping[str, str], states: Sequence[str] = ("running", "paused")
    ) -> Sequence[Container]:
        """List containers with all these labels, in one of these states."""
        # The low-level call: the high-level one inspects each container and fails if one vanishes meanwhile.
        wanted = [f"{key}={value}" for key, value in labels.items()]
        with errors():
            rows = cast(
                list[dict[str, Any]],
                self._client.containers(all=True, filters={"label": wanted, "status": list(states)}),
            )
        return [_parse_row(row) for row in rows]

    def written(self, container: str) -> int:
        """Bytes that a container has written into its own layer; 0 if it is gone."""
        with errors():
            rows = cast(
                list[dict[str, Any]],
                self._client.containers(all=True, size=True, filters={"id": container}),
            )
        return sum(int(row.get("SizeRw") or 0) for row in rows)

    def exec_create(
        self, container: str, argv: Sequence[str], user: str = "", env: Mapping[str, str] | None = None
    ) -> str:
        """Create an exec in a running container, as its own user or `user`, with `env` besides its environment.

        Returns the id for opening its stream.

        Raises:
            SandboxLost: the container is gone.
        """
        docker = sdk()
        with errors("No way into the container"):
            try:
                answer = self._client.exec_create(
                    container,
                    list(argv),
                    stdin=True,
                    stdout=True,
                    stderr=True,
                    user=user,
                    environment=dict(env or {}),
                )
            except docker.errors.APIError as exc:
                if exc.status_code not in (404, 409):
                    raise
                raise SandboxLost(
                    "The sandbox's container has gone.", "start_session opens a new one."
                ) from exc
        return str(answer["Id"])


def _join(pieces: Iterator[bytes]) -> Generator[bytes]:
    """Merge pieces to about `ARCHIVE_PIECE` bytes.

    An engine sends 32 KiB at a time, and each piece costs time.
    """
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        if len(buffer) >= ARCHIVE_PIECE:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


def _parse_row(row: dict[str, Any]) -> Container:
    (name, *_) = [str(name) for name in row.get("Names") or ()] or [""]
    return Container(
        str(row["Id"]),
        str(row.get("Image", "")),
        float(row["Created"]),
        row.get("Labels") or {},
        name=name.lstrip("/"),
    )


def _variables(config: Mapping[str, Any]) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in config.get("Env") or ())


def _ssl_context(tls: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca_cert or None)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert:
        context.load_cert_chain(*tls.cert)
    return context


def _named_pipe(url: str) -> Any:
    pipe = importlib.import_module("docker.transport").NpipeSocket()
    pipe.connect(url.removeprefix("npipe://"))
    return pipe


def _follow(lines: Iterator[dict[str, Any]], progress: Progress, failed: str) -> None:
    """Report the status lines of a build or a pull, each once."""
    last = ""
    for line in lines:
        if "error" in line:
            raise refusal(failed, 0, str(line["error"]))
        text = str(line.get("stream") or line.get("status") or "").strip()
        if text and text != last and "progress" not in line:
            last = text
            progress(text.splitlines()[-1][:200])
