"""Versions, capabilities and variants as comparable values."""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

# the last digit is the minor version: cu126 is 12.6, and CUDA never had a minor of two digits
_CUDA_VARIANT = re.compile(r"cu(\d+)(\d)")
_CAPABILITY = re.compile(r"(\d+)\.(\d)([af]?)")
_OFFICIAL_LABEL = re.compile(r"cpu|cu\d{2,}|rocm[\d.]+|xpu")
_UPPER = frozenset({"<", "<=", "==", "~="})
"""Operators that refuse versions which are newer."""


def variant_cuda(variant: str) -> str | None:
    """Return the CUDA version of a variant (``cu124`` → ``12.4``), or None for another kind of build."""
    match = _CUDA_VARIANT.fullmatch(variant)
    return f"{match[1]}.{match[2]}" if match else None


def official_label(label: str) -> bool:
    """Whether a local version label is one that PyTorch's own indexes use."""
    return _OFFICIAL_LABEL.fullmatch(label) is not None


def dotted(text: str) -> tuple[int, ...]:
    """Return a driver, CUDA or glibc version as integers; () when it is none."""
    parts = text.split(".")
    # not PEP 440: driver versions such as 535.54.03 have leading zeros, and only numbers matter
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


def capability(text: str) -> tuple[int, int, str] | None:
    """Return (major, minor, suffix) of a compute capability such as ``9.0a``, or None when it is none."""
    match = _CAPABILITY.fullmatch(text)
    return (int(match[1]), int(match[2]), match[3]) if match else None


@lru_cache(maxsize=1024)
def version(text: str) -> Version | None:
    """Return `text` as a version, or None when it is not one (PEP 440)."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def parsed(text: str) -> Version:
    """Return `text` as a version for sorting; an invalid one comes before all others."""
    return version(text) or Version("0.dev0")


def public(text: str) -> str:
    """Return `text` without its local label."""
    return text.partition("+")[0]


def local(text: str) -> str | None:
    """Return the local label of `text`, or None."""
    return text.partition("+")[2] or None


@lru_cache(maxsize=1024)
def _specifiers(text: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def allows(spec: str, candidate: str) -> bool:
    """Whether `spec` admits `candidate`, pre-releases included; False when either cannot be read."""
    specifiers, parsed = _specifiers(spec), version(candidate)
    # an installed nightly torch is a pre-release, and still meets `torch>=2.0`
    return specifiers is not None and parsed is not None and specifiers.contains(parsed, prereleases=True)


def too_new(spec: str, candidate: str) -> bool:
    """Whether `spec` refuses `candidate` because it admits older versions only; False when either cannot be read."""
    specifiers, found = _specifiers(spec), version(candidate)
    if specifiers is None or found is None:
        return False
    refusing = (item for item in specifiers if item.operator in _UPPER and not item.contains(found, prereleases=True))
    return any(parsed(item.version.removesuffix(".*")) <= found for item in refusing)


def same_minor(first: str, second: str) -> bool:
    """Whether two versions share major and minor."""
    left, right = version(first), version(second)
    return left is not None and right is not None and left.release[:2] == right.release[:2]
