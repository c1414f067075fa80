"""Observations as sentences for people, who know neither the names of facts nor how they are derived."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from envmedic.model.playbook import FactValue
from envmedic.model.vocabulary.names import fact_kind, package_fact

_PLACE = re.compile(r"\{([\w.-]*)\}")

_COMPANION: Final[dict[str, tuple[str, ...]]] = {
    "version": ("{name} {} is installed", "{name} is not installed"),
    "accepts-torch": (
        "{name} {name.version} accepts the installed torch {torch.version}",
        "{name} {name.version} requires {name.requires-torch}, torch {package.torch.version} is installed",
        "{name} does not say which torch it requires",
    ),
    "same-cuda-major": (
        "{name} and torch are both built for CUDA {torch.cuda-major}",
        "{name} is built for CUDA {name.cuda}, torch for CUDA {torch.cuda}",
        "{name} and torch do not both say which CUDA they are built for",
    ),
    "coherent": ("{name} {name.version} was released for torch {torch.version}", "{family.problems}"),
    "has-gpu-code": ("the operators of {name} {name.version} have GPU code", "{name} {name.version} has no GPU code"),
    "operator-libraries": ("{name} {name.version} has its compiled operators", "{name} has no compiled operators"),
    "missing-libraries": ("{name} needs {}, which the loader does not find", "{name} finds all its libraries"),
    "unresolved-symbols": (
        "symbols that {name} needs and no library has: {}, first {name.first-unresolved}",
        "{name} finds all symbols that it needs",
    ),
    "copies": ("records of an installed {name}: {}", "{name} is not recorded"),
    "leftovers": ("leftover files of an old {name}: {}", "no leftover files of an old {name}"),
}
"""Of torchvision and torchaudio, whose name stands for ``name``."""

_SENTENCES: Final[dict[str, tuple[str, ...]]] = {
    "gpu.count": ("visible GPUs: {}", "no GPU is visible"),
    "env.python-starts": ("the environment's Python starts", "the environment's Python does not start"),
    "env.duplicates": ("installed twice: {}", "nothing is installed twice"),
    "env.leftovers": ("leftovers of an interrupted uninstall: {}", "no uninstall left anything behind"),
    "env.ld-library-path-set": ("LD_LIBRARY_PATH is set", "LD_LIBRARY_PATH is not set"),
    "env.python-replacement": ("{} can take the place of its Python", "no Python of this machine can take its place"),
    "torch.version": ("torch {} is installed", "torch is not installed"),
    "torch.cuda-build": ("torch {torch.version} is a CUDA build", "torch {torch.version} is a build without CUDA"),
    "torch.cuda-wanted": ("{}", "nothing here needs a CUDA build of torch"),
    "torch.gpu-code-missing": (
        "torch {torch.version} has no code for compute capability {}, only for {torch.gpu-code}",
        "torch {torch.version} has code for every visible GPU",
    ),
    "torch.nvrtc-unknown": (
        "the run-time compiler of torch (NVRTC {torch.nvrtc}) does not know compute capability {}",
        "the run-time compiler of torch knows every visible GPU",
    ),
    "torch.nvrtc-builtins": (
        "the run-time compiler of torch (NVRTC) is complete",
        "the run-time compiler of torch (NVRTC {torch.nvrtc}) lacks its library of builtins",
    ),
    "torch.unresolved-symbols": (
        "symbols that torch's CUDA libraries need and do not find: {}, first {torch.first-unresolved}",
        "torch's CUDA libraries find all symbols of each other",
    ),
    "driver.sufficient-for-torch": (
        "the driver {driver.version} is new enough for torch {torch.version}",
        "the driver is {driver.version}; torch {torch.version} needs {torch.driver-needed} or newer",
    ),
    "triton.accepted": (
        "triton {package.triton.version} is the one that torch {torch.version} requires",
        "torch {torch.version} requires {triton.required}, triton {package.triton.version} is installed",
        "torch requires no triton",
    ),
    "xformers.accepts-torch": (
        "xformers {package.xformers.version} accepts torch {torch.version}",
        "xformers {package.xformers.version} requires {xformers.requires-torch}, torch {package.torch.version} is installed",
        "xformers does not say which torch it requires",
    ),
    "bitsandbytes.knows-cuda": (
        "bitsandbytes has a library for CUDA {torch.cuda}",
        "bitsandbytes has libraries for CUDA {bitsandbytes.cuda-libraries}; torch is built for CUDA {torch.cuda}",
        "bitsandbytes and a CUDA build of torch are not both installed",
    ),
    "bitsandbytes.misses-triton-ops": (
        "bitsandbytes imports triton.ops, which triton {package.triton.version} does not have",
        "bitsandbytes finds what it imports of triton",
    ),
    "flash-attn.undefined": (
        "flash-attn needs symbols that torch {torch.version} does not have: {}",
        "torch has every symbol that flash-attn needs",
    ),
    "companions.unmet": ("{}", "torchtext, torchdata and torchcodec fit the installed torch"),
    "requirements.of-torch": ("{}", "everything that torch requires is there"),
    "requirements.missing-modules": ("{requirements.missing}", "no required package is missing"),
    "huggingface.unmet": ("{}", "the libraries around transformers have what they require"),
    "protobuf.unmet": ("{}", "protobuf is one that every package accepts"),
    "protobuf.generated": ("{}", "no generated module is for another protobuf"),
    "numpy.built-for-one": (
        "built for NumPy 1: {}; NumPy {package.numpy.version} is installed",
        "no package is built for another NumPy",
    ),
    "numpy.refused-by": (
        "{} refuses NumPy {package.numpy.version} at import",
        "no package refuses NumPy {package.numpy.version} at import",
    ),
    "numpy.unmet": (
        "{}",
        "NumPy {package.numpy.version} is one that every package accepts",
        "NumPy is one that every package accepts",
    ),
    "nvidia.lacking": ("{}", "all NVIDIA libraries that torch needs are there"),
    "nvidia.conflict": ("{}", "NVIDIA's libraries fit torch and each other"),
    "nvidia.lacking-elsewhere": ("{}", "compiled modules find the CUDA libraries that they need"),
    "nvidia.shadowed": ("taken from outside the environment: {}", "CUDA's libraries are the environment's own"),
    "nvidia.shadowed-sonames": ("{nvidia.shadowed}", "CUDA's libraries are the environment's own"),
    "nvidia.nvrtc-preloaded": (
        "LD_PRELOAD replaces torch's run-time compiler (NVRTC) by {}",
        "LD_PRELOAD replaces no library of torch",
    ),
    "nvidia.unseen": (
        "only LD_LIBRARY_PATH leads {} to CUDA's libraries, and it lacks the environment's",
        "every program finds CUDA's libraries",
    ),
    "cudnn.conflict": ("{}", "cuDNN is the one that torch requires"),
    "cudnn.shadowed": ("LD_LIBRARY_PATH leads to another cuDNN first: {}", "cuDNN is the environment's own"),
    "consumers.cpu-builds": ("built for the CPU only: {}", "every package that uses CUDA is a build for the GPU"),
    "consumers.driver-too-old": (
        "too new for the driver {driver.version}: {}",
        "the driver is new enough for every package that uses CUDA",
    ),
    "consumers.parts": ("parts of different releases: {}", "the parts of each package are of one release"),
    "consumers.twice": (
        "installed together, though they exclude each other: {}",
        "no two builds of one package exclude each other",
    ),
    "consumers.lacking": ("missing NVIDIA libraries: {}", "no NVIDIA library is missing"),
    "consumers.lacking-for-gpu": ("missing on a GPU: {}", "no NVIDIA library is missing on a GPU"),
    "consumers.nowhere": ("missing NVIDIA libraries: {}", "no NVIDIA library is missing"),
    "consumers.shadowed": (
        "LD_LIBRARY_PATH leads to another library first: {}",
        "the libraries are the environment's own",
    ),
    "consumers.without-gpu-code": (
        "no code for a visible GPU: {}",
        "every package that uses CUDA has code for the visible GPUs",
    ),
    "consumers.wrong": ("{}", "NVIDIA's packages have the versions that are asked for"),
    "extensions.undefined-torch": (
        "built for another torch: {extensions.torch-symbols}",
        "no compiled package is built for another torch",
    ),
    "extensions.undefined-own": (
        "built without a part of its own: {extensions.own-symbols}",
        "no compiled package lacks a part of its own",
    ),
    "extensions.undefined-symbols": ("symbols that no library has: {}", "compiled packages find every symbol"),
    "extensions.names-other-torch": (
        "{} says itself that it is for another torch than {torch.version}",
        "no package says that it is for another torch",
    ),
    "extensions.missing-torch-libraries": (
        "{extensions.missing-libraries}",
        "compiled packages find torch's libraries",
    ),
    "extensions.rebuildable": ("can be built again here: {}", "no source to build it from is known"),
    "extensions.without-gpu-code": ("{extensions.gpu-code}", "compiled packages have code for every visible GPU"),
    "extensions.without-gpu-half": (
        "built without its CUDA half, beside a CUDA build of torch: {}",
        "no package was built without its CUDA half",
    ),
    "files.damaged": ("{files.problems}", "no file of a package is missing or cut off"),
    "files.beyond-index": ("{files.problems}", "an index has every damaged package"),
    "files.foreign": ("{files.foreign-tags}", "every wheel is for this platform and Python"),
    "files.unrecorded": ("the RECORD of {} is gone", "every package has its RECORD"),
    "files.moved-from": ("the environment was made at {}, which is gone", "the environment was not moved"),
    "path-files.dead": ("{path-files.reasons}", "every path file finds what it imports"),
    "programs.broken": ("{programs.reasons}", "every program starts"),
    "programs.not-executable": ("without permission to execute: {}", "every program may be executed"),
    "conda.clobbered": ("{conda.reasons}", "no wheel lies over a conda package"),
    "conda.damaged": ("{files.problems}", "no file of a conda package is missing or cut off"),
    "conda.damaged-records": ("unreadable records of conda: {}", "every record of conda can be read"),
    "conda.unmet": ("{conda.unmet-reasons}", "conda's packages with compiled modules have the releases that they need"),
    "conda.unrecorded": ("conda has no record of {}", "conda has a record of every package"),
    "clobbered.reasons": ("{}", "no file of a package was overwritten by another"),
    "crash.sequence": (
        "imported in this order, {} end Python: {crash.error}",
        "no order of imports ends Python",
    ),
    "crash.signal": ("{} ends Python", "Python is not ended by a signal"),
    "crash.error": ("Python ends with: {}", "Python does not end early"),
    "openmp.doubled": ("several OpenMP runtimes: {openmp.runtimes}", "there is one OpenMP runtime"),
    "mkl.profiler-symbols-missing": (
        "torch needs symbols of Intel's profiler that MKL {mkl.version} does not bring",
        "torch finds the symbols of Intel's profiler",
    ),
    "mkl.missing-libraries": ("torch does not find {}", "torch finds MKL's libraries"),
    "mkl.service": ("mkl-service, which chooses MKL's threads, is installed", "mkl-service is not installed"),
    "mkl.threading-layer": ("MKL_THREADING_LAYER is {}", "MKL_THREADING_LAYER is not set"),
    "libc.missing-versions": (
        "the system's C library lacks {}, which {libc.needed-by} needs",
        "the system's C library is new enough",
    ),
    "libstdcxx.missing-versions": (
        "libstdc++ is too old: it lacks {} ({libstdcxx.needed-by})",
        "libstdc++ is new enough for every module",
    ),
    "libstdcxx.old-entries": (
        "LD_LIBRARY_PATH leads to an older libstdc++: {}",
        "no entry of LD_LIBRARY_PATH leads to an older libstdc++",
    ),
    "shadow.pythonpath": ("PYTHONPATH puts other copies first: {}", "PYTHONPATH hides no package"),
    "shadow.user-site": ("copies in your home directory come first: {}", "your home directory hides no package"),
    "host.container-without-gpu": ("{host.gpu-state}", "the container has its host's GPUs"),
    "host.gpu-unreachable": ("{host.gpu-state}", "programs reach the GPU"),
    "host.driver-mismatch": ("{host.driver-libraries}", "the driver's module and its libraries are of one version"),
    "host.gpus-hidden": ("CUDA_VISIBLE_DEVICES hides every GPU", "CUDA_VISIBLE_DEVICES hides no GPU"),
    "host.gpus-lost": ("the driver cannot reach {}", "the driver reaches every GPU"),
    "host.fabric": ("the fabric that joins the GPUs: {}", "no fabric joins the GPUs"),
    "shell.allocator": ("your shell sets {}", "your shell sets nothing of torch's memory allocator"),
    "shell.devices-unknown": ("{}", "every entry of CUDA_VISIBLE_DEVICES is a GPU of this machine"),
    "shell.interface-unknown": (
        "your shell names a network interface that this machine lacks: {}",
        "every network interface that your shell names is there",
    ),
    "shell.precision": ("your shell sets {}", "your shell does not force TF32"),
    "shell.preloads-lost": ("LD_PRELOAD names files that are gone: {}", "every file in LD_PRELOAD is there"),
    "shell.stubs": ("LD_LIBRARY_PATH leads to a stand-in for the driver: {}", "LD_LIBRARY_PATH has no stand-in"),
    "sources.lost": ("{sources.reasons}", "no editable install has lost its source"),
    "sources.folders": ("{sources.reasons}", "no editable install has lost its source"),
    "text.holds": ("{text.observed}", "not so here: {text.observed}"),
    "text.conflicts": ("{}", "the packages here have what they require"),
    "text.extras": ("{}", "no extra asks for it"),
    "text.distribution": ("{} would bring it, and is not installed", "nothing is known that would bring it"),
    "toolchain.compiler": ("builds use {}", "there is no C++ compiler"),
    "toolchain.compiler-accepted": (
        "nvcc accepts {toolchain.compiler}",
        "nvcc accepts no compiler newer than {toolchain.compiler-limit}; builds use {toolchain.compiler}",
    ),
    "toolchain.cuda-home-kept": (
        "the environment sets CUDA_HOME itself, in {toolchain.cuda-home-set-by}",
        "the environment does not set CUDA_HOME",
    ),
    "toolchain.cuda-home-state": ("CUDA_HOME is {toolchain.cuda-home} ({})", "CUDA_HOME is not set"),
    "toolchain.libcuda-linkable": ("the linker finds libcuda.so", "the linker does not find libcuda.so"),
    "toolchain.missing-headers": ("the CUDA toolkit lacks headers: {}", "the CUDA toolkit has its headers"),
    "toolchain.missing-tools": ("not installed, and often needed by builds: {}", "the usual build tools are there"),
    "toolchain.ninja": ("builds use {}", "there is no ninja"),
    "toolchain.nvcc": ("torch builds with {}", "there is no nvcc"),
    "toolchain.nvcc-suits-torch": (
        "nvcc {toolchain.nvcc-version} suits torch's CUDA {torch.cuda}",
        "nvcc is of CUDA {toolchain.nvcc-version}; torch is built for CUDA {torch.cuda}",
    ),
    "toolchain.python-headers": ("Python has its C headers", "Python lacks its C headers"),
    "toolchain.setuptools-suits": (
        "setuptools {package.setuptools.version} has what builds import of it",
        "setuptools {package.setuptools.version} no longer has what builds import of it",
    ),
    "toolchain.stubs-at-run-time": (
        "LD_LIBRARY_PATH leads to a stand-in for libcuda: {}",
        "LD_LIBRARY_PATH has no stand-in for libcuda",
    ),
    "variables.arch-list": ("TORCH_CUDA_ARCH_LIST is {}", "TORCH_CUDA_ARCH_LIST is not set"),
    "variables.arch-list-kept": (
        "the environment sets TORCH_CUDA_ARCH_LIST itself, in {variables.arch-list-set-by}",
        "the environment does not set TORCH_CUDA_ARCH_LIST",
    ),
    "variables.arch-list-unknown": (
        "TORCH_CUDA_ARCH_LIST names {}, which torch or nvcc does not know",
        "torch and nvcc know every entry of TORCH_CUDA_ARCH_LIST",
    ),
    "variables.build-isolation-off": (
        "pip builds with the packages installed here",
        "pip builds in an environment of its own, which lacks the packages installed here",
    ),
    "variables.max-jobs": ("MAX_JOBS is {}", "MAX_JOBS is not set"),
}
"""What is said of a fact that is true, counted or found; of one that is false, zero or empty; of an absent one, else as of these."""


def fact_sentence(name: str, values: Mapping[str, FactValue]) -> str:
    """The observation of a fact in words; empty where no words are known, or another fact in them was not observed.

    A group of a match, or a variable of a playbook, is quoted from the text.
    """
    value = values.get(name)
    if package_fact(name):
        package, attribute = name.split(".")[1:]
        if attribute != "version":
            return ""
        return f"{package} {value} is installed" if value else f"{package} is not installed"
    if fact_kind(name) is None:
        return f"the text says “{value}”" if isinstance(value, str) and value else ""
    member, _, attribute = name.partition(".")
    if name in _SENTENCES:
        chosen = _SENTENCES[name]
    elif member in {"torchvision", "torchaudio"} and attribute in _COMPANION:
        chosen = _COMPANION[attribute]
    else:
        return ""
    return _filled(chosen[0] if value else chosen[-1] if value is None else chosen[1], name, member, values)


def _filled(template: str, fact: str, member: str, values: Mapping[str, FactValue]) -> str:
    """`template` with the values of facts in it; empty where one of them was not observed."""
    found = {
        place: member if place == "name" else _words(values.get(_fact(place, fact, member)))
        for place in _PLACE.findall(template)
    }
    return _PLACE.sub(lambda place: found[place[1]], template) if all(found.values()) else ""


def _fact(place: str, fact: str, member: str) -> str:
    return member + place.removeprefix("name") if place.startswith("name.") else place or fact


def _words(value: FactValue) -> str:
    if isinstance(value, tuple):
        return "; ".join(value) if any(" " in item for item in value) else ", ".join(value)
    return "" if value is None or isinstance(value, bool) else str(value)
