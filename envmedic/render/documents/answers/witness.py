"""What a machine answered to the repair of an environment that it shares."""

from __future__ import annotations

from envmedic.model.answers.witness import WitnessAnswer, WitnessReport
from envmedic.render.style import duration
from envmedic.render.text import Line, joined, line, part

_ENDS = {
    "repaired": "the repaired environment is in place",
    "unchanged": "the repair was given up: the environment is as it was",
    "restored": "the repair was taken back: the environment is as it was",
}
_ASKED = {"use": "programs that use it", "proof": "the repaired copy", "look": "the environment in its place"}


def witness_lines(found: WitnessReport, *, users: bool = False) -> list[Line]:
    """The answers, and how the repair ended; with `users` the programs that use the environment here."""
    if users:
        return [line(f"in use here: {item}", "warn") for item in found.processes] or [line("No program here uses it")]
    lines = [text for given in found.answers for text in _answer(given)]
    if found.transaction is None:
        return [*lines, line("No repair has asked", "warn")]
    head = part("Repair", "bold")
    if found.environment is None:
        return [*lines, joined(head, f"  {found.transaction} has not ended yet")]
    return [*lines, joined(head, f"  {found.transaction}: {_ENDS[found.environment]}")]


def _answer(given: WitnessAnswer) -> list[Line]:
    state = part("nothing against it", "good") if given.passed else part("something against it", "bad")
    return [
        joined(part(_ASKED[given.kind], "bold"), "  ", state, f" in {duration(given.seconds)}"),
        *(line(f"  {text}") for text in given.why),
        *(line(f"  in use: {text}", "warn") for text in given.processes),
    ]
