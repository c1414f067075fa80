"""Checks as a table: before beside after, for a screen of any width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envmedic.model.checks import Outcome, Status
from envmedic.model.record import Record
from envmedic.render.cells import end, middle, padded, width
from envmedic.render.documents.checks import COLLAPSED_FROM, STATUS_TONES, some
from envmedic.render.progress.repair_state import CheckRow
from envmedic.render.style import duration
from envmedic.render.text import Line, TextPart, line, part
from envmedic.wording import counted

FAILURES: frozenset[Status] = frozenset({"fail", "crash", "timeout"})
_DETAIL_LINES = 12
"""Lines of a failed check's output that are shown."""
_WIDE = 76
"""Cells from which the name of a GPU, and what came of the check in place, have room."""
_NARROW = 60
"""Cells below which the times give way to the largest errors."""


def rows_of(record: Record) -> dict[tuple[str, str | None], CheckRow]:
    """The table of a transaction that has ended."""
    sides = (record.checks_before, record.checks_after, record.smoke)
    before, after, smoke = ({item.key: item for item in side} for side in sides)
    keys = dict.fromkeys([*before, *after, *smoke])
    return {key: CheckRow(before.get(key), after.get(key), smoke.get(key)) for key in keys}


def check_table(rows: Iterable[CheckRow], cells: int) -> list[Line]:
    """One row for each check and device, with the reason of a failure; empty where no check has run.

    Imports that pass, and checks skipped for one reason, share a line below.
    """
    given = list(rows)
    if not given:
        return []
    skipped = [row for row in given if _skipped(row)]
    imports = [row for row in given if _plain_import(row)]
    collapsed = imports if len(imports) >= COLLAPSED_FROM else []
    shown = [row for row in given if row not in collapsed and row not in skipped]
    wide = cells >= _WIDE
    table = [_header(wide=wide), *(_cells(row, wide=wide) for row in shown)]
    if collapsed:
        table.append(_imports(collapsed, wide=wide))
    first, *drawn = _aligned(table, cells)
    lines = [first]
    told = ""
    for row, drawn_row in zip(shown, drawn, strict=False):
        lines.append(drawn_row)
        if row.last.status in FAILURES and row.last.reason not in {"", told}:
            told = row.last.reason  # of several in a row, one is enough
            excuse = f" ({row.last.excuse})" if row.last.excuse else ""
            lines.append(line(f"    {row.last.reason}{excuse}", "dim"))
    return [*lines, *drawn[len(shown) :], *_skips(given, skipped)]


def _skipped(row: CheckRow) -> bool:
    """Whether the check never ran."""
    return all(item is None or item.status == "skip" for item in (row.before, row.after, row.smoke))


def _skips(rows: Sequence[CheckRow], left_out: Sequence[CheckRow]) -> list[Line]:
    """Reasons why checks were skipped, each once, with the names of checks that have no row."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.last.status == "skip":
            names = reasons.setdefault(row.last.reason, [])
            if row in left_out:
                names.append(row.last.check)
    return [
        line(
            f"skipped: {reason or 'without a reason'}" + (f": {some(dict.fromkeys(names))}" if names else ""),
            "dim",
        )
        for reason, names in reasons.items()
    ]


def _plain_import(row: CheckRow) -> bool:
    """An import that passed wherever it ran."""
    outcomes = [item for item in (row.before, row.after, row.smoke) if item is not None]
    return row.last.check.startswith("import ") and all(item.status == "pass" for item in outcomes)


def _header(*, wide: bool) -> list[TextPart]:
    titles = ["check", "device", "before", "after", *(["in place"] if wide else []), "time", "error"]
    return [TextPart(title, "dim") for title in titles]


def _cells(row: CheckRow, *, wide: bool) -> list[TextPart]:
    last = row.last
    device = last.device or ""
    error = "" if last.max_relative_error is None else f"{last.max_relative_error:.1e}"
    return [
        part(last.check),
        part(device if wide else device.partition(" ")[0], "dim"),
        *map(_status, (row.before, row.after, *((row.smoke,) if wide else ()))),
        TextPart(duration(last.seconds), "dim"),
        TextPart(error, "dim"),
    ]


def _status(outcome: Outcome | None) -> TextPart:
    if outcome is None:
        return TextPart("-", "dim")
    return part(outcome.signal or outcome.status, STATUS_TONES[outcome.status])


def _imports(rows: Sequence[CheckRow], *, wide: bool) -> list[TextPart]:
    """All imports that pass, as one row which counts them as they come in."""
    sides = ([row.before for row in rows], [row.after for row in rows], [row.smoke for row in rows])
    before, after, smoke = ([item for item in side if item is not None] for side in sides)
    return [
        TextPart(counted(len(rows), "import")),
        TextPart("", "dim"),
        _count(before, len(rows)),
        _count(after, len(rows)),
        # in place only a part of the checks runs again: that part is the whole here
        *([_count(smoke, len(smoke))] if wide else []),
        TextPart(duration(sum(row.last.seconds for row in rows)), "dim"),
        TextPart("", "dim"),
    ]


def _count(passed: Sequence[Outcome], total: int) -> TextPart:
    if not passed:
        return TextPart("-", "dim")
    return TextPart("pass", "good") if len(passed) == total else TextPart(f"{len(passed)}/{total}")


def _aligned(rows: Sequence[Sequence[TextPart]], cells: int) -> list[Line]:
    """Columns side by side, without empty ones; the first gives way where there is no room."""
    used = [column for column in range(len(rows[0])) if any(row[column].text for row in rows[1:])]
    if cells < _NARROW and len(used) == len(rows[0]):
        used.remove(len(rows[0]) - 2)  # the time: the largest error says more
    columns = [[row[number] for row in rows] for number in used]
    first, *sizes = (max(width(cell.text) for cell in column) for column in columns)
    # never below eight cells, so that checks stay distinguishable on the narrowest screen
    first = max(min(first, cells - sum(size + 1 for size in sizes)), 8)
    drawn: list[Line] = []
    for name, *others in zip(*columns, strict=True):
        pieces = [TextPart(padded(middle(name.text, first), first), name.tone)]
        pieces += [TextPart(" " + padded(cell.text, size), cell.tone) for cell, size in zip(others, sizes, strict=True)]
        drawn.append(tuple(pieces))
    return drawn


def evidence(rows: Iterable[CheckRow]) -> list[Line]:
    """The end of the output of checks whose last outcome is a failure."""
    lines: list[Line] = []
    for row in rows:
        last = row.last
        if last.status == "pass" or last.role == "informative" or not last.detail.strip():
            continue
        where = f" on {last.device}" if last.device else ""
        lines.append(line(f"  {last.check}{where}", "bold"))
        printed = last.detail.rstrip().splitlines()
        # a traceback ends with the error itself
        if len(printed) > _DETAIL_LINES:
            lines.append(line("    ⋮", "dim"))
        lines += [line("    " + end(text, 400)) for text in printed[-_DETAIL_LINES:]]
    return lines
