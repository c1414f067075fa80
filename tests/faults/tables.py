"""What came of the SIGKILLs, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tests.faults.sigkill import KEEPING, Survived

_COLUMNS = ("operation", "staging", "clone", "runs", "SIGKILLs", "old", "new", "orphans", "failed")


def by_mode(survived: Iterable[Survived]) -> Iterator[str]:
    """A line for each operation in each way to stage and to clone."""
    rows: dict[tuple[str, str, str], Counter[str]] = {}
    for item in survived:
        mode = item.scenario.mode
        moment = " at chance" if item.scenario.at is None else ""
        counts = rows.setdefault((item.scenario.operation + moment, mode.staging, mode.clone), Counter())
        counts.update(
            {"runs": 1, "SIGKILLs": len(item.kills), "orphans": item.orphans, "failed": int(bool(item.failed))}
        )
        counts[item.side] += 1
    total: Counter[str] = Counter()
    for counts in rows.values():
        total.update(counts)
    numbers = [(*key, *(counts[name] for name in _COLUMNS[3:])) for key, counts in sorted(rows.items())]
    yield from table(_COLUMNS, [*numbers, ("all", "", "", *(total[name] for name in _COLUMNS[3:]))])


def by_step(survived: Iterable[Survived]) -> Iterator[str]:
    """A line for each step at which something died, operation by operation."""
    counts = Counter(kill for item in survived for kill in item.kills)
    rows: dict[str, Counter[str]] = {}
    for kill, number in counts.items():
        operation, _, step = kill.partition(": ")
        rows.setdefault(step, Counter())[operation] += number
    more = (KEEPING,) if any(found[KEEPING] for found in rows.values()) else ()
    operations = ("apply", "undo", *more, "redo", "recover")
    numbers = [(step, *(found[name] or "" for name in operations)) for step, found in sorted(rows.items())]
    yield from table(("step", *operations), numbers)


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield "| " + " | ".join(map(str, heads)) + " |"
    yield "| " + " | ".join("---" for _ in heads) + " |"
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
