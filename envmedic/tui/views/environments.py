"""Environments as lines: an item of the list, and the card of the chosen one."""

from __future__ import annotations

from envmedic.model.facts import Distribution, Environment
from envmedic.model.findings import Diagnosis
from envmedic.render.facts import family
from envmedic.tui.session import Known
from envmedic.tui.text import Line, TextPart, Tone, end, line, middle, visible, width

_STATES: dict[str, tuple[str, Tone]] = {
    "waiting": ("· not read yet", "dim"),
    "reading": ("… reading", "dim"),
    "failed": ("! cannot be read", "warn"),
    "left": ("· envmedic's own", "dim"),
}
_VERDICTS: dict[str, tuple[str, Tone]] = {
    "healthy": ("✓ no fault found", "good"),
    "host": ("! fault of the host", "bad"),
    "not-an-env-problem": ("· not the environment", "dim"),
    "unknown": ("? nothing sure", "warn"),
}


def environment_item(known: Known, cells: int) -> list[Line]:
    """Two lines: what it is called, and how it is."""
    mark = "* " if known.found.active else "  "
    name = known.found.name
    path = visible(known.prefix)
    title = f"{visible(name)}  {path}" if name else path
    room = max(cells - len(mark), 4)
    state, tone = state_of(known)
    kind = _kind(known)
    shown = end(state, room)
    return [
        (TextPart(mark, "good"), TextPart(middle(title, room), "bold" if known.found.active else "plain")),
        (TextPart("  "), TextPart(shown, tone), TextPart(end(f"  {kind}", max(room - width(shown), 0)), "dim")),
    ]


def state_of(known: Known) -> tuple[str, Tone]:
    """How it is, in a word with a mark."""
    if known.diagnosis is None or known.phase in {"failed", "left"}:
        return _STATES[known.phase]
    return verdict_of(known.diagnosis)


def verdict_of(diagnosis: Diagnosis) -> tuple[str, Tone]:
    """The verdict in a word with a mark; of faults the first."""
    if diagnosis.verdict != "env":
        return _VERDICTS[diagnosis.verdict]
    first, *others = diagnosis.findings
    more = f" +{len(others)}" if others else ""
    return (f"✗ {first.fault}{more}", "bad") if first.confirmed else (f"? {first.fault}{more}", "warn")


def _kind(known: Known) -> str:
    found = known.found
    kind = found.tool if found.tool not in {None, "unknown"} else found.kind
    return f"{kind} {found.python}" if found.python else str(kind)


def environment_card(known: Known | None) -> list[Line]:
    """What it is, and its torch family with variants and owners."""
    if known is None:
        return [line("No environment is chosen.", "dim")]
    lines = [line(known.prefix, "bold")]
    if known.phase == "left":
        return [*lines, line("envmedic runs from it, and leaves it alone.", "dim")]
    if known.error is not None:
        lines.append(line(f"! {known.error.summary}", "bad"))
        return lines + [line(f"  {text}") for text in (known.error.cause, known.error.hint) if text]
    environment = known.environment
    if environment is None:
        return [*lines, *_first_look(known)]
    return [*lines, *_interpreter(environment), *_family(environment)]


def _first_look(known: Known) -> list[Line]:
    state, tone = state_of(known)
    torch = f", torch {known.found.torch}" if known.found.torch else ""
    return [_row("python", f"{known.found.python or '?'}{torch}"), line(state, tone)]


def _interpreter(environment: Environment) -> list[Line]:
    python = environment.interpreter
    if not python.starts:
        return [(TextPart("python  ", "dim"), TextPart(f"✗ does not start: {visible(python.error or '?')}", "bad"))]
    count = len(environment.distributions)
    return [_row("python", f"{python.version or '?'}, {environment.kind}, {count} distributions")]


def _family(environment: Environment) -> list[Line]:
    found = family(environment)
    if not found:
        return [line("torch is not installed", "dim")]
    return [_row(item.name, _member(environment, item)) for item in found]


def _member(environment: Environment, item: Distribution) -> str:
    """Version, variant and owner."""
    if item.name == "torch":
        variant = environment.torch.variant if environment.torch is not None else None
    else:
        companion = environment.companion(item.name)
        variant = companion.variant if companion is not None else None
    built = f" for {variant}" if variant and item.local != variant else ""
    return visible(f"{item.version}{built}, by {item.owner}")


def _row(label: str, text: str) -> Line:
    return (TextPart(f"{label}  ", "dim"), TextPart(text))
