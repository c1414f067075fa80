"""A report as Markdown, for an issue or a chat. Pure."""

from __future__ import annotations

import re

from envmedic.model.answers.report import Report
from envmedic.render.reports.words import checked, good, moves, on_gpu, took, verdict
from envmedic.render.text import visible

_ACTING = re.compile(r"([\\`*_{}\[\]<>()#+!|@~])")
"""Signs that Markdown acts on, mentions among them."""
_CHECKS_SHOWN = 12


def markdown(report: Report) -> str:
    """The card: what was wrong, what changed, which checks passed, and how to undo it."""
    mark = "✅" if good(report) else "⚠️" if report.failure is None else "❌"
    rows = [f"| {_plain(name)} | {_plain(before)} | **{_plain(after)}** |" for name, before, after in moves(report)]
    lines = [
        f"### {mark} {_plain(verdict(report))}",
        "",
        f"**Wrong:** {_plain(report.wrong)}",
        *(["", _code(report.error)] if report.error else []),
        *(["", "| package | before | after |", "| --- | --- | --- |", *rows] if rows else []),
        "",
        f"{report.unchanged} {'other ' if rows else ''}packages are unchanged.",
        "",
        f"**Checks:** {_plain(checked(report))}  ",  # two spaces: the next one is a line of its own
        *([f"**GPU:** {_plain(on_gpu(report))}  "] if on_gpu(report) else []),
        f"**Took:** {took(report)}",
    ]
    lines += [f"- still wrong: {_plain(text)}" for text in report.left]
    lines += ["", f"**Why:** {_plain(report.failure)}"] if report.failure else []
    lines += ["", "**Undo:**", "", _code(report.undo, "console")] if report.undo else []
    lines += ["", "<details><summary>Checks</summary>", "", *_table(report), "", "</details>"] if report.checks else []
    lines += ["", f"<sub>envmedic {_plain(report.envmedic)} · {_plain(' · '.join(report.machine))}</sub>"]
    return "\n".join(lines) + "\n"


def _table(report: Report) -> list[str]:
    """What changed or failed first; the rest as a number."""
    told = sorted(report.checks, key=lambda item: (item.after == "skip", item.before == item.after))
    rows = [
        f"| {_plain(item.check)} | {_plain(item.device or '')} | {item.before or 'not asked'} | {item.after} |"
        for item in told[:_CHECKS_SHOWN]
    ]
    more = len(told) - len(rows)
    return [
        "| check | device | before | after |",
        "| --- | --- | --- | --- |",
        *rows,
        *([f"\nand {more} more"] if more else []),
    ]


def _plain(text: str) -> str:
    """`text` as Markdown that shows it as it is."""
    return _ACTING.sub(r"\\\1", visible(text))


def _code(text: str, kind: str = "text") -> str:
    # a fence that is longer than any in the text
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{kind}\n{visible(text)}\n{fence}"
