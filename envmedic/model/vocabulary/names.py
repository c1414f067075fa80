"""Names for playbooks: facts with their types, and checks.

`diagnosis.vocabulary.derive` gives these facts their values; the loader refuses every other name. A fact without a
value was not observed, and comparisons with it are unknown; None was looked for and does not exist.
"""

from __future__ import annotations

import re
from typing import Literal

from envmedic.model.registries.check_kinds import CHECK_NAMES
from envmedic.model.vocabulary import (
    kinds_conda,
    kinds_consumers,
    kinds_extensions,
    kinds_files,
    kinds_gpu_code,
    kinds_native,
    kinds_nvidia,
    kinds_packages,
    kinds_runtimes,
    kinds_shell,
    kinds_text,
    kinds_toolchain,
)
from envmedic.model.vocabulary.fact_kind import FactKind, FactType

# A playbook is shared between users, so it cannot know the command of one of them.
PLAYBOOK_CHECKS = tuple(name for name in CHECK_NAMES if name != "command")
"""Checks that a playbook may name: all but the user's own command."""

_GENERAL: tuple[tuple[str, FactType, str], ...] = (
    ("host.system", "string", "operating system of the host, as Python names it"),
    ("host.machine", "string", "machine of the host, such as x86_64"),
    ("host.glibc", "version", "version of the C library"),
    ("host.container", "string", "container technology, None outside of one"),
    ("host.wsl", "bool", "whether the host is WSL"),
    ("driver.version", "version", "version of the NVIDIA driver, None without one"),
    ("driver.cuda", "version", "newest CUDA version that the driver covers"),
    ("gpu.count", "int", "number of visible GPUs"),
    ("gpu.names", "strings", "names of the visible GPUs"),
    ("gpu.capabilities", "strings", "distinct compute capabilities of the visible GPUs"),
    ("gpu.lowest-capability", "version", "lowest compute capability of a visible GPU"),
    ("gpu.highest-capability", "version", "highest compute capability of a visible GPU"),
    ("toolkit.count", "int", "number of CUDA toolkits found"),
    ("toolkit.versions", "strings", "versions of the CUDA toolkits found"),
    ("env.kind", "string", "kind of the environment, one of venv, virtualenv, uv, conda, system and unknown"),
    ("env.interpreter", "string", "path of the interpreter"),
    ("env.python", "version", "version of the interpreter"),
    ("env.python-starts", "bool", "whether the interpreter starts"),
    ("env.packages", "strings", "normalised names of the installed distributions"),
    ("env.duplicates", "strings", "distributions that more than one metadata directory claims"),
    ("env.leftovers", "strings", "paths that interrupted uninstalls left behind"),
    ("env.system-site", "bool", "whether the system's site-packages are visible"),
    ("env.user-site", "bool", "whether a user site directory is visible"),
    ("env.pythonpath-set", "bool", "whether PYTHONPATH adds directories"),
    ("env.ld-library-path-set", "bool", "whether LD_LIBRARY_PATH adds directories"),
    ("env.ld-preload-set", "bool", "whether LD_PRELOAD names libraries"),
    ("torch.version", "version", "version of the installed torch, with its local label, None when not installed"),
    ("torch.major", "int", "first component of torch's version"),
    ("torch.minor", "int", "second component of torch's version"),
    ("torch.variant", "string", "CUDA variant of torch, such as cu124, cpu or rocm6.2"),
    ("torch.cuda", "version", "CUDA version that torch was compiled with, None for a CPU build"),
    ("torch.cuda-major", "int", "major version of the CUDA that torch was compiled with"),
    ("torch.cuda-build", "bool", "whether torch is a CUDA build"),
    ("torch.arch-list", "strings", "compute capabilities that torch has machine code for"),
    ("torch.owner", "string", "who installed torch, one of pip, uv, conda and other"),
    ("torch.copies", "int", "number of installed metadata directories of torch"),
    ("family.coherent", "bool", "whether torch and its companions belong together"),
    ("family.problems", "strings", "what does not belong together, one sentence each"),
)

_COMPANION: tuple[tuple[str, FactType, str], ...] = (
    ("version", "version", "installed version, with its local label, None when not installed"),
    ("variant", "string", "CUDA variant, such as cu124, cpu or rocm6.2"),
    ("cuda", "version", "CUDA version that it was compiled with"),
    ("cuda-major", "int", "major version of the CUDA that it was compiled with"),
    (
        "same-cuda-major",
        "bool",
        "whether it and torch were compiled with the same major version of CUDA, None unless both state one",
    ),
    ("has-gpu-code", "bool", "whether its operator library holds GPU code"),
    ("operator-libraries", "int", "number of its operator libraries (_C*.so)"),
    ("unreadable-libraries", "strings", "its operator libraries that could not be read"),
    ("missing-libraries", "strings", "sonames that its operator libraries need and do not find"),
    ("unresolved-symbols", "int", "number of symbols that its libraries need and nothing defines"),
    ("first-unresolved", "string", "first symbol that its libraries need and nothing defines"),
    ("requires-torch", "string", "its own requirement on torch, such as torch==2.5.1"),
    (
        "accepts-torch",
        "bool",
        "whether its own requirement on torch accepts the installed one, None where it states none",
    ),
    ("coherent", "bool", "whether the compatibility data accepts it beside the installed torch"),
    ("owner", "string", "who installed it, one of pip, uv, conda and other"),
    ("copies", "int", "number of installed metadata directories"),
    ("leftovers", "int", "number of leftover files or directories of an older copy"),
)


