"""Outcomes of checks as a table, before beside after."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from envmedic.model.checks import Outcome, Status, Verification, name_of
from envmedic.render.style import Style, Tone, duration, plain, table

_TONES: dict[Status, Tone] = {"pass": "good", "fail": "bad", "crash": "bad", "timeout": "bad", "skip": "warn"}
COLLAPSED_FROM = 4
"""So many passed import checks, or checks skipped or failed for one reason, are shown as one row."""


def outcome_rows(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """One row per outcome: check, device, status, time, error, reason."""
    return [
        (
            item.check,
            item.device or "",
            item.status + (f" ({item.signal})" if item.signal else ""),
            duration(item.seconds),
            "" if item.max_relative_error is None else f"err {item.max_relative_error:.1e}",
            plain(item.reason),
        )
        for item in outcomes
    ]


def outcome_lines(outcomes: Sequence[Outcome], style: Style) -> list[str]:
    """The table; a long run of passed imports is one line, and so are checks of GPUs that end alike for one reason."""
    imports = [item for item in outcomes if item.check.startswith("import ") and item.status == "pass"]
    collapse = len(imports) >= COLLAPSED_FROM
    alike = _alike(outcomes)
    hidden = {id(item) for group in alike.values() for item in group}
    shown = [item for item in outcomes if not (collapse and item in imports) and id(item) not in hidden]
    lines = [_tinted(line, item, style) for line, item in zip(table(outcome_rows(shown)), shown, strict=True)]
    if collapse:
        lines.append(f"  {len(imports)} imports passed in {duration(sum(item.seconds for item in imports))}")
    return lines + _alike_lines(alike)


def _alike(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], list[Outcome]]:
    """Outcomes of GPUs that were skipped or failed for one reason, by how and the reason, where they are many."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for item in outcomes:
        if item.status in {"skip", "fail"} and item.device == "cuda":
            found.setdefault((item.status, item.reason), []).append(item)
    return {key: items for key, items in found.items() if len(items) >= COLLAPSED_FROM}


def _alike_lines(alike: Mapping[tuple[str, str], Sequence[Outcome]]) -> list[str]:
    """A line for each reason, with the checks, without their parts."""
    lines = []
    for (status, reason), items in alike.items():
        names = ", ".join(dict.fromkeys(name_of(item.check) for item in items))
        how = "skipped" if status == "skip" else "failed"
        lines.append(f"  {len(items)} {how} on GPUs, {plain(reason)}: {names}")
    return lines


def _tinted(line: str, outcome: Outcome, style: Style) -> str:
    return line.replace(outcome.status, style(outcome.status, _TONES[outcome.status]), 1)


def verification_lines(verification: Verification, style: Style) -> list[str]:
    """The document of ``envmedic verify``."""
    word = style("passed", "good") if verification.passed else style("not passed", "bad")
    gpu = f"gpu: {verification.gpu}" + (f" ({verification.gpu_reason})" if verification.gpu_reason else "")
    lines = [*outcome_lines(verification.outcomes, style), "", f"{style('Verification', 'bold')}  {word}, {gpu}"]
    lines += [f"  regression: {plain(item)}" for item in verification.regressions]
    lines += [f"  as before: {plain(item)}" for item in verification.as_before]
    lines += [f"  better: {plain(item)}" for item in verification.better]
    lines += [f"  does not decide: {plain(item)}" for item in verification.excused]
    failed = [item for item in verification.outcomes if item.points_to and item.role != "informative"]
    pointed = (f"  {plain(item.check)} points to: {', '.join(item.points_to)}" for item in failed)
    lines += dict.fromkeys(pointed)  # once for all devices
    if failed and not verification.passed:
        lines += ["", f"Next: envmedic diagnose -p {shlex.quote(plain(verification.prefix))}"]
    return lines if verification.lock is None else [*_lock_lines(verification, style), "", *lines]


def _lock_lines(verification: Verification, style: Style) -> list[str]:
    """What is not as the lock says, or that nothing is."""
    told = f"{plain(verification.lock or '')}, {verification.compared} packages"
    if not verification.differences:
        lines = [f"{style('Lock', 'bold')}  {style('equal', 'good')} to {told}"]
    else:
        lines = [f"{style('Lock', 'bold')}  {style('not equal', 'bad')} to {told}"]
        rows = [
            (item.kind, item.name, f"{plain(item.expected or 'nothing')} -> {plain(item.found or 'nothing')}")
            for item in verification.differences
        ]
        lines += table(rows)
    if verification.unproven:
        lines.append(f"  by version alone: {', '.join(map(plain, verification.unproven))}")
    return lines


def comparison_lines(before: Sequence[Outcome], after: Sequence[Outcome], style: Style) -> list[str]:
    """Before and after, one row for each check and device whose result is not a plain pass both times."""
    earlier = {item.key: item for item in before}
    rows, passed = [], 0
    alike = _alike([item for item in after if _not_run(earlier.get(item.key))])
    hidden = {item.key for group in alike.values() for item in group}
    for item in after:
        was = earlier.get(item.key)
        if item.key in hidden:
            continue
        if item.check.startswith("import ") and item.status == "pass" and (was is None or was.status == "pass"):
            passed += 1
            continue
        note = "" if item.max_relative_error is None else f"err {item.max_relative_error:.1e}"
        if item.status != "pass":
            note = plain(item.reason)
        rows.append(
            (item.check, item.device or "", was.status if was else "-", item.status, duration(item.seconds), note)
        )
    lines = table([("check", "device", "before", "after", "time", ""), *rows]) if rows else []
    if passed:
        lines.append(f"  {passed} imports pass as before")
    return [style("Checks", "bold"), *lines, *_alike_lines(alike)]


def _not_run(outcome: Outcome | None) -> bool:
    return outcome is None or outcome.status == "skip"
