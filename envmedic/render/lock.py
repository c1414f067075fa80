"""A lock in a few lines: what it holds, where it was written, and what it lacks."""

from __future__ import annotations

from collections import Counter

from envmedic.model.lock import Incomplete, Lock
from envmedic.render.style import Style, plain

_SHOWN = 6
"""Names of one reason that are shown; JSON has all of them."""


def lock_lines(found: Lock, style: Style) -> list[str]:
    """One line for the file, one for what stands behind it."""
    if found.path is None:
        return [f"{style('not written', 'bad')}  {found.format}"]
    counts = Counter(item.manager for item in found.packages)
    missing = {(item.name, item.version) for item in found.incomplete}
    parts = [f"{counts[manager]} {manager}" for manager in ("conda", "pip") if counts[manager]]
    lines = [f"{style('locked', 'good')}  {plain(found.path)}: {' and '.join(parts) or 'no'} packages"]
    lines += [f"        without {len(missing)} of them"] if missing else []
    if found.transaction:
        lines.append(f"        verified by the repair {found.transaction}: {', '.join(map(plain, found.verified))}")
    return [*lines, *(f"        {plain(text)}" for text in found.notes)]


def incomplete_lines(found: Lock, style: Style, *, written: bool) -> list[str]:
    """What cannot be locked, by reason, and how it is written all the same."""
    if not found.incomplete:
        return []
    by_reason: dict[str, list[Incomplete]] = {}
    for item in found.incomplete:
        by_reason.setdefault(item.reason, []).append(item)
    count = "1 entry" if len(found.incomplete) == 1 else f"{len(found.incomplete)} entries"
    lines = [style("incomplete", "warn") + f": {count} cannot be locked as {found.format}"]
    for reason, items in by_reason.items():
        names = ", ".join(plain(f"{item.name} {item.version}".strip()) for item in items[:_SHOWN])
        more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
        lines += [f"  {names}{more}", f"    {plain(reason)}"]
    return lines if written else [*lines, "Nothing was written; --allow-incomplete writes the rest"]
