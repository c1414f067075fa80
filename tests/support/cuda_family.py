"""A miniature torch with real shared libraries, and miniatures of NVIDIA's wheels that it requires.

The libraries need each other's symbols as the real ones do, and find each other in the same way: torch's by
DT_RPATH, those of NVIDIA's wheels by DT_RUNPATH. So what is missing, too old or overwritten fails where and as it
does in the real ones.
"""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.index import write_index
from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import NativeCase, build_native
from tests.support.venvs import install, site_packages
from tests.support.wheels import Wheel, make_wheel

SUMMARY = "A miniature for envmedic's tests: not the real package"
EXTENSION = "torch/_C" + str(sysconfig.get_config_var("EXT_SUFFIX"))
_OLD_TAGS = ",--disable-new-dtags"
"""Makes the linker write DT_RPATH instead of DT_RUNPATH."""
_FOLDERS = ("cusparse", "nccl", "cudnn", "nvjitlink", "cuda_runtime", "cuda_nvrtc")
_TORCH_SEARCH = ":".join(f"$ORIGIN/../../nvidia/{name}/lib" for name in _FOLDERS) + ":$ORIGIN" + _OLD_TAGS

INIT = '''\
"""A miniature of torch for envmedic's tests: it loads its libraries, and computes nothing."""

import ctypes
import os

from torch.version import __version__, cuda

_HERE = os.path.dirname(os.path.abspath(__file__))
try:
    if cuda is not None:
        ctypes.CDLL(os.path.join(_HERE, "lib", "libtorch_global_deps.so"), mode=ctypes.RTLD_GLOBAL)
    _C = ctypes.CDLL(os.path.join(_HERE, "EXTENSION"))
except OSError as error:  # as the import of torch._C words it
    raise ImportError(str(error)) from None


def jit():
    """Open the run-time compiler, as the first kernel that is compiled does."""
    return ctypes.CDLL(os.path.join(os.path.dirname(_HERE), "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so.12"))


def compile_kernel():
    """Compile a kernel by the run-time compiler of this process, as functions of complex numbers do it."""
    if ctypes.CDLL(os.path.join(_HERE, "lib", "libcaffe2_nvrtc.so")).compile_kernel():
        raise RuntimeError("nvrtc: error: invalid value for --gpu-architecture (-arch)")


def cudnn_version():
    """Version of the cuDNN that is loaded."""
    return _C.cudnn_version()
'''
RUNTIME = "int cudaRuntimeGetVersion(void) { return 12040; }"
JITLINK = {
    "12.4.127": "int __nvJitLinkCreate_12_4(void) { return 4; } int __nvJitLinkCreate_12_1(void) { return 1; }",
    "12.1.105": "int __nvJitLinkCreate_12_1(void) { return 1; }",
}
WITHOUT_PACKAGE = frozenset({"12.4.127"})
"""Versions of wheels that do not list the package `nvidia`, which the others share, as NVIDIA's newer ones."""
CUSPARSE = "int __nvJitLinkCreate_12_4(void); int cusparseCreate(void) { return __nvJitLinkCreate_12_4(); }"
NCCL = {
    "2.21.5": "int ncclCommInitRank(void) { return 1; } int ncclCommRegister(void) { return 2; }",
    "2.14.3": "int ncclCommInitRank(void) { return 1; }",
}
CUDNN = {
    "9.1.0.70": "int cudnnGetVersion(void) { return 90100; }",
    "9.5.1.17": "int cudnnGetVersion(void) { return 90501; } int cudnnMore(void) { return 1; }",
}
CUDNN_OPS = {version: f"int cudnnOpsVersion_{version.replace('.', '_')}(void) {{ return 1; }}" for version in CUDNN}
NVRTC = "int nvrtcCompileProgram(void) { return 0; }"
REFUSING_NVRTC = "int nvrtcCompileProgram(void) { return 5; }"
"""One that knows no GPU of today."""
TORCH_CUDA = """
int cudaRuntimeGetVersion(void); int cusparseCreate(void); int ncclCommRegister(void); int cudnnGetVersion(void);
int torch_cuda(void) { return cudaRuntimeGetVersion() + cusparseCreate() + ncclCommRegister(); }
int torch_cudnn(void) { return cudnnGetVersion(); }
"""
BINDINGS = (
    "int torch_cudnn(void); int torch_cuda(void); int cudnn_version(void) { torch_cuda(); return torch_cudnn(); }"
)
REQUIRED = (
    "nvidia-cuda-runtime-cu12==12.4.127", "nvidia-nvjitlink-cu12==12.4.127", "nvidia-cusparse-cu12==12.3.1.170",
    "nvidia-nccl-cu12==2.21.5", "nvidia-cudnn-cu12==9.1.0.70", "nvidia-cuda-nvrtc-cu12==12.4.127",
)  # fmt: skip
"""What torch requires, to the last digit."""


