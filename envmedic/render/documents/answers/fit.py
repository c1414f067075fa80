"""The answer of ``envmedic check -r``, for people and as SARIF for code scanning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from envmedic import __version__
from envmedic.model.answers.fit import Fit, Fits, FitVerdict, Objection
from envmedic.render.text import Line, Tone, joined, line, part

_WORDS: Final[Mapping[FitVerdict, tuple[str, Tone]]] = {
    "fits": ("yes", "good"),
    "does-not-fit": ("no", "bad"),
    "unknown": ("not sure", "warn"),
}
_SIGNS: Final[Mapping[str, tuple[str, Tone]]] = {"error": ("  - ", "bad"), "warning": ("  ? ", "warn")}
_MOST_UNJUDGED = 10


def fits_lines(found: Fits) -> list[Line]:
    """The answer for each file, its reasons with their lines, and what was not judged."""
    return [row for item in found.fits for row in _fit_lines(item)]


def _fit_lines(item: Fit) -> list[Line]:
    gpus = ", ".join(item.capabilities) or "none"
    rows = [
        joined(part(*_WORDS[item.verdict]), f"  {item.file}: {item.summary}"),
        line(
            f"  judged for Python {item.python}, driver {item.driver or 'unknown'}, GPUs of compute capability: {gpus}"
        ),
    ]
    rows += [
        joined(part(*_SIGNS[one.severity]), part(f"{item.file}:{one.line}  ", "dim"), one.text) for one in item.misfits
    ]
    rows += [line(f"    not judged: {text}") for text in item.unjudged[:_MOST_UNJUDGED]]
    more = len(item.unjudged) - _MOST_UNJUDGED
    return rows + ([line(f"    and {more} more that were not judged; --json lists them")] if more > 0 else [])


def sarif(found: Fits) -> dict[str, Any]:
    """The misfits as a SARIF 2.1.0 log; source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/."""
    rules = sorted({item.rule for fit in found.fits for item in fit.misfits})
    driver = {"name": "envmedic", "version": __version__, "rules": [{"id": rule} for rule in rules]}
    results = [_result(fit.file, item) for fit in found.fits for item in fit.misfits]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(file: str, item: Objection) -> dict[str, Any]:
    place: Sequence[dict[str, Any]] = [
        {"physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": max(item.line, 1)}}}
    ]
    return {"ruleId": item.rule, "level": item.severity, "message": {"text": item.text}, "locations": place}
