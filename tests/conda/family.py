"""The torch family as conda packages: the old channel ``pytorch`` with ``nvidia``, and conda-forge's.

Names, build strings, dependencies and constraints are those of the real packages; the Python modules are the
project's miniatures, which break as the real ones do when torchvision was built for another torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from tests.gallery.repair_gallery.conda.package import Content, Link, Package, dist_info
from tests.support import miniature
from tests.support.gpu_family import gpu_source
from tests.support.miniature import Release
from tests.support.native import shared_library

LIBTORCH_CUDA = {"11.8": "8.7.0", "12.1": "8.9.2", "12.4": "9.1.0"}
"""CUDA of the old channel's builds → cuDNN in their build strings."""
OLD = {"2.3.1": ("0.18.1", ("12.1", "11.8")), "2.4.1": ("0.19.1", ("12.4", "12.1", "11.8")),
       "2.5.1": ("0.20.1", ("12.4", "12.1", "11.8"))}  # fmt: skip
"""torch of the old channel, where it ended at 2.5.1 → torchvision, and CUDA of its builds."""
FORGE = {"2.5.1": "0.20.1", "2.6.0": "0.21.0"}
"""torch of conda-forge → torchvision."""
CAPABILITIES = ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0")
"""GPUs that the builds for CUDA have code for: none newer than Hopper."""
_TORCH_NEEDS = ("filelock", "jinja2", "sympy", "typing_extensions")
_PYTHON = ("python >=3.11,<3.12.0a0",)
_SITE = "lib/python3.11/site-packages"
_KEYS = miniature.TORCH["2.5.1"]


def release(version: str, cuda: str | None) -> Release:
    """How that torch looks to operator libraries."""
    known = miniature.TORCH.get(version, _KEYS)
    return dataclasses.replace(known, version=version, cuda=cuda)


def _modules(
    name: str, version: str, files: Mapping[str, str | bytes], requires: tuple[str, ...]
) -> dict[str, Content]:
    placed: dict[str, Content] = {f"{_SITE}/{path}": content for path, content in files.items()}
    return placed | dist_info(name, version, placed, folder=_SITE, requires=requires)


def torch_modules(version: str, cuda: str | None) -> dict[str, Content]:
    """torch below ``site-packages``; conda's says its version without a label."""
    requires = ("filelock", "sympy", "jinja2", "typing-extensions>=4.8.0")
    files = miniature.torch_files(release(version, cuda), version)
    if cuda:
        source = gpu_source(CAPABILITIES) + "int kernels(void) { return 1; }"
        files["torch/lib/libtorch_cuda.so"] = shared_library(source, name="libtorch_cuda.so")
    return _modules("torch", version, files, requires)


def torchvision_modules(version: str, torch: str, cuda: str | None) -> dict[str, Content]:
    """torchvision below ``site-packages``, built for that torch."""
    files = miniature.torchvision_files(release(torch, cuda), version)
    if cuda:
        source = gpu_source(CAPABILITIES) + "int operators(void) { return 1; }"
        files["torchvision/_C.so"] = shared_library(source, name="_C.so")
    return _modules("torchvision", version, files, ("numpy", f"torch=={torch}", "pillow"))


def torchaudio_modules(version: str) -> dict[str, Content]:
    """torchaudio below ``site-packages``."""
    files = {"torchaudio/__init__.py": f'"""A miniature."""\n\nimport torch\n\n__version__ = "{version}"\n'}
    return _modules("torchaudio", version, dict(files), (f"torch=={version}",))


def pytorch_channel() -> Iterator[Package]:
    """The channel ``pytorch``."""
    for version, (torchvision, cudas) in OLD.items():
        for cuda in (*cudas, None):
            yield from _old(version, torchvision, cuda)
    for cuda in LIBTORCH_CUDA:
        major, minor = cuda.split(".")
        bound = f">={cuda},<{major}.{int(minor) + 1}"
        yield Package(
            "pytorch-cuda", cuda, "h7e8668a_5", depends=(f"cuda-cudart {bound}",), build_number=5, archive=".tar.bz2",
            constrains=("cpuonly <0",), files={"share/pytorch-cuda/version": f"{cuda}\n"},
        )  # fmt: skip
    yield from _mutexes()


def _mutexes() -> Iterator[Package]:
    yield Package("pytorch-mutex", "1.0", "cuda", subdir="noarch", noarch="generic", build_number=100,
                  archive=".tar.bz2")  # fmt: skip
    yield Package("pytorch-mutex", "1.0", "cpu", subdir="noarch", noarch="generic", archive=".tar.bz2",
                  track_features="pytorch-mutex")  # fmt: skip
    yield Package("cpuonly", "2.0", "0", subdir="noarch", noarch="generic", archive=".tar.bz2",
                  depends=("pytorch-mutex 1.0 cpu",), track_features="cpuonly")  # fmt: skip


