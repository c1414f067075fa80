"""Plans built from resolved proposals. Pure: nothing is resolved, downloaded or changed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from envmedic import __version__
from envmedic.errors import NoSolution, NotAnEnvironment
from envmedic.model.conda import CondaChange
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.pins import LiftedPin, UserPin
from envmedic.model.plan import Artifact, Change, Install, Plan, PlanAlternative, Purge, Rebuild, Step
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import CondaInstaller, Installer, Resolution
from envmedic.planner import checks, user_pins
from envmedic.planner.changes import removal
from envmedic.planner.changes.ownership import Owners, only_wheels
from envmedic.planner.changes.requirement_checks import key, markers, newly_unmet, unmet, unmet_already
from envmedic.planner.conda_split import conda_changes
from envmedic.planner.family.family_query import FAMILY
from envmedic.planner.family.torch_bound import bound
from envmedic.planner.identity import named
from envmedic.planner.project_sync import next_sync
from envmedic.planner.proposal import IN_THE_WAY, Proposal, Proposals

UNPACKED_FACTOR = 4
"""Upper ratio of unpacked to packed size of a wheel: machine code packs about 1.5 to 2.5 times, text up to 4."""


@dataclass(frozen=True)
class ResolvedProposal:
    """A proposal with the packages that it was resolved to, beside the proposals that were not chosen."""

    proposal: Proposal
    resolution: Resolution | None = None
    """None where nothing is installed."""
    fetched: Collection[str] = ()
    """Local paths of wheels, and URLs of conda packages, that need no download."""
    considered: Proposals | None = None
    """Every proposal and rejection, for the plan's alternatives."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why other proposals could not be resolved, by title."""
    pins: tuple[UserPin, ...] = ()
    """The user's limits that hold for the environment."""
    lifted: tuple[UserPin, ...] = ()
    """Those that do not bind, since the user lets plans walk around them."""
    condas: tuple[LiftedPin, ...] = ()
    """Pins of conda that the resolution does not keep."""


@dataclass(frozen=True)
class PlanInstallers:
    """The installers that write the commands of a plan; building a plan runs neither."""

    wheels: Installer
    conda: CondaInstaller | None = None
    """None where no conda package changes."""


@dataclass(frozen=True)
class _Draft:
    """A proposal joined with its packages."""

    environment: Environment
    proposal: Proposal
    artifacts: tuple[Artifact, ...]
    purge: Purge
    conda: CondaChange | None = None

    @cached_property
    def by_conda(self) -> dict[str, str | None]:
        """Version of each distribution that conda changes, None for a removed one."""
        return conda_changes.after(self.conda, self.environment)

    @property
    def before(self) -> dict[str, tuple[str, ...]]:
        """Versions of the removed distributions by name, in the order of the environment."""
        # in a conda prefix a changed member may stay under its other owner, so only the purge and conda's change tell
        gone = {*self.purge.names, *self.by_conda, *(() if self.environment.conda else self.proposal.changed)}
        found: dict[str, tuple[str, ...]] = {}
        for item in self.environment.distributions:
            if item.name in gone and not item.outside_prefix:
                found[item.name] = (*found.get(item.name, ()), item.version)
        return found

    @property
    def removed(self) -> tuple[str, ...]:
        """Names of distributions that are removed and not installed again."""
        new = {item.name for item in self.artifacts} | {name for name, version in self.by_conda.items() if version}
        return tuple(name for name in self.before if name not in new)


