"""Remedies for builds of extensions, and the inputs of the planner's own builds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envmedic.analysis.activated import activated
from envmedic.analysis.build_tools import Toolchain, folders, old_setuptools, toolchain
from envmedic.analysis.build_variables import Knowledge, entries, order
from envmedic.errors import NoSolution
from envmedic.model.facts import Building, Facts
from envmedic.planner.remedies.remedy import Remedy, Situation

BUILDERS = ("setuptools", "wheel", "ninja", "packaging")
"""Requirements of builds of torch extensions without build isolation."""
_WITH_PACKAGING = "setuptools>=69,<70"
"""Has pkg_resources with its packaging, and works on Python 3.12 and later."""
_WITH_RESOURCES = "setuptools>=70.1,<81"
"""Has pkg_resources without a warning, and builds wheels by itself."""
_TCNN = re.compile(r"(\d+)(\d[af]?)")


@dataclass(frozen=True)
class BuildInputs:
    """Inputs of a build of an extension in the environment."""

    toolchain: Toolchain | None = None
    """None where it was not observed."""
    architectures: str | None = None
    """TORCH_CUDA_ARCH_LIST for it, None where no suitable architecture is known."""
    setuptools: str = "setuptools"
    """Requirement on setuptools, where it is to be installed."""
    python: str | None = None
    """Version of the interpreter."""
    cuda: str | None = None
    """CUDA version of torch."""


def build_inputs(facts: Facts) -> BuildInputs:
    """Return what builds in the environment of `facts` are given."""
    environment = facts.environment
    if environment is None:
        return BuildInputs()
    building = environment.building
    tools = toolchain(facts)
    return BuildInputs(
        toolchain=tools,
        architectures=_architectures(facts, tools) if tools is not None else None,
        setuptools=_setuptools(building) if building is not None else "setuptools",
        python=environment.interpreter.version,
        cuda=environment.torch.cuda if environment.torch is not None else None,
    )


def build_setuptools(situation: Situation) -> Remedy:
    """Install wheel, and the setuptools that has what torch's builder imports."""
    _, building = _observed(situation)
    return Remedy(install=(_setuptools(building), "wheel"), why="torch's builder imports parts that others lack")


def build_isolation(situation: Situation) -> Remedy:
    """Install what builds need and an isolated build would fetch."""
    _, building = _observed(situation)
    missing = (name for name in BUILDERS if situation.environment.distribution(name) is None)
    wanted = tuple(_setuptools(building) if name == "setuptools" else name for name in missing)
    if not wanted:
        return Remedy(why=f"{', '.join(BUILDERS)} are installed")
    return Remedy(install=wanted, why="without isolation nothing is fetched for a build")


def link_libcuda(situation: Situation) -> Remedy:
    """Put a directory with libcuda.so first in LIBRARY_PATH."""
    tools, _ = _observed(situation)
    if tools.libcuda_directory is None:
        raise NoSolution(
            "There is no libcuda.so on this machine, nor a stub for it, that a build could be linked with",
            cause="the NVIDIA driver brings the one, a CUDA toolkit the other, and neither was found",
            hint="Install the CUDA toolkit of torch's version, or build on a machine with the driver",
        )
    # the user's own entries stay, after the new one: gcc searches LIBRARY_PATH from left to right
    listed = folders(activated(situation.facts), "LIBRARY_PATH")
    path = ":".join(dict.fromkeys((tools.libcuda_directory, *listed)))
    return Remedy(variables={"LIBRARY_PATH": path}, why="the linker looks for -lcuda there")


def cuda_arch_list(situation: Situation) -> Remedy:
    """Set TORCH_CUDA_ARCH_LIST, and tiny-cuda-nn's own list where it names what cannot be built for."""
    tools, building = _observed(situation)
    right = _architectures(situation.facts, tools)
    if right is None:
        raise NoSolution(
            "No GPU architecture is known here that the installed torch and the nvcc could both build for",
            cause="no GPU is visible, and neither TORCH_CUDA_ARCH_LIST nor torch names an architecture of use",
            hint="Plan on a machine with the GPUs, or for one with --host FILE, and with torch and nvcc installed",
        )
    variables = {"TORCH_CUDA_ARCH_LIST": right}
    listed = activated(situation.facts).get("TCNN_CUDA_ARCHITECTURES")
    knowledge = Knowledge(building, tools.nvcc_version)
    if knowledge.known and not _tcnn_knows(listed.value if listed is not None else "", knowledge):
        variables["TCNN_CUDA_ARCHITECTURES"] = tcnn(right)
    return Remedy(variables=variables, why="the GPUs, torch and the nvcc all know these architectures")


def tcnn(architectures: str) -> str:
    """Return a list of architectures as tiny-cuda-nn writes it: 86 for 8.6."""
    return architectures.replace("+PTX", "").replace(".", "")


def _tcnn_knows(value: str, knowledge: Knowledge) -> bool:
    """Whether every entry of tiny-cuda-nn's list can be built for."""
    found = [_TCNN.fullmatch(part.strip()) for part in re.split("[;,]", value) if part.strip()]
    return all(item is not None and knowledge.has(f"{item[1]}.{item[2]}") for item in found)


def _observed(situation: Situation) -> tuple[Toolchain, Building]:
    """Return what builds take. Raises `NoSolution` where it was not observed."""
    tools, building = toolchain(situation.facts), situation.environment.building
    if tools is None or building is None:
        raise NoSolution(
            "It is not known with which compilers and toolkits builds would work in this environment",
            cause="the tools for building were not looked for when the facts were observed",
            hint="Plan on the machine that has the environment, from facts that are observed there",
        )
    return tools, building


def _setuptools(building: Building) -> str:
    return _WITH_PACKAGING if old_setuptools(building) else _WITH_RESOURCES


def _architectures(facts: Facts, tools: Toolchain) -> str | None:
    """Return the capabilities of the visible GPUs; without one, those of the user's list, else those of torch."""
    environment = facts.environment
    building = environment.building if environment is not None else None
    if environment is None or building is None:
        return None
    knowledge = Knowledge(building, tools.nvcc_version)
    gpus = [gpu.compute_capability for gpu in facts.host.visible_gpus()]
    if gpus:
        wanted = [found for found in (_best(item, knowledge) for item in gpus) if found is not None]
    else:
        listed = entries(activated(facts), building)
        wanted = [item.removesuffix("+PTX") for item in listed if knowledge.has(item)]
        # without a GPU and a usable list, the extension should run wherever the installed torch runs
        built_for = environment.torch.arch_list if environment.torch is not None else ()
        wanted = wanted or [item for item in built_for if knowledge.has(item)]
    ascending = sorted(set(wanted), key=order)
    # PTX of the highest architecture lets the driver compile for GPUs that are newer than all listed ones
    return ";".join(ascending) + "+PTX" if ascending else None


def _best(capability: str | None, knowledge: Knowledge) -> str | None:
    if capability is None:
        return None
    # nvcc older than the GPU: its highest architecture, as PTX, is the best that it can build
    return capability if knowledge.has(capability) else knowledge.highest(capability)