def _old(version: str, torchvision: str, cuda: str | None) -> Iterator[Package]:
    if cuda:
        tag, short = f"py3.11_cuda{cuda}_cudnn{LIBTORCH_CUDA[cuda]}_0", f"py311_cu{cuda.replace('.', '')}"
        next_cuda = f"{cuda[:3]}{int(cuda[3:]) + 1}"
        flavour: tuple[str, ...] = (f"pytorch-cuda >={cuda},<{next_cuda}", "pytorch-mutex 1.0 cuda")
    else:
        tag, short, flavour = "py3.11_cpu_0", "py311_cpu", ("pytorch-mutex 1.0 cpu",)
    yield Package(
        "pytorch", version, tag, files=torch_modules(version, cuda), archive=".tar.bz2", license="BSD 3-Clause",
        depends=(*_PYTHON, "mkl >=2018", *_TORCH_NEEDS, *flavour), constrains=() if cuda else ("cpuonly",),
    )  # fmt: skip
    companion = (*_PYTHON, f"pytorch {version}", *flavour[-1:], *flavour[:-1])
    yield Package(
        "torchvision", torchvision, short, depends=("numpy >=1.11", "pillow >=5.3.0,!=8.3.*", *companion),
        files=torchvision_modules(torchvision, version, cuda), archive=".tar.bz2", license="BSD",
        constrains=() if cuda else ("cpuonly",),
    )  # fmt: skip
    yield Package("torchaudio", version, short, files=torchaudio_modules(version), depends=companion,
                  archive=".tar.bz2", license="BSD", constrains=() if cuda else ("cpuonly",))  # fmt: skip


def nvidia_channel() -> Iterator[Package]:
    """The channel ``nvidia``, as far as the old builds need it."""
    for version in ("11.8.89", "12.1.105", "12.4.127"):
        soname = f"libcudart.so.{version.partition('.')[0]}"
        library = shared_library("int cudaRuntimeGetVersion(void) { return 1; }", name=soname)
        yield Package("cuda-cudart", version, "0", files={f"lib/{soname}": library}, archive=".tar.bz2")


def forge_family() -> Iterator[Package]:
    """conda-forge's torch, split into the library and Python's part, for CUDA 12.6 and for the CPU."""
    for version, torchvision in FORGE.items():
        for flavour in ("cuda126", "cpu_generic"):
            yield from _forge(version, torchvision, flavour)


def _forge(version: str, torchvision: str, flavour: str) -> Iterator[Package]:
    cuda = "12.6" if flavour == "cuda126" else None
    number, digest = (200, "h0a1b2c3") if cuda else (0, "h4d5e6f7")
    tag = f"{flavour}_py311_{digest}_{number}" if not cuda else f"{flavour}_py311{digest}_{number}"
    on_gpu = ("__cuda", "cuda-version >=12.6,<13") if cuda else ()
    other = "pytorch-gpu <0" if not cuda else "pytorch-cpu <0"
    own = f"pytorch-{'gpu' if cuda else 'cpu'}"
    library = shared_library("int torch_library(void) { return 1; }", name="libtorch_cpu.so")
    yield Package("libtorch", version, f"{flavour}_{digest}_{number}", files={"lib/libtorch_cpu.so": library},
                  depends=on_gpu, constrains=(f"pytorch {version} {flavour}_*_{number}", other), build_number=number)  # fmt: skip
    files = torch_modules(version, cuda)
    files[f"{_SITE}/torch/lib/libtorch_cpu.so"] = Link("../../../../libtorch_cpu.so")
    yield Package(
        "pytorch", version, tag, files=files, constrains=(f"{own} {version}", other),
        depends=(*_PYTHON, "python_abi 3.11.* *_cp311", f"libtorch {version} {flavour}_{digest}_{number}",
                 *_TORCH_NEEDS, *on_gpu), build_number=number,
    )  # fmt: skip
    yield Package(own, version, tag, depends=(f"pytorch {version} {flavour}*_{number}",), build_number=number)
    yield Package(
        "torchvision", torchvision, f"{'cuda126' if cuda else 'cpu'}_py311_{digest}_1", build_number=1,
        files=torchvision_modules(torchvision, version, cuda), license="BSD-3-Clause",
        depends=(*_PYTHON, "python_abi 3.11.* *_cp311", "numpy >=1.23,<3", "pillow >=5.3.0,!=8.3.*",
                 f"pytorch {version}.*", f"pytorch * {'cuda' if cuda else 'cpu'}*", *on_gpu),
    )  # fmt: skip


def cuda_versions() -> Iterator[Package]:
    """conda-forge's ``cuda-version``, which binds packages to what the driver can do."""
    for version in ("11.8", "12.1", "12.4", "12.6", "12.8"):
        major = version.partition(".")[0]
        yield Package("cuda-version", version, "h1234567_3", subdir="noarch", noarch="generic", build_number=3,
                      constrains=(f"cudatoolkit {version}|{version}.*", f"__cuda >={major}"))  # fmt: skip
