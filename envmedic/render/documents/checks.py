"""Outcomes of checks as a table, before beside after."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from envmedic.model.checks import Outcome, Status, Verification, name_of
from envmedic.render.documents.gpu_health import gpu_health_lines
from envmedic.render.style import duration
from envmedic.render.text import Cell, Line, Tone, joined, line, part, table, visible
from envmedic.wording import counted

STATUS_TONES: dict[Status, Tone] = {"pass": "good", "fail": "bad", "crash": "bad", "timeout": "bad", "skip": "warn"}
COLLAPSED_FROM = 4
"""So many passed import checks, or checks skipped or failed for one reason, are shown as one row."""
_NAMES_SHOWN = 4


def outcome_lines(outcomes: Sequence[Outcome]) -> list[Line]:
    """The table; a long run of passed imports is one line, and so are checks of GPUs that end alike for one reason."""
    # a profile imports dozens of packages, and a passed import says nothing by itself
    imports = [item for item in outcomes if item.check.startswith("import ") and item.status == "pass"]
    collapse = len(imports) >= COLLAPSED_FROM
    alike = _alike(outcomes)
    # by identity: equal outcomes are still two rows
    hidden = {id(item) for group in alike.values() for item in group}
    shown = [item for item in outcomes if not (collapse and item in imports) and id(item) not in hidden]
    lines = [*table(list(map(_row, shown))), *_gpu_lines(shown)]
    if collapse:
        lines.append(
            line(f"  {counted(len(imports), 'import')} passed in {duration(sum(item.seconds for item in imports))}")
        )
    return lines + _alike_lines(alike)


def _row(item: Outcome) -> Sequence[Cell]:
    """Check, device, status, time, error, reason."""
    return (
        _name(item),
        _place(item),
        part(item.status + (f" ({item.signal})" if item.signal else ""), STATUS_TONES[item.status]),
        duration(item.seconds),
        "" if item.max_relative_error is None else f"err {item.max_relative_error:.1e}",
        item.reason,
    )


def _name(item: Outcome) -> str:
    """The check's name; a command line is as long as it likes, and is told elsewhere."""
    return "your program" if name_of(item.check) == "command" else item.check


def _place(item: Outcome) -> str:
    """The device as torch numbers it: the name of a GPU, the same in each row, is as long as all else of one."""
    return (item.device or "").partition(" ")[0]


def _gpu_lines(outcomes: Iterable[Outcome]) -> list[Line]:
    """A line with the name of each GPU that rows are about."""
    named = {item.device for item in outcomes if item.device is not None and " " in item.device}
    return [line(f"  {device.replace(' ', ' is ', 1)}") for device in sorted(named)]


