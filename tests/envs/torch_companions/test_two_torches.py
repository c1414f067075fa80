"""Two metadata directories of torch, and companions of either: judged by the torch that loads, and put right in turn."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.envs.torch_companions.case import BOUND, CUDA, OTHER, TORCH
from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure, torch
from tests.support.venvs import site_packages

pytestmark = pytest.mark.long

NEWER = "2.10.0"
PROGRAM = "import torchaudio\nimport shapes\n\nprint('heard')\n"


def build(room: Path, stale: str) -> NativeCase:
    """A torch that loads, metadata of a `stale` one, `shapes` for the first and a torchaudio for the second."""
    directory = room / "wheels"
    wheels = [torch(directory, version, CUDA) for version in (TORCH, stale)]
    for version in (TORCH, stale):
        code = BOUND.replace("TORCH", version)
        wheels.append(pure(directory, "torchaudio", version, code, requires=(f"torch=={version}",)))
    wheels.append(pure(directory, "shapes", "1.0", BOUND.replace("TORCH", TORCH), requires=(f"torch=={TORCH}",)))
    case = build_native(room, wheels, [f"torch=={TORCH}", "shapes"], PROGRAM)
    site = site_packages(case.prefix)
    with zipfile.ZipFile(next(directory.glob(f"torch-{stale}-*.whl"))) as wheel:
        wheel.extractall(site, [name for name in wheel.namelist() if ".dist-info/" in name])
    with zipfile.ZipFile(next(directory.glob(f"torchaudio-{stale}-*.whl"))) as wheel:
        wheel.extractall(site)
    return case


@pytest.mark.parametrize("stale", [OTHER, NEWER])
def test_the_torch_that_loads_stays_and_its_companion_comes(tmp_path: Path, stale: str) -> None:
    case = build(tmp_path, stale)
    done = case.apply("--log", str(case.log()))
    assert done.code == 0, done.told()
    assert case.run().out == "heard\n"
    left = sorted(item.name for item in site_packages(case.prefix).glob("torch*.dist-info"))
    assert left == [f"torch-{TORCH}.dist-info", f"torchaudio-{TORCH}.dist-info"]
