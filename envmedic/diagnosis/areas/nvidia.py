"""Facts on NVIDIA's libraries: what torch requires, and what the loader finds."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath

from envmedic.analysis.consumer_faults import kinds
from envmedic.analysis.nvidia_wheels import (
    TOOLKIT,
    Wheels,
    cuda_folders,
    lacking_libraries,
    met,
    other_majors,
    preloaded_compilers,
    wheels,
)
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Environment, Facts

_CUDA_SYMBOL = re.compile(r"_{0,2}(nccl|cu(blas|sparse|solver|dnn|fft|rand|da|pti|file)|nv(JitLink|rtc|tx|shmem))")
_NEEDS_CUDA = re.compile(
    r"(nvidia-.*|flash-attn|xformers|bitsandbytes|vllm|deepspeed|cupy-cuda\w+|mamba-ssm|causal-conv1d|auto-gptq"
    r"|autoawq|flashinfer(-python)?|onnxruntime-gpu|tensorrt(-cu\d+)?|nvdiffrast|spconv-cu\d+)"
)
"""Distributions without a use beside a CPU build of torch."""
_CUDA_LIBRARY = re.compile(r"lib(cudart|cublas|cudnn|nvrtc|cupti|nccl|cufft|curand|cusolver|cusparse|nvJitLink)\w*\.so")
_BLIND = frozenset({"ctranslate2", "onnxruntime-gpu"})
"""Distributions that open CUDA's libraries by name, without a search path to NVIDIA's wheels."""
# tools and pure Python under NVIDIA's prefix that run beside a CPU build of torch as well
_NOT_OF_TORCH = re.compile(r"nvidia-(ml-py|smi|pyindex|dali|modelopt|nat)")


def derive(facts: Facts) -> Derived:
    """The facts of ``nvidia.*``, ``cudnn.*`` and those on torch's own libraries."""
    environment = facts.environment
    if environment is None:
        return {}
    derived = _loaded(environment) | _shadowed(environment) | _elsewhere(facts, environment)
    derived["torch.cuda-wanted"] = _cuda_wanted(environment)
    # a run-time compiler (NVRTC) that LD_PRELOAD loads instead of torch's own
    hiding = preloaded_compilers(facts, environment)
    derived["nvidia.nvrtc-preloaded"] = tuple(f"{entry} comes before {own}" for entry, own in hiding.items() if own)
    torch = environment.distribution("torch")
    # conda's torch gets its libraries from conda packages, which the wheels' rules do not fit
    if torch is not None and torch.owner == "conda":
        return derived | {"nvidia.lacking": _lacking_of_conda(environment)}
    found = wheels(facts.host, environment)
    if found is None:
        return derived | {"nvidia.lacking": ()}  # without torch, nothing is missed for it
    derived["torch.unmet"] = tuple(
        item.text for item in found.wanted if item.exact and not met(item, environment) and item.name != TOOLKIT
    )
    return derived | _libraries(environment, found, str(derived.get("torch.first-unresolved") or ""))


def _libraries(environment: Environment, found: Wheels, symbol: str) -> Derived:
    """The state of NVIDIA's wheels, and the faults that follow; `symbol` is an undefined one, or empty."""
    # cuDNN's faults are separate throughout: it has releases, playbooks and error texts of its own
    overwritten = tuple(text for texts in found.clobbered.values() for text in texts)
    wrong = tuple(text for name, text in found.wrong.items() if "cudnn" not in name)
    cudnn_wrong = tuple(text for name, text in found.wrong.items() if "cudnn" in name)
    clobbered = tuple(text for text in overwritten if "/libcudnn" not in text)
    cudnn_clobbered = tuple(text for text in overwritten if "/libcudnn" in text)
    missing = tuple(item.text for item in found.missing)
    damaged = tuple(text for texts in found.damaged.values() for text in texts)
    derived: Derived = {
        "nvidia.missing": missing,
        "nvidia.wrong": wrong,
        "cudnn.wrong": cudnn_wrong,
        "nvidia.damaged": damaged,
        "nvidia.clobbered": clobbered,
        "cudnn.clobbered": cudnn_clobbered,
        "nvidia.majors": tuple(f"{item.name} {item.version}" for item in other_majors(environment)),
    }
    if environment.torch is None or not environment.torch.cuda:
        return derived
    # an undefined symbol alone may be torch's own damage; with a broken wheel it shows a conflict
    undefined = (f"nothing defines {symbol}",) if symbol and found.broken else ()
    return derived | {
        "nvidia.lacking": (*(f"{text} is not installed" for text in missing), *damaged),
        "nvidia.conflict": (*wrong, *clobbered, *undefined),
        "cudnn.conflict": (*cudnn_wrong, *cudnn_clobbered),
    }


