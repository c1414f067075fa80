"""Real refusals: a seccomp filter makes the kernel deny a system call to this process and its children.

Container runtimes and security modules deny calls in just this way, and a filter needs no root.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_NUMBERS = {
    "x86_64": {"unshare": 272, "mount": 165, "renameat2": 316, "linkat": 265, "copy_file_range": 326},
    "aarch64": {"unshare": 97, "mount": 40, "renameat2": 276, "linkat": 37, "copy_file_range": 285},
}
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_LOAD, _JUMP_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_FIRST_ARGUMENT = 16


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def supported() -> bool:
    """Whether filters for this machine are known here."""
    return platform.machine() in _NUMBERS


def deny(call: str, number: int, *, argument: int | None = None, bits: int = 0) -> None:
    """Let `call` fail with errno `number`, only when `argument` has one of `bits` if these are given."""
    if argument is None:
        rule = [(_LOAD, 0, 0, 0), (_JUMP_EQUAL, 0, 1, _number(call))]
    else:
        rule = [
            (_LOAD, 0, 0, 0),
            (_JUMP_EQUAL, 0, 3, _number(call)),
            (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument),
            (_JUMP_SET, 0, 1, bits),
        ]
    _install([*rule, (_RETURN, 0, 0, _ERRNO | number), (_RETURN, 0, 0, _ALLOW)])


def _number(call: str) -> int:
    return _NUMBERS[platform.machine()][call]


def _install(instructions: list[tuple[int, int, int, int]]) -> None:
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    buffer = ctypes.create_string_buffer(code)
    program = _Program(len(instructions), ctypes.cast(buffer, ctypes.c_void_p).value)
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0)),
        (_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(program)),
    ):
        if libc.prctl(*arguments, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
