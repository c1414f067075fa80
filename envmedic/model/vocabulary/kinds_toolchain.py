"""Facts on building extensions: CUDA's compiler, the host's, build tools, and the variables that builds obey."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind, FactType

_ROWS: tuple[tuple[str, FactType, str, str | None], ...] = (
    (
        "toolchain.nvcc",
        "string",
        "the nvcc that torch builds CUDA extensions with in the activated environment, None without one",
        None,
    ),
    ("toolchain.nvcc-version", "version", "CUDA version of that nvcc", "toolchain.nvcc"),
    ("toolchain.nvcc-from", "string", "what leads to that nvcc: CUDA_HOME, CUDA_PATH, PATH or /usr/local/cuda", None),
    (
        "toolchain.nvcc-suits-torch",
        "bool",
        "whether that nvcc is of the major CUDA version that torch was compiled with, None unless both are known",
        "toolchain.nvcc-version",
    ),
    ("toolchain.toolkits", "strings", "CUDA toolkits with an nvcc, on the host and in the environment", None),
    (
        "toolchain.matching-home",
        "string",
        "root of the toolkit with an nvcc that fits torch best, None where none is of its major version",
        "toolchain.matching-version",
    ),
    ("toolchain.matching-version", "version", "CUDA version of that toolkit", None),
    (
        "toolchain.cuda-home",
        "string",
        "value of CUDA_HOME (or CUDA_PATH) in the activated environment, None when unset",
        "toolchain.cuda-home-set-by",
    ),
    (
        "toolchain.cuda-home-state",
        "string",
        "unset, usable, list (several paths in one value), missing (no such directory) or without-nvcc",
        "toolchain.cuda-home",
    ),
    ("toolchain.cuda-home-set-by", "string", "the file and line that sets it, or process", None),
    (
        "toolchain.cuda-home-kept",
        "bool",
        "whether the environment's own activation sets it",
        "toolchain.cuda-home-set-by",
    ),
    ("toolchain.missing-headers", "strings", "headers that torch's own need and the CUDA toolkit lacks", None),
    ("toolchain.compiler", "string", "the C++ compiler that builds take, None without one", None),
    ("toolchain.compiler-version", "version", "its version", "toolchain.compiler"),
    ("toolchain.compiler-limit", "int", "newest major version of such a compiler that the nvcc accepts", None),
    (
        "toolchain.compiler-accepted",
        "bool",
        "whether the nvcc accepts that compiler",
        "toolchain.compiler-limit",
    ),
    ("toolchain.accepted-c", "string", "a C compiler on the host that the nvcc accepts, None without one", None),
    ("toolchain.accepted-cxx", "string", "the C++ compiler that goes with it", None),
    ("toolchain.ninja", "string", "the ninja that builds find in the activated environment, None without one", None),
    (
        "toolchain.missing-tools",
        "strings",
        "which of the tools that builds often import are not installed: cmake, cython, ninja, numpy, packaging and others",
        None,
    ),
    (
        "toolchain.setuptools-suits",
        "bool",
        "whether the installed setuptools has what torch's builder and old projects import of it",
        "package.setuptools.version",
    ),
    ("toolchain.python-headers", "bool", "whether the environment's Python has its C headers", None),
    (
        "toolchain.libcuda-linkable",
        "bool",
        "whether the linker finds libcuda.so, which -lcuda asks for",
        "toolchain.libcuda-directory",
    ),
    (
        "toolchain.libcuda-directory",
        "string",
        "a directory with libcuda.so, or the stub for it, None without one",
        None,
    ),
    ("toolchain.stubs-at-run-time", "strings", "directories with a stub of libcuda on LD_LIBRARY_PATH", None),
    (
        "variables.arch-list",
        "string",
        "value of TORCH_CUDA_ARCH_LIST in the activated environment, None when unset",
        "variables.arch-list-set-by",
    ),
    ("variables.arch-list-set-by", "string", "the file and line that sets it, or process", None),
    (
        "variables.arch-list-kept",
        "bool",
        "whether the environment's own activation sets it",
        "variables.arch-list-set-by",
    ),
    (
        "variables.arch-list-unknown",
        "strings",
        "its entries that the installed torch, or the nvcc, does not know",
        "variables.arch-list-set-by",
    ),
    (
        "variables.build-isolation-off",
        "bool",
        "whether pip builds with what is installed in the activated environment",
        None,
    ),
    ("variables.max-jobs", "int", "value of MAX_JOBS in the activated environment, None when unset", None),
)

KINDS: tuple[FactKind, ...] = tuple(
    FactKind(name=name, type=kind, doc=doc, detail=detail) for name, kind, doc, detail in _ROWS
)
"""Facts named ``toolchain.…`` and ``variables.…``."""
