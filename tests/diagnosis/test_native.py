"""What is derived of crashes, OpenMP runtimes and MKL."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import (
    Distribution,
    Environment,
    Facts,
    Host,
    ImportCrash,
    Interpreter,
    Library,
    NativePackage,
    OpenMpRuntime,
    Variable,
)
from tests.diagnosis.helpers import SITE, distribution, library


def environment(
    *,
    distributions: Sequence[Distribution] = (),
    openmp: Sequence[OpenMpRuntime] = (),
    packages: Sequence[NativePackage] = (),
    libraries: Sequence[Library] = (),
) -> Environment:
    return Environment(
        prefix="/env",
        real_prefix="/env",
        kind="venv",
        interpreter=Interpreter(path="/env/bin/python", starts=True, version="3.11.7"),
        distributions=tuple(distributions),
        openmp=tuple(openmp),
        native_packages=tuple(packages),
        libraries=tuple(libraries),
    )


def derived(observed: Environment, *, crash: ImportCrash | None = None, host: Host | None = None) -> dict[str, object]:
    return dict(derive(Facts(host=host or Host(), environment=observed, import_crash=crash)))


def runtime(path: str, kind: str, owner: str | None, *, same_as: str | None = None) -> OpenMpRuntime:
    return msgspec.convert({"path": path, "kind": kind, "distribution": owner, "same_as": same_as}, OpenMpRuntime)


INTEL = runtime("lib/libiomp5.so", "libiomp5", "intel-openmp")
BUNDLED = runtime(f"{SITE}/ctranslate2.libs/libiomp5-1a2b3c4d.so", "libiomp5", "ctranslate2")


def test_copies_of_the_gnu_runtime_are_no_fault() -> None:
    copies = [runtime(f"{SITE}/{name}.libs/libgomp-a34b.so.1", "libgomp", name) for name in ("numpy", "scipy", "torch")]
    found = derived(environment(openmp=copies))
    assert "openmp.doubled" not in found
    assert found["openmp.runtimes"] == ()


def test_a_link_to_a_runtime_is_no_second_one() -> None:
    """conda's llvm-openmp: libiomp5.so leads to libomp.so."""
    own = runtime("lib/libomp.so", "libomp", None)
    link = runtime("lib/libiomp5.so", "libiomp5", None, same_as="lib/libomp.so")
    assert "openmp.doubled" not in derived(environment(openmp=[own, link]))


def test_a_runtime_that_can_go_is_named_in_the_advice() -> None:
    installed = [distribution("intel-openmp", "2024.2.1"), distribution("ctranslate2", "4.5.0", "numpy")]
    found = derived(environment(distributions=installed, openmp=[INTEL, BUNDLED]))
    assert found["openmp.doubled"] is True
    assert "KMP_DUPLICATE_LIB_OK is not needed" in str(found["openmp.advice"])


def test_mkl_is_that_of_a_wheel_or_of_conda() -> None:
    assert derived(environment())["mkl.version"] is None
    assert derived(environment(distributions=[distribution("mkl", "2024.0.0")]))["mkl.version"] == "2024.0.0"
    conda = NativePackage(name="mkl", version="2023.1.0", build="h213fc3f_46344")
    assert derived(environment(packages=[conda]))["mkl.version"] == "2023.1.0"


def test_symbols_of_the_profiler_are_missed_where_torch_needs_them() -> None:
    def of(*symbols: str) -> object:
        return derived(environment(libraries=[library("torch", "_C.so", unresolved=symbols)]))

    assert of("iJIT_NotifyEvent")["mkl.profiler-symbols-missing"] is True  # type: ignore[index]
    assert of("cublasCreate_v2")["mkl.profiler-symbols-missing"] is False  # type: ignore[index]
    assert of()["mkl.profiler-symbols-missing"] is False  # type: ignore[index]
    assert "mkl.profiler-symbols-missing" not in derived(environment())
    damaged = library("torch", "_C.so", error="truncated")
    assert "mkl.profiler-symbols-missing" not in derived(environment(libraries=[damaged]))


def test_missing_files_of_mkl_are_told_from_others() -> None:
    own = library("torch", "_C.so", missing=("libmkl_intel_lp64.so.2", "libcudart.so.12", "libiomp5.so"))
    found = derived(environment(libraries=[own], distributions=[distribution("mkl", "2024.0.0")]))
    assert found["mkl.missing-libraries"] == ("libmkl_intel_lp64.so.2", "libiomp5.so")
    assert found["mkl.distributions"] == ("mkl",)


def test_the_threading_layer_is_that_of_the_shell() -> None:
    host = Host(variables=(Variable(name="MKL_THREADING_LAYER", value="INTEL"),))
    assert derived(environment(), host=host)["mkl.threading-layer"] == "INTEL"
    assert derived(environment())["mkl.threading-layer"] is None


ERROR = """Fatal Python error: Segmentation fault

Current thread 0x00007f4ae542db80 (most recent call first):
  File "/env/lib/python3.11/ctypes/__init__.py", line 376 in __init__
Extension modules: numpy.core._multiarray_umath (total: 1)
"""


def test_a_crash_that_was_found_is_told_with_the_order_that_works() -> None:
    crash = ImportCrash(sequence=("decord", "nv.torch"), signal="SIGSEGV", error=ERROR, works=("nv.torch", "decord"))
    decord = msgspec.structs.replace(distribution("decord", "0.6.0"), import_names=("decord",))
    nv = msgspec.structs.replace(distribution("nvdiffrast", "0.3.3"), import_names=("nv",))
    found = derived(environment(distributions=[decord, nv]), crash=crash)
    assert found["crash.sequence"] == ("decord", "nv.torch")
    assert found["crash.distributions"] == ("decord", "nvdiffrast")
    assert found["crash.error"] == "Fatal Python error: Segmentation fault"
    assert "`import nv.torch; import decord` works" in str(found["crash.advice"])


def test_without_a_search_nothing_is_known_of_crashes() -> None:
    found = derived(environment())
    assert "crash.sequence" not in found
    assert "envmedic run" in str(found["crash.advice"])


def test_one_that_crashes_alone_and_two_that_no_order_helps() -> None:
    alone = derived(environment(), crash=ImportCrash(sequence=("a",), signal="SIGILL", error=""))
    assert "alone is ended by SIGILL" in str(alone["crash.advice"])
    never = derived(environment(), crash=ImportCrash(sequence=("a", "b"), signal=None, error="x"))
    assert "No order of them works" in str(never["crash.advice"])
