"""Environment variables of builds after activation."""

from __future__ import annotations

import re

import msgspec
from msgspec import UNSET, UnsetType

from envmedic.analysis.activated import Values, activated
from envmedic.analysis.build_tools import Toolchain
from envmedic.compat.nvcc_support import nvcc_knows
from envmedic.model.facts import Building, Facts

_FALSE = frozenset({"0", "false", "no", "off", "f", "n"})
"""Words that pip reads as no. PIP_NO_BUILD_ISOLATION=no turns isolation off: pip sets the option's own value,
`build_isolation`, from it."""
_SEPARATORS = re.compile(r"[; ]")
EMPTY = "(an empty entry)"


class BuildVariables(msgspec.Struct, frozen=True, kw_only=True):
    """Variables that builds obey, each field the fact ``variables.…`` of its name; UNSET where nothing can be said."""

    arch_list: str | None
    """Value of TORCH_CUDA_ARCH_LIST."""
    arch_list_set_by: str | None
    arch_list_kept: bool
    arch_list_unknown: tuple[str, ...] | UnsetType = UNSET
    """Its entries that torch's builder or the nvcc does not know."""
    build_isolation_off: bool
    max_jobs: int | None


def build_variables(facts: Facts, tools: Toolchain) -> BuildVariables | None:
    """Return the variables of builds that take `tools`, None where what builds need was not observed."""
    building = facts.environment.building if facts.environment is not None else None
    if building is None:
        return None
    values = activated(facts)
    listed = values.get("TORCH_CUDA_ARCH_LIST")
    jobs = values.get("MAX_JOBS")
    # without a version of nvcc, torch's own list of architectures still tells
    knowledge = Knowledge(building, tools.nvcc_version)
    unknown = tuple(item or EMPTY for item in entries(values, building) if not knowledge.has(item))
    return BuildVariables(
        arch_list=listed.value if listed is not None and listed.value else None,
        arch_list_set_by=listed.source if listed is not None else None,
        arch_list_kept=listed is not None and listed.kept,
        arch_list_unknown=unknown if knowledge.known else UNSET,
        build_isolation_off=_isolation_off(values),
        max_jobs=int(jobs.value) if jobs is not None and jobs.value.isdecimal() else None,
    )


def _isolation_off(values: Values) -> bool:
    variable = values.get("PIP_NO_BUILD_ISOLATION")
    return variable is not None and variable.value.strip().lower() in _FALSE


class Knowledge:
    """Which architectures torch's builder and the nvcc know."""

    def __init__(self, building: Building, cuda: str | None) -> None:
        self._torch = building.architectures
        self._cuda = cuda

    @property
    def known(self) -> bool:
        """Whether anything can be said."""
        return bool(self._torch) or self._cuda is not None

    def has(self, entry: str) -> bool:
        """Whether extensions can be built for ``8.6``, ``9.0a`` or ``8.9+PTX``."""
        architecture = entry.removesuffix("+PTX")
        # torch's builder raises on an architecture outside its own list before nvcc is called
        if self._torch and architecture not in self._torch:
            return False
        if re.fullmatch(r"\d+\.\d[af]?", architecture) is None:
            return False
        # `is not False`: None is a release outside the table, where nothing speaks against it
        return self._cuda is None or nvcc_knows(self._cuda, architecture) is not False

    def highest(self, capability: str) -> str | None:
        """The newest known architecture up to `capability`; its PTX runs there as well."""
        # 9.0a and 10.0f end in letters: code of such targets is bound to one GPU or family, also as PTX
        lower = (item for item in self._torch if item[-1:].isdigit() and order(item) <= order(capability))
        return max((item for item in lower if self.has(item)), key=order, default=None)


def entries(values: Values, building: Building) -> tuple[str, ...]:
    """Return the entries of TORCH_CUDA_ARCH_LIST as torch splits them, without its names such as Hopper."""
    listed = values.get("TORCH_CUDA_ARCH_LIST")
    if listed is None or not listed.value:
        return ()
    names = set(building.named_architectures)
    parts = _SEPARATORS.split(listed.value)
    return tuple(part for part in parts if part.removesuffix("+PTX") not in names and part not in names)


def order(architecture: str) -> tuple[int, int, str]:
    """Return the key by which architectures ascend."""
    match = re.fullmatch(r"(\d+)\.(\d+)(\w*)", architecture)
    return (int(match[1]), int(match[2]), match[3]) if match is not None else (0, 0, architecture)
