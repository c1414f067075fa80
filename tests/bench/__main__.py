"""``python -m tests.bench``: measure, and print the ratios beside what is aimed at. Never fails on timing."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.conda_repair import repairing
from tests.bench.environment import environment
from tests.bench.growth import Grown, filling, growing
from tests.bench.installing import AIM, PACKAGES, installing
from tests.bench.locking import AIM_S, CONDA, PIP, locking
from tests.bench.measures import Overhead, SkippedError, Trees, cloning, compile_loop, probing, real_environment
from tests.bench.place import Place, place
from tests.bench.report import Aim, Report, load, machine
from tests.bench.rivals import Mending, diagnosing
from tests.bench.text import FLOOD_BYTES, MEGABYTES, PASSES, WORDS, flooded, floods, large_log, reading

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".bench"
FILES = 31_000
"""Of the generated environment."""
ROUNDS = 5
FEWEST = 1
CLONE_AIM, PROBE_AIM, OVERHEAD_AIM = 1.3, 8.0, 4.0
FRAME_AIM = 1.5
COLLECT_AIM, OWN_AIM, UNDO_AIM = 10.0, 0.1, 2.0
IMPORT_AIM = 4.0
EXCHANGE_AIM_S = 0.05
SMALL_LOG_AIM_S, READING_AIM_S, FLOOD_AIM_S = 0.3, 15.0, 6.0
"""For a log of 1 MB, for one of 100 MB, and for 10 MB of failures, over starting and loading."""
_MEGABYTE = 1e6


@dataclass(frozen=True)
class Run:
    """One run of the benchmark."""

    report: Report
    where: Place
    folder: Path
    prefix: Path | None
    """The real environment that was named."""
    files: int
    rounds: int

    def real(self) -> Path:
        """An environment with torch. Raises `SkippedError`."""
        stated = os.environ.get("ENVMEDIC_BENCH_PREFIX")
        known = sorted(ROOT.glob(".real/*")) + sorted(ROOT.glob(".demo/env"))
        return real_environment([self.prefix] if self.prefix else [Path(stated)] if stated else known)


def main(arguments: Sequence[str]) -> int:
    """Measure what is wanted, print it, and write it where that is asked for."""
    options = parse(arguments)
    options.folder.mkdir(exist_ok=True)
    report = Report()
    report.section("Machine")
    report.note(f"{machine()}, {load()}")
    with place(options.folder) as where:
        report.note(f"Trees on {where.described}")
        run = Run(report, where, options.folder, options.prefix, options.files, options.rounds)
        for name in options.only or PARTS:
            PARTS[name](run)
    if options.write:
        options.write.write_text(f"{HEAD}\n{report.markdown()}", encoding="utf-8")
    return 0


HEAD = """# Benchmarks

Written by `make bench` from one run; every ratio is of figures of that run, taken in turns. Machines differ and are
noisy: the spread over the rounds stands beside each figure. Nothing in envmedic's tests depends on a time.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Options, for smaller or longer runs."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help="of the generated environment")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="samples of each measure")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where trees are made")
    parser.add_argument("--prefix", type=Path, help="environment with torch and torchvision (ENVMEDIC_BENCH_PREFIX)")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"parts of it: {', '.join(PARTS)}")
    parser.add_argument("--write", type=Path, help="write the tables there, as Markdown")
    options = parser.parse_args(arguments)
    if options.rounds < FEWEST:
        parser.error("--rounds must be at least 1")
    return options


def generated(run: Run) -> Trees:
    """The environment, and the C loop where it can be compiled."""
    prefix = environment(run.where.root / "env", run.files)
    files, folders, length, taken = size(prefix)
    run.report.note(
        f"Generated environment: {files:,} files and links, {folders:,} directories, {length / 1e9:.2f} GB long, "
        f"{taken / 1e9:.2f} GB on disk (its large libraries are sparse)"
    )
    try:
        loop = compile_loop(run.folder)
    except SkippedError as error:
        run.report.note(f"C loop of linkat: skipped: {error}")
        loop = None
    return Trees(run.where, prefix, loop)


def size(prefix: Path) -> tuple[int, int, int, int]:
    """Files and links, directories, their length and the disk space they take."""
    entries = [path.lstat() for path in prefix.rglob("*")]
    folders = sum(path.is_dir() and not path.is_symlink() for path in prefix.rglob("*"))
    length, taken = sum(item.st_size for item in entries), sum(item.st_blocks * 512 for item in entries)
    return len(entries) - folders, folders, length, taken


