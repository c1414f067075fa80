"""Builds of torch, torchvision and torchaudio: their generated version files, read as text and never executed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from envmedic.model.facts import CompanionBuild, Library, TorchBuild
from envmedic.probe.binaries import torch_traits
from envmedic.probe.binaries.family_files import Package, kernel_library
from envmedic.probe.metadata import normalise
from envmedic.probe.readable import read_text

_ASSIGNMENT = re.compile(
    r"^(?P<name>[A-Za-z_]\w*)[ \t]*(?::[^=\n]*)?=[ \t]*(?:None|(?P<quote>['\"])(?P<value>[^'\"\n]*)(?P=quote))[ \t]*(?:#.*)?$",
    re.MULTILINE,
)
_VARIANT = re.compile(r"(?:^|[.+-])(cu\d{2,3}|cpu|xpu|rocm\d+(?:\.\d+)*)(?:$|[._-])")
_CUDA_RUNTIME = re.compile(r"libcudart(?:\.[0-9a-f]+)?\.so\.(\d+)|libcudart-[0-9a-f]+\.so\.(\d+)")


def parse_version_file(text: str) -> dict[str, str | None]:
    """Top-level assignments of string literals and None."""
    return {match["name"]: match["value"] for match in _ASSIGNMENT.finditer(text)}


def variant_of_version(version: str) -> str | None:
    """``cu124`` of ``2.5.1+cu124``; None when the local label says no variant."""
    match = _VARIANT.search(version.partition("+")[2])
    return match[1] if match else None


def variant_of_cuda(cuda: str | None) -> str | None:
    """``cu124`` for CUDA 12.4."""
    parts = (cuda or "").split(".")
    return f"cu{parts[0]}{parts[1]}" if len(parts) > 1 and parts[0] and parts[1] else None


def cuda_of_variant(variant: str | None) -> str | None:
    """``12.4`` for ``cu124``, and ``9.2`` for ``cu92``."""
    digits = (variant or "").removeprefix("cu")
    if variant is None or not variant.startswith("cu") or not digits.isdecimal():
        return None
    return f"{digits[:-1]}.{digits[-1]}"


def torch_build(package: Package, libraries: Sequence[Library]) -> TorchBuild | None:
    """What torch says of its build; None when it says no version. `libraries` are the facts of its GPU libraries."""
    # version.py before METADATA: after a broken upgrade, the code that runs is what counts
    stated = _stated(package.folder)
    version = stated.get("__version__") or (package.distribution.version if package.distribution else None)
    if version is None:
        return None
    cuda, hip = stated.get("cuda"), stated.get("hip")
    compiler = torch_traits.nvrtc(package.folder) if cuda is not None else torch_traits.Nvrtc()
    return TorchBuild(
        version=version,
        cuda=cuda,
        hip=hip,
        git_version=stated.get("git_version"),
        variant=_torch_variant(version, cuda, hip, stated),
        arch_list=_union(item.sass for item in libraries),
        ptx_list=_union(item.ptx for item in libraries),
        cxx11_abi=torch_traits.cxx11_abi(package.folder),
        nvrtc=compiler.version,
        nvrtc_builtins=compiler.builtins,
    )


def _stated(folder: Path) -> dict[str, str | None]:
    """The assignments of version.py or _version.py; {} when there is neither."""
    for name in ("version.py", "_version.py"):
        text = read_text(folder / name)
        if text is not None:
            return parse_version_file(text)
    return {}


def _torch_variant(version: str, cuda: str | None, hip: str | None, stated: dict[str, str | None]) -> str | None:
    labelled = variant_of_version(version)
    if labelled is not None:
        return labelled
    if cuda is not None:
        return variant_of_cuda(cuda)
    if hip is not None:
        return "rocm" + ".".join(hip.split(".")[:2])
    return "cpu" if "cuda" in stated else None


def _union(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def companion_build(
    name: Literal["torchvision", "torchaudio"], package: Package, libraries: Sequence[Library]
) -> CompanionBuild | None:
    """What a companion and its operator libraries say; None when nothing says a version."""
    stated = _stated(package.folder)
    installed = package.distribution
    version = stated.get("__version__") or (installed.version if installed else None)
    if version is None:
        return None
    kernels = [item for item in libraries if kernel_library(Path(item.path)) and item.error is None]
    has_gpu_code = any(item.gpu_code for item in kernels) if kernels else None
    variant = variant_of_version(version) or variant_of_version(installed.version if installed else "")
    return CompanionBuild(
        name=name,
        version=version,
        cuda=cuda_of_variant(variant) or stated.get("cuda") or (linked_cuda(kernels) if variant is None else None),
        variant=variant or ("cpu" if has_gpu_code is False else None),
        has_gpu_code=has_gpu_code,
        requires_torch=requires_torch(installed.requires if installed else ()),
    )


def linked_cuda(libraries: Iterable[Library]) -> str | None:
    """Major version of the CUDA runtime that libraries link, by its soname."""
    for library in libraries:
        for soname in library.needed:
            match = _CUDA_RUNTIME.match(soname)
            if match:
                return match[1] or match[2]
    return None


def requires_torch(requirements: Iterable[str]) -> str | None:
    """The unconditional requirement on torch, such as ``torch==2.5.1``."""
    for requirement in requirements:
        wanted, _, marker = requirement.partition(";")
        match = re.match(r"[A-Za-z0-9._-]+", wanted.strip())
        if match and normalise(match[0]) == "torch" and "extra" not in marker:
            return wanted.strip().replace(" ", "")
    return None
