"""Records of both shapes, and damaged ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from envmedic.conda_meta import packages, records
from tests.conda_meta.support import paths, record, write

_PYTHON = record("python", "3.13.1", "h1_cp313")
_CONDAS = record(
    "sympy", "1.13.3", "pyh_0", noarch="python", subdir="noarch",
    paths_data=paths(
        {"_path": "site-packages/sympy/__init__.py", "path_type": "hardlink", "sha256": "a" * 64, "size_in_bytes": 7},
        "site-packages/sympy-1.13.3.dist-info/METADATA", "python-scripts/isympy", "share/man/isympy.1",
        {"_path": "lib/python3.13/site-packages/sympy/__pycache__/__init__.cpython-313.pyc", "path_type": "pyc_file"},
        {"_path": "bin/isympy2", "path_type": "unix_python_entry_point"},
    ),
)  # fmt: skip
_REAL = [
    "lib/python3.13/site-packages/sympy/__init__.py",
    "lib/python3.13/site-packages/sympy-1.13.3.dist-info/METADATA",
    "bin/isympy",
    "share/man/isympy.1",
    "lib/python3.13/site-packages/sympy/__pycache__/__init__.cpython-313.pyc",
    "bin/isympy2",
]


def test_paths_of_condas_noarch_packages_are_mapped(tmp_path: Path) -> None:
    read = records.read(write(tmp_path, [_PYTHON, _CONDAS]))
    sympy = read.named("sympy")
    assert sympy is not None
    assert [path for path, _ in sympy.files(read.site_packages)] == _REAL


def test_paths_of_py_rattlers_noarch_packages_are_taken_as_they_are(tmp_path: Path) -> None:
    rattlers = _CONDAS | {"paths_data": paths(*_REAL)}
    read = records.read(write(tmp_path, [_PYTHON, rattlers]))
    sympy = read.named("sympy")
    assert sympy is not None
    assert [path for path, _ in sympy.files(read.site_packages)] == _REAL


def test_a_compiled_package_may_have_a_directory_of_that_name(tmp_path: Path) -> None:
    odd = record("odd", paths_data=paths("site-packages/x"))
    read = records.read(write(tmp_path, [_PYTHON, odd]))
    (found,) = (item for item in read.packages.values() if item.name == "odd")
    assert [path for path, _ in found.files(read.site_packages)] == ["site-packages/x"]


def test_a_python_may_say_where_its_modules_go(tmp_path: Path) -> None:
    free_threaded = _PYTHON | {"python_site_packages_path": "lib/python3.13t/site-packages"}
    assert records.read(write(tmp_path, [free_threaded])).site_packages == "lib/python3.13t/site-packages"


def test_without_a_record_of_python_the_given_version_counts(tmp_path: Path) -> None:
    assert records.read(write(tmp_path, []), python="3.12.4").site_packages == "lib/python3.12/site-packages"


def test_old_records_list_paths_only(tmp_path: Path) -> None:
    old = {"name": "zlib", "version": "1.2.8", "build": "0", "build_number": 0, "files": ["lib/libz.so"], "depends": []}
    read = records.read(write(tmp_path, [old]))
    (found,) = read.packages.values()
    assert [path for path, _ in found.files(read.site_packages)] == ["lib/libz.so"]
    assert packages.packages(read)[0].filename == "zlib-1.2.8-0"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"name": "x"}', '{"name": 3, "version": "1"}', "\0\0\0", '{"name": "\udc80"}']
)
def test_damaged_records_are_named_with_the_reason(tmp_path: Path, content: str) -> None:
    prefix = write(tmp_path, [_PYTHON])
    (prefix / "conda-meta/torch-1-0.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    read = records.read(prefix)
    assert list(read.damaged) == ["conda-meta/torch-1-0.json"]
    assert read.damaged["conda-meta/torch-1-0.json"]
    assert [item.name for item in read.packages.values()] == ["python"]


def test_what_is_no_file_is_damaged_and_stops_nothing(tmp_path: Path) -> None:
    prefix = write(tmp_path, [_PYTHON])
    os.mkfifo(prefix / "conda-meta/fifo-1-0.json")
    (prefix / "conda-meta/folder-1-0.json").mkdir()
    (prefix / "conda-meta/loop-1-0.json").symlink_to("loop-1-0.json")
    (prefix / "conda-meta/gone-1-0.json").symlink_to("nowhere")
    assert len(records.read(prefix).damaged) == 4


def test_no_conda_meta_is_no_records(tmp_path: Path) -> None:
    assert records.read(tmp_path) == records.Records()


def test_mapped_documents_have_real_paths_only() -> None:
    document = json.loads(json.dumps(_CONDAS))
    changed = records.mapped(document, "lib/python3.13/site-packages")
    assert [item["_path"] for item in changed["paths_data"]["paths"]] == _REAL
    assert document == _CONDAS
    assert records.mapped(_PYTHON, "lib/python3.13/site-packages") is _PYTHON


def test_hashes_are_those_of_the_installed_files() -> None:
    entries = [
        {"_path": "a", "path_type": "hardlink", "sha256": "1", "sha256_in_prefix": "2", "prefix_placeholder": "/p",
         "file_mode": "text", "size_in_bytes": 5},
        {"_path": "b", "path_type": "hardlink", "sha256": "1", "size_in_bytes": 5},
        {"_path": "c", "path_type": "softlink", "sha256": "1", "sha256_in_prefix": "2", "size_in_bytes": 5},
        {"_path": "d", "path_type": "hardlink", "sha256": "1", "prefix_placeholder": "/p", "size_in_bytes": 5},
    ]  # fmt: skip
    entries.append(entries[0] | {"file_mode": "binary"})
    read = records.decode(json.dumps(record("x", paths_data=paths(*entries))).encode())
    told = [(item.installed_sha256, item.installed_size) for _, item in read.files("")]
    assert told == [("2", None), ("1", 5), (None, None), (None, None), ("2", 5)]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"requested_spec": "None"}, ()),
        ({"requested_spec": "sympy=1.13"}, ("sympy=1.13",)),
        ({"requested_spec": None, "requested_specs": ["sympy", "sympy<2"]}, ("sympy", "sympy<2")),
        ({"requested_specs": []}, ()),
    ],
)
def test_what_was_requested(stated: dict[str, object], expected: tuple[str, ...]) -> None:
    read = records.decode(json.dumps(_CONDAS | stated).encode())
    assert packages.package("conda-meta/x.json", read).requested == expected


def test_distributions_are_those_whose_metadata_is_in_site_packages() -> None:
    found = packages.distributions(
        [
            "site-packages/Typing_Extensions-4.12.dist-info/METADATA",
            "lib/python3.11/site-packages/torch-2.3.1-py3.11.egg-info/PKG-INFO",
            "lib/python3.11/site-packages/PyYAML-6.0-py3.11.egg-info",
            "lib/python3.11/site-packages/setuptools/_vendor/packaging-24.1.dist-info/METADATA",
            "lib/python3.11/site-packages/torch-2.3.1-py3.11.egg-info/SOURCES.txt",
        ]
    )
    assert found == ("typing-extensions", "torch", "pyyaml")
