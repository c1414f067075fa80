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

_RATTLER = """
import asyncio, json, os, sys
from rattler import Channel, Gateway, MatchSpec, PrefixRecord, install, solve
from rattler.virtual_package import Override, VirtualPackage, VirtualPackageOverrides

def virtual(cuda):
    overrides = VirtualPackageOverrides()
    overrides.cuda = Override.string(cuda)
    found = VirtualPackage.detect(overrides)
    return found if cuda else [one for one in found if not str(one).startswith("__cuda")]

async def main(asked):
    channels, platforms = [Channel(url) for url in asked["channels"]], ["linux-64", "noarch"]
    if asked["force"]:
        meta = os.path.join(asked["prefix"], "conda-meta")
        records = [PrefixRecord.from_path(os.path.join(meta, name)) for name in os.listdir(meta) if name.endswith(".json")]
        found = await Gateway().query(channels, platforms, [MatchSpec(spec) for spec in asked["specs"]], recursive=False)
        wanted = {one.name.normalized: one for group in found for one in sorted(group, key=lambda one: one.version)}
        records = [one for one in records if one.name.normalized not in wanted] + list(wanted.values())
    else:
        records = await solve(channels, asked["specs"], platforms=platforms, virtual_packages=virtual(asked["cuda"]))
    await install(
        records, asked["prefix"], cache_dir=asked["cache"], show_progress=False, execute_link_scripts=False,
        requested_specs=[MatchSpec(spec)._match_spec for spec in asked["specs"]],
    )

asyncio.run(main(json.loads(sys.argv[1])))
sys.stdout.flush()
os._exit(0)
"""
"""py-rattler in a process of its own, without the interpreter's end, where it may crash."""


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
        self._rattler(self.envs / name, specs, force=False)
        return self.envs / name

    def force(self, prefix: Path, *specs: str) -> None:
        """Put the packages of exact `specs` there by py-rattler, whatever others need: the history does not know."""
        self._rattler(prefix, specs, force=True)

    def _rattler(self, prefix: Path, specs: Sequence[str], *, force: bool) -> None:
        asked = {
            "channels": self.channels,
            "specs": list(specs),
            "cuda": self.cuda,
            "prefix": str(prefix),
            "cache": str(self.root / "rattler"),
            "force": force,
        }
        command = [sys.executable, "-I", "-c", _RATTLER, json.dumps(asked)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]


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
    found = [path for path in (prefix / "conda-meta").glob("*.json") if path.stem.rsplit("-", 2)[0] == name]
    assert len(found) == 1, f"{name}: {found}"
    return found[0]
