"""Byte code is lent to modules that have none of their own, and only for the source that is there."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
from pathlib import Path

import pytest

from tests.kernels.driving import drive

TOLD = "import os\nos.write(2, b'{said}')\nraise ValueError('{said}')\n"


def imported(site: Path, folder: Path, name: str = "module") -> str:
    """What an import of a module that raises an error said."""
    request = {"index": 0, "name": "import", "arguments": [name], "gpu": False, "timeout_s": 60}
    spec = json.dumps({"requests": [request], "byte_code": str(folder)})
    ((_, outcome),) = drive("--spec", spec, path=site).items()
    return str(outcome["reason"])


@pytest.fixture
def site(tmp_path: Path) -> Path:
    place = tmp_path / "site"
    place.mkdir()
    (place / "module.py").write_text(TOLD.format(said="first"))
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "byte-code"
    place.mkdir()
    return place


def kept(folder: Path, site: Path) -> Path:
    """The file of the module."""
    return folder / importlib.util.source_hash(os.fsencode(site / "module.py")).hex()


def test_a_module_is_compiled_once_and_nothing_is_left_beside_it(site: Path, folder: Path) -> None:
    assert imported(site, folder) == "ValueError: first"
    file = kept(folder, site)
    before = file.stat()
    assert imported(site, folder) == "ValueError: first"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [path.name for path in site.iterdir()] == ["module.py"]


def test_what_is_kept_is_what_runs(site: Path, folder: Path) -> None:
    imported(site, folder)
    file = kept(folder, site)
    content = file.read_bytes()
    start = len(importlib.util.MAGIC_NUMBER) + 1 + 8
    code = content[start + 8 :].replace(b"first", b"other")
    file.write_bytes(content[:start] + importlib.util.source_hash(code) + code)
    assert imported(site, folder) == "ValueError: other"


def test_another_source_of_the_same_size_and_time_is_compiled(site: Path, folder: Path) -> None:
    imported(site, folder)
    module = site / "module.py"
    status = module.stat()
    module.write_text(TOLD.format(said="again"))
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert module.stat().st_size == status.st_size
    assert imported(site, folder) == "ValueError: again"


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_damaged_byte_code_is_compiled_again(site: Path, folder: Path, damage: bytes | None) -> None:
    imported(site, folder)
    file = kept(folder, site)
    whole = file.read_bytes()
    file.write_bytes(whole[:-3] + b"???" if damage is None else damage)
    assert imported(site, folder) == "ValueError: first"
    assert file.read_bytes() == whole


def test_byte_code_of_its_own_is_under_test(site: Path, folder: Path) -> None:
    module = site / "module.py"
    status = module.stat()
    module.write_text(TOLD.format(said="stale"))
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))
    py_compile.compile(str(module))
    module.write_text(TOLD.format(said="first"))
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert imported(site, folder) == "ValueError: stale", "as Python itself would take it"
    assert not list(folder.iterdir())


def test_a_folder_that_is_gone_costs_only_time(site: Path, folder: Path) -> None:
    folder.rmdir()
    assert imported(site, folder) == "ValueError: first"


def test_a_loader_of_its_own_compiles_in_its_own_way(site: Path, folder: Path) -> None:
    (site / "hooked.py").write_text(
        "import sys\n"
        "from importlib.machinery import FileFinder, SourceFileLoader\n"
        "class Loader(SourceFileLoader):\n"
        "    def source_to_code(self, data, path, **kwargs):\n"
        "        return compile(data.replace(b'first', b'hooked'), path, 'exec')\n"
        "sys.path_hooks.insert(0, FileFinder.path_hook((Loader, ['.py'])))\n"
        "sys.path_importer_cache.clear()\n"
        "import module\n"
    )
    assert imported(site, folder, "hooked") == "ValueError: hooked"
    assert imported(site, folder) == "ValueError: first"


def test_a_syntax_error_is_told_as_python_tells_it(site: Path, folder: Path) -> None:
    (site / "module.py").write_text("def broken(:\n")
    assert imported(site, folder).startswith("SyntaxError: invalid syntax")
    assert not list(folder.iterdir())
