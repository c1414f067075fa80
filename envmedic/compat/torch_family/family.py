"""Coherent sets of torch, torchvision, torchaudio and triton for a host and an environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from envmedic.compat.tables import companions
from envmedic.compat.torch_family import candidates, pairs
from envmedic.compat.torch_family.problems import problems
from envmedic.compat.torch_family.rules import Build, check_platform, check_torch
from envmedic.compat.torch_family.ruling import Ruling, broken
from envmedic.compat.torch_family.target import FamilyTarget, target_of
from envmedic.compat.versions import allows
from envmedic.model.answers.family import FamilyAnswer, FamilyQuery, FamilySet, Member, RejectedSet
from envmedic.model.playbook import Policy

__all__ = ["SETS_PER_POLICY", "answer", "default_index_serves", "problems"]

SETS_PER_POLICY = 3
"""Highest number of sets proposed for one policy."""


class _Answer(msgspec.Struct):
    """Sets and rejections while they are collected."""

    target: FamilyTarget
    sets: list[FamilySet] = msgspec.field(default_factory=list)
    rejected: dict[tuple[str, str, str], tuple[str, Ruling, int]] = msgspec.field(default_factory=dict)
    seen: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """Builds that an earlier policy proposed or rejected."""

    def reject(self, policy: Policy, title: str, ruling: Ruling) -> None:
        """Record a rejection; the first of each distinct cause is shown, the others are counted."""
        # one driver that is too old rejects dozens of builds; a user needs the reason once
        key = (policy, ruling.rule, ruling.cause)
        first, shown, count = self.rejected.get(key, (title, ruling, 0))
        self.rejected[key] = (first, shown, count + 1)

    def result(self) -> FamilyAnswer:
        """Return the answer."""
        rejected = tuple(
            RejectedSet(
                title=f"{policy}: {title}" + (f" and {count - 1} more" if count > 1 else ""),
                rule=ruling.rule,
                reason=ruling.reason,
                source=ruling.source,
            )
            for (policy, _, _), (title, ruling, count) in self.rejected.items()
        )
        return FamilyAnswer(sets=tuple(self.sets), rejected=rejected)


def answer(query: FamilyQuery) -> FamilyAnswer:
    """Return the coherent sets for `query`, ranked by its policies in their order, and the rejected ones.

    Pure and deterministic: the same query gives the same answer.
    """
    state = _Answer(target=target_of(query))
    for policy in dict.fromkeys(query.policies):
        _apply(policy, state)
    return state.result()


def _apply(policy: Policy, state: _Answer) -> None:
    """Collect the sets of one policy."""
    refusal = _refuse_policy(policy, state.target)
    if refusal is not None:
        state.reject(policy, f"torch {state.target.torch or 'not installed'}", refusal)
        return
    torch: set[str] = set()
    for build in candidates.candidates(policy, state.target):
        # one set per release and policy: candidates are ranked, so its best variant came first
        if build.torch in torch or (build.torch, build.variant) in state.seen:
            continue
        proposed = _evaluate(build, policy, state)
        state.seen.add((build.torch, build.variant))
        if proposed is not None:
            state.sets.append(proposed)
            # the index may lack an unverified build, and have another one of its release
            torch |= {build.torch} if not proposed.unverified else set()
        if len(torch) >= SETS_PER_POLICY:
            return
    if not state.sets and not state.rejected:
        reason = f"no torch release is known in the variant {state.target.query.variant}"
        state.reject(policy, f"torch {state.target.torch}", broken("variant-published", reason, "index metadata"))


def _refuse_policy(policy: Policy, target: FamilyTarget) -> Ruling | None:
    """Return why a policy cannot be applied at all, or None."""
    # the platform first: on macOS or Windows every other reason would be misleading
    platform = check_platform(target)
    if not platform.ok:
        return platform
    build = candidates.installed_build(target)
    if candidates.foreign_backend(build) and build is not None:
        return broken("backend", f"the installed torch is built for {build.variant}", "facts of the environment")
    if policy == "newest":
        return None
    if build is None:
        return broken("torch-installed", "no torch is installed", "facts of the environment")
    if build.variant == candidates.UNKNOWN_VARIANT:
        reason = f"the CUDA variant of the installed torch {build.torch} is not known"
        return broken("torch-known", reason, "facts of the environment")
    return candidates.custom_build(target) if policy == "keep-torch" else None


def _evaluate(build: Build, policy: Policy, state: _Answer) -> FamilySet | None:
    """Apply every rule to a build with its companions; None when one is broken, which is recorded."""
    rulings = [*_unrequested("torch", build.torch, state.target), *check_torch(build, state.target)]
    versions: dict[str, str] = {"torch": build.torch}
    order: tuple[Member, ...] = ("torchvision", "torchaudio", "triton")
    for member in (item for item in order if item in state.target.query.members):
        choice = pairs.choose(build, state.target, member)
        rulings += choice.rulings
        if choice.version is not None:
            versions[member] = choice.version
            rulings += _unrequested(member, choice.version, state.target)
    wrong = [ruling for ruling in rulings if not ruling.ok]
    # all faults of the installed torch are of interest, of another build the first one excludes it
    for ruling in wrong if build.kept else wrong[:1]:
        state.reject(policy, build.title(), ruling)
    if wrong:
        return None
    return FamilySet(
        variant=build.variant,
        versions=versions,
        policy=policy,
        reasons=tuple(ruling.sentence() for ruling in rulings),
        default_index=on_default_index(build, versions, state.target),
        unverified=build.unverified,
    )


def _unrequested(member: str, version: str, target: FamilyTarget) -> tuple[Ruling, ...]:
    """Return the ruling against a version outside of the requested ones; none for a requested one."""
    wanted = target.query.wanted.get(member, "")
    if allows(wanted, version):
        return ()
    return (broken("requirement", f"{member}{wanted} is asked for, this is {version}", "the question", cause=member),)


def on_default_index(build: Build, versions: Mapping[str, str], target: FamilyTarget) -> bool:
    """Whether the default index has torch and every companion of a set in the set's variant."""
    return _serves(build, versions, tuple(versions), target)


def default_index_serves(found: FamilySet, changed: Iterable[str], query: FamilyQuery) -> bool:
    """Whether the default index has the `changed` members of a set in builds that fit it."""
    target = target_of(query)
    build = Build(torch=found.versions["torch"], variant=found.variant)
    return _serves(build, found.versions, tuple(changed), target)


def _serves(build: Build, versions: Mapping[str, str], names: tuple[str, ...], target: FamilyTarget) -> bool:
    if "torch" in names and pairs.default_torch_variant(build.torch, target.platform) != build.variant:
        return False
    for member in ("torchvision", "torchaudio"):
        row = companions(member).get(versions[member]) if member in names else None
        if row is not None and not pairs.serves(row, build, target):
            return False
    return True
