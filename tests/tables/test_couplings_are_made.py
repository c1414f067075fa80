"""What releases need of torch, read from wheels that the test builds: metadata and libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.compat import data_files, tables
from envmedic.compat.table_rows import Coupling, CouplingTables
from envmedic.model.base import from_json
from tests.support.index import serve, write_index
from tests.support.native import shared_library
from tests.support.wheels import Wheel, make_wheel
from tests.tables.test_tables_are_made import Place, companion, torch

CALLS = "extern void {name}(void); void f(void) {{ {name}(); }}"
CXX, SHIM = "_ZN3c106deviceEv", "aoti_torch_get_data_ptr"
RUNTIME = (("libcudart.so.13", "void cudaMalloc(void) {}"),)


def released(folder: Path, name: str, version: str, source: str, requires: tuple[str, ...] = ()) -> Wheel:
    """A wheel with one library."""
    library = shared_library(source, name="_C.so", needs=RUNTIME)
    return make_wheel(
        folder,
        name,
        version,
        files={f"{name}/_C.so": library},
        requires=requires,
        tags=("cp310-abi3-manylinux_2_28_x86_64",),
    )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A record and documents without a torch."""
    return Place(tmp_path)


def rows(place: Place) -> dict[str, Coupling]:
    path = place.tables / "couplings.json"
    found = from_json(path.read_bytes(), CouplingTables, source=str(path))
    return {f"{row.name} {row.version}": row for row in found.releases}


def test_metadata_and_libraries_tell_what_a_release_needs_and_are_read_once(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    wheels = [
        torch(folder, "2.99.0"),
        companion(folder, "torchvision", "0.99.0", "torch==2.99.0"),
        companion(folder, "torchaudio", "2.99.0", "torch==2.99.0"),
        released(folder, "torchao", "9.1", CALLS.format(name=CXX)),
        released(folder, "torchao", "9.2", CALLS.format(name=SHIM)),
        released(folder, "torchao", "9.3rc1", CALLS.format(name=SHIM)),
        released(folder, "xformers", "9.0", "void f(void) {}", ("torch>=2.10", "numpy")),
        released(folder, "vllm", "9.0", CALLS.format(name=CXX), ("torch==2.99.0", "xformers==9.0; extra == 'fast'")),
        make_wheel(folder, "gsplat", "9.0", requires=("torch",)),
    ]
    write_index(tmp_path, wheels)
    with serve(tmp_path) as index:
        assert place.run("--index", index.url, "--wheel", str(tmp_path / "dist"), "--number", "3") == 0
        index.seen.clear()
        once = place.contents()
        assert place.run("--index", index.url) == 0
        assert [seen.path for seen in index.seen if seen.path.endswith(".whl")] == []
    assert place.contents() == once
    found = rows(place)
    assert set(found) == {"torchao 9.1", "torchao 9.2", "xformers 9.0", "vllm 9.0", "gsplat 9.0"}
    told = {name: (row.requires, row.interface, row.cuda) for name, row in found.items()}
    assert told["torchao 9.1"] == ({}, "torch", ("13",))
    assert told["torchao 9.2"] == ({}, "stable", ("13",))
    assert told["xformers 9.0"] == ({"torch": ">=2.10"}, "none", ("13",))
    # it goes with one torch alone, so that its libraries need not be read
    assert told["vllm 9.0"] == ({"torch": "==2.99.0"}, None, ())
    assert told["gsplat 9.0"] == ({"torch": ""}, None, ())
    assert found["torchao 9.2"].python == {"linux_x86_64": ("3.14",)}
    assert found["gsplat 9.0"].python == {"linux_x86_64": ("py3",), "linux_aarch64": ("py3",)}
    assert (
        found["torchao 9.2"].source[0]
        == "wheel: torchao-9.2-cp310-abi3-manylinux_2_28_x86_64.whl (METADATA, libraries)"
    )
    (built,) = (tmp_path / "dist").iterdir()
    assert built.name.endswith(".3-py3-none-any.whl")


def test_the_shipped_tables_make_a_data_file_of_their_own_version() -> None:
    from tests.tables import documents, making, record, wheel

    content = wheel.document(making.files(record.load(), documents.load()))
    assert data_files.parse(content, tables.RENEWABLE).version == tables.shipped_version()
