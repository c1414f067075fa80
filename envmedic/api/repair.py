"""Use cases ``plan`` and ``apply``: from a request to an exact plan, and from the plan to a record."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from envmedic import planner
from envmedic.api.context.observation import observe
from envmedic.api.context.settings import RepairRequest, Settings
from envmedic.api.context.target import EnvironmentTarget
from envmedic.api.context.wiring import (
    check_runner,
    conda_of,
    engine_ports,
    installer_of,
    require_repair_packages,
)
from envmedic.api.diagnosis import diagnose_text
from envmedic.api.fleet import class_plans
from envmedic.api.fleet.folder import require_names
from envmedic.api.generations import difference
from envmedic.api.obstacles import protections, without_gpu
from envmedic.api.planning import crashes
from envmedic.api.planning.cases import diagnose_case, load, program_of
from envmedic.api.planning.family_move import move
from envmedic.api.planning.plan_choice import PlanChoices, RepairGoal, host_fault, repairable
from envmedic.api.planning.plan_paths import refuse_other_places
from envmedic.api.planning.rounds import Loop
from envmedic.api.planning.statements import brought_by_nothing
from envmedic.api.playbooks import find_playbook, load_playbooks
from envmedic.api.running import diagnose_command
from envmedic.diagnosis.findings import alternatives
from envmedic.diagnosis.vocabulary import derive
from envmedic.engine.store.interruption import Cancel, never
from envmedic.engine.store.live_records import last_seconds, live_records
from envmedic.engine.store.protection import refuse_protected
from envmedic.engine.transaction import transaction
from envmedic.engine.transaction.preflight import preflight
from envmedic.errors import InputError, NothingToRepair
from envmedic.model.base import from_json
from envmedic.model.facts import Facts
from envmedic.model.findings import Diagnosis, Finding, of_shell
from envmedic.model.pins import ProjectEdit
from envmedic.model.plan import Plan
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import ApplyOptions, Exchange, Means, unedited
from envmedic.model.record import Left, Record
from envmedic.probe.prefix import processes

Confirm = Callable[[Plan], bool]
AcceptPartial = Callable[[tuple[Left, ...]], bool]
BeforeExchange = Callable[[Exchange], bool]
EditsProject = Callable[[ProjectEdit], bool]


@dataclass(frozen=True)
class Prepared:
    """A plan to carry out once, with the data by which the repair loop continues after it."""

    plan: Plan
    settings: Settings
    """The settings of the plan; later events go to their stream."""
    choices: PlanChoices | None
    """None for a plan that the repair loop must not extend."""


def prepare(settings: Settings, prefix: Path, wish: RepairRequest) -> Prepared | Diagnosis:
    """Return the plan for `wish`, to be shown and carried out as it is; the diagnosis if there is nothing to do.

    Changes nothing. Raises NothingToRepair, NoSolution, HostFault, InputError and installer errors.
    """
    if wish.policy is not None:
        return Prepared(_completed(move(settings, prefix, wish.policy, wish.way)), settings, None)
    choices = find_choices(settings, prefix, wish)
    if isinstance(choices, Diagnosis):
        return choices
    return Prepared(_completed(_first(choices), choices.wanted.findings), settings, choices)


def _completed(plan: Plan, findings: Sequence[Finding] = ()) -> Plan:
    """Return `plan` with what is in the way of carrying it out, what is left to further rounds, and how long one took."""
    own = plan.finding.with_consequences if plan.finding is not None else ()
    further = (item for item in findings if plan.extendable and item.confirmed and item.fault != plan.fault)
    completed = msgspec.structs.replace(
        plan,
        obstacles=protections(Path(plan.real_prefix)) + (without_gpu(plan.host) if plan.gpu_checks else ()),
        further=tuple(dict.fromkeys(item.summary for item in further if item not in own)),
        took_before_s=last_seconds(Path(plan.real_prefix)),
    )
    return planner.named(completed) if completed != plan else plan


def plan(settings: Settings, prefix: Path, wish: RepairRequest) -> Plan | Diagnosis:
    """Return the plan for `wish`, or the diagnosis if nothing was requested and nothing found. Changes nothing.

    Raises what `prepare` raises.
    """
    prepared = prepare(settings, prefix, wish)
    return prepared if isinstance(prepared, Diagnosis) else prepared.plan


def _first(choices: PlanChoices) -> Plan:
    """Return the best plan. Raises the error of the best finding, with the reasons of the others."""
    made = choices.next()
    if made is not None:
        return made
    error, *others = choices.errors
    more = tuple(f"Besides, {item.summary}: {item.cause or item.hint or 'no plan'}" for item in others)
    error.details = (*error.details, *more)
    raise error


def apply(
    settings: Settings,
    prefix: Path,
    wish: RepairRequest,
    options: ApplyOptions,
    confirm: Confirm,
    *,
    accept_partial: AcceptPartial | None = None,
    edits_project: EditsProject = unedited,
) -> Record | Diagnosis:
    """Plan, confirm, and carry out; return the diagnosis if nothing was requested and nothing found.

    Errors before the transaction begins are raised; later ones are in the record.
    """
    # both refusals come before the observation and the resolution, which take the user's time
    require_repair_packages()
    refuse_protected(EnvironmentTarget.of(prefix).real, options.allow)
    prepared = prepare(settings, prefix, wish)
    if isinstance(prepared, Diagnosis):
        return prepared
    return carry_out(prepared, options, confirm, accept_partial=accept_partial, edits_project=edits_project)


def apply_plan(
    settings: Settings,
    made: Plan,
    options: ApplyOptions,
    confirm: Confirm,
    *,
    accept_partial: AcceptPartial | None = None,
    edits_project: EditsProject = unedited,
) -> Record:
    """Carry `made` out as it is; where that was done before and nothing has changed since, return its record.

    A plan for a class is bound to the environment here first. Raises StalePlan if the environment has changed since the
    plan was made, OtherClass if it is of another class than the plan.
    """
    require_repair_packages()
    if made.for_class is not None:
        with class_plans.outcomes():
            before = class_plans.carried_out(settings, made)
            if before is not None:
                return before
            prepared = Prepared(class_plans.bound(settings, made), settings, None)
            return class_plans.with_outcome(carry_out(prepared, options, confirm, accept_partial=accept_partial))
    before = _carried_out(settings, made)
    if before is not None:
        return before
    return carry_out(
        Prepared(made, settings, None), options, confirm, accept_partial=accept_partial, edits_project=edits_project
    )


def _carried_out(settings: Settings, made: Plan) -> Record | None:
    """Return the record of `made` where its repair is live and the environment is as it left it."""
    prefix = Path(made.real_prefix)
    newest = next((item for item in live_records(prefix) if item.plan.purpose != "snapshot"), None)
    if (
        newest is None
        or newest.plan.id != made.id
        or newest.outcome != "repaired"
        or not difference(settings, prefix).none
    ):
        return None
    return msgspec.structs.replace(newest, outcome="already")


def carry_out(
    prepared: Prepared,
    options: ApplyOptions,
    confirm: Confirm,
    *,
    cancel: Cancel = never,
    accept_partial: AcceptPartial | None = None,
    edits_project: EditsProject = unedited,
    before_exchange: BeforeExchange | None = None,
) -> Record:
    """Carry out a prepared plan and the plans that the repair loop adds; `confirm` is asked about each.

    `accept_partial` is asked about a repair that leaves a part of what was reported; without it and without the
    option such a one is dropped. `edits_project` is asked whether manifest and lock of the project are written too.
    `cancel` is polled, and stops everything before the commit point. `before_exchange` is asked after the clone is
    verified. Errors before the transaction begins are raised (StalePlan if the environment has changed since); later
    ones are in the record.
    """
    require_names((*options.witnesses, *options.machines))
    choices = prepared.choices if prepared.plan.extendable else None
    settings, made = prepared.settings, prepared.plan
    # the plan's real path, not that of its prefix now: if the link has moved since, the plan is stale
    target = EnvironmentTarget(Path(made.prefix), Path(made.real_prefix))
    return transaction.apply(
        made,
        options=options,
        ports=engine_ports(
            settings,
            target,
            confirm=confirm,
            extend=Loop(settings, choices) if choices is not None else None,
            conda=conda_of(settings, target.real) if (target.real / "conda-meta").is_dir() else None,
            accept_partial=accept_partial,
            edits_project=edits_project,
            before_exchange=before_exchange,
        ),
        # the plan's host may come from --host: checks are judged for the machine that the plan is for
        checks=check_runner(settings, target, host=lambda: made.host, no_gpu=options.no_gpu),
        stream=settings.stream,
        cancel=cancel,
    )


def means(made: Plan, options: ApplyOptions) -> Means:
    """Return how `made` would be carried out now. Leaves nothing on the disk.

    Raises EnvironmentBusy if processes run from the environment, or PreflightError.
    """
    prefix = Path(made.real_prefix)
    found = preflight(prefix, made, options, processes=processes.users(prefix))
    return Means(found.clone, found.staging, found.exchange, found.clone_bytes, found.notes)


def find_choices(settings: Settings, prefix: Path, wish: RepairRequest) -> PlanChoices | Diagnosis:
    """Return the plans for the named playbook or for the findings of log and facts; the diagnosis if healthy."""
    case = load(prefix) if wish.last else None
    facts = observe(settings, prefix)
    playbooks = (find_playbook(settings, wish.playbook),) if wish.playbook else load_playbooks(settings)
    # a named playbook comes without a text that could start the search for crashes
    if wish.playbook and crashes.SEARCHED in playbooks[0].playbook.checks:
        facts = crashes.search(settings, facts, ())
    diagnosis = (
        diagnose_text(settings, playbooks, facts, wish.log, prefix)
        if case is None
        else diagnose_case(settings, playbooks, facts, prefix, case)
    )
    # the command runs only if facts explain nothing: it may take hours, and change files
    if wish.command and not wish.log and not wish.playbook and not diagnosis.explains:
        diagnosis = diagnose_command(settings, playbooks, facts, prefix, wish.command)
    facts = diagnosis.facts or facts  # with what a search has found
    if wish.playbook is None and diagnosis.verdict == "healthy" and not (wish.command or case):
        return diagnosis
    if diagnosis.verdict == "shell" and not _by_activation(diagnosis.findings[0]):
        raise NothingToRepair(
            f"A variable of the shell: {diagnosis.reason or diagnosis.findings[0].summary}",
            cause="It is set where the program is started, so no repair of an environment can help",
            hint="\n".join(diagnosis.advice),
        )
    if diagnosis.verdict == "host":
        target = f" -p {shlex.quote(diagnosis.prefix)}" if diagnosis.prefix else ""
        advice = "\n".join(diagnosis.advice) or f"`envmedic diagnose{target}` shows the evidence"
        raise host_fault(diagnosis.findings[0].summary, advice)
    findings = (_finding_of(playbooks[0], diagnosis),) if wish.playbook else _repairable(diagnosis)
    wanted = RepairGoal(
        facts,
        playbooks,
        findings,
        wish.command if case is None else case.argv,
        program=program_of(case, playbooks, diagnosis, wish.pass_after_s) if case is not None else None,
        extendable=not wish.playbook,
        way=wish.way,
        importing=diagnosis.importing,
        keep_partial=wish.keep_partial,
        reported=_reported(diagnosis, findings, facts),
        refuted=tuple(item for item in diagnosis.every if item.confirmed is False and item.playbook is not None),
    )
    return PlanChoices(settings, installer_of(settings), wanted)


def _reported(diagnosis: Diagnosis, findings: Iterable[Finding], facts: Facts) -> Finding | None:
    """The finding of the text that a repair must end: the first that can be repaired, else a module that nothing brings.

    Such a module is the program's own, or of a distribution that nobody named: a repair of what facts show besides
    would be told as one of the error in the text.
    """
    first = next((one for item in findings for one in item.with_consequences if one.signature is not None), None)
    if first is not None:
        return first
    return _of_module_brought_by_nothing(diagnosis, facts)


def _of_module_brought_by_nothing(diagnosis: Diagnosis, facts: Facts) -> Finding | None:
    nowhere = brought_by_nothing(facts)
    return next((item for item in diagnosis.every if item.groups.get("module") in nowhere), None)


def _by_activation(finding: Finding) -> bool:
    """Whether the environment's activation can set the variable of the shell right."""
    return finding.fix_kind == "change-env-var" and not of_shell(finding.fault)


