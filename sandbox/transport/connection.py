"""Requests to the guest and their replies, over one stream."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Self, cast

import anyio
from anyio.abc import ByteStream, TaskGroup
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sandbox.errors import (
    BY_CODE,
    CommandTimeout,
    InvalidArgument,
    PdboxError,
    ProtocolViolation,
    SandboxError,
    SandboxLost,
    SessionExpired,
)
from sandbox.guest.protocol import PROTOCOL, codes
from sandbox.guest.protocol.frames import pack, pack_head
from sandbox.transport.allowance import Allowance
from sandbox.transport.frames import FrameReader, Header
from sandbox.transport.socket_stream import Immediate

SLACK_S = 15.0
"""Extra time to wait for an answer, past the guest's own deadline."""
SEND_S = 30.0
"""Time limit for sending a frame."""

PING_S = 5.0
"""Time limit for the answer to a ping, on a loaded machine."""

UNASKED = (512, 100)
"""Burst, and rate a second, of frames that belong to no request; a larger flood ends the session.

Frames are counted by the time that reading them takes: one for each, one for each 4 KiB of a header and each 64 KiB of
a payload.
"""
ASKED = (4096, 1000)
"""The same of frames that belong to a request. More are read later."""
_HEADER_UNIT, _PAYLOAD_UNIT = 4096, 1 << 16
_TURN = 64
"""Number of frames that are read before other sessions have a turn."""
_MAX_ABANDONED = 1000
_JOINED = 1 << 16
"""Most bytes of a payload that is sent together with the head of its frame."""

OnProgress = Callable[[Header, bytes], None]
"""Callback for frames that precede an answer: progress, or a part of the answer."""
log = logging.getLogger(__name__)


