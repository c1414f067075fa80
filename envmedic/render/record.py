"""Records and history as text."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from envmedic.model.record import Difference, History, Record
from envmedic.render.checks import comparison_lines
from envmedic.render.errors import reason_lines
from envmedic.render.style import Style, duration, plain, size, table

_FAILED_SHOWN = 4
"""Failures of one round that are shown."""


def record_lines(record: Record, style: Style, *, moved: bool = False) -> list[str]:
    """What a transaction did; `moved` says that an undo or redo brought a kept tree back just now."""
    lines = [f"{style('Transaction', 'bold')}  {record.transaction} on {plain(record.prefix)}"]
    if record.failure is not None:
        lines += ["", *_failure(record, style)]
    elif not moved and record.checks_after:
        lines += ["", *comparison_lines(record.checks_before, record.checks_after, style)]
    lines += _rounds(record)
    lines += _changed(record)
    lines += [f"regression: {plain(item)}" for item in record.regressions if record.failure is None]
    lines += [f"note: {plain(item)}" for item in record.notes]
    return [*lines, "", *_result(record, style, moved=moved)]


def _failure(record: Record, style: Style) -> list[str]:
    """The checks where they decided, then the error."""
    if record.failure is None:
        return []
    checks = comparison_lines(record.checks_before, record.checks_after, style) if record.checks_after else []
    head = f"{style('error:', 'bad')} {plain(record.failure.summary)}"
    return [*checks, *([""] if checks else []), head, *reason_lines(record.failure)]


def _rounds(record: Record) -> list[str]:
    """What each round was about and what came of it, where there were several."""
    if len(record.rounds) < 2:  # noqa: PLR2004  # a single one is the repair itself
        return []
    ends = (_failed(item.failed) if item.failed else "repaired" for item in record.rounds)
    lines = [f"round {item.number}: {item.summary}: {end}" for item, end in zip(record.rounds, ends, strict=True)]
    return ["", *map(plain, lines)]


def _failed(texts: Sequence[str]) -> str:
    """What failed in a round: the first ones, for an import that fails takes dozens of checks with it."""
    more = len(texts) - _FAILED_SHOWN
    return "; ".join(texts[:_FAILED_SHOWN]) + (f"; and {more} more, which --json lists" if more > 0 else "")


def _changed(record: Record) -> list[str]:
    if record.environment == "unchanged":
        return []
    before, after = ({item.name: item.version for item in side} for side in (record.before, record.after))
    if record.environment == "restored":
        before, after = after, before
    rows = [
        (name, before.get(name, "-"), "->", after.get(name, "-"))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    return ["", *table(rows)] if rows else []


def _result(record: Record, style: Style, *, moved: bool) -> list[str]:
    """The state of the environment in a word, how long it took, and the way back."""
    head, target = style("Environment", "bold"), shlex.quote(plain(record.prefix))
    if record.environment == "unchanged":
        return [f"{head}  {style('unchanged', 'warn')}"]
    if record.environment == "restored":
        lines = [f"{head}  {style('back as it was before the repair', 'good')}"]
        return lines if record.failure else [*lines, f"To bring the repair back: envmedic redo -p {target}"]
    proven = record.gpu != "not verified"
    state = style("repaired and verified" if proven else "repaired", "good" if proven else "warn")
    how = ", brought back" if moved else f" in {duration(sum(record.seconds.values()))}"
    gpu = [f"{style('GPU', 'bold')}          {_gpu(record)}"] if record.gpu != "not needed" else []
    return [f"{head}  {state}{how}", *gpu, f"To go back: envmedic undo -p {target}"]


def _gpu(record: Record) -> str:
    return record.gpu + (f" ({plain(record.gpu_reason)})" if record.gpu_reason else "")


def history_lines(history: History, style: Style) -> list[str]:
    """Generations, newest first."""
    if not history.generations:
        return [f"No transaction of envmedic on {plain(history.prefix)}"]
    rows = [("", "transaction", "state", "started", "changes", "keeps", "can")]
    for item in history.generations:
        can = " ".join(word for word, yes in (("undo", item.undo_possible), ("redo", item.redo_possible)) if yes)
        changes = _few(item.changes)
        mark = "*" if item.live else ""
        rows.append((mark, item.transaction, item.state, item.started, changes, size(item.size_bytes), can or "-"))
    return [style("Generations (* is live)", "bold"), *table(rows)]


_NAMED = 3
"""Changes that a row names; the document has all."""


def _few(changes: Sequence[str]) -> str:
    more = [f"{len(changes) - _NAMED} more"] if len(changes) > _NAMED + 1 else []
    return ", ".join([*changes[: _NAMED if more else None], *more]) or "-"


_LISTED = 20
"""Paths of one kind that are listed; the document has all."""


def difference_lines(found: Difference, style: Style) -> list[str]:
    """What differs between two states: distributions, then files."""
    title = f"{style('From', 'bold')} {state_name(found.before)} {style('to', 'bold')} {state_name(found.after)}"
    rows = [(item.name, item.before or "-", "->", item.after or "-") for item in found.distributions]
    lines = [title, "", *(table(rows) if rows else ["No distribution differs"])]
    for word, paths in (("added", found.added), ("removed", found.removed), ("changed", found.changed)):
        lines += _paths(word, paths, style)
    if not (found.added or found.removed or found.changed):
        lines += ["", "No file differs, caches of byte code apart"]
    return lines


def state_name(name: str) -> str:
    """A state of an environment in words."""
    return {"found": "the environment as it was found", "now": "what is there now"}.get(name, name)


def _paths(word: str, paths: Sequence[str], style: Style) -> list[str]:
    if not paths:
        return []
    plural = "" if len(paths) == 1 else "s"
    more = [f"  and {len(paths) - _LISTED} more"] if len(paths) > _LISTED else []
    return [
        "",
        style(f"{len(paths)} file{plural} {word}", "bold"),
        *(f"  {plain(item)}" for item in paths[:_LISTED]),
        *more,
    ]
