"""Facts as sentences: every fact that a playbook asks for has words, and they hold what was observed."""

from __future__ import annotations

import pytest

from envmedic.diagnosis.sentences import fact_sentence
from envmedic.model.playbook import FactValue
from envmedic.model.vocabulary.names import FACTS, fact_kind
from envmedic.playbook.schema.conditions import named
from envmedic.playbook.schema.loader import load_all

ASKED = sorted({name for loaded in load_all() for name in named(loaded.playbook.when) if fact_kind(name) is not None})
OBSERVED: dict[str, FactValue] = {
    "torch.version": "2.5.1+cu124",
    "torch.cuda-build": False,
    "package.torch.version": "2.5.1",
    "torchvision.version": "0.18.1",
    "torchvision.accepts-torch": False,
    "torchvision.requires-torch": "torch==2.3.1",
    "torchvision.leftovers": 2,
    "torchaudio.same-cuda-major": None,
    "numpy.built-for-one": ("scipy", "pandas"),
    "package.numpy.version": "2.1.0",
    "huggingface.unmet": ("a requires b<1, b 2 is installed", "c requires d, it is missing"),
    "files.damaged": (),
    "module": "xformers",
}


def test_the_playbooks_ask_for_facts() -> None:
    assert len(ASKED) > 100


@pytest.mark.parametrize("name", ASKED)
def test_every_fact_of_a_condition_has_words(name: str) -> None:
    every = {other: _value(kind.type) for other, kind in FACTS.items()}
    packages = dict.fromkeys(_packages(), "1.0")
    told = fact_sentence(name, {**every, **packages, name: _value(_kind(name))})
    assert told
    assert "{" not in told
    empty: dict[str, FactValue] = {"bool": False, "int": 0, "strings": ()}
    assert fact_sentence(name, {**every, **packages, name: empty.get(_kind(name))})


def _kind(name: str) -> str:
    kind = fact_kind(name)
    assert kind is not None
    return kind.type


def _value(kind: str) -> FactValue:
    values: dict[str, FactValue] = {"bool": True, "int": 1, "strings": ("one", "two")}
    return values.get(kind, "1.0")


def _packages() -> list[str]:
    return [f"package.{name}.version" for name in ("torch", "triton", "numpy", "xformers", "setuptools")]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("torch.version", "torch 2.5.1+cu124 is installed"),
        ("torch.cuda-build", "torch 2.5.1+cu124 is a build without CUDA"),
        ("torchvision.accepts-torch", "torchvision 0.18.1 requires torch==2.3.1, torch 2.5.1 is installed"),
        ("torchvision.leftovers", "leftover files of an old torchvision: 2"),
        ("torchaudio.same-cuda-major", "torchaudio and torch do not both say which CUDA they are built for"),
        ("numpy.built-for-one", "built for NumPy 1: scipy, pandas; NumPy 2.1.0 is installed"),
        ("huggingface.unmet", "a requires b<1, b 2 is installed; c requires d, it is missing"),
        ("files.damaged", "no file of a package is missing or cut off"),
        ("package.decord.version", "decord is not installed"),
        ("module", "the text says “xformers”"),
    ],
)
def test_a_sentence_holds_what_was_observed(name: str, sentence: str) -> None:
    assert fact_sentence(name, OBSERVED) == sentence


def test_nothing_is_said_where_a_part_was_not_observed() -> None:
    assert not fact_sentence("torchvision.accepts-torch", {"torchvision.accepts-torch": False})
    assert not fact_sentence("host.glibc", {"host.glibc": "2.36"})
    assert not fact_sentence("package.torch.owner", {"package.torch.owner": "pip"})
