"""Break environments, let something repair them, judge, and print a table. Some GB, and up to a minute for each fault.

Without ``--tool`` envmedic repairs, and is judged by all that it says: its exit status, its plan, its undo and redo. With
``--tool`` any tools repair the same environments, and what programs and files say afterwards decides.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from .case import Case, Result, Verdict, as_document, attempt, from_document
from .conda.faults import CONDA
from .consumers import CONSUMERS
from .contest import Broken, as_line, broken, compared, contest, from_line
from .faults import FAULTS
from .judge import Digests, Listing, listing
from .project_faults import PROJECTS
from .room import Base, Untried, base
from .stacks import draw
from .tools import COMMANDS, TOOLS, Tool, absent, command

FOLDER = Path(".gallery")
BY_RUN = 4
"""Number of faults that are also handed in by `run` and `apply --last`."""


def main(arguments: Sequence[str]) -> int:
    """Run the faults that are named (all by default), and stacks."""
    options = parse(arguments)
    if options.list:
        say(listed(chosen(options)))
        return 0
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    log = options.folder / (options.results or ("contest.jsonl" if options.tool else "results.jsonl"))
    tools = dict(map(tool, options.tool))
    if not options.table:
        cases = chosen(options)
        if not cases:
            say("No environment of the gallery has such a name")
            return 2
        if not options.add:
            log.unlink(missing_ok=True)
        if tools:
            hold(cases, tools, options.folder, log)
        else:
            carry_out(cases, options.folder, log)
    if not log.exists():
        say("Nothing has run")
        return 2
    if tools:
        say(compared(map(from_line, log.read_text().splitlines())))
        return 0
    results = [from_document(line) for line in log.read_text().splitlines()]
    say(table(results))
    return 0 if all(result.ok for result in results) else 1


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Which faults, and where."""
    parser = argparse.ArgumentParser(
        prog="repair-gallery", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parts of names (default: every fault)")
    parser.add_argument("--stack", type=int, default=0, metavar="N", help="also N stacks of two or three faults")
    parser.add_argument("--light", type=int, default=0, metavar="N", help="and N stacks in a small environment")
    parser.add_argument("--seed", type=int, default=18, help="which stacks")
    parser.add_argument("--from", type=int, default=0, dest="start", metavar="N", help="begin with this stack")
    parser.add_argument(
        "--only", choices=["stacks", *get_args(Base)], action="append", default=[], help="leave out the rest"
    )
    parser.add_argument("--results", help="file in the folder for the results (results.jsonl, of tools contest.jsonl)")
    parser.add_argument(
        "--tool",
        action="append",
        default=[],
        metavar="NAME",
        help=f"one of {', '.join((*TOOLS, *COMMANDS))}; or NAME=COMMAND with {{prefix}}, {{python}}, {{log}} or {{requirements}} in it",
    )
    parser.add_argument("--add", action="store_true", help="add to earlier results")
    parser.add_argument(
        "--list", action="store_true", help="name what would be broken, and count it by kind; make nothing"
    )
    parser.add_argument("--table", action="store_true", help="print the table of earlier results")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where environments are made")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases in their order."""
    single = [Case((fault,)) for fault in (*FAULTS, *CONSUMERS, *PROJECTS, *CONDA) if "stacks" not in options.only]
    if single:
        # cheap ones: how the fault is handed in differs, not the fault
        shown = [fault for fault in FAULTS if fault.base == "light" and not (fault.silent or fault.log)]
        single += [Case((fault,), last=True) for fault in shown if fault.ending == "repaired"][:BY_RUN]
    stacks = [*draw(options.stack, options.seed), *draw(options.light, options.seed, light=True)][options.start :]
    bases = [name for name in options.only if name in get_args(Base)] or get_args(Base)
    return [
        case
        for case in (*single, *stacks)
        if case.faults[0].base in bases and (not options.names or any(part in case.name for part in options.names))
    ]


def listed(cases: Sequence[Case]) -> str:
    """The names of cases, then a table of how many there are of each environment and kind."""
    kinds = ("single faults", "`run`, then `apply --last`", "stacks", "controls")
    counted: dict[str, Counter[str]] = {}
    for case in cases:
        kind = (
            kinds[3]
            if not case.faults[0].fault
            else kinds[1]
            if case.last
            else kinds[2]
            if case.faults[1:]
            else kinds[0]
        )
        counted.setdefault(case.faults[0].base, Counter())[kind] += 1
    rows = [("environment", *kinds, "all"), ("---", *["---:"] * (len(kinds) + 1))]
    rows += [(base, *(str(of[kind] or "") for kind in kinds), str(of.total())) for base, of in counted.items()]
    every = sum(counted.values(), Counter())
    rows.append(("all", *(str(every[kind]) for kind in kinds), str(every.total())))
    return "\n".join([*(case.name for case in cases), "", *(f"| {' | '.join(cells)} |" for cells in rows)])


def tool(text: str) -> tuple[str, Tool]:
    """A tool by its name, or by a command line."""
    name, _, line = text.partition("=")
    line = line or COMMANDS.get(name, "")
    if not line and name not in TOOLS:
        raise SystemExit(f"There is no tool called {name!r}. Name one of: {', '.join((*TOOLS, *COMMANDS))}")
    if line and absent(line):
        raise SystemExit(f"{line.split()[0]}, the program of {name}, is not found")
    return name, command(line) if line else TOOLS[name]


def hold(cases: Iterable[Case], tools: Mapping[str, Tool], folder: Path, log: Path) -> None:
    """Each environment by each tool, each written down at once."""
    digests = Digests()
    # of others the fault is there as another case, or nobody has it
    shown = [case for case in cases if not case.last and _tried(case, tools)]
    for number, case in enumerate(shown, 1):
        say(f"{f'{number} of {len(shown)}':13}{case.name}")
        try:
            with broken(case, folder, digests) as made:
                for name, repair in _tried(case, tools).items():
                    _enter(made, name, repair, log)
        except Untried as reason:
            say(f"SKIPPED   {case.name}: {reason}")
        except Exception:  # noqa: BLE001  as in carry_out
            say(f"NOT MADE  {case.name}\n{traceback.format_exc()}")


def _tried(case: Case, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The reference proves that a fault can be repaired. Nobody sees a silent one fail, so that others get nothing to hand in."""
    first = case.faults[0]
    return {
        name: tools[name] for name in tools if (first.ending == "repaired" if name == "reference" else not first.silent)
    }


def _enter(made: Broken, name: str, repair: Tool, log: Path) -> None:
    """One tool on one environment."""
    try:
        ended = contest(made, name, repair)
    except Untried as reason:
        say(f"SKIPPED   {made.case.name} by {name}: {reason}")
        return
    except Exception:  # noqa: BLE001  as in carry_out
        say(f"NOT MADE  {made.case.name} by {name}\n{traceback.format_exc()}")
        return
    with log.open("a") as stream:
        stream.write(as_line(ended) + "\n")
    say(f"{ended.ending:13}{name:24}{made.case.name}  {ended.seconds:.0f} s")
    for words in (*ended.harm[:5], *ended.left[:3]):
        say(f"    ! {words}")


def carry_out(cases: Iterable[Case], folder: Path, log: Path) -> None:
    """One case after the other, each written down at once."""
    digests = Digests()
    origins: dict[Path, Listing] = {}
    for case in cases:
        if not case.faults[0].scene:
            room = base(folder, case.faults[0].base)
            origins.setdefault(room.prefix, listing(room.prefix, digests))
        try:
            result = attempt(case, folder, digests)
        except Untried as reason:
            say(f"SKIPPED   {case.name}: {reason}")
            continue
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
    left = () if result.ok else result.left
    return "\n".join(
        [*rows, *(f"      left: {words}" for words in left), *(f"      ! {words}" for words in result.lost)]
    )


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


def program() -> None:
    """The command."""
    raise SystemExit(main(sys.argv[1:]))


if __name__ == "__main__":
    program()