def _alike(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], list[Outcome]]:
    """Outcomes of GPUs that were skipped or failed for one reason, by status and reason, where they are many."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for item in outcomes:
        if item.status in {"skip", "fail"} and item.device == "cuda":
            found.setdefault((item.status, item.reason), []).append(item)
    return {key: items for key, items in found.items() if len(items) >= COLLAPSED_FROM}


def _alike_lines(alike: Mapping[tuple[str, str], Sequence[Outcome]]) -> list[Line]:
    """A line for each reason, with the checks, without their parts."""
    lines = []
    for (status, reason), items in alike.items():
        names = some(dict.fromkeys(name_of(item.check) for item in items))
        how = "skipped" if status == "skip" else "failed"
        lines.append(line(f"  {len(items)} {how} on GPUs, {reason}: {names}"))
    return lines


def some(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    listed = list(names)
    more = len(listed) - _NAMES_SHOWN
    return ", ".join(listed[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def verification_lines(verification: Verification) -> list[Line]:
    """The document of ``envmedic verify``."""
    word = part("passed", "good") if verification.passed else part("not passed", "bad")
    gpu = f"gpu: {verification.gpu}" + (f" ({verification.gpu_reason})" if verification.gpu_reason else "")
    lines = [
        *outcome_lines(verification.outcomes),
        line(""),
        joined(part("Verification", "bold"), "  ", word, f", {gpu}"),
    ]
    lines += [line(f"  regression: {item}") for item in verification.regressions]
    lines += [line(f"  as before: {item}") for item in verification.as_before]
    lines += [line(f"  better: {item}") for item in verification.better]
    lines += [line(f"  does not decide: {item}") for item in verification.excused]
    lines += [joined(part("  warning: ", "warn"), item) for item in verification.warnings]
    if verification.gpu_health is not None:
        lines += [line(""), *gpu_health_lines(verification.gpu_health, warnings=False)]
    # an informative check decides nothing, so it is no reason for a diagnosis
    failed = [item for item in verification.outcomes if item.points_to and item.role != "informative"]
    pointed = (f"  {item.check} points to: {', '.join(item.points_to)}" for item in failed)
    lines += map(line, dict.fromkeys(pointed))  # once for all devices
    if failed and not verification.passed:
        lines += [
            line(""),
            joined(
                part("Next: ", "bold"),
                part(f"envmedic diagnose -p {shlex.quote(visible(verification.prefix))}", "command"),
            ),
        ]
    return lines if verification.lock is None else [*_lock_lines(verification), line(""), *lines]


def _lock_lines(verification: Verification) -> list[Line]:
    """Differences from the lock, or that there are none."""
    equal = not verification.differences
    word = part("equal", "good") if equal else part("not equal", "bad")
    rows = [
        (item.kind, item.name, f"{item.expected or 'nothing'} -> {item.found or 'nothing'}")
        for item in verification.differences
    ]
    head = joined(part("Lock", "bold"), "  ", word, f" to {verification.lock}, {verification.compared} packages")
    unproven = [line(f"  by version alone: {', '.join(verification.unproven)}")] if verification.unproven else []
    return [head, *table(rows), *unproven]


def comparison_lines(before: Sequence[Outcome], after: Sequence[Outcome]) -> list[Line]:
    """Before and after, one row for each check and device whose result is not a plain pass both times."""
    earlier = {item.key: item for item in before}
    rows: list[tuple[Cell, ...]] = []
    named: list[Outcome] = []
    passed: list[Outcome | None] = []
    proven = _proven(earlier, after)
    alike = _alike([item for item in after if _not_run(earlier.get(item.key))])
    hidden = {item.key for group in alike.values() for item in group}
    for item in after:
        was = earlier.get(item.key)
        if item.key in hidden or item in proven.get(_where(item), ()):
            continue
        if item.check.startswith("import ") and item.status == "pass" and (was is None or was.status == "pass"):
            passed.append(was)
            continue
        note = "" if item.max_relative_error is None else f"err {item.max_relative_error:.1e}"
        if item.status != "pass":
            note = item.reason
        first = part(was.status, STATUS_TONES[was.status]) if was else "-"
        last = part(item.status, STATUS_TONES[item.status])
        named.append(item)
        rows.append((_name(item), _place(item), first, last, duration(item.seconds), note))
    lines = table([("check", "device", "before", "after", "time", ""), *rows]) if rows else []
    lines += _gpu_lines(item for item in named if _where(item) not in proven)
    lines += [
        line(f"  {counted(len(items), 'check passes', 'checks pass')} on {where}") for where, items in proven.items()
    ]
    if passed:
        # most imports are asked after the steps alone: what they did before is asked of one that fails
        known = " as before" if None not in passed else ""
        lines.append(line(f"  {len(passed)} {'import passes' if len(passed) == 1 else 'imports pass'}{known}"))
    return [line("Checks", "bold"), *lines, *_alike_lines(alike)]


def _proven(earlier: Mapping[tuple[str, str | None], Outcome], after: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """What passes on each device and did not fail there before, where it is much: a row for each would bury the others."""
    found: dict[str, list[Outcome]] = {}
    for item in after:
        was = earlier.get(item.key)
        if item.status == "pass" and (was is None or was.status == "pass") and item.device:
            found.setdefault(_where(item), []).append(item)
    return {device: items for device, items in found.items() if len(items) >= COLLAPSED_FROM}


def _where(item: Outcome) -> str:
    """The device of an outcome in a sentence."""
    return "the CPU" if item.device == "cpu" else "all GPUs" if item.device == "cuda" else item.device or ""


def _not_run(outcome: Outcome | None) -> bool:
    return outcome is None or outcome.status == "skip"
