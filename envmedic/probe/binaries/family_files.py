"""Paths of the torch family in an environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from envmedic.model.facts import Distribution
from envmedic.probe.readable import is_directory, names

_TORCHVISION = re.compile(r"(_C|image)\b.*\.so|_C_[a-z]+.*\.so|image_[a-z]+.*\.so")
_TORCHAUDIO = re.compile(r"(lib|_)torchaudio(?!.*(?:ffmpeg|sox)).*\.so")
"""Its extensions for FFmpeg and SoX load only where those are installed: no fault when they do not."""
_TORCH_EXTENSION = re.compile(r"_C\..*so")
_TORCH_GPU = re.compile(r"libtorch_(cuda|cuda_cu|hip)\.so")


class Package(msgspec.Struct, frozen=True):
    """An import package of the family."""

    name: str
    folder: Path
    distribution: Distribution | None


def find(name: str, sites: Sequence[Path], installed: Iterable[Distribution]) -> Package | None:
    """The package `name` as ``import`` would find it, or in the source directory of an editable install."""
    owner = next((item for item in installed if item.name == name and not item.outside_prefix), None)
    folders = [site / name for site in sites]
    if owner is not None and owner.origin.kind == "editable" and owner.origin.url is not None:
        folders.append(Path(unquote(urlsplit(owner.origin.url).path)) / name)
    # site-packages first: a leftover directory there hides the source tree of an editable install
    folder = next((item for item in folders if is_directory(item)), None)
    return Package(name, folder, owner) if folder is not None else None


def operator_libraries(package: Package) -> tuple[Path, ...]:
    """Extensions of torchvision or torchaudio that must load, sorted by path."""
    if package.name == "torchvision":
        return _matching(package.folder, _TORCHVISION)
    return _matching(package.folder / "lib", _TORCHAUDIO) + _matching(package.folder, _TORCHAUDIO)


def kernel_library(path: Path) -> bool:
    """Whether a companion's library is the one with its operators (and not an image codec)."""
    return not path.name.startswith("image")


def torch_extension(package: Package) -> Path | None:
    """``torch._C``, whose needs are all of torch's libraries."""
    return next(iter(_matching(package.folder, _TORCH_EXTENSION)), None)


def torch_gpu_libraries(package: Package) -> tuple[Path, ...]:
    """The libraries that hold torch's own kernels (torch 1.10 to 1.13 splits them)."""
    return _matching(package.folder / "lib", _TORCH_GPU)


def _matching(folder: Path, pattern: re.Pattern[str]) -> tuple[Path, ...]:
    return tuple(folder / name for name in names(folder) if pattern.fullmatch(name))
