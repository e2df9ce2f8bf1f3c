"""What a hostile or broken guest can do to the host: end its own session, and no more."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import anyio
import pytest
from anyio.abc import ByteStream, SocketStream

from sandbox.backend import Sandbox
from sandbox.errors import (
    Conflict,
    NotFound,
    PdboxError,
    ProtocolViolation,
    SandboxError,
    SandboxLost,
    SessionExpired,
)
from sandbox.guest.protocol import PROTOCOL
from sandbox.guest.protocol.frames import pack
from sandbox.guest.supervisor.processes.test_run import fitting
from sandbox.session.session import Session
from sandbox.transport.connection import GuestConnection
from sandbox.transport.frames import FrameReader

pytestmark = pytest.mark.anyio
HELLO = {"event": "hello", "protocol": PROTOCOL, "python": "3.13.0", "workdir": "/workspace", "meta": None}


class Guest:
    """The other end, played by the test."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.frames = FrameReader(stream)

    async def say(self, header: dict[str, Any], payload: bytes = b"") -> None:
        await self.stream.send(pack(header, payload))

    async def hear(self) -> dict[str, Any]:
        frame = await self.frames.receive()
        assert frame is not None
        return frame[0]


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[GuestConnection, Guest]]:
    async with anyio.create_task_group() as tasks:
        mine, its = await pair()
        guest = Guest(its)
        await guest.say(HELLO)
        async with its:
            with anyio.fail_after(60):
                yield await GuestConnection.open(mine, tasks), guest
            tasks.cancel_scope.cancel()


async def pair() -> tuple[SocketStream, SocketStream]:
    one, two = socket.socketpair()
    return await SocketStream.from_socket(one), await SocketStream.from_socket(two)


async def test_a_session_that_ended_while_it_was_connected_again_is_lost() -> None:
    async with anyio.create_task_group() as ended:
        pass
    mine, its = await pair()
    async with its:
        with pytest.raises(SandboxLost, match="was closed meanwhile"):
            await GuestConnection.open(mine, ended)
        with pytest.raises(anyio.EndOfStream), anyio.fail_after(60):
            await its.receive()


async def test_replies_in_any_order_reach_their_own_request() -> None:
    async with connected() as (connection, guest):
        answers: dict[int, str] = {}

        async def ask(number: int) -> None:
            answers[number] = (await connection.request("echo", {"number": number}))[0]["text"]

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(ask, number)
            heard = [await guest.hear() for _ in range(20)]
            for request in reversed(heard):
                await guest.say({"id": request["id"], "ok": {"text": f"answer {request['args']['number']}"}})
        assert answers == {number: f"answer {number}" for number in range(20)}


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">II", 1 << 31, 0),
        struct.pack(">II", 10, 1 << 30) + b"{}",
        struct.pack(">II", 4, 0) + b"nope",
        struct.pack(">II", 2, 0) + b"[]",
        struct.pack(">II", 200_000, 0) + b"[" * 200_000,
        struct.pack(">II", 3, 0) + b"\xff\xfe\xfd",
    ],
)
async def test_a_broken_frame_costs_the_connection_and_says_so(data: bytes) -> None:
    async with connected() as (connection, guest):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guest.stream.send, data)
            with pytest.raises(ProtocolViolation):
                await connection.request("ping")
            tasks.cancel_scope.cancel()
        assert connection.lost is not None


class Rude(Sandbox):
    """A sandbox whose guest ends each connection after its first words."""

    backend: ClassVar[str] = "rude"

    def __init__(self, *words: bytes) -> None:
        self._words = list(words)

    async def connect(self) -> ByteStream:
        mine, its = await pair()
        await its.send(self._words.pop(0))
        await its.aclose()
        return mine

    async def assign(self, key: str, owner: str, source: str) -> None: ...

    async def aclose(self) -> None: ...


async def test_a_guest_that_greets_with_rubbish_at_a_later_connection_is_lost() -> None:
    async with anyio.create_task_group() as tasks:
        session = Session(Rude(pack(HELLO), struct.pack(">II", 2, 0) + b"[]"), "handle", tasks)
        with anyio.fail_after(60):
            assert isinstance(await session.lost(), ProtocolViolation)


