"""What a stranger's environment may hold so that its reader hangs, dies, or tells what lies elsewhere."""

from __future__ import annotations

import os
import struct
from contextlib import closing
from pathlib import Path

import pytest

from envmedic import shell
from envmedic.model.base import to_json
from envmedic.model.facts import Environment
from envmedic.probe import metadata
from envmedic.probe.binaries import numpy_api
from envmedic.probe.elf import fatbin
from envmedic.probe.elf.dynamic import Elf, ElfError
from envmedic.probe.environment import observe_environment
from envmedic.probe.prefix import interpreter
from envmedic.probe.prefix.kept_variables import observe as activated
from tests.probe.prefixes import add_distribution, build_library, make_prefix, site

SECRET = "correct-horse-battery-staple"


def test_a_direct_url_that_is_nested_deeply_is_unknown() -> None:
    assert metadata.parse_direct_url(b"[" * 100_000).kind == "unknown"


def test_sizes_with_more_digits_than_any_file_count_nothing() -> None:
    found = metadata.parse_record(b"a.py,," + b"9" * 5000 + b"\nb.py,,7\n")
    assert found.size_bytes == 7


def test_requirements_of_spaces_and_brackets_are_read_soon() -> None:
    core = metadata.parse_core(b"Name: a\nRequires-Dist: b" + b" " * 300_000 + b"(" * 300_000 + b"\n")
    assert core.name == "a"
    assert metadata.parse_core(b"Requires-Dist: torch  (==2.3.1) ; extra == 'x'\n").requires == (
        "torch==2.3.1 ; extra == 'x'",
    )


def test_a_fat_binary_without_a_header_does_not_hang() -> None:
    with pytest.raises(ElfError, match="header"):
        list(fatbin.walk(struct.pack("<IHHQ", fatbin.MAGIC, 1, 0, 0) + bytes(64), 0, 80))


def test_padding_without_end_is_not_searched() -> None:
    assert list(fatbin.walk(bytes(8 << 20), 0, 8 << 20)) == []


@pytest.fixture
def library(tmp_path: Path) -> bytearray:
    return bytearray(
        build_library(tmp_path / "a.so", "int f(void) { return 1; } int g; int h;", "-nostdlib").read_bytes()
    )


def section_headers(data: bytearray) -> tuple[int, int, int]:
    (table,), (size, count) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<HH", data, 58)
    return table, size, count


def test_names_at_impossible_places_are_damage(tmp_path: Path, library: bytearray) -> None:
    table, size, count = section_headers(library)
    for index in range(count):
        struct.pack_into("<QQ", library, table + index * size + 24, (1 << 63) + 5, (1 << 63) + 9)
    (tmp_path / "b.so").write_bytes(library)
    with closing(Elf(tmp_path / "b.so")) as elf, pytest.raises(ElfError):
        elf.sections()


def test_read_only_data_that_is_listed_often_is_read_once(tmp_path: Path, library: bytearray) -> None:
    """Sections may lie over each other: sixty-five thousand of a whole file would fill any memory."""
    names = b"\0.rodata\0"
    place = len(library)
    own = struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 0, place, 0, 0, 0, 0)
    text = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, place, len(names), 0, 0, 0, 0)
    data = library + names + own * 60_000 + text
    struct.pack_into("<Q", data, 40, place + len(names))
    struct.pack_into("<HHH", data, 58, 64, 60_001, 60_000)
    (tmp_path / "b.so").write_bytes(data)
    assert numpy_api._read(tmp_path / "b.so") == (None, place)


@pytest.mark.parametrize("offset", [0, 1 << 40, (1 << 64) - 1])
def test_read_only_data_beyond_the_end_is_nothing_to_read(tmp_path: Path, library: bytearray, offset: int) -> None:
    names = b"\0.rodata\0"
    place = len(library)
    own = struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, offset, (1 << 64) - 1, 0, 0, 0, 0)
    text = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, place, len(names), 0, 0, 0, 0)
    data = library + names + own + text
    struct.pack_into("<Q", data, 40, place + len(names))
    struct.pack_into("<HHH", data, 58, 64, 2, 1)
    (tmp_path / "b.so").write_bytes(data)
    assert numpy_api._read(tmp_path / "b.so") == (None, len(data) if offset == 0 else 0)


