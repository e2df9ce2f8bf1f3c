"""A filter of system calls that the supervisor puts on itself, and with it on every program that it starts.

Engines older than Docker 25 let io_uring and vsock through. Filters of the kernel stack, so this one adds to the
engine's and replaces nothing. The one of bubblewrap (`sandbox/bubblewrap/seccomp.py`) has no need of it.
"""

import ctypes
import errno
import os
import struct
import sys

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_AF_VSOCK = 40
_IO_URING = (425, 426, 427)  # setup, enter and register, the same on all machines
# By machine: its number in <linux/audit.h>, then `socket` and `socketpair` (<asm/unistd.h>).
_MACHINES = {"x86_64": (0xC000003E, 41, 53), "aarch64": (0xC00000B7, 198, 199)}
_X32 = 0x40000000

_LOAD, _EQUAL, _NOT_LESS, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST = (
    0,
    4,
    16,
)  # offsets in struct seccomp_data; the low half of the first argument
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install() -> bool:
    """Refuse io_uring and vsock from now on, before there are threads. False where that is not possible.

    The kernel demands that `no_new_privs` is set. gVisor and emulators may lack filters; they have neither of the two.
    """
    # An interpreter of 32 bits on a kernel of 64 would be refused everything.
    if os.uname().machine not in _MACHINES or sys.maxsize < 1 << 32:
        return False
    code = compile_filter()
    program = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0


def compile_filter() -> bytes:
    """Compile one filter for both machines: where one emulates the other, the kernel sees calls of its own.

    Other ABIs (i386 and x32, 32-bit ARM) get ENOSYS for each call. They have numbers of their own for sockets, i386 hides
    the family behind a pointer (`socketcall`), and no Python of a 64-bit image needs them.
    """
    refuse = (_RETURN, 0, 0, _ERROR | errno.ENOSYS)
    program = [(_LOAD, 0, 0, _ARCHITECTURE)]
    for architecture, *sockets in _MACHINES.values():
        body = [(_LOAD, 0, 0, _NUMBER), (_NOT_LESS, 0, 1, _X32), refuse]
        for number in _IO_URING:
            body += [(_EQUAL, 0, 1, number), refuse]
        body += [
            (_EQUAL, 1, 0, sockets[0]),
            (_EQUAL, 0, 3, sockets[1]),
            (_LOAD, 0, 0, _FIRST),
            (_EQUAL, 0, 1, _AF_VSOCK),
            (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT),
            (_RETURN, 0, 0, _ALLOW),
        ]
        program += [(_EQUAL, 0, len(body), architecture), *body]
    program.append(refuse)
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
