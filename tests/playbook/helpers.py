"""Small playbooks for tests."""

from __future__ import annotations

from collections.abc import Sequence

from envmedic.model.playbook import LoadedPlaybook, Playbook, Signature

MINIMAL = """\
id: mine
fault: torchvision-ops
title: A title
explain: Because.
fix_kind: other
signatures:
  - id: first
    pattern: "boom in (?P<part>\\\\w+)"
    sample: "Error: boom in engine"
steps:
  - step: advise
    text: Look at {part}.
"""


def loaded(*signatures: tuple[str, str], identifier: str = "mine") -> LoadedPlaybook:
    """A playbook of (signature id, pattern) pairs."""
    return LoadedPlaybook(
        playbook=Playbook(
            id=identifier,
            fault="torchvision-ops",
            title="A title",
            explain="Because.",
            fix_kind="other",
            signatures=tuple(Signature(id=name, pattern=pattern, sample="-") for name, pattern in signatures),
            steps=(),
        ),
        path="mine.yaml",
        sha256="0",
        origin="file",
    )


def lines(*text: str) -> Sequence[bytes]:
    """Lines of a log as bytes."""
    return [line.encode() for line in text]
