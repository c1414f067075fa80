"""Incoherences of an installed torch family."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from envmedic.compat import tables, versions
from envmedic.compat.torch_family import rules
from envmedic.compat.torch_family.rules import Build
from envmedic.compat.torch_family.ruling import Ruling, broken, passed
from envmedic.compat.torch_family.target import FamilyTarget, target_of
from envmedic.model.answers.family import FamilyProblem, FamilyQuery, Member
from envmedic.model.facts import CompanionBuild, Distribution, Environment, Host, TorchBuild

COMPANIONS: tuple[Member, ...] = ("torchvision", "torchaudio")


def problems(environment: Environment, host: Host) -> tuple[FamilyProblem, ...]:
    """Return every incoherence of the installed torch family with itself and with the host.

    A value that was not observed never counts as a problem. Empty for a coherent family.
    """
    torch = environment.distribution("torch")
    # torch may lack metadata; its build is observed from its files
    version = torch.version if torch else (environment.torch.version if environment.torch else None)
    if version is None:
        return tuple(_orphans(environment))
    found: list[FamilyProblem] = []
    for member in COMPANIONS:
        installed = environment.distribution(member)
        if installed is not None:
            found += _companion(installed, member, version, environment)
    found += _triton(environment, torch, host)
    found += _host(version, environment.torch, environment, host)
    return tuple(found)


def _orphans(environment: Environment) -> Iterator[FamilyProblem]:
    for member in COMPANIONS:
        if environment.distribution(member) is not None:
            yield _problem(member, broken("torch-missing", f"{member} is installed without torch", "facts"))


def _problem(member: Member, ruling: Ruling) -> FamilyProblem:
    return FamilyProblem(rule=ruling.rule, member=member, summary=ruling.reason, source=ruling.source)


def torch_requirement(distribution: Distribution, build: CompanionBuild | None) -> str | None:
    """Return a companion's own requirement on torch, such as ``torch==2.5.1``, or None."""
    if build is not None and build.requires_torch:
        return build.requires_torch
    for text in distribution.requires:
        requirement = _requirement(text, "torch")
        # a requirement with a marker may be meant for another platform
        if requirement is not None and requirement.marker is None:
            return f"torch{requirement.specifier}" if requirement.specifier else None
    return None


def _requirement(text: str, name: str) -> Requirement | None:
    """Return `text` as a requirement on `name`, None for another one, which mostly need not be parsed for that."""
    if not text.startswith(name):
        return None
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    return requirement if requirement.name == name else None


def _companion(
    installed: Distribution, member: Member, torch: str, environment: Environment
) -> Iterator[FamilyProblem]:
    build = environment.companion(member)
    pair = _pair(installed, member, torch, torch_requirement(installed, build))
    if pair is not None:
        yield _problem(member, pair)
    variant = _variant(installed, build, environment.torch, torch)
    if variant is not None:
        yield _problem(member, variant)


def _pair(installed: Distribution, member: Member, torch: str, requirement: str | None) -> Ruling | None:
    """Apply the version rule: by the companion's own requirement, else by the table."""
    rule, label = f"{member}-pair", f"{member} {installed.version}"
    spec = requirement.removeprefix("torch").strip() if requirement else ""
    if spec and versions.version(torch) and not versions.allows(spec, torch):
        return broken(rule, f"{label} requires {requirement}, torch {torch} is installed", f"metadata of {member}")
    row = tables.companions(member).get(installed.public)
    release = versions.public(torch)
    # an explicit requirement that is met outweighs the table, which cannot know rebuilt companions
    if row is None or spec or release not in tables.releases() or release in row.torch:
        return None
    goes = f"torch{row.spec}" if row.spec else f"torch {', '.join(row.torch)}"
    return broken(rule, f"{label} goes with {goes}, torch {torch} is installed", row.source)


def _build_kind(cuda: str | None, variant: str | None, label: str | None) -> str | None:
    """Return the CUDA version as far as it is known, ``cpu``, or None when neither is known."""
    if cuda:
        return cuda
    for text in (variant, label):
        if text == "cpu":
            return "cpu"
        if text and versions.variant_cuda(text):
            return versions.variant_cuda(text)
    return None


