"""The program that makes the tables, on indexes of the tests' own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from envmedic.compat import table_rows, tables
from envmedic.installers.wheels import torch_wheel
from envmedic.model.base import from_json
from tests.support.index import IndexServer, Seen, serve, write_index
from tests.support.wheels import Wheel, make_wheel
from tests.tables import documents, making, record, replay
from tests.tables.__main__ import main
from tests.tables.record import Record

BUILDS = """
PYTORCH_RELEASES_CODE_CC: dict[str, set[int]] = {
    "13.2": {75, 80, 120},
    "14.0": {"x86_64": {80, 120}, "aarch64": {90, 110}},
}
"""
LIBRARY = b"\x7fELF..sm_75 sm_80 sm_120 compute_120\0..numpy._core.multiarray\0"


def torch(
    directory: Path,
    version: str,
    *,
    cuda: str = "13.2",
    python: str = "cp314-cp314",
    requires_python: str = ">=3.12",
    platform: str = "manylinux_2_28_x86_64",
) -> Wheel:
    """A wheel of torch with those parts that tell of it."""
    label = version + "+cu" + cuda.replace(".", "")
    return make_wheel(
        directory,
        "torch",
        version,
        files={
            "torch/version.py": f"__version__ = '{label}'\ncuda: Optional[str] = '{cuda}'\n",
            "torch/cuda/__init__.py": BUILDS,
            "torch/lib/libtorch_python.so": LIBRARY,
            "torch/lib/libtorch_cuda.so": random.Random(99).randbytes(3 << 20),
        },
        requires=('triton==9.1.0; platform_system == "Linux"', "filelock"),
        requires_python=requires_python,
        tags=(f"{python}-{platform}",),
    )


def companion(directory: Path, name: str, version: str, needs: str) -> Wheel:
    """A wheel of torchvision or torchaudio."""
    files = {f"{name}/version.py": f"__version__ = '{version}+cu132'\n"}
    return make_wheel(
        directory, name, version, files=files, requires=(needs,), tags=("cp314-cp314-manylinux_2_28_x86_64",)
    )


@pytest.fixture
def wheels(tmp_path: Path) -> list[Wheel]:
    """A torch that does not exist, with its companions."""
    folder = tmp_path / "files"
    return [
        torch(folder, "2.99.0"),
        companion(folder, "torchvision", "0.99.0", "torch==2.99.0"),
        companion(folder, "torchaudio", "2.99.0", "torch==2.99.0"),
        make_wheel(folder, "triton", "9.1.0", tags=("cp312-abi3-manylinux_2_28_x86_64",)),
        make_wheel(folder, "numpy", "2.9.1", tags=("cp314-cp314-manylinux_2_28_x86_64",)),
    ]


class Place:
    """A record, documents that have no torch, and a folder for tables."""

    def __init__(self, root: Path) -> None:
        self.record, self.tables, self.documents = root / "record.json", root / "tables", root / "documents.json"
        self.tables.mkdir()
        self.record.write_text(record.text(Record(read="2000-01-01")))
        own = documents.load()
        empty = {"releases": (), "variants": (), "abi": (), "conda": (), "companions": ()}
        self.documents.write_text(
            record.text({**{name: getattr(own, name) for name in own.__struct_fields__}, **empty})
        )

    def run(self, *options: str) -> int:
        """Run the program as ``make data`` does."""
        places = ("--record", str(self.record), "--documents", str(self.documents), "--tables", str(self.tables))
        return main([*places, *options])

    def torch(self) -> table_rows.TorchTables:
        """The table of torch releases."""
        path = self.tables / "torch_releases.json"
        return from_json(path.read_bytes(), table_rows.TorchTables, source=str(path))

    def contents(self) -> dict[str, bytes]:
        """Every file that was written."""
        return {path.name: path.read_bytes() for path in (self.record, *self.tables.iterdir())}


def test_the_tables_are_those_that_the_record_and_the_documents_give() -> None:
    made = making.files(record.load(), documents.load())
    assert {name: tables.read_data_file(name).decode() for name in made} == made


def test_a_release_that_nobody_has_heard_of_is_read_from_its_wheel(tmp_path: Path, wheels: list[Wheel]) -> None:
    place = Place(tmp_path)
    write_index(tmp_path, wheels)
    with serve(tmp_path) as index:
        assert place.run("--index", index.url) == 0
    made = place.torch()
    (row,) = made.releases
    assert (row.version, row.torchvision, row.torchaudio) == ("2.99.0", "0.99.0", "2.99.0")
    assert (row.triton, row.requires_python) == ("triton==9.1.0", ">=3.12")
    assert made.default_wheels[0].variants == {"linux_x86_64": "cu132"}
    builds = {row.variant: row for row in made.variants}
    assert (builds["cu132"].published, builds["cu132"].arch_linux_x86_64) == (True, ("7.5", "8.0", "12.0"))
    assert builds["cu132"].ptx_linux_x86_64
    # what it lists of other builds is said, and not taken for published
    assert (builds["cu140"].published, builds["cu140"].arch_linux_aarch64) == (False, ("9.0", "11.0"))
    assert made.abi[0].numpy_abi == {"linux_x86_64": 2}
    assert made.triton[0].python == {"linux_x86_64": ("3.14",)}
    assert all(item.source for table in (made.releases, made.variants, made.companions) for item in table)


def test_only_what_is_new_is_asked_and_the_files_stay_the_same(tmp_path: Path, wheels: list[Wheel]) -> None:
    place = Place(tmp_path)
    write_index(tmp_path, wheels)
    with serve(tmp_path) as index:
        assert place.run("--index", index.url) == 0
        once = place.contents()
        # most of the wheel of torch is a library that tells nothing
        ranges = [seen.range or "" for seen in asked_for_wheels(index) if "/torch-" in seen.path]
        ends = [tuple(map(int, text.removeprefix("bytes=").split("-"))) for text in ranges]
        assert sum(last - first + 1 for first, last in ends) < wheels[0].size
        index.seen.clear()
        assert place.run("--index", index.url) == 0
        assert asked_for_wheels(index) == []
        assert place.contents() == once
        write_index(tmp_path, [*wheels, companion(tmp_path / "files", "torchvision", "0.99.1", "torch==2.99.0")])
        assert place.run("--index", index.url) == 0
        assert {seen.path.rpartition("/")[2].split("-")[1] for seen in asked_for_wheels(index)} == {"0.99.1"}
    assert place.torch().releases[0].torchvision == "0.99.1"


def asked_for_wheels(index: IndexServer) -> list[Seen]:
    """Requests for parts of wheels."""
    return [seen for seen in index.seen if seen.path.endswith(".whl") and seen.method == "GET"]


def test_a_run_that_may_not_ask_on_keeps_what_it_has(
    tmp_path: Path, wheels: list[Wheel], capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path)
    write_index(tmp_path, wheels)
    with serve(tmp_path) as index:
        assert place.run("--index", index.url, "--requests", "8") == 1
        told = capsys.readouterr().err
        assert "8 requests were made; run it again for the rest" in told
        assert list(place.tables.iterdir()) == []
        kept = {wheel.contents.filename for wheel in record.load(place.record).wheels}
        assert wheels[0].path.name in kept
        assert place.run("--index", index.url) == 0
    assert place.torch().releases


def test_the_listing_of_another_index_tells_which_builds_exist(tmp_path: Path, wheels: list[Wheel]) -> None:
    place, other = Place(tmp_path), tmp_path / "other"
    write_index(tmp_path, wheels)
    tags = ("cp314-cp314-manylinux_2_28_x86_64",)
    write_index(other, [make_wheel(other / "files", "torch", "2.99.0+cu140", tags=tags)])
    with serve(tmp_path) as index, serve(other) as builds:
        assert place.run("--index", index.url) == 0
        assert place.run("--listing", f"the index of builds={builds.url}") == 0
        first = place.contents()
        assert place.run("--listing", f"the index of builds={builds.url}") == 0
        assert place.contents() == first
    (build,) = [row for row in place.torch().variants if row.variant == "cu140"]
    assert (build.published, build.platforms, build.python) == (True, ("linux_x86_64",), ("3.14",))
    assert build.arch_linux_x86_64 == ("8.0", "12.0")
    assert build.source[-1] == "listing: files of torch on the index of builds"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PYTORCH_RELEASES_CODE_CC = {",
        "PYTORCH_RELEASES_CODE_CC = {\n__import__('os').getcwd(): 1\n}",
        "PYTORCH_RELEASES_CODE_CC = {\n'13.0': 'all'\n}",
        "PYTORCH_RELEASES_CODE_CC = {\n" + "[" * 9000 + "\n}",
    ],
)
def test_a_list_of_builds_that_is_none_gives_none(text: str) -> None:
    assert torch_wheel.builds(text) == {}


@pytest.mark.long
def test_former_tables_never_promise_what_the_next_torch_does_not_hold() -> None:
    results = replay.replay()
    assert len(results) == replay.RELEASES
    assert [text for row in results for text in row.wrong if row.wrong_fits] == []
    right, asked = sum(row.right.total() for row in results), sum(row.asked.total() for row in results)
    assert right >= 0.95 * asked
    assert replay.table(results) in replay.PAGE.read_text(encoding="utf-8")


def test_a_torch_without_a_companion_ends_the_run(
    tmp_path: Path, wheels: list[Wheel], capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path)
    write_index(tmp_path, [wheel for wheel in wheels if wheel.name != "torchvision"])
    with serve(tmp_path) as index:
        assert place.run("--index", index.url) == 1
    assert "goes with torch 2.99.0" in capsys.readouterr().err
    assert list(place.tables.iterdir()) == []


def test_of_a_list_for_all_machines_counts_what_the_own_wheel_has(tmp_path: Path, wheels: list[Wheel]) -> None:
    place = Place(tmp_path)
    with_more = BUILDS.replace('"14.0": {"x86_64": {80, 120}, "aarch64": {90, 110}}', '"14.0": {70, 80, 90, 120}')
    files: dict[str, str | bytes] = {
        "torch/version.py": "__version__ = '2.99.0+cu132'\ncuda = '13.2'\n",
        "torch/cuda/__init__.py": with_more,
        "torch/lib/libtorch_python.so": LIBRARY,
    }
    folder = tmp_path / "another"
    tags = ("cp314-cp314-manylinux_2_28_x86_64",)
    own = make_wheel(folder, "torch", "2.99.0", files=files, requires_python=">=3.12", tags=tags)
    (tmp_path / "files" / own.path.name).write_bytes(own.path.read_bytes())
    write_index(tmp_path, [own, *wheels[1:]])
    with serve(tmp_path) as index:
        assert place.run("--index", index.url) == 0
    (build,) = [row for row in place.torch().variants if row.variant == "cu140"]
    assert (build.arch_linux_x86_64, build.arch_linux_aarch64) == (("8.0", "12.0"), None)