def _loaded(environment: Environment) -> Derived:
    """Facts on the CUDA libraries and symbols that the loader would not find for torch."""
    own = [item for item in environment.libraries if item.distribution == "torch"]
    if environment.torch is None or not own or any(item.error for item in own):
        return {}
    missing = lacking_libraries(environment)
    derived: Derived = {"torch.missing-libraries": missing}
    if missing:  # every symbol of a missing library is undefined: the library is the news
        return derived
    found = {symbol: item.soname for item in environment.cuda_libraries for symbol in item.unresolved}
    for library in own:
        name = PurePosixPath(library.path).name
        # torch's own needs stand first in the dictionary, and so give the first symbol
        found = {item.symbol: name for item in library.unresolved if _of_cuda(item.symbol)} | found
    first = next(iter(found.items()), None)
    derived["torch.unresolved-symbols"] = len(found)
    derived["torch.first-unresolved"] = f"{first[0]}, which {first[1]} needs" if first else None
    return derived


def _lacking_of_conda(environment: Environment) -> tuple[str, ...]:
    """CUDA libraries that conda's torch needs and does not find."""
    if environment.torch is None or not environment.torch.cuda:
        return ()
    missing = (item for item in environment.cuda_libraries if item.path is None)
    return tuple(dict.fromkeys(f"{item.soname}, which {item.needed_by or 'torch'} needs" for item in missing))


def _of_cuda(symbol: str) -> bool:
    return _CUDA_SYMBOL.match(symbol) is not None


def _shadowed(environment: Environment) -> Derived:
    shadowed = [item for item in environment.cuda_libraries if item.instead_of is not None]
    return {
        "nvidia.shadowed": tuple(f"{item.soname} from {item.path}, before {item.instead_of}" for item in shadowed),
        "nvidia.shadowed-sonames": " ".join(item.soname for item in shadowed) or None,
        "cudnn.shadowed": tuple(item.soname for item in shadowed if item.soname.startswith("libcudnn_")),
    }


def _elsewhere(facts: Facts, environment: Environment) -> Derived:
    """Facts on CUDA libraries for distributions other than torch."""
    # what JAX, CuPy and others cannot do without has facts of its own: they bring modules that are not always of use
    own = {item.build.partition(" ")[0] for _, item in kinds(environment) if item.build is not None}
    lacking = (
        f"{soname}, which {PurePosixPath(item.path).name} of {item.distribution or 'nobody known'} needs"
        for item in environment.extensions
        for soname in item.missing
        if _CUDA_LIBRARY.match(soname) and item.distribution not in own
    )
    folders = cuda_folders(environment)
    variable = facts.variables().get("LD_LIBRARY_PATH")
    entries = [entry for entry in re.split("[:;]", variable.value) if entry] if variable is not None else []
    # torch finds these folders by itself; other programs see them through LD_LIBRARY_PATH only
    unseen = bool(folders) and not set(folders) <= {posixpath.normpath(entry) for entry in entries}
    return {
        "nvidia.lacking-elsewhere": tuple(dict.fromkeys(lacking)),
        "nvidia.unseen": tuple(item.name for item in environment.distributions if unseen and item.name in _BLIND),
    }


def _cuda_wanted(environment: Environment) -> tuple[str, ...] | None:
    """Distributions that need a CUDA torch, and companions that are CUDA builds; None without any."""
    names = [
        item.name
        for item in environment.distributions
        if _NEEDS_CUDA.fullmatch(item.name) and not _NOT_OF_TORCH.match(item.name)
    ]
    names += [f"{item.name} {item.version}" for item in environment.companions if item.has_gpu_code]
    return tuple(names) or None