def _finding_of(loaded: LoadedPlaybook, diagnosis: Diagnosis) -> Finding:
    """Return the playbook's finding, or an unconfirmed one. Raises NothingToRepair if the playbook has no fault."""
    if loaded.playbook.fault is None:
        raise NothingToRepair(
            f"The playbook {loaded.playbook.id} repairs nothing",
            cause=f"It explains what is no fault of an environment: {loaded.playbook.title}",
            hint=f"`envmedic playbooks show {loaded.playbook.id}` says what would help",
        )
    own = (finding for finding in diagnosis.every if finding.playbook == loaded.playbook.id)
    return next(own, None) or Finding(
        fault=loaded.playbook.fault,
        playbook=loaded.playbook.id,
        signature=None,
        confidence=0.0,
        confirmed=None,
        summary=loaded.playbook.title,
        fix_kind=loaded.playbook.fix_kind,
        alternatives=alternatives(loaded.playbook, derive(diagnosis.facts) if diagnosis.facts is not None else {}),
    )


def _repairable(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """Return the repairable findings, best first. Raises NothingToRepair with the reason if there is none."""
    found = repairable(diagnosis)
    if diagnosis.verdict in {"env", "shell"} and found:
        return found
    if diagnosis.verdict == "not-an-env-problem":
        raise NothingToRepair(
            "This is no fault of the environment",
            cause=diagnosis.reason,
            hint="\n".join(diagnosis.advice) or "Change the program; `envmedic diagnose` shows the evidence",
        )
    if diagnosis.verdict == "env" and not any(item.confirmed is None for item in diagnosis.findings):
        raise _by_hand(diagnosis)
    raise NothingToRepair("envmedic knows no repair for this", cause=diagnosis.reason, hint=_way_on(diagnosis))


def _way_on(diagnosis: Diagnosis) -> str:
    """What to do where nothing that was found can be repaired."""
    if any(finding.confirmed is False for finding in diagnosis.findings):
        return f"Name the environment that the program ran in with -p, if that is not {diagnosis.prefix}"
    missing = _of_module_brought_by_nothing(diagnosis, diagnosis.facts) if diagnosis.facts is not None else None
    if missing is not None:
        module = missing.groups["module"]
        return (
            f"Install what brings {module}, which envmedic does not know, or start the program where its own is found"
        )
    return "Give the whole error text with --log FILE, or choose a playbook from `envmedic playbooks list`"


def _by_hand(diagnosis: Diagnosis) -> NothingToRepair:
    """Return the error for findings that are repaired by name, or by hand."""
    first = diagnosis.findings[0]
    return NothingToRepair(
        f"Nothing is changed without your word: {first.summary}",
        cause="No program has failed by it as far as envmedic knows"
        if first.latent
        else "envmedic repairs nothing of this kind",
        hint="; ".join(dict.fromkeys(text for item in diagnosis.findings for text in item.advice)),
    )


def read_plan(path: Path) -> Plan:
    """Return a plan written by ``envmedic plan -o``. Raises InputError if it is unreadable or was edited."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The plan {path} cannot be read", cause=error.strerror, hint="Write one with `envmedic plan -o FILE`"
        ) from error
    hint = "Write one with `envmedic plan -o FILE`; the text of an error is given with --log FILE"
    made = from_json(text, Plan, source=f"The plan {path}", hint=hint)
    if not planner.verify_id(made):
        raise InputError(
            f"The plan {path} was edited after it was made",
            cause="Its content does not agree with its id",
            hint="Make it again with `envmedic plan -o FILE`",
        )
    # the cache that a plan for a class names is that of the machine where it was made
    refuse_other_places(made if made.for_class is None else class_plans.placed(made))
    # the user agreed to this plan alone, and the findings for further ones are not in the file
    return msgspec.structs.replace(made, extendable=False)
