"""Records and history as text."""

from __future__ import annotations

from envmedic.cli.render.checks import comparison_lines
from envmedic.cli.render.style import Style, duration, plain, size, table
from envmedic.model.record import History, Record

_OUTCOMES = {
    "repaired": ("repaired and verified", "good"),
    "restored": ("back as it was before", "good"),
    "unchanged": ("unchanged", "warn"),
}


def record_lines(record: Record, style: Style) -> list[str]:
    """What a transaction did."""
    lines = [f"{style('Transaction', 'bold')}  {record.transaction} on {plain(record.prefix)}"]
    if record.checks_after:
        lines += ["", *comparison_lines(record.checks_before, record.checks_after, style)]
    lines += ["", *_changed(record)]
    if record.gpu != "not needed":
        lines.append(f"gpu: {record.gpu}" + (f" ({plain(record.gpu_reason)})" if record.gpu_reason else ""))
    lines += [f"regression: {plain(item)}" for item in record.regressions]
    lines += [f"note: {plain(item)}" for item in record.notes]
    if record.error:
        lines.append(f"{style('why', 'bold')}: {plain(record.error)}")
    return [*lines, _result(record, style)]


def _changed(record: Record) -> list[str]:
    if record.environment == "unchanged":
        return []
    before = {item.name: item.version for item in record.before}
    after = {item.name: item.version for item in record.after}
    rows = [
        (name, before.get(name, "-"), "->", after.get(name, "-"))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    return table(rows)


def _result(record: Record, style: Style) -> str:
    text, tone = _OUTCOMES[record.environment]
    if record.environment == "repaired" and record.gpu == "not verified":
        text, tone = "repaired; GPU checks did not run", "warn"
    total = sum(record.seconds.values())
    line = f"{style('Environment', 'bold')}  {style(text, 'good' if tone == 'good' else 'warn')}"
    line += f" in {duration(total)}" if total else ""
    if record.environment == "repaired":
        line += f"\nTo go back: envmedic undo -p {plain(record.prefix)}"
    return line


def history_lines(history: History, style: Style) -> list[str]:
    """Generations, newest first."""
    if not history.generations:
        return [f"No transaction of envmedic on {plain(history.prefix)}"]
    rows = [("", "transaction", "state", "started", "changes", "keeps", "can")]
    for item in history.generations:
        can = " ".join(word for word, yes in (("undo", item.undo_possible), ("redo", item.redo_possible)) if yes)
        changes = ", ".join(item.changes) or "-"
        mark = "*" if item.live else ""
        rows.append((mark, item.transaction, item.state, item.started, changes, size(item.size_bytes), can or "-"))
    return [style("Generations (* is live)", "bold"), *table(rows)]
