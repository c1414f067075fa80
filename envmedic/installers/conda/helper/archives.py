"""Package files before anything is taken out of them: what they would run, and a cache of them for conda."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

_SCRIPTS = ("-post-link.sh", "-pre-link.sh", "-pre-unlink.sh")


def scripts(request: dict[str, Any]) -> dict[str, Any]:
    """The scripts that an installer would run, by the archive that has them."""
    return {"scripts": asyncio.run(_scripts(request["archives"]))}


async def _scripts(archives: list[str]) -> dict[str, list[str]]:
    from rattler.package_streaming import PackageArchive

    found = {}
    for path in archives:
        entries = (await (await PackageArchive.from_path(path)).paths_json()).paths
        names = [os.fspath(entry.relative_path) for entry in entries]
        own = [name for name in names if name.startswith("bin/.") and name.endswith(_SCRIPTS)]
        if own:
            found[path] = own
    return found


def about(request: dict[str, Any]) -> dict[str, Any]:
    """What each archive says of itself (``info/index.json``), by its path."""
    return {"about": asyncio.run(_about(request["archives"]))}


async def _about(archives: list[str]) -> dict[str, Any]:
    from rattler.package_streaming import PackageArchive

    found = {}
    for path in archives:
        content = await (await PackageArchive.from_path(path)).read_file("info/index.json")
        found[path] = json.loads(content or b"{}")
    return found


def stock(request: dict[str, Any]) -> dict[str, Any]:
    """Make a package cache of conda's with the archives, which are known there by their true addresses."""
    folder = Path(request["folder"])
    folder.mkdir(parents=True)
    for package in request["packages"]:
        source, target = Path(package["archive"]), folder / package["filename"]
        try:
            os.link(source, target)
        except OSError:  # another file system or mount, or a file of another owner
            shutil.copyfile(source, target)
    (folder / "urls").touch()
    (folder / "urls.txt").write_text("".join(f"{package['url']}\n" for package in request["packages"]))
    Path(request["explicit"]).write_text("@EXPLICIT\n" + "".join(f"{line}\n" for line in request["lines"]))
    return {"stocked": len(request["packages"])}
