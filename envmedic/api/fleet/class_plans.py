"""Use cases ``plan --for-class`` and ``apply`` of such a plan: made once, checked and carried out on each machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from envmedic.analysis.fleet.environment_class import class_differences, class_of
from envmedic.api.context.observation import observe, observe_contents
from envmedic.api.context.settings import Settings
from envmedic.api.generations import difference
from envmedic.engine.store.live_records import live_records, undone_record
from envmedic.errors import (
    ChecksFailed,
    EnvmedicError,
    ExitCode,
    InputError,
    InternalError,
    Interrupted,
    NotAnEnvironment,
    OtherClass,
    PartialRepair,
    StalePlan,
)
from envmedic.installers.wheels import download_cache
from envmedic.model.answers.content import EnvironmentClass
from envmedic.model.facts import Environment, Host
from envmedic.model.plan import Artifact, Plan
from envmedic.model.record import Record
from envmedic.planner import class_plan
from envmedic.planner.identity import stale

_ENDED = (InternalError, Interrupted)
"""Errors that say nothing about the plan."""
_WORDS: dict[type[EnvmedicError], Literal["other-class", "changed", "failed"]] = {
    OtherClass: "other-class",
    StalePlan: "changed",
    ChecksFailed: "failed",
    PartialRepair: "failed",
}
_OF_CODES: dict[ExitCode, Literal["changed", "failed"] | None] = {
    ExitCode.CHECKS: "failed",
    ExitCode.USAGE: "changed",
    ExitCode.INTERNAL: None,
    ExitCode.INTERRUPTED: None,
}
"""What ended a transaction that had begun. Other codes: it was refused."""


def for_class(settings: Settings, made: Plan) -> Plan:
    """Return `made` for every environment of the class of its own. Raises InputError, StalePlan."""
    step = class_plan.bound_to_one(made)
    if step is not None:
        raise InputError(
            "This repair is right for one environment alone",
            cause=f"What it does depends on paths, file modes or a compiler: {step.describe()}",
            hint="Make the plan on each machine, without --for-class",
        )
    environment, _, wanted = _observed(settings, Path(made.prefix))
    if stale(made, environment):
        raise StalePlan(f"{made.prefix} has changed while the plan was made", hint="Make the plan again")
    return class_plan.for_class(made, wanted)


def _observed(settings: Settings, prefix: Path) -> tuple[Environment, Host, EnvironmentClass]:
    facts = observe_contents(settings, observe(settings, prefix))
    if facts.environment is None or facts.content is None:
        raise NotAnEnvironment(f"{prefix} holds no Python environment", hint="Name one with -p")
    return facts.environment, facts.host, class_of(facts.host, facts.environment.interpreter, facts.content)


def bound(settings: Settings, made: Plan) -> Plan:
    """Return the plan of a class for the environment here. Raises OtherClass where that belongs to another class."""
    wanted = made.for_class
    if wanted is None:
        return made
    environment, host, found = _observed(msgspec.structs.replace(settings, deep=wanted.deep), Path(made.real_prefix))
    differs = class_differences(wanted, found)
    if differs:
        raise OtherClass(
            f"The plan is for another class of environments than {made.prefix}",
            cause="; ".join(differs),
            hint="Make a plan for this class here: `envmedic plan --for-class -o FILE`",
        )
    return class_plan.bound(made, environment, host, lambda item: _placed(item, settings.find_links))


def placed(made: Plan) -> Plan:
    """Return the plan of a class with its wheels at their places in the cache of this user, on this machine."""
    return class_plan.placed(made, lambda item: _placed(item, ()))


def _placed(item: Artifact, links: Sequence[str]) -> Artifact:
    """The wheel at its place in this cache, to be copied from a directory of ``--find-links`` that has it."""
    local = str(download_cache.path_of(item.sha256, item.filename))
    files = (Path(link.removeprefix("file://")).absolute() / item.filename for link in links)
    found = next((path for path in files if path.is_file()), None)
    # its hash is checked when it is copied: a directory may have another wheel of this name
    return msgspec.structs.replace(item, local_path=local, url=found.as_uri() if found is not None else item.url)


def carried_out(settings: Settings, made: Plan) -> Record | None:
    """Return the record of the plan of a class where its repair is live here and nothing has changed since.

    Raises StalePlan where something has.
    """
    prefix = Path(made.real_prefix)
    newest = next((item for item in live_records(prefix) if item.plan.purpose != "snapshot"), None)
    if newest is None or newest.plan.class_plan != made.id or newest.outcome != "repaired":
        return None
    if not difference(settings, prefix).none:
        raise StalePlan(
            f"{made.prefix} was repaired by this plan, and has changed since",
            cause="Files were changed outside envmedic",
            hint=f"`envmedic diff -p {made.prefix}` names them",
        )
    return msgspec.structs.replace(newest, outcome="already")


def foreseen(settings: Settings, made: Plan) -> Plan | Record:
    """Return what `apply` of the plan of a class would carry out here, or the record of when it did. Changes nothing.

    Raises what `bound` and `carried_out` do.
    """
    with outcomes():
        return carried_out(settings, made) or bound(settings, made)


def to_undo(made: Plan) -> Record:
    """Return the record of the repair by the plan of a class that is live here, or that was undone already.

    Raises InputError where there is none, or where others came after it.
    """
    prefix = Path(made.real_prefix)
    live = [item for item in live_records(prefix) if item.plan.purpose != "snapshot"]
    if live and live[0].plan.class_plan == made.id:
        return live[0]
    if any(item.plan.class_plan == made.id for item in live):
        raise InputError(
            f"{made.prefix} was changed by envmedic after this plan had repaired it",
            cause=f"Transaction {live[0].transaction} came later, and an undo would take that back, too",
            hint=f"`envmedic history -p {made.prefix}` shows them, `envmedic undo` takes each back",
        )
    found = undone_record(prefix, made.id)
    if found is None:
        raise InputError(
            f"There is nothing to undo for {made.prefix}",
            cause="This plan has repaired nothing there",
            hint="See `envmedic history`",
        )
    return msgspec.structs.replace(found, outcome="already")


@contextmanager
def outcomes() -> Iterator[None]:
    """Give errors the word by which those who roll a plan out tell them apart."""
    try:
        yield
    except _ENDED:
        raise
    except EnvmedicError as error:
        error.outcome = _WORDS.get(type(error), "refused")
        raise


def with_outcome(record: Record) -> Record:
    """Return the record of a plan for a class with the word that an error document would have."""
    if record.outcome != "unchanged" or record.failure is None:
        return record
    word = _OF_CODES.get(ExitCode(record.failure.exit_code), "refused")
    return record if word is None else msgspec.structs.replace(record, outcome=word)
