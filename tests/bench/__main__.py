"""``python -m tests.bench``: measure, and print the ratios beside what is aimed at. Never fails on timing."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.conda_repair import repairing
from tests.bench.environment import environment
from tests.bench.frames import LINES, first_frames, key_presses
from tests.bench.locking import AIM_S, CONDA, PIP, locking
from tests.bench.measures import Overhead, SkippedError, Trees, cloning, compile_loop, probing, real_environment
from tests.bench.place import Place, place
from tests.bench.sampling import Samples, ratio
from tests.bench.text import MEGABYTES, PASSES, WORDS, large_log, reading

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".bench"
FILES = 31_000
"""Of the generated environment."""
ROUNDS = 5
FEWEST = 1
CLONE_AIM, PROBE_AIM, OVERHEAD_AIM, READING_AIM, COMMAND_AIM = 1.3, 8.0, 4.0, 1.2, 2.0
FRAME_AIM = 1.5
_QUIET = 0.5
"""Load per core, before the run adds its own, above which figures are doubtful."""


@dataclass(frozen=True)
class Aim:
    """What a ratio should be."""

    value: float
    at_least: bool = False

    def verdict(self, measured: float) -> str:
        """The aim and whether it is met."""
        met = measured >= self.value if self.at_least else measured <= self.value
        return f"aim {'≥' if self.at_least else '≤'} {self.value:g} x: {'met' if met else 'NOT met'}"


def main(arguments: Sequence[str]) -> int:
    """Measure all and print."""
    options = parse(arguments)
    options.folder.mkdir(exist_ok=True)
    say(f"{os.cpu_count()} cores, Python {platform.python_version()}, Linux {platform.release()}, {load()}")
    with place(options.folder) as where:
        report_locking(where.root, options.rounds)
        report_conda_repair(where.root, options.rounds)
        trees = generated(where, options)
        report_cloning(trees, options.rounds)
        report_overhead(trees, options.rounds)
    report_probing(options.prefix, options.folder, options.rounds)
    report_reading(options.folder, options.rounds)
    report_frames(options.folder, options.rounds)
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Options, for smaller or longer runs."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help="of the generated environment")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="samples of each measure")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where trees are made")
    parser.add_argument("--prefix", type=Path, help="environment with torch and torchvision (ENVMEDIC_BENCH_PREFIX)")
    options = parser.parse_args(arguments)
    if options.rounds < FEWEST:
        parser.error("--rounds must be at least 1")
    return options


def load() -> str:
    """The load, with a warning where it spoils the figures."""
    now = os.getloadavg()[0]
    busy = now > _QUIET * (os.cpu_count() or 1)
    return f"load {now:.2f}" + (" — WARNING: other work runs, the figures are doubtful" if busy else "")


def generated(where: Place, options: argparse.Namespace) -> Trees:
    """The environment, and the C loop where it can be compiled."""
    prefix = environment(where.root / "env", options.files)
    files, folders, length, taken = size(prefix)
    say(f"Generated environment on {where.described}:")
    say(
        f"  {files:,} files and links, {folders:,} directories, {length / 1e9:.2f} GB long, "
        f"{taken / 1e9:.2f} GB on disk (its large libraries are sparse)"
    )
    try:
        loop = compile_loop(options.folder)
    except SkippedError as error:
        say(f"  C loop of linkat: skipped: {error}")
        loop = None
    return Trees(where, prefix, loop)


def size(prefix: Path) -> tuple[int, int, int, int]:
    """Files and links, directories, their length and the disk space they take."""
    entries = [path.lstat() for path in prefix.rglob("*")]
    folders = sum(path.is_dir() and not path.is_symlink() for path in prefix.rglob("*"))
    length, taken = sum(item.st_size for item in entries), sum(item.st_blocks * 512 for item in entries)
    return len(entries) - folders, folders, length, taken


def report_cloning(trees: Trees, count: int) -> None:
    """Measure and print the clone."""
    say("\nClone by hard links, with real copies of what tools edit in place")
    samples = cloning(trees, count)
    show(samples, {"loop": "C loop of linkat, 1 thread", "clone": "envmedic's clone, 2 threads", "cp -a": "cp -a"})
    if trees.loop:
        compare(samples, "clone", "loop", "clone / C loop", Aim(CLONE_AIM))
    compare(samples, "clone", "cp -a", "clone / cp -a")


def report_overhead(trees: Trees, count: int) -> None:
    """Measure and print what a repair costs besides installer and checks."""
    say("\nOverhead of apply: all but its stages fetch, reproduce, steps, verify and smoke")
    if trees.loop is None:
        say("  skipped: there is no C loop to compare with")
        return
    overhead = Overhead(trees)
    samples = overhead.samples(count)
    show(samples, {"loop": "C loop of linkat, 1 thread", "overhead": "apply, a new process, own part"})
    compare(samples, "overhead", "loop", "overhead / C loop", Aim(OVERHEAD_AIM))
    stages = overhead.by_stage()
    say("  stages: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in stages.items()))


def report_probing(named: Path | None, folder: Path, count: int) -> None:
    """Measure and print the probe against the imports that it makes unnecessary."""
    stated = os.environ.get("ENVMEDIC_BENCH_PREFIX")
    known = sorted(ROOT.glob(".real/*")) + sorted(ROOT.glob(".demo/env"))
    candidates = [named] if named else [Path(stated)] if stated else known
    say("\nFull static probe against `import torch, torchvision`")
    try:
        prefix = real_environment(candidates)
    except SkippedError as error:
        say(f"  skipped: {error}")
        return
    say(f"  {prefix}, byte code cached on both sides")
    samples = probing(prefix, folder / "byte-code", count)
    show(samples, {
        "imports": "imports, a new process",
        "imports compiling": "the same without byte code at hand",
        "probe": "probe of the environment, in process",
        "probe process": "the same, a new process",
        "facts": "envmedic facts (with the host)",
        "diagnose": "envmedic diagnose (facts alone)",
    })  # fmt: skip
    compare(samples, "imports", "probe", "imports / probe in process", Aim(PROBE_AIM, at_least=True))
    compare(samples, "imports", "probe process", "imports / probe process", Aim(PROBE_AIM, at_least=True))
    compare(samples, "imports", "facts", "imports / envmedic facts")
    compare(samples, "imports", "diagnose", "imports / envmedic diagnose", Aim(PROBE_AIM, at_least=True))
    compare(samples, "imports compiling", "diagnose", "imports without byte code / diagnose")


def report_locking(folder: Path, count: int) -> None:
    """Measure and print a lock of a conda environment with wheels on top."""
    say(f"Lock of {CONDA} conda packages and {PIP} wheels as conda-lock.yml, a new process, hashes from caches")
    try:
        samples = locking(folder, count)
    except SkippedError as error:
        say(f"  skipped: {error}")
        return
    show(samples, {"lock": "envmedic lock", "import": "import conda_lock.lockfile"})
    seconds = median(samples["lock"])
    say(f"  aim ≤ {AIM_S:g} s: {'met' if seconds <= AIM_S else 'NOT met'} ({seconds:.2f} s)")
    compare(samples, "lock", "import", "lock / import of conda-lock alone")


def report_conda_repair(folder: Path, count: int) -> None:
    """Measure and print what a repair of a conda environment costs besides the installer and the checks."""
    say("\nRepair of one package of a conda environment, by py-rattler, a new process")
    try:
        samples = repairing(folder, count)
    except SkippedError as error:
        say(f"  skipped: {error}")
        return
    show(samples, {
        "whole": "envmedic apply",
        "installer": "of it: solve, fetch and change, verified",
        "checks": "of it: checks",
        "own": "of it: envmedic's own part",
        "rattler": "py-rattler alone, in place",
    })  # fmt: skip
    compare(samples, "own", "installer", "own part / installer")
    compare(samples, "installer", "rattler", "installer / py-rattler alone")


def report_reading(folder: Path, count: int) -> None:
    """Measure and print what it costs to look for every signature in large logs, without faults and with many."""
    for mixed, words in ((False, "without any fault"), (True, "with a failure every half megabyte")):
        say(f"\nA log of {MEGABYTES} MB {words}, against {PASSES} passes of grep -E")
        try:
            samples = reading(large_log(folder / f"{'mixed' if mixed else 'large'}.log", mixed=mixed), count)
        except SkippedError as error:
            say(f"  skipped: {error}")
            return
        show(
            samples,
            {word: f"{PASSES} passes of grep -E {word}" for word in WORDS}
            | {"scan": "all signatures, in process", "command": "envmedic diagnose"},
        )
        for word in WORDS:
            compare(samples, "scan", word, f"signatures / grep {word}", Aim(READING_AIM))
            compare(samples, "command", word, f"envmedic diagnose / grep {word}", Aim(COMMAND_AIM))


def report_frames(folder: Path, count: int) -> None:
    """Measure and print how soon the terminal UI is there, and whether keys are heard while a log pours in."""
    say("\nFirst frame of the terminal UI, a new process, against that of an empty Textual app")
    samples = first_frames(count)
    show(samples, {"empty": "empty Textual app", "envmedic": "envmedic"})
    compare(samples, "envmedic", "empty", "envmedic / empty app", Aim(FRAME_AIM))
    say(f"\nA key to what it paints, while {LINES:,} lines pour into a log, against an idle screen")
    samples = key_presses(count, folder / "cache")
    show(samples, {"idle": "idle screen", "pouring": "while the log pours in"})
    compare(samples, "pouring", "idle", "pouring / idle")


def show(samples: Samples, names: dict[str, str]) -> None:
    """Median, least and greatest of each measure."""
    for name, words in names.items():
        if name in samples:
            taken = samples[name]
            say(f"  {words:<38} {median(taken):7.3f} s  [{min(taken):.3f} to {max(taken):.3f}, n={len(taken)}]")


def compare(samples: Samples, name: str, base: str, words: str, aim: Aim | None = None) -> None:
    """One ratio of medians, with the spread over the rounds."""
    found = ratio(samples, name, base)
    verdict = f"  {aim.verdict(found.value)}" if aim else ""
    say(f"  {words:<38} {found.value:7.2f} x  [{found.low:.2f} to {found.high:.2f}]{verdict}")


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
