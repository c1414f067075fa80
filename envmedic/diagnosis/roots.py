"""Which fault brings which others about, so that root causes rank above their symptoms."""

from __future__ import annotations

from envmedic.model.findings import Fault

SYMPTOMS: dict[Fault, frozenset[Fault]] = {
    # nothing on the GPU works without a working GPU
    "gpu-host-fault": frozenset({"no-kernel-image", "cudnn-mismatch", "driver-too-old", "torchvision-ops"}),
    # CUDA does not start, so libraries report missing devices and kernels
    "driver-too-old": frozenset({"no-kernel-image", "cudnn-mismatch", "nvrtc-arch"}),
    # two copies mix their files, so one finds the other's libraries
    "duplicate-install": frozenset({
        "torchvision-ops", "companion-version", "extension-undefined-symbol", "missing-cuda-library",
        "nvidia-wheel-conflict", "native-crash",
    }),
    # files that are not there cannot be loaded
    "half-installed": frozenset({"torchvision-ops", "missing-cuda-library", "extension-undefined-symbol"}),
    "clobbered": frozenset({"missing-cuda-library", "nvidia-wheel-conflict", "cudnn-mismatch", "native-crash"}),
    # an extension built for a CUDA torch finds no CUDA in this one
    "cpu-only-torch": frozenset({"torchvision-ops", "missing-cuda-library", "extension-undefined-symbol"}),
    # compiled companions of another torch lack its symbols
    "companion-version": frozenset({"extension-undefined-symbol"}),
    "torchvision-ops": frozenset({"extension-undefined-symbol"}),
    # wheels of different CUDA releases lack each other's symbols
    "nvidia-wheel-conflict": frozenset({"missing-cuda-library", "extension-undefined-symbol", "cudnn-mismatch"}),
    # what is not built is not there
    "cuda-toolkit-mismatch": frozenset({"extension-build-toolchain"}),
    "cuda-arch-list": frozenset({"extension-build-toolchain"}),
}  # fmt: skip


def explained(fault: Fault, present: frozenset[Fault]) -> bool:
    """Whether another fault that is present brings `fault` about."""
    return any(fault in SYMPTOMS.get(other, frozenset()) for other in present if other != fault)
