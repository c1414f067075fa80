"""Removing packages and putting others in their place with py-rattler, made safe for what conda made.

py-rattler removes by the paths in a record, which conda writes otherwise for noarch packages; it leaves byte code
that Python wrote, which would be taken for that of the new files; and its records of what it installs name the
place where they were extracted.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envmedic.conda_meta import records as meta
from envmedic.installers.conda.helper import rattler_records
from envmedic.installers.conda.helper.writing import replace_json

if TYPE_CHECKING:
    from rattler.repo_data.record import RepoDataRecord


def place(request: dict[str, Any]) -> dict[str, Any]:
    """Carry the change out at ``prefix`` with archives that lie on this machine; nothing is downloaded."""
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

    values = dict(zip(current, rattler_records.loaded(current.values()), strict=True))
    desired: list[RepoDataRecord] = [value for where, value in values.items() if where not in gone]
    desired += rattler_records.loaded(
        package["metadata"] | {"url": package["archive"]} for package in request["packages"]
    )
    await install(
        desired,
        prefix,
        cache_dir=work / "packages",
        installed_packages=list(values.values()),
        reinstall_packages={package["name"] for package in request["packages"]},
        execute_link_scripts=False,
        show_progress=False,
        alternative_target_prefix=request["final"],
    )


def _correct(path: Path, package: Mapping[str, Any]) -> None:
    """Let a record that py-rattler wrote say what a lasting one must.

    Of a symbolic link it gives the hash of something else than the content, which `conda doctor` takes for damage.
    """
    document = json.loads(path.read_bytes())
    document |= {"url": package["url"], "channel": package["channel"]}
    for entry in document["paths_data"]["paths"]:
        if entry.get("path_type") == "softlink":
            entry.pop("sha256_in_prefix", None)
    replace_json(path, document)


def _remove_byte_code(prefix: Path, installed: meta.Records[meta.PrefixRecord], gone: set[str]) -> None:
    """Delete the byte code of modules that go, which Python may have written and no record of what stays lists.

    Python takes it for that of a new module with the time and size of the old one.
    """
    folders: dict[str, set[str]] = {}
    for path in _paths(installed, gone):
        folder, _, name = path.rpartition("/")
        if name.endswith(".py"):
            folders.setdefault(folder, set()).add(name[:-3])
    kept = set(_paths(installed, set(installed.packages) - gone)) if folders else set()
    for folder, stems in folders.items():
        _remove_from(prefix, folder, stems, kept)


def _paths(installed: meta.Records[meta.PrefixRecord], chosen: Iterable[str]) -> Iterable[str]:
    for where in chosen:
        for path, _ in installed.packages[where].files(installed.site_packages):
            yield path


def _remove_from(prefix: Path, folder: str, stems: set[str], kept: set[str]) -> None:
    cache = f"{folder}/__pycache__" if folder else "__pycache__"
    try:
        names = os.listdir(prefix / cache)  # noqa: PTH208  # names only
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if name.endswith(".pyc") and name.partition(".")[0] in stems and f"{cache}/{name}" not in kept:
            (prefix / cache / name).unlink()
    if not os.listdir(prefix / cache):  # noqa: PTH208
        (prefix / cache).rmdir()