@pytest.mark.parametrize("answer", [{}, {"ok": 5}, {"ok": None}, {"result": {}}, {"error": "no"}])
async def test_an_answer_that_is_neither_result_nor_error_is_a_violation(answer: dict[str, Any]) -> None:
    async with connected() as (connection, guest), anyio.create_task_group() as tasks:

        async def reply() -> None:
            await guest.say({"id": (await guest.hear())["id"], **answer})

        tasks.start_soon(reply)
        with pytest.raises(ProtocolViolation):
            await connection.request("ping")


@pytest.mark.parametrize(
    ("code", "kind"),
    [("not_found", NotFound), ("conflict", Conflict), ("cancelled", Conflict), ("?", SandboxError)],
)
async def test_a_refusal_arrives_as_its_class_with_its_hint(code: str, kind: type[PdboxError]) -> None:
    async with connected() as (connection, guest), anyio.create_task_group() as tasks:

        async def reply() -> None:
            await guest.say(
                {
                    "id": (await guest.hear())["id"],
                    "error": {"code": code, "message": "m" * 9000, "hint": "h"},
                }
            )

        tasks.start_soon(reply)
        with pytest.raises(kind) as caught:
            await connection.request("ping")
        assert len(caught.value.message) == 4000 and caught.value.hint == "h"


@pytest.mark.parametrize(
    ("code", "kind"),
    [("expired", SessionExpired), ("shutdown", SandboxLost), ("?", SandboxLost), (None, SandboxLost)],
)
async def test_the_code_of_its_end_decides_and_not_the_sentence(
    code: str | None, kind: type[PdboxError]
) -> None:
    async with connected() as (connection, guest):
        await guest.say({"event": "closing", "code": code, "reason": "it was idle too long"})
        await connection.ended.wait()
        assert connection.lost is not None and type(connection.lost) is kind
        assert connection.lost.message == "The sandbox closed itself: it was idle too long."


async def test_forged_ids_and_unknown_events_are_passed_over() -> None:
    async with connected() as (connection, guest), anyio.create_task_group() as tasks:

        async def reply() -> None:
            request = await guest.hear()
            for noise in (
                {"id": 999, "ok": {}},
                {"id": "1", "ok": {}},
                {"event": "x"},
                {"id": None},
                {"id": True, "progress": 1},
            ):
                await guest.say(noise)
            await guest.say({"id": request["id"], "ok": {"real": True}})

        tasks.start_soon(reply)
        assert (await connection.request("ping"))[0] == {"real": True}


async def test_the_end_of_the_stream_fails_what_was_asked_and_what_comes() -> None:
    async with connected() as (connection, guest), anyio.create_task_group() as tasks:
        tasks.start_soon(guest.stream.aclose)
        for _ in range(2):
            with pytest.raises(SandboxLost):
                await connection.request("ping")


async def test_a_cancelled_request_is_cancelled_in_the_sandbox() -> None:
    async with connected() as (connection, guest):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.request, "exec", {"command": "sleep 100"})
            request = await guest.hear()
            tasks.cancel_scope.cancel()
        cancel = await guest.hear()
        assert (cancel["op"], cancel["args"]) == ("cancel", {"id": request["id"]})


async def test_another_protocol_version_is_refused() -> None:
    async with anyio.create_task_group() as tasks:
        mine, its = await pair()
        async with its:
            await its.send(pack({**HELLO, "protocol": 7}))
            with pytest.raises(ProtocolViolation, match="protocol 7"):
                await GuestConnection.open(mine, tasks, timeout_s=60)


async def test_a_guest_that_says_nothing_is_given_up() -> None:
    async with anyio.create_task_group() as tasks:
        mine, its = await pair()
        with pytest.raises(SandboxLost, match=r"did not answer within 0\.05 s"):
            await GuestConnection.open(mine, tasks, timeout_s=0.05)
        await its.aclose()


def test_headers_are_json_whatever_the_text() -> None:
    frame = pack({"text": "€\ud800\0"}, b"\xff")
    size = struct.unpack(">II", frame[:8])
    assert json.loads(frame[8 : 8 + size[0]]) == {"text": "€\ud800\0"} and frame[-1:] == b"\xff"


TINY = struct.pack(">II", 2, 0) + b"{}"
LARGE = pack({"id": 999, "ok": {"list": [0] * 90_000}})


