"""Whether a file is whole, and whose content lies there."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.probe.packages import contents
from envmedic.probe.packages.record_check import Disk, needed
from tests.support.native import shared_library

LIBRARY = shared_library("int one(void) { return 1; }\nchar room[9000] = {1};\n", name="libone.so")
SOURCE = b"def one():\n    return 1\n\n\ndef two(a,\n        b):\n    return 'two'\n"


def cut(tmp_path: Path, name: str, content: bytes, *, recorded: int) -> bool:
    path = tmp_path / name
    path.write_bytes(content)
    return contents.cut_off(path, len(content), recorded)


@pytest.mark.parametrize("length", [0, 3, 40, 64, 1000, len(LIBRARY) // 2, len(LIBRARY) - 1])
def test_a_library_that_ends_early_is_cut_off(tmp_path: Path, length: int) -> None:
    assert cut(tmp_path, "libone.so.1", LIBRARY[:length], recorded=len(LIBRARY))


def test_a_library_of_another_size_is_whole_where_its_headers_say_so(tmp_path: Path) -> None:
    assert not cut(tmp_path, "libone.so", LIBRARY, recorded=len(LIBRARY) + 5000)
    assert not cut(tmp_path, "libone.so", LIBRARY + b"signed", recorded=len(LIBRARY))


def test_another_file_in_its_place_is_no_library(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    assert cut(tmp_path, "libone.so", pointer + b" " * 100, recorded=len(LIBRARY))


@pytest.mark.parametrize("end", [5, 40, 48, 62])
def test_source_that_breaks_off_is_cut_off(tmp_path: Path, end: int) -> None:
    assert cut(tmp_path, "one.py", SOURCE[:end].rstrip(b"\n"), recorded=len(SOURCE))


@pytest.mark.parametrize(
    "content",
    [
        SOURCE.replace(b"return 1", b"return"),
        SOURCE.replace(b"'two'", b"2").rstrip(b"\n"),
        SOURCE + b"# more\n",
        b"def one()\n    return 1\n\nx = 2",
        b"x = 1\n",
    ],
)
def test_source_that_somebody_edited_is_whole(tmp_path: Path, content: bytes) -> None:
    assert not cut(tmp_path, "one.py", content, recorded=len(SOURCE))


def test_source_of_zeros_is_cut_off(tmp_path: Path) -> None:
    assert cut(tmp_path, "one.py", SOURCE[:30] + b"\0" * 20, recorded=len(SOURCE))


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("numpy/core/fromnumeric.py", True),
        ("torch/lib/libtorch_cpu.so", True),
        ("certifi/cacert.pem", True),
        ("torch/testing/__init__.py", True),
        ("numpy/tests/test_ctypes.py", False),
        ("torch/include/ATen/ATen.h", False),
        ("torch/_C/__init__.pyi", False),
        ("pip/_vendor/distlib/w64.exe", False),
        ("wheel/LICENSE.txt", False),
    ],
)
def test_only_what_a_program_needs_is_missed(tmp_path: Path, path: str, wanted: bool) -> None:  # noqa: FBT001
    assert needed(path, Disk(tmp_path, {})) is wanted


def test_byte_code_takes_the_place_of_source(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.pyc").touch()
    assert not needed("app/main.py", Disk(tmp_path, {}))
