"""Flat facts on toolchains and the variables of builds."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import (
    Building,
    Compiler,
    Environment,
    Facts,
    Gpu,
    Host,
    Interpreter,
    KeptVariable,
    Toolkit,
    TorchBuild,
    Variable,
)
from envmedic.planner.changes import rebuild_plan
from envmedic.planner.remedies.building import BuildInputs

ARCHES = ("7.5", "8.0", "8.6", "8.9", "9.0", "9.0a")


def toolkit(version: str, found_by: str = "/usr/local/cuda", **more: object) -> Toolkit:
    path = f"/usr/local/cuda-{version}"
    fields = {"path": path, "version": version, "nvcc": f"{path}/bin/nvcc", "found_by": found_by, **more}
    return msgspec.convert(fields, Toolkit)


def observed(*, cuda: str | None = "12.4", kept: tuple[KeptVariable, ...] = (), **host: object) -> Facts:
    environment = Environment(
        prefix="/envs/a",
        real_prefix="/envs/a",
        kind="venv",
        interpreter=Interpreter(path="/envs/a/bin/python", starts=True, version="3.11.9"),
        torch=TorchBuild(version="2.5.1+cu124", cuda=cuda, arch_list=("8.0", "9.0")),
        building=Building(assignments=kept, architectures=ARCHES, named_architectures=("Hopper",)),
    )
    return Facts(host=Host(**host), environment=environment)  # type: ignore[arg-type]


def derived(*, cuda: str | None = "12.4", kept: tuple[KeptVariable, ...] = (), **host: object) -> Derived:
    return derive(observed(cuda=cuda, kept=kept, **host))


def variable(name: str, value: str) -> tuple[Variable, ...]:
    return (Variable(name=name, value=value),)


def test_the_nearest_toolkit_of_the_same_major_version_matches() -> None:
    found = derived(toolkits=(toolkit("11.8", "PATH"), toolkit("12.6"), toolkit("12.4"), toolkit("13.0")))
    assert (found["toolchain.nvcc-version"], found["toolchain.nvcc-suits-torch"]) == ("11.8", False)
    assert found["toolchain.matching-home"] == "/usr/local/cuda-12.4"
    assert derived(toolkits=(toolkit("12.1"), toolkit("12.6")))["toolchain.matching-version"] == "12.6"
    assert derived(toolkits=(toolkit("13.0"),))["toolchain.matching-home"] is None
    part = toolkit("12.6", missing_headers=("cusparse.h",))
    assert derived(toolkits=(toolkit("12.1"), part))["toolchain.matching-version"] == "12.1"


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("/usr/local/cuda-12.4", "usable"),
        ("/usr/local/cuda-12.4/", "usable"),
        (":/usr/local/cuda-12.4", "list"),
        ("/gone", "missing"),
        ("", "unset"),
    ],
)
def test_the_state_of_cuda_home(value: str, state: str) -> None:
    found = derived(toolkits=(toolkit("12.4", "CUDA_HOME"),), variables=variable("CUDA_HOME", value))
    assert found["toolchain.cuda-home-state"] == state
    assert found["toolchain.cuda-home-kept"] is False


def test_activation_overrules_the_shell() -> None:
    kept = (KeptVariable(name="CUDA_HOME", value="/gone", source="bin/activate:80"),)
    found = derived(kept=kept, toolkits=(toolkit("12.4", "CUDA_HOME"),), variables=variable("CUDA_HOME", "/opt/x"))
    assert (found["toolchain.cuda-home"], found["toolchain.cuda-home-set-by"]) == ("/gone", "bin/activate:80")
    assert found["toolchain.cuda-home-kept"] is True
    assert found["toolchain.nvcc"] is None, "torch takes CUDA_HOME even where it leads nowhere"


@pytest.mark.parametrize(
    ("listed", "unknown"),
    [
        ("8.6;9.0+PTX", ()),
        ("8.6 9.0a", ()),
        ("8.6;10.1", ("10.1",)),
        ("8.6,8.9", ("8.6,8.9",)),
        ("8.6;", ("(an empty entry)",)),
        ("Hopper", ()),
        ("native", ("native",)),
    ],
)
def test_entries_that_torch_does_not_know(listed: str, unknown: tuple[str, ...]) -> None:
    assert derived(variables=variable("TORCH_CUDA_ARCH_LIST", listed))["variables.arch-list-unknown"] == unknown


def test_entries_that_nvcc_does_not_know() -> None:
    found = derived(variables=variable("TORCH_CUDA_ARCH_LIST", "8.6;9.0"), toolkits=(toolkit("11.7", "PATH"),))
    assert found["variables.arch-list-unknown"] == ("9.0",)


def gpus(*capabilities: str) -> tuple[Gpu, ...]:
    return tuple(Gpu(index=i, name="GPU", compute_capability=value) for i, value in enumerate(capabilities))


def test_a_compiler_that_nvcc_accepts_is_found_beside_one_that_it_does_not() -> None:
    compilers = tuple(
        Compiler(path=f"/usr/bin/{name}", name=kind, version=version, found_by="PATH")  # type: ignore[arg-type]
        for name, kind, version in (
            ("gcc", "gcc", "14.2.0"), ("g++", "g++", "14.2.0"), ("gcc-13", "gcc", "13"), ("gcc-12", "gcc", "12"),
            ("g++-12", "g++", "12"),
        )
    )  # fmt: skip
    found = derived(toolkits=(toolkit("12.4", "PATH"),), compilers=compilers)
    assert (found["toolchain.compiler-accepted"], found["toolchain.compiler-limit"]) == (False, 13)
    assert (found["toolchain.accepted-c"], found["toolchain.accepted-cxx"]) == ("/usr/bin/gcc-12", "/usr/bin/g++-12")
    named = derived(
        toolkits=(toolkit("12.4", "PATH"),), compilers=compilers, variables=variable("CXX", "/usr/bin/g++-12")
    )
    assert named["toolchain.compiler-accepted"] is True


def test_the_stub_is_for_the_linker() -> None:
    stubs = "/usr/local/cuda-12.4/lib64/stubs"
    found = derived(toolkits=(toolkit("12.4", stubs=stubs),), variables=variable("LIBRARY_PATH", "/opt/lib"))
    assert found["toolchain.libcuda-linkable"] is False
    assert found["toolchain.libcuda-directory"] == stubs
    listed = derived(toolkits=(toolkit("12.4", stubs=stubs),), variables=variable("LIBRARY_PATH", f"{stubs}/"))
    assert listed["toolchain.libcuda-linkable"] is True
    loaded = derived(toolkits=(toolkit("12.4", stubs=stubs),), variables=variable("LD_LIBRARY_PATH", stubs))
    assert loaded["toolchain.stubs-at-run-time"] == (stubs,)
    assert derived(libcuda=("/usr/lib",))["toolchain.libcuda-linkable"] is True


def compiler(**more: object) -> Compiler:
    path = "/opt/conda/bin/x86_64-conda-linux-gnu-c++"
    return msgspec.convert({"path": path, "name": "g++", "version": "13.2", "found_by": "CXX", **more}, Compiler)


def test_a_compiler_with_folders_of_its_own_does_not_look_in_the_systems() -> None:
    stubs = "/usr/local/cuda-12.4/lib64/stubs"
    named = (KeptVariable(name="CXX", value=compiler().path, source="activate:3"),)

    def beside(*compilers: Compiler, toolkits: tuple[Toolkit, ...] = ()) -> Derived:
        return derived(kept=named, libcuda=("/usr/lib",), compilers=compilers, toolkits=toolkits)

    apart = beside(compiler(libcuda=False), toolkits=(toolkit("12.4", stubs=stubs),))
    assert (apart["toolchain.libcuda-linkable"], apart["toolchain.libcuda-directory"]) == (False, stubs)
    assert beside(compiler(libcuda=False))["toolchain.libcuda-directory"] == "/usr/lib"
    other = compiler(path="/usr/bin/g++", found_by="PATH")
    for sound in (compiler(libcuda=True), compiler(libcuda=None), other):
        assert beside(sound)["toolchain.libcuda-linkable"] is True
    own = compiler(libcuda=True)
    assert derived(kept=named, compilers=(own,))["toolchain.libcuda-linkable"] is True


def test_a_distribution_that_is_not_there_cannot_be_built_again() -> None:
    with pytest.raises(Exception, match="it is not installed"):
        rebuild_plan.step(
            "ops",
            Environment(
                prefix="/e", real_prefix="/e", kind="venv", interpreter=Interpreter(path="/e/bin/python", starts=True)
            ),
            BuildInputs(),
        )