@pytest.mark.parametrize(
    "frame", [TINY, LARGE, TINY[:4] + struct.pack(">I", 8 << 20) + b"{}" + b"\0" * (8 << 20)]
)
async def test_a_flood_of_frames_without_a_request_ends_the_connection(frame: bytes) -> None:
    async with connected() as (connection, guest), anyio.create_task_group() as tasks:

        async def flood() -> None:
            with pytest.raises(anyio.BrokenResourceError):
                while True:
                    await guest.stream.send(frame * max(1, 60_000 // len(frame)))

        tasks.start_soon(flood)
        with pytest.raises(ProtocolViolation, match="floods this server"):
            await connection.request("ping")


@pytest.mark.parametrize(
    "value", [[0] * 400_000, [{"a": "\ud800"}] * 120_000, dict.fromkeys(map(str, range(300_000)), 0)]
)
async def test_a_frame_that_takes_long_to_decode_is_refused_before_it_is(value: Any) -> None:
    async with connected() as (connection, guest):
        await guest.say({"id": 999, "ok": {"value": value}})
        with pytest.raises(ProtocolViolation, match="more than 200,000 values"):
            await connection.request("ping")


@pytest.mark.parametrize("is_failed", [False, True])
async def test_the_results_of_as_many_tests_as_a_guest_tells_at_once_are_decoded(is_failed: bool) -> None:
    frames = [{"path": "a.py", "line": 1, "function": "f", "text": "x"}] * 3
    each = {
        "id": "t::1",
        "outcome": "failed",
        "duration_s": 0.0,
        "message": "",
        "frames": is_failed and frames,
    }
    tests = fitting([each] * 60_000)
    async with connected() as (connection, guest), anyio.create_task_group() as tasks:

        async def reply() -> None:
            await guest.say({"id": (await guest.hear())["id"], "ok": {"tests": tests}})

        tasks.start_soon(reply)
        assert (await connection.request("ping"))[0] == {"tests": tests}


async def test_text_of_four_megabytes_is_one_value() -> None:
    text = 'a, [b], {"c": 1}, \\\n' * 150_000
    async with connected() as (connection, guest), anyio.create_task_group() as tasks:

        async def reply() -> None:
            await guest.say({"id": (await guest.hear())["id"], "ok": {"text": text}})

        tasks.start_soon(reply)
        assert (await connection.request("ping"))[0] == {"text": text}


async def test_late_answers_are_no_flood() -> None:
    async with connected() as (connection, guest):
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.request, "files.diff")
                number = (await guest.hear())["id"]
                tasks.cancel_scope.cancel()
            assert (await guest.hear())["op"] == "cancel"
            for _ in range(1000):
                await guest.say({"id": number, "progress": {}})
            await guest.say({"id": number, "ok": {}})
        async with anyio.create_task_group() as tasks:

            async def reply() -> None:
                await guest.say({"id": (await guest.hear())["id"], "ok": {}})

            tasks.start_soon(reply)
            assert await connection.request("ping") == ({}, b"")


async def test_others_have_their_turns_while_many_frames_of_a_request_are_read() -> None:
    async with connected() as (connection, guest):
        turns = told = 0

        def count(header: dict[str, Any], payload: bytes) -> None:
            nonlocal told
            told += 1

        async with anyio.create_task_group() as tasks:

            async def answer() -> None:
                number = (await guest.hear())["id"]
                progress = pack({"id": number, "progress": {}})
                await guest.stream.send(progress * 3000 + pack({"id": number, "ok": {}}))

            async def other() -> None:
                nonlocal turns
                while True:
                    await anyio.lowlevel.checkpoint()
                    turns += told > 0

            tasks.start_soon(answer)
            tasks.start_soon(other)
            await connection.request("files.diff", on_progress=count)
            tasks.cancel_scope.cancel()
        assert told == 3000 and turns >= 30


@pytest.mark.parametrize(
    "text",
    [b"OCI runtime exec failed: exec failed: unable to start\r\n", b"cannot exec in a stopped container\n"],
)
async def test_a_message_of_the_engine_is_no_frame_and_goes_to_the_log_only(text: bytes) -> None:
    async with anyio.create_task_group() as tasks:
        mine, its = await pair()
        await its.send(text)
        await its.aclose()
        with pytest.raises(SandboxLost, match="The engine opened no way into the sandbox") as caught:
            await GuestConnection.open(mine, tasks, timeout_s=60)
        assert caught.value.details == text.decode().strip() and text.decode()[:3] not in str(caught.value)


async def test_a_guest_that_greets_twice_is_refused() -> None:
    async with connected() as (connection, guest):
        await guest.say(HELLO)
        await connection.ended.wait()
        assert isinstance(connection.lost, ProtocolViolation)
