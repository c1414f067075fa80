"""The checks of a plan: the playbook's, the regressions and the informative ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.analysis.consumer_faults import kinds
from envmedic.compat import consumer_kinds as registry
from envmedic.compat import versions
from envmedic.compat.installed_requirements import Demand, demands, markers
from envmedic.model.checks import Check, Confirmation, named_check
from envmedic.model.consumers import Consumer
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.plan import FileRepair
from envmedic.model.playbook import Condition, LoadedPlaybook, RemedyStep
from envmedic.model.registries.check_kinds import CONSUMER_CHECKS, GPU_CHECKS, PROFILES
from envmedic.planner import import_targets
from envmedic.planner.proposal import Proposal

FACTS = "facts"
SEQUENCE = "import-sequence"
PROGRAMS = "programs"
_OF_TORCH = ("nvidia", "triton")
"""Prefixes of the import names of libraries that torch loads."""
ON_EVERY_TORCH = ("matmul", "conv")
SMOKE = "extension-smoke"
COMPILE = "torch-compile"
_COMPILES_WITH = re.compile(
    r"torch|(pytorch-)?triton|setuptools|nvidia-.+|cuda-.+|(gcc|gxx|clang|clangxx|sysroot|binutils|ld)(_.+)?"
)
"""Distributions and conda packages that torch.compile compiles with."""
_LATENT = {"missing-requirement": "requirements.missing", "unmet-requirement": "requirements.conflicts"}
"""Playbooks that a user names for what nothing is known to fail by, and the facts that show it."""


@dataclass(frozen=True)
class ExpectedEnvironment:
    """The parts of an environment after a plan that checks are about."""

    cuda_build: bool
    names: tuple[str, ...]
    """Import names of every distribution that is installed before and after the plan."""
    touched: tuple[str, ...]
    """The names of distributions that the plan installs again, or that belong to the torch family."""
    family: tuple[str, ...]
    """Import names of the torch family."""
    repaired: tuple[str, ...] = ()
    """Import names of installed distributions, and of those whose unmet requirements the plan meets."""
    sequence: tuple[str, ...] = ()
    """The sequence of imports that crashed before the plan."""
    extensions: tuple[str, ...] = ()
    """Extension packages whose operators can be called."""
    programs: tuple[str, ...] = ()
    """Programs that the plan repairs, relative to the prefix."""
    compiles_anew: bool = False
    """Whether the plan changes what torch.compile compiles with."""
    consumers: Mapping[str, bool] = field(default_factory=dict)
    """Checks of what computes without torch, and whether it is a build for the GPU after the plan."""
    served: frozenset[str] = frozenset()
    """Those of them that are about what the plan installs: itself, or a library that it opens."""


def expected_environment(
    facts: Facts, proposal: Proposal, *, removed: Iterable[str], installed: Mapping[str, str | None]
) -> ExpectedEnvironment:
    """Return the environment that checks will find after a plan.

    `removed` are the distributions that do not come back; `installed` gives the new versions, None for a build.
    """
    environment = facts.environment
    if environment is None:
        raise AssertionError
    asked = demands(environment, markers(environment, facts.host))
    gone, new = set(removed), {*installed, *import_targets.FAMILY}
    repaired = {*installed, *_satisfied(asked, installed)}
    stays = [item for item in environment.distributions if item.name not in gone]
    family = proposal.family
    members = [name for name in import_targets.FAMILY if family and name in family.versions]
    programs = tuple(name for step in proposal.after if isinstance(step, FileRepair) for name in step.programs)
    return ExpectedEnvironment(
        cuda_build=cuda_build(environment, proposal),
        names=import_targets.in_order(import_targets.every(stays), stays, asked),
        touched=import_targets.every(item for item in stays if item.name in new),
        # without a set torch alone stands for the family: its companions may be broken for a reason of their own
        family=tuple(members or import_targets.family(environment)[:1]),
        repaired=import_targets.main(item for item in stays if item.name in repaired),
        sequence=facts.import_crash.sequence if facts.import_crash is not None else (),
        extensions=import_targets.extensions(stays),
        programs=programs,
        compiles_anew=bool(programs) or any(map(_COMPILES_WITH.fullmatch, gone | set(installed))),
        consumers=_consumers(environment, [*(item.name for item in stays), *installed]),
        served=_served(environment, {*removed, *installed}),
    )


def _consumers(environment: Environment, names: Collection[str]) -> dict[str, bool]:
    """Return the checks of the consumers that stay, and whether a build for the GPU is among what is there then."""
    return {
        kind.check: item.build is not None
        or any(True for build in kind.builds for _ in registry.matching(build.distribution, names))
        for kind, item in kinds(environment)
        if kind.check in CONSUMER_CHECKS
    }


def _served(environment: Environment, moved: Collection[str]) -> frozenset[str]:
    """Return the checks of the consumers that `moved` distributions are parts of, or bring a library for."""
    return frozenset(kind.check for kind, item in kinds(environment) if _is_served(kind, item, moved))


def _is_served(kind: registry.ConsumerKind, item: Consumer, moved: Collection[str]) -> bool:
    own = {text.partition(" ")[0] for text in item.distributions}
    parts = (*kind.parts, *(build.distribution for build in kind.builds))
    wanted = (registry.requirement(library.soname, item.cuda or "") for library in item.libraries)
    libraries = {canonicalize_name(Requirement(text).name) for text in wanted if text is not None}
    # a build for the CPU has none of the parts yet that the plan brings
    brought = any(True for part in parts for _ in registry.matching(part, moved))
    return brought or not (own | libraries).isdisjoint(moved)


def _satisfied(asked: Iterable[Demand], installed: Mapping[str, str | None]) -> set[str]:
    """Return the distributions with an unmet requirement that the `installed` ones meet."""
    news = ((item, installed.get(item.name)) for item in asked if not item.met)
    return {item.by.name for item, version in news if version is not None and versions.allows(item.specifier, version)}


def cuda_build(environment: Environment, proposal: Proposal) -> bool:
    """Whether torch is a CUDA build after the plan."""
    if proposal.family is not None and "torch" in proposal.changed:
        return versions.variant_cuda(proposal.family.variant) is not None
    # conda's torch under a removed wheel: the observed build is that of the wheel
    if proposal.cuda_build is not None:
        return proposal.cuda_build
    return environment.torch is not None and environment.torch.cuda is not None


def checks(loaded: LoadedPlaybook, finding: Finding | None, state: ExpectedEnvironment) -> tuple[Check, ...]:
    """Return the checks in the order in which they are shown: playbook, regressions, informative."""
    own = loaded.playbook.checks
    required = (
        _facts(loaded, finding)
        if name == FACTS and finding is not None
        else named_check(
            name,
            role="playbook",
            cuda_build=state.cuda_build,
            arguments=_names(name, state),
        )
        for name in own
        # without a crash on record there is no sequence to repeat, and not every moved environment has scripts
        if name not in {SEQUENCE, PROGRAMS} or _names(name, state)
    )
    informative = tuple(
        named_check(name, cuda_build=state.cuda_build, arguments=state.extensions if name == SMOKE else ())
        for name in _informative(state)
        if name not in own
    )
    torch = bool(state.family)
    # what a repair of their libraries is for must compute; in other repairs they only must not get worse
    serves = any(isinstance(step, RemedyStep) and step.name.startswith("consumer-") for step in loaded.playbook.steps)
    of_consumers = (
        named_check(name, role="playbook" if serves and name in state.served else "informative", cuda_build=gpu)
        for name, gpu in state.consumers.items()
        if name not in own
    )
    return (
        *required,
        *of_consumers,
        *_imports(state),
        named_check("pip-check", role="regression", cuda_build=state.cuda_build),
        Check(name=FACTS, role="regression"),
        *(informative if torch else ()),
    )


def _informative(state: ExpectedEnvironment) -> tuple[str, ...]:
    """Return further checks of torch, which run before and after; only a worse result blocks.

    A CUDA build gets all numerical checks of the standard profile.
    """
    if not state.cuda_build:
        return ON_EVERY_TORCH
    lacking = {name for name in ("torchvision", "torchaudio") if name not in state.family}
    return tuple(
        name
        for name in PROFILES["standard"]
        if name in GPU_CHECKS - CONSUMER_CHECKS and name.partition("-")[0] not in lacking
        if (name != SMOKE or state.extensions) and (name != COMPILE or state.compiles_anew)
    )


def _names(check: str, state: ExpectedEnvironment) -> tuple[str, ...]:
    """Return the import names that a check is about."""
    if check == SEQUENCE:
        return state.sequence
    if check == PROGRAMS:
        return state.programs
    if check != "import":
        return ()
    # importing torch takes seconds, so a repair that cannot concern it does without
    of_torch = not state.repaired or any(
        name in import_targets.FAMILY or name.startswith(_OF_TORCH) for name in state.repaired
    )
    return tuple(dict.fromkeys((*(state.family if of_torch else ()), *state.repaired))) or state.names


def _facts(loaded: LoadedPlaybook, finding: Finding) -> Check:
    """Return the check that facts no longer confirm the fault. Where they never did, it is only informative."""
    asked = Confirmation.of(loaded.playbook, finding.groups)
    shown = _LATENT.get(loaded.playbook.id) if finding.signature is None else None
    if asked is not None and shown is not None:  # conditions of a text, which is not there, would never be met
        asked = replace(asked, when=Condition(any=(asked.when, Condition(fact=shown, operator="exists"))))
    return Check(
        name=FACTS,
        role="playbook" if finding.confirmed is True else "informative",
        arguments=(loaded.playbook.id,),
        confirmation=asked,
    )


def _imports(state: ExpectedEnvironment) -> tuple[Check, ...]:
    """Return the import checks: one of touched names, repeated after the exchange, and one of all others."""
    # The exchange brings the clone to another path, and new files can contain the path where they were written.
    touched = Check(name="import", role="regression", arguments=state.touched, in_place=True)
    others = tuple(name for name in state.names if name not in set(state.touched))
    return tuple(
        item for item in (touched, Check(name="import", role="regression", arguments=others)) if item.arguments
    )
