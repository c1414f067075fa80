"""Repairs of conda environments by the command line, of environments made both ways, before the referee."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from envmedic import compat
from tests.conda import damage, family
from tests.conda.case import PRINTS, CondaCase, changes_of
from tests.conda.channel import Channels
from tests.conda.client import conda_program
from tests.conda.referee import Referee
from tests.conda.room import Room, make_room
from tests.real.manifest import manifest
from tests.support import gpu_family, miniature
from tests.support.index import write_index
from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.wheels import Wheel, make_wheel

How = Literal["conda", "rattler"]
Make = Callable[[Room, Sequence[str]], CondaCase]
OLD = ("python=3.11", "pytorch=2.4", "torchvision", "pytorch-cuda=12.1", "pip", "packaging")
_CONDA, _RATTLER = (pytest.param(how, marks=pytest.mark.conda) for how in ("conda", "rattler"))
both = pytest.mark.parametrize("make", [_CONDA, _RATTLER], indirect=True)


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Make:
    """Makes an environment by conda or by py-rattler, with what ``conda doctor`` says while it is sound."""
    how: How = getattr(request, "param", "conda")

    def made(room: Room, specs: Sequence[str]) -> CondaCase:
        referee = Referee(room)
        prefix = referee.create("env", specs) if how == "conda" else room.by_rattler("env", specs)
        _, index = miniature.build(room.root / "wheelhouse")
        return CondaCase(room, prefix, index, referee.doctor(prefix))

    return made


@pytest.mark.parametrize("make", [_CONDA, "rattler"], indirect=True)  # one of all these in every run of the tests
def test_a_torchvision_of_another_torch_becomes_its_own(old: Room, make: Make) -> None:
    case = make(old, OLD)
    old.force(case.prefix, "torchvision=0.18.1=py311_cu121")
    log, before = case.log(), manifest(case.prefix)
    done = case.apply("--log", str(log))
    assert done.code == 0, done.told()
    assert changes_of(done) == [("torchvision", "0.18.1", "0.19.1")]
    assert case.run().out == PRINTS
    case.referee.judge(case.prefix, before=case.complaints, names=["pytorch", "torchvision"])
    case.undo(before)


@pytest.mark.long
@pytest.mark.parametrize("make", [_CONDA, "rattler"], indirect=True)
def test_a_pin_without_any_way_that_keeps_it_is_walked_around_only_when_that_is_allowed(old: Room, make: Make) -> None:
    case = make(old, OLD)
    old.force(case.prefix, "torchvision=0.18.1=py311_cu121")
    pinned, configured = case.prefix / "conda-meta/pinned", case.prefix / ".condarc"
    pinned.write_text("# as in production\ntorchvision=0.18\npackaging >=20\n", encoding="utf-8")
    configured.write_text("pinned_packages:\n  - pytorch 2.4.*\n", encoding="utf-8")
    log, before = case.log(), manifest(case.prefix)
    refused = case.apply("--log", str(log))
    assert refused.code == 1, refused.told()
    assert f"{pinned}:2 pins torchvision=0.18" in refused.document["cause"]
    assert "--allow pinned" in refused.document["hint"]
    assert manifest(case.prefix) == before
    done = case.apply("--log", str(log), "--allow", "pinned")
    assert done.code == 0, done.told()
    assert changes_of(done) == [("torchvision", "0.18.1", "0.19.1")]
    pin = {"pin": "torchvision=0.18", "source": f"{pinned}:2", "kind": "conda", "instead": "torchvision 0.19.*"}
    assert done.document["plan"]["lifted"] == [pin]
    assert case.run().out == PRINTS
    text = pinned.read_text(encoding="utf-8")
    assert "\ntorchvision=0.18\n" in text
    # by hand, as the plan offers it; until then conda itself refuses: "Requested specs conflict with configured specs"
    pinned.write_text(text.replace(pin["pin"], pin["instead"]), encoding="utf-8")
    case.referee.judge(case.prefix, before=case.complaints, names=["pytorch", "torchvision"])
    case.undo(before)


@pytest.mark.conda
def test_the_users_own_conda_carries_it_out_when_asked(old: Room, make: Make) -> None:
    case = make(old, OLD)
    old.force(case.prefix, "torchvision=0.18.1=py311_cu121")
    log, before = case.log(), manifest(case.prefix)
    done = case.apply("--log", str(log), "--installer", "conda", CONDA_EXE=str(conda_program()))
    assert done.code == 0, done.told()
    assert [step["executor"] for step in done.document["plan"]["steps"]] == ["conda"]
    assert case.run().out == PRINTS
    case.referee.judge(case.prefix, before=case.complaints, names=["pytorch", "torchvision"])
    case.undo(before)


@pytest.mark.conda
def test_the_users_own_conda_gives_a_file_whose_cached_copy_is_cut_as_well(old: Room, make: Make) -> None:
    case = make(old, OLD)
    damage.cut_off_in_place(case.prefix, "pytorch", "torch/lib/libtorch_cuda.so")
    before = manifest(case.prefix)
    done = case.apply("--installer", "conda", CONDA_EXE=str(conda_program()))
    assert done.code == 0, done.told()
    case.referee.judge(case.prefix, before=case.complaints, names=["pytorch", "torchvision"])
    case.undo(before)


@pytest.mark.conda
def test_a_clone_whose_history_pins_every_build_is_repaired_for_good(old: Room, make: Make) -> None:
    made = make(old, OLD)
    prefix = made.referee.clone(made.prefix, "clone")
    case = CondaCase(old, prefix, made.index, made.referee.doctor(prefix))
    old.force(prefix, "torchvision=0.18.1=py311_cu121", "pytorch=2.5.1=py3.11_cuda12.1_cudnn8.9.2_0")
    log, before = case.log(), manifest(prefix)
    done = case.apply("--log", str(log))
    assert done.code == 0, done.told()
    assert changes_of(done) == [("torchvision", "0.18.1", "0.20.1")]
    assert case.run().out == PRINTS
    case.referee.judge(prefix, before=case.complaints, names=["pytorch", "torchvision"])
    case.undo(before)


@both
def test_a_build_for_the_cpu_among_packages_for_cuda_becomes_theirs(old: Room, make: Make) -> None:
    case = make(old, OLD)
    old.force(case.prefix, "pytorch=2.4.1=py3.11_cpu_0", "torchvision=0.19.1=py311_cpu")
    host = gpu_family.host_file(old.root, "8.6")
    log = old.root / "error.log"
    log.write_text("AssertionError: Torch not compiled with CUDA enabled\n")
    before = manifest(case.prefix)
    done = case.apply("--log", str(log), "--host", str(host))
    assert done.code == 0, done.told()
    packages = case.packages()
    cuda = packages["pytorch-cuda"].partition(" ")[0]
    assert packages["pytorch"].startswith(f"2.4.1 py3.11_cuda{cuda}_")
    assert packages["torchvision"] == f"0.19.1 py311_cu{cuda.replace('.', '')}"
    assert case.run().out == PRINTS
    case.referee.judge(case.prefix, before=case.complaints, names=["pytorch", "torchvision"])
    case.undo(before)


@both
def test_a_build_for_the_cpu_becomes_one_for_cuda(local: Channels, tmp_path: Path, make: Make) -> None:
    case = make(
        make_room(tmp_path / "room", [local.forge], cuda=""), ("python=3.11", "pytorch=2.5", "torchvision", "pip")
    )
    assert case.packages()["pytorch"].startswith("2.5.1 cpu_generic")
    host = gpu_family.host_file(case.room.root, "8.6")
    log = case.room.root / "error.log"
    log.write_text("AssertionError: Torch not compiled with CUDA enabled\n")
    before = manifest(case.prefix)
    done = case.apply("--log", str(log), "--host", str(host), CONDA_OVERRIDE_CUDA="12.8")
    assert done.code == 0, done.told()
    assert {name for name, _, _ in changes_of(done)} >= {"pytorch", "libtorch", "torchvision", "cuda-version"}
    packages = case.packages()
    assert packages["pytorch"].startswith("2.5.1 cuda126_")
    assert packages["libtorch"].startswith("2.5.1 cuda126_")
    assert packages["torchvision"].startswith("0.20.1 cuda126_")
    assert case.run().out == PRINTS
    with_gpu = Referee(dataclasses.replace(case.room, cuda="12.8"))
    with_gpu.judge(case.prefix, before=case.complaints, names=["pytorch", "torchvision"])
    case.undo(before)


@both
@pytest.mark.parametrize("beside", [False, True], ids=["instead", "over"])
def test_a_torch_that_pip_put_over_condas_has_one_owner_again(old: Room, make: Make, *, beside: bool) -> None:
    case = make(old, OLD)
    wheels = case.room.root / "wheelhouse" / "wheels"
    damage.pip_over_conda(old, case.prefix, [miniature.torch_wheel(wheels, "2.5.1")], beside=beside)
    before = manifest(case.prefix)
    done = case.apply()
    assert done.code == 0, done.told()
    assert case.run().out == PRINTS
    case.referee.judge(case.prefix, before=case.complaints)
    case.undo(before)


@both
def test_deleted_files_and_files_cut_through_their_hard_link_come_back(old: Room, make: Make) -> None:
    case = make(old, OLD)
    damage.delete(case.prefix, "torchvision", "torchvision/extension.py")
    damage.cut_off_in_place(case.prefix, "pytorch", "torch/lib/libtorch_cuda.so")
    before = manifest(case.prefix)
    done = case.apply()
    assert done.code == 0, done.told()
    assert case.run().out == PRINTS
    case.referee.judge(case.prefix, before=case.complaints, names=["pytorch", "torchvision"])
    case.undo(before)


@both
def test_a_gpu_that_conda_has_no_build_for_moves_the_family_to_wheels(
    local: Channels, tmp_path: Path, make: Make
) -> None:
    room = make_room(tmp_path / "room", local.old, cuda="12.8")
    case = make(room, ("python=3.11", "pytorch=2.5", "torchvision", "pytorch-cuda=12.4", "pip", "packaging"))
    template = _pytorch_index(tmp_path, "cu129")
    log = tmp_path / "error.log"
    log.write_text("RuntimeError: CUDA error: no kernel image is available for execution on the device\n")
    before = manifest(case.prefix)
    host = gpu_family.host_file(tmp_path, "12.0")
    done = case.apply("--log", str(log), "--host", str(host), ENVMEDIC_TORCH_INDEX=template)
    assert done.code == 0, done.told()
    assert not {"pytorch", "torchvision", "pytorch-cuda"} & set(case.packages())
    assert case.run().out == PRINTS
    case.referee.judge(case.prefix, before=case.complaints)
    case.undo(before)


@pytest.mark.conda
def test_an_environment_whose_history_is_lost_gets_one_that_holds_every_package(old: Room) -> None:
    prefix = old.by_rattler("env", OLD)
    complaints = Referee(old).doctor(prefix)
    old.force(prefix, "torchvision=0.18.1=py311_cu121")
    damage.lose_history(prefix)
    _, index = miniature.build(old.root / "wheelhouse")
    case = CondaCase(old, prefix, index, complaints)
    before = manifest(prefix)
    done = case.apply()
    assert done.code == 0, done.told()
    assert case.run().out == PRINTS
    case.referee.judge(prefix, before=complaints, names=["pytorch", "torchvision"])
    case.undo(before)


def test_a_record_that_cannot_be_read_is_named_and_nothing_is_changed(old: Room) -> None:
    prefix = old.by_rattler("env", OLD)
    old.force(prefix, "torchvision=0.18.1=py311_cu121")
    record = damage.corrupt_record(prefix, "sympy")
    _, index = miniature.build(old.root / "wheelhouse")
    case = CondaCase(old, prefix, index, frozenset())
    log, before = case.log(), manifest(prefix)
    done = case.apply("--log", str(log))
    assert done.code == 1, done.told()
    assert record.name in done.out, done.told()
    assert manifest(prefix) == before


def _pytorch_index(room: Path, variant: str) -> str:
    """A template of PyTorch's own indexes: every release that has builds of that variant, with its torchvision."""
    known = json.loads((Path(compat.__file__).parent / "data" / "torch_releases.json").read_text(encoding="utf-8"))
    companions = {row["version"]: row["torchvision"] for row in known["releases"]}
    folder = room / "whl" / variant
    wheels = []
    for row in known["variants"]:
        if row["variant"] == variant:
            build = gpu_family.Build(row["torch"], row["cuda"], ("8.0", "9.0", "12.0"))
            wheels.append(gpu_family.torch_wheel(folder / "files", build, labelled=True))
            wheels.append(_torchvision_wheel(folder / "files", build, companions[build.version]))
    write_index(folder, wheels)
    return (room / "whl").as_uri() + "/{variant}/simple"


def _torchvision_wheel(folder: Path, build: gpu_family.Build, version: str) -> Wheel:
    files = miniature.torchvision_files(family.release(build.version, build.cuda), f"{version}+{build.variant}")
    code = gpu_family.gpu_source(build.sass) + "int operators(void) { return 1; }"
    files["torchvision/_C.so"] = shared_library(code, name="_C.so")
    requires = ["numpy", f"torch=={build.version}", "pillow"]
    return make_wheel(
        folder, "torchvision", f"{version}+{build.variant}", files=files, requires=requires, tags=PLATFORM_TAGS
    )