# a fact that only counts or says no, and the fact that shows people why
_DETAILS = {
    "same-cuda-major": "cuda",
    "accepts-torch": "requires-torch",
    "unresolved-symbols": "first-unresolved",
}


_AREAS: tuple[tuple[FactKind, ...], ...] = (
    kinds_files.KINDS,
    kinds_extensions.KINDS,
    kinds_gpu_code.KINDS,
    kinds_runtimes.KINDS,
    kinds_native.KINDS,
    kinds_nvidia.KINDS,
    kinds_consumers.KINDS,
    kinds_packages.KINDS,
    kinds_toolchain.KINDS,
    kinds_conda.KINDS,
    kinds_shell.KINDS,
    kinds_text.KINDS,
)
"""Facts that modules of their own describe, each derived by the module of `diagnosis.areas` of that name."""


def _kinds() -> tuple[FactKind, ...]:
    details = {"family.coherent": "family.problems"}
    rows = list(_GENERAL)
    # torchaudio has the same facts as torchvision, under its own name.
    for member in ("torchvision", "torchaudio"):
        rows += [(f"{member}.{name}", kind, f"{member}: {doc}") for name, kind, doc in _COMPANION]
        details |= {f"{member}.{name}": f"{member}.{detail}" for name, detail in _DETAILS.items()}
        details[f"{member}.coherent"] = "family.problems"
    kinds = tuple(FactKind(name=name, type=kind, doc=doc, detail=details.get(name)) for name, kind, doc in rows)
    return sum(_AREAS, kinds)


FACTS: dict[str, FactKind] = {kind.name: kind for kind in _kinds()}
"""Every fact that has a name of its own, by it; `fact_kind` knows those of any distribution too."""

# The list tells "not installed" from "not observed", which a missing `package.<name>.version` alone cannot.
LISTED_PACKAGES = "env.packages"
"""The fact that was observed when the installed distributions were: what it lacks is not there."""

PACKAGE_FACTS: tuple[FactKind, ...] = (
    FactKind(
        name="package.<name>.version",
        type="version",
        doc="installed version of that distribution, None when it is not installed",
    ),
    FactKind(
        name="package.<name>.owner",
        type="string",
        doc="who installed that distribution, one of pip, uv, conda and other",
    ),
)
"""Facts that every distribution has, under its normalised name (lower case, hyphens)."""

# a pattern instead of a table: any distribution may be named, installed or not
_PACKAGE_FACT = re.compile(r"package\.[a-z0-9]+(?:-[a-z0-9]+)*\.(?P<attribute>[a-z]+)")
_PACKAGE_KINDS = {kind.name.rpartition(".")[2]: kind for kind in PACKAGE_FACTS}


def fact_kind(name: str) -> FactKind | None:
    """What the fact of that name is; None where there is none."""
    if name in FACTS:
        return FACTS[name]
    found = _PACKAGE_FACT.fullmatch(name)
    return _PACKAGE_KINDS.get(found["attribute"]) if found else None


def package_fact(name: str) -> bool:
    """Whether that is a fact of a distribution that may not be installed."""
    return name.startswith("package.") and fact_kind(name) is not None


def described(name: str) -> str:
    """Return a fact in words for people, who do not know its name; a group of a match by its name."""
    kind = fact_kind(name)
    if kind is None:
        return f"{name} in the text"
    # examples and other cases are for authors of playbooks
    clause = _REMARK.split(kind.doc, maxsplit=1)[0]
    return clause.replace("that distribution", name.split(".")[1]) if package_fact(name) else clause


_REMARK = re.compile(
    r", (?:else )?None\b|; |, such as |, with its local label|, one of |, and else not observed|, one sentence |, in sentences"
)
"""Begin of a remark in the description of a fact."""
_OF_HOST = ("host.", "driver.", "gpu.", "toolkit.", "toolchain.", "variables.", "shell.", "libc.")
"""Beginnings of the names of facts on the machine and on the shell that asks."""
_OF_FILES = frozenset({"toolchain.missing-tools", "toolchain.setuptools-suits"})
"""Facts with such a name that rest on the environment's files alone."""
_OF_METADATA = frozenset({
    "companions.unmet", "consumers.parts", "consumers.wrong", "huggingface.unmet", "numpy.unmet", "protobuf.unmet", "requirements.conflicts",
    "requirements.missing", "requirements.missing-modules", "requirements.of-torch", "text.conflicts",
    "triton.accepted", "xformers.accepts-torch",
})  # fmt: skip
"""Facts on requirements that distributions state of each other."""


def fact_source(name: str) -> Literal["host", "metadata", "files"]:
    """Return what a fact rests on, which decides whether it can refute a text.

    A text may be of another host than this one, and metadata leave many conflicts unstated.
    """
    if name.startswith(_OF_HOST) and name not in _OF_FILES:
        return "host"
    return "metadata" if name in _OF_METADATA else "files"
