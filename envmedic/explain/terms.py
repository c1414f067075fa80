"""Terms of the field with plain definitions, for the explanations that use them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envmedic.model.answers.explanation import Term

# term, pattern of its uses, definition; words with an everyday meaning (kernel, symbol) match whole words only
_TERMS: tuple[tuple[str, str, str], ...] = (
    ("ABI", r"\bABI\b", ("how compiled code finds and calls other compiled code: names of functions, layout of data. "
     "Two libraries with different ABIs cannot work together, whatever their versions say")),
    ("build isolation", r"\bbuild isolation\b|\bisolated environment\b", ("pip's habit to build a package in a fresh environment of its own, where "
     "nothing that you installed is visible")),
    ("compute capability", r"\bcompute capabilit|\bcapabilit(?:y|ies)\b|\bsm_\d", ("the version of a GPU's architecture, such as 8.6 for an RTX 3090 or 9.0 for an "
     "H100; also written sm_86, sm_90")),
    ("CUDA", r"\bCUDA\b", ("NVIDIA's system for computing on GPUs: a driver on the machine, and libraries that come with "
     "torch or with a toolkit")),
    ("CUDA toolkit", r"\btoolkit\b", ("what is needed to compile CUDA code: the compiler nvcc, headers and libraries. "
     "Running torch does not need it")),
    ("CUDA variant", r"\bvariants?\b|\bcu\d{2,3}\b", "which CUDA a build of torch is for, as in cu124 (CUDA 12.4) or cpu"),
    ("kernel", r"\bkernels?\b", "a function that runs on the GPU (not the Linux kernel)"),
    ("leftover", r"\bleftovers?\b|\bremains\b|begin with ~", "files and directories that an interrupted removal did not delete, often named with a ~"),
    ("nvcc", r"\bnvcc\b", "the CUDA compiler, part of a toolkit"),
    ("NVRTC", r"\bNVRTC\b", "a library that compiles CUDA code while a program runs"),
    ("OpenMP", r"\bOpenMP\b", "the usual way in which compiled libraries spread work over processor cores"),
    ("PTX", r"\bPTX\b", "an intermediate form of GPU code, which the driver translates for GPUs that are newer than it"),
    ("soname", r"\bsoname|\blib\w+\.so\.\d", ("the name by which a library is looked up, such as libcudart.so.12; the number changes "
     "when old and new cannot replace each other")),
    ("symbol", r"\bsymbols?\b", "the name of a function or variable in a compiled library"),
    ("wheel", r"\bwheels?\b", "a package in the form that pip and uv install: a zip file, compiled beforehand"),
)  # fmt: skip


def used(texts: Iterable[str]) -> tuple[Term, ...]:
    """The terms that occur in `texts`, in alphabetical order."""
    whole = "\n".join(texts)
    return tuple(Term(term=term, meaning=meaning) for term, pattern, meaning in _TERMS if re.search(pattern, whole))
