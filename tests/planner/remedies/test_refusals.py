"""Whatever a shipped playbook lacks here is told in words: no name of a fact, what is missing, and a next step."""

from __future__ import annotations

import re

import pytest

from envmedic import planner
from envmedic.diagnosis.vocabulary import derive
from envmedic.errors import ExitCode, NoSolution
from envmedic.model.facts import Building, Environment, Facts, Host, Interpreter
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.registries.remedies import FORMER_FACTS
from envmedic.model.vocabulary.names import FACTS
from envmedic.playbook.schema.loader import load_all
from tests.planner.support import dist, environment

_KEYS = re.compile("|".join(rf"(?<![\w/.-]){re.escape(name)}(?![\w-])" for name in (*FACTS, *FORMER_FACTS)))
EMPTY = Environment(
    prefix="/env", real_prefix="/env", kind="venv", interpreter=Interpreter(path="/env/bin/python", starts=True)
)
BUILT_IN = Environment(
    prefix="/env", real_prefix="/env", kind="venv", building=Building(),
    interpreter=Interpreter(path="/env/bin/python", starts=True, version="3.11.9"),
)  # fmt: skip
ENVIRONMENTS = {
    "empty": EMPTY,
    "empty-with-tools": BUILT_IN,
    "without-torch": environment([dist("numpy", "2.2.0"), dist("six", "1.0"), dist("app", "1.0", "six")]),
    "companions-alone": environment([dist("torchvision", "0.20.1", "torch==2.5.1"), dist("xformers", "0.0.28")]),
}


def refusal(loaded: LoadedPlaybook, facts: Facts, *, observed: bool = True) -> NoSolution | None:
    """Why there is no plan, None where there is one."""
    try:
        found = planner.proposals(facts, None, loaded, values=derive(facts) if observed else None)
        if not found.proposals:
            found.best()
    except NoSolution as error:
        return error
    return None


def texts(error: NoSolution) -> tuple[str, ...]:
    return tuple(text for text in (error.summary, error.cause, error.hint, *error.details) if text)


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
@pytest.mark.parametrize("observed", [True, False])
def test_no_refusal_names_a_fact(name: str, observed: bool) -> None:  # noqa: FBT001  # a parameter
    facts = Facts(host=Host(), environment=ENVIRONMENTS[name])
    refused = 0
    for loaded in load_all():
        error = refusal(loaded, facts, observed=observed)
        if error is None:
            continue
        refused += 1
        assert error.exit_code == ExitCode.PROBLEM
        assert error.hint, loaded.playbook.id
        for text in texts(error):
            assert not _KEYS.search(text), (loaded.playbook.id, text)
            assert "{" not in text, (loaded.playbook.id, text)
            assert "which was not observed" not in text, (loaded.playbook.id, text)
    assert refused > len(load_all()) / 4, "most playbooks have nothing to repair there"


@pytest.mark.parametrize("playbook_id", ["missing-cuda-library", "nvidia-wheel-conflict", "cudnn-mismatch"])
def test_without_torch_there_are_no_libraries_to_choose(playbook_id: str) -> None:
    loaded = next(item for item in load_all() if item.playbook.id == playbook_id)
    error = refusal(loaded, Facts(host=Host(), environment=ENVIRONMENTS["without-torch"]))
    assert error is not None
    assert error.summary == "No torch is installed here, so there is no CUDA release to install libraries for"
    assert "-p PREFIX" in (error.hint or "")


def test_what_a_fact_is_stands_in_words_since_refusals_show_it() -> None:
    for kind in FACTS.values():
        assert not _KEYS.search(kind.doc), kind.name


def test_a_playbook_that_finds_nothing_wrong_says_why() -> None:
    loaded = next(item for item in load_all() if item.playbook.id == "triton-version")
    error = refusal(loaded, Facts(host=Host(), environment=ENVIRONMENTS["without-torch"]))
    assert error is not None
    assert error.cause == "it changes nothing: the installed torch requires no triton"
