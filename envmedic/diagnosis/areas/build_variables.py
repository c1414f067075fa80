"""Variables of builds as an activated shell has them, and what TORCH_CUDA_ARCH_LIST has to be."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envmedic.diagnosis.activated_variables import Values
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Building, Environment, Host

_FALSE = frozenset({"0", "false", "no", "off", "f", "n"})
"""What pip takes for no. PIP_NO_BUILD_ISOLATION turned to no turns isolation off, whatever its name says."""
_SEPARATORS = re.compile(r"[; ]")
_TCNN = re.compile(r"(\d+)(\d[af]?)")
EMPTY = "(an empty entry)"


def derive(host: Host, environment: Environment, building: Building, values: Values, cuda: str | None) -> Derived:
    """The facts named ``variables.…``; `cuda` is the version of the nvcc that builds take, None where unknown."""
    listed = values.get("TORCH_CUDA_ARCH_LIST")
    jobs = values.get("MAX_JOBS")
    knowledge = _Knowledge(building, cuda)
    derived: Derived = {
        "variables.arch-list": listed.value if listed is not None and listed.value else None,
        "variables.arch-list-set-by": listed.source if listed is not None else None,
        "variables.arch-list-kept": listed is not None and listed.kept,
        "variables.build-isolation-off": _isolation_off(values),
        "variables.max-jobs": int(jobs.value) if jobs is not None and jobs.value.isdecimal() else None,
    }
    entries = _entries(listed.value if listed is not None else "", building.named_architectures)
    if knowledge.known:
        derived["variables.arch-list-unknown"] = tuple(item or EMPTY for item in entries if not knowledge.has(item))
    right = derived["variables.arch-list-right"] = _right(host, environment, entries, knowledge)
    tcnn = values.get("TCNN_CUDA_ARCHITECTURES")
    derived["variables.tcnn-right"] = _tcnn_right(tcnn.value if tcnn is not None else "", right, knowledge)
    return derived


def _tcnn_right(value: str, right: str | None, knowledge: _Knowledge) -> tuple[str, ...]:
    """tiny-cuda-nn's list for the same GPUs, where `value` names what cannot be built for: it writes 8.6 as 86."""
    entries = [_TCNN.fullmatch(part.strip()) for part in re.split("[;,]", value) if part.strip()]
    known = (item is not None and knowledge.has(f"{item[1]}.{item[2]}") for item in entries)
    if right is None or not knowledge.known or all(known):
        return ()
    return (right.replace("+PTX", "").replace(".", ""),)


def _isolation_off(values: Values) -> bool:
    variable = values.get("PIP_NO_BUILD_ISOLATION")
    return variable is not None and variable.value.strip().lower() in _FALSE


class _Knowledge:
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
        from envmedic.compat.nvcc_support import nvcc_knows  # noqa: PLC0415  # reads the compatibility data

        architecture = entry.removesuffix("+PTX")
        if self._torch and architecture not in self._torch:
            return False
        if re.fullmatch(r"\d+\.\d[af]?", architecture) is None:
            return False
        return self._cuda is None or nvcc_knows(self._cuda, architecture) is not False

    def highest(self, capability: str) -> str | None:
        """The newest architecture that is known and not above `capability`: its PTX runs there too."""
        lower = (item for item in self._torch if item[-1:].isdigit() and _order(item) <= _order(capability))
        return max((item for item in lower if self.has(item)), key=_order, default=None)


def _entries(text: str, named: Iterable[str]) -> tuple[str, ...]:
    """The entries as torch splits them; its names for generations, such as Hopper, are left out."""
    if not text:
        return ()
    names = set(named)
    parts = _SEPARATORS.split(text)
    return tuple(part for part in parts if part.removesuffix("+PTX") not in names and part not in names)


def _order(architecture: str) -> tuple[int, int, str]:
    match = re.fullmatch(r"(\d+)\.(\d+)(\w*)", architecture)
    return (int(match[1]), int(match[2]), match[3]) if match is not None else (0, 0, architecture)


def _right(host: Host, environment: Environment, entries: Iterable[str], knowledge: _Knowledge) -> str | None:
    """The capabilities of the visible GPUs; without one, what is usable of the list, else what torch was built for."""
    gpus = [gpu.compute_capability for gpu in host.visible_gpus()]
    if gpus:
        wanted = [found for found in (_best(item, knowledge) for item in gpus) if found is not None]
    else:
        wanted = [item.removesuffix("+PTX") for item in entries if knowledge.has(item)]
        built_for = environment.torch.arch_list if environment.torch is not None else ()
        wanted = wanted or [item for item in built_for if knowledge.has(item)]
    ascending = sorted(set(wanted), key=_order)
    return ";".join(ascending) + "+PTX" if ascending else None


def _best(capability: str | None, knowledge: _Knowledge) -> str | None:
    if capability is None:
        return None
    return capability if knowledge.has(capability) else knowledge.highest(capability)
