"""What outcomes mean: whether a repair is proven, what got worse, and what is known about the GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from envmedic.model.checks import Check, GpuVerdict, Judgement, Outcome, Verification, name_of
from envmedic.model.registries.check_kinds import CONSUMER_CHECKS, Profile

FAILURES = frozenset({"fail", "crash", "timeout"})
REQUIRED = frozenset({"playbook", "reproduction", "regression"})
PROOF = frozenset({"playbook", "reproduction"})
"""Roles of the checks that prove a repair."""
_ANY_GPU = "cuda"
"""The device of an outcome that stands for all GPUs, where none is visible or torch cannot be asked."""
PIP_CHECK = "pip-check"
_FACTS = "facts"


def judge(
    before: Sequence[Outcome],
    after: Sequence[Outcome],
    *,
    no_gpu: bool,
    confirmed: bool = False,
    lost: Sequence[str] = (),
) -> Judgement:
    """Whether the exchange may take place, by the outcomes before the first step and after the last one.

    The playbook's checks and the reproduction must pass; a reproduction must have failed before, unless facts
    `confirmed` the fault; what passed before must pass still, and nothing may fail that could not be run before.
    What failed before and fails still is told only, and where a library other than torch does, torch's kernels are proven all
    the same. A required outcome that was skipped, or not reported again, is
    never passed, except that facts need not tell of a fault whose reproduction passes; with `no_gpu` the user accepts that for GPUs. A program that failed elsewhere decides nothing, and is
    no proof where nothing else is. `lost` says which files are gone that stay listed: nothing tells what needs them.
    """
    relevant = [outcome for outcome in after if not _excused(outcome, no_gpu=no_gpu)]
    proof = [outcome for outcome in relevant if outcome.role in PROOF]
    failed = [*(told(o) for o in proof if o.status in FAILURES), *_lost(before, after, proof=True)]
    ended = reproduction_ended(before, after)
    skipped = [told(o) for o in proof if o.status == "skip" and not (ended and name_of(o.check) == _FACTS)]
    others = [(_counterpart(o, before), o) for o in relevant if o.role not in PROOF]
    regressions = [
        *(text for old, new in others for text in worse(old, new)),
        *_lost(before, after, proof=False),
        *lost,
    ]
    unproven = not_reproduced(before, no_gpu=no_gpu)
    if not confirmed:
        failed += [f"{check}: the fault was not reproduced, it did not fail before" for check in unproven]
    pairs = [(_counterpart(outcome, before), outcome) for outcome in proof]
    red = [(old, new) for old, new in pairs if old is not None and old.status in FAILURES]
    lasting = tuple(told(new) for _, new in red if new.status in FAILURES)
    better = any(new.status == "pass" for _, new in red)
    if not (confirmed or better):
        # its silence on the fault would be all that speaks for the repair
        elsewhere = (o for o in after if o.program == "failed elsewhere" and o.role in PROOF)
        failed += [f"{told(o)}, and no other check failed before and passes now" for o in elsewhere]
    as_before = [new for old, new in others if old is not None and old.status in FAILURES and new.status in FAILURES]
    verdict, reason = gpu_verdict(o for o in after if o not in as_before or name_of(o.check) not in CONSUMER_CHECKS)
    return Judgement(
        passed=not (failed or skipped or regressions),
        regressions=tuple(regressions),
        failed_required=tuple(failed),
        skipped_required=tuple(skipped),
        not_reproduced=unproven,
        lasting=lasting,
        partial=better and 0 < len(failed) == len(lasting) and not (skipped or regressions),
        still_failing=tuple(told(new) for old, new in others if new.status in FAILURES and not worse(old, new)),
        gpu=verdict,
        gpu_reason=reason,
    )


def judge_elsewhere(
    before: Sequence[Outcome], shown: Sequence[Outcome], after: Sequence[Outcome], *, no_gpu: bool
) -> Judgement:
    """Whether the repaired tree is right for another machine too, where the fault need not have shown.

    `before` is what checks said there before the repair, `shown` what showed the fault where it is carried out.
    """
    # with other devices than there, an outcome is not missed here
    known = [item for item in shown if _counterpart(item, after) is not None and _counterpart(item, before) is None]
    return judge([*before, *known], after, no_gpu=no_gpu, confirmed=True)


def reproduced(outcomes: Iterable[Outcome]) -> bool:
    """Whether a check that is to prove the repair fails: the fault is really there."""
    return any(outcome.role in PROOF and outcome.status in FAILURES for outcome in outcomes)


def reproduction_ended(before: Sequence[Outcome], after: Sequence[Outcome]) -> bool:
    """Whether a check of the reported fault itself failed before and passes now."""
    passing = [outcome for outcome in after if outcome.role == "reproduction" and outcome.status == "pass"]
    found = (_counterpart(outcome, before) for outcome in passing)
    return any(old is not None and old.status in FAILURES for old in found)


def blocking(before: Sequence[Outcome], after: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Failures that keep a repair from being proven: of what has to pass, and of what did not fail before."""
    failed = [outcome for outcome in after if outcome.status in FAILURES]
    return tuple(o for o in failed if o.role in PROOF or worse(_counterpart(o, before), o))


