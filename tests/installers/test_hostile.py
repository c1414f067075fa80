"""Wheels and index pages of strangers."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest

from envmedic.errors import IntegrityError, NetworkError
from envmedic.installers.index import pages
from envmedic.installers.resolution.provenance import _tags
from envmedic.installers.wheels import wheel_files
from envmedic.model.facts import Interpreter

NAME = "demo-1.0-py3-none-any.whl"
PAGE = "https://example.org/simple/demo/"


def wheel(
    path: Path, *more: tuple[str | zipfile.ZipInfo, bytes], metadata: bytes = b"Name: demo\nVersion: 1.0\n"
) -> Path:
    file = path / NAME
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("demo/__init__.py", "")
        archive.writestr("demo-1.0.dist-info/METADATA", metadata)
        for name, content in more:
            archive.writestr(name, content)
    return file


def refusal(file: Path) -> str:
    with pytest.raises(IntegrityError) as caught:
        wheel_files.require_wheel(file, file.name)
    return caught.value.cause or ""


@pytest.mark.parametrize(
    "name", ["../evil", "demo/../../evil", "/etc/evil", "..\\evil", "demo-1.0.data/scripts/../../evil"]
)
def test_a_wheel_that_would_write_elsewhere_is_refused_before_it_is_installed(tmp_path: Path, name: str) -> None:
    assert "outside of the environment" in refusal(wheel(tmp_path, (name, b"x")))


def test_a_wheel_with_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("demo/data")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert "symbolic link" in refusal(wheel(tmp_path, (link, b"/etc")))


def test_an_archive_bomb_is_refused_by_what_it_says_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel_files, "_SMALL_BYTES", 1 << 20)
    file = wheel(tmp_path)
    with (
        zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("demo/zeros", "w", force_zip64=True) as out,
    ):
        for _ in range(30):
            out.write(bytes(1 << 20))
    assert "would become" in refusal(file)


def test_metadata_that_become_larger_than_any_are_not_held_in_memory(tmp_path: Path) -> None:
    assert "more than" in refusal(wheel(tmp_path, metadata=b"Name: demo\n" + bytes(wheel_files.LARGEST_TEXT)))


def test_damaged_and_strange_archives_are_refused_in_words(tmp_path: Path) -> None:
    file = wheel(tmp_path)
    whole = file.read_bytes()
    directory = whole.rindex(b"PK\x01\x02")
    for place, value in ((directory + 10, b"\x63\x00"), (directory + 6, b"\xff\xff"), (directory + 8, b"\x01\x00"),
                         (directory + 42, b"\xff\xff\xff\x7f"), (len(whole) - 6, b"\xff\xff\xff\xff")):  # fmt: skip
        file.write_bytes(whole[:place] + value + whole[place + len(value) :])
        assert refusal(file)
        with pytest.raises(IntegrityError):
            wheel_files.requires(file)


def test_a_sound_wheel_is_taken(tmp_path: Path) -> None:
    file = wheel(tmp_path, ("demo/..data", b""), ("demo/a..b/c", b"x" * 1000))
    wheel_files.require_wheel(file, file.name)
    assert wheel_files.metadata_in(io.BytesIO(file.read_bytes())).startswith("Name")


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"files": [{}]}', b'{"files": ["x"]}', b'{"files": [{"url": 1}]}', b"\xff", b"<html>", b""],
)
def test_a_page_that_is_no_page_is_told(content: bytes) -> None:
    with pytest.raises(NetworkError, match="not readable"):
        list(pages.from_json(content, PAGE))


def test_addresses_that_are_none_are_passed_over() -> None:
    page = b'{"files": [{"url": "https://[x"}, {"url": "../demo-1.0-py3-none-any.whl", "hashes": {"sha256": "a"}}]}'
    (found,) = pages.from_json(page, PAGE)
    assert found.url == "https://example.org/simple/demo-1.0-py3-none-any.whl"
    (same,) = pages.from_html("<a href='//[x'>a</a><a href='../demo-1.0-py3-none-any.whl#sha256=a'>b</a>", PAGE)
    assert same == found


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "-rf.whl",
        "a.whl",
        "../../x-1.0-py3-none-any.whl",
        "x-1.0.tar.gz",
        f"x-1-{'9' * 5000}-py3-none-any.whl",
        "\x1b[31m-1-py3-none-any.whl",
    ],
)
def test_names_that_are_none_of_wheels_rank_behind_all_others(name: str) -> None:
    assert wheel_files.rank(name, {}) == 0
    assert _tags(name) == frozenset() or name.startswith(("../", "\x1b"))


@pytest.mark.parametrize("version", [None, "", "3", "x.y", "3.99999999", "\u0663.\u0661\u0661\u0661"])
def test_versions_that_no_python_has_accept_nothing(version: str | None) -> None:
    assert wheel_files.tag_ranks(Interpreter(path="p", starts=True, version=version)) == {}


def test_a_wheel_in_memory_that_is_none() -> None:
    with pytest.raises(zipfile.BadZipFile):
        wheel_files.metadata_in(io.BytesIO(b"PK\x05\x06" + b"\xff" * 18))
