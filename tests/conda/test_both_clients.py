"""Whole changes judged by conda itself: environments made by conda and by py-rattler, changed by either."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.installers.conda.configuration import client, configuration
from envmedic.model.conda import CondaExecutor
from envmedic.model.ports import ApplyOptions
from tests.conda import damage
from tests.conda.changes import Case, carried_out, content, enter, installed
from tests.conda.channel import channels
from tests.conda.client import conda_program
from tests.conda.referee import Referee
from tests.conda.room import Room, make_room
from tests.gallery.repair_gallery.conda.files import scan

GPU = ("python=3.11", "pytorch=2.3", "torchvision", "pytorch-cuda=12.1", "pip")


def make(room: Room, maker: str, specs: tuple[str, ...] = GPU) -> Path:
    return Referee(room).create("env", specs) if maker == "conda" else room.by_rattler("env", specs)


@pytest.mark.conda
@pytest.mark.parametrize("maker", ["conda", "rattler"])
@pytest.mark.parametrize("executor", ["rattler", "conda"])
def test_a_changed_family_stands_before_conda(
    old: Room, maker: str, executor: CondaExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(old, monkeypatch)
    prefix = make(old, maker)
    referee, before = Referee(old), content(prefix)
    complaints = referee.doctor(prefix)
    if executor == "conda":
        monkeypatch.setenv("CONDA_EXE", str(conda_program()))
    case = Case(old, prefix, executor=executor)
    change = case.resolve(
        "pytorch=2.4.1", "torchvision", "pytorch-mutex=1.0=cpu", remove=("pytorch-cuda",), removable=("cuda-*",)
    )
    carried_out(case.apply(change, check="import torch; assert torch.__version__.startswith('2.4.1')"))
    assert {name: installed(prefix).get(name) for name in ("pytorch", "pytorch-cuda", "cuda-cudart")} == {
        "pytorch": "2.4.1 py3.11_cpu_0",
        "pytorch-cuda": None,
        "cuda-cudart": None,
    }
    referee.judge(prefix, before=complaints, names=["python", "pytorch"])
    case.undo()
    assert content(prefix) == before


@pytest.mark.conda
def test_damage_of_what_conda_installed_is_put_right(old: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a hard link, in a noarch package, and in a package with links and the prefix in its files."""
    enter(old, monkeypatch)
    prefix = make(old, "conda", ("python=3.11", "sympy", "openssl"))
    referee = Referee(old)
    complaints = referee.doctor(prefix)
    damage.edit_in_place(prefix, "sympy", "sympy/__init__.py")
    (prefix / "ssl" / "openssl.cnf").unlink()
    case = Case(old, prefix)
    carried_out(case.apply(case.resolve(reinstall=("sympy", "openssl", "python")), check="import sympy"))
    referee.judge(prefix, before=complaints)


@pytest.mark.conda
def test_another_python_stands_before_conda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = make_room(tmp_path / "room", [channels(newer_python=True).url("main")])
    enter(room, monkeypatch)
    prefix = make(room, "conda", ("python=3.11", "sympy", "tqdm"))
    case = Case(room, prefix)
    change = case.resolve("python=3.12")
    carried_out(case.apply(change, check="import sys, sympy, tqdm; assert sys.version_info[:2] == (3, 12)"))
    assert not list((prefix / "lib" / "python3.11").rglob("*.py"))
    assert scan(prefix) == []
    Referee(room).judge(prefix, names=["python", "sympy"], other="filelock")


@pytest.mark.conda
def test_conda_is_refused_what_it_would_spoil(old: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(old, monkeypatch)
    monkeypatch.setenv("CONDA_EXE", str(conda_program()))
    prefix = make(old, "rattler", ("python=3.11",))
    case = Case(old, prefix, executor="conda", options=ApplyOptions(staging="relocate"))
    record = case.apply(case.resolve("tqdm"))
    assert record.failure is not None
    assert record.failure.summary == "conda cannot work in a copy of the environment at another path"
    case.options = ApplyOptions()
    record = case.apply(case.resolve("linked-tool"))
    assert record.failure is not None
    assert "bin/.linked-tool-post-link.sh" in (record.failure.cause or "")
    assert not (prefix / "linked-tool-was-here").exists()


@pytest.mark.conda
def test_files_are_read_as_conda_reads_them(old: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same configuration, once from conda and once from its files."""
    enter(old, monkeypatch)
    prefix = make(old, "rattler", ("python=3.11",))
    (old.home / ".condarc").write_text(
        "channels: [mine, conda-forge]\nchannel_alias: https://user:secret@mirror.example/get\n"
        "custom_channels: {mine: 'https://other.example/t/tk-1234/deep'}\nchannel_priority: strict\n"
        "custom_multichannels: {both: ['https://one.example/a', 'https://two.example/b']}\n"
        "pinned_packages: ['numpy 1.26.*']\nproxy_servers: {https: 'http://proxy.example:3128'}\nssl_verify: false\n"
        f"pkgs_dirs: [{old.root}/more-pkgs]\n"
    )
    (prefix / ".condarc").write_text("channels: [both, defaults]\n")
    old.condarc.write_text(f"channels: ['file://{old.root}/local/']\ndefault_channels: [file:///d/main, file:///d/r]\n")
    by_files = configuration.read(prefix)
    assert by_files.client is None
    monkeypatch.setenv("CONDA_EXE", str(conda_program()))
    by_conda = configuration.read(prefix)
    assert by_conda.client == conda_program()
    assert [item.urls for item in by_conda.sources] == [
        (f"file://{old.root}/local",),
        ("https://one.example/a", "https://two.example/b"),
        ("file:///d/main", "file:///d/r"),
        ("https://other.example/deep/t/tk-1234/mine",),
        ("https://user:secret@mirror.example/get/conda-forge",),
        *[item.urls for item in by_conda.sources[5:]],
    ]
    for field in ("priority", "pinned", "offline", "verify", "proxies"):
        assert getattr(by_files, field) == getattr(by_conda, field), field
    assert [item.urls for item in by_files.sources] == [item.urls for item in by_conda.sources]
    assert set(by_conda.package_folders) >= {old.root / "pkgs"}


@pytest.mark.conda
def test_a_conda_that_is_broken_is_not_needed(old: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(old, monkeypatch)
    broken = tmp_path / "conda"
    broken.write_text("#!/bin/sh\necho 'No module named conda' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CONDA_EXE", str(broken))
    prefix = make(old, "rattler", ("python=3.11",))
    assert client.find(prefix) == broken
    found = configuration.read(prefix)
    assert found.notes == ("`conda config --show` ended with exit status 1: its configuration files were read instead",)
    assert [item.urls for item in found.sources] == [(url,) for url in old.channels]
