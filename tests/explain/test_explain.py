"""`envmedic explain`: every class of fault and every shipped playbook has a page that a newcomer can read."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from envmedic.errors import InputError
from envmedic.explain import explain
from envmedic.explain.words import condition_lines
from envmedic.model.playbook import Condition, LoadedPlaybook
from envmedic.model.registries.faults import FAULT_CLASSES, FAULTS
from envmedic.playbook.schema.loader import load_all
from envmedic.playbook.schema.template import placeholders


@pytest.fixture(scope="module")
def playbooks() -> tuple[LoadedPlaybook, ...]:
    return load_all()


def test_every_class_of_fault_has_a_page() -> None:
    assert set(FAULT_CLASSES) == set(FAULTS)


def test_every_class_and_every_playbook_is_explained_with_its_proof(playbooks: tuple[LoadedPlaybook, ...]) -> None:
    for topic in (*FAULTS, *(item.playbook.id for item in playbooks)):
        found = explain(topic, playbooks)
        assert found.topic == topic
        assert found.what
        assert found.why
        assert found.title
        assert found.kind == "fault" or found.repair


def test_messages_are_shown_with_what_they_say(playbooks: tuple[LoadedPlaybook, ...]) -> None:
    signs = {sign.signature: sign for sign in explain("nms-cuda", playbooks).signs}
    assert "torchvision::nms is not registered" in signs["operator-missing"].meaning
    assert all("unknown is" not in sign.meaning for sign in signs.values())


def test_words_of_the_field_are_explained_where_they_are_used(playbooks: tuple[LoadedPlaybook, ...]) -> None:
    terms = {term.term for term in explain("no-kernel-image", playbooks).terms}
    assert {"PTX", "kernel"} <= terms
    assert "OpenMP" not in terms


def test_what_a_plan_fills_in_is_told_as_what_it_is(playbooks: tuple[LoadedPlaybook, ...]) -> None:
    terms = {term.term: term.meaning for term in explain("cuda-home", playbooks).terms}
    assert terms["{toolchain.matching-home}"].startswith("root of the toolkit with an nvcc that fits torch best")
    assert explain("numpy-abi", playbooks).repair[0].startswith("install a NumPy that fits all that is compiled for it")
    assert (
        "the error text" in {term.term: term.meaning for term in explain("mkl-jit-symbols", playbooks).terms}["{limit}"]
    )
    for item in playbooks:
        found = explain(item.playbook.id, playbooks)
        named = {name for text in (*found.repair, *found.alternatives) for name in placeholders(text)}
        assert named <= {term.term.strip("{}") for term in found.terms}, item.playbook.id


def test_a_condition_reads_as_its_comparisons() -> None:
    inner = Condition(any=(Condition(fact="torch.major", operator=">=", value=2), Condition(fact="torch.variant")))
    lines = list(condition_lines(Condition(negated=inner)))
    assert lines == [
        "not:",
        "  one of:",
        "    first component of torch's version: is at least 2 [torch.major]",
        "    CUDA variant of torch, such as cu124, cpu or rocm6.2: is there [torch.variant]",
    ]


def test_what_the_text_tells_is_not_taken_for_a_fact() -> None:
    parts = Condition(
        all=(
            Condition(fact="symbol"),
            Condition(fact="limit", operator="missing"),
            Condition(fact="library", operator="==", value="libcudnn"),
            Condition(fact="torchvision.version"),
        )
    )
    assert list(condition_lines(parts))[1:] == [
        "  the text tells `symbol`",
        "  the text does not tell `limit`",
        "  `library` in the text: is libcudnn",
        "  torchvision: installed version, with its local label: is there [torchvision.version]",
    ]


def test_an_unknown_topic_names_near_ones(playbooks: tuple[LoadedPlaybook, ...]) -> None:
    with pytest.raises(InputError) as caught:
        explain("numpy-abbi", playbooks)
    assert "numpy-abi" in (caught.value.cause or "")


@pytest.mark.parametrize("topic", ["nms-cuda", "libstdcxx"])
def test_the_command_prints_a_page_and_a_document(topic: str) -> None:
    argv = [sys.executable, "-m", "envmedic", "explain", topic]
    page = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert "What it is" in page
    assert "Why it happens" in page
    document = json.loads(subprocess.run([*argv, "--json"], capture_output=True, text=True, check=True).stdout)
    assert document["schema"] == "envmedic.explain/1"
    assert document["topic"] == topic
