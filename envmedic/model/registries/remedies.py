"""The names that ``step: remedy`` may use, and the computed facts of version 0.1 that remedies replace.

The planner decides what a remedy installs, removes or sets: `planner.remedies` has the function of each name.
"""

from __future__ import annotations

from envmedic.model.base import Model


class RemedyKind(Model, frozen=True, kw_only=True):
    """One remedy."""

    name: str
    does: str
    """What it does, as an imperative."""


_ROWS: tuple[tuple[str, str], ...] = (
    ("base-python", "lead a virtual environment to a Python of the host with the release series of its packages"),
    ("build-isolation", "install what a build of an extension needs without isolation and is missing"),
    ("build-setuptools", "install wheel, and the setuptools that has what torch's builder and old projects import"),
    ("clobbered", "remove the distributions that wrote over each other's files, and install the one that is to stay"),
    ("consumer-gpu-build", "put a build for the GPU in the place of one for the CPU, in the same release"),
    (
        "consumer-libraries",
        "install the libraries of NVIDIA that JAX, TensorFlow, CuPy and others lack, as all of them accept",
    ),
    ("consumer-newer-release", "install a newer release of a library that holds no code for a visible GPU"),
    ("consumer-older-cuda", "install the same release of a library for a CUDA release that the driver serves"),
    ("consumer-parts", "bring the parts of a library, such as core and CUDA plugin, to one release"),
    ("consumer-twice", "remove all but one of the builds of a library that exclude each other"),
    (
        "consumer-versions",
        "install releases of NVIDIA's libraries that all consumers accept, or consumers that share one",
    ),
    (
        "cuda-arch-list",
        (
            "set TORCH_CUDA_ARCH_LIST to what the visible GPUs, this torch and this nvcc know, and tiny-cuda-nn's list too "
            "where it is wrong"
        ),
    ),
    ("cuda-library-unseen", "put the directories of the environment's CUDA libraries first in LD_LIBRARY_PATH"),
    (
        "duplicate-install",
        (
            "remove every copy of what is installed twice, install the right version of it, and bring back what only "
            "leftovers remain of and is still wanted"
        ),
    ),
    (
        "extension-undefined-symbol",
        "install modules that were built for another torch in the build, or the release, for the installed one",
    ),
    ("libstdcxx-library-path", "take the entries that lead to too old a libstdc++ out of LD_LIBRARY_PATH"),
    ("link-libcuda", "put a directory with libcuda.so, or with the stub for it, first in LIBRARY_PATH"),
    ("missing-requirement", "install what is required and missing, in a release that all accept"),
    ("make-executable", "let programs of installed distributions be executed that lost the permission"),
    ("mkl-libraries", "remove MKL's wheels and install them again, or what torch requires of MKL where none is there"),
    ("moved-environment", "rewrite the former path of a moved environment in its scripts, activation and settings"),
    (
        "numpy-abi",
        "install a NumPy that fits all that is compiled for it, or newer releases of what is too old for NumPy 2",
    ),
    (
        "nvidia-shadowed",
        "take the directories whose CUDA libraries hide the environment's own out of LD_LIBRARY_PATH",
    ),
    ("nvidia-wheels", "remove NVIDIA's wheels that do not fit torch, and install exactly those that it requires"),
    ("nvrtc-preloaded", "take other run-time compilers than torch's own out of LD_PRELOAD"),
    ("openmp-runtimes", "remove wheels that bring nothing but a second OpenMP runtime and that nothing requires"),
    ("path-files", "remove path files that import what is gone and that no distribution lists"),
    ("protobuf-version", "install a protobuf that all that require it accept"),
    ("scripts", "write scripts again from the entry points of their distributions, or install what brings them again"),
    ("torch-companions", "install the torchcodec that was made for the installed torch"),
    (
        "transformers-family",
        (
            "install other releases of the libraries around transformers that are out of step, so that as little as "
            "possible moves"
        ),
    ),
    ("triton-version", "install the triton that the installed torch requires"),
    ("unmet-requirement", "install other releases of what is out of step, so that as little as possible moves"),
    ("xformers-build", "install the xformers that was built for the installed torch"),
)

REMEDIES: dict[str, RemedyKind] = {name: RemedyKind(name=name, does=does) for name, does in _ROWS}
"""Every remedy by its name."""


class FormerFact(Model, frozen=True, kw_only=True):
    """A fact of version 0.1 that was no observation but an answer."""

    remedy: str
    """The remedy that decides it now."""
    observed: str
    """The fact to ask for in a condition."""


# The loader refuses these names in a playbook, and its message names the remedy and the fact to use instead.
FORMER_FACTS: dict[str, FormerFact] = {
    name: FormerFact(remedy=remedy, observed=observed)
    for name, remedy, observed in (
        ("clobbered.distributions", "clobbered", "clobbered.reasons"),
        ("clobbered.pins", "clobbered", "clobbered.reasons"),
        ("companions.pins", "torch-companions", "companions.unmet"),
        ("duplicates.names", "duplicate-install", "env.duplicates"),
        ("duplicates.pins", "duplicate-install", "env.duplicates"),
        ("extensions.replacements", "extension-undefined-symbol", "extensions.names-other-torch"),
        ("huggingface.unmet-pins", "transformers-family", "huggingface.unmet"),
        ("leftovers.lost", "duplicate-install", "env.leftovers"),
        ("libstdcxx.library-path", "libstdcxx-library-path", "libstdcxx.old-entries"),
        ("mkl.requirements", "mkl-libraries", "mkl.distributions"),
        ("numpy.pins", "numpy-abi", "numpy.unmet"),
        ("nvidia.library-folders", "cuda-library-unseen", "nvidia.unseen"),
        ("nvidia.library-path", "nvidia-shadowed", "nvidia.shadowed"),
        ("nvidia.preload", "nvrtc-preloaded", "nvidia.nvrtc-preloaded"),
        ("nvidia.purge", "nvidia-wheels", "nvidia.conflict"),
        ("nvidia.repair", "nvidia-wheels", "nvidia.conflict"),
        ("openmp.removable", "openmp-runtimes", "openmp.doubled"),
        ("protobuf.unmet-pins", "protobuf-version", "protobuf.unmet"),
        ("requirements.conflicts-pins", "unmet-requirement", "requirements.conflicts"),
        ("requirements.missing-pins", "missing-requirement", "requirements.missing"),
        ("requirements.of-torch-pins", "unmet-requirement", "requirements.of-torch"),
        ("toolchain.library-path", "link-libcuda", "toolchain.libcuda-directory"),
        ("toolchain.missing-builders", "build-isolation", "toolchain.missing-tools"),
        ("toolchain.setuptools-wanted", "build-setuptools", "toolchain.setuptools-suits"),
        ("triton.unmet-pins", "triton-version", "triton.accepted"),
        ("variables.arch-list-right", "cuda-arch-list", "variables.arch-list-unknown"),
        ("variables.tcnn-right", "cuda-arch-list", "variables.arch-list-unknown"),
        ("xformers.pins", "xformers-build", "xformers.accepts-torch"),
    )
}
"""By the names that playbooks of version 0.1 may still use."""