def build(
    facts: Facts,
    finding: Finding | None,
    loaded: LoadedPlaybook,
    resolved: ResolvedProposal,
    installers: PlanInstallers,
    *,
    now: str,
    extendable: bool = False,
) -> Plan:
    """Return the plan that carries out a proposal with the wheels and conda packages of its resolution.

    `now` is the plan's creation time, RFC 3339 in UTC. `extendable` allows further rounds in the same clone.
    Raises `NotAnEnvironment` without facts of an environment, and `NoSolution` when metadata shows that the result
    would be incoherent.
    """
    environment = facts.environment
    if environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    values = markers(environment, facts.host)
    proposal, resolution = resolved.proposal, resolved.resolution
    draft = _draft(environment, proposal, resolution or Resolution(artifacts=()), values)
    _refuse_unmet(draft, values)
    _refuse_unpinned(draft, resolved.pins)
    steps = _steps(draft)
    expected = checks.expected_environment(facts, proposal, removed=draft.removed, installed=_new(draft))
    return named(
        Plan(
            envmedic=__version__,
            data=facts.data,
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
            commands=_commands(steps, installers, environment),
            checks=checks.checks(loaded, finding, expected),
            changes=_changes(draft),
            stays=_stays(draft),
            stays_count=len({item.name for item in environment.distributions} - {*draft.before, *_new(draft)}),
            disk_bytes=UNPACKED_FACTOR * _packed_bytes(draft),
            download_bytes=_download_bytes(draft, resolved.fetched),
            alternatives=_alternatives(finding, resolved),
            notes=(
                *proposal.notes,
                *user_pins.kept(resolved.pins, _after(draft)),
                *(resolution.notes if resolution else ()),
                *_size_notes(draft),
            ),
            lifted=(*resolved.condas, *user_pins.lifted(resolved.lifted, _after(draft))),
            next_sync=next_sync(environment, values, _after(draft), proposal.request.pins if proposal.request else ()),
            extendable=extendable,
            gpu_checks=expected.cuda_build,
        )
    )


def _draft(environment: Environment, proposal: Proposal, resolution: Resolution, values: Mapping[str, str]) -> _Draft:
    """Join a proposal with its wheels, and remove the distributions that these replace or make useless."""
    wheels = resolution.artifacts
    gone = {*proposal.purge.names, *(() if environment.conda else proposal.changed)}
    # pip and uv uninstall a replaced distribution by its RECORD. An explicit purge first also catches copies and
    # leftovers that the RECORD does not list.
    replaced = [item.name for item in wheels if environment.distribution(item.name)]
    # only a changed torch can make CUDA libraries useless; otherwise the installed ones still have their user
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
    """Refuse a plan whose metadata shows an incoherent result. A clone would cost minutes to find the same."""
    after: dict[str, str | None] = dict.fromkeys(draft.before) | draft.by_conda
    after |= {item.name: item.version for item in draft.artifacts}
    known = unmet_already(draft.environment, draft.artifacts, values=values)
    others = {name: version for name, version in draft.by_conda.items() if version is not None}
    found = unmet(draft.environment, draft.before, draft.artifacts, values=values, others=others)
    # a reinstall of the same version need not repair a requirement that it failed to meet before
    missing = tuple(item for item in found if key(item) not in known)
    broken = newly_unmet(draft.environment, after, values=values)
    if missing or broken:
        sentences = tuple(item.sentence() for item in (*missing, *broken))
        raise NoSolution(
            f"{draft.proposal.title} would leave requirements unmet",
            cause=sentences[0],
            hint="Give an index or a directory with what is missing (--find-links), or choose another way from the plan",
            details=sentences,
        )


def _refuse_unpinned(draft: _Draft, pins: tuple[UserPin, ...]) -> None:
    """Refuse a plan that would not keep what the user states elsewhere: the next installation would undo it."""
    found = dict(user_pins.broken(pins, _after(draft)))
    if found:
        told = tuple(found.values())
        summary = f"{draft.proposal.title} would break what you have pinned"
        raise user_pins.refusal(summary, found, cause=told[0], details=told)


def _after(draft: _Draft) -> dict[str, str | None]:
    """Return the version of each distribution that changes, None for one that is gone."""
    copies = Counter(item.name for item in draft.environment.distributions)
    # of several copies one may stay
    removed = (name for name in draft.removed if copies[name] == 1)
    new = {name: version for name, version in _new(draft).items() if version is not None}
    return {**dict.fromkeys(removed), **new}


def _steps(draft: _Draft) -> tuple[Step, ...]:
    # Purge first: uv stops at a copy whose RECORD is gone, and conda would put its files over a wheel's.
    # Wheels come after conda's packages, because some of their requirements are among these.
    steps: list[Step] = []
    if draft.purge.distributions or draft.purge.leftovers:
        steps.append(draft.purge)
    if draft.conda is not None and (draft.conda.remove or draft.conda.install):
        steps.append(draft.conda)
    if draft.artifacts:
        steps.append(Install(artifacts=draft.artifacts))
    return (*steps, *draft.proposal.after)


