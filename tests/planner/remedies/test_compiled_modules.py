"""What takes the place of modules that were built for another torch."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.errors import NoSolution
from tests.diagnosis.test_extensions import NEW, OLD, environment, module, ops
from tests.planner.remedies.helpers import decided

NAME = "extension-undefined-symbol"


@pytest.mark.parametrize(
    ("version", "requirement"),
    [
        ("2.1.2+pt24cu121", "ops==2.1.2+pt25cu124"),
        ("2.7.0+cu12torch2.3cxx11abiTRUE", "ops==2.7.0+cu12torch2.5cxx11abifalse"),
        ("2.7.0+cu118torch2.3cxx11abiTRUE", "ops==2.7.0+cu124torch2.5cxx11abifalse"),
        ("1.4+torch2.4.0cu121", "ops==1.4+torch2.5.1cu124"),
    ],
)
def test_the_build_for_this_torch_is_named_by_its_label(version: str, requirement: str) -> None:
    assert decided(NAME, environment(module(OLD), installed=(ops(version),))).install == (requirement,)


def test_another_version_is_asked_for_where_its_own_requirement_names_another_torch() -> None:
    found = decided(NAME, environment(module(NEW), installed=(ops(requires=("torch==2.6.0", "numpy")),)))
    assert found.install == ("ops",)
    fits = decided(NAME, environment(module(NEW), installed=(ops(requires=("torch>=2.0",)),)))
    assert fits.install == ()


@pytest.mark.parametrize("package", ["grid", None])
def test_a_refusal_names_what_it_is_about(package: str | None) -> None:
    lacking = msgspec.structs.replace(module("solve_threads"), package=package, distribution=None)
    with pytest.raises(NoSolution) as refused:
        decided(NAME, environment(lacking), groups={"symbol": "solve_threads"})
    assert "solve_threads" in str(refused.value)
    assert refused.value.cause is not None
    assert refused.value.cause.startswith(f"{lacking.path}{' of grid' if package else ''} looks for it")
    assert (
        "torch it was built for"
        in decided(NAME, environment(module(NEW), installed=(ops(),)), groups={"symbol": NEW}).why
    )
