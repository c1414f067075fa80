"""The companion of the installed torch replaces that of another one."""

from __future__ import annotations

from pathlib import Path

from tests.envs.torch_companions.case import CODEC, FITS, FITS_OTHER, OTHER, TORCH, build
from tests.support.repairs import facts_of, found_by_facts, prove_repair


def test_the_torchaudio_of_this_torch_comes(tmp_path: Path) -> None:
    case = build(tmp_path, f"torchaudio=={OTHER}")
    prove_repair(case, "torch-companions", [("torchaudio", OTHER, TORCH)], "heard\n")


def test_a_torchcodec_that_states_nothing_is_known_by_the_data(tmp_path: Path) -> None:
    case = build(tmp_path, f"torchaudio=={TORCH}", f"torchcodec=={FITS_OTHER}", program=CODEC)
    assert facts_of(case)["companions.unmet"] != ()
    changes = [("torchcodec", FITS_OTHER, FITS)]
    prove_repair(case, "torch-companions", list(changes), "decoded\n", log=False)


def test_companions_of_this_torch_are_healthy(tmp_path: Path) -> None:
    case = build(tmp_path, f"torchaudio=={TORCH}", f"torchcodec=={FITS}")
    assert found_by_facts(case).verdict == "healthy"


def test_a_missing_module_of_the_program_is_not_answered_by_a_companion(tmp_path: Path) -> None:
    """Both faults are of one class, and the repair of this one ends nothing of what the text says."""
    case = build(tmp_path, f"torchaudio=={OTHER}", program="import third_party\n")
    refused = case.apply("--log", str(case.log()))
    assert refused.code == 1, refused.told()
    assert "is not what was reported" in refused.told()
