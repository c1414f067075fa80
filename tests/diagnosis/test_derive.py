from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from envmedic.analysis.build_tools import Toolchain
from envmedic.analysis.build_variables import BuildVariables
from envmedic.analysis.flat import name_of
from envmedic.diagnosis import areas
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import Environment, Gpu, Host, ImportPath, Leftover
from envmedic.model.vocabulary.names import FACTS, fact_kind
from tests.diagnosis.helpers import HOST, TORCH_LIBRARY, environment, facts, library

ENVIRONMENTS: list[Environment | None] = [
    None,
    environment(),
    environment(torch=None),
    environment(torchvision=None),
    environment(torch=None, torchvision=None, libraries=(), starts=False),
    environment(libraries=(TORCH_LIBRARY, library(error="not ELF"))),
    environment(torch="not a version", torchvision="neither"),
]


@pytest.mark.parametrize("observed", ENVIRONMENTS)
@pytest.mark.parametrize("host", [HOST, Host()])
def test_every_derived_fact_is_in_the_vocabulary_with_its_type(observed: Environment | None, host: Host) -> None:
    types = {"bool": bool, "int": int, "string": str, "version": str, "strings": tuple}
    derived = derive(facts(observed, host))
    for name, value in derived.items():
        kind = fact_kind(name)
        assert kind is not None, name
        assert value is None or type(value) is types[kind.type], name


def _written(folder: Path) -> tuple[set[str], set[str]]:
    """The texts that stand in the sources of `folder`, and the ends of those that are put together."""
    whole: set[str] = set()
    ends: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
            if isinstance(node, ast.JoinedStr) and isinstance(node.values[-1], ast.Constant):
                ends.add(str(node.values[-1].value))
    return whole, ends


def test_the_vocabulary_has_no_name_that_nothing_derives() -> None:
    host = msgspec.structs.replace(HOST, glibc="2.35")
    derived = derive(facts(environment(), host)).keys()
    companion = {name for name in FACTS if name.startswith("torchaudio.")}
    whole, ends = _written(Path(areas.__file__).parents[1])
    composed = {name for name in FACTS for end in ends if len(end) > len("-pins") - 1 and name.endswith(end)}
    assert FACTS.keys() <= derived | companion | whole | composed | TYPED


TYPED = {name_of("toolchain", field) for field in Toolchain.__struct_fields__} | {
    name_of("variables", field) for field in BuildVariables.__struct_fields__
}
"""Facts that are fields of typed ones."""


def test_every_field_of_a_typed_fact_has_a_name_that_playbooks_know() -> None:
    assert FACTS.keys() >= TYPED
    assert {name for name in FACTS if name.startswith(("toolchain.", "variables."))} == TYPED


def test_a_host_without_environment_gives_the_facts_of_the_host() -> None:
    derived = derive(facts())
    assert derived["gpu.count"] == 1
    assert derived["gpu.highest-capability"] == "9.0"
    assert not any(name.startswith(("torch", "env.", "family.")) for name in derived)


def test_only_visible_gpus_count_and_capabilities_order_as_numbers() -> None:
    gpus = tuple(
        Gpu(index=index, name="GPU", compute_capability=capability, visible=visible)
        for index, (capability, visible) in enumerate([("10.0", True), ("9.0", True), ("7.5", False), ("9.0", True)])
    )
    derived = derive(facts(host=Host(gpus=gpus)))
    assert derived["gpu.count"] == 3
    assert derived["gpu.capabilities"] == ("9.0", "10.0")
    assert (derived["gpu.lowest-capability"], derived["gpu.highest-capability"]) == ("9.0", "10.0")


def test_an_unknown_capability_leaves_capabilities_unobserved() -> None:
    derived = derive(facts(host=Host(gpus=(Gpu(index=0, name="GPU"),))))
    assert "gpu.capabilities" not in derived
    assert derived["gpu.count"] == 1


def test_without_a_gpu_there_is_no_capability_and_no_driver() -> None:
    derived = derive(facts(host=Host()))
    assert derived["gpu.capabilities"] == ()
    assert derived["gpu.lowest-capability"] is None
    assert derived["driver.version"] is None


