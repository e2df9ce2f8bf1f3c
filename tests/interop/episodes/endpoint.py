"""An OpenAI-compatible endpoint of the scripted model: chat completions, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.interop.episodes.script import next_call


@contextmanager
def endpoint() -> Iterator[str]:
    """Serve it on a free port; gives its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = _message(asked["messages"])
        if asked.get("stream"):
            kind, data = "text/event-stream", "".join(_events(message))
        else:
            kind, data = "application/json", json.dumps(_body("chat.completion", "message", message))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _message(messages: list[dict[str, Any]]) -> dict[str, Any]:
    prompt = "\n".join(_text(one) for one in messages if one["role"] == "user")
    answers = [_text(one) for one in messages if one["role"] == "tool"]
    call = next_call(prompt, answers)
    if call is None:
        return {"role": "assistant", "content": "done"}
    name, arguments = call
    function = {"name": name, "arguments": json.dumps(arguments)}
    tool_call = {"index": 0, "id": f"call-{len(answers)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [tool_call]}


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _events(message: dict[str, Any]) -> Iterator[str]:
    yield f"data: {json.dumps(_body('chat.completion.chunk', 'delta', message))}\n\n"
    yield "data: [DONE]\n\n"


def _body(kind: str, part: str, message: dict[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, part: message, "finish_reason": reason}
    return {
        "id": "c",
        "object": kind,
        "created": 0,
        "model": "scripted",
        "choices": [choice],
        "usage": usage,
    }
