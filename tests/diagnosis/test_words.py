"""No name of a fact, placeholder, Python value or traceback reaches a user: every playbook in odd environments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache

import msgspec
import pytest

from envmedic.api.context.settings import Settings
from envmedic.api.planning.plan_choice import PlanChoices, RepairGoal
from envmedic.diagnosis import findings
from envmedic.diagnosis.vocabulary import derive
from envmedic.errors import EnvmedicError
from envmedic.model.base import to_json
from envmedic.model.events import EventStream
from envmedic.model.facts import Facts, Interpreter
from envmedic.model.findings import Diagnosis, Finding
from envmedic.model.playbook import NO_TEXT, LoadedPlaybook, ReadText
from envmedic.model.vocabulary.names import FACTS
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.documents.plan import plan_lines
from envmedic.render.pages.error import error_page
from envmedic.render.text import Line, bare
from tests.api.test_choosing import Answering
from tests.planner.conda_support import base, prefix
from tests.planner.support import dist, environment, facts, usual

PLAYBOOKS = load_all()
SAMPLES = int(os.environ.get("ENVMEDIC_TEST_SAMPLES", "1"))
"""Signatures of a playbook that are tried."""
_NAMES = "|".join(re.escape(name) for name in sorted(FACTS, key=len, reverse=True))
INTERNAL = re.compile(
    rf"(?<![\w./-])(?:{_NAMES}|package\.[a-z0-9-]+\.(?:version|owner))(?![\w./(-])"  # facts
    r"|(?<!\$)\{[a-z][\w.-]*\}"  # placeholders
    r"|Traceback \(most recent|\bNone\b|<[\w.]+ object at|\b(?:Finding|Facts|Environment|frozenset|PosixPath)\("
)
QUOTED = {"facts", "where", "signature", "groups", "playbook", "fault", "host", "finding", "checks", "id", "log"}
"""Fields of documents that are for programs, or hold other documents or the user's text."""


def _environments() -> dict[str, Facts]:
    bare_python = environment([dist("pip", "24.0")])
    broken = msgspec.structs.replace(
        environment([dist("torch", "2.5.1"), dist("torch", "2.4.0"), dist("numpy", "not a version")]),
        torch=None,
        interpreter=Interpreter(path="/home/me/env/bin/python", starts=False, error="no such file"),
    )
    return {
        "no torch": facts(bare_python),
        "nothing installed": facts(environment([]), driver=None, gpus=()),
        "torch for the CPU": facts(environment(variant="cpu"), driver=None, gpus=()),
        "no driver": facts(driver=None, gpus=()),
        "as usual": facts(environment(usual())),
        "damaged metadata": facts(broken),
        "conda without torch": facts(prefix(base())),
        "no environment": msgspec.structs.replace(facts(), environment=None),
    }


@cache
def _read(sample: str) -> ReadText:
    return read_text(sample.encode().splitlines(keepends=True), PLAYBOOKS) if sample else NO_TEXT


def _texts(value: object) -> Iterator[str]:
    """Every text of a document that people read."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for key, item in value.items() if key not in QUOTED for text in _texts(item))
    elif isinstance(value, list | tuple):
        yield from (text for item in value for text in _texts(item))


def _told(document: msgspec.Struct, lines: list[Line]) -> Iterator[str]:
    yield from map(bare, lines)
    yield from _texts(msgspec.json.decode(to_json(document)))


def _planned(given: Facts, loaded: LoadedPlaybook, finding: Finding) -> Iterator[str]:
    wanted = RepairGoal(given, (loaded,), (finding,), extendable=True)
    choices = PlanChoices(Settings(stream=EventStream([])), Answering(), wanted)
    try:
        made = choices.next()
    except EnvmedicError as error:
        yield from map(bare, error_page(error))
        return
    if made is not None:
        yield from _told(made, plan_lines(made))
    for refusal in choices.errors:
        yield from map(bare, error_page(refusal))


def _named(loaded: LoadedPlaybook, diagnosis: Diagnosis) -> Finding | None:
    """The finding of the diagnosis, or the one of a playbook that is named without a text."""
    own = next((item for item in diagnosis.every if item.playbook == loaded.playbook.id), None)
    if own is not None or loaded.playbook.fault is None:
        return own
    return Finding(
        fault=loaded.playbook.fault,
        playbook=loaded.playbook.id,
        signature=None,
        confidence=0.0,
        confirmed=None,
        summary=loaded.playbook.title,
        fix_kind=loaded.playbook.fix_kind,
        alternatives=findings.alternatives(loaded.playbook, derive(diagnosis.facts) if diagnosis.facts else {}),
    )


def _everything(given: Facts, loaded: LoadedPlaybook, text: ReadText, sample: str) -> Iterator[str]:
    known = given if given.environment is not None else None
    found = findings.diagnose(text, known, PLAYBOOKS, prefix="/home/me/env", log="log" if sample else None)
    for told in _told(found, diagnosis_lines(found)):
        # what the text itself says is quoted
        if not sample or sample.strip()[:60] not in told:
            yield told
    finding = _named(loaded, found)
    if finding is not None and known is not None:
        yield from _planned(given, loaded, finding)


@pytest.mark.parametrize("name", _environments())
def test_outputs_have_words_for_people(name: str) -> None:
    given = _environments()[name]
    bad: dict[str, str] = {}
    for loaded in PLAYBOOKS:
        for sample in ("", *(item.sample for item in loaded.playbook.signatures[:SAMPLES])):
            for told in _everything(given, loaded, _read(sample), sample):
                if INTERNAL.search(told):
                    bad.setdefault(told, loaded.playbook.id)
    assert not bad, "\n".join(f"{playbook}: {told}" for told, playbook in bad.items())