def report_cloning(run: Run) -> None:
    """The clone."""
    run.report.section("Clone by hard links, with real copies of what tools edit in place")
    trees = generated(run)
    samples = cloning(trees, run.rounds)
    run.report.show(samples, {
        "loop": "C loop of linkat, 1 thread",
        "clone": "envmedic's clone, 2 threads",
        "cp -al": "cp -al",
        "cp -a": "cp -a",
    })  # fmt: skip
    run.report.compare(samples, "clone", "loop", "clone / C loop", Aim(CLONE_AIM))
    run.report.compare(samples, "clone", "cp -al", "clone / cp -al")
    run.report.compare(samples, "clone", "cp -a", "clone / cp -a")


def report_overhead(run: Run) -> None:
    """What a repair costs besides installer and checks."""
    run.report.section("Overhead of apply: all but its stages fetch, reproduce, steps, verify and smoke")
    trees = generated(run)
    if trees.loop is None:
        run.report.note("skipped: there is no C loop to compare with")
        return
    overhead = Overhead(trees)
    samples = overhead.samples(run.rounds)
    run.report.show(samples, {"loop": "C loop of linkat, 1 thread", "overhead": "apply, a new process, own part"})
    run.report.compare(samples, "overhead", "loop", "overhead / C loop", Aim(OVERHEAD_AIM))
    run.report.note("Stages: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in overhead.by_stage().items()))


def report_probing(run: Run) -> None:
    """The probe against the imports that it makes unnecessary."""
    run.report.section("Full static probe against `import torch, torchvision`")
    try:
        prefix = run.real()
    except SkippedError as error:
        run.report.note(f"skipped: {error}")
        return
    run.report.note(f"{described(prefix)}, byte code cached on both sides")
    samples = probing(prefix, run.folder / "byte-code", run.rounds)
    run.report.show(samples, {
        "imports": "imports, a new process",
        "imports compiling": "the same without byte code at hand",
        "probe": "probe of the environment, in process",
        "probe process": "the same, a new process",
        "facts": "envmedic facts (with the host)",
        "diagnose": "envmedic diagnose (facts alone)",
    })  # fmt: skip
    run.report.compare(samples, "imports", "probe", "imports / probe in process", Aim(PROBE_AIM, at_least=True))
    run.report.compare(samples, "imports", "probe process", "imports / probe process", Aim(PROBE_AIM, at_least=True))
    run.report.compare(samples, "imports", "facts", "imports / envmedic facts")
    run.report.compare(samples, "imports", "diagnose", "imports / envmedic diagnose", Aim(PROBE_AIM, at_least=True))
    run.report.compare(samples, "imports compiling", "diagnose", "imports without byte code / diagnose")


def described(prefix: Path) -> str:
    """A real environment in words."""
    torch = next(prefix.glob("lib/python3*/site-packages/torch-*.dist-info"), Path("torch")).name
    count = sum(len(names) for _, _, names in os.walk(prefix))
    return f"{torch.removesuffix('.dist-info').replace('-', ' ')} in an environment of {count:,} files"


def report_rivals(run: Run) -> None:
    """What else tells of the state of an environment."""
    run.report.section("Diagnosis against what else tells of an environment")
    try:
        prefix = run.real()
        samples = diagnosing(prefix, run.folder / "byte-code", run.rounds)
    except SkippedError as error:
        run.report.note(f"skipped: {error}")
        return
    run.report.note(described(prefix))
    names = {
        "diagnose": "envmedic diagnose (facts alone)",
        "collect_env": "python -m torch.utils.collect_env",
        "pip check": "pip check",
        "uv pip check": "uv pip check",
    }
    run.report.show(samples, names)
    for name in ("collect_env", "pip check", "uv pip check"):
        aim = Aim(COLLECT_AIM, at_least=True) if name == "collect_env" else None
        run.report.compare(samples, name, "diagnose", f"{name} / envmedic diagnose", aim)


def report_mending(run: Run) -> None:
    """The same damage mended by envmedic and by others, and the way back."""
    run.report.section("One missing library of torchvision, mended; and the way back")
    try:
        prefix = run.real()
        mending = Mending(prefix, run.folder / "mending")
        samples = mending.samples(run.rounds)
    except SkippedError as error:
        run.report.note(f"skipped: {error}")
        return
    run.report.note(f"{described(prefix)}; wheels on disk, caches warm")
    run.report.show(samples, {
        "repair": "envmedic apply without its checks",
        "uv": "uv pip install --reinstall, in place",
        "pip": "pip install --force-reinstall, in place",
        "recreate": "uv venv and uv pip install of all, from its cache",
        "undo": "envmedic undo, a new process",
        "exchange": "of it: the exchange, journalled",
        "scan": "one stat scan of it, a new process",
    })  # fmt: skip
    run.report.compare(samples, "repair", "recreate", "repair / made anew by uv")
    run.report.compare(samples, "repair", "pip", "repair / pip in place")
    run.report.compare(samples, "undo", "pip", "undo / reinstall of the old version by pip")
    run.report.compare(samples, "undo", "uv", "undo / reinstall of the old version by uv")
    run.report.compare(samples, "undo", "scan", "undo / stat scan", Aim(UNDO_AIM))
    most = max(samples["exchange"])
    run.report.note(
        f"exchange: aim ≤ {EXCHANGE_AIM_S:g} s: {'met' if most <= EXCHANGE_AIM_S else 'NOT met'} ({most:.3f} s)"
    )
    run.report.compare(
        mending.against_imports(),
        "whole",
        "imports",
        "the whole repair / two imports of torch and torchvision",
        Aim(IMPORT_AIM),
    )
    run.report.compare(mending.parts(), "own", "others", "own part / installer and checks", Aim(OWN_AIM))
    run.report.note("Stages: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in mending.by_stage().items()))
    if mending.skipped:
        run.report.note(f"made anew: skipped: {mending.skipped}")


def report_growth(run: Run) -> None:
    """How cost grows."""
    rounds = min(run.rounds, 3)
    for title, grown in (
        ("Growth with the files", growing(run.where.root, rounds)),
        ("Growth with the distributions", filling(run.where.root, rounds)),
    ):
        run.report.section(title)
        run.report.table(GROWN, [grown_row(item) for item in grown])


GROWN = ("files", "distributions", "diagnose", "most memory", "clone by links", "one scan", "diagnose / scan")


def grown_row(item: Grown) -> tuple[str, ...]:
    """One environment of `report_growth`."""
    return (
        f"{item.files:,}",
        str(item.distributions),
        f"{item.diagnose:.2f} s",
        f"{item.memory / _MEGABYTE:.0f} MB",
        f"{item.clone:.2f} s",
        f"{item.scan:.2f} s",
        f"{item.diagnose / item.scan:.1f} x",
    )


def report_locking(run: Run) -> None:
    """A lock of a conda environment with wheels on top."""
    run.report.section(f"Lock of {CONDA} conda packages and {PIP} wheels as conda-lock.yml, hashes from caches")
    try:
        samples = locking(run.where.root, run.rounds)
    except SkippedError as error:
        run.report.note(f"skipped: {error}")
        return
    run.report.show(samples, {"lock": "envmedic lock, a new process", "import": "import conda_lock.lockfile"})
    seconds = median(samples["lock"])
    run.report.note(f"aim ≤ {AIM_S:g} s: {'met' if seconds <= AIM_S else 'NOT met'} ({seconds:.2f} s)")
    run.report.compare(samples, "lock", "import", "lock / import of conda-lock alone")


def report_installing(run: Run) -> None:
    """What an install behind envmedic costs besides the installer and the checks."""
    run.report.section(f"`pip install` of {PACKAGES} packages from a local index, bare and behind envmedic")
    samples = installing(run.where.root, run.rounds)
    run.report.show(samples, {
        "bare": "pip install",
        "behind": "envmedic pip install, a new process",
        "checks": "of it: checks",
        "own": "of it: foreseeing, clone, fingerprints, exchange",
        "beside": "all of it but the checks",
    })  # fmt: skip
    over = median(samples["beside"]) / median(samples["bare"]) - 1
    run.report.note(f"aim ≤ {AIM:.0%} beside the checks: {'met' if over <= AIM else 'NOT met'} ({over:.0%})")
    run.report.compare(samples, "beside", "bare", "behind envmedic, without the checks / bare")


def report_conda(run: Run) -> None:
    """What a repair of a conda environment costs besides the installer and the checks."""
    run.report.section("Repair of one package of a conda environment, by py-rattler, a new process")
    try:
        samples = repairing(run.where.root, run.rounds)
    except SkippedError as error:
        run.report.note(f"skipped: {error}")
        return
    run.report.show(samples, {
        "whole": "envmedic apply",
        "installer": "of it: solve, fetch and change, verified",
        "checks": "of it: checks",
        "own": "of it: envmedic's own part",
        "rattler": "py-rattler alone, in place",
        "clone": "envmedic's clone of the environment",
        "conda clone": "conda create --clone",
        "diagnose": "envmedic diagnose (facts alone)",
        "doctor": "conda doctor",
    })  # fmt: skip
    run.report.compare(samples, "own", "installer", "own part / installer")
    run.report.compare(samples, "installer", "rattler", "installer / py-rattler alone")
    run.report.compare(samples, "clone", "conda clone", "clone / conda create --clone")
    run.report.compare(samples, "doctor", "diagnose", "conda doctor / envmedic diagnose")


def report_reading(run: Run) -> None:
    """What it costs to look for every signature in large logs, without faults and with many."""
    for mixed, words in ((False, "without any fault"), (True, "with a failure every half megabyte")):
        run.report.section(f"A log of {MEGABYTES} MB {words}, against {PASSES} passes of grep -E")
        try:
            log = large_log(run.folder / f"{'mixed' if mixed else 'large'}.log", mixed=mixed)
            samples = reading(log, run.rounds)
        except SkippedError as error:
            run.report.note(f"skipped: {error}")
            return
        names = {word: f"{PASSES} passes of grep -E {word}" for word in WORDS}
        run.report.show(samples, names | {"scan": "all signatures, in process", "command": "envmedic diagnose"})
        for word in WORDS:
            run.report.compare(samples, "scan", word, f"signatures / grep {word}")
            run.report.compare(samples, "command", word, f"envmedic diagnose / grep {word}")
        seconds = median(samples["scan"])
        row = (f"all signatures, {MEGABYTES} MB", f"{seconds:.2f} s", _verdict(seconds, READING_AIM_S))
        run.report.table(("what", "time", "aim"), [row])
    report_floods(run)


def report_floods(run: Run) -> None:
    """The time for a small log, and for the output of restart loops."""
    run.report.section(
        f"A log of 1 MB, and logs of {FLOOD_BYTES // 1_000_000} MB that look like failures line by line, in new processes"
    )
    rows: list[tuple[str, ...]] = []
    small = large_log(run.folder / "small.log", 1, mixed=True)
    for words, log in {"failures every half megabyte": small, **floods(run.folder)}.items():
        readings = flooded(log, min(run.rounds, 3))
        seconds = median([item.seconds for item in readings])
        rows.append((
            words,
            f"{log.stat().st_size / _MEGABYTE:.0f} MB",
            f"{seconds:.2f} s",
            f"{median([item.processor for item in readings]):.2f} s",
            f"{max(item.memory for item in readings) / _MEGABYTE:.0f} MB",
            _verdict(seconds, SMALL_LOG_AIM_S if log == small else FLOOD_AIM_S),
        ))  # fmt: skip
    run.report.table(("log", "size", "time", "of a processor", "most memory", "aim"), rows)


def _verdict(seconds: float, aim: float) -> str:
    return f"≤ {aim:g} s: {'met' if seconds <= aim else 'NOT met'}"


def report_frames(run: Run) -> None:
    """How soon the terminal UI is there, and whether keys are heard while a log pours in."""
    from tests.bench.frames import LINES, first_frames, key_presses  # no other part needs Textual

    run.report.section("First frame of the terminal UI, a new process, against that of an empty Textual app")
    samples = first_frames(run.rounds)
    run.report.show(samples, {"empty": "empty Textual app", "envmedic": "envmedic"})
    run.report.compare(samples, "envmedic", "empty", "envmedic / empty app", Aim(FRAME_AIM))
    run.report.section(f"A key to what it paints, while {LINES:,} lines pour into a log, against an idle screen")
    samples = key_presses(run.rounds, run.folder / "cache")
    run.report.show(samples, {"idle": "idle screen", "pouring": "while the log pours in"})
    run.report.compare(samples, "pouring", "idle", "pouring / idle")


def report_peers(run: Run) -> None:
    """The terminal UI beside those of other programs."""
    from tests.bench.terminal_peers import COLUMNS, IDLE_S, ROWS, rows  # no other part needs it

    run.report.section(
        f"Terminal UIs beside each other, {COLUMNS} by {ROWS}, each a new process seen from its terminal"
    )
    head = ("program", "first screen", "a key to its answer", "bytes of the answer", f"bytes in {IDLE_S:g} s of rest")
    run.report.table(head, rows(run.rounds, run.folder))
    run.report.note("In brackets: over envmedic. The key goes to the next part (toolong: the line above).")


PARTS: Mapping[str, Callable[[Run], None]] = {
    "diagnosis": report_rivals,
    "probe": report_probing,
    "clone": report_cloning,
    "overhead": report_overhead,
    "repair": report_mending,
    "growth": report_growth,
    "lock": report_locking,
    "install": report_installing,
    "conda": report_conda,
    "peers": report_peers,
    "log": report_reading,
    "tui": report_frames,
}
"""What can be measured by itself."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
