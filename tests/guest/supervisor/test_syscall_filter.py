"""The filter of system calls, evaluated for machines that tests do not run on."""

from __future__ import annotations

import struct

import pytest

from sandbox.guest.supervisor.syscall_filter import compile_filter

X86_64, AARCH64, I386, ARM = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028
ALLOWED, ENOSYS, EAFNOSUPPORT = 0x7FFF0000, 0x50000 + 38, 0x50000 + 97


def evaluate(architecture: int, number: int, first: int = 0) -> int:
    """Run it as the kernel does; gives what it returns."""
    data = struct.pack("<IIQQ", number, architecture, 0, first)
    program = list(struct.iter_unpack("=HBBI", compile_filter()))
    accumulator, place = 0, 0
    while True:
        code, if_true, if_false, operand = program[place]
        place += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        else:
            is_true = {0x15: accumulator == operand, 0x35: accumulator >= operand}[code]
            place += if_true if is_true else if_false


@pytest.mark.parametrize(("machine", "sockets"), [(X86_64, (41, 53)), (AARCH64, (198, 199))])
def test_each_machine_refuses_io_uring_and_vsock_and_nothing_else(
    machine: int, sockets: tuple[int, int]
) -> None:
    refused = {number for number in range(1000) if evaluate(machine, number) != ALLOWED}
    assert refused == {425, 426, 427}
    for number in sockets:
        families = {family for family in range(100) if evaluate(machine, number, family) == EAFNOSUPPORT}
        assert families == {40}
        assert evaluate(machine, number, 40 + (1 << 32)) == EAFNOSUPPORT, "the kernel reads 32 bits"
    others = [number for number in range(1000) if evaluate(machine, number, 40) == EAFNOSUPPORT]
    assert others == list(sockets)


@pytest.mark.parametrize("architecture", [I386, ARM, 0])
def test_other_abis_are_refused(architecture: int) -> None:
    assert {evaluate(architecture, number, 40) for number in range(1000)} == {ENOSYS}


def test_x32_is_refused() -> None:
    assert {evaluate(X86_64, 0x40000000 + number, 40) for number in range(1000)} == {ENOSYS}
