"""Readers of METADATA, RECORD, WHEEL, direct_url.json and pyvenv.cfg."""

from __future__ import annotations

import email.parser
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.probe import metadata


def test_core_metadata_stops_at_the_first_empty_line() -> None:
    core = metadata.parse_core(b"Name: torch\nVersion: 2.5.1\nRequires-Dist: numpy\n\nName: other\nRequires-Dist: no\n")
    assert core == metadata.CoreMetadata("torch", "2.5.1", ("numpy",), None)


def test_old_parenthesised_requirements_become_plain_and_markers_stay() -> None:
    data = (
        b"Name: a\nVersion: 1\nRequires-Dist: torch (==2.3.1)\nRequires-Dist: x ; (os_name == 'a') and extra == 'b'\n"
    )
    assert metadata.parse_core(data).requires == ("torch==2.3.1", "x ; (os_name == 'a') and extra == 'b'")


def test_windows_line_ends_and_unknown_values() -> None:
    core = metadata.parse_core(b"Name: a\r\nVersion: UNKNOWN\r\nRequires-Python: >=3.8\r\n\r\nName: b\r\n")
    assert (core.name, core.version, core.requires_python) == ("a", None, ">=3.8")


@given(st.binary(max_size=400))
def test_any_bytes_can_be_read_as_metadata_record_and_direct_url(data: bytes) -> None:
    metadata.parse_core(data)
    metadata.parse_record(data)
    metadata.parse_direct_url(data)
    metadata.parse_pyvenv(data)


_WORD = st.text(st.characters(whitelist_categories=("Lu", "Ll", "Nd"), max_codepoint=0x7F), min_size=1, max_size=12)


@given(_WORD, _WORD, st.lists(_WORD, max_size=5))
def test_header_reader_agrees_with_the_email_parser(name: str, version: str, requires: list[str]) -> None:
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {item}" for item in requires)]
    text = "\n".join(lines) + "\n\nbody\n"
    expected = email.parser.Parser().parsestr(text)
    core = metadata.parse_core(text.encode())
    assert core.requires == tuple(expected.get_all("Requires-Dist") or ())
    assert (core.name, core.version) == tuple(None if value == "UNKNOWN" else value for value in (name, version))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("torchvision-0.18.1.dist-info", ("torchvision", "0.18.1")),
        ("torch-2.0.0-py3.10.egg-info", ("torch", "2.0.0")),
        ("a-1.0+cu121.dist-info", ("a", "1.0+cu121")),
        ("PyYAML.egg-info", None),
        ("-1.0.dist-info", None),
    ],
)
def test_name_and_version_of_a_metadata_directory(entry: str, expected: tuple[str, str] | None) -> None:
    assert metadata.name_and_version(entry) == expected


def test_record_sums_sizes_and_reads_quoted_paths() -> None:
    record = metadata.parse_record(b'a/__init__.py,sha256=x,10\n"b,c.py",sha256=y,5\na-1.dist-info/RECORD,,\n')
    assert record.paths == ("a/__init__.py", "b,c.py", "a-1.dist-info/RECORD")
    assert record.size_bytes == 15
    assert record.error is None


def test_record_with_broken_lines_keeps_the_rest_and_says_so() -> None:
    record = metadata.parse_record(b"a.py,sha256=x,7\ngarbage\n,,\nb.py,sha256=y,-3\n")
    assert record.paths == ("a.py", "b.py")
    assert record.size_bytes == 7
    assert record.error == "2 lines are not 'path,hash,size'"


def test_record_that_is_not_utf8_says_so() -> None:
    assert metadata.parse_record(b"caf\xe9.py,sha256=x,1\n").error == "not UTF-8"


@pytest.mark.parametrize(
    ("content", "kind", "revision", "sha256"),
    [
        ({"url": "https://h/a.whl", "archive_info": {"hash": "sha256=abc"}}, "archive", None, "abc"),
        ({"url": "https://h/a.whl", "archive_info": {"hashes": {"sha256": "def"}}}, "archive", None, "def"),
        ({"url": "https://h/r.git", "vcs_info": {"vcs": "git", "commit_id": "c0"}}, "vcs", "c0", None),
        ({"url": "file:///src", "dir_info": {}}, "directory", None, None),
        ({"url": "file:///src", "dir_info": {"editable": True}}, "editable", None, None),
        ({"url": 3}, "unknown", None, None),
        ([], "unknown", None, None),
    ],
)
def test_direct_url_kinds(content: object, kind: str, revision: str | None, sha256: str | None) -> None:
    origin = metadata.parse_direct_url(json.dumps(content).encode())
    assert (origin.kind, origin.revision, origin.sha256) == (kind, revision, sha256)


def test_credentials_in_a_direct_url_are_hidden() -> None:
    origin = metadata.parse_direct_url(b'{"url": "https://me:secret@h/a.whl", "archive_info": {}}')
    assert origin.url == "https://***@h/a.whl"


def test_pyvenv_keys_are_lower_case_and_lines_without_a_sign_are_left_out() -> None:
    assert metadata.parse_pyvenv(b"Home = /usr/bin\nnonsense\nuv = 0.9\n") == {"home": "/usr/bin", "uv": "0.9"}


@given(st.text(alphabet='a,"\n\r\x0b ', max_size=30))
def test_the_short_way_of_reading_a_record_reads_the_same(text: str) -> None:
    assert metadata._plain_columns(text.splitlines()) in {None, metadata._columns(text)}
