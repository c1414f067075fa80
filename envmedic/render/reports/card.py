"""A report as a small picture in SVG, for a chat or a page. Pure."""

from __future__ import annotations

from html import escape
from textwrap import wrap

from envmedic.model.answers.report import Report
from envmedic.render.reports.words import checked, good, moves, on_gpu, took, verdict
from envmedic.render.text import ELLIPSIS, visible

_WIDTH, _ROW, _LEFT, _BODY = 720, 26, 28, 14
_LETTERS = 78
"""Letters of the body that fit into a line."""
_CHANGES_SHOWN = 6
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_TEXT, _DIM, _GOOD, _BAD, _WARN, _BACK = "#d8dee9", "#8b93a1", "#87c38a", "#ef7a7a", "#e5c07b", "#14171c"


def card(report: Report) -> str:
    """The card: the verdict, what was wrong, what changed, the checks, and the way back."""
    colour = _GOOD if good(report) else _WARN if report.failure is None else _BAD
    mark = "✓" if good(report) else "!" if report.failure is None else "✗"
    wrong = wrap(visible(report.wrong), _LETTERS, max_lines=2, placeholder=ELLIPSIS) or [""]
    rows = [_row([(f"{mark} {verdict(report)}", colour)], size=20), "", *(_row([(row, _TEXT)]) for row in wrong)]
    listed = list(moves(report))
    widest = max((len(name) for name, _, _ in listed), default=0)
    for name, before, after in listed[:_CHANGES_SHOWN]:
        rows.append(_row([(f"  {name:<{widest}}  ", _TEXT), (before, _BAD), ("  →  ", _DIM), (after, _GOOD)]))
    more = len(listed) - _CHANGES_SHOWN
    rows += [_row([(f"  and {more} more", _DIM)])] if more > 0 else []
    rows += [_row([(f"  {report.unchanged} other packages are unchanged", _DIM)])]
    rows += [
        "",
        _row([("Checks  ", _DIM), (checked(report), _TEXT)]),
        _row([("Took    ", _DIM), (took(report), _TEXT)]),
    ]
    rows += [_row([("GPU     ", _DIM), (on_gpu(report), _TEXT)])] if on_gpu(report) else []
    rows += [_row([("Still   ", _DIM), (text, _WARN)]) for text in report.left[:2]]
    rows += [_row([("Why     ", _DIM), (report.failure, _BAD)])] if report.failure else []
    rows += [_row([("Undo    ", _DIM), (report.undo, _TEXT)])] if report.undo else []
    rows += ["", _row([(f"envmedic {report.envmedic} · {' · '.join(report.machine)}", _DIM)], size=12)]
    height = _ROW * len(rows) + 2 * _LEFT
    placed = (text.replace("@y", str(_LEFT + _ROW * number + 18)) for number, text in enumerate(rows) if text)
    box = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{escape(visible(verdict(report)))}">',
        f'<rect width="{_WIDTH}" height="{height}" rx="12" fill="{_BACK}"/>',
        f'<rect width="6" height="{height}" rx="3" fill="{colour}"/>',
        f'<g font-family="{_FONT}" xml:space="preserve">',
        *placed,
        "</g>",
        "</svg>",
        "",
    ])  # fmt: skip


def _row(pieces: list[tuple[str, str]], *, size: int = _BODY) -> str:
    """A line of coloured pieces, cut where the card ends."""
    room, drawn = _LETTERS * _BODY // size, []
    for text, colour in pieces:
        shown = visible(text)
        shown = shown if len(shown) <= room else shown[: max(room - 1, 0)] + ELLIPSIS
        room -= len(shown)
        drawn.append(f'<tspan fill="{colour}">{escape(shown)}</tspan>')
    weight = ' font-weight="bold"' if size > _BODY else ""
    return f'<text x="{_LEFT}" y="@y" font-size="{size}"{weight} xml:space="preserve">{"".join(drawn)}</text>'
