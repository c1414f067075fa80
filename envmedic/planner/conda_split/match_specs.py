"""Requirements of Python distributions as conda's match specs. Pure.

Versions: https://packaging.python.org/en/latest/specifications/version-specifiers/ and
https://docs.conda.io/projects/conda-build/en/stable/resources/package-spec.html#package-match-specifications.
"""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.specifiers import Specifier
from packaging.version import InvalidVersion, Version

from envmedic.compat.versions import official_label


def spec(package: str, requirement: Requirement) -> str:
    """``numpy<2,>=1.22`` as ``numpy >=1.22,<2``: conda's package in the versions that a requirement accepts.

    Labels of PyTorch's own indexes (``+cu121``) are left out: in conda the build string tells them.
    """
    # lower bounds before upper ones, as conda users write them; the order has no meaning for the solver
    parts = sorted((_part(item) for item in requirement.specifier), key=lambda part: (part[0] == "<", part))
    return f"{package} {','.join(parts)}" if parts else package


def _part(item: Specifier) -> str:
    operator, version = item.operator, _without_label(item.version)
    if operator in {"==", "==="}:
        # a bare `1.2.*` is conda's own spelling of a prefix match
        return version if version.endswith(".*") else f"=={version}"
    return f"{operator}{version}"


def _without_label(version: str) -> str:
    public, plus, label = version.partition("+")
    return public if plus and official_label(label) else version


def pins(requirement: Requirement, version: str) -> bool:
    """Whether a requirement accepts only that version."""
    exact = [item for item in requirement.specifier if item.operator in {"==", "==="} and "*" not in item.version]
    try:
        return any(Version(_without_label(item.version)) == Version(version.partition("+")[0]) for item in exact)
    except InvalidVersion:
        # conda allows versions that PEP 440 does not, such as 9e of jpeg; they are equal only as texts
        return any(item.version == version for item in exact)


def joined(name: str, requirements: Iterable[Requirement]) -> Requirement:
    """Return all requirements on one distribution as one."""
    parts = dict.fromkeys(str(part) for item in requirements for part in item.specifier)
    return Requirement(f"{name}{','.join(parts)}")
