"""Real conda as referee: makes environments, and says what it thinks of them after a repair.

``conda doctor`` hashes only what has a prefix in it and skips the noarch files that conda installed, so the judge
compares every file with its record by itself.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conda.client import conda_program
from tests.conda.room import Room
from tests.gallery.repair_gallery.conda.files import misowned, records, scan

Change = tuple[str, str, str]
"""``-`` or ``+``, name, and version with build."""


@dataclass(frozen=True)
class Referee:
    """conda 24.7.1 in a room, with nothing of its own user's configuration."""

    room: Room

    def run(self, *arguments: str, code: int | None = 0) -> str:
        """Run ``conda`` and return its output; it must end with `code`, if one is given."""
        command = [str(conda_program()), *arguments]
        done = subprocess.run(command, env=self.room.environment, capture_output=True, text=True, check=False)
        said = f"conda {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert code is None or done.returncode == code, said[-6000:]
        return done.stdout

    def create(self, name: str, specs: Sequence[str]) -> Path:
        """An environment made by conda: noarch paths as in the packages, a history of what was asked for."""
        self.run("create", "--name", name, *specs)
        return self.room.envs / name

    def clone(self, prefix: Path, name: str) -> Path:
        """``conda create --clone``: its history pins every package to its build."""
        self.run("create", "--name", name, "--clone", str(prefix))
        return self.room.envs / name

    def install(self, prefix: Path, *specs: str) -> None:
        """``conda install``."""
        self.run("install", "--prefix", str(prefix), *specs)

    def remove(self, prefix: Path, *names: str) -> None:
        """``conda remove``."""
        self.run("remove", "--prefix", str(prefix), *names)

    def list_explicit(self, prefix: Path) -> list[str]:
        """URLs of what is installed, as ``conda list --explicit`` has them."""
        lines = self.run("list", "--explicit", "--prefix", str(prefix)).splitlines()
        return sorted(line for line in lines if line and not line.startswith(("#", "@")))

    def dry_run_changes(self, prefix: Path, *specs: str) -> list[Change]:
        """What ``conda install`` of `specs` would change."""
        said = self.run("install", "--prefix", str(prefix), "--dry-run", "--json", *specs)
        actions: dict[str, Any] = json.loads(said).get("actions", {})
        gone = [("-", *_identity(item)) for item in actions.get("UNLINK", ())]
        return sorted([*gone, *(("+", *_identity(item)) for item in actions.get("LINK", ()))])

    def doctor(self, prefix: Path) -> frozenset[str]:
        """What ``conda doctor`` complains of: package and count of files, one each."""
        lines = self.run("doctor", "--prefix", str(prefix), code=None).splitlines()
        return frozenset(line.strip() for line in lines if line.strip().rpartition(": ")[2].isdigit() or "❌" in line)

    def judge(
        self,
        prefix: Path,
        *,
        before: Iterable[str] = (),
        names: Sequence[str] = ("python",),
        other: str | None = "tqdm",
        altered: Iterable[str] = (),
    ) -> None:
        """Fail unless conda, pip and the files themselves all agree with what the records say.

        `before` is what ``conda doctor`` complained of before the fault; `names` are installed packages that
        ``conda install`` must find satisfied; `other` is a package that is not installed, and is installed into and
        removed from a copy, which must leave all the rest as it is (None: not tried); `altered` are files that may differ.
        """
        listed, recorded = self.list_explicit(prefix), sorted(record["url"] for record in records(prefix))
        assert listed == recorded, f"conda lists {listed}\nrecords are of {recorded}"
        for wrong in (scan(prefix, altered=altered), misowned(prefix)):
            assert not wrong, "\n".join(wrong)
        self._judge_python(prefix)
        new = self.doctor(prefix) - frozenset(before)
        assert not new, f"conda doctor says {sorted(new)}"
        for name in names:  # one at a time: two names together may both be upgraded
            proposed = self.dry_run_changes(prefix, name)
            assert not proposed, f"conda install {name} would change {proposed}"
        if other is not None:
            self._judge_later(prefix, other)

    def _judge_python(self, prefix: Path) -> None:
        python = [str(prefix / "bin" / "python"), "-B"]
        versions = {record["name"]: record["version"] for record in records(prefix)}
        said = self._ask([*python, "-c", "import platform; print(platform.python_version())"])
        assert said.strip() == versions["python"], f"it runs Python {said.strip()}, not {versions['python']}"
        if "pip" in versions:
            self._ask([*python, "-m", "pip", "check"])

    def _ask(self, command: list[str]) -> str:
        done = subprocess.run(
            command, env=self.room.environment, capture_output=True, text=True, check=False, cwd=self.room.root
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _judge_later(self, prefix: Path, other: str) -> None:
        copy = prefix.with_name(f"{prefix.name}-later")
        shutil.copytree(prefix, copy, symlinks=True)
        kept = builds(prefix)
        assert other not in kept, f"{other} is installed; the judge needs one that is not"
        self.install(copy, other)
        after = builds(copy)
        moved = {name: (build, after.get(name)) for name, build in kept.items() if after.get(name) != build}
        assert not moved, f"conda install {other} changes {moved}"
        self.remove(copy, other)
        left = builds(copy)
        moved = {name: (build, left.get(name)) for name, build in kept.items() if left.get(name) != build}
        assert not moved, f"conda remove {other} changes {moved}"
        shutil.rmtree(copy)


def builds(prefix: Path) -> dict[str, str]:
    """Name of each installed package → version, build and channel."""
    found = [(record["name"], f"{record['version']} {record['build']} {record['url']}") for record in records(prefix)]
    twice = [name for name, count in Counter(name for name, _ in found).items() if count > 1]
    assert not twice, f"several records of {twice}"
    return dict(found)


def _identity(item: dict[str, str]) -> tuple[str, str]:
    return item["name"], f"{item['version']} {item['build_string']}"
