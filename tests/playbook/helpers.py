"""Small playbooks for tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook, Playbook, Signature
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader

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


@cache
def shipped() -> tuple[LoadedPlaybook, ...]:
    """The shipped playbooks, loaded once."""
    return tuple(loader.load_file(file, "shipped") for file in sorted(loader.shipped_directory().glob("*.yaml")))


def diagnosed(text: str) -> Diagnosis:
    """What the shipped playbooks make of `text` alone."""
    return diagnose(read_text(text.encode().split(b"\n"), shipped()), None, shipped(), prefix=None, log="log")
