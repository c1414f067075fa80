"""Remedies: decisions from facts on what to install, remove or set for a fault. Playbooks name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from envmedic.planner.remedies import (
    building,
    compiled_modules,
    consumers,
    installed_files,
    numpy_abi,
    nvidia,
    program_files,
    releases,
    shared_runtimes,
)
from envmedic.planner.remedies.remedy import Remedy, Situation

__all__ = ["DECISIONS", "Remedy", "Situation", "decide"]

DECISIONS: Mapping[str, Callable[[Situation], Remedy]] = MappingProxyType(
    {
        "base-python": program_files.base_python,
        "build-isolation": building.build_isolation,
        "build-setuptools": building.build_setuptools,
        "clobbered": installed_files.clobbered,
        "consumer-gpu-build": consumers.consumer_gpu_build,
        "consumer-libraries": consumers.consumer_libraries,
        "consumer-newer-release": consumers.consumer_newer_release,
        "consumer-older-cuda": consumers.consumer_older_cuda,
        "consumer-parts": consumers.consumer_parts,
        "consumer-twice": consumers.consumer_twice,
        "consumer-versions": consumers.consumer_versions,
        "cuda-arch-list": building.cuda_arch_list,
        "cuda-library-unseen": nvidia.cuda_library_unseen,
        "duplicate-install": installed_files.duplicate_install,
        "extension-undefined-symbol": compiled_modules.extension_undefined_symbol,
        "libstdcxx-library-path": shared_runtimes.libstdcxx_library_path,
        "link-libcuda": building.link_libcuda,
        "missing-requirement": releases.missing_requirement,
        "make-executable": program_files.make_executable,
        "mkl-libraries": shared_runtimes.mkl_libraries,
        "moved-environment": program_files.moved_environment,
        "numpy-abi": numpy_abi.numpy_abi,
        "nvidia-shadowed": nvidia.nvidia_shadowed,
        "nvidia-wheels": nvidia.nvidia_wheels,
        "nvrtc-preloaded": nvidia.nvrtc_preloaded,
        "openmp-runtimes": shared_runtimes.openmp_runtimes,
        "path-files": program_files.path_files,
        "protobuf-version": releases.protobuf_version,
        "scripts": program_files.scripts,
        "torch-companions": releases.torch_companions,
        "transformers-family": releases.transformers_family,
        "triton-version": releases.triton_version,
        "unmet-requirement": releases.unmet_requirement,
        "xformers-build": releases.xformers_build,
    }
)
"""The function of each remedy of `model.remedies`."""


def decide(name: str, situation: Situation) -> Remedy:
    """Return the changes of the named remedy. Raises `NoSolution`, with an explanation, where it cannot decide."""
    return DECISIONS[name](situation)
