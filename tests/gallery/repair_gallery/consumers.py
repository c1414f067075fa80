"""Faults of what computes on GPUs without torch: real wheels of JAX, CuPy, onnxruntime and CTranslate2, broken by installs.

No GPU is needed: each program asks the broken part itself, by the library's own functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .faults import Fault
from .room import Base, Room

JAX = "import jax; assert jax.jit(lambda x: x + 1)(1) == 2"
JAX_PLUGIN = (
    "import warnings; warnings.simplefilter('error'); from jaxlib import plugin_support, version;"
    "from jax_cuda12_plugin import version as own;"
    "plugin_support.check_plugin_version('jax_cuda12_plugin', version.__version__, own.__version__);"
    "from importlib.metadata import version as of; assert of('jax') == of('jaxlib') == of('jax-cuda12-pjrt');"
    "import importlib.util; assert importlib.util.find_spec('jax_plugins.xla_cuda12')"
)
JAX_LIBRARIES = (
    "from jax_cuda12_plugin import _versions as v;"
    "[getattr(v, n + '_get_version')() for n in ('cuda_runtime', 'cudnn', 'cublas', 'cufft', 'cusparse', 'cupti')];"
    "assert v.cudnn_get_version() // 100 >= v.cudnn_build_version() // 100, 'Outdated cuDNN installation found.'"
)
CUPY = (
    "import cupy;"
    "[getattr(cupy.cuda, n) for n in ('cublas', 'cufft', 'curand', 'cusparse', 'cusolver')]; cupy.cuda.nvrtc.getVersion()"
)
ONNX = (
    "import warnings; warnings.simplefilter('error'); import onnxruntime;"
    "from onnxruntime.capi.onnxruntime_inference_collection import check_and_normalize_provider_args as check;"
    "check(['CUDAExecutionProvider'], None, onnxruntime.get_available_providers())"
)
ONNX_LIBRARIES = (
    "import onnxruntime; onnxruntime.preload_dlls(); maps = open('/proc/self/maps').read();"
    "names = ('libcublasLt.so.12', 'libcublas.so.12', 'libcudart.so.12', 'libcurand.so.10', 'libcufft.so.11', 'libcudnn.so.9');"
    "left = [n for n in names if n not in maps];"
    "assert not left, f'Failed to load library libonnxruntime_providers_cuda.so with error: {left[0]}: cannot open shared"
    " object file: No such file or directory'"
)
CUBLAS = (
    "import glob, sys; found = glob.glob(sys.prefix + '/lib/python3*/site-packages/nvidia/cublas/lib/libcublas.so.12');"
    "assert found, 'Library libcublas.so.12 is not found or cannot be loaded'"
)
TORCH = "import torch; assert torch.backends.cudnn.version() // 100 == 901 and torch.ones(2).sum() == 2"

CONSUMER_PROBES: dict[Base, dict[str, str]] = {
    "jax": {"jax": JAX, "plugin": JAX_PLUGIN, "libraries": JAX_LIBRARIES},
    "cupy": {"cupy": CUPY},
    "onnx": {"onnx": ONNX, "libraries": ONNX_LIBRARIES},
    "cuda": {
        "plugin": JAX_PLUGIN, "jax libraries": JAX_LIBRARIES, "cupy": CUPY, "onnx": ONNX, "onnx libraries": ONNX_LIBRARIES,
        "ctranslate2": "import ctranslate2",
    },
    "shared": {"plugin": JAX_PLUGIN, "jax libraries": JAX_LIBRARIES, "torch": TORCH},
}  # fmt: skip
"""What works in the unbroken environment, and must after a repair."""

NO_JAXLIB = (
    "WARNING:2025-07-02 10:12:11,456:jax._src.xla_bridge:811: An NVIDIA GPU may be present on this machine, but a "
    "CUDA-enabled jaxlib is not installed. Falling back to cpu.\n"
)


def _install(*requirements: str, deps: bool = False) -> Callable[[Room], None]:
    return lambda room: room.install(*requirements, deps=deps)


def _uninstall(*names: str) -> Callable[[Room], None]:
    return lambda room: room.uninstall(*names)


def _swapped(gone: tuple[str, ...], *come: str) -> Callable[[Room], None]:
    def make(room: Room) -> None:
        room.uninstall(*gone)
        if come:
            room.install(*come)

    return make


def _nothing(room: Room) -> None:
    del room


_OF_JAX: tuple[Fault, ...] = (
    Fault("plugin and pjrt of an older release", "companion-version", _install("jax-cuda12-plugin==0.6.0", "jax-cuda12-pjrt==0.6.0"), JAX_PLUGIN),
    Fault("plugin alone of an older release", "companion-version", _install("jax-cuda12-plugin==0.6.1"), JAX_PLUGIN),
    Fault("jaxlib alone of an older release", "companion-version", _install("jaxlib==0.6.1"), JAX_PLUGIN, silent=True),
    Fault("jax and jaxlib upgraded, the plugin not", "companion-version", _install("jax==0.7.1", "jaxlib==0.7.1"), JAX_PLUGIN),
    Fault("pjrt uninstalled", "companion-version", _uninstall("jax-cuda12-pjrt"), JAX_PLUGIN, silent=True),
    Fault("plugin uninstalled", "companion-version", _uninstall("jax-cuda12-plugin"), JAX_PLUGIN, silent=True),
    Fault("no cuSPARSE", "missing-cuda-library", _uninstall("nvidia-cusparse-cu12"), JAX_LIBRARIES, silent=True),
)  # fmt: skip
_ON_JAX: tuple[Fault, ...] = (
    *_OF_JAX,
    Fault("cuDNN older than the plugin wants", "nvidia-wheel-conflict", _install("nvidia-cudnn-cu12==9.1.0.70"), JAX_LIBRARIES),
    Fault("JAX swapped for a build for the CPU", "cpu-only-torch", _uninstall("jax-cuda12-plugin", "jax-cuda12-pjrt"), JAX_PLUGIN, log=NO_JAXLIB),
    Fault("the plugin for CUDA 13 beside it", "duplicate-install", _install("jax-cuda13-plugin==0.7.2", "jax-cuda13-pjrt==0.7.2"), "import importlib.util as u; assert not u.find_spec('jax_cuda13_plugin')", silent=True),
    Fault("healthy", None, _nothing, silent=True, ending="untouched"),
)  # fmt: skip
_ON_CUPY: tuple[Fault, ...] = (
    Fault("no NVRTC", "missing-cuda-library", _uninstall("nvidia-cuda-nvrtc-cu12"), CUPY),
    Fault("no cuBLAS", "missing-cuda-library", _uninstall("nvidia-cublas-cu12"), CUPY),
    Fault("no cuRAND, found by nobody yet", "missing-cuda-library", _uninstall("nvidia-curand-cu12"), CUPY),
    Fault("without the toolkit", "missing-cuda-library", _uninstall("cuda-toolkit", "nvidia-cuda-nvrtc-cu12", "nvidia-cusolver-cu12"), CUPY),
    Fault("CuPy for CUDA 13 over it", "clobbered", _install("cupy-cuda13x==14.2.0"), CUPY, silent=True),
    Fault("CuPy for CUDA 11 over it", "clobbered", _install("cupy-cuda11x==13.6.0", "fastrlock"), CUPY, silent=True),
    Fault("healthy", None, _nothing, silent=True, ending="untouched"),
)  # fmt: skip
_ON_ONNX: tuple[Fault, ...] = (
    Fault("onnxruntime over onnxruntime-gpu", "clobbered", _install("onnxruntime==1.22.0"), ONNX),
    Fault("a newer onnxruntime over onnxruntime-gpu", "clobbered", _install("onnxruntime==1.23.0"), ONNX),
    Fault("onnxruntime in its place", "cpu-only-torch", _swapped(("onnxruntime-gpu",), "onnxruntime==1.22.0"), ONNX),
    Fault("no cuDNN", "missing-cuda-library", _uninstall("nvidia-cudnn-cu12"), ONNX_LIBRARIES),
    Fault("no cuFFT and no cuRAND", "missing-cuda-library", _uninstall("nvidia-cufft-cu12", "nvidia-curand-cu12"), ONNX_LIBRARIES),
    Fault("healthy", None, _nothing, silent=True, ending="untouched"),
)  # fmt: skip
_ON_CUDA: tuple[Fault, ...] = (
    *_OF_JAX,
    *(fault for fault in _ON_CUPY if fault.name in {"no NVRTC", "no cuBLAS", "CuPy for CUDA 13 over it", "CuPy for CUDA 11 over it"}),
    *(fault for fault in _ON_ONNX if fault.name != "no cuDNN"),
    Fault("cuDNN 8, which an old recipe asks for", "nvidia-wheel-conflict", _install("nvidia-cudnn-cu12==8.9.7.29"), JAX_LIBRARIES, silent=True),
    Fault("no cuDNN for JAX and onnxruntime", "missing-cuda-library", _uninstall("nvidia-cudnn-cu12"), ONNX_LIBRARIES),
    Fault("no cuBLAS for CTranslate2", "missing-cuda-library", _uninstall("nvidia-cublas-cu12"), CUBLAS, log="RuntimeError: Library libcublas.so.12 is not found or cannot be loaded\n"),
)  # fmt: skip
_ON_SHARED: tuple[Fault, ...] = (
    Fault("plugin and pjrt of an older release", "companion-version", _install("jax-cuda12-plugin==0.5.1", "jax-cuda12-pjrt==0.5.1"), JAX_PLUGIN),
    Fault("no cuDNN for torch and JAX", "missing-cuda-library", _uninstall("nvidia-cudnn-cu12"), JAX_LIBRARIES, silent=True),
    Fault("a JAX that wants a newer cuDNN than torch", "cudnn-mismatch", _install("jax[cuda12]==0.6.2", "jaxlib==0.6.2", "jax-cuda12-plugin==0.6.2", "jax-cuda12-pjrt==0.6.2", "nvidia-cudnn-cu12==9.8.0.87"), TORCH, silent=True),
    Fault("the same JAX with torch's cuDNN", "nvidia-wheel-conflict", _install("jax==0.6.2", "jaxlib==0.6.2", "jax-cuda12-plugin==0.6.2", "jax-cuda12-pjrt==0.6.2"), JAX_LIBRARIES),
    Fault("healthy", None, _nothing, silent=True, ending="untouched"),
)  # fmt: skip

_BY_BASE: tuple[tuple[Base, tuple[Fault, ...]], ...] = (
    ("jax", _ON_JAX),
    ("cupy", _ON_CUPY),
    ("onnx", _ON_ONNX),
    ("cuda", _ON_CUDA),
    ("shared", _ON_SHARED),
)
CONSUMERS: tuple[Fault, ...] = tuple(
    replace(fault, base=base, name=f"{base}: {fault.name}") for base, faults in _BY_BASE for fault in faults
)
"""Faults with one consumer in the environment (jax, cupy, onnx) and with several (cuda, shared)."""
