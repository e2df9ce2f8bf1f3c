"""Filter of system calls for sandboxes, as a program for the kernel's classic BPF machine.

Namespaces and missing capabilities refuse most of what is dangerous. This closes what they leave open: parts of the
kernel that are seldom used and often broken, and those that no namespace covers (keyrings, vsock).
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence

from sandbox.errors import BackendUnavailable

# By architecture: its number in <linux/audit.h>, then calls by name (<asm/unistd.h>). From 424 on, numbers are common.
_X86_64 = {
    "keyctl": 250, "add_key": 248, "request_key": 249, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
    "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "open_by_handle_at": 304, "name_to_handle_at": 303, "lookup_dcookie": 212, "quotactl": 179, "acct": 163,
    "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "vhangup": 153, "syslog": 103,
    "settimeofday": 164, "clock_settime": 227, "fanotify_init": 300, "vmsplice": 278,
    "socket": 41, "socketpair": 53, "clone": 56, "ioctl": 16,
}  # fmt: skip
_AARCH64 = {
    "keyctl": 219, "add_key": 217, "request_key": 218, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
    "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268,
    "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106,
    "open_by_handle_at": 265, "name_to_handle_at": 264, "lookup_dcookie": 18, "quotactl": 60, "acct": 89,
    "swapon": 224, "swapoff": 225, "reboot": 142, "vhangup": 58, "syslog": 116,
    "settimeofday": 170, "clock_settime": 112, "fanotify_init": 262, "vmsplice": 75,
    "socket": 198, "socketpair": 199, "clone": 220, "ioctl": 29,
}  # fmt: skip
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467,
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}

# With ENOSYS libraries take the older call: `clone` shows its flags to a filter, `clone3` does not.
_MISSING = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
_SPECIAL = ("socket", "socketpair", "clone", "ioctl")
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put input into a terminal
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW*
_X32 = 0x40000000

_LOAD, _EQUAL, _NOT_LESS, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = (
    0,
    4,
    16,
    24,
)  # offsets in struct seccomp_data, low halves of arguments
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000

Instruction = tuple[int, int, int, int]


def compile_filter(machine: str = platform.machine()) -> bytes:
    """Compile the filter for a machine of that kind.

    Raises:
        BackendUnavailable: its system calls are not known here.
    """
    if machine not in _MACHINES:
        raise BackendUnavailable(
            f"The bubblewrap backend has no seccomp filter for {machine}.", "Use Docker."
        )
    architecture, own = _MACHINES[machine]
    numbers = {**own, **_COMMON}
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        _refuse(errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_NOT_LESS, 0, 1, _X32),
        _refuse(errno.ENOSYS),
    ]
    for name, number in numbers.items():
        program += _on(number, _action(name))
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _action(name: str) -> Sequence[Instruction]:
    """Instructions for a call of that name; they end with a return."""
    allow = (_RETURN, 0, 0, _ALLOW)
    if name in ("socket", "socketpair"):
        tests = [(_EQUAL, len(_FAMILIES) - index, 0, family) for index, family in enumerate(_FAMILIES)]
        return [(_LOAD, 0, 0, _FIRST), *tests, _refuse(errno.EAFNOSUPPORT), allow]
    if name == "ioctl":
        tests = [(_EQUAL, len(_TERMINAL) - index, 0, request) for index, request in enumerate(_TERMINAL)]
        return [(_LOAD, 0, 0, _SECOND), *tests, allow, _refuse(errno.EPERM)]
    if name == "clone":
        return [(_LOAD, 0, 0, _FIRST), (_ANY_BIT, 1, 0, _NEW_NAMESPACES), allow, _refuse(errno.EPERM)]
    return [_refuse(errno.ENOSYS if name in _MISSING else errno.EPERM)]


def _on(number: int, action: Sequence[Instruction]) -> Sequence[Instruction]:
    return [(_EQUAL, 0, len(action), number), *action]


def _refuse(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | number)