def otherwise(before: Sequence[Outcome], after: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Imports that failed before and fail still, for another reason."""
    pairs = ((_counterpart(new, before), new) for new in after if new.check.startswith("import "))
    return tuple(
        new
        for old, new in pairs
        if old is not None and old.status in FAILURES and new.status in FAILURES and old.reason != new.reason
    )


def unasked(
    checks: Iterable[Check], before: Sequence[Outcome], after: Sequence[Outcome], *, no_gpu: bool
) -> tuple[Check, ...]:
    """Those of `checks` whose outcome `after` counts only if it was better before, and was not asked `before`.

    Of imports only the names that do not pass.
    """
    names = {
        outcome.check
        for outcome in after
        if outcome.status != "pass" and outcome.role not in PROOF and not _excused(outcome, no_gpu=no_gpu)
        if _counterpart(outcome, before) is None
    }
    found = []
    for check in checks:
        if check.name == "import":
            left = tuple(name for name in check.arguments if f"import {name}" in names)
            if left and check.role not in PROOF:
                found.append(msgspec.structs.replace(check, arguments=left))
        elif check.role not in PROOF and any(check.name in {name, name_of(name)} for name in names):
            found.append(check)
    return tuple(found)


def worse(old: Outcome | None, new: Outcome) -> tuple[str, ...]:
    """What is worse in `new` than in `old`, a text for each; nothing when it was not run before."""
    if old is None:
        return ()
    # `pip check` lists every unmet requirement of the environment: only lines that are new count as worse.
    if new.check == PIP_CHECK and new.status == old.status == "fail":
        known = {_requirement(line) for line in old.detail.splitlines()}
        return tuple(
            f"{PIP_CHECK}: {line}" for line in new.detail.splitlines() if line and _requirement(line) not in known
        )
    if old.status == "pass" and new.status != "pass":
        return (f"{told(new)} (passed before)",)
    if old.status == "skip" and new.status in FAILURES:
        return (f"{told(new)} (not run before: {old.reason})",)
    return ()


def told(outcome: Outcome) -> str:
    """An outcome in one line."""
    where = f" on {outcome.device}" if outcome.device else ""
    return f"{outcome.check}{where}: {outcome.status}" + (f", {outcome.reason}" if outcome.reason else "")


def gpu_verdict(outcomes: Iterable[Outcome]) -> tuple[GpuVerdict, str]:
    """Whether GPU kernels were proven, and if not why: every one of them has to pass on every GPU."""
    on_gpu = [outcome for outcome in outcomes if _is_gpu(outcome.device) and outcome.applicable]
    if not on_gpu:
        return "not needed", ""
    # A failure says more than a skip, so it gives the reason even if a skip comes first.
    for statuses in (FAILURES, {"skip"}):
        for outcome in on_gpu:
            if outcome.status in statuses:
                return "not verified", outcome.reason if outcome.status == "skip" else told(outcome)
    return "verified", ""


def verification(
    prefix: str,
    outcomes: Sequence[Outcome],
    *,
    profile: Profile = "standard",
    no_gpu: bool = False,
    baseline: Sequence[Outcome] | None = None,
) -> Verification:
    """The document of one verification of an environment as it is.

    It passes when nothing fails and neither a required check nor a GPU was skipped (GPUs apart, with `no_gpu`).
    An informative import that only lacks what is not installed is told in `excused`.
    With a `baseline` it passes when nothing is worse than there: what did not pass there either does not decide.
    """
    verdict, reason = gpu_verdict(outcomes)
    pairs = [(_counterpart(outcome, baseline or ()), outcome) for outcome in outcomes]
    regressions = [text for old, new in pairs for text in worse(old, new) if not _excused(new, no_gpu=no_gpu)]
    if baseline is not None:
        regressions += _lost(baseline, outcomes, proof=False)
    # By identity: two outcomes of one check may be equal in every field.
    known = {id(new) for old, new in pairs if old is not None and old.status != "pass" and not worse(old, new)}
    bad = [outcome for outcome in outcomes if _blocks(outcome, no_gpu=no_gpu)]
    return Verification(
        prefix=prefix,
        profile=profile,
        gpu=verdict,
        gpu_reason=reason,
        passed=not regressions and all(id(outcome) in known for outcome in bad),
        outcomes=tuple(outcomes),
        regressions=tuple(regressions),
        as_before=tuple(told(outcome) for outcome in bad if id(outcome) in known),
        better=tuple(
            f"{told(new)} ({old.status} before)"
            for old, new in pairs
            if old is not None and old.status in FAILURES and new.status == "pass"
        ),
        excused=tuple(f"{outcome.check}: {outcome.excuse}" for outcome in outcomes if _forgiven(outcome)),
        warnings=warnings(outcomes),
    )


def warnings(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """What outcomes give to know although they passed, each once, with the GPU where one of several is meant."""
    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        for text in outcome.warnings:
            found.setdefault(text, []).append((outcome.device or "").partition(" ")[0])
    return tuple(f"{', '.join(places)}: {text}" if any(places) else text for text, places in found.items())


def _blocks(outcome: Outcome, *, no_gpu: bool) -> bool:
    """Whether an outcome alone keeps a verification from passing."""
    if outcome.status in FAILURES:
        return not _forgiven(outcome)
    needed = outcome.role in REQUIRED or _is_gpu(outcome.device)
    return outcome.status == "skip" and needed and not _excused(outcome, no_gpu=no_gpu)


def _forgiven(outcome: Outcome) -> bool:
    """Whether a failure does not decide: it is informative and has an excuse. A crash or a hang has none."""
    # An import may raise for a missing optional library; it never crashes or hangs for one.
    return outcome.status == "fail" and bool(outcome.excuse) and outcome.role not in REQUIRED


def _is_gpu(device: str | None) -> bool:
    return device is not None and device.startswith(_ANY_GPU)


def _excused(outcome: Outcome, *, no_gpu: bool) -> bool:
    """Whether a skip needs no excuse: it has no meaning there, or the user accepts it for GPUs."""
    return outcome.status == "skip" and (not outcome.applicable or (no_gpu and _is_gpu(outcome.device)))


def _matches(one: Outcome, other: Outcome) -> bool:
    """Whether both are the same check on the same device; ``cuda`` stands for every GPU."""
    if one.check != other.check:
        return False
    # Without a GPU a check reports ``cuda`` for all of them; with GPUs it reports ``cuda:0 NAME`` for each.
    if not (one.device and other.device):
        return one.device == other.device
    places = {one.device.partition(" ")[0], other.device.partition(" ")[0]}  # whatever the GPU there is called
    return len(places) == 1 or (_is_gpu(one.device) and _is_gpu(other.device) and _ANY_GPU in places)


def _counterpart(outcome: Outcome, others: Sequence[Outcome]) -> Outcome | None:
    """The same check on the same device among `others`, an exact one first."""
    found = [other for other in others if _matches(outcome, other)]
    return next((other for other in found if other.key == outcome.key), found[0] if found else None)


def _lost(before: Sequence[Outcome], after: Sequence[Outcome], *, proof: bool) -> Iterator[str]:
    """What was run before and is not reported again: required for the proof, or passed then."""
    for old in before:
        # A check that vanishes must not pass for a repair: a crashed session reports fewer outcomes than it began.
        counts = old.role in PROOF if proof else old.role not in PROOF and old.status == "pass"
        if counts and _counterpart(old, after) is None and old.applicable:
            yield f"{told(old)} before, and not run again"


def not_reproduced(before: Sequence[Outcome], *, no_gpu: bool) -> tuple[str, ...]:
    """Checks of the reported fault of which no outcome failed before, those apart whose GPUs the user does without."""
    checks = dict.fromkeys(outcome.check for outcome in before if outcome.role == "reproduction")
    unproven = []
    for check in checks:
        outcomes = [outcome for outcome in before if outcome.check == check]
        if not any(outcome.status in FAILURES or _excused(outcome, no_gpu=no_gpu) for outcome in outcomes):
            unproven.append(check)
    return tuple(unproven)


def comparable(baseline: Verification, profile: Profile, names: Sequence[str]) -> tuple[Outcome, ...]:
    """The outcomes of `baseline` for the checks `names`: others were not asked for now, and so are not missed.

    The profile ``quick`` does not import all that others do.
    """
    fewer = profile == "quick" and baseline.profile != profile  # its missing imports are no regressions
    asked = set(names) - ({"import"} if fewer else set())
    return tuple(outcome for outcome in baseline.outcomes if name_of(outcome.check) in asked)


def _requirement(line: str) -> str:
    """The unmet requirement in a line of ``pip check``, without what is installed instead of it."""
    return line.partition(", but ")[0].strip()
