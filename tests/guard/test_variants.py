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


@pytest.mark.parametrize(("torch", "harms"), [("2.15.0", 1), ("2.14.1", 0)])
def test_a_companion_of_another_cuda_release_is_told_before_it_comes(torch: str, harms: int) -> None:
    """The newest torch of the default index is built for CUDA 13.2, torchaudio there for 13.0."""
    found = facts(environment([dist("numpy", "2.2.0")]), driver="590.48.01")
    changes = [judge.Foreseen("torch", None, torch), judge.Foreseen("torchaudio", None, "2.11.0")]
    assert found.environment is not None
    told = judge.harms(found, found.environment, changes, judge.Standing({}))
    assert [item.text for item in told if item.name == "torchaudio"] == [
        "torchaudio 2.11.0 is a CUDA 13.0 build, torch 2.15.0 a CUDA 13.2 build"
    ] * harms
