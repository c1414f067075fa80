"""``python -m tests.gallery``: break, repair, judge, undo and redo; print a table. Some GB, and a minute for each fault."""

from __future__ import annotations

import argparse
import statistics
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from tests.gallery.case import Case, Result, Verdict, as_document, attempt, from_document
from tests.gallery.consumers import CONSUMERS
from tests.gallery.faults import FAULTS
from tests.gallery.judge import Digests, Listing, listing
from tests.gallery.room import BASES, base
from tests.gallery.stacks import draw

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".gallery"
BY_RUN = 4
"""Number of faults that are also handed in by `run` and `apply --last`."""


def main(arguments: Sequence[str]) -> int:
    """Run the faults that are named (all by default), and stacks."""
    options = parse(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    log = options.folder / options.results
    if not options.table:
        if not options.add:
            log.unlink(missing_ok=True)
        carry_out(chosen(options), options.folder, log)
    results = [from_document(line) for line in log.read_text().splitlines()]
    say(table(results))
    return 0 if all(result.ok for result in results) else 1


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Which faults, and where."""
    parser = argparse.ArgumentParser(prog="python -m tests.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names (default: every fault)")
    parser.add_argument("--stack", type=int, default=0, metavar="N", help="also N stacks of two or three faults")
    parser.add_argument("--light", type=int, default=0, metavar="N", help="and N stacks in a small environment")
    parser.add_argument("--seed", type=int, default=18, help="which stacks")
    parser.add_argument("--from", type=int, default=0, dest="start", metavar="N", help="begin with this stack")
    parser.add_argument("--only", choices=["stacks", *BASES], action="append", default=[], help="leave out the rest")
    parser.add_argument("--results", default="results.jsonl", help="file in the folder for the results")
    parser.add_argument("--add", action="store_true", help="add to earlier results")
    parser.add_argument("--table", action="store_true", help="print the table of earlier results")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where environments are made")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases in their order."""
    single = [Case((fault,)) for fault in (*FAULTS, *CONSUMERS) if "stacks" not in options.only]
    if single:
        # cheap ones: how the fault is handed in differs, not the fault
        shown = [fault for fault in FAULTS if fault.base == "light" and not (fault.silent or fault.log)]
        single += [Case((fault,), last=True) for fault in shown if fault.ending == "repaired"][:BY_RUN]
    stacks = [*draw(options.stack, options.seed), *draw(options.light, options.seed, light=True)][options.start :]
    bases = [name for name in options.only if name in BASES] or list(BASES)
    return [
        case
        for case in (*single, *stacks)
        if case.faults[0].base in bases and (not options.names or any(part in case.name for part in options.names))
    ]


def carry_out(cases: Iterable[Case], folder: Path, log: Path) -> None:
    """One case after the other, each written down at once."""
    digests = Digests()
    origins: dict[Path, Listing] = {}
    for case in cases:
        room = base(folder, case.faults[0].base)
        origins.setdefault(room.prefix, listing(room.prefix, digests))
        try:
            result = attempt(case, folder, digests)
        except Exception:  # noqa: BLE001  one case that cannot be made must not end an hour's run
            say(f"NOT MADE  {case.name}\n{traceback.format_exc()}")
            continue
        with log.open("a") as stream:
            stream.write(as_document(result) + "\n")
        say(line(result))
    for prefix, before in origins.items():
        same = listing(prefix, Digests()) == before
        say(f"{prefix.name}: {'unchanged' if same else 'CHANGED, although only copies were repaired'}")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def line(result: Result) -> str:
    """One case, with its repairs where it did not end as it should."""
    state = "ok" if result.ok else result.verdict.upper()
    undone = "undone and redone" if result.undone else "UNDO DIFFERS"
    rows = [f"{state:10}{result.name}  {undone}  {result.seconds:.0f} s"]
    for turn in () if result.ok and len(result.turns) == 1 else result.turns:
        rows.append(
            f"    {turn.fault}: exit {turn.code}, {turn.outcome}, {turn.found}, "
            f"{'gone' if turn.gone else 'still fails'}, {turn.seconds:.0f} s"
        )
        rows += [f"      ! {words}" for words in (*turn.lies, *turn.harm)]
        rows += [f"      {turn.said[:500]}"] if turn.said and not turn.gone else []
    return "\n".join([*rows, *(f"      ! {words}" for words in result.lost)])


def table(results: Sequence[Result]) -> str:
    """How many of each kind ended in which way."""
    verdicts = get_args(Verdict)
    rows = [("kind", "cases", *verdicts, "median s"), ("---", *["---:"] * (len(verdicts) + 2))]
    single = sorted({result.kind for result in results if " + " not in result.name})
    stacks = sorted({result.kind for result in results if " + " in result.name})
    rows += [row(kind, [result for result in results if result.kind == kind]) for kind in (*single, *stacks)]
    rows.append(row("all", results))
    back = sum(result.undone for result in results)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows) + (
        f"\n\n{back} of {len(results)} undone and redone byte for byte"
    )


def row(kind: str, results: Sequence[Result]) -> tuple[str, ...]:
    """One row."""
    return (
        kind, str(len(results)), *(str(sum(result.verdict == verdict for result in results)) for verdict in get_args(Verdict)),
        f"{statistics.median(result.seconds for result in results):.0f}",
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
