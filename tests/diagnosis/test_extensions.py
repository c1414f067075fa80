"""From compiled modules to facts: whose symbol it is, and what it was built for."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.analysis.compiled_modules import label_torch, owner_of
from envmedic.diagnosis.areas import extensions, gpu_code, runtimes
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import (
    Building,
    CxxRuntime,
    Distribution,
    Environment,
    Facts,
    Gpu,
    Host,
    Interpreter,
    Library,
    Origin,
    RecordedSource,
    TorchBuild,
    UnmetVersion,
    UnresolvedSymbol,
    Variable,
)

TORCH = TorchBuild(version="2.5.1+cu124", cuda="12.4", variant="cu124", cxx11_abi=False, nvrtc="12.4",
                   nvrtc_builtins=True, arch_list=("8.0", "9.0"))  # fmt: skip
OLD, NEW = "_ZN3c105ErrorC2ENS_14SourceLocationESs", "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_string"


def environment(*libraries: Library, installed: tuple[Distribution, ...] = (), torch: TorchBuild = TORCH,
                runtimes: tuple[CxxRuntime, ...] = ()) -> Environment:  # fmt: skip
    return Environment(
        prefix="/env", real_prefix="/env", kind="venv", interpreter=Interpreter(path="/env/bin/python", starts=True),
        torch=torch, extensions=libraries, distributions=installed, cxx_runtimes=runtimes,
    )  # fmt: skip


def ops(version: str = "1.0", *, origin: str = "index", requires: tuple[str, ...] = (),
        tags: tuple[str, ...] = ("cp311-cp311-manylinux_2_28_x86_64",), url: str | None = None) -> Distribution:  # fmt: skip
    return Distribution(
        name="ops", version=version, metadata_path="ops.dist-info", site="lib", requires=requires, tags=tags,
        origin=Origin(kind=origin, url=url),  # type: ignore[arg-type]
    )  # fmt: skip


def module(*symbols: str, missing: tuple[str, ...] = (), needed: tuple[str, ...] = ("libc10.so",)) -> Library:
    return Library(
        path="lib/python3.11/site-packages/ops/_C.so", distribution="ops", needed=needed, missing=missing,
        unresolved=tuple(UnresolvedSymbol(symbol=item) for item in symbols), unresolved_count=len(symbols),
    )  # fmt: skip


def derived(*libraries: Library, installed: tuple[Distribution, ...] = ()) -> Derived:
    return extensions.derive(Facts(host=Host(), environment=environment(*libraries, installed=installed)))


@pytest.mark.parametrize(
    ("symbol", "owner"),
    [
        (OLD, "torch"),
        ("_ZTVN5torch8autograd12CppNode_nameE", "torch"),
        ("_ZTIN3c1021AutogradMetaInterfaceE", "torch"),
        ("_ZNKR3c106SymInt", "torch"),
        ("_ZN6caffe28TypeMeta21_typeMetaDataInstanceIdEEPKNS_6detail12TypeMetaDataEv", "torch"),
        ("_Z16THPVariable_WrapN2at6TensorE", "torch"),
        ("THPVariableClass", "torch"),
        ("aoti_torch_get_current_cuda_stream", "torch"),
        ("_Z27ms_deform_attn_cuda_forwardRKN2at6TensorES2_S2_S2_S2_i", "own"),
        ("_ZN7mmdet3d5voxelEi", "own"),
        ("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv", "other"),
        ("_ZSt28__throw_bad_array_new_lengthv", "other"),
        ("_ZTVN10__cxxabiv117__class_type_infoE", "other"),
        ("cusparseScsrgemm", "other"),
    ],
)  # fmt: skip
def test_the_name_of_a_symbol_says_who_should_define_it(symbol: str, owner: str) -> None:
    assert owner_of(symbol) == owner


def test_a_symbol_of_torch_is_told_apart_from_an_own_one() -> None:
    found = derived(module(OLD), installed=(ops(),))
    assert (found["extensions.undefined-torch"], found["extensions.undefined-own"]) == (("ops",), ())
    own = derived(module("_Z9box_areasii"), installed=(ops(),))
    assert (own["extensions.undefined-torch"], own["extensions.undefined-own"]) == ((), ("ops",))


def test_with_a_library_missing_only_torchs_own_names_are_certain() -> None:
    found = derived(module("_Z9box_areasii", missing=("libopencv_core.so.4",)))
    assert (found["extensions.undefined-own"], found["extensions.undefined"]) == ((), ())
    assert found["extensions.missing-libraries"] == ("libopencv_core.so.4 (lib/python3.11/site-packages/ops/_C.so)",)


def test_a_module_that_does_not_link_torch_loads_it_in_its_own_way() -> None:
    assert derived(module(OLD, needed=("libcuda.so.1",)))["extensions.undefined-torch"] == ()


def test_what_the_driver_brings_may_be_absent() -> None:
    found = derived(module(missing=("libcuda.so.1", "libnvidia-ml.so.1")))
    assert found["extensions.missing-libraries"] == ()


def test_a_library_of_another_torch_is_told() -> None:
    found = derived(module(missing=("libtorch_cuda_cu.so",), needed=("libtorch_cuda_cu.so",)), installed=(ops(),))
    assert found["extensions.missing-torch-libraries"] == ("ops",)


def test_modules_of_which_their_package_takes_care_are_left_out() -> None:
    library = Library(path="torchao/_C.so", distribution="torchao", unresolved=(UnresolvedSymbol(symbol=OLD),))
    assert derived(library)["extensions.undefined-torch"] == ()


@pytest.mark.parametrize(
    ("label", "torch"),
    [("pt24cu124", "2.4"), ("pt112cu116", "1.12"), ("cu12torch2.3cxx11abiFALSE", "2.3"), ("torch2.4.0cu121", "2.4.0"),
     ("cu124", None), (None, None)],
)  # fmt: skip
def test_a_local_label_names_the_torch_it_was_built_for(label: str | None, torch: str | None) -> None:
    assert label_torch(label) == torch


def test_a_module_is_told_that_names_another_torch_itself() -> None:
    found = derived(module(NEW), installed=(ops(requires=("torch==2.6.0", "numpy")),))
    assert found["extensions.names-other-torch"] == ("ops",)
    assert "built for torch 2.6.0" in str(found["extensions.torch-symbols"])
    fits = derived(module(NEW), installed=(ops(requires=("torch>=2.0",)),))
    assert fits["extensions.names-other-torch"] == ()


@pytest.mark.parametrize(
    ("installed", "found"),
    [
        (ops(origin="directory", url="file:///src"), ("ops",)),
        (ops(origin="vcs", url="https://example.invalid/ops"), ("ops",)),
        (ops(origin="archive", url="https://example.invalid/ops-1.0.tar.gz"), ("ops",)),
        (ops(origin="archive", url="https://example.invalid/ops-1.0-cp311.whl"), ()),
        (ops(tags=("cp311-cp311-linux_x86_64",)), ("ops",)),
        (ops(), ()),
        (ops(origin="conda"), ()),
    ],
)
def test_what_was_built_here_can_be_built_again(installed: Distribution, found: tuple[str, ...]) -> None:
    assert derived(module(OLD), installed=(installed,))["extensions.rebuildable"] == found


def test_the_form_of_strings_is_told() -> None:
    assert derived(module(NEW))["extensions.other-cxx-abi"] == ("ops",)
    assert derived(module(OLD))["extensions.other-cxx-abi"] == ()


def on(*capabilities: str | None, driver: str | None = "580.65.06", libraries: tuple[Library, ...] = (),
       torch: TorchBuild = TORCH) -> Derived:  # fmt: skip
    gpus = tuple(Gpu(index=index, name="GPU", compute_capability=item) for index, item in enumerate(capabilities))
    host = Host(gpus=gpus, driver_version=driver)
    return gpu_code.derive(Facts(host=host, environment=environment(*libraries, torch=torch)))


def test_torchs_code_is_held_against_every_gpu() -> None:
    assert on("8.6", "9.0")["torch.gpu-code-missing"] == ()
    assert on("8.6", "12.0", "7.5")["torch.gpu-code-missing"] == ("12.0", "7.5")


def test_ptx_serves_newer_gpus_if_the_driver_is_new_enough() -> None:
    torch = TorchBuild(version="2.5.1", cuda="12.4", arch_list=("8.0",), ptx_list=("9.0",))
    assert on("12.0", torch=torch)["torch.gpu-code-missing"] == ()
    assert on("12.0", driver="525.60.13", torch=torch)["torch.gpu-code-missing"] == ("12.0",)
    assert on("12.0", driver=None, torch=torch)["torch.gpu-code-missing"] == ()


def test_without_a_gpu_of_known_kind_nothing_is_said() -> None:
    for capabilities in ((), (None,), ("9.0", None)):
        found = on(*capabilities)
        assert "torch.gpu-code-missing" not in found
        assert "torch.nvrtc-unknown" not in found
        assert found["torch.nvrtc"] == "12.4"


def test_the_run_time_compiler_is_held_against_every_gpu() -> None:
    assert on("9.0")["torch.nvrtc-unknown"] == ()
    assert on("12.0")["torch.nvrtc-unknown"] == ("12.0",)


def kernels(*sass: str, ptx: tuple[str, ...] = (), path: str = "ops/_C.so") -> Library:
    return Library(path=path, distribution="ops", sass=sass, ptx=ptx, gpu_code=True)


def test_a_module_without_code_for_a_gpu_that_torch_serves_is_told() -> None:
    found = on("9.0", libraries=(kernels("7.5"),))
    assert found["extensions.without-gpu-code"] == ("ops",)
    assert found["extensions.gpu-code"] == ("ops/_C.so has code for 7.5, not for 9.0",)
    assert on("12.0", libraries=(kernels("7.5"),))["extensions.without-gpu-code"] == (), "torch itself is the fault"
    assert on("9.0", libraries=(kernels("7.5", ptx=("8.0",)),))["extensions.without-gpu-code"] == ()


def test_modules_of_one_distribution_share_the_work() -> None:
    both = (kernels("8.0"), kernels("9.0a", path="ops/_C_hopper.so"))
    assert on("8.9", "9.0", libraries=both)["extensions.without-gpu-code"] == ()


def unmet(*versions: str, found: str = "/opt/sim/libstdc++.so.6") -> Library:
    asked = tuple(UnmetVersion(version=item, found=found, needed_by="ops/_C.so") for item in versions)
    return Library(path="ops/_C.so", distribution="ops", unmet_versions=asked)


def cxx(*libraries: Library, copies: tuple[CxxRuntime, ...] = (), path: str = "") -> Derived:
    host = Host(variables=(Variable(name="LD_LIBRARY_PATH", value=path),) if path else ())
    return runtimes.derive(Facts(host=host, environment=environment(*libraries, runtimes=copies)))


SIMULATOR = CxxRuntime(path="/opt/sim/libstdc++.so.6", newest="GLIBCXX_3.4.19", newest_abi="CXXABI_1.3.7",
                       found_by="process", entry="/opt/sim")  # fmt: skip
SYSTEM = CxxRuntime(path="/lib/libstdc++.so.6", newest="GLIBCXX_3.4.30", newest_abi="CXXABI_1.3.13", found_by="system")


def test_missing_versions_are_sorted_by_number_and_told_apart_from_those_of_c() -> None:
    found = cxx(unmet("GLIBCXX_3.4.30", "GLIBCXX_3.4.9", "GLIBC_2.34", "OPENSSL_3.0.0"))
    assert found["libstdcxx.missing-versions"] == ("GLIBCXX_3.4.9", "GLIBCXX_3.4.30")
    assert found["libc.missing-versions"] == ("GLIBC_2.34",)


def test_an_entry_that_leads_to_an_old_copy_is_told() -> None:
    found = cxx(unmet("GLIBCXX_3.4.29"), copies=(SIMULATOR, SYSTEM), path="/opt/sim:/opt/cuda/lib64")
    assert found["libstdcxx.old-entries"] == ("/opt/sim",)


def test_no_entry_is_told_where_another_copy_would_not_help() -> None:
    both = {"copies": (SIMULATOR, SYSTEM), "path": "/opt/sim"}
    assert cxx(unmet("GLIBCXX_3.4.32"), **both)["libstdcxx.old-entries"] == ()  # type: ignore[arg-type]
    assert cxx(unmet("GLIBCXX_3.4.29", found="/env/lib/libstdc++.so.6"), **both)["libstdcxx.old-entries"] == ()  # type: ignore[arg-type]
    assert cxx(copies=(SYSTEM,))["libstdcxx.old-entries"] == ()


def test_advice_names_a_copy_that_has_the_version() -> None:
    assert "/lib/libstdc++.so.6 has GLIBCXX_3.4.29" in str(
        cxx(unmet("GLIBCXX_3.4.29"), copies=(SIMULATOR, SYSTEM))["libstdcxx.advice"]
    )
    assert "No copy of libstdc++ here has GLIBCXX_3.4.99" in str(cxx(unmet("GLIBCXX_3.4.99"))["libstdcxx.advice"])
    assert "newer operating system" in str(cxx(unmet("GLIBC_2.40"))["libstdcxx.advice"])
    assert "libstdcxx.advice" not in cxx()


@pytest.mark.parametrize(
    ("name", "cuda_source", "needed", "torch", "expected"),
    [
        ("ops", True, ("libc10.so",), TORCH, ("ops",)),
        ("ops", True, ("libc10.so", "libtorch_cuda.so"), TORCH, ()),
        ("ops", False, ("libc10.so",), TORCH, None),
        ("ops", True, ("libc10.so",), TorchBuild(version="2.5.1+cpu", cuda=None), None),
    ],
    ids=["built without it", "built with it", "nobody knows", "beside a torch for the CPU"],
)
def test_a_module_without_its_gpu_half_is_told_by_its_source(
    name: str,
    cuda_source: bool,  # noqa: FBT001  # a row of a table
    needed: tuple[str, ...],
    torch: TorchBuild,
    expected: tuple[str, ...] | None,
) -> None:
    library = msgspec.structs.replace(module(needed=needed), uses_cuda="libtorch_cuda.so" in needed)
    source = RecordedSource(distribution=name, path="/src", exists=True, cuda=cuda_source)
    found = environment(library, installed=(ops(origin="directory"),), torch=torch)
    found = msgspec.structs.replace(found, building=Building(sources=(source,)))
    facts = extensions.derive(Facts(host=Host(), environment=found))
    assert facts.get("extensions.without-gpu-half") == expected
    assert facts["extensions.half-rebuildable"] == (expected or ())
