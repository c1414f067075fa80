"""What builds are given: architectures, setuptools and its like, the directory of libcuda."""

from __future__ import annotations

import pytest

from envmedic.errors import NoSolution
from envmedic.model.facts import Building, Environment, Facts, Host, Interpreter, KeptVariable, TorchBuild
from envmedic.planner.remedies import Remedy, Situation, decide
from envmedic.planner.remedies.building import BUILDERS, build_inputs
from tests.diagnosis.helpers import distribution
from tests.diagnosis.test_toolchain import ARCHES, compiler, gpus, observed, toolkit, variable
from tests.planner.remedies.helpers import decided


def of(name: str, **host: object) -> Remedy:
    facts = observed(**host)  # type: ignore[arg-type]
    assert facts.environment is not None
    return decide(name, Situation(facts, facts.environment))


def right(**host: object) -> str:
    found = of("cuda-arch-list", **host).variables["TORCH_CUDA_ARCH_LIST"]
    assert build_inputs(observed(**host)).architectures == found  # type: ignore[arg-type]
    return found


def test_the_right_list_is_that_of_the_visible_gpus_ascending() -> None:
    assert right(gpus=gpus("8.9", "8.6", "8.6")) == "8.6;8.9+PTX"
    assert right(gpus=gpus("12.0")) == "9.0+PTX", "PTX serves a newer GPU"


def test_without_a_gpu_the_usable_entries_stay_and_else_those_of_torch() -> None:
    assert right(variables=variable("TORCH_CUDA_ARCH_LIST", "8.6;10.1;7.5")) == "7.5;8.6+PTX"
    assert right() == "8.0;9.0+PTX"


@pytest.mark.parametrize(
    ("listed", "corrected"),
    [("86;89", None), ("86,101", "86;89"), ("101", "86;89"), ("sm_86", "86;89"), ("", None)],
)
def test_the_list_of_tiny_cuda_nn_is_corrected_only_where_it_is_set_wrongly(listed: str, corrected: str | None) -> None:
    found = of("cuda-arch-list", gpus=gpus("8.6", "8.9"), variables=variable("TCNN_CUDA_ARCHITECTURES", listed))
    assert found.variables.get("TCNN_CUDA_ARCHITECTURES") == corrected
    assert set(of("cuda-arch-list", gpus=gpus("8.6", "8.9")).variables) == {"TORCH_CUDA_ARCH_LIST"}


def with_builders(*names: str, imports: tuple[str, ...] = ()) -> Environment:
    return Environment(
        prefix="/envs/a",
        real_prefix="/envs/a",
        kind="venv",
        interpreter=Interpreter(path="/envs/a/bin/python", starts=True, version="3.11.9"),
        torch=TorchBuild(version="2.5.1+cu124", cuda="12.4"),
        building=Building(architectures=ARCHES, imports_of_setuptools=imports),
        distributions=tuple(distribution(name, "1") for name in names),
    )


def test_builders_that_are_there_are_not_installed_again() -> None:
    assert "ninja" in of("build-isolation").install
    assert decided("build-isolation", with_builders(*BUILDERS)).install == ()
    assert decided("build-isolation", with_builders("wheel", "ninja", "packaging")).install == ("setuptools>=70.1,<81",)


def test_the_setuptools_that_torchs_builder_imports_is_installed() -> None:
    assert decided("build-setuptools", with_builders()).install == ("setuptools>=70.1,<81", "wheel")
    old = with_builders(imports=("pkg_resources.packaging",))
    assert decided("build-setuptools", old).install == ("setuptools>=69,<70", "wheel")


def test_the_stub_is_for_the_linker() -> None:
    stubs = "/usr/local/cuda-12.4/lib64/stubs"
    found = of("link-libcuda", toolkits=(toolkit("12.4", stubs=stubs),), variables=variable("LIBRARY_PATH", "/opt/lib"))
    assert found.variables == {"LIBRARY_PATH": f"{stubs}:/opt/lib"}


def test_a_compiler_with_folders_of_its_own_gets_the_stub_where_there_is_one() -> None:
    stubs = "/usr/local/cuda-12.4/lib64/stubs"
    named = (KeptVariable(name="CXX", value=compiler().path, source="activate:3"),)
    common = {"kept": named, "libcuda": ("/usr/lib",), "compilers": (compiler(libcuda=False),)}
    apart = of("link-libcuda", **common, toolkits=(toolkit("12.4", stubs=stubs),))
    assert apart.variables == {"LIBRARY_PATH": stubs}
    assert of("link-libcuda", **common).variables == {"LIBRARY_PATH": "/usr/lib"}


@pytest.mark.parametrize("name", ["build-isolation", "build-setuptools", "cuda-arch-list", "link-libcuda"])
def test_what_was_not_observed_is_a_refusal_in_words(name: str) -> None:
    bare = Environment(
        prefix="/e", real_prefix="/e", kind="venv", interpreter=Interpreter(path="/e/bin/python", starts=True)
    )
    with pytest.raises(NoSolution, match="with which compilers and toolkits builds would work"):
        decided(name, bare)
    assert build_inputs(Facts(host=Host(), environment=bare)).toolchain is None


def test_without_any_libcuda_nothing_can_be_linked_with_it() -> None:
    with pytest.raises(NoSolution, match=r"There is no libcuda\.so on this machine"):
        of("link-libcuda")
