"""Operations on package files that are not unpacked: scripts, metadata, and a package cache for conda."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

_SCRIPTS = ("-post-link.sh", "-pre-link.sh", "-pre-unlink.sh")


def scripts(request: dict[str, Any]) -> dict[str, Any]:
    """Scripts that an installer would run, by archive."""
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
    """Metadata of each archive (``info/index.json``), by path."""
    return {"about": asyncio.run(_about(request["archives"]))}


async def _about(archives: list[str]) -> dict[str, Any]:
    from rattler.package_streaming import PackageArchive

    found = {}
    for path in archives:
        content = await (await PackageArchive.from_path(path)).read_file("info/index.json")
        found[path] = json.loads(content or b"{}")
    return found


def stock(request: dict[str, Any]) -> dict[str, Any]:
    """Create a package cache in conda's layout from the archives, with their original addresses."""
    folder = Path(request["folder"])
    folder.mkdir(parents=True)
    for package in request["packages"]:
        source, target = Path(package["archive"]), folder / package["filename"]
        try:
            os.link(source, target)
        except OSError:  # another file system or mount, or a file of another owner
            shutil.copyfile(source, target)
    # conda recognises a writable package cache by these files, and urls.txt maps archives to addresses.
    (folder / "urls").touch()
    (folder / "urls.txt").write_text("".join(f"{package['url']}\n" for package in request["packages"]))
    Path(request["explicit"]).write_text("@EXPLICIT\n" + "".join(f"{line}\n" for line in request["lines"]))
    return {"stocked": len(request["packages"])}
