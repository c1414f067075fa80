"""Rooms in which conda environments are made, both ways: by py-rattler and by conda.

Each room has a home, configuration, package cache and environments of its own, so what a test does to hard links
reaches nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SUBDIR = "linux-64"
_RATTLER = """
import asyncio, json, os, sys
from rattler import Channel, MatchSpec, install, solve
from rattler.virtual_package import Override, VirtualPackage, VirtualPackageOverrides

async def main(asked):
    overrides = VirtualPackageOverrides()
    overrides.cuda = Override.string(asked["cuda"])
    virtual = VirtualPackage.detect(overrides)
    if not asked["cuda"]:
        virtual = [one for one in virtual if not str(one).startswith("__cuda")]
    records = await solve(
        [Channel(url) for url in asked["channels"]], asked["specs"], platforms=["linux-64", "noarch"],
        virtual_packages=virtual,
    )
    await install(
        records, asked["prefix"], cache_dir=asked["cache"], show_progress=False, execute_link_scripts=False,
        requested_specs=[MatchSpec(spec)._match_spec for spec in asked["specs"]],
    )

asyncio.run(main(json.loads(sys.argv[1])))
sys.stdout.flush()
os._exit(0)
"""


@dataclass(frozen=True)
class Room:
    """A place for environments, with what conda reads kept inside it."""

    root: Path
    channels: tuple[str, ...]
    """URLs, the first one strongest."""
    cuda: str = "12.2"
    """What ``__cuda`` says; empty for a machine without a GPU."""

    @property
    def home(self) -> Path:
        """Home directory of every tool in this room."""
        return self.root / "home"

    @property
    def environment(self) -> dict[str, str]:
        """Variables for conda, py-rattler and envmedic: everything private, nothing from whoever runs the tests."""
        names = ("PATH", "LANG", "LC_ALL", "TMPDIR", "COVERAGE_PROCESS_START")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_DATA_HOME": str(self.home / ".local/share"),
            "XDG_STATE_HOME": str(self.home / ".local/state"),
            "CONDARC": str(self.condarc),
            "CONDA_PKGS_DIRS": str(self.root / "pkgs"),
            "CONDA_ENVS_DIRS": str(self.envs),
            "CONDA_OVERRIDE_CUDA": self.cuda,
            "RATTLER_CACHE_DIR": str(self.root / "rattler"),
            "PYTHONNOUSERSITE": "1",
        }

    @property
    def condarc(self) -> Path:
        """The only configuration that conda reads here."""
        return self.root / "condarc"

    @property
    def envs(self) -> Path:
        """Where environments are."""
        return self.root / "envs"

    def by_rattler(self, name: str, specs: Sequence[str]) -> Path:
        """An environment made by py-rattler: noarch paths are real ones, the history is empty. Returns its prefix."""
        prefix = self.envs / name
        asked = {
            "channels": self.channels,
            "specs": list(specs),
            "cuda": self.cuda,
            "prefix": str(prefix),
            "cache": str(self.root / "rattler"),
        }
        command = [sys.executable, "-I", "-c", _RATTLER, json.dumps(asked)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return prefix


def make_room(root: Path, channels: Sequence[str], *, cuda: str = "12.2") -> Room:
    """An empty room with a configuration that names `channels`."""
    room = Room(root, tuple(channels), cuda)
    room.home.mkdir(parents=True)
    room.envs.mkdir()
    lines = ["channels:", *(f"  - {url}" for url in channels), "default_channels: []", "solver: classic"]
    lines += ["offline: true", "always_yes: true", "notify_outdated_conda: false", "report_errors: false"]
    room.condarc.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return room


def record_of(prefix: Path, name: str) -> Path:
    """The record of the installed package of that name."""
    found = [path for path in (prefix / "conda-meta").glob("*.json") if _name(path) == name]
    assert len(found) == 1, f"{name}: {found}"
    return found[0]


def _name(record: Path) -> str:
    return record.stem.rsplit("-", 2)[0]
