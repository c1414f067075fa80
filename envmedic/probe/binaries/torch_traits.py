"""Compatibility traits of a torch build: its ABI of C++ strings, and its run-time compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from envmedic.probe.elf.dynamic import Elf, ElfError, gnu_hash
from envmedic.probe.readable import is_directory, names

_NEW_STRINGS = b"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
_OLD_STRINGS = b"_ZN3c105ErrorC2ENS_14SourceLocationESs"
"""c10::Error's constructor, which every release since 1.2 defines, with either form of std::string."""
_COMPILER = re.compile(r"libnvrtc(?P<hash>-[0-9a-f]{4,})?\.so\.(?P<version>\d+(?:\.\d+)*)")
_BUILTINS = re.compile(r"libnvrtc-builtins(?P<hash>-[0-9a-f]{4,})?\.so(?:\.(?P<version>\d+\.\d+)(?:\.[\d.]+)?)?")


class Nvrtc(msgspec.Struct, frozen=True):
    """NVIDIA's run-time compiler in the lib directory of torch or of the nvidia wheels."""

    version: str | None = None
    """CUDA release, where the name of its other half tells."""
    builtins: bool | None = None
    """Whether that half lies there under the name that it is opened by: ``libnvrtc-builtins.so.12.4``."""


def cxx11_abi(folder: Path) -> bool | None:
    """Whether torch's functions take the newer form of strings; None when libc10 does not tell."""
    try:
        with closing(Elf(folder / "lib" / "libc10.so")) as elf:
            new, old = (elf.defines(name, gnu_hash(name)) for name in (_NEW_STRINGS, _OLD_STRINGS))
    except (OSError, ElfError):
        return None
    # both or neither: a patched or unknown build, of which nothing can be said
    return new if new != old else None


def nvrtc(folder: Path) -> Nvrtc:
    """The compiler in torch's own ``lib``, else in the nvidia wheels beside it."""
    for place in _places(folder):
        listed = names(place)
        if any(map(_COMPILER.fullmatch, listed)):
            return _described(listed)
    return Nvrtc()


def _places(folder: Path) -> Iterator[Path]:
    yield folder / "lib"
    nvidia = folder.parent / "nvidia"
    yield from (nvidia / name / "lib" for name in names(nvidia) if is_directory(nvidia / name / "lib"))


def _described(listed: tuple[str, ...]) -> Nvrtc:
    """By the files of one directory. NVRTC opens its other half by the version that it was made as."""
    halves = [match for match in map(_BUILTINS.fullmatch, listed) if match]
    version = next((match["version"] for match in halves if match["version"]), None)
    return Nvrtc(version, any(match["hash"] is None and match["version"] for match in halves))