class Hello(BaseModel):
    """Greeting of the guest, its first frame."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    protocol: int
    python: Annotated[str, Field(max_length=200)] = ""
    workdir: Annotated[str, Field(max_length=4096, pattern="^/")] = "/workspace"
    meta: dict[str, Any] | None = None


@dataclass
class _Pending:
    done: anyio.Event = field(default_factory=anyio.Event)
    header: Header = field(default_factory=dict[str, Any])
    payload: bytes = b""
    on_progress: OnProgress | None = None


class GuestConnection:
    """One stream to a guest: many requests in flight, each with its own reply."""

    hello: Hello

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._frames = FrameReader(stream)
        self._ids = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._abandoned: dict[int, None] = {}
        """Requests whose answer nobody waits for any more. It may still come."""
        self._unasked = Allowance(*UNASKED)
        self._asked = Allowance(*ASKED)
        self._sending = anyio.Lock(fast_acquire=True)
        self._greeted = anyio.Event()
        self._lost: PdboxError | None = None
        self.ended = anyio.Event()
        """Set when the connection can no longer be used."""

    @classmethod
    async def open(cls, stream: ByteStream, tasks: TaskGroup, timeout_s: float = 30.0) -> Self:
        """Start reading in `tasks` and wait for the guest's greeting.

        Raises:
            SandboxLost: no greeting, or the stream or the session ended.
            ProtocolViolation: another protocol version.
        """
        self = cls(stream)
        try:
            tasks.start_soon(self._read, name="guest connection")
        except RuntimeError as exc:  # the session, whose tasks they are, has ended meanwhile
            await self.aclose()
            raise _lost("The session was closed meanwhile.") from exc
        try:
            with anyio.move_on_after(timeout_s):
                await self._greeted.wait()
        except BaseException:
            await (
                self.aclose()
            )  # its reader may be cancelled before its first step, and then would not close it
            raise
        if not self._greeted.is_set():
            self._fail(SandboxLost(f"The sandbox did not answer within {timeout_s:g} s."))
        if self._lost is not None:
            await self.aclose()
            raise self._lost
        return self

    @property
    def lost(self) -> PdboxError | None:
        """Reason that the connection can no longer be used, or None."""
        return self._lost

    async def request(
        self,
        op: str,
        args: Header | None = None,
        payload: bytes = b"",
        *,
        timeout_s: float = 30.0,
        on_progress: OnProgress | None = None,
    ) -> tuple[Header, bytes]:
        """Send a request and return answer and payload. Cancelling it cancels the work in the sandbox.

        Raises:
            PdboxError: the guest refused; the class corresponds to its error code.
            InvalidArgument: the request does not fit into one frame.
            CommandTimeout: no answer within `timeout_s` and some slack.
            SandboxLost: the stream ended, or the guest no longer answers anything.
        """
        number, pending = next(self._ids), _Pending(on_progress=on_progress)
        try:
            head = pack_head({"id": number, "op": op, "args": args or {}}, len(payload))
        except ValueError as exc:
            raise InvalidArgument(f"That is too much for one request ({exc}).", "Give it in parts.") from exc
        self._pending[number] = pending
        try:
            await self._send(head, payload)
            # Not `fail_after`, which would double the cost of a request.
            with anyio.CancelScope(deadline=anyio.current_time() + timeout_s + SLACK_S) as scope:
                await pending.done.wait()
            if scope.cancelled_caught:
                await self._cancel(number)
                await self._check_alive()
                raise CommandTimeout(f"The sandbox did not answer `{op}` within {timeout_s + SLACK_S:g} s.")
        except anyio.get_cancelled_exc_class():
            await self._cancel(number)
            raise
        finally:
            self._forget(number)
        return self._answer(op, pending)

    async def tell(self, op: str) -> None:
        """Send `op` without waiting for an answer, if the guest is still there."""
        try:
            await self._send(pack({"id": 0, "op": op, "args": {}}))
        except SandboxLost as exc:
            log.debug("`%s` was not sent: %s", op, exc)

    async def aclose(self) -> None:
        """Close the stream. The sandbox goes on."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            await self._stream.aclose()

    def _answer(self, op: str, pending: _Pending) -> tuple[Header, bytes]:
        if not pending.header:
            raise self._lost or _lost("The connection to the sandbox ended.")
        error = pending.header.get("error")
        if isinstance(error, dict):
            raise _error_from_reply(op, cast(Header, error))
        ok = pending.header.get("ok")
        if not isinstance(ok, dict):
            raise ProtocolViolation(f"The sandbox answered `{op}` with neither a result nor an error.")
        return cast(Header, ok), pending.payload

    def _forget(self, number: int) -> None:
        if not self._pending.pop(number).done.is_set():
            self._abandoned[number] = None
            while len(self._abandoned) > _MAX_ABANDONED:
                del self._abandoned[next(iter(self._abandoned))]

    async def _send(self, head: bytes, payload: bytes = b"") -> None:
        """Send a frame, which may be whole in `head`."""
        if self._lost is not None:
            raise self._lost
        # A large payload is not copied behind its head.
        parts = [head, payload] if len(payload) > _JOINED else [head + payload]
        if (
            len(parts) == 1
            and not self._sending.locked()
            and isinstance(self._stream, Immediate)
            and self._stream.send_nowait(parts[0])
        ):
            return  # the usual case; it saves scopes and locks, a tenth of the server's work for a call
        # Shielded: half a frame would make every later one unreadable.
        with anyio.CancelScope(deadline=anyio.current_time() + SEND_S, shield=True) as scope:
            async with self._sending:
                try:
                    for part in parts:
                        await self._stream.send(part)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as exc:
                    self._fail(_lost("The connection to the sandbox broke."))
                    raise _lost("The connection to the sandbox broke.") from exc
        if scope.cancelled_caught:
            self._fail(_lost(f"The sandbox took nothing for {SEND_S:g} s."))
            raise _lost(f"The sandbox took nothing for {SEND_S:g} s.")

    async def _cancel(self, number: int) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            try:
                await self._send(pack({"id": 0, "op": "cancel", "args": {"id": number}}))
            except SandboxLost:
                return  # nothing runs there any more

    async def _check_alive(self) -> None:
        """Ping the guest.

        A single request may hang, but without an answer to a ping the guest is dead or frozen.

        Raises:
            SandboxLost: no answer.
        """
        number, pending = next(self._ids), _Pending()
        self._pending[number] = pending
        try:
            await self._send(pack({"id": number, "op": "ping", "args": {}}))
            with anyio.move_on_after(PING_S):
                await pending.done.wait()
        finally:
            self._forget(number)
        if not pending.done.is_set():
            self._fail(SandboxLost("The sandbox doesn't answer any more.", "start_session opens a new one."))
        if self._lost is not None:
            raise self._lost

    async def _read(self) -> None:
        try:
            read = 0.0
            while self._lost is None and (frame := await self._frames.receive()) is not None:
                cost = 1 + self._frames.header_size / _HEADER_UNIT + self._frames.payload_size / _PAYLOAD_UNIT
                await self._limit(cost, is_asked=self._dispatch(*frame))
                read += cost
                if read >= _TURN:  # a stream with more to read does not let other tasks run
                    read = 0.0
                    await anyio.lowlevel.checkpoint()
            self._fail(_lost("The sandbox ended."))
        except (ProtocolViolation, SandboxLost) as exc:
            self._fail(exc)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as exc:
            self._fail(_lost(f"The connection to the sandbox broke ({type(exc).__name__})."))
        finally:
            self._fail(SandboxLost("The connection to the sandbox was closed."))
            await self.aclose()

    async def _limit(self, cost: float, *, is_asked: bool) -> None:
        """Wait if the sandbox sends faster than it may.

        Raises:
            ProtocolViolation: too many frames that belong to no request.
        """
        if is_asked:
            if wait_s := self._asked.take(cost):
                await anyio.sleep(wait_s)
        elif self._unasked.take(cost):
            raise ProtocolViolation("The sandbox floods this server with messages that nothing asked for.")

    def _dispatch(self, header: Header, payload: bytes) -> bool:
        """Handle a frame. False if it belongs to no request."""
        event, number = header.get("event"), header.get("id")
        if event == "hello":
            self._greet(header)
            return True  # with all that the session has stored
        if event == "closing":
            reason = str(header.get("reason", ""))[:200]
            kind = SessionExpired if header.get("code") == codes.EXPIRED else SandboxLost
            self._fail(kind(f"The sandbox closed itself: {reason}.", "start_session opens a new one."))
        elif isinstance(number, int) and (pending := self._pending.get(number)) is not None:
            self._settle(pending, header, payload)
            return True
        elif isinstance(number, int) and number in self._abandoned:
            if header.get("progress") is None:
                del self._abandoned[number]
            return True
        else:
            log.debug("frame without a request: %.200r", header)
        return False

    def _greet(self, header: Header) -> None:
        if self._greeted.is_set():
            raise ProtocolViolation("The sandbox greets twice.")
        try:
            self.hello = Hello.model_validate(header)
        except ValidationError as exc:
            raise ProtocolViolation("The sandbox's greeting is malformed.") from exc
        if self.hello.protocol != PROTOCOL:
            raise ProtocolViolation(
                f"The sandbox speaks protocol {self.hello.protocol}, this server {PROTOCOL}.",
                "It was started by another version of pdbox; start a new session.",
            )
        self._greeted.set()

    def _settle(self, pending: _Pending, header: Header, payload: bytes) -> None:
        progress = header.get("progress")
        if progress is None:
            pending.header, pending.payload = header, payload
            pending.done.set()
        elif pending.on_progress is not None and isinstance(progress, dict):
            pending.on_progress(cast(Header, progress), payload)

    def _fail(self, reason: PdboxError) -> None:
        self._lost = self._lost or reason
        self._greeted.set()
        self.ended.set()
        for pending in self._pending.values():
            pending.done.set()


def _lost(message: str) -> SandboxLost:
    return SandboxLost(
        message,
        "What was asked last may have been done. Call again; if the sandbox is gone, start_session opens a new one.",
    )


def _error_from_reply(op: str, error: Header) -> PdboxError:
    code, message, hint = (str(error.get(key, ""))[:4000] for key in ("code", "message", "hint"))
    if code == codes.INTERNAL:
        log.error("guest failed at %s: %s", op, message)
        return SandboxError(f"The sandbox failed at `{op}`: {message}", hint)
    return BY_CODE.get(code, SandboxError)(message, hint)
