"""A report as a page in HTML: one file without scripts and without anything from the network. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from envmedic.model.answers.report import Report, ReportedCheck
from envmedic.render.events import STAGES
from envmedic.render.reports.words import checked, good, moves, on_gpu, took, verdict
from envmedic.render.style import duration
from envmedic.render.text import visible

_STYLE = """\
:root { color-scheme: light dark; --good: #1a7f37; --bad: #cf222e; --warn: #9a6700; --line: #8884; --dim: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --good: #87c38a; --bad: #ef7a7a; --warn: #e5c07b; --dim: #8b93a1; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
code, pre, td.v { font-family: ui-monospace, Menlo, Consolas, monospace; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .75rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: var(--dim); font-weight: normal; }
th, td { padding: .2rem .75rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.good, .pass { color: var(--good); } .bad, .fail, .crash, .timeout { color: var(--bad); } .warn, .skip { color: var(--warn); }
.dim { color: var(--dim); } .bar { background: var(--good); height: .6rem; border-radius: 3px; min-width: 2px; }
.nodes { width: 100%; } .nodes rect { fill: currentColor; } .nodes text { fill: Canvas; font: bold 12px sans-serif; text-anchor: middle; }
ul.tree { list-style: none; padding-left: 1rem; border-left: 1px solid var(--line); }
"""


def page(report: Report) -> str:
    """The whole page: verdict, what was wrong, a tree of what changed, checks before and after, and timing."""
    tone = "good" if good(report) else "warn" if report.failure is None else "bad"
    origin = (f"envmedic {report.envmedic}", *report.machine, report.finished or "")
    parts = [
        f'<h1 class="{tone}">{told(verdict(report))}</h1>',
        f"<p><strong>Wrong:</strong> {told(report.wrong)}</p>",
        f"<pre>{told(report.error)}</pre>" if report.error else "",
        f'<p class="bad"><strong>Why nothing was changed:</strong> {told(report.failure)}</p>'
        if report.failure
        else "",
        *(f'<p class="warn">Still wrong: {told(text)}</p>' for text in report.left),
        "<h2>What changed</h2>",
        _tree(report),
        f"<h2>Checks: {told(checked(report))}</h2>" if report.checks else "",
        f'<p class="{"good" if on_gpu(report) == "verified" else "warn"}">GPU: {told(on_gpu(report))}</p>'
        if on_gpu(report)
        else "",
        _checks(report.checks) if report.checks else "",
        f"<h2>Time: {took(report)}</h2>",
        _timing(report),
        f"<h2>Undo</h2><pre>{told(report.undo)}</pre>" if report.undo else "",
        f'<p class="dim">{" · ".join(map(told, origin))}</p>',
    ]
    return whole(verdict(report), parts)


def whole(title: str, parts: Iterable[str]) -> str:
    """A page with that title, of these parts."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>envmedic: {told(title)}</title>'
    body = "\n".join(filter(None, parts))
    return f'<!doctype html>\n<html lang="en">\n<head>{head}\n<style>\n{_STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n'


def _tree(report: Report) -> str:
    """Changes by kind, then the steps that made them."""
    kinds: dict[str, list[str]] = {"Changed": [], "Installed": [], "Removed": []}
    for name, before, after in moves(report):
        kind = "Installed" if before == "none" else "Removed" if after == "removed" else "Changed"
        kinds[kind].append(
            f'<code>{told(name)}</code> <span class="bad">{told(before)}</span> → <span class="good">{told(after)}</span>'
        )
    kinds["Steps"] = [told(step) for step in report.steps]
    branches = (
        f"<details open><summary>{kind} ({len(items)})</summary>{_list(items)}</details>"
        for kind, items in kinds.items()
        if items
    )
    return "\n".join([*branches, f'<p class="dim">{report.unchanged} other packages are unchanged.</p>'])


def _list(items: Iterable[str]) -> str:
    return f'<ul class="tree">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def _checks(checks: Iterable[ReportedCheck]) -> str:
    """What failed or changed first; those that could not run are folded away, where they did not fail before."""
    ordered = sorted(checks, key=lambda item: (item.after == "skip", item.before == item.after))
    folded = [item for item in ordered if item.after == "skip" and item.before in {None, "skip"}]
    table = _table(item for item in ordered if item not in folded)
    if not folded:
        return table
    return f"{table}<details><summary>{len(folded)} could not run here</summary>{_table(folded)}</details>"


def _table(checks: Iterable[ReportedCheck]) -> str:
    rows = (
        f"<tr><td>{told(item.check)}</td><td>{told(item.device or '')}</td>{_status(item.before)}{_status(item.after)}"
        f'<td class="v">{duration(item.seconds)}</td><td class="dim">{told(item.reason)}</td></tr>'
        for item in checks
    )
    head = "<tr><th>check</th><th>device</th><th>before</th><th>after</th><th>time</th><th></th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _status(status: str | None) -> str:
    marks = {"pass": "✓ ", "skip": "· "}
    return f'<td class="{status or "dim"}">{marks.get(status, "✗ ") if status else ""}{status or "not asked"}</td>'


def _timing(report: Report) -> str:
    longest = max(report.seconds.values(), default=0.0) or 1.0
    titles: dict[str, str] = {str(stage): title for stage, title in STAGES.items()}
    rows = (
        f'<tr><td>{told(titles.get(stage, stage))}</td><td class="v">{duration(seconds)}</td>'
        f'<td style="width:50%"><div class="bar" style="width:{100 * seconds / longest:.0f}%"></div></td></tr>'
        for stage, seconds in report.seconds.items()
    )
    return f"<table>{''.join(rows)}</table>"


def told(text: str) -> str:
    """Foreign text, shown as it is."""
    return escape(visible(text))