def test_a_chain_of_a_hash_table_has_an_end(tmp_path: Path, library: bytearray) -> None:
    (tmp_path / "a.so").write_bytes(library)
    with closing(Elf(tmp_path / "a.so")) as elf:
        table = elf._hash
        assert table is not None
    beyond = table.first_symbol + (len(library) - table.chains) // 4 + 1
    for index in range(table.bucket_count):
        struct.pack_into("<I", library, table.buckets + 4 * index, beyond)
    (tmp_path / "b.so").write_bytes(library + bytes(8 << 20))
    with closing(Elf(tmp_path / "b.so")) as elf:
        with pytest.raises(ElfError, match="hash table"):
            elf._chained(table, b"x", 7)
        with pytest.raises(ElfError, match="hash table"):
            elf._count_by_hash()


@pytest.mark.parametrize(
    "answer",
    ["{'version': '3.9999'}", "{'version': 'x'}", "{'version': '3'}", "{'version': '3.11\\x1b[31m'}", "{'version': 3}", "{'a': 1}",
     "{'version': '3.11.4', 'x': '" + "y" * 20_000 + "'}", "-" * 16_000 + "1", "[" * 16_000],
)  # fmt: skip
def test_what_is_no_answer_of_a_python_is_none(answer: str) -> None:
    assert interpreter.parse_answer(answer) is None


def test_variables_that_double_do_not_grow_for_ever() -> None:
    script = "A=" + "x" * 1000 + "\n" + "A=$A$A\n" * 64 + "export LD_PRELOAD=$A\n"
    ((_, value, _),) = shell.statements(script, {}, {"LD_PRELOAD"})
    assert value is not None
    assert len(value) <= 32 << 10


@pytest.mark.parametrize(
    "line", ["f()" + " " * 200_000 + "x", "unset A" + " " * 200_000 + "x", "function f" + " " * 200_000 + "x"]
)
def test_lines_of_spaces_are_read_soon(line: str) -> None:
    assert list(shell.statements(line, {}, {"A"})) == []


def test_secrets_that_activation_sets_are_not_told(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (prefix / "conda-meta").mkdir()
    state = f'{{"env_vars": {{"AWS_SECRET_ACCESS_KEY": "{SECRET}", "LD_LIBRARY_PATH": "/x"}}}}'
    (prefix / "conda-meta" / "state").write_text(state)
    assert {item.name: item.value for item in activated(prefix, {})} == {
        "AWS_SECRET_ACCESS_KEY": "***",
        "LD_LIBRARY_PATH": "/x",
    }


@pytest.mark.parametrize("state", ["[]", '{"env_vars": []}', '{"env_vars": {"A": 1}}', "[" * 100_000, "null"])
def test_a_state_of_conda_that_holds_something_else_sets_nothing(tmp_path: Path, state: str) -> None:
    prefix = make_prefix(tmp_path / "env")
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "state").write_text(state)
    assert activated(prefix, {}) == ()


LEAKS = (
    "pyvenv.cfg", "pip.conf", "conda-meta/pinned", "conda-meta/frozen", "conda-meta/history", "conda-meta/state",
    "conda-meta/a-1-0.json", "bin/activate", "etc/conda/activate.d/a.sh", "lib/python3.11/site-packages/a.pth",
    "lib/python3.11/site-packages/a.egg-link", "lib/python3.11/site-packages/a-1.dist-info/METADATA",
    "lib/python3.11/site-packages/a-1.dist-info/RECORD", "lib/python3.11/site-packages/a-1.dist-info/top_level.txt",
    "lib/python3.11/site-packages/a-1.dist-info/direct_url.json", "lib/python3.11/site-packages/a-1.dist-info/WHEEL",
    "lib/python3.11/site-packages/b-1.egg-info/requires.txt", "lib/python3.11/site-packages/b-1.egg-info/PKG-INFO",
    "lib/python3.11/site-packages/torch/version.py", "lib/python3.11/site-packages/torch/__init__.py",
)  # fmt: skip
"""Files whose text comes into facts."""


def leaking(root: Path, secret: Path) -> Path:
    """A prefix in which every file whose text is told is a link to a secret."""
    prefix = make_prefix(root)
    add_distribution(site(prefix), "a", "1")
    (site(prefix) / "b-1.egg-info").mkdir()
    for name in LEAKS:
        path = prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(secret)
    return prefix


