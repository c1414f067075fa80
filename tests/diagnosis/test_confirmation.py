"""What confirms a text, what refutes it, and what leaves it open."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from envmedic.analysis.text_statements import Asked, asked, of_requirement
from envmedic.diagnosis.findings import diagnose
from envmedic.model.facts import Environment, Facts, GeneratedModule, Host, TextStatement, TorchBuild
from envmedic.model.findings import Diagnosis, Finding
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching.match import scan
from envmedic.playbook.schema import loader
from tests.diagnosis.helpers import HOST, distribution, environment

NO_NAME = (
    "ImportError: cannot import name 'HybridCache' from 'transformers' (/env/x/site-packages/transformers/__init__.py)"
)
TOO_OLD = "Disabling PyTorch because PyTorch >= 2.6 is required but found 2.5.1"
DESCRIPTORS = "TypeError: Descriptors cannot be created directly."


@cache
def shipped(*names: str) -> tuple[LoadedPlaybook, ...]:
    return tuple(loader.load_file(loader.shipped_directory() / f"{name}.yaml", "shipped") for name in names)


def judged(text: str, playbook: str, facts: Facts, *, here: bool = False) -> Diagnosis:
    playbooks = shipped(playbook)
    matches = scan(text.encode().split(b"\n"), playbooks)
    return diagnose(matches, facts, playbooks, prefix="/env", log="log", here=here)


def first(text: str, playbook: str, facts: Facts) -> Finding:
    return judged(text, playbook, facts).findings[0]


def installed(
    *pins: str, torch: str | None = None, generated: tuple[GeneratedModule, ...] | None = None
) -> Environment:
    found = [distribution(*pin.split("==")) for pin in pins]
    build = TorchBuild(version=torch, cuda=None) if torch else None
    return msgspec.structs.replace(environment(), distributions=tuple(found), torch=build, generated=generated)


@pytest.mark.parametrize(
    ("text", "playbook"),
    [
        (NO_NAME, "transformers-family"),
        (DESCRIPTORS, "protobuf-version"),
        ("RuntimeError: jaxlib version 0.4.30 is newer than and incompatible with jax version 0.4.26.", "unmet-requirement"),
        ("ImportError: cannot import name 'AttrsDescriptor' from 'triton.compiler'", "triton-version"),
        ("ImportError: cannot import name 'x' from 'torchmetrics.utilities.data'", "torch-companions"),
        ("WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.", "xformers-build"),
    ],
)  # fmt: skip
def test_metadata_without_a_conflict_refute_no_text(text: str, playbook: str) -> None:
    found = judged(text, playbook, Facts(host=HOST, environment=installed("transformers==4.44.2", "protobuf==5.29.1")))
    assert (found.verdict, found.findings[0].confirmed) == ("env", None)


CUDA_WANTED = "AssertionError: Torch not compiled with CUDA enabled"


def test_this_host_refutes_no_text_of_another() -> None:
    cpu = environment(torch="2.5.1+cpu", torchvision=None)
    login = Facts(host=Host(), environment=cpu)
    finding = first(CUDA_WANTED, "cpu-only-torch", login)
    assert finding.confirmed is None
    assert [item.what for item in finding.evidence if not item.supports] == [
        "gpu.count is 0 on this host; the text may be of another"
    ]
    assert judged(CUDA_WANTED, "cpu-only-torch", login, here=True).findings[0].confirmed is False
    # the files of the environment are the same on every host
    cuda = Facts(host=Host(), environment=environment(torchvision=None))
    assert first(CUDA_WANTED, "cpu-only-torch", cuda).confirmed is False


def test_files_confirm_or_refute_what_a_text_states() -> None:
    facts = Facts(host=HOST, environment=installed("transformers==4.44.2"))

    def stated(*, holds: bool | None) -> Facts:
        item = TextStatement(module="transformers", name="HybridCache", holds=holds, told="as the files say")
        return msgspec.structs.replace(facts, statements=(item,))

    lacks = first(NO_NAME, "transformers-family", stated(holds=True))
    assert (lacks.confirmed, lacks.confidence > 0.95) == (True, True)
    has = judged(NO_NAME, "transformers-family", stated(holds=False))
    assert (has.verdict, has.findings[0].confirmed) == ("unknown", False)
    assert "as the files say" in (has.reason or "")
    assert first(NO_NAME, "transformers-family", stated(holds=None)).confirmed is None


def test_a_conflict_elsewhere_does_not_confirm_a_text_that_files_refute() -> None:
    conflict = distribution("transformers", "4.44.2", "tokenizers<0.20")
    broken = msgspec.structs.replace(installed(), distributions=(conflict, distribution("tokenizers", "0.21.0")))
    item = TextStatement(module="transformers", name="HybridCache", holds=False, told="4.44.2 has it")
    found = judged(NO_NAME, "transformers-family", Facts(host=HOST, environment=broken, statements=(item,)))
    assert [(one.signature, one.confirmed) for one in found.findings if not one.latent] == [
        (None, True),
        ("import-name", False),
    ]


def test_a_conflict_of_others_does_not_confirm_a_text() -> None:
    conflict = distribution("httpx", "0.28", "anyio<4")
    broken = msgspec.structs.replace(installed(), distributions=(conflict, distribution("anyio", "4.4")))
    facts = Facts(host=HOST, environment=broken)
    of_others = "ImportError: cannot import name 'soft_unicode' from 'markupsafe'"
    assert first(of_others, "unmet-requirement", facts).confirmed is None
    of_its_own = "ImportError: cannot import name 'BrokenResourceError' from 'httpx'"
    assert first(of_its_own, "unmet-requirement", facts).confirmed is True


@pytest.mark.parametrize(
    ("groups", "statement"),
    [
        ({"module": "transformers", "name": "HybridCache"}, Asked("transformers", "HybridCache")),
        ({"module": "ink", "part": "pens"}, Asked("ink.pens", None)),
        ({"requirement": "tokenizers >=0.20,<0.21"}, Asked(requirement="tokenizers<0.21,>=0.20")),
        ({"package": "PyTorch", "needed": "2.6"}, Asked(requirement="torch>=2.6")),
        ({"package": "numpy", "needed": "<2"}, Asked(requirement="numpy<2")),
        ({"requirement": "no requirement at all"}, None),
        ({"module": "a.b:c"}, None),
        ({}, None),
    ],
)
def test_a_statement_is_read_from_the_groups_of_a_match(groups: dict[str, str], statement: Asked | None) -> None:
    assert asked(groups) == statement


def test_the_torch_that_loads_is_the_one_that_is_compared() -> None:
    half_upgraded = installed("torch==2.6.0", torch="2.5.1")
    found = of_requirement(half_upgraded, "torch>=2.6")
    assert (found.holds, found.told) == (True, "torch 2.5.1 is installed, which torch>=2.6 refuses")
    assert of_requirement(installed("torch==2.6.0"), "torch>=2.6").holds is False
    assert of_requirement(installed(), "accelerate>=0.26").told == "accelerate is not installed"


def test_generated_code_shows_which_protobuf_it_needs() -> None:
    old = GeneratedModule(path="lib/site/board/graph_pb2.py", distribution="board", accepts="<4")
    facts = Facts(host=HOST, environment=installed("protobuf==5.29.1", "board==2.0", generated=(old,)))
    finding = first(DESCRIPTORS, "protobuf-version", facts)
    assert finding.confirmed is True
    assert any("graph_pb2.py was generated for protobuf<4, 5.29.1 is there" in item.what for item in finding.evidence)
    fits = Facts(host=HOST, environment=installed("protobuf==3.20.3", "board==2.0", generated=(old,)))
    assert first(DESCRIPTORS, "protobuf-version", fits).confirmed is None
