"""Answers about many machines: classes, drift, and how a plan ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from envmedic.model.answers.content import ContentDifference
from envmedic.model.answers.fleet import Drift, FleetClass, FleetDiagnosis, FleetStatus, NodeEnd, SilentNode, Survey
from envmedic.render.documents.diagnosis import headline, sureness
from envmedic.render.text import Line, Tone, joined, line, part, shortened
from envmedic.wording import counted

_MOST_NODES = 8
_MOST_DIFFERENCES = 6
_SHORT = 12
END_TONES: Final[Mapping[NodeEnd, Tone]] = {
    "repaired": "good", "already": "good", "partial": "warn",
    "unknown": "warn", "undone": "warn",
}  # fmt: skip
"""Of how a plan ended on a machine; of others `bad`."""


def survey_lines(found: Survey) -> list[Line]:
    """A row for each class, and in what it differs from the first; or the command that collects the documents."""
    if found.command:
        return [
            line("This collects a document of each machine; run it where the engine is:"),
            line(f"  {found.command}"),
        ]
    answered = sum(len(item.nodes) for item in found.classes)
    rows = [line(f"{counted(answered, 'machine')} in {counted(len(found.classes), 'class', 'classes')}", "bold")]
    for item in found.classes:
        rows += _class_lines(item, found.classes[0].name)
    return rows + silent_lines(found.silent)


def _class_lines(item: FleetClass, first: str) -> list[Line]:
    own = item.environment
    parts = [own.machine, own.python, f"driver {own.driver or 'none'}", f"GPUs {', '.join(own.gpus) or 'none'}"]
    rows = [
        joined(
            part(f"class {item.name}", "bold"),
            f"  {counted(len(item.nodes), 'machine')}  {', '.join(parts)}  content {own.content[:_SHORT]}",
        ),
        line(f"    {some(item.nodes)}"),
    ]
    if item.machine:
        rows.append(line(f"    other than {first}: {'; '.join(item.machine)}"))
    return rows + (
        [line(f"    differs from {first}:"), *_difference_lines(item.content, "      ")] if item.content else []
    )


def fleet_diagnosis_lines(found: FleetDiagnosis) -> list[Line]:
    """Each class with its verdict and its findings, a line for each."""
    rows: list[Line] = []
    for item in found.classes:
        judged = item.diagnosis
        _, tone, sentence = headline(judged)
        rows += _class_lines(item.machines, found.classes[0].machines.name)
        rows.append(joined("    ", part(judged.verdict, tone), f": {judged.reason or sentence}"))
        rows += [line(f"      {one.fault}, {sureness(one)}: {one.summary}") for one in judged.findings]
    return rows + silent_lines(found.silent)


def drift_lines(found: Drift) -> list[Line]:
    """How many are the same, then machines that differ, those with the same differences together."""
    rows = [line(f"{counted(len(found.same), 'machine')} with the content of {found.against}", "bold")]
    alike: dict[tuple[ContentDifference, ...], list[str]] = {}
    for item in found.drifted:
        alike.setdefault(item.differences, []).append(item.node)
    for differences, nodes in alike.items():
        verb = "differs" if len(nodes) == 1 else "differ"
        rows += [joined(part(f"{counted(len(nodes), 'machine')} {verb}", "bad"), f": {some(nodes)}")]
        rows += _difference_lines(differences, "    ")
    return rows + silent_lines(found.silent)


def status_lines(found: FleetStatus) -> list[Line]:
    """How many ended in which way, and the reason of each that is not repaired."""
    rows = [line(_counts(found.counts) or "no machine", "bold")]
    width = max((len(item.name) for item in found.classes), default=0)
    rows += [line(f"  class {item.name:<{width}}  {_counts(item.counts)}") for item in found.classes]
    for item in found.nodes:
        if item.outcome not in {"repaired", "already", "undone"}:
            tone = END_TONES.get(item.outcome, "bad")
            rows.append(joined("  ", part(f"{item.outcome:<11}", tone), f" {item.node}  {shortened(item.reason)}"))
    return rows


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())


def _difference_lines(differences: Sequence[ContentDifference], indent: str) -> list[Line]:
    rows = [line(f"{indent}{_told(item)}") for item in differences[:_MOST_DIFFERENCES]]
    more = len(differences) - _MOST_DIFFERENCES
    return rows + ([line(f"{indent}and {more} more; --json lists them")] if more > 0 else [])


def _told(item: ContentDifference) -> str:
    if item.kind == "untracked":
        what = "added" if item.before is None else "gone" if item.after is None else "changed"
        return f"{item.name}: {what}, and no distribution lists it"
    if item.before == item.after:
        files = f": {shortened(', '.join(item.altered))}" if item.altered else ""
        return f"{item.name} {item.after}: other files{files}"
    return f"{item.name}: {item.before or 'not there'} -> {item.after or 'not there'}"


def silent_lines(silent: Sequence[SilentNode]) -> list[Line]:
    """Machines without a usable document, each with the reason."""
    rows = [line(f"  {item.node}: {item.why}") for item in silent[:_MOST_NODES]]
    more = len(silent) - _MOST_NODES
    head = [line(f"{counted(len(silent), 'machine')} without a usable document", "warn")] if silent else []
    return head + rows + ([line(f"  and {more} more; --json lists them")] if more > 0 else [])


def some(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    known = list(names)
    more = len(known) - _MOST_NODES
    return " ".join(known[:_MOST_NODES]) + (f" and {more} more" if more > 0 else "")
