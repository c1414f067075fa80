"""Disk use of many repairs of one environment: after two, after all of them, and after `prune` to the end.

    python -m tests.bench.disk_use FOLDER [--files N] [--repairs N]

Each repair is a real one, that replaces one distribution by the next release of it. Counted are the blocks of every inode,
once; what trees share counts for the environment. FOLDER needs room for one environment (3 GB for 300,000 files).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.environment import environment
from tests.faults.tables import table
from tests.support.wheels import make_wheel

FILES = 300_000
REPAIRS = 20
_SOME = 2
_BLOCK = 512
"""Bytes that `stat` counts in."""
_STORE = ".envmedic"


@dataclass(frozen=True)
class Used:
    """What is on disk, in bytes."""

    environment: int
    entries: int
    """Files, directories and links of the environment."""
    trees: int
    """Of kept trees, what the environment does not hold."""
    rest: int
    """Records, fingerprints and the like, outside of trees."""
    told: int
    """What `history` says of the store."""


def main(arguments: Sequence[str]) -> int:
    """Repair, prune, and print the table. Returns 1 where repairs add up."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.disk_use", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--repairs", type=int, default=REPAIRS)
    options = parser.parse_args(arguments)
    prefix = environment(options.folder / "env", options.files)
    found: dict[str, Used] = {"none": used(prefix)}
    for number in range(1, options.repairs + 1):
        _repair(prefix, options.folder / "wheels", f"{number}.0")
        if number in {1, _SOME, options.repairs}:
            found[str(number)] = used(prefix)
    _run("-m", "envmedic", "prune", "-p", str(prefix), "--keep", "0", "--yes")
    found["all, and `prune --keep 0`"] = used(prefix)
    shutil.rmtree(options.folder / "env")
    shutil.rmtree(options.folder / _STORE)
    sys.stdout.writelines(f"{line}\n" for line in shown(found))
    return int(found[str(options.repairs)].trees > 1.1 * found[str(_SOME)].trees)


def used(prefix: Path) -> Used:
    """Add up what an environment and its store take."""
    known: set[tuple[int, int]] = set()
    environment_bytes, entries = _added(prefix, known)
    store = prefix.parent / _STORE
    trees = sum(_added(tree, known)[0] for tree in sorted(store.glob("*/env")))
    rest, _ = _added(store, known) if store.exists() else (0, 0)
    history = json.loads(_run("-m", "envmedic", "history", "-p", str(prefix), "--json"))
    return Used(environment_bytes, entries, trees, rest, history["size_bytes"])


def _added(root: Path, known: set[tuple[int, int]]) -> tuple[int, int]:
    """Bytes of the inodes below `root` that are not known yet, which are known then; and the entries."""
    size = entries = 0
    waiting = [os.fspath(root)]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for entry in found:
                entries += 1
                status = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                if (status.st_dev, status.st_ino) not in known:
                    known.add((status.st_dev, status.st_ino))
                    size += _BLOCK * status.st_blocks
    return size, entries


def _repair(prefix: Path, wheels: Path, version: str) -> None:
    wheels.mkdir(exist_ok=True)
    wheel = make_wheel(wheels, "tiny", version).path
    outcome = json.loads(_run("-m", "tests.bench.one_apply", str(prefix), str(wheel)))
    if outcome["state"] != "done":
        raise RuntimeError(f"The repair ended with {outcome}")


def _run(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def shown(found: dict[str, Used]) -> list[str]:
    """Show them as a table of Markdown, in MB."""
    heads = (
        "repairs",
        "entries",
        "environment",
        "kept trees, what they do not share",
        "records, fingerprints",
        "`history` says",
    )
    rows = [
        (name, f"{item.entries:,}", *(f"{size / 1e6:,.1f} MB" for size in (item.environment, item.trees, item.rest, item.told)))
        for name, item in found.items()
    ]  # fmt: skip
    return [*table(heads, rows)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
