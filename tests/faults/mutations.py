"""The product broken on purpose, in a copy: each part has to go red where what it guards is gone.

A mutation takes the place of a text in one file of the package.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.cli.support import ROOT
from tests.faults import guards
from tests.faults.cases import Case
from tests.faults.room import children

_COPIED = ("envmedic", "tests", "playbooks", "pyproject.toml", "README.md")
_LIMIT_S = 240.0
"""What hangs is red too: no slice takes that long."""


@dataclass(frozen=True)
class Mutation:
    """What is broken."""

    part: str
    name: str
    """What no longer holds, in words."""
    file: str
    """Relative to the package."""
    old: str
    new: str
    only: str = ""
    """The case that guards it, where it is not in the slice of the part."""
    everywhere: bool = False
    """Whether every place of `old` in the file is meant; otherwise there must be one."""


MUTATIONS = (
    Mutation(
        "clocks", "time limits of steps go by the wall clock", "proc/child.py",
        "time.monotonic()",
        "time.time()",
        everywhere=True,
    ),
    Mutation(
        "clocks", "undo takes the newest repair by its time", "engine/generations/generations.py",
        "    known = {item.directory.transaction: item for item in _known(store)}\n    live = marker.read(store.prefix)\n",
        "    known = {item.directory.transaction: item for item in _known(store)}\n    live = max(known, default=None)\n",
    ),
    Mutation(
        "network", "the hash of a wheel is not compared", "installers/wheels/fetch.py",
        "    if digest != artifact.sha256:\n", "    if False:\n",
    ),
    Mutation(
        "network", "a download that breaks off is not tried again", "installers/index/http.py",
        "    attempts: int = 5\n", "    attempts: int = 1\n",
    ),
    Mutation(
        "network", "a server is waited for without end", "installers/index/http.py",
        "timeout=Timeout(connect=self.patience.connect_s, read=self.patience.read_s)", "timeout=None",
        only="the wheel stalls once",
    ),
    Mutation(
        "installers", "the exit status of a step does not count", "engine/store/workspace.py",
        "    if result.returncode != 0:\n", "    if result.returncode is None:\n",
    ),
    Mutation(
        "installers", "a step has no time limit", "engine/store/workspace.py",
        "timeout_s=place.timeout_s", "timeout_s=None",
    ),
    Mutation(
        "installers", "what a step leaves running is not killed", "engine/stage/namespace_helper.py",
        "    left = kill_all()\n", "    left = 0\n",
    ),
    Mutation(
        # Both comparisons, before and after the exchange: each alone makes up for the other.
        "installers", "the original is not compared around the exchange", "tree/fingerprint.py",
        "    return tuple(sorted(name for name in names if name not in NOT_INSTALLED and not is_cache(name)))\n", "    return ()\n",
    ),
    Mutation(
        "installers", "what an installer says that it has done is taken for done", "engine/transaction/installed_record.py",
        "        require_whole(step.artifacts, place.tree)\n", "        pass\n",
        only="does nothing and says it has, namespace",
    ),
    Mutation(
        "children", "a program that was killed is not asked again", "proc/commands.py",
        "if result.returncode != -signal.SIGKILL or result.timed_out:", "if True:",
    ),
    Mutation(
        "limits", "memory and descriptors that run out are told as a bug", "cli/main.py",
        "        exhausted(error, environment=environment)\n        or missing_package(", "        missing_package(",
    ),
    Mutation(
        "powercut", "a file has its name before its content is on disk", "engine/fs/durable.py",
        "            os.fsync(fd)\n", "            pass\n",
    ),
    Mutation(
        "powercut", "the clone is not on disk when the journal says so", "engine/fs/exchange.py",
        "        syscalls.syncfs(descriptor)\n", "        pass\n",
        only="apply, exchange",
    ),
)  # fmt: skip


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every mutation before the slice of its part, then every guard of the engine; it is too much for a short run."""
    for mutation in () if short else MUTATIONS:
        yield f"{mutation.part}: {mutation.name}", partial(_red, folder, mutation)
    if not short:
        yield from guards.cases(folder)


def mutated(mutation: Mutation, package: Path) -> str:
    """The file of the package with the mutation. Raises AssertionError where it has no place there, or several."""
    text = (package / mutation.file).read_text(encoding="utf-8")
    places = text.count(mutation.old)
    assert places == 1 or (places and mutation.everywhere), f"{mutation.name}: {places} places in {mutation.file}"
    return text.replace(mutation.old, mutation.new)


def _red(folder: Path, mutation: Mutation) -> tuple[str, str]:
    """Let the part run on the broken copy, and see what goes red."""
    copy = folder / "copy"
    copy.mkdir()
    for name in _COPIED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, copy / name)
    try:
        (copy / "envmedic" / mutation.file).write_text(mutated(mutation, copy / "envmedic"), encoding="utf-8")
        failed = _failures(copy, mutation)
    finally:
        shutil.rmtree(copy)
    assert failed, "nothing went red"
    return "red", failed[0]


def _end(run: subprocess.Popen[str]) -> None:
    """End a run and all that it has left, which come to this process, and let it clear away what it made."""
    os.killpg(run.pid, signal.SIGINT)
    try:
        run.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    while left := children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _failures(copy: Path, mutation: Mutation) -> list[str]:
    """The cases that failed, or the news that one hangs."""
    chosen = ("--only", mutation.only) if mutation.only else ("--short",)
    command = [sys.executable, "-m", "tests.faults", "--part", mutation.part, *chosen]
    with subprocess.Popen(
        command, cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as run:  # fmt: skip
        try:
            said, _ = run.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            _end(run)
            return ["it hangs"]
    lines = [line for line in said.splitlines() if line.startswith(mutation.part) and " FAILED " in line]
    assert lines or run.returncode == 0, said[-2000:]
    return [line.partition(" ")[2].strip() for line in lines]
