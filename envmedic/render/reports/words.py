"""The sentences that every form of a report has. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from envmedic.model.answers.report import Report
from envmedic.render.changes import NOTHING
from envmedic.render.style import duration
from envmedic.render.text import visible

_OUTCOMES = {
    "repaired": "Repaired",
    "partial": "Repaired in part",
    "installed": "Installed in a copy, checked, and swapped in",
    "snapshot": "Snapshot",
    "already": "Repaired before",
}


def verdict(report: Report) -> str:
    """The end in a few words."""
    if report.failure is not None or report.outcome == "unchanged":
        return "Not repaired: the environment is unchanged"
    word = _OUTCOMES.get(report.outcome, report.outcome)
    proof = " and verified on the GPU" if report.gpu.startswith("verified") else ""
    return f"{word}{proof}{', and undone since' if report.undone else ''}"


def good(report: Report) -> bool:
    """Whether everything that was wrong is mended, and proven where a GPU has to."""
    return report.outcome == "repaired" and not report.undone and not report.gpu.startswith("not verified")


def moves(report: Report) -> Iterator[tuple[str, str, str]]:
    """Name, before and after of each change."""
    for item in report.changes:
        yield visible(item.name), visible(item.before or NOTHING), visible(item.after or "removed")


def checked(report: Report) -> str:
    """The checks in one line: what was skipped is never counted as passed."""
    parts = [f"{report.passed} passed"]
    parts += [f"{report.mended} of them failed before"] if report.mended else []
    parts += [f"{report.failed} failed"] if report.failed else []
    parts += [f"{report.skipped} could not run here"] if report.skipped else []
    return ", ".join(parts) if report.checks else "none"


def on_gpu(report: Report) -> str:
    """Whether a GPU has proven it; empty where none was needed."""
    return "" if report.gpu == "not needed" else report.gpu


def took(report: Report) -> str:
    """How long it took."""
    return duration(report.total_seconds)
