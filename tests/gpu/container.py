"""``python -m tests.gpu.container COMMAND…``: run a command as containers run it that may make no namespaces.

Denied, with EPERM, is what Docker's default profile denies to a process without CAP_SYS_ADMIN: unshare, setns, mount,
and clone with a flag of a namespace (clone3 does not exist, ENOSYS, so that the C library falls back to clone). It is a
filter of this process and all that it starts, and changes nothing else.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Sequence

NUMBERS = {
    "x86_64": {"arch": 0xC000003E, "unshare": 272, "setns": 308, "mount": 165, "clone": 56, "clone3": 435},
    "aarch64": {"arch": 0xC00000B7, "unshare": 97, "setns": 268, "mount": 40, "clone": 220, "clone3": 435},
}
"""System calls by machine, of asm/unistd.h; `arch` is the AUDIT_ARCH of linux/audit.h."""
NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of linux/sched.h."""
LOAD, EQUAL, ANY, RETURN = 0x20, 0x15, 0x45, 0x06
"""BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JSET|K, BPF_RET|K."""
ALLOW, FAIL = 0x7FFF0000, 0x00050000
EPERM, ENOSYS = 1, 38
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
NUMBER, ARCH, FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data."""


def program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter: operation, jumps where true and false, operand. Raises KeyError for a machine that is not known."""
    numbers = NUMBERS[machine]
    rows = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, numbers["arch"]), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, NUMBER)]
    for name in ("unshare", "setns", "mount"):
        rows += [(EQUAL, 0, 1, numbers[name]), (RETURN, 0, 0, FAIL | EPERM)]
    rows += [(EQUAL, 0, 1, numbers["clone3"]), (RETURN, 0, 0, FAIL | ENOSYS)]
    rows += [(EQUAL, 0, 3, numbers["clone"]), (LOAD, 0, 0, FIRST_ARGUMENT), (ANY, 0, 1, NAMESPACES)]
    return [*rows, (RETURN, 0, 0, FAIL | EPERM), (RETURN, 0, 0, ALLOW)]


def deny() -> None:
    """Install the filter in this process. Raises OSError where the kernel does not take it."""
    rows = program(platform.machine())
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    described = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value, pointer in ((PR_SET_NO_NEW_PRIVS, 1, None), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described)):
        if libc.prctl(option, ctypes.c_ulong(value), pointer, 0, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def main(arguments: Sequence[str]) -> None:
    """Become the command."""
    deny()
    os.execvp(arguments[0], list(arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
