"""Errors where no plan can be made: why each way was rejected, and the next step."""

from __future__ import annotations

from collections.abc import Sequence

from envmedic import planner
from envmedic.api.planning.pin_limits import PinLimits
from envmedic.errors import EnvmedicError, NetworkError, NoSolution, NothingToRepair, PinnedVersions
from envmedic.model.facts import Facts
from envmedic.planner.family_move import UNCHANGED


def none_works(errors: Sequence[NoSolution | NetworkError]) -> NoSolution | NetworkError:
    """Return the error if no way works: the best way's, with the causes of the others."""
    first = errors[0]
    told = tuple(dict.fromkeys(error.cause or error.summary for error in errors[1:]))
    pinned = [error for error in errors if isinstance(error, PinnedVersions)]
    if pinned:
        # before an unreachable index: to change the pin, or to let it go, is a way that is known
        pins = tuple(dict.fromkeys(pin for error in pinned for pin in error.pins))
        best = pinned[0]
        return PinnedVersions(best.summary, cause=best.cause, pins=pins, details=(*first.details, *told))
    # with an unreachable index nobody knows whether a way exists, so "no solution" would be wrong
    unreachable = next((error for error in errors if isinstance(error, NetworkError)), None)
    if unreachable is not None or len(errors) == 1:
        return unreachable or errors[0]
    return NoSolution(first.summary, cause=first.cause, hint=first.hint, details=(*first.details, *told))


def pinned(limits: PinLimits, considered: planner.Proposals) -> PinnedVersions | None:
    """Return the error where pins of the user are among the reasons against every way; None where they are not."""
    reasons = tuple(f"{item.title}: {item.why_not}" for item in considered.rejected)
    found = planner.named_in(limits.held, reasons)
    if not found:
        return None
    cause = next(text for text in reasons if planner.named_in(found, (text,)))
    return planner.pins_refusal(
        "What you have pinned leaves no repair of this environment", found, cause=cause, details=reasons
    )


def no_way(facts: Facts, considered: planner.Proposals) -> NoSolution:
    """Return the error if a finding has no way out: nothing is amiss, or nothing fits."""
    environment = facts.environment
    reasons = tuple(f"{item.title}: {item.why_not}" for item in considered.rejected)
    if reasons and all(item.why_not.startswith(UNCHANGED) for item in considered.rejected):
        sound = (item.why_not.removeprefix(UNCHANGED).removeprefix(": ") for item in considered.rejected)
        return NoSolution(
            "There is nothing that this repair would change here",
            cause="; ".join(dict.fromkeys(filter(None, sound))) or None,
            hint=_changed(facts)
            or "Run the program again: envmedic run -- CMD; if it still fails, name the environment that it runs in with -p",
        )
    if environment is not None and environment.torch is None and environment.distribution("torch") is None:
        hint = "Name the environment that the program runs in; this one has no torch"
    elif facts.host.driver_version is None:
        hint = "Plan where the program runs, or with its facts: `--host FILE`, from `envmedic facts --json` there"
    else:
        hint = "Another Python, driver or GPU changes this: `envmedic facts` shows those that were found"
    return NoSolution(
        "There is no set of distributions that would repair this environment on this host",
        cause=reasons[0] if reasons else None,
        hint=hint,
        details=reasons,
    )


def _changed(facts: Facts) -> str | None:
    """What to do about the first file that is whole and not as it was installed, which no repair overwrites."""
    reports = facts.environment.files or () if facts.environment is not None else ()
    for item in reports:
        for path in item.changed:
            if not path.endswith(".pem"):
                return f"{path} is not as it was installed: unless that was meant, install {item.distribution}=={item.version} again"
    return None


def no_move(considered: planner.Proposals) -> EnvmedicError:
    """Return the error of a move: nothing would change, or some distributions cannot follow."""
    reasons = tuple(f"{item.title}: {item.why_not}" for item in considered.rejected)
    if any(item.why_not == UNCHANGED for item in considered.rejected):
        return NothingToRepair(
            "There is nothing to move: the torch family is where this policy leads",
            cause="; ".join(text for text in reasons if not text.endswith(UNCHANGED)) or None,
            hint="Take another policy: `envmedic plan --help` lists them",
            details=reasons,
        )
    return NoSolution(
        "The torch family cannot be moved on in this environment on this host",
        cause=reasons[0] if reasons else None,
        hint="Replace or remove what cannot follow, or take another policy: `envmedic plan --help` lists them",
        details=reasons,
    )
