"""Distributions of an environment, duplicates and leftovers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envmedic.errors import NotAnEnvironment
from envmedic.model.facts import Distribution, Leftover
from envmedic.probe.packages import distributions, leftovers
from tests.probe.prefixes import add_distribution, make_prefix, site


def scan(prefix: Path) -> list[Distribution]:
    return [item.distribution for item in distributions.scan(site(prefix), prefix).installed]


def debris(prefix: Path) -> tuple[Leftover, ...]:
    return leftovers.find([distributions.scan(site(prefix), prefix)], prefix)


def test_everything_about_a_wheel_is_read(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(
        site(prefix),
        "Torch_Vision",
        "0.20.1+cu124",
        files={"torchvision/__init__.py": "12345"},
        metadata="Requires-Dist: torch (==2.5.1)\nRequires-Python: >=3.9\n",
        extra={
            "INSTALLER": "uv\n",
            "REQUESTED": "",
            "WHEEL": "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n",
            "direct_url.json": '{"url": "https://u:p@h/x.whl", "archive_info": {"hash": "sha256=00"}}',
        },
    )
    (found,) = scan(prefix)
    assert found.name == "torch-vision"
    assert (found.version, found.local, found.public) == ("0.20.1+cu124", "cu124", "0.20.1")
    assert found.owner == "uv"
    assert found.origin.kind == "archive"
    assert found.origin.url == "https://***@h/x.whl"
    assert found.requested
    assert found.requires == ("torch==2.5.1",)
    assert found.requires_python == ">=3.9"
    assert found.tags == ("cp311-cp311-linux_x86_64",)
    assert found.import_names == ("torchvision",)
    assert found.size_bytes == 5
    assert found.site == "lib/python3.11/site-packages"
    assert found.metadata_path == "lib/python3.11/site-packages/Torch_Vision-0.20.1+cu124.dist-info"


def test_origin_is_the_index_when_an_installer_left_no_direct_url(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "a", "1", extra={"INSTALLER": "pip"})
    add_distribution(site(prefix), "b", "1", extra={"INSTALLER": "conda"})
    add_distribution(site(prefix), "c", "1")
    assert [(item.owner, item.origin.kind) for item in scan(prefix)] == [
        ("pip", "index"), ("conda", "conda"), ("other", "unknown"),
    ]  # fmt: skip


def test_editable_by_hook_and_by_egg_link(tmp_path: Path) -> None:
    prefix, source = make_prefix(tmp_path / "env"), tmp_path / "my source"
    add_distribution(site(prefix), "hooked", "1")
    (site(prefix) / "__editable__.hooked-1.pth").write_text(str(source))
    (source / "legacy_pkg.egg-info").mkdir(parents=True)
    (source / "legacy_pkg.egg-info" / "PKG-INFO").write_text("Name: legacy-pkg\nVersion: 3.1\n")
    (source / "legacy_pkg.egg-info" / "top_level.txt").write_text("legacy\n")
    (site(prefix) / "legacy-pkg.egg-link").write_text(f"{source}\n.")
    hooked, legacy = scan(prefix)
    assert hooked.origin.kind == "editable"
    assert (legacy.name, legacy.version, legacy.import_names) == ("legacy-pkg", "3.1", ("legacy",))
    assert legacy.origin.url == "file://" + str(source).replace(" ", "%20")


def test_egg_link_whose_source_is_gone_has_an_unknown_version(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "gone.egg-link").write_text("/nonexistent\n.")
    (found,) = scan(prefix)
    assert (found.name, found.version) == ("gone", distributions.UNKNOWN_VERSION)


def test_egg_info_directory_and_file(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    folder = site(prefix) / "torch-2.0.0-py3.11.egg-info"
    folder.mkdir()
    (folder / "PKG-INFO").write_text("Name: torch\nVersion: 2.0.0\n")
    (folder / "requires.txt").write_text("filelock\nsympy\n\n[extra]\nno\n")
    (folder / "installed-files.txt").write_text("../torch/__init__.py\n")
    (site(prefix) / "old-1.2.egg-info").write_text("Name: old\nVersion: 1.2\n")
    old, torch = scan(prefix)
    assert (old.name, old.version, old.has_record) == ("old", "1.2", False)
    assert (torch.requires, torch.import_names, torch.has_record) == (("filelock", "sympy"), ("torch",), True)


def test_duplicates_are_found_by_normalised_name_across_purelib_and_platlib(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    platlib = prefix / "lib64" / "python3.11" / "site-packages"
    add_distribution(site(prefix), "Torch.Vision", "0.18.1")
    add_distribution(platlib, "torch-vision", "0.20.1")
    add_distribution(platlib, "numpy", "2.0")
    found = [*scan(prefix), *(item.distribution for item in distributions.scan(platlib, prefix).installed)]
    assert distributions.duplicates(found) == ("torch-vision",)


def test_damaged_record_is_noted_and_absent_files_do_not_matter(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    info = add_distribution(site(prefix), "a", "1")
    (info / "RECORD").write_bytes(b"absent.py,sha256=x,3\nbroken line\n")
    (found,) = scan(prefix)
    assert (found.size_bytes, found.record_error) == (3, "1 lines are not 'path,hash,size'")


def test_binary_metadata_takes_name_and_version_from_the_directory(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    info = add_distribution(site(prefix), "a", "1.5")
    (info / "METADATA").write_bytes(os.urandom(2048))
    (found,) = scan(prefix)
    assert (found.name, found.version) == ("a", "1.5")


def test_what_cannot_be_read_is_a_leftover_not_an_error(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "torchvision-0.18.1.dist-info").mkdir()
    os.mkfifo(site(prefix) / "pipe-1.egg-info")
    cycle = site(prefix) / "loop-2.dist-info"
    cycle.symlink_to(cycle)
    (site(prefix) / b"caf\xe9-1.dist-info".decode("utf-8", "surrogateescape")).mkdir()
    assert scan(prefix) == []
    found = [item for item in debris(prefix) if item.kind == "empty-dist-info"]
    assert {item.name for item in found} == {"torchvision", "pipe", "loop", "caf\udce9"}


def test_renamed_directories_of_an_interrupted_uninstall(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "torch", "2.5.1")
    for name in ("~orch", "~-rchvision", "~orch-2.4.0.dist-info", "~orchvision.libs", "~other"):
        (site(prefix) / name).mkdir()
    named = {Path(item.path).name: item.name for item in debris(prefix) if item.kind == "tilde"}
    assert named == {
        "~orch": "torch",
        "~-rchvision": "torchvision",
        "~orch-2.4.0.dist-info": "torch",
        "~orchvision.libs": "torchvision",
        "~other": None,
    }


def test_family_packages_that_nothing_brings_are_orphans(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "torch", "2.5.1", files={"torch/__init__.py": "", "torchgen/__init__.py": ""})
    (site(prefix) / "torchvision").mkdir()
    (site(prefix) / "torchvision" / "__init__.py").write_text("")
    (site(prefix) / "torchvision.libs").mkdir()
    (site(prefix) / "torchaudio" / "__pycache__").mkdir(parents=True)
    found = {(item.kind, Path(item.path).name, item.detail) for item in debris(prefix)}
    assert found == {
        ("orphan-package", "torchaudio", "holds byte code only"),
        ("orphan-package", "torchvision", "no installed distribution brings it"),
        ("orphan-library", "torchvision.libs", "no installed distribution brings it"),
    }


def test_bundled_library_of_an_older_version_is_an_orphan(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    files = {"torchvision/__init__.py": "", "torchvision.libs/libpng16.new.so.16": ""}
    add_distribution(site(prefix), "torchvision", "0.20.1", files=files)
    (site(prefix) / "torchvision.libs" / "libpng16.old.so.16").write_text("")
    assert [Path(item.path).name for item in debris(prefix)] == ["libpng16.old.so.16"]


def test_packages_that_conda_records_are_no_orphans(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "torch").mkdir()
    (site(prefix) / "torchvision").mkdir()
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0.json").write_text("{}")
    assert [item.name for item in debris(prefix)] == ["torchvision"]


def test_states_are_sorted_and_complete(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "b", "2", extra={"INSTALLER": "uv"})
    add_distribution(site(prefix), "a", "1", extra={"INSTALLER": "pip"})
    found = [(item.name, item.version, item.owner) for item in distributions.states(prefix)]
    assert found == [("a", "1", "pip"), ("b", "2", "uv")]


def test_states_of_what_is_no_environment_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotAnEnvironment):
        distributions.states(tmp_path)


def test_states_are_what_a_scan_finds(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "wheel", "1", extra={"INSTALLER": "pip\n"})
    (site(prefix) / "~heel-0.9.dist-info").mkdir()
    (site(prefix) / "empty-1.dist-info").mkdir()
    (site(prefix) / "Old_Style-2.0-py3.11.egg-info").write_text("Metadata-Version: 1.0\n")
    (site(prefix) / "folder-3.egg-info").mkdir()
    (site(prefix) / "folder-3.egg-info" / "PKG-INFO").write_text("Name: folder\nVersion: 3\n")
    (tmp_path / "source" / "linked.egg-info").mkdir(parents=True)
    (tmp_path / "source" / "linked.egg-info" / "PKG-INFO").write_text("Name: linked\nVersion: 4\n")
    (site(prefix) / "linked.egg-link").write_text(f"{tmp_path}/source\n.\n")
    scanned = [item.distribution for item in distributions.scan(site(prefix), prefix).installed]
    found = [(item.name, item.version, item.owner) for item in distributions.states(prefix)]
    assert found == sorted((item.name, item.version, item.owner) for item in scanned)
    assert [name for name, _, _ in found] == ["folder", "linked", "old-style", "wheel"]
