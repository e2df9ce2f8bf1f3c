"""Logs to stderr, and spans."""

from __future__ import annotations

import http.server
import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mcp_server.observability.logs import LIKE_LINES, JsonLines, LimitedHandler, Lines, record_call
from mcp_server.redaction.redactor import Redactor
from sandbox.session.session import session_key
from tests.bubblewrap import UNSAFE
from tests.e2e.served import OVER_HTTP
from tests.e2e.served import serving as serving_http
from tests.mcp_server.conftest import Connect

HOME = Path(__file__).parents[3]
SECRET = "p4ssw0rdReal9"


class Server:
    """`pdbox serve` on the process backend, spoken to by hand; its stderr goes to a file."""

    def __init__(self, folder: Path, *flags: str, **environ: str) -> None:
        (folder / "repo").mkdir(exist_ok=True)
        (folder / "repo" / "app.py").write_text("x = 1\nprint('loud')\n")
        self.stderr = folder / "stderr"
        command = [
            sys.executable,
            "-m",
            "pdbox",
            "serve",
            "--repo",
            str(folder / "repo"),
            "--backend",
            "process",
            "--answers",
            "both",
        ]
        self.number = 0
        self.lines: list[str] = []
        with self.stderr.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*command, "--unsafe-no-isolation", "--entrypoint", "python app.py", *flags],
                cwd=HOME,
                env={**os.environ, **environ},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        version = {"name": "t", "version": "1"}
        self.request("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=version)

    def request(self, method: str, **params: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            assert line, self.stderr.read_text()
            self.lines.append(line)
            if json.loads(line).get("id") == self.number:
                return json.loads(line)["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.request("tools/call", name=tool, arguments=arguments)

    def end(self) -> list[str]:
        """The lines of stderr, once it has ended; those of stdout are in `lines`."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.lines += self.process.stdout.read().splitlines()
        self.process.stdout.close()
        assert self.process.wait(timeout=120) == 0
        return self.stderr.read_text().splitlines()


@contextmanager
def serving(folder: Path, *flags: str, **environ: str) -> Generator[Server]:
    server = Server(folder, *flags, **environ)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def test_stdout_has_only_protocol_and_stderr_only_json(tmp_path: Path) -> None:
    flags = ("--log-format", "json", "--log-level", "debug", "--env", f"DB_PASSWORD={SECRET}")
    # Warnings that Python itself prints, while it starts and later, end in the log as well.
    with serving(tmp_path, *flags, PYTHONWARNINGS="default") as server:
        opened = server.call("start_session")["structuredContent"]
        handle = opened["session_id"]
        server.call("pdb", command="b 2\nc\nn", session_id=handle)
        server.call(
            "bash", command="echo out; echo err >&2; echo $DB_PASSWORD; echo '\nnot json'", session_id=handle
        )
        assert server.call("view", path=f"nothing\nlike {SECRET}", session_id=handle)["isError"]
        assert server.call("no_such\ntool")["isError"]
        stderr = server.end()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in server.lines)
    lines = [json.loads(line) for line in stderr]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert not any(handle in line or SECRET in line for line in stderr)
    ends = [line for line in lines if "duration_ms" in line]
    assert [(line["tool"], line["outcome"]) for line in ends] == [
        ("start_session", "ok"),
        ("pdb", "ok"),
        ("bash", "ok"),
        ("view", "refused"),
        ("unknown tool", "refused"),
    ]
    assert {line["level"] for line in ends} == {"info"}
    assert [line["request_id"] for line in ends] == ["2", "3", "4", "5", "6"]
    assert {line.get("session") for line in ends[:4]} == {session_key(handle)[:12]}
    assert len({line["principal"] for line in ends}) == 1
    (refused,) = [
        line
        for line in lines
        if "PathRefused" in line["message"] or "NotFound: 'No such file" in line["message"]
    ]
    assert refused["tool"] == "view" and "⟦redacted" in refused["message"]


def test_text_has_one_line_a_call_and_nothing_at_the_default_level(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-level", "info") as server:
        server.call("listdir")
        (line,) = [line for line in server.end() if "mcp_server.observability.logs:" in line]
    assert (
        " INFO mcp_server.observability.logs: listdir: ok after " in line
        and "[session=" in line
        and "request_id=2" in line
    )
    with serving(tmp_path) as server:
        server.call("listdir")
        assert server.end() == []


def record(message: str, *arguments: object, exc_info: Any = None) -> logging.LogRecord:
    return logging.LogRecord("pdbox.test", logging.ERROR, "f.py", 1, message, arguments, exc_info)


def test_what_a_sandbox_says_steers_no_terminal_and_imitates_no_line() -> None:
    line = Lines(Redactor()).format(record("%s", "\x1b[2J\x9b31m\x07 \u202e a\u2028b\r\nc"))
    assert line.endswith(r": \x1b[2J\x9b31m\x07 \u202e a\u2028b\r\nc")


def test_exception_is_a_field_and_its_secrets_are_masked() -> None:
    redactor = Redactor()
    redactor.learn({"API_KEY": SECRET})
    try:
        raise RuntimeError(f"with {SECRET}\nand more")
    except RuntimeError:
        line = JsonLines(redactor).format(record("incident %s", "x", exc_info=sys.exc_info()))
        text = Lines(redactor).format(record("incident %s", "x", exc_info=sys.exc_info()))
    data = json.loads(line)
    assert "\n" not in line and SECRET not in line + text
    assert data["message"] == "incident x" and data["level"] == "error"
    assert (
        data["exception"].startswith("Traceback")
        and "with ⟦redacted $API_KEY, 13 chars⟧\nand more" in data["exception"]
    )


def test_message_cannot_feign_another_line() -> None:
    text = Lines(Redactor()).format(record("what the sandbox said: %s", "x\n2026-01-01 INFO all is well\r"))
    assert len(text.splitlines()) == 1 and "x\\n2026" in text


def test_message_whose_arguments_do_not_fit_is_logged_all_the_same() -> None:
    assert (
        json.loads(JsonLines(Redactor()).format(record("%d of them", "some")))["message"]
        == "%d of them ('some',)"
    )


def test_line_in_a_call_has_its_fields_and_none_after_it() -> None:
    formatter = JsonLines(Redactor())
    with record_call("pdb", "7", "a" * 32, Redactor()):
        inside = json.loads(formatter.format(record("x")))
    after = json.loads(formatter.format(record("x")))
    assert (inside["tool"], inside["request_id"], inside["principal"]) == ("pdb", "7", "a" * 12)
    assert not {"tool", "request_id", "principal"} & after.keys()


# --- spans


EXPORTED = InMemorySpanExporter()


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What is exported. The provider of a process can be set once."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(EXPORTED))
        trace.set_tracer_provider(provider)
    EXPORTED.clear()
    yield EXPORTED
    EXPORTED.clear()


def of_tools(spans: InMemorySpanExporter) -> list[ReadableSpan]:
    found = [span for span in spans.get_finished_spans() if span.kind is trace.SpanKind.SERVER]
    return [span for span in found if span.name.startswith("tools/call")]


@pytest.mark.anyio
async def test_span_of_a_call_names_tool_session_place_and_outcome(
    connect: Connect, spans: InMemorySpanExporter
) -> None:
    async with connect() as client:
        opened = (await client.call_tool("start_session", {})).structured_content or {}
        await client.call_tool("listdir", {})
        assert (await client.call_tool("view", {"path": "../x"})).is_error
        (session,) = ((await client.call_tool("list_sessions", {})).structured_content or {})["sessions"]
    opening, listing, refused, _ = of_tools(spans)
    key = session_key(opened["session_id"])[:12]
    for span, tool in ((opening, "start_session"), (listing, "listdir")):
        attributes = dict(span.attributes or {})
        assert span.name == f"tools/call {tool}" and attributes["gen_ai.tool.name"] == tool
        assert attributes["gen_ai.operation.name"] == "execute_tool"
        assert attributes["mcp.method.name"] == "tools/call" and attributes["network.transport"] == "pipe"
        assert attributes["pdbox.session"] == key and attributes["pdbox.outcome"] == "ok"
        assert (
            attributes["pdbox.sandbox.backend"] == "process"
            and attributes["pdbox.sandbox.place"] == session["place"]
        )
    assert (refused.attributes or {})["pdbox.outcome"] == "refused"
    assert (refused.attributes or {})["error.type"] == "tool_error"
    assert not refused.status.is_ok
    assert opened["session_id"] not in "".join(span.to_json() for span in spans.get_finished_spans())


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes what is sent to it."""

    received: list[bytes]

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        pass


def test_server_sends_its_spans_to_the_collector_of_the_environment(tmp_path: Path) -> None:
    received: list[bytes] = []
    handler = type("Handler", (Collector,), {"received": received})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{collector.server_address[1]}"
        with serving(
            tmp_path, "--log-format", "json", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, no_proxy="*"
        ) as server:
            server.call("listdir")
            stderr = server.end()  # what was not sent before is sent at the end
        collector.shutdown()
    assert stderr == []
    requests = [ExportTraceServiceRequest.FromString(body) for body in received]
    resources = [resource for request in requests for resource in request.resource_spans]
    names = {span.name for resource in resources for scope in resource.scope_spans for span in scope.spans}
    assert "tools/call listdir" in names
    (service,) = {
        one.value.string_value
        for r in resources
        for one in r.resource.attributes
        if one.key == "service.name"
    }
    assert service == "pdbox"


@pytest.mark.anyio
async def test_span_of_a_call_over_http_says_so(tmp_path: Path) -> None:
    received: list[bytes] = []
    handler = type("Handler", (Collector,), {"received": received})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_address[1]}",
            "no_proxy": "*",
        }
        with serving_http("--root", str(tmp_path), *UNSAFE, **environ) as server:
            async with server.client(OVER_HTTP[0]) as client:
                await client.call_tool("list_sessions", {})
            await server.end()
        collector.shutdown()
    requests = [ExportTraceServiceRequest.FromString(body) for body in received]
    scopes = [
        scope for request in requests for resource in request.resource_spans for scope in resource.scope_spans
    ]
    (span,) = [one for scope in scopes for one in scope.spans if one.name == "tools/call list_sessions"]
    attributes = {one.key: one.value.string_value for one in span.attributes}
    assert (attributes["network.transport"], attributes["network.protocol.name"]) == ("tcp", "http")


def test_server_without_a_collector_imports_no_opentelemetry_sdk(tmp_path: Path) -> None:
    with serving(tmp_path, PYTHONPROFILEIMPORTTIME="1") as server:
        server.call("listdir")
        imported = "\n".join(server.end())
    assert "opentelemetry.trace" in imported and "opentelemetry.sdk" not in imported


def test_a_fault_that_repeats_has_a_limited_number_of_lines_each_minute() -> None:
    stream = io.StringIO()
    handler = LimitedHandler(stream)
    for second in (0, 59, 60):
        for number in range(500):
            record = logging.LogRecord("a", logging.ERROR, "", 0, "no descriptor for %d", (number,), None)
            record.created = 1e9 + second
            handler.emit(record)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2 * LIKE_LINES
    assert lines[0] == lines[LIKE_LINES] == "no descriptor for 0"
    assert lines[LIKE_LINES - 1] == "no descriptor for 99 (further lines like this are left out for a minute)"


def test_different_faults_and_calls_are_all_logged() -> None:
    stream = io.StringIO()
    handler = LimitedHandler(stream)
    for number in range(2 * LIKE_LINES):
        for level, text, args in (
            (logging.INFO, "call", ()),
            (logging.ERROR, f"fault {number}", ()),
            (logging.WARNING, "%s", (f"said {number}",)),
        ):
            handler.emit(logging.LogRecord("a", level, "", 0, text, args, None))
    assert len(stream.getvalue().splitlines()) == 6 * LIKE_LINES


@pytest.mark.anyio
async def test_a_call_that_goes_on_after_its_answer_is_not_called_cancelled(
    connect: Connect, spans: InMemorySpanExporter
) -> None:
    async with connect(answer_within_s=60) as client:
        await client.call_tool("start_session", {})
    async with connect(answer_within_s=0.1) as client:
        assert (await client.call_tool("bash", {"command": "sleep 600"})).content
        assert (await client.call_tool("wait", {"interrupt": True})).content
    outcomes = [(span.attributes or {})["pdbox.outcome"] for span in of_tools(spans)]
    assert outcomes[:2] == ["ok", "running"]
