"""Checks as a table: before beside after, for a screen of any width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envmedic.model.checks import Outcome, Status
from envmedic.model.record import Record
from envmedic.render.checks import COLLAPSED_FROM
from envmedic.render.style import duration
from envmedic.tui.repair_state import CheckRow
from envmedic.tui.text import Line, TextPart, Tone, end, line, middle, padded, visible, width

_TONES: dict[Status, Tone] = {"pass": "good", "fail": "bad", "crash": "bad", "timeout": "bad", "skip": "warn"}
FAILURES: frozenset[Status] = frozenset({"fail", "crash", "timeout"})
_DETAIL_LINES = 12
"""Lines of a failed check's output that are shown as evidence."""
_WIDE = 76
"""Cells from which the name of a GPU, and what came of the check in place, have room."""
_NARROW = 60
"""Cells below which the times give way to the largest errors."""
Cell = tuple[str, Tone]


def rows_of(record: Record) -> dict[tuple[str, str | None], CheckRow]:
    """The table of a transaction that has ended."""
    before, after, smoke = ({item.key: item for item in side} for side in _sides(record))
    keys = dict.fromkeys([*before, *after, *smoke])
    return {key: CheckRow(before.get(key), after.get(key), smoke.get(key)) for key in keys}


def _sides(record: Record) -> tuple[tuple[Outcome, ...], ...]:
    return record.checks_before, record.checks_after, record.smoke


def check_table(rows: Iterable[CheckRow], cells: int) -> list[Line]:
    """One row for each check and device, and why it failed; what is the same of many is told once below.

    That is: imports that pass, and what was skipped for one reason. Nothing where no check has run.
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
            lines.append(line("    " + _reason(row.last), "dim"))
    return [*lines, *drawn[len(shown) :], *_skips(given, skipped)]


def _skipped(row: CheckRow) -> bool:
    """Whether it never ran."""
    return all(item is None or item.status == "skip" for item in (row.before, row.after, row.smoke))


def _skips(rows: Sequence[CheckRow], left_out: Sequence[CheckRow]) -> list[Line]:
    """Why checks were skipped, each reason once, with the names of those that have no row."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.last.status == "skip":
            names = reasons.setdefault(row.last.reason, [])
            if row in left_out:
                names.append(row.last.check)
    return [
        line(
            f"skipped: {reason or 'without a reason'}" + (f": {', '.join(dict.fromkeys(names))}" if names else ""),
            "dim",
        )
        for reason, names in reasons.items()
    ]


def _plain_import(row: CheckRow) -> bool:
    """An import that passed wherever it ran."""
    outcomes = [item for item in (row.before, row.after, row.smoke) if item is not None]
    return row.last.check.startswith("import ") and all(item.status == "pass" for item in outcomes)


def _reason(outcome: Outcome) -> str:
    return visible(outcome.reason) + (f" ({outcome.excuse})" if outcome.excuse else "")


def _header(*, wide: bool) -> list[Cell]:
    titles = ["check", "device", "before", "after", *(["in place"] if wide else []), "time", "error"]
    return [(title, "dim") for title in titles]


def _cells(row: CheckRow, *, wide: bool) -> list[Cell]:
    last = row.last
    device = last.device or ""
    error = "" if last.max_relative_error is None else f"{last.max_relative_error:.1e}"
    return [
        (last.check, "plain"),
        (device if wide else device.partition(" ")[0], "dim"),
        _status(row.before),
        _status(row.after),
        *([_status(row.smoke)] if wide else []),
        (duration(last.seconds), "dim"),
        (error, "dim"),
    ]


def _status(outcome: Outcome | None) -> Cell:
    return ("-", "dim") if outcome is None else (outcome.signal or outcome.status, _TONES[outcome.status])


def _imports(rows: Sequence[CheckRow], *, wide: bool) -> list[Cell]:
    """All imports that pass, as one row which counts them as they come in."""
    sides = [[row.before for row in rows], [row.after for row in rows], [row.smoke for row in rows]]
    found = [[item for item in side if item is not None] for side in sides]
    counts = [*(_count(side, len(rows)) for side in found[:2]), _count(found[2], len(found[2]))]
    seconds = duration(sum(row.last.seconds for row in rows))
    return [(f"{len(rows)} imports", "plain"), ("", "dim"), *counts[: 3 if wide else 2], (seconds, "dim"), ("", "dim")]


def _count(passed: Sequence[Outcome], total: int) -> Cell:
    if not passed:
        return ("-", "dim")
    return ("pass", "good") if len(passed) == total else (f"{len(passed)}/{total}", "plain")


def _aligned(table: Sequence[Sequence[Cell]], cells: int) -> list[Line]:
    """Columns side by side; the first gives way where there is no room."""
    used = [column for column in range(len(table[0])) if any(row[column][0] for row in table[1:])]
    if cells < _NARROW and len(used) == len(table[0]):
        used.remove(len(table[0]) - 2)  # the time: the largest error says more
    table = [[row[column] for column in used] for row in table]
    widths = [max(width(visible(row[column][0])) for row in table) for column in range(len(table[0]))]
    others = sum(size + 1 for size in widths[1:])
    widths[0] = max(min(widths[0], cells - others), 8)
    drawn: list[Line] = []
    for row in table:
        parts = [TextPart(padded(middle(visible(row[0][0]), widths[0]), widths[0]), row[0][1])]
        parts += [
            TextPart(" " + padded(visible(text), size), tone)
            for (text, tone), size in zip(row[1:], widths[1:], strict=True)
        ]
        drawn.append(tuple(parts))
    return drawn


def evidence(rows: Iterable[CheckRow]) -> list[Line]:
    """What the checks printed that failed at last, its end."""
    lines: list[Line] = []
    for row in rows:
        last = row.last
        if last.status == "pass" or last.role == "informative" or not last.detail.strip():
            continue
        where = f" on {last.device}" if last.device else ""
        lines.append(line(f"  {last.check}{where}", "bold"))
        printed = last.detail.rstrip().splitlines()
        if len(printed) > _DETAIL_LINES:
            lines.append(line("    ⋮", "dim"))
        lines += [line("    " + end(text, 400)) for text in printed[-_DETAIL_LINES:]]
    return lines
