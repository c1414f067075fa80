"""Unmet requirements between installed distributions, by subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from envmedic.compat import couplings
from envmedic.compat.installed_requirements import Demand, demands, markers
from envmedic.compat.versions import allows, public
from envmedic.model.facts import Distribution, Environment, GeneratedModule, Host

HUGGING_FACE = frozenset({
    "transformers", "tokenizers", "huggingface-hub", "safetensors", "accelerate", "peft", "diffusers", "datasets",
    "sentence-transformers", "trl", "optimum", "evaluate",
})  # fmt: skip
_FAMILY = frozenset({"torch", "torchvision", "torchaudio"})
_TRITON = frozenset({"triton", "pytorch-triton", "triton-windows"})
_TRANSFORMERS_COMPARES = frozenset({
    "filelock", "huggingface-hub", "numpy", "packaging", "pyyaml", "regex", "requests", "safetensors", "tokenizers", "tqdm",
})  # fmt: skip
"""Distributions whose versions transformers checks on import (``dependency_versions_check.py`` of 4.30 to 4.57)."""
_TORCHS_OWN = frozenset({
    "filelock", "fsspec", "jinja2", "mpmath", "networkx", "optree", "setuptools", "sympy", "typing-extensions",
})  # fmt: skip


class RequirementFaults(msgspec.Struct, frozen=True, kw_only=True):
    """Requirements between installed distributions, and the unmet ones by subject; NumPy has its own."""

    every: tuple[Demand, ...]
    """All requirements, met or not, with those of `couplings.UNSTATED`, which no metadata has."""
    conflicts: tuple[Demand, ...]
    """Wrong versions outside the subjects of other faults."""
    missing: tuple[Demand, ...]
    """Missing distributions outside the subjects of other faults."""
    of_torch: tuple[Demand, ...]
    """Unmet requirements on torch's pure-Python helpers."""
    hugging_face: tuple[Demand, ...]
    """Requirements that make an import of transformers, or of a library around it, fail."""
    protobuf: tuple[Demand, ...]
    unstated: tuple[Demand, ...]
    """Requirements that no metadata has, met or not."""
    generated: tuple[Demand, ...]
    """The limits of generated modules on protobuf that no metadata state, met or not; empty where not looked at."""

    def asked(self, by: str, name: str) -> Demand | None:
        """Return the requirement of one distribution on another, None without one."""
        return next((item for item in self.every if item.by.name == by and item.name == name), None)

    def asked_of_triton(self, environment: Environment) -> Demand | None:
        """Return torch's requirement on triton; None of conda's torch, whose triton has other names."""
        torch = environment.distribution("torch")
        if torch is None or torch.owner == "conda":
            return None
        return next((item for item in self.every if item.by.name == "torch" and item.name in _TRITON), None)


def requirement_faults(environment: Environment, host: Host) -> RequirementFaults:
    """Return the requirements that are not met in the environment on `host`."""
    unstated = tuple(_unstated(environment))
    every = (*demands(environment, markers(environment, host)), *unstated)
    return RequirementFaults(
        every=every,
        conflicts=_conflicts(every),
        missing=_missing(every),
        of_torch=_of_torch(every),
        hugging_face=tuple(item for item in every if not item.met and _stops_hugging_face(item)),
        protobuf=_conflicting(every, "protobuf"),
        unstated=unstated,
        generated=_of_generated_code(environment),
    )


def foreign_torchcodec(environment: Environment, torch: Distribution) -> Distribution | None:
    """Return the installed torchcodec where it belongs to another torch, which its metadata does not say."""
    codec = environment.distribution("torchcodec")
    fits = couplings.torchcodec_fits(public(codec.version), torch.public) if codec is not None else None
    return codec if fits is False else None


def _unstated(environment: Environment) -> Iterator[Demand]:
    """Requirements that no metadata states, from `couplings`."""
    for row in couplings.UNSTATED:
        by, other = environment.distribution(row.by), environment.distribution(row.name)
        if by is not None and not by.outside_prefix and other is not None and allows(row.versions, by.version):
            yield Demand(by, row.name, row.accepted, other.version)


def _conflicts(every: Sequence[Demand]) -> tuple[Demand, ...]:
    """Wrong versions outside the subjects of other facts."""
    return tuple(item for item in every if not item.met and item.found is not None and not _has_own_facts(item.name))


def _missing(every: Sequence[Demand]) -> tuple[Demand, ...]:
    """Missing distributions outside the subjects of other facts; those of NumPy are about an installed one."""
    absent = (item for item in every if not item.met and item.found is None)
    return tuple(item for item in absent if item.name == "numpy" or not _has_own_facts(item.name))


def _has_own_facts(name: str) -> bool:
    # the family, triton, NumPy and NVIDIA's wheels have playbooks that choose versions together, not one by one
    return name in _FAMILY | _TRITON | {"numpy"} or name.startswith("nvidia-")


def _of_torch(every: Sequence[Demand]) -> tuple[Demand, ...]:
    return tuple(item for item in every if item.by.name == "torch" and not item.met and item.name in _TORCHS_OWN)


def _stops_hugging_face(item: Demand) -> bool:
    # transformers raises for each of its table; the other libraries fail only on the members of their own family
    if item.by.name == "transformers":
        return item.name in _TRANSFORMERS_COMPARES
    return item.by.name in HUGGING_FACE and item.name in HUGGING_FACE and item.found is not None


def _conflicting(every: Sequence[Demand], name: str) -> tuple[Demand, ...]:
    # a distribution that is not installed is `missing`, whatever its name
    return tuple(item for item in every if item.name == name and not item.met and item.found is not None)


def _of_generated_code(environment: Environment) -> tuple[Demand, ...]:
    """The limits that generated modules set, each once for a distribution."""
    runtime = environment.distribution("protobuf")
    if runtime is None:
        return ()
    pairs = dict.fromkeys((item.distribution, item.accepts) for item in environment.generated or ())
    # code that no distribution owns binds the runtime as well
    found = ((environment.distribution(name) if name is not None else runtime, text) for name, text in pairs)
    return tuple(Demand(by or runtime, "protobuf", text, runtime.version) for by, text in found)


def refusing_code(environment: Environment) -> tuple[str, ...]:
    """Return sentences on generated modules that do not work with the installed protobuf, one of each distribution."""
    runtime = environment.distribution("protobuf")
    modules: dict[str | None, GeneratedModule] = {}
    for item in environment.generated or ():
        if runtime is not None and not allows(item.accepts, runtime.version):
            modules.setdefault(item.distribution, item)
    return tuple(
        f"{item.path} was generated for protobuf{item.accepts}, {runtime.version} is there"
        for item in modules.values()
        if runtime is not None
    )
