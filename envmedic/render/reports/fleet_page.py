"""How a rollout ended on each machine, as a page in HTML with a picture of them all. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envmedic.model.answers.fleet import FleetStatus, NodeEnd, NodeStatus
from envmedic.render.documents.answers.fleet import END_TONES
from envmedic.render.reports.page import told, whole
from envmedic.wording import counted

_MARKS: Mapping[NodeEnd, str] = {
    "repaired": "✓", "already": "✓", "partial": "!", "other-class": "≠", "changed": "Δ", "refused": "-", "failed": "✗",
    "undone": "↶", "unknown": "?",
}  # fmt: skip
_CELL, _ACROSS = 22, 40


def fleet_page(found: FleetStatus, place: str) -> str:
    """The page: how many ended in which way, a square for each machine by class, and why some are not repaired."""
    by_name = {item.node: item for item in found.nodes}
    inside = {node for item in found.classes for node in item.nodes}
    groups = [(f"Class {item.name}", [by_name[node] for node in item.nodes]) for item in found.classes]
    groups.append(("Machines in no class" if inside else "", [item for item in found.nodes if item.node not in inside]))
    done = sum(item.outcome in {"repaired", "already"} for item in found.nodes)
    title = f"{done:,} of {counted(len(found.nodes), 'machine')} repaired"
    rows = [
        f'<tr><td>{told(item.node)}</td><td class="{_tone(item.outcome)}">{_MARKS[item.outcome]} {item.outcome}</td>'
        f"<td>{told(item.reason)}</td></tr>"
        for item in found.nodes
        if item.outcome not in {"repaired", "already"}
    ]
    parts = [
        f'<h1 class="{"good" if found.done else "warn"}">{title}</h1>',
        f'<p class="dim">{told(place)}</p>',
        f"<p>{' · '.join(_legend(found))}</p>",
        *(part for name, nodes in groups if nodes for part in _group(name, nodes)),
        f"<h2>Not repaired</h2><table><tr><th>machine</th><th>outcome</th><th>why</th></tr>{''.join(rows)}</table>"
        if rows
        else "",
    ]
    return whole(title, parts)


def _legend(found: FleetStatus) -> Iterator[str]:
    for outcome, mark in _MARKS.items():
        count = found.counts.get(outcome, 0)
        if count:
            yield f'<span class="{_tone(outcome)}">{mark} {outcome}</span> {count:,}'


def _group(name: str, nodes: Sequence[NodeStatus]) -> tuple[str, str]:
    heading = f"<h2>{name}: {counted(len(nodes), 'machine')}</h2>" if name else ""
    height = _CELL * -(-len(nodes) // _ACROSS)
    cells = "".join(_cell(number, item) for number, item in enumerate(nodes))
    return heading, f'<svg class="nodes" viewBox="0 0 {_CELL * _ACROSS} {height}" role="img">{cells}</svg>'


def _cell(number: int, item: NodeStatus) -> str:
    row, column = divmod(number, _ACROSS)
    x, y, side = column * _CELL, row * _CELL, _CELL - 2
    words = f"{item.node}: {item.outcome}{f': {item.reason}' if item.reason else ''}"
    return (
        f'<g class="{_tone(item.outcome)}"><title>{told(words)}</title><rect x="{x}" y="{y}" width="{side}" height="{side}"'
        f' rx="3"/><text x="{x + side / 2:g}" y="{y + side * 0.72:g}">{_MARKS[item.outcome]}</text></g>'
    )


def _tone(outcome: NodeEnd) -> str:
    return END_TONES.get(outcome, "bad")