@dataclass(frozen=True)
class Family:
    """Every wheel by its pin, and the index that has them."""

    pins: dict[str, Wheel]
    index: str
    """``file://`` URL."""

    def required(self, *, without: str = "") -> list[Wheel]:
        """torch with what it requires, all but one."""
        return [self.pins[pin] for pin in ("torch==2.5.1", *REQUIRED) if pin.partition("==")[0] != without]


def build(directory: Path) -> Family:
    """Write every wheel to ``directory/wheels`` and an index of them."""
    folder = directory / "wheels"
    made = [torch_wheel(folder), *nvidia_wheels(folder)]
    return Family({wheel.requirement: wheel for wheel in made}, write_index(directory / "index", made))


def torch_wheel(folder: Path, version: str = "2.5.1", *, cuda: str | None = "12.4") -> Wheel:
    """The miniature of torch, with its libraries."""
    files: dict[str, str | bytes] = {
        "torch/__init__.py": INIT.replace("EXTENSION", EXTENSION.rpartition("/")[2]),
        "torch/version.py": f"__version__ = '{version}'\ncuda = {cuda!r}\nhip = None\n",
    }
    files |= _cuda_libraries() if cuda == "12.4" else _own_libraries()
    requires = [f'{pin}; platform_system == "Linux"' for pin in REQUIRED] if cuda == "12.4" else []
    return make_wheel(folder, "torch", version, files=files, requires=requires, tags=PLATFORM_TAGS, summary=SUMMARY)


def _own_libraries() -> dict[str, str | bytes]:
    """Those of a torch that needs nothing of NVIDIA's wheels."""
    return {
        "torch/lib/libtorch_global_deps.so": shared_library("int deps;", name="libtorch_global_deps.so"),
        EXTENSION: shared_library("int own;", name=EXTENSION.rpartition("/")[2]),
    }


def _cuda_libraries() -> dict[str, str | bytes]:
    needs = (
        ("libcudart.so.12", RUNTIME), ("libcusparse.so.12", "int cusparseCreate(void) { return 0; }"),
        ("libnccl.so.2", NCCL["2.21.5"]), ("libcudnn.so.9", CUDNN["9.1.0.70"]),
    )  # fmt: skip
    return {
        "torch/lib/libtorch_global_deps.so": shared_library(
            "int deps;", name="libtorch_global_deps.so", needs=needs[:1], rpath=_TORCH_SEARCH
        ),
        "torch/lib/libtorch_cuda.so": shared_library(
            TORCH_CUDA, name="libtorch_cuda.so", needs=needs, rpath=_TORCH_SEARCH
        ),
        "torch/lib/libcaffe2_nvrtc.so": shared_library(
            "int nvrtcCompileProgram(void); int compile_kernel(void) { return nvrtcCompileProgram(); }",
            name="libcaffe2_nvrtc.so",
            needs=(("libnvrtc.so.12", NVRTC),),
            rpath=_TORCH_SEARCH,
        ),
        EXTENSION: shared_library(
            BINDINGS,
            name=EXTENSION.rpartition("/")[2],
            needs=(("libtorch_cuda.so", "int torch_cuda(void) { return 0; } int torch_cudnn(void) { return 0; }"),),
            rpath="$ORIGIN/lib" + _OLD_TAGS,
        ),
    }


