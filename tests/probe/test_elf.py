"""The ELF reader against files that the compiler makes, and against damage."""

from __future__ import annotations

import random
import shutil
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest

from envmedic.probe.elf.dynamic import Elf, ElfError, gnu_hash
from tests.probe.prefixes import build_library

_SOURCE = """
extern int needed_function(int);
extern int maybe_there(void) __attribute__((weak));
int defined_function(int x) { return needed_function(x) + (maybe_there ? maybe_there() : 0); }
int defined_data = 4;
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("elf") / "libsample.so"
    return build_library(
        target, _SOURCE, "-Wl,-soname,libsample.so.1", "-Wl,-rpath,$ORIGIN/../x:/opt/lib", "-Wl,--no-as-needed", "-lm"
    )


def test_headers_are_read(library: Path) -> None:
    with closing(Elf(library)) as elf:
        assert elf.soname == "libsample.so.1"
        assert elf.needed[0] == "libm.so.6"
        assert elf.rpath + elf.runpath == ("$ORIGIN/../x", "/opt/lib")


def test_undefined_leaves_out_weak_symbols(library: Path) -> None:
    with closing(Elf(library)) as elf:
        assert b"needed_function" in elf.undefined()
        assert b"maybe_there" not in elf.undefined()


def test_exports_and_hash_lookup_agree(library: Path) -> None:
    with closing(Elf(library)) as elf:
        assert {b"defined_function", b"defined_data"} <= elf.exports()
        assert all(elf.defines(name, gnu_hash(name)) for name in elf.exports())
        assert not elf.defines(b"needed_function", gnu_hash(b"needed_function"))


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_every_kind_of_hash_table_answers_alike(tmp_path: Path, style: str) -> None:
    path = build_library(tmp_path / "lib.so", _SOURCE, f"-Wl,--hash-style={style}")
    with closing(Elf(path)) as elf:
        assert elf.defines(b"defined_function", gnu_hash(b"defined_function"))
        assert not elf.defines(b"nothing", gnu_hash(b"nothing"))
        assert b"needed_function" in elf.undefined()
        names = [b"nothing", b"defined_function", b"needed_function", b"defined_data"]
        asked = {name: gnu_hash(name) for name in names}
        assert list(elf.lacking(asked).items()) == [(name, asked[name]) for name in names if b"defined" not in name]


@pytest.mark.parametrize("arguments", [(), ("-Wl,--hash-style=gnu", "-fvisibility=hidden")])
def test_symbols_of_a_library_without_exports(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    source = "extern int outside(void);\nstatic int (*keep)(void) __attribute__((used)) = outside;\n"
    path = build_library(tmp_path / "lib.so", source, *arguments)
    with closing(Elf(path)) as elf:
        assert b"outside" in elf.undefined()


def test_file_without_section_headers_is_counted_by_its_hash_table(tmp_path: Path, library: Path) -> None:
    data = bytearray(library.read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[60:64] = bytes(4)  # e_shnum, e_shstrndx
    stripped = tmp_path / "stripped.so"
    stripped.write_bytes(data)
    with closing(Elf(library)) as whole, closing(Elf(stripped)) as elf:
        assert elf.sections() == ()
        assert elf.exports() == whole.exports()


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm to compare with")
def test_symbols_agree_with_nm(library: Path) -> None:
    lines = subprocess.run(["nm", "-D", str(library)], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    with closing(Elf(library)) as elf:
        assert {name.decode() for name in elf.undefined()} == {row[-1].split("@")[0] for row in rows if row[-2] == "U"}
        assert {name.decode() for name in elf.exports()} == {row[-1].split("@")[0] for row in rows if len(row) == 3}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty file"),
        (b"PK\x03\x04 a zip" * 20, "not an ELF file"),
        (b"\x7fELF\x01\x01\x01" + bytes(100), "not a 64-bit"),
        (b"\x7fELF\x02\x02\x01" + bytes(100), "not a 64-bit little-endian"),
        (b"\x7fELF\x02\x01\x01" + bytes(20), "truncated"),
    ],
)
def test_what_is_no_readable_elf_file_says_why(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(content)
    with pytest.raises(ElfError, match=message):
        Elf(path)


def test_every_truncation_is_noticed_or_harmless(tmp_path: Path, library: Path) -> None:
    data = library.read_bytes()
    path = tmp_path / "cut.so"
    for length in range(1, len(data), 211):
        path.write_bytes(data[:length])
        assert_reads_or_says_why(path)


def test_random_damage_never_escapes_as_another_error(tmp_path: Path, library: Path) -> None:
    source, path = random.Random(20), tmp_path / "damaged.so"
    original = library.read_bytes()
    for _ in range(400):
        data = bytearray(original)
        for _ in range(source.randint(1, 40)):
            data[source.randrange(min(len(data), 4096))] = source.randrange(256)
        path.write_bytes(data)
        assert_reads_or_says_why(path)


def assert_reads_or_says_why(path: Path) -> None:
    try:
        elf = Elf(path)
    except ElfError:
        return
    with closing(elf):
        for question in (elf.undefined, elf.exports, elf.sections, lambda: elf.defines(b"printf", gnu_hash(b"printf"))):
            with suppress(ElfError):
                question()
