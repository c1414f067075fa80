"""Removal and installation of packages by py-rattler, made safe for environments of conda.

py-rattler removes files by the paths in a record, and conda writes other paths for noarch packages. It leaves byte code
that Python wrote, which Python would take for that of the new files. Its records of new packages name the directory
from which they were extracted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envmedic.conda_meta import records as meta
from envmedic.installers.conda.helper import rattler_records
from envmedic.installers.conda.helper.writing import replace_json

if TYPE_CHECKING:
    from rattler.repo_data.record import RepoDataRecord


def place(request: dict[str, Any]) -> dict[str, Any]:
    """Carry the change out at ``prefix`` with local archives; nothing is downloaded."""
    prefix, work = Path(request["prefix"]), Path(request["work"])
    installed = meta.read(prefix)
    if installed.damaged:
        return {"damaged": installed.damaged}
    gone = set(request["remove"])
    _remove_byte_code(prefix, installed, gone)
    documents = {where: json.loads((prefix / where).read_bytes()) for where in installed.packages}
    current = {where: meta.mapped(document, installed.site_packages) for where, document in documents.items()}
    asyncio.run(_install(request, prefix, work, current, gone))
    for package in request["packages"]:
        _correct(prefix / package["record"], package)
    return {"placed": len(request["packages"])}


async def _install(
    request: dict[str, Any], prefix: Path, work: Path, current: Mapping[str, dict[str, Any]], gone: set[str]
) -> None:
    from rattler.install.installer import install

    values = dict(zip(current, rattler_records.load_records(current.values()), strict=True))
    desired: list[RepoDataRecord] = [value for where, value in values.items() if where not in gone]
    desired += rattler_records.load_records(
        package["metadata"] | {"url": package["archive"]} for package in request["packages"]
    )
    await install(
        desired,
        prefix,
        cache_dir=work / "packages",
        installed_packages=list(values.values()),
        # Named explicitly: py-rattler skips a package whose record is already the wanted one.
        reinstall_packages={package["name"] for package in request["packages"]},
        # A script could change files outside of the clone, and no undo would bring those back.
        execute_link_scripts=False,
        show_progress=False,
        alternative_target_prefix=request["final"],
    )


def _correct(path: Path, package: Mapping[str, Any]) -> None:
    """Correct a record that py-rattler wrote: original address, and no hash for symbolic links.

    For a symbolic link it records a hash that is not of the content, which `conda doctor` reports as damage.
    """
    document = json.loads(path.read_bytes())
    document |= {"url": package["url"], "channel": package["channel"]}
    for entry in document["paths_data"]["paths"]:
        if entry.get("path_type") == "softlink":
            entry.pop("sha256_in_prefix", None)
    replace_json(path, document)


def _remove_byte_code(prefix: Path, installed: meta.Records[meta.PrefixRecord], gone: set[str]) -> None:
    """Delete byte code of removed modules that no remaining record lists; Python itself may have written it.

    Python would use it for a new module that has the time and size of the old one.
    """
    folders: dict[str, set[str]] = {}
    for path in _paths(installed, gone):
        folder, _, name = path.rpartition("/")
        if name.endswith(".py"):
            folders.setdefault(folder, set()).add(name[:-3])
    # Two packages may share a directory, and a name in it, with byte code listed by the one that stays.
    kept = set(_paths(installed, set(installed.packages) - gone)) if folders else set()
    for folder, stems in folders.items():
        _remove_from(prefix, folder, stems, kept)


def _paths(installed: meta.Records[meta.PrefixRecord], chosen: Iterable[str]) -> Iterable[str]:
    for where in chosen:
        for path, _ in installed.packages[where].files(installed.site_packages):
            yield path


def _remove_from(prefix: Path, folder: str, stems: set[str], kept: set[str]) -> None:
    cache = f"{folder}/__pycache__" if folder else "__pycache__"  # as records write it
    try:
        names = [path.name for path in (prefix / cache).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if name.endswith(".pyc") and name.partition(".")[0] in stems and f"{cache}/{name}" not in kept:
            (prefix / cache / name).unlink()
    if not any((prefix / cache).iterdir()):
        (prefix / cache).rmdir()