def _agree(companion: Distribution, own: str, theirs: str) -> bool:
    """Whether a companion loads beside a torch: both compare the major version, torchaudio up to 2.11.0 the minor one too.

    ``_check_cuda_version`` of each raises RuntimeError otherwise.
    """
    if "cpu" in (own, theirs):
        return own == theirs
    one, other = versions.dotted(own), versions.dotted(theirs)
    by_minor = companion.name == "torchaudio" and versions.allows("<2.11.1", companion.version)
    compared = 2 if by_minor and min(len(one), len(other)) > 1 else 1
    return one[:compared] == other[:compared]


def _variant(
    installed: Distribution, build: CompanionBuild | None, torch: TorchBuild | None, version: str
) -> Ruling | None:
    """Apply the variant rule: no CPU build beside a CUDA build, no different CUDA major versions."""
    own = _build_kind(build.cuda if build else None, build.variant if build else None, installed.local)
    # Every CUDA build of torchvision has GPU code in its operator library; not every torchaudio has.
    if own is None and installed.name == "torchvision" and build is not None and build.has_gpu_code is False:
        own = "cpu"
    theirs = _build_kind(torch.cuda if torch else None, torch.variant if torch else None, versions.local(version))
    if own is None or theirs is None or _agree(installed, own, theirs) or (torch is not None and torch.hip):
        return None
    names = [kind if kind == "cpu" else f"CUDA {kind}" for kind in (own, theirs)]
    reason = f"{installed.name} {installed.version} is a {names[0]} build, torch {version} a {names[1]} build"
    return broken("companion-variant", reason, "facts of the environment")


def _triton(environment: Environment, torch: Distribution | None, host: Host) -> Iterator[FamilyProblem]:
    """Yield the problem of an installed triton that torch's own metadata do not accept."""
    installed = environment.distribution("triton")
    if installed is None or torch is None:
        return
    target = _target(environment, host, torch.version)
    for text in torch.requires:
        requirement = _requirement(text, "triton")
        if requirement is None or not requirement.specifier:
            continue
        holds = target.marker(str(requirement.marker) if requirement.marker else None)
        if holds and not versions.allows(str(requirement.specifier), installed.version):
            reason = f"torch {torch.version} requires triton{requirement.specifier}, {installed.version} is installed"
            yield _problem("triton", broken("triton-requirement", reason, "metadata of torch"))


def _target(environment: Environment, host: Host, torch: str) -> FamilyTarget:
    gpus = host.visible_gpus()
    build = environment.torch
    return target_of(
        FamilyQuery(
            python=environment.interpreter.version or "0",
            system=host.system,
            machine=host.machine,
            driver=host.driver_version,
            capabilities=tuple(gpu.compute_capability for gpu in gpus if gpu.compute_capability),
            unknown_capabilities=sum(gpu.compute_capability is None for gpu in gpus),
            installed={"torch": torch},
            variant=build.variant if build else None,
            sass=build.arch_list if build else (),
            ptx=build.ptx_list if build else (),
        )
    )


def _host(version: str, torch: TorchBuild | None, environment: Environment, host: Host) -> Iterator[FamilyProblem]:
    """Yield problems of the installed torch with the driver and the GPUs, by its observed build."""
    cuda = torch.cuda if torch else None
    if torch is None or cuda is None:
        return
    target = _target(environment, host, version)
    variant = torch.variant or "cu" + "".join(cuda.split(".")[:2])
    # `kept` lets the rules judge the observed code instead of the tables' entry
    build = Build(torch=versions.public(version), variant=variant, kept=True)
    for check in (_driver, rules.check_coverage, rules.check_nvrtc):
        ruling = check(build, target)
        if not ruling.ok:
            yield _problem("torch", ruling)


def _driver(build: Build, target: FamilyTarget) -> Ruling:
    """Apply the driver rule where both the driver and the toolkit are known."""
    # as a candidate an unknown driver excludes a build; as a diagnosis it proves nothing
    known = build.cuda is not None and rules.minimum_driver(build.cuda)[0] is not None
    if not target.driver or not known:
        return passed("driver-minimum", "not checked")
    return rules.check_driver(build, target)