def _commands(
    steps: Iterable[Step], installers: PlanInstallers, environment: Environment
) -> tuple[tuple[str, ...], ...]:
    python = environment.interpreter.path
    found: list[tuple[str, ...]] = []
    for step in steps:
        if isinstance(step, Purge | Install):
            found += installers.wheels.commands(step, python)
        elif isinstance(step, CondaChange) and installers.conda is not None:
            # an empty command: py-rattler carries the change out in the process, so there is nothing to show
            argv = installers.conda.command(step, environment.prefix)
            found += (argv,) if argv else ()
        elif isinstance(step, Rebuild):
            found.append(installers.wheels.build_command(step, python))
    return tuple(found)


def _rebuilt(draft: _Draft) -> tuple[Rebuild, ...]:
    return tuple(step for step in draft.proposal.after if isinstance(step, Rebuild))


def _new(draft: _Draft) -> dict[str, str | None]:
    """Return the distributions that the plan installs with their versions, None for one built from source."""
    rebuilt = {step.distribution.name: None for step in _rebuilt(draft)}
    condas = {name: version for name, version in draft.by_conda.items() if version is not None}
    # a wheel takes precedence over the conda package of the same name: its step runs later
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
        # several copies of one distribution are one row, with their sizes added up
        sizes[item.name] = sizes.get(item.name, 0) + item.size_bytes
        # where a wheel is purged and conda's copy stays, the row shows the wheel's owner
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
                # the conda package is shown only where the wheel takes its place, not where a wheel was there already
                package="" if condas.wheels(name) else packages.get(name, ""),
            )
        )
    rows += (
        Change(kind="change", name=copy.name, before=copy.version, after=copy.version, owner=copy.owner)
        for copy in (step.distribution for step in _rebuilt(draft))
    )
    return tuple(rows)


def _installed(name: str, draft: _Draft) -> tuple[str, ...]:
    """Installed versions of a distribution; the wheel's alone where a purge uncovers conda's copy under it."""
    if name in draft.purge.names:
        wheels = Owners(draft.environment).wheels(name)
        return tuple(item.version for item in wheels) or draft.before[name]
    return draft.before[name]


def _stays(draft: _Draft) -> tuple[str, ...]:
    """Return the members of the torch family, and the extensions bound to torch, that the plan leaves alone."""
    touched = {*draft.before, *_new(draft)}
    tied = {item.name for item, _ in bound(draft.environment)} | set(FAMILY)
    kept = (item for item in draft.environment.distributions if item.name in tied and item.name not in touched)
    return tuple(dict.fromkeys(f"{item.name} {item.version}" for item in kept))


def _packed(artifact: Artifact, draft: _Draft) -> int:
    """Return the size of a wheel in bytes; where the index gives none, that of the copy that it replaces."""
    if artifact.size_bytes is not None:
        return artifact.size_bytes
    installed = draft.environment.distribution(artifact.name)
    return installed.size_bytes if installed else 0


def _packed_bytes(draft: _Draft) -> int:
    """Packed size of all packages that the plan installs."""
    condas = draft.conda.install if draft.conda is not None else ()
    return sum(_packed(item, draft) for item in draft.artifacts) + sum(item.size_bytes or 0 for item in condas)


def _download_bytes(draft: _Draft, fetched: Collection[str]) -> int:
    """Size of the packages that still have to be downloaded."""
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


def _alternatives(finding: Finding | None, resolved: ResolvedProposal) -> tuple[PlanAlternative, ...]:
    """Return every other way, with the reason against it."""
    chosen, considered, failed = resolved.proposal, resolved.considered, resolved.failed
    found = [
        PlanAlternative(
            title=item.title,
            why_not=failed.get(item.title) or item.cost or "the chosen one is preferred",
            feasible=item.title not in failed,
        )
        for item in (considered.proposals if considered else ())
        # the wider form of the chosen proposal is the same way with more freedom for the resolver, no alternative
        if msgspec.to_builtins(item) != msgspec.to_builtins(chosen) and item.title != chosen.title + IN_THE_WAY
    ]
    own = (
        PlanAlternative(title=item.title, why_not=item.why_not or "envmedic does not take it by itself", feasible=False)
        for item in (finding.alternatives if finding is not None else ())
    )
    return (*found, *(considered.rejected if considered else ()), *own)
