"""The data files: consistent, sourced, readable as diffs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envmedic.compat import tables

FILES = ("torch_releases.json", "cuda_driver.json", "gpu_arch.json", "extensions.json", "conda_packages.json")
PYTHON = re.compile(r"3\.\d{1,2}t?|py3")
VERSIONED = {
    "version",
    "cuda",
    "torch",
    "cc",
    "code",
    "python",
    "driver_linux",
    "minor_compatibility_linux",
    "first",
    "last",
}


def load(name: str) -> dict[str, object]:
    document = json.loads(tables.read_data_file(name))
    assert isinstance(document, dict)
    return document


def values(node: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Every scalar with the key it stands under."""
    if isinstance(node, dict):
        for name, child in node.items():
            yield from values(child, name)
    elif isinstance(node, list):
        for child in node:
            yield from values(child, key)
    else:
        yield key, node


@pytest.mark.parametrize("name", FILES)
def test_every_row_has_a_source(name: str) -> None:
    for table, rows in load(name).items():
        if table == "meta":
            continue
        assert isinstance(rows, list)
        for row in rows:
            assert row.get("source"), (name, table, row)


@pytest.mark.parametrize("name", FILES)
def test_versions_are_strings(name: str) -> None:
    wrong = [(key, value) for key, value in values(load(name)) if key in VERSIONED and isinstance(value, int | float)]
    assert not [item for item in wrong if not isinstance(item[1], bool)]


@pytest.mark.parametrize("name", FILES)
def test_every_row_is_one_line(name: str) -> None:
    text = tables.read_data_file(name).decode()
    rows = sum(
        len(rows) for rows in load(name).values() if isinstance(rows, list) and rows and isinstance(rows[0], dict)
    )
    assert sum(line.startswith("  {") for line in text.splitlines()) == rows
    assert text.endswith("}\n")


@pytest.mark.parametrize("name", FILES)
def test_hosts_of_package_registries_do_not_appear(name: str) -> None:
    text = tables.read_data_file(name).decode().lower()
    assert "pypi" not in text
    assert "pythonhosted" not in text
    assert "anaconda.org" not in text


def test_every_release_has_variants_and_wheels_where_the_default_index_carries_it() -> None:
    with_variants = {torch for torch, _ in tables.variants()}
    with_tags = {torch for torch, platform in tables.python_wheels() if platform == "linux_x86_64"}
    for version, release in tables.releases().items():
        assert version in with_variants
        assert (version in with_tags) == (not release.lts), version


def test_the_default_build_is_a_published_variant_of_its_release() -> None:
    for torch, row in tables.default_wheels().items():
        for platform in ("linux_x86_64", "linux_aarch64"):
            variant = row.variants.get(platform)
            if variant is not None:
                built = tables.variants()[torch, variant]
                assert built.published
                assert platform in built.default_on


def test_recommended_companions_exist_go_with_their_torch_and_are_not_withdrawn() -> None:
    for version, release in tables.releases().items():
        for name in ("torchvision", "torchaudio"):
            row = tables.companions(name)[release.torchvision if name == "torchvision" else release.torchaudio]
            assert version in row.torch
            assert version in row.recommended_for
            assert not row.yanked


def test_what_a_companion_requires_agrees_with_the_torch_releases_it_is_listed_for() -> None:
    for name in ("torchvision", "torchaudio"):
        for row in tables.companions(name).values():
            for torch in row.torch:
                assert torch in tables.releases()
                if row.spec is not None and not row.yanked:
                    assert SpecifierSet(row.spec).contains(torch), row


def test_exact_pins_end_with_torchvision_0_29_0() -> None:
    rows = tables.companions("torchvision").values()
    loose = {row.version for row in rows if row.spec and not row.spec.startswith("==")}
    assert loose == {"0.29.1", "0.29.2"}
    assert tables.companions("torchvision")["0.29.1"].spec == ">=2.14.0"
    assert tables.companions("torchaudio")["2.11.0"].declared is False


def test_every_triton_requirement_has_a_release_in_the_table() -> None:
    known = [Version(row.version) for row in tables.torch_tables().triton]
    for release in tables.releases().values():
        if release.triton is not None:
            spec = SpecifierSet(release.triton.removeprefix("triton"))
            assert any(spec.contains(version) for version in known), release


def test_the_cuda_version_of_every_variant_is_a_known_toolkit() -> None:
    for row in tables.torch_tables().variants:
        assert (row.cuda is None) == (row.variant == "cpu"), row
        if row.cuda is not None:
            assert row.cuda in tables.toolkits()
            assert row.variant == "cu" + row.cuda.replace(".", "")


def test_architectures_are_known_capabilities_in_ascending_order() -> None:
    known = {row.cc for row in tables.arch_tables().capabilities}
    for row in tables.torch_tables().variants:
        for listed in (row.arch_linux_x86_64, row.arch_linux_aarch64):
            if listed is not None:
                assert set(listed) <= known, row
                assert list(listed) == sorted(listed, key=lambda text: tuple(map(int, text.split("."))))


def test_python_tags_are_python_tags() -> None:
    tags = {tag for row in tables.python_wheels().values() for tag in row.python}
    tags |= {tag for row in tables.torch_tables().variants for tag in row.python or ()}
    tags |= {
        tag
        for name in ("torchvision", "torchaudio")
        for row in tables.companions(name).values()
        for tag in sum(row.python.values(), ())
    }
    assert all(PYTHON.fullmatch(tag) for tag in tags)


def test_the_data_is_loaded_fast_and_once() -> None:
    caches = (tables.torch_tables, tables.cuda_tables, tables.arch_tables)
    best = 1.0
    for _ in range(5):
        for cached in caches:
            cached.cache_clear()
        started = time.perf_counter()
        for cached in caches:
            cached()
        best = min(best, time.perf_counter() - started)
    assert best < 0.03
    assert tables.torch_tables() is tables.torch_tables()
