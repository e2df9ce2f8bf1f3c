"""System calls that no program in a sandbox is given, whatever the engine's own filter lets through."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from sandbox.transport.connection import GuestConnection
from tests.bubblewrap import BUBBLEWRAP
from tests.sandbox.conftest import DOCKER, Place, place_of, shell

# Each attempt in a process of its own: a kernel without the calls of 32-bit programs kills for the instruction.
_ATTEMPTS = """
import ctypes, errno, json, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = libc.syscall(*map(ctypes.c_long, arguments))
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
def family(function, number):
    try:
        function(number, socket.SOCK_STREAM)
        return "done"
    except OSError as exc:
        return errno.errorcode[exc.errno]
def as_32_bit(number, first=0, second=0):
    # push rbx; mov eax, number; mov ebx, first; mov ecx, second; xor edx, edx; int 0x80; pop rbx; ret
    words = [b"\\x53\\xb8", number, b"\\xbb", first, b"\\xb9", second, b"\\x31\\xd2\\xcd\\x80\\x5b\\xc3"]
    code = b"".join(word if isinstance(word, bytes) else word.to_bytes(4, "little") for word in words)
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    result = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    return "done" if result >= 0 else errno.errorcode[-result]
attempts = {
    "vsock": lambda: family(socket.socket, 40),
    "a pair of vsock": lambda: family(socket.socketpair, 40),
    "vsock in a long": lambda: call(NUMBERS["socket"], 40 + (1 << 32), 1, 0),
    "io_uring_setup": lambda: call(425, 1, 0),
    "io_uring_enter": lambda: call(426, -1, 0, 0, 0, 0, 0),
    "io_uring_register": lambda: call(427, -1, 0, 0, 0),
}
NUMBERS = {"socket": 41 if os.uname().machine == "x86_64" else 198}
if os.uname().machine == "x86_64":
    attempts.update({
        "x32 vsock": lambda: call(0x40000000 + 41, 40, 1, 0),
        "x32 io_uring": lambda: call(0x40000000 + 425, 1, 0),
        "i386 vsock": lambda: as_32_bit(359, 40, 1),
        "i386 io_uring": lambda: as_32_bit(425, 1),
        "i386 socketcall": lambda: as_32_bit(102, 1),
    })
def attempt(name):
    reader, writer = os.pipe()
    if not os.fork():
        os.write(writer, attempts[name]().encode())
        os._exit(0)
    os.close(writer)
    os.wait()
    return os.read(reader, 100).decode() or "killed"
print(json.dumps({name: attempt(name) for name in attempts}))
"""


@pytest.fixture(params=[BUBBLEWRAP, DOCKER])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """The backends that isolate."""
    async with place_of(request.param) as place:
        yield place


async def test_vsock_and_io_uring_are_refused_to_every_program(guest: GuestConnection) -> None:
    args = {"argv": ["python3", "-c", _ATTEMPTS], "timeout_s": 60.0, "max_output": 100_000}
    answer, _ = await guest.request("exec", args, timeout_s=60)
    assert answer["exit_code"] == 0, answer["output"]
    results = json.loads(answer["output"])
    assert len(results) >= 6
    for name, result in results.items():
        if name.startswith(("x32", "i386")):
            assert result in ("ENOSYS", "killed"), name
        else:
            assert result == ("EAFNOSUPPORT" if "vsock" in name else "ENOSYS"), name
    # Other sockets are not refused with them.
    assert (await shell(guest, "python3 -c 'import socket; socket.socketpair(); socket.socket()'"))[0] == 0