def test_torch_is_told_in_parts() -> None:
    derived = derive(facts(environment()))
    wanted = {"version": "2.5.1+cu124", "major": 2, "minor": 5, "variant": "cu124", "cuda": "12.4", "cuda-major": 12}
    assert {name: derived[f"torch.{name}"] for name in wanted} == wanted
    assert derived["torch.cuda-build"] is True


def test_a_companion_that_is_not_installed_is_absent_and_not_unknown() -> None:
    derived = derive(facts(environment(torchvision=None)))
    assert derived["torchvision.version"] is None
    assert derived["torchvision.copies"] == 0
    assert "torchvision.has-gpu-code" not in derived


@pytest.mark.parametrize(
    ("torch", "requirement", "accepted"),
    [
        ("2.5.1+cu124", "torch==2.5.1", True),
        ("2.5.1+cu124", "torch==2.3.1", False),
        ("2.11.0+cu130", "torch==2.10.0", False),
        ("2.14.1", "torch>=2.14.0", True),
        ("2.14.0.dev20260101", "torch>=2.13", True),
        ("2.5.1", None, None),
        ("2.5.1", "torch==not a version", None),
        ("an impossible one", "torch==2.5.1", None),
    ],
)
def test_a_companions_requirement_is_held_against_torch(
    torch: str,
    requirement: str | None,
    accepted: bool | None,  # noqa: FBT001
) -> None:
    derived = derive(facts(environment(torch=torch, requires_torch=requirement)))
    assert derived.get("torchvision.accepts-torch") is accepted
    assert derived["torchvision.requires-torch"] == requirement


def test_symbols_of_an_image_library_without_its_codecs_say_nothing() -> None:
    image = library(file="image.so", missing=("libjpeg.so.8",), unresolved=("jpeg_mem_src",))
    derived = derive(facts(environment(libraries=(TORCH_LIBRARY, library(), image))))
    assert derived["torchvision.unresolved-symbols"] == 0
    assert derived["torchvision.missing-libraries"] == ()


def test_unresolved_symbols_are_counted_and_the_first_is_named() -> None:
    broken = library(unresolved=("_ZN3c105ErrorC2Ev", "b"))
    derived = derive(facts(environment(libraries=(TORCH_LIBRARY, broken))))
    assert derived["torchvision.unresolved-symbols"] == 2
    assert derived["torchvision.first-unresolved"] == "_ZN3c105ErrorC2Ev"


def test_an_unreadable_operator_library_leaves_its_symbols_unobserved() -> None:
    derived = derive(facts(environment(libraries=(TORCH_LIBRARY, library(error="truncated")))))
    assert "torchvision.unresolved-symbols" not in derived
    assert derived["torchvision.unreadable-libraries"] == ("lib/python3.11/site-packages/torchvision/_C.so",)


def test_without_any_library_read_nothing_is_said_about_libraries() -> None:
    derived = derive(facts(environment(libraries=())))
    assert "torchvision.operator-libraries" not in derived


def test_what_shadows_an_environment_is_told() -> None:
    paths = (
        ImportPath(kind="PYTHONPATH", where="process", adds="/x"),
        ImportPath(kind="LD_PRELOAD", where="process", adds="y"),
    )
    derived = derive(facts(environment(import_paths=paths)))
    assert (derived["env.pythonpath-set"], derived["env.ld-preload-set"], derived["env.user-site"]) == (
        True,
        True,
        False,
    )


def test_leftovers_count_for_the_distribution_that_they_are_of() -> None:
    leftovers = (
        Leftover(kind="tilde", path="lib/~orchvision", name="torchvision"),
        Leftover(kind="tilde", path="lib/~umpy", name="numpy"),
    )
    derived = derive(facts(environment(leftovers=leftovers)))
    assert (derived["torchvision.leftovers"], derived["torchaudio.leftovers"]) == (1, 0)
    assert derived["env.leftovers"] == ("lib/~orchvision", "lib/~umpy")


def test_the_compatibility_data_speak_through_the_family_facts() -> None:
    derived = derive(facts(environment(torchvision="0.18.1+cu124", requires_torch=None)))
    assert (derived["family.coherent"], derived["torchvision.coherent"]) == (False, False)
    assert "0.18.1" in str(derived["family.problems"])
    good = derive(facts(environment()))
    assert (good["family.coherent"], good["family.problems"], good["torchvision.coherent"]) == (True, (), True)
