"""Breaks conda environments in the ways in which they break, for real."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.conda.room import Room, record_of
from tests.gallery.repair_gallery.conda.files import real_path, records
from tests.support.venvs import uv
from tests.support.wheels import Wheel


def site_packages(prefix: Path) -> Path:
    """Where Python packages are."""
    found = list((prefix / "lib").glob("python3.*/site-packages"))
    assert len(found) == 1, found
    return found[0]


def files_of(prefix: Path, package: str, ending: str = "") -> list[Path]:
    """Files of a package's record whose path ends so."""
    minor = site_packages(prefix).parent.name.removeprefix("python")
    record = next(item for item in records(prefix) if item["name"] == package)
    paths = [prefix / real_path(item["_path"], minor) for item in record["paths_data"]["paths"]]
    found = [path for path in paths if path.as_posix().endswith(ending)]
    assert found, f"{package} has no file that ends with {ending}"
    return found


def delete(prefix: Path, package: str, ending: str = "") -> list[Path]:
    """Delete files of a package; its record still lists them."""
    gone = files_of(prefix, package, ending)
    for path in gone:
        path.unlink()
    return gone


def edit_in_place(prefix: Path, package: str, ending: str, more: str = "\n# edited\n") -> Path:
    """Append to a file through its hard link, so that the package cache is edited as well."""
    (file,) = files_of(prefix, package, ending)
    assert file.stat().st_nlink > 1, f"{file} is no hard link"
    with file.open("a", encoding="utf-8") as opened:
        opened.write(more)
    return file


def cut_off_in_place(prefix: Path, package: str, ending: str) -> Path:
    """Cut a file in half through its hard link, so that the package cache gives no better one."""
    (file,) = files_of(prefix, package, ending)
    assert file.stat().st_nlink > 1, f"{file} is no hard link"
    os.truncate(file, file.stat().st_size // 2)
    return file


def duplicate_metadata(prefix: Path, distribution: str, version: str) -> Path:
    """Leave a second dist-info of another version, as an interrupted upgrade does."""
    (found,) = site_packages(prefix).glob(f"{distribution}-*.dist-info")
    ghost = found.with_name(f"{distribution}-{version}.dist-info")
    shutil.copytree(found, ghost)
    metadata = ghost / "METADATA"
    lines = metadata.read_text(encoding="utf-8").splitlines(keepends=True)
    metadata.write_text("".join(f"Version: {version}\n" if line.startswith("Version:") else line for line in lines))
    (ghost / "RECORD").unlink()
    return ghost


def pip_over_conda(room: Room, prefix: Path, wheels: Sequence[Wheel], *, beside: bool = False) -> None:
    """``pip install`` of wheels: it removes conda's copy but for its record, or, `beside`, writes over it.

    An environment without pip gets them by uv, whose effect is the same.
    """
    python, paths = str(prefix / "bin" / "python"), [str(wheel.path) for wheel in wheels]
    more = ["--no-deps", "--no-index"]
    if (prefix / "bin" / "pip").exists():
        command = [python, "-m", "pip", "install", *more, *(["--ignore-installed"] if beside else []), *paths]
    else:
        assert not beside, "uv cannot write over a distribution without removing it"
        command = [uv(), "pip", "install", "--quiet", "--no-config", "--python", python, *more, *paths]
    done = subprocess.run(command, env=room.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def corrupt_record(prefix: Path, package: str) -> Path:
    """Cut a record in the middle of its JSON."""
    record = record_of(prefix, package)
    text = record.read_text(encoding="utf-8")
    record.write_text(text[: len(text) // 2], encoding="utf-8")
    return record


def lose_history(prefix: Path) -> None:
    """Delete the history, by which conda knows an environment as one."""
    (prefix / "conda-meta" / "history").unlink()
