"""What is in the wheel and in the source archive; that they install is `make test-install`'s to say."""

from __future__ import annotations

import email
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.install.packages import ROOT, complaints, names
from tests.install.rooms import VERSIONS


def test_both_hold_what_they_should_and_nothing_else(packages: tuple[Path, ...]) -> None:
    assert [package.name.removeprefix("envmedic-")[-7:] for package in packages] == ["any.whl", ".tar.gz"]
    assert [complaints(package) for package in packages] == [(), ()]


def test_what_is_missing_and_what_is_too_much_is_found(packages: tuple[Path, ...], tmp_path: Path) -> None:
    wheel, archive = packages
    thin = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(thin, "w") as copy:
        for name in source.namelist():
            if name != "envmedic/py.typed":
                copy.writestr(name, source.read(name))
        copy.writestr("envmedic/__pycache__/x.pyc", b"")
    assert complaints(thin) == ("it lacks envmedic/py.typed", "it holds envmedic/__pycache__/x.pyc")
    fat = tmp_path / archive.name
    secret = tmp_path / "notes.txt"
    secret.touch()
    with tarfile.open(archive) as source_archive, tarfile.open(fat, "w:gz") as copied:
        for item in source_archive.getmembers():
            copied.addfile(item, source_archive.extractfile(item) if item.isfile() else None)
        copied.add(secret, arcname="envmedic-0.1.0/notes.txt")
    assert complaints(fat) == ("it holds notes.txt",)


def test_the_pythons_that_are_named_are_those_that_installs_are_tried_on(packages: tuple[Path, ...]) -> None:
    wheel = packages[0]
    (metadata,) = (name for name in names(wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as opened:
        told = email.message_from_bytes(opened.read(metadata))
    classifiers = told.get_all("Classifier") or []
    versions = [
        item.rpartition(" :: ")[2] for item in classifiers if item.startswith("Programming Language :: Python :: 3.")
    ]
    assert versions == [version for version in VERSIONS if version in versions]
    assert versions[0] == str(told["Requires-Python"]).removeprefix(">=")


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man here")
def test_the_manual_page_is_read_without_a_complaint() -> None:
    done = subprocess.run(
        ["man", "--warnings=w", "-l", str(ROOT / "man" / "envmedic.1")],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "90", "MANPAGER": "cat"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "envmedic apply --log error.log" in done.stdout
    assert "--policy keep-torch|keep-release|keep-cuda-variant|default-index|newest" in done.stdout
