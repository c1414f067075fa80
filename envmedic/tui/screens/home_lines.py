"""Lines of the first screen: environments of the list, the card of the chosen one, and the verdict."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from envmedic.errors import EnvmedicError
from envmedic.model.facts import Host
from envmedic.render.cells import end, middle, padded, width
from envmedic.render.documents.diagnosis import headline, outlook_line, verdict_of
from envmedic.render.documents.disagreement import disagreement_lines
from envmedic.render.documents.environments import kind_of
from envmedic.render.documents.facts import family
from envmedic.render.pages.cards import environment_rows, host_card, labelled, no_gpu
from envmedic.render.text import Line, TextPart, Tone, joined, line, part, visible
from envmedic.tui.session import AppState, Known

_STATES: dict[str, tuple[str, Tone]] = {
    "waiting": ("· not read yet", "dim"),
    "reading": ("… reading", "dim"),
    "failed": ("! cannot be read", "warn"),
    "left": ("· envmedic's own", "dim"),
}


_OTHER: Final = 2
WORTH_FOLDING: Final = 3
"""Environments without torch from which they are folded into a line."""
PICTURES: Final = 2
"""Distributions shown that disagree with torch; the page on the finding has all."""
ONE_LINE: Final = 60
"""Cells from which name and state stand in one line."""


def listed(environments: Sequence[Known], chosen: str) -> tuple[list[Known], list[Known]]:
    """Environments in the order in which they are shown: broken ones, then those with torch; and the rest.

    The chosen one and the active one are never of the rest, and a few are not worth folding.
    """
    ordered = sorted(environments, key=_rank)
    rest = [item for item in ordered if _rank(item)[0] == _OTHER and not item.found.active and item.prefix != chosen]
    if len(rest) < WORTH_FOLDING:
        return ordered, []
    return [item for item in ordered if item not in rest], rest


def _rank(known: Known) -> tuple[int, bool]:
    broken = known.diagnosis is not None and known.diagnosis.explains
    torch = known.environment.torch if known.environment is not None else known.found.torch
    looked_at = known.phase == "failed" or torch is not None
    return 0 if broken else 1 if looked_at and known.phase != "left" else _OTHER, not known.found.active


def rest_item(count: int) -> list[Line]:
    """The line that stands for environments that are folded away."""
    return [line(f"   {count} others, without torch", "dim")]


def environment_item(known: Known, cells: int, *, chosen: bool = False) -> list[Line]:
    """Its name, path and state: one line where it fits, else two. ``▸`` marks the chosen one, ``*`` the active one."""
    found = known.found
    mark = ("▸" if chosen else " ") + ("* " if found.active else "  ")
    path = visible(known.prefix)
    title = f"{visible(found.name)}  {path}" if found.name else path
    room = max(cells - len(mark), 4)
    state, tone = _state(known)
    name: Tone = "bold" if chosen else "plain"
    if cells >= ONE_LINE:
        state = end(state, room // 2)
        left = room - width(state) - 2
        return [
            (TextPart(mark, "accent"), TextPart(padded(middle(title, left), left) + "  ", name), TextPart(state, tone))
        ]
    shown = end(state, room)
    kind = f"{kind_of(found)} {found.python}" if found.python else kind_of(found)
    return [
        (TextPart(mark, "accent"), TextPart(middle(title, room), name)),
        (
            TextPart(" " * len(mark)),
            TextPart(shown, tone),
            TextPart(end(f"  {kind}", max(room - width(shown), 0)), "dim"),
        ),
    ]


def _state(known: Known) -> tuple[str, Tone]:
    """The state in a few words with a mark."""
    if known.diagnosis is None or known.phase in {"failed", "left"}:
        return _STATES[known.phase]
    return verdict_of(known.diagnosis)


def environment_card(known: Known | None) -> list[Line]:
    """The prefix, the interpreter and the torch family, as far as they are known."""
    if known is None:
        return [line("No environment is chosen.", "dim")]
    lines = [line(known.prefix, "bold")]
    if known.phase == "left":
        return [*lines, line("envmedic runs from it, and leaves it alone.", "dim")]
    if known.error is not None:
        lines.append(line(f"! {known.error.summary}", "bad"))
        return lines + [line(f"  {text}") for text in (known.error.cause, known.error.hint) if text]
    if known.environment is not None:
        return [*lines, *environment_rows(known.environment)]
    torch = f", torch {known.found.torch}" if known.found.torch else ""
    return [*lines, labelled("python", f"{known.found.python or '?'}{torch}"), line(*_state(known))]


def environment_line(known: Known | None) -> Line:
    """The torch family and the interpreter of the chosen environment in one line."""
    if known is None or known.environment is None:
        return environment_card(known)[-1]
    members = [f"{item.name} {item.version}" for item in family(known.environment)]
    python = known.environment.interpreter.version or "?"
    return line(" · ".join([*(members or ["no torch"]), f"Python {python}"]))


def host_line(host: Host | None, error: EnvmedicError | None) -> Line:
    """GPUs and driver in one line."""
    if host is None or error is not None:
        return host_card(host, error)[0]
    if not host.gpus:
        return line(no_gpu(host), "dim")
    first, *others = host.gpus
    more = f" and {len(others)} more" if others else ""
    newest = f", runs CUDA up to {host.driver_cuda}" if host.driver_cuda else ""
    return line(f"{first.name}{more} · driver {host.driver_version or '?'}{newest}", "dim")


def no_findings(session: AppState) -> str:
    """What stands in place of findings: nothing is known before something was read."""
    current = session.current
    if session.diagnosis is not None:
        return "No findings"
    if session.searching or (current is not None and current.phase in {"waiting", "reading"}):
        return "… nothing read yet"
    return "Nothing to show yet: choose an environment, or paste an error text"


def verdict_lines(session: AppState) -> list[Line]:
    """The verdict on the chosen environment or the given text, its source and its reason."""
    diagnosis = session.diagnosis
    lines = [*_repair(session), *_interrupted(session), *_source(session)]
    if diagnosis is None:
        current = session.current
        waiting = current is not None and current.phase in {"waiting", "reading"}
        return [*lines, line("… waiting for the facts", "dim")] if waiting or session.searching else lines
    mark, tone, sentence = headline(diagnosis)
    pictures: list[Line] = []
    if diagnosis.verdict == "env":
        of = session.current.environment if session.current is not None else None
        pictures = [(TextPart("  "), *row) for row in disagreement_lines(of)[:PICTURES]]
    repair = (
        [joined(part("  Repair  ", "bold"), *outlook_line(diagnosis.repair))] if diagnosis.repair is not None else []
    )
    reasons = [*([diagnosis.reason] if diagnosis.reason and diagnosis.reason not in sentence else [])]
    reasons += [*diagnosis.origin, *diagnosis.advice]
    reasons += [f"besides, no fault: {item.reason}" for item in diagnosis.also]
    head = joined(part(f"{mark} ", tone), part(sentence, "bold" if diagnosis.verdict != "healthy" else "plain"))
    return [*lines, head, *pictures, *repair, *map(line, reasons)]


def _repair(session: AppState) -> list[Line]:
    """A reminder of a repair that runs."""
    repair = session.repair
    if repair is None or not repair.running:
        return []
    if repair.asked is not None:
        return [line("? the repair waits for your answer: g", "warn")]
    return [line("▸ a repair runs: g shows it", "accent")]


def _interrupted(session: AppState) -> list[Line]:
    """The command that settles an interrupted transaction on the chosen environment."""
    current = session.current
    if current is None or current.diagnosis is None or current.diagnosis.interrupted is None:
        return []
    return [line(f"! interrupted: {shlex.join(['envmedic', 'recover', '-p', visible(current.prefix)])}", "warn")]


def _source(session: AppState) -> list[Line]:
    source = session.source
    if source is None:
        return []
    told = {"paste": "by the pasted text", "log": f"by {source.name}", "command": f"by running {source.name}"}
    joined = source.joined is not None and source.prefix == session.chosen
    return [line(f"{told[source.kind]}, {'with the facts' if joined else 'alone so far'}", "dim")]
