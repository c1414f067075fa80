"""The classes of fault: one row for each, with its page in ``envmedic explain`` and what it brings about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from envmedic.model.base import Model
from envmedic.model.registries.registry import by_name, complete

Fault = Literal[
    "torchvision-ops",
    "nvrtc-arch",
    "no-kernel-image",
    "extension-undefined-symbol",
    "cuda-toolkit-mismatch",
    "cuda-arch-list",
    "extension-build-toolchain",
    "native-crash",
    "cpu-only-torch",
    "driver-too-old",
    "missing-cuda-library",
    "nvidia-wheel-conflict",
    "cudnn-mismatch",
    "numpy-abi",
    "libstdcxx",
    "mkl-openmp",
    "duplicate-install",
    "companion-version",
    "gpu-host-fault",
    "unsatisfiable",
    "half-installed",
    "clobbered",
    "shell-variable",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)


class FaultClass(Model, frozen=True, kw_only=True):
    """Description of a class of fault, common to all its playbooks."""

    name: Fault
    title: str
    what: str
    """What it is, for a reader who has never met it."""
    why: str
    """Usual causes."""
    proof: tuple[str, ...]
    """How a repair of it is proven."""
    # Stated with the cause, not with the symptom: a new class then names what it brings about, and no row of another
    # class changes.
    symptoms: frozenset[Fault] = frozenset()
    """Classes that it brings about: a diagnosis ranks them below it."""
    of_host: bool = False
    """Whether the machine is at fault, so that no repair of an environment helps."""
    shown_by_checks: bool = True
    """Whether the failure of a check points to it (`CheckKind.points_to`); false where facts alone show it."""


_FACTS_AGAIN: Final = "the facts that confirm it are read again in the repaired copy, and must be gone"
_ROWS: Final = (
    FaultClass(
        name="torchvision-ops",
        title="torchvision's operators do not work with the installed torch",
        what=(
            "torchvision's fast operators, such as nms, are in a compiled library. It either does not load at all, or "
            "it loads and has no kernel for the GPU."
        ),
        why=(
            "That library is compiled against one release of torch and either with or without CUDA. An installer that "
            "changes one of the two packages and not the other leaves a pair that does not belong together; two copies "
            "of torchvision, or the remains of an old one, do the same."
        ),
        proof=("nms and roi_align are computed on the CPU and on every GPU and compared with a reference",),
        # a torchvision of another torch lacks its symbols
        symptoms=frozenset({"extension-undefined-symbol"}),
    ),
    FaultClass(
        name="nvrtc-arch",
        title="the run-time compiler of CUDA does not know this GPU",
        what=(
            "Most GPU code in torch is compiled beforehand, but some operations (complex numbers, fused kernels) are "
            "compiled while the program runs, by a library called NVRTC. It refuses an architecture that it has never "
            "heard of, so that a few operations fail while a matrix product works."
        ),
        why=(
            "The NVRTC that the process loads is older than the GPU: torch brought it in a CUDA variant from before the "
            "GPU, or another one is loaded in its place. The version that nvidia-smi shows plays no part in it: that is "
            "the newest CUDA which the driver could serve."
        ),
        proof=("a kernel is really compiled by NVRTC and run on every GPU", _FACTS_AGAIN),
    ),
    FaultClass(
        name="no-kernel-image",
        title="a compiled library holds no code for this GPU",
        what=(
            "GPU code is machine code for certain architectures. A library that has none for the GPU at hand, and no "
            "PTX that the driver could translate, fails at its first kernel: no kernel image is available."
        ),
        why=(
            "Either torch itself is too old for a new GPU, or so new that an old GPU was dropped; or an extension was "
            "compiled on a machine with another GPU, for that one only."
        ),
        proof=("kernels run on every visible GPU and agree with a reference", _FACTS_AGAIN),
    ),
    FaultClass(
        name="extension-undefined-symbol",
        title="a compiled extension needs a function that no loaded library has",
        what=(
            "A compiled extension lists the functions (symbols) that it expects to find in other libraries. One of them "
            "is nowhere to be found when Python loads it, so the import fails."
        ),
        why=(
            "Who should have defined the symbol decides. If it is one of torch's, the extension was compiled for another "
            "torch, whose functions had other names or other arguments. If it is the extension's own, its CUDA sources "
            "were left out when it was built, because the build saw no CUDA toolkit. Otherwise another library is "
            "missing or is found in a wrong version first."
        ),
        proof=(
            "every symbol that the extension needs is looked up in the libraries that the loader would take",
            "the extension is imported in a process of its own",
        ),
    ),
    FaultClass(
        name="cuda-toolkit-mismatch",
        title="the CUDA compiler at hand is of another major version than torch",
        what=(
            "Building a CUDA extension needs nvcc, the CUDA compiler, of the same major version as the CUDA that torch "
            "was built with. torch refuses to go on with another one."
        ),
        why=(
            "CUDA_HOME or PATH leads to another toolkit; or pip built the extension in an isolated environment, into "
            "which it installed another torch than yours."
        ),
        proof=("a small extension is built with the same toolchain, imported and run", _FACTS_AGAIN),
        # what is not built is not there
        symptoms=frozenset({"extension-build-toolchain"}),
    ),
    FaultClass(
        name="cuda-arch-list",
        title="the list of GPU architectures to build for holds one that this torch does not know",
        what=(
            "TORCH_CUDA_ARCH_LIST says for which architectures an extension is compiled. It names one that the "
            "installed torch (or nvcc) does not know, or it is empty and no GPU is visible to ask instead."
        ),
        why=(
            "The variable was set by an image, a module system or a shell file for another machine; or the GPU is newer "
            "than the installed torch."
        ),
        proof=("a small extension is built with the same list, imported and run on every GPU", _FACTS_AGAIN),
        # what is not built is not there
        symptoms=frozenset({"extension-build-toolchain"}),
    ),
    FaultClass(
        name="extension-build-toolchain",
        title="something that is needed to compile an extension is missing or does not fit",
        what=(
            "Compiling an extension takes a CUDA toolkit, a host compiler that this toolkit accepts, headers, a linker "
            "that finds the libraries, and build tools such as ninja. One of them is not there, or not found."
        ),
        why=(
            "Machines on which programs only run have no toolkit; containers and conda compilers have directories of "
            "their own; a new Linux brings a compiler that an older nvcc refuses; build isolation hides what is "
            "installed."
        ),
        proof=("a small extension is built with the same toolchain, imported and run", _FACTS_AGAIN),
    ),
    FaultClass(
        name="native-crash",
        title="the process is killed by a signal, without a Python error",
        what=(
            "Compiled code wrote or read where it must not, and the operating system ended the process. There is no "
            "traceback, since Python did not get a chance to write one."
        ),
        why=(
            "Two compiled libraries in one process disturb each other, often only in one order of imports: each brings "
            "its own copy of a library, or they share symbols that were not meant to be shared. It can as well be a bug "
            "of one library, or bad memory."
        ),
        proof=("the sequence of imports that crashed is run ten times, each in a process of its own, without a signal",),
    ),
    FaultClass(
        name="cpu-only-torch",
        title="the installed torch was built without CUDA",
        what="The machine has a GPU, but this torch has no GPU code at all, so that every use of CUDA fails.",
        why=(
            "There are builds of torch with and without CUDA under one version number. An installer took the one for "
            "CPUs: from the index for CPUs, because no build with CUDA exists for this Python or platform, or because "
            "another package asked for it."
        ),
        proof=("torch is a CUDA build afterwards, and kernels run on every visible GPU", _FACTS_AGAIN),
        # an extension built for a CUDA torch finds no CUDA in this one
        symptoms=frozenset({"torchvision-ops", "missing-cuda-library", "extension-undefined-symbol"}),
    ),
    FaultClass(
        name="driver-too-old",
        title="the NVIDIA driver is too old for the CUDA version of torch",
        what=(
            "The driver belongs to the machine, the CUDA libraries come with torch. A driver runs programs of its own "
            "major version of CUDA and older ones, but not of a newer major version."
        ),
        why="torch was installed or updated in a CUDA variant that is newer than the driver of this machine.",
        proof=("the variant of torch is one that this driver runs", "kernels run on every visible GPU"),
        # CUDA does not start, so libraries report missing devices and kernels
        symptoms=frozenset({"no-kernel-image", "cudnn-mismatch", "nvrtc-arch"}),
    ),
    FaultClass(
        name="missing-cuda-library",
        title="a CUDA library that a package needs is not found",
        what=(
            "A compiled library needs another one, such as libcudart.so.12, by its exact name, and the loader finds it "
            "in none of the places where it looks."
        ),
        why=(
            "The number in the name is the major version of CUDA: a package that was built for CUDA 11 does not take "
            "the libraries of CUDA 12. Otherwise the package with the library is not installed, or was removed, or lies "
            "where nothing leads to it."
        ),
        proof=("every library that is needed is found, in the order of the real loader", _FACTS_AGAIN),
    ),
    FaultClass(
        name="nvidia-wheel-conflict",
        title="NVIDIA's libraries in the environment are not the ones that torch was built with",
        what=(
            "torch's wheels do not contain the CUDA libraries: they require packages such as nvidia-cublas-cu12 in one "
            "exact version. Another version is installed, or two of them lie in the same place."
        ),
        why=(
            "Another package asked for another version, a requirement was installed by hand, or LD_LIBRARY_PATH leads "
            "to a toolkit of the system that is found first. Libraries of different releases lack each other's "
            "functions, or crash later, when the GPU is first used."
        ),
        proof=("every NVIDIA package is the one that torch requires, and no symbol is missing", _FACTS_AGAIN),
        # wheels of different CUDA releases lack each other's symbols
        symptoms=frozenset({"missing-cuda-library", "extension-undefined-symbol", "cudnn-mismatch"}),
    ),
    FaultClass(
        name="cudnn-mismatch",
        title="cuDNN is not the one that torch was built with",
        what="cuDNN computes convolutions. The copy that is loaded is of another version than torch expects.",
        why=(
            "Several cuDNNs are installed (in the environment, with another framework, in the system), and a wrong one "
            "is found first; or the package with cuDNN was changed without torch."
        ),
        proof=("the cuDNN package is the one that torch requires", "convolutions agree with a reference on every GPU"),
    ),
    FaultClass(
        name="numpy-abi",
        title="a compiled package was built for another NumPy",
        what=(
            "Packages with compiled code read NumPy's arrays directly in memory. Where the layout that they were "
            "compiled for is not the one of the installed NumPy, the import fails or arrays cannot be exchanged."
        ),
        why=(
            "NumPy 2 changed that layout: what was compiled for NumPy 1 does not run with it. Installing something "
            "that takes the newest NumPy is enough. The other way round, a package for a newer NumPy meets an old one."
        ),
        proof=("the packages concerned are imported, each in a process of its own", _FACTS_AGAIN),
    ),
    FaultClass(
        name="libstdcxx",
        title="the C++ standard library that is found is too old for a package",
        what=(
            "Compiled C++ code needs a libstdc++ at least as new as the compiler that made it. The one that the process "
            "loads first lacks a version such as GLIBCXX_3.4.30."
        ),
        why=(
            "A process has only one libstdc++, and the first one found wins: that of an old system, of a conda "
            "environment, or one in LD_LIBRARY_PATH."
        ),
        proof=("every version that is needed is defined by the library that the loader takes", _FACTS_AGAIN),
    ),
    FaultClass(
        name="mkl-openmp",
        title="two OpenMP runtimes, or an MKL that does not fit, meet in one process",
        what=(
            "OpenMP shares work among processor cores; MKL computes linear algebra. Two OpenMP runtimes in one process "
            "do not know of each other's threads: programs stop, hang, or compute wrongly."
        ),
        why=(
            "Packages of pip and of conda bring their own copies; an MKL newer than torch has dropped functions that "
            "torch uses."
        ),
        proof=("the packages concerned are imported together in one process", _FACTS_AGAIN),
    ),
    FaultClass(
        name="duplicate-install",
        title="a package is there more than once, or is hidden by another copy",
        what=(
            "Python takes the first copy of a package that it finds. Two copies in different versions mix their files, "
            "or the one that is used is not the one that the installer knows."
        ),
        why=(
            "conda and pip installed the same package; an uninstall was interrupted and left directories that begin "
            "with ~; a user's own site-packages, PYTHONPATH or a .pth file come first."
        ),
        proof=("one copy is left, and it is the one that Python finds", _FACTS_AGAIN),
        # two copies mix their files, so one finds the other's libraries
        symptoms=frozenset({
            "torchvision-ops", "companion-version", "extension-undefined-symbol", "missing-cuda-library",
            "nvidia-wheel-conflict", "native-crash",
        }),
    ),
    FaultClass(
        name="companion-version",
        title="packages that must fit together do not",
        what=(
            "Packages such as triton, xformers, flash-attn, bitsandbytes or transformers are made for certain versions "
            "of torch and of each other. One of them expects something that the other does not have."
        ),
        why=(
            "One was updated alone. Some say in their metadata what they need, and installers respect it; some say it "
            "nowhere, and installers put any two of them together."
        ),
        proof=("the packages concerned are imported, each in a process of its own", _FACTS_AGAIN),
        # compiled companions of another torch lack its symbols
        symptoms=frozenset({"extension-undefined-symbol"}),
    ),
    FaultClass(
        name="gpu-host-fault",
        title="the machine itself, not the environment, keeps the GPU from working",
        what="The driver, the GPU, the container or the fabric between GPUs is not in order. No package can mend that.",
        why=(
            "The driver was updated without a restart, a kernel module is not loaded, a container was started without "
            "its GPUs, a service is not running, or a GPU has failed."
        ),
        proof=("nothing in the environment is changed; `nvidia-smi` works again once the host does",),
        of_host=True,
        # nothing on the GPU works without a working GPU
        symptoms=frozenset({"no-kernel-image", "cudnn-mismatch", "driver-too-old", "torchvision-ops"}),
    ),
    FaultClass(
        name="unsatisfiable",
        title="the installer finds no set of versions that satisfies everything",
        what=(
            "Each package states which versions of others it accepts. What was asked for contradicts itself, or what is "
            "asked for does not exist for this Python, this system, or on the index that was asked."
        ),
        why=(
            "A package has no build for a new (or old) Python; a version lies on another index only; two packages pin "
            "different versions of a third."
        ),
        proof=("the environment is as it was: nothing was installed",),
    ),
    FaultClass(
        name="half-installed",
        title="files of an installed package are missing or cut short",
        what="The package counts as installed, but some of its files are not on disk, or are not whole.",
        why=(
            "An installation or removal was interrupted, the disk was full, somebody deleted a directory, or another "
            "package's removal took shared files with it."
        ),
        proof=("every file that the package's own list names is there in its size", "the package is imported"),
        # files that are not there cannot be loaded
        symptoms=frozenset({
            "torchvision-ops", "missing-cuda-library", "extension-undefined-symbol", "cudnn-mismatch", "nvrtc-arch",
            "native-crash",
        }),
    ),
    FaultClass(
        name="clobbered",
        title="two packages wrote the same file, and one of them has lost",
        what="A file belongs to two installed packages at once; its content is that of the one installed last.",
        why=(
            "Two packages of the same import name (opencv-python and opencv-python-headless, two CUDA majors of one "
            "NVIDIA library) or conda and pip put theirs in the same place."
        ),
        proof=("every file has one owner and its content",),
        # a file that another package replaced is not the one that libraries were built with
        symptoms=frozenset({"missing-cuda-library", "nvidia-wheel-conflict", "cudnn-mismatch", "native-crash"}),
        shown_by_checks=False,
    ),
    FaultClass(
        name="shell-variable",
        title="a variable of the shell leads the program astray",
        what=(
            "Programs read variables of the shell that starts them: where to look for libraries, which GPUs and which "
            "network interface to use, how to divide memory. One of them has a value that does not fit this machine or "
            "this release of torch."
        ),
        why="A shell file, a module system, a container image or advice from elsewhere set it, for another machine.",
        proof=("the line that is given changes that shell alone, so that nothing is repaired and nothing proven",),
        shown_by_checks=False,
    ),
)  # fmt: skip
# Checked at import: `explain`, the ranking of findings and the docs all need a row for each name.
FAULT_CLASSES: Mapping[Fault, FaultClass] = complete(
    FAULTS,
    by_name(_ROWS),
    stated="`Fault` in envmedic/model/registries/faults.py",
    add='FaultClass(name="NAME", …), its page and symptoms, to `_ROWS` in envmedic/model/registries/faults.py',
)
"""Every class of fault, by its name."""
