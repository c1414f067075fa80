"""GPU architectures in fat binaries. The bytes follow what nvcc 13.0 writes for each architecture."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import pytest

from envmedic.probe.elf import fatbin
from envmedic.probe.elf.dynamic import Elf, ElfError
from tests.probe.prefixes import build_library

_A, _F, _NEW = 0x100011, 0x200011, 0x1000011


def entry(kind: int, architecture: int, flags: int = 0x11, payload: bytes = b"code" * 4) -> bytes:
    return (
        struct.pack("<HHIQ", kind, 0x101, 64, len(payload))
        + bytes(12)
        + struct.pack("<II", architecture, 0)
        + bytes(4)
        + struct.pack("<Q", flags)
        + bytes(16)
        + payload
    )


def fat(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(body)) + body + bytes(-len(body) % 8)


def read(data: bytes) -> fatbin.LibraryGpuCode:
    return fatbin.summarise(fatbin.walk(data, 0, len(data)))


@pytest.mark.parametrize(
    ("architecture", "flags", "expected"),
    [
        (75, 0x11, "7.5"),
        (90, 0x11, "9.0"),
        (90, _A, "9.0a"),
        (100, _NEW, "10.0"),
        (100, _NEW | _A, "10.0a"),
        (100, _NEW | _F, "10.0f"),
        (121, _NEW | _F, "12.1f"),
        (110, _NEW | _A, "11.0a"),
    ],
)
def test_capability_of_architecture_and_flags(architecture: int, flags: int, expected: str) -> None:
    assert read(fat(entry(2, architecture, flags))).sass == (expected,)


def test_machine_code_and_ptx_are_told_apart_and_sorted_by_number() -> None:
    code = read(fat(entry(2, 120), entry(2, 75), entry(2, 90, _A), entry(1, 120), entry(2, 90)))
    assert code.sass == ("7.5", "9.0", "9.0a", "12.0")
    assert code.ptx == ("12.0",)


def test_an_architecture_of_a_few_kernels_is_not_what_the_library_was_built_for() -> None:
    usual = fat(entry(2, 80), entry(2, 90))
    code = read(usual * 99 + fat(entry(2, 80), entry(2, 90), entry(2, 90, _A), entry(2, 89)))
    assert code.sass == ("8.0", "9.0")


def test_ptx_beside_the_stub_that_the_linker_adds_counts() -> None:
    assert read(fat(entry(2, 90)) + fat(entry(2, 90), entry(1, 90))).ptx == ("9.0",)


def test_code_of_which_nothing_is_common_is_still_found() -> None:
    code = read(fat(entry(2, 70)) + fat(entry(2, 80)) + fat(entry(2, 90)))
    assert code == fatbin.LibraryGpuCode(sass=(), ptx=(), found=True)


def test_padding_between_fat_binaries_is_skipped() -> None:
    assert read(bytes(8) + fat(entry(2, 80)) + bytes(24) + fat(entry(2, 80))).sass == ("8.0",)


def test_no_bytes_hold_no_code() -> None:
    assert read(b"") == fatbin.LibraryGpuCode()


def test_an_entry_without_header_is_damage_and_not_an_endless_loop() -> None:
    with pytest.raises(ElfError, match="without a header"):
        read(fat(struct.pack("<HHIQ", 2, 0, 0, 0) + bytes(48)))


def test_code_is_found_in_the_sections_of_a_library(tmp_path: Path) -> None:
    data = ",".join(map(str, fat(entry(2, 86), entry(1, 86))))
    source = "".join(
        f'__attribute__((section("{name}"), used, aligned(8))) const unsigned char part{index}[] = {{{data}}};\n'
        for index, name in enumerate(fatbin.SECTIONS)
    )
    with closing(Elf(build_library(tmp_path / "_C.so", source))) as elf:
        assert fatbin.read(elf) == fatbin.LibraryGpuCode(sass=("8.6",), ptx=("8.6",), found=True)


def test_a_library_without_gpu_code(tmp_path: Path) -> None:
    with closing(Elf(build_library(tmp_path / "plain.so", "int x;"))) as elf:
        assert fatbin.read(elf) == fatbin.LibraryGpuCode()
