"""A plan from a proposal and the wheels that it was resolved to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec

from envmedic import __version__
from envmedic.errors import NoSolution, NotAnEnvironment
from envmedic.model.conda import CondaChange
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.plan import Artifact, Change, Install, Plan, PlanAlternative, Purge, Rebuild, Step
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import CondaInstaller, Installer, Resolution
from envmedic.planner import checks
from envmedic.planner.changes import removal
from envmedic.planner.changes.ownership import Owners, only_wheels
from envmedic.planner.changes.requirement_checks import key, markers, newly_unmet, unmet, unmet_already
from envmedic.planner.conda_split import conda_changes
from envmedic.planner.family.family_query import FAMILY
from envmedic.planner.family.torch_bound import bound
from envmedic.planner.identity import named
from envmedic.planner.proposal import IN_THE_WAY, Proposal, Proposals

UNPACKED_FACTOR = 4
"""Upper ratio of unpacked to packed size of a wheel: machine code packs about 1.5 to 2.5 times, text up to 4."""


@dataclass(frozen=True)
class _Draft:
    """A proposal joined with its wheels."""

    environment: Environment
    proposal: Proposal
    artifacts: tuple[Artifact, ...]
    purge: Purge
    conda: CondaChange | None = None

    @cached_property
    def by_conda(self) -> dict[str, str | None]:
        """Version of each distribution that conda changes, None where it goes."""
        return conda_changes.after(self.conda, self.environment)

    @property
    def before(self) -> dict[str, tuple[str, ...]]:
        """Versions of what is removed, by name, in the order of the environment."""
        gone = {*self.purge.names, *self.by_conda, *(() if self.environment.conda else self.proposal.changed)}
        found: dict[str, tuple[str, ...]] = {}
        for item in self.environment.distributions:
            if item.name in gone and not item.outside_prefix:
                found[item.name] = (*found.get(item.name, ()), item.version)
        return found

    @property
    def removed(self) -> tuple[str, ...]:
        """Names that are gone for good."""
        new = {item.name for item in self.artifacts} | {name for name, version in self.by_conda.items() if version}
        return tuple(name for name in self.before if name not in new)


def _names(environment: Environment) -> set[str]:
    return {item.name for item in environment.distributions}


def build(  # noqa: PLR0917  # the stages of a repair, in their order
    facts: Facts,
    finding: Finding | None,
    loaded: LoadedPlaybook,
    proposal: Proposal,
    resolution: Resolution | None,
    installer: Installer,
    *,
    now: str,
    conda: CondaInstaller | None = None,
    considered: Proposals | None = None,
    failed: Mapping[str, str] | None = None,
    fetched: Collection[str] = (),
    extendable: bool = False,
) -> Plan:
    """Return the plan that carries `proposal` out with the wheels and the conda packages of `resolution`.

    `conda` spells the commands on conda packages. `now` is RFC 3339 in UTC; `considered` gives the alternatives and `failed` the reason of each that
    could not be resolved, by title; `fetched` are the local paths of wheels,
    and the URLs of conda packages, that need no download.
    Raises `NoSolution` when metadata shows that the result would be incoherent.
    """
    environment = facts.environment
    if environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    values = markers(environment, facts.host)
    draft = _draft(environment, proposal, resolution or Resolution(artifacts=()), values)
    _refuse_unmet(draft, values)
    steps = _steps(draft)
    left = checks.left(facts, proposal, removed=draft.removed, installed=_new(draft))
    return named(
        Plan(
            envmedic=__version__,
            created=now,
            prefix=environment.prefix,
            real_prefix=environment.real_prefix,
            environment_digest=environment.digest,
            playbook=loaded.playbook.id if finding is not None else None,
            playbook_sha256=loaded.sha256 if finding is not None else None,
            fault=finding.fault if finding is not None else None,
            finding=finding,
            host=facts.host,
            steps=steps,
            commands=_commands(steps, installer, conda, environment),
            checks=checks.checks(loaded, finding, left),
            changes=_changes(draft),
            stays=_stays(draft),
            stays_count=_stays_count(draft),
            disk_bytes=UNPACKED_FACTOR * _packed_bytes(draft),
            download_bytes=_download_bytes(draft, fetched),
            alternatives=_alternatives(loaded, proposal, considered, failed or {}),
            notes=(*proposal.notes, *(resolution.notes if resolution else ()), *_size_notes(draft)),
            extendable=extendable,
            gpu_checks=left.cuda_build,
        )
    )


def _draft(environment: Environment, proposal: Proposal, resolution: Resolution, values: Mapping[str, str]) -> _Draft:
    """Join a proposal and its wheels; what they replace or make useless besides is removed too."""
    wheels = resolution.artifacts
    gone = {*proposal.purge.names, *(() if environment.conda else proposal.changed)}
    replaced = [item.name for item in wheels if environment.distribution(item.name)]
    useless = removal.unneeded(only_wheels(environment), wheels, values) if "torch" in proposal.changed else ()
    extra = dict.fromkeys(name for name in (*replaced, *useless) if name not in gone)
    more = removal.purge(environment, extra, ())
    purge = Purge(
        distributions=proposal.purge.distributions + more.distributions,
        leftovers=tuple(dict.fromkeys(proposal.purge.leftovers + more.leftovers)),
        by_path=proposal.purge.by_path + more.by_path,
    )
    return _Draft(environment=environment, proposal=proposal, artifacts=wheels, purge=purge, conda=resolution.conda)


def _refuse_unmet(draft: _Draft, values: Mapping[str, str]) -> None:
    """Refuse before the clone what metadata already shows to be incoherent."""
    after: dict[str, str | None] = dict.fromkeys(draft.before) | draft.by_conda
    after |= {item.name: item.version for item in draft.artifacts}
    known = unmet_already(draft.environment, draft.artifacts, values=values)
    others = {name: version for name, version in draft.by_conda.items() if version is not None}
    found = unmet(draft.environment, draft.before, draft.artifacts, values=values, others=others)
    missing = tuple(item for item in found if key(item) not in known)  # a reinstall is not asked to mend these
    broken = newly_unmet(draft.environment, after, values=values)
    if missing or broken:
        sentences = tuple(item.sentence() for item in (*missing, *broken))
        raise NoSolution(
            f"{draft.proposal.title} would leave requirements unmet",
            cause=sentences[0],
            hint="Give an index or a directory with what is missing (--find-links), or choose another way from the plan",
            details=sentences,
        )


def _steps(draft: _Draft) -> tuple[Step, ...]:
    steps: list[Step] = []
    if draft.purge.distributions or draft.purge.leftovers:
        steps.append(draft.purge)
    if draft.conda is not None and (draft.conda.remove or draft.conda.install):
        steps.append(draft.conda)
    if draft.artifacts:
        steps.append(Install(artifacts=draft.artifacts))
    return (*steps, *draft.proposal.after)


def _commands(
    steps: Iterable[Step], installer: Installer, conda: CondaInstaller | None, environment: Environment
) -> tuple[tuple[str, ...], ...]:
    python = environment.interpreter.path
    found: list[tuple[str, ...]] = []
    for step in steps:
        if isinstance(step, Purge | Install):
            found += installer.commands(step, python)
        elif isinstance(step, CondaChange) and conda is not None:
            argv = conda.command(step, environment.prefix)
            found += (argv,) if argv else ()
        elif isinstance(step, Rebuild):
            found.append(installer.build_command(step, python))
    return tuple(found)


def _rebuilt(draft: _Draft) -> tuple[Rebuild, ...]:
    return tuple(step for step in draft.proposal.after if isinstance(step, Rebuild))


def _new(draft: _Draft) -> dict[str, str | None]:
    """Return what is put in, with its version: from wheels, or (None) from source."""
    rebuilt = {step.distribution.name: None for step in _rebuilt(draft)}
    condas = {name: version for name, version in draft.by_conda.items() if version is not None}
    return {**condas, **{item.name: item.version for item in draft.artifacts}, **rebuilt}


def _changes(draft: _Draft) -> tuple[Change, ...]:
    """REMOVE, CHANGE and INSTALL, in this order, by name; those of conda packages first."""
    new = {item.name: item for item in draft.artifacts}
    packages, gone = conda_changes.packages_of(draft.conda), set(draft.purge.names)
    before = {
        name: found for name in draft.before if (found := _installed(name, draft)) and (name in new or name in gone)
    }
    sizes: dict[str, int] = {}
    owners: dict[str, str] = {}
    condas = Owners(draft.environment)
    for item in draft.environment.distributions:
        sizes[item.name] = sizes.get(item.name, 0) + item.size_bytes
        if item.name not in gone or not condas.is_condas(item):
            owners.setdefault(item.name, item.owner)
    rows = conda_changes.rows(draft.conda, draft.environment, new)
    rows += [
        Change(kind="remove", name=name, before=", ".join(before[name]), owner=owners[name], size_bytes=sizes[name])
        for name in sorted(set(before) - set(new))
    ]
    for name in sorted(new, key=lambda name: (name not in before, name)):
        old, wheel = before.get(name), new[name]
        rows.append(
            Change(
                kind="change" if old else "install",
                name=name,
                before=", ".join(old) if old else None,
                after=wheel.version,
                owner=owners.get(name, ""),
                size_bytes=wheel.size_bytes,
                package="" if condas.wheels(name) else packages.get(name, ""),
            )
        )
    rows += (
        Change(kind="change", name=copy.name, before=copy.version, after=copy.version, owner=copy.owner)
        for copy in (step.distribution for step in _rebuilt(draft))
    )
    return tuple(rows)


def _installed(name: str, draft: _Draft) -> tuple[str, ...]:
    """Versions that are installed of a distribution; only the wheel's where a wheel lies over conda's and goes."""
    if name in draft.purge.names:
        wheels = Owners(draft.environment).wheels(name)
        return tuple(item.version for item in wheels) or draft.before[name]
    return draft.before[name]


def _stays(draft: _Draft) -> tuple[str, ...]:
    """Return what is kept of the torch family and of what is bound to it."""
    touched = {*draft.before, *_new(draft)}
    tied = {item.name for item, _ in bound(draft.environment)} | set(FAMILY)
    kept = (item for item in draft.environment.distributions if item.name in tied and item.name not in touched)
    return tuple(dict.fromkeys(f"{item.name} {item.version}" for item in kept))


def _stays_count(draft: _Draft) -> int:
    touched = {*draft.before, *_new(draft)}
    return len(_names(draft.environment) - touched)


def _packed(artifact: Artifact, draft: _Draft) -> int:
    """Return the size of a wheel in bytes; where the index gives none, that of the copy that it replaces."""
    if artifact.size_bytes is not None:
        return artifact.size_bytes
    installed = draft.environment.distribution(artifact.name)
    return installed.size_bytes if installed else 0


def _packed_bytes(draft: _Draft) -> int:
    """Sizes of everything that is put in, packed."""
    condas = draft.conda.install if draft.conda is not None else ()
    return sum(_packed(item, draft) for item in draft.artifacts) + sum(item.size_bytes or 0 for item in condas)


def _download_bytes(draft: _Draft, fetched: Collection[str]) -> int:
    """Sizes of what is to be fetched."""
    condas = draft.conda.install if draft.conda is not None else ()
    wheels = sum(item.size_bytes or 0 for item in draft.artifacts if item.local_path not in fetched)
    return wheels + sum(item.size_bytes or 0 for item in condas if item.url not in fetched)


def _size_notes(draft: _Draft) -> tuple[str, ...]:
    condas = draft.conda.install if draft.conda is not None else ()
    unknown = [item.name for item in draft.artifacts if item.size_bytes is None]
    unknown += [item.name for item in condas if item.size_bytes is None]
    return (
        (f"the index gives no size for {', '.join(unknown)}: download and disk are at least as shown",)
        if unknown
        else ()
    )


def _alternatives(
    loaded: LoadedPlaybook, chosen: Proposal, considered: Proposals | None, failed: Mapping[str, str]
) -> tuple[PlanAlternative, ...]:
    """Return every other way, with why it was not chosen."""
    found = [
        PlanAlternative(
            title=item.title, why_not=failed.get(item.title) or _why_not(item), feasible=item.title not in failed
        )
        for item in (considered.proposals if considered else ())
        if msgspec.to_builtins(item) != msgspec.to_builtins(chosen) and item.title != chosen.title + IN_THE_WAY
    ]
    ways = (_way(text) for text in loaded.playbook.alternatives)
    return (*found, *(considered.rejected if considered else ()), *ways)


def _way(text: str) -> PlanAlternative:
    """Return a playbook's own alternative: its first sentence names the way, the rest says why not."""
    title, _, why_not = text.partition(". ")
    return PlanAlternative(
        title=title.rstrip("."), why_not=why_not or "envmedic does not take it by itself", feasible=False
    )


def _why_not(other: Proposal) -> str:
    return other.cost or "the chosen one is preferred"
