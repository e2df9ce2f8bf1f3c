"""Frames: what goes in comes out, and what is no frame is refused."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from sandbox.guest.protocol import frames


@pytest.fixture
def ends() -> Iterator[tuple[frames.FrameSocket, socket.socket]]:
    """Frames at one end, bytes at the other."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield frames.FrameSocket(ours), theirs


def test_header_and_payload_come_out_as_they_went_in(ends: tuple[frames.FrameSocket, socket.socket]) -> None:
    ours, other = ends[0], frames.FrameSocket(ends[1])
    payload = bytes(range(256)) * 4096
    sender = threading.Thread(target=ours.send, args=({"text": "€ \ud800 \x00", "n": 1}, payload))
    sender.start()
    assert other.receive() == ({"text": "€ \ud800 \x00", "n": 1}, payload)
    sender.join()
    ours.close()
    assert other.receive() is None


def test_frames_sent_by_many_threads_stay_whole(ends: tuple[frames.FrameSocket, socket.socket]) -> None:
    ours, other = ends[0], frames.FrameSocket(ends[1])
    threads = [threading.Thread(target=ours.send, args=({"n": n}, b"%d" % n * 9999)) for n in range(8)]
    for thread in threads:
        thread.start()
    received = [frame for _ in threads if (frame := other.receive()) is not None]
    assert sorted(header["n"] for header, _ in received) == list(range(8))
    assert all(payload == b"%d" % header["n"] * 9999 for header, payload in received)


def test_large_payloads_and_what_follows_them_are_told_apart_however_they_arrive(
    ends: tuple[frames.FrameSocket, socket.socket],
) -> None:
    ours, theirs = ends
    payloads = [os.urandom(size) for size in (1 << 20, 3, (1 << 16) + 1, 0, frames.MAX_PAYLOAD, 70_000)]
    data = b"".join(frames.pack({"n": n}, payload) for n, payload in enumerate(payloads))
    pieces = [data[:9], data[9:14], data[14:20], data[20 : 1 << 20], data[1 << 20 :]]
    sender = threading.Thread(target=lambda: [theirs.sendall(piece) for piece in pieces])
    sender.start()
    for n, payload in enumerate(payloads):
        assert ours.receive() == ({"n": n}, payload)
    sender.join()


def test_a_large_payload_is_received_further_after_a_time_limit(
    ends: tuple[frames.FrameSocket, socket.socket],
) -> None:
    ours, theirs = ends
    data = frames.pack({}, bytes(range(256)) * 400)
    theirs.sendall(data[:80_000])
    ours.sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        ours.receive()
    ours.sock.setblocking(True)
    theirs.sendall(data[80_000:])
    assert ours.receive() == ({}, bytes(range(256)) * 400)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">II", frames.MAX_HEADER + 1, 0),
        struct.pack(">II", 2, frames.MAX_PAYLOAD + 1) + b"{}",
        struct.pack(">II", 2, 0) + b"[]",
        struct.pack(">II", 3, 0) + b"{x}",
        struct.pack(">II", 2, 0) + b"\xff\xff",
        struct.pack(">II", 100000, 0) + b"[" * 100000,
        struct.pack(">II", 20, 0) + b"{}",
        struct.pack(">II", 2, 1 << 20) + b"{}" + b"x" * 99_999,
        b"\0\0",
    ],
    ids=[
        "header too large",
        "payload too large",
        "no object",
        "no json",
        "no utf-8",
        "too deep",
        "cut off",
        "cut off in a large payload",
        "no lengths",
    ],
)
def test_what_is_no_frame_is_refused(ends: tuple[frames.FrameSocket, socket.socket], data: bytes) -> None:
    ours, theirs = ends
    sender = threading.Thread(target=lambda: (theirs.sendall(data), theirs.close()))
    sender.start()
    with pytest.raises(frames.BrokenFrame):
        ours.receive()
    sender.join()


def test_a_frame_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(ValueError, match="too large"):
        frames.pack({}, bytes(frames.MAX_PAYLOAD + 1))