@pytest.mark.parametrize("deep", [False, True])
def test_nothing_that_a_link_leads_to_outside_is_told(tmp_path: Path, *, deep: bool) -> None:
    secret = tmp_path / "home" / "credentials"
    secret.parent.mkdir()
    lines = [f"{SECRET}", f"Name: {SECRET}", f"Version: 1-{SECRET}", f"Requires-Dist: {SECRET}", f"import {SECRET}",
             f"{SECRET},sha256=x,1", f"export LD_PRELOAD={SECRET}", f"version = '{SECRET}'", f"__version__ = '{SECRET}'",
             f"[global]\nindex-url = https://{SECRET}.example", f'{{"url": "file:///{SECRET}"}}']  # fmt: skip
    for line in [*lines, "\n".join(lines)]:
        secret.write_text(line + "\n")
        prefix = leaking(tmp_path / str(len(list(tmp_path.iterdir()))), secret)
        told = to_json(observe_environment(prefix, {}, deep=deep))
        settings = "pip.conf" if "index-url" in line and line.startswith("[") else ""
        assert SECRET not in told or settings, line


def test_paths_of_records_outside_of_the_prefix_are_not_asked_for(tmp_path: Path) -> None:
    """Whether a file is there, and has some size or content, is nobody's business outside."""
    victim = tmp_path / "victim.py"
    victim.write_text("secret")
    prefix = make_prefix(tmp_path / "env")
    info = add_distribution(site(prefix), "a", "1", files={"a.py": ""})
    rows = [
        str(victim),
        f"../../../../{victim.name}",
        f"a/../../../../../{victim.name}",
        "/etc/passwd",
        "../../../../../etc/hostname",
    ]
    (info / "RECORD").write_text("".join(f"{row},sha256=x,1\n" for row in rows) + "a.py,,0\n")
    before = victim.stat().st_atime_ns
    found = observe_environment(prefix, {}, deep=True)
    assert [item for item in found.files or () if item.distribution == "a"] == []
    assert victim.stat().st_atime_ns == before


def test_an_editable_link_is_read_from_beside_it_not_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    (here / "a.egg-info").mkdir(parents=True)
    (here / "a.egg-info" / "PKG-INFO").write_text("Name: a\nVersion: 6.6.6\n")
    monkeypatch.chdir(here)
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "a.egg-link").write_text("\n")
    (site(prefix) / "b.egg-link").write_text("/x\0y\n")
    assert {item.name: item.version for item in observe_environment(prefix, {}).distributions} == {
        "a": "0+unknown",
        "b": "0+unknown",
    }


@pytest.mark.parametrize("url", ["file://[", "file:///a%00b", "http://[::1", "file:////" + "../" * 50])
def test_places_of_sources_that_are_none(tmp_path: Path, url: str) -> None:
    prefix = make_prefix(tmp_path / "env")
    extra = {"direct_url.json": f'{{"url": "{url}", "dir_info": {{"editable": true}}}}', "top_level.txt": "torch\n"}
    add_distribution(site(prefix), "torch", "2.5.1", files={"torch/version.py": "__version__ = '2.5.1'"}, extra=extra)
    found = observe_environment(prefix, {})
    assert isinstance(found, Environment)
    assert [item.name for item in found.distributions] == ["torch"]


@pytest.mark.parametrize("kind", ["fifo", "device", "sparse", "directory", "socket"])
def test_whatever_lies_in_a_files_place_is_passed_over(tmp_path: Path, kind: str) -> None:
    prefix = leaking(tmp_path / "env", Path("/dev/zero"))
    for name in (*LEAKS, "lib/python3.11/site-packages/torch/_C.so", "lib/python3.11/site-packages/x.so"):
        path = prefix / name
        path.unlink(missing_ok=True)
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "directory":
            path.mkdir()
        elif kind == "socket":
            os.mknod(path, 0o140600)
        else:
            with path.open("wb") as file:
                file.truncate(1 << 40)
    (site(prefix) / "c-1.dist-info").mkdir()
    (site(prefix) / "c-1.dist-info" / "METADATA").write_text("Name: c\nVersion: 1\n")
    (site(prefix) / "c-1.dist-info" / "RECORD").write_text(
        "x.so,sha256=x,7\ntorch/_C.so,sha256=x,7\na.pth,sha256=x,7\n"
    )
    found = observe_environment(prefix, {}, deep=kind != "sparse")
    assert "c" in {item.name for item in found.distributions}
