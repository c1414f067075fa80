"""What guard says of a torch that becomes a build for another device."""

from __future__ import annotations

import pytest

from envmedic.planner.guard import judge
from tests.planner.support import dist, environment, facts

CPU, CUDA = "2.5.1+cpu", "2.5.1+cu124"


@pytest.mark.parametrize("driver", ["560.35.05", None])
def test_a_build_for_cuda_in_the_place_of_one_for_the_cpu_is_told_and_no_harm(driver: str | None) -> None:
    found = facts(environment([dist("torch", CPU)], variant="cpu"), driver=driver)
    changes = [judge.Foreseen("torch", CPU, CUDA)]
    assert found.environment is not None
    assert judge.harms(found, found.environment, changes, judge.Standing({})) == ()
    (note,) = judge.notes(found, found.environment, changes)
    assert f"torch {CUDA} is a build for CUDA 12.4, torch {CPU} one for the CPU alone" in note
    assert ("without an NVIDIA driver" in note) is (driver is None)


@pytest.mark.parametrize(
    ("variant", "before", "after"),
    [("cpu", CPU, "2.6.0+cpu"), ("cu124", CUDA, "2.6.0+cu124"), ("cpu", CPU, None), ("cpu", CPU, CPU)],
)
def test_a_build_for_the_same_device_is_not_told(variant: str, before: str, after: str | None) -> None:
    found = facts(environment([dist("torch", before)], variant=variant))
    assert found.environment is not None
    assert judge.notes(found, found.environment, [judge.Foreseen("torch", before, after)]) == ()
