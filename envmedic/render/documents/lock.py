"""A lock in a few lines: its contents, its file, and missing entries."""

from __future__ import annotations

from collections import Counter

from envmedic.model.lock import Incomplete, Lock
from envmedic.render.text import Line, joined, line, part

_SHOWN = 6
"""Names of one reason that are shown; JSON has all of them."""


def lock_lines(found: Lock) -> list[Line]:
    """One line for the file, one for the repair that verified its contents."""
    if found.path is None:
        return [joined(part("not written", "bad"), f"  {found.format}")]
    counts = Counter(item.manager for item in found.packages)
    missing = {(item.name, item.version) for item in found.incomplete}
    parts = [f"{counts[manager]} {manager}" for manager in ("conda", "pip") if counts[manager]]
    lines = [joined(part("locked", "good"), f"  {found.path}: {' and '.join(parts) or 'no'} packages")]
    lines += [line(f"        without {len(missing)} of them")] if missing else []
    if found.transaction:
        lines.append(line(f"        verified by the repair {found.transaction}: {', '.join(found.verified)}"))
    return [*lines, *(line(f"        {text}") for text in found.notes)]


def incomplete_lines(found: Lock, *, written: bool) -> list[Line]:
    """Entries that cannot be locked, by reason, and how the rest is written all the same."""
    if not found.incomplete:
        return []
    by_reason: dict[str, list[Incomplete]] = {}
    for item in found.incomplete:
        by_reason.setdefault(item.reason, []).append(item)
    count = "1 entry" if len(found.incomplete) == 1 else f"{len(found.incomplete)} entries"
    lines = [joined(part("incomplete", "warn"), f": {count} cannot be locked as {found.format}")]
    for reason, items in by_reason.items():
        names = ", ".join(f"{item.name} {item.version}".strip() for item in items[:_SHOWN])
        more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
        lines += [line(f"  {names}{more}"), line(f"    {reason}")]
    return lines if written else [*lines, line("Nothing was written; --allow-incomplete writes the rest")]
