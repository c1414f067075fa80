"""What every shipped playbook must fulfil."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from envmedic.diagnosis.candidates import WORDS_ALONE, is_form
from envmedic.model.playbook import AdviseStep, LoadedPlaybook, Signature
from envmedic.playbook.matching.atoms import atoms
from envmedic.playbook.matching.match import scan
from envmedic.playbook.schema import loader
from envmedic.playbook.schema.template import fill

FILES = sorted(loader.shipped_directory().glob("*.yaml"))
ENVIRONMENTS = Path(__file__).resolve().parents[1] / "envs"


@cache
def load(file: Path) -> LoadedPlaybook:
    return loader.load_file(file, "shipped")


def signatures() -> list[tuple[str, Signature]]:
    return [(load(file).playbook.id, signature) for file in FILES for signature in load(file).playbook.signatures]


def test_there_are_shipped_playbooks_and_nothing_else_beside_them() -> None:
    assert FILES
    assert set(loader.shipped_directory().iterdir()) == set(FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_playbook_is_complete(file: Path) -> None:
    playbook = load(file).playbook
    assert playbook.id == file.stem
    assert playbook.signatures, "an error text leads to it"
    assert playbook.steps
    if playbook.fault is not None:
        changes = any(not isinstance(step, AdviseStep) for step in playbook.steps)
        if changes:
            assert playbook.when is not None or playbook.fault == "unsatisfiable", "facts confirm or refute it"
            assert playbook.checks or playbook.fix_kind == "upgrade-driver"
    assert playbook.references
    assert playbook.explain.strip().endswith(".")
    assert all(text.endswith(".") and ". " in text for text in playbook.alternatives), "the way, then why not"


@pytest.mark.parametrize(("playbook", "signature"), signatures(), ids=lambda value: getattr(value, "id", value))
def test_a_shipped_signature_finds_its_sample_and_can_be_prefiltered(playbook: str, signature: Signature) -> None:
    assert atoms(signature.pattern) is not None
    matches = scan(signature.sample.encode().split(b"\n"), [load(file) for file in FILES])
    if signature.confidence <= WORDS_ALONE:  # of words that many faults share, which facts tell apart
        matches = tuple(match for match in matches if match.playbook == playbook)
    # what a line's form tells gives way to a signature that knows the line
    worded = [match for match in matches if not is_form(match.signature)] or matches
    best = max(worded, key=lambda match: confidence(match.playbook, match.signature))
    assert (best.playbook, best.signature) == (playbook, signature.id), "no better signature has the same sample"
    assert signature.summary
    assert "unknown" not in fill(signature.summary, best.groups)


def confidence(playbook: str, signature: str) -> float:
    known = {(name, item.id): item.confidence for name, item in signatures()}
    return known[playbook, signature]


FAULTS = [file for file in FILES if load(file).playbook.fault is not None]
"""What is no fault of an environment has none that is broken."""


@pytest.mark.parametrize("file", FAULTS, ids=lambda file: file.stem)
def test_the_logs_of_its_broken_environment_lead_to_it(file: Path) -> None:
    folder = ENVIRONMENTS / file.stem.replace("-", "_")
    logs = sorted(folder.glob("*.log"))
    assert logs, f"{folder} has a log of the fault"
    for log in logs:
        matches = scan(log.read_bytes().split(b"\n"), [load(file)])
        assert max((confidence(m.playbook, m.signature) for m in matches), default=0.0) >= 0.5, log.name
