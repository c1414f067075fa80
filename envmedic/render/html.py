"""Lines as HTML, to stand in a page of others: notebooks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from envmedic.render.text import Line, TextPart, Tone

# colours of JupyterLab's theme, and of VS Code's where that draws the notebook; else some that can be read on both grounds
_TONES: dict[Tone, str] = {
    "good": "color:var(--jp-success-color1,var(--vscode-testing-iconPassed,#2e8b57))",
    "bad": "color:var(--jp-error-color1,var(--vscode-errorForeground,#d64545));font-weight:600",
    "match": "color:var(--jp-error-color1,var(--vscode-errorForeground,#d64545));font-weight:600",
    "warn": "color:var(--jp-warn-color0,var(--vscode-editorWarning-foreground,#b7791f));font-weight:600",
    "dim": "opacity:.65",
    "bold": "font-weight:600",
    "accent": "color:var(--jp-brand-color1,var(--vscode-textLink-foreground,#3578c6))",
}
_BOX = (
    "border-left:4px solid {colour};padding:.4em 0 .5em .9em;margin:.3em 0;white-space:pre-wrap;overflow-wrap:anywhere;"
    "font-family:var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,Menlo,Consolas,monospace));"
    "font-size:13px;line-height:1.45"
)
_EDGES: dict[Tone, str] = {
    "good": "var(--jp-success-color1,#2e8b57)",
    "bad": "var(--jp-error-color1,#d64545)",
    "warn": "var(--jp-warn-color1,#b7791f)",
}
_EDGE = "var(--jp-border-color1,#8888)"
_COMMAND = (
    "user-select:all;-webkit-user-select:all;padding:.1em .4em;border-radius:3px;font-weight:600;"
    "background:var(--jp-layout-color2,var(--vscode-textCodeBlock-background,#8882));color:inherit"
)
# without a secure connection there is no clipboard to write to: then the command is selected
_COPY = (
    "(function(b){var c=b.previousElementSibling,s=getSelection(),r=document.createRange();r.selectNodeContents(c);"
    "s.removeAllRanges();s.addRange(r);if(navigator.clipboard){navigator.clipboard.writeText(c.textContent)}"
    "else{document.execCommand('copy')}b.textContent='copied'})(this)"
)
_BUTTON = "margin-left:.6em;font:inherit;font-size:11px;cursor:pointer"


def block(lines: Sequence[Line]) -> str:
    """`lines` as one element, without a style sheet; the first is the heading. Commands can be copied by a click.

    A command is selected as a whole, also where a page takes buttons away.
    """
    first = lines[0][0].tone if lines and lines[0] else "plain"
    rows = [f'<div style="font-size:15px">{_row(lines[0])}</div>'] if lines else []
    rows += [f"<div>{_row(row) or '&nbsp;'}</div>" for row in lines[1:]]
    return f'<div style="{_BOX.format(colour=_EDGES.get(first, _EDGE))}">{"".join(rows)}</div>'


def _row(row: Line) -> str:
    return "".join(map(_part, row))


def _part(piece: TextPart) -> str:
    text = escape(piece.text)
    if piece.tone == "command":
        return (
            f'<code style="{_COMMAND}">{text}</code><button style="{_BUTTON}" onclick="{escape(_COPY)}">copy</button>'
        )
    style = _TONES.get(piece.tone)
    return f'<span style="{style}">{text}</span>' if style else text
