"""Queries to the compatibility rules, from facts and a playbook's step. Pure."""

from __future__ import annotations

import msgspec

from envmedic.compat.torch_family.problems import torch_requirement
from envmedic.model.answers.family import FamilyQuery, Member
from envmedic.model.facts import Environment, Facts, Leftover
from envmedic.model.playbook import LoadedPlaybook, Policy, PurgeStep, TorchFamilyStep

FAMILY: tuple[Member, ...] = ("torch", "torchvision", "torchaudio", "triton")


def belongs(leftover: Leftover, name: str) -> bool:
    """Whether a leftover belongs to a distribution: by name, or as a tilde directory with the rest of its name."""
    if leftover.name == name:
        return True
    # pip renames a directory to `~orch`, then `~~rch` and so on, while it uninstalls; an interrupted pip leaves it so
    stem = leftover.path.rpartition("/")[2]
    rest = stem.lstrip("~-").partition("-")[0].partition(".")[0].lower().replace("_", "-")
    return leftover.kind == "tilde" and bool(rest) and name.endswith(rest) and len(name) - len(rest) <= stem.count("~")


def left_over(environment: Environment, name: str) -> tuple[Leftover, ...]:
    """Return the leftovers of a distribution."""
    return tuple(item for item in environment.leftovers if belongs(item, name))


def purged_names(loaded: LoadedPlaybook) -> tuple[str, ...]:
    """Return the distributions that the playbook's purge steps name, each once."""
    steps = (step for step in loaded.playbook.steps if isinstance(step, PurgeStep))
    return tuple(dict.fromkeys(name for step in steps for name in step.distributions))


def members(environment: Environment, step: TorchFamilyStep, loaded: LoadedPlaybook) -> tuple[Member, ...]:
    """Return the members of the set: torch, and those of the step's members that the environment has.

    An environment without companions gets those that the playbook purges, since the fault concerns them.
    """
    present = [name for name in step.members if environment.distribution(name) or left_over(environment, name)]
    if not {"torchvision", "torchaudio"} & set(present):
        present += [name for name in step.members if name in purged_names(loaded)]
    return tuple(name for name in FAMILY if name == "torch" or name in present)


def query_of(facts: Facts, environment: Environment, step: TorchFamilyStep, loaded: LoadedPlaybook) -> FamilyQuery:
    """Return the question for a ``torch_family`` step."""
    found = query(facts, environment, members(environment, step, loaded), step.policy)
    # without a driver the set that fits is a build for the CPU, which is what is at fault
    cpu_only = loaded.playbook.fault == "cpu-only-torch"
    return msgspec.structs.replace(found, gpu_required=cpu_only, ask_index=True)


def query(
    facts: Facts, environment: Environment, needed: tuple[Member, ...], policies: tuple[Policy, ...]
) -> FamilyQuery:
    """Return the question for a set with the members `needed`."""
    host, torch = facts.host, environment.torch
    gpus = host.visible_gpus()
    installed: dict[str, str] = {
        name: item.version for name in FAMILY if (item := environment.distribution(name)) is not None
    }
    return FamilyQuery(
        python=_python(environment),
        free_threaded=environment.interpreter.free_threaded,
        system=host.system,
        machine=host.machine,
        driver=host.driver_version,
        capabilities=tuple(gpu.compute_capability for gpu in gpus if gpu.compute_capability is not None),
        unknown_capabilities=sum(gpu.compute_capability is None for gpu in gpus),
        glibc=host.glibc,
        installed=installed,
        variant=torch.variant if torch else None,
        sass=torch.arch_list if torch else (),
        ptx=torch.ptx_list if torch else (),
        requires_torch=_requirements(environment),
        members=needed,
        policies=policies,
    )


def _python(environment: Environment) -> str:
    """Return the version of a CPython, with the name in front for another implementation, which no wheel fits."""
    version, implementation = environment.interpreter.version, environment.interpreter.implementation
    if implementation not in {None, "cpython"}:
        return f"{implementation} {version}"
    return version or "unknown"


def _requirements(environment: Environment) -> dict[str, str]:
    found: dict[str, str] = {}
    # triton is missing here because torch requires it, not the other way round
    for name in ("torchvision", "torchaudio"):
        item = environment.distribution(name)
        requirement = torch_requirement(item, environment.companion(name)) if item else None
        if requirement is not None:
            found[name] = requirement
    return found