def nvidia_wheels(folder: Path) -> list[Wheel]:
    """NVIDIA's wheels in the versions that torch requires, older ones, and those for another major version of CUDA."""
    made = [
        _wheel(folder, "nvidia-cuda-runtime-cu12", "12.4.127", "cuda_runtime", {"libcudart.so.12": RUNTIME}),
        _wheel(folder, "nvidia-cuda-nvrtc-cu12", "12.4.127", "cuda_nvrtc", {"libnvrtc.so.12": NVRTC}),
        _cusparse(folder),
    ]
    made += [
        _wheel(folder, "nvidia-nvjitlink-cu12", version, "nvjitlink", {"libnvJitLink.so.12": source})
        for version, source in JITLINK.items()
    ]
    nccl = (("nvidia-nccl-cu12", "2.21.5"), ("nvidia-nccl-cu12", "2.14.3"), ("nvidia-nccl-cu11", "2.14.3"))
    made += [_wheel(folder, name, version, "nccl", {"libnccl.so.2": NCCL[version]}) for name, version in nccl]
    cudnn = (("nvidia-cudnn-cu12", "9.1.0.70"), ("nvidia-cudnn-cu12", "9.5.1.17"), ("nvidia-cudnn-cu11", "9.5.1.17"))
    for name, version in cudnn:
        parts = {"libcudnn.so.9": CUDNN[version], "libcudnn_ops.so.9": CUDNN_OPS[version]}
        made.append(_wheel(folder, name, version, "cudnn", parts))
    return made


def _wheel(folder: Path, name: str, version: str, part: str, libraries: dict[str, str]) -> Wheel:
    files: dict[str, str | bytes] = {f"nvidia/{part}/__init__.py": ""}
    if version not in WITHOUT_PACKAGE:
        files["nvidia/__init__.py"] = ""
    for soname, source in libraries.items():
        files[f"nvidia/{part}/lib/{soname}"] = shared_library(source, name=soname, rpath="$ORIGIN")
    return make_wheel(folder, name, version, files=files, tags=PLATFORM_TAGS, summary=SUMMARY)


def _cusparse(folder: Path) -> Wheel:
    library = shared_library(
        CUSPARSE,
        name="libcusparse.so.12",
        needs=(("libnvJitLink.so.12", JITLINK["12.4.127"]),),
        rpath="$ORIGIN:$ORIGIN/../../nvjitlink/lib,--enable-new-dtags",
    )
    files: dict[str, str | bytes] = {"nvidia/__init__.py": "", "nvidia/cusparse/__init__.py": ""}
    files["nvidia/cusparse/lib/libcusparse.so.12"] = library
    return make_wheel(
        folder,
        "nvidia-cusparse-cu12",
        "12.3.1.170",
        files=files,
        requires=["nvidia-nvjitlink-cu12"],
        tags=PLATFORM_TAGS,
        summary=SUMMARY,
    )


PROGRAM = '''\
"""Uses torch, its cuDNN and its run-time compiler."""

import torch

print("cuDNN", torch.cudnn_version())
torch.jit()
'''


def broken(room: Path, *, without: str = "", then: Sequence[str] = (), deleted: str = "") -> NativeCase:
    """An environment that is right but for one wheel, for wheels installed over it, or for a deleted file."""
    family = build(room)
    installed = [wheel.requirement for wheel in family.required(without=without)]
    case = build_native(room, list(family.pins.values()), installed, PROGRAM)
    for pin in then:  # one after the other, as people do
        install(case.prefix, [family.pins[pin]])
    if deleted:
        (site_packages(case.prefix) / deleted).unlink()
    return case


def host_file(room: Path, **more: object) -> str:
    """A host with a GPU, as ``envmedic facts --host-only`` tells of it, for ``--host``; `more` replaces what it says."""
    gpu = {"index": 0, "name": "NVIDIA A10", "compute_capability": "8.6"}
    host = {"driver_version": "550.54.15", "driver_source": "nvml", "gpus": [gpu], "glibc": "2.35", **more}
    file = room / "host.json"
    file.write_text(json.dumps({"schema": "envmedic.facts/1", "host": host}), encoding="utf-8")
    return str(file)
