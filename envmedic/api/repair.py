"""Plan and apply: from a wish to exact steps, and from those to a record."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

from envmedic import planner
from envmedic.api import crashes
from envmedic.api.diagnosis import diagnose_lines, diagnose_text
from envmedic.api.joints import check_runner, engine_ports, installer_of
from envmedic.api.observation import observe
from envmedic.api.planning import Case, make_plan, require_change
from envmedic.api.playbooks import find_playbook, load_playbooks
from envmedic.api.settings import Settings, Wish
from envmedic.engine import transaction
from envmedic.engine.protection import refuse_protected
from envmedic.errors import ExitCode, HostFault, InputError, NoSolution, NothingToRepair
from envmedic.model.base import from_json
from envmedic.model.facts import Facts
from envmedic.model.findings import Diagnosis, Finding
from envmedic.model.plan import Plan
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import ApplyOptions, ExtendRequest, Installer
from envmedic.model.record import Record

Confirm = Callable[[Plan], bool]


def plan(settings: Settings, prefix: Path, wish: Wish) -> Plan | Diagnosis:
    """The plan for `wish`, or the diagnosis where nothing is asked for and nothing found; changes nothing.

    Raises NothingToRepair, NoSolution, HostFault and installer errors.
    """
    case = find_case(settings, prefix, wish)
    if isinstance(case, Diagnosis):
        return case
    return require_change(make_plan(settings, case, installer_of(settings)))


def apply(settings: Settings, prefix: Path, wish: Wish, options: ApplyOptions, confirm: Confirm) -> Record | Diagnosis:
    """Plan, confirm, and carry out; the diagnosis where nothing is asked for and nothing found.

    Errors before a transaction began are raised; after it they are in the record.
    """
    refuse_protected(Path(os.path.realpath(prefix)), options.allow)
    made = plan(settings, prefix, wish)
    return made if isinstance(made, Diagnosis) else apply_plan(settings, made, options, confirm)


def apply_plan(settings: Settings, made: Plan, options: ApplyOptions, confirm: Confirm) -> Record:
    """Carry `made` out, and extend it when it may be extended. Raises StalePlan when the environment changed since."""
    prefix = Path(made.real_prefix)
    installer = installer_of(settings, prefix)
    ports = engine_ports(
        installer, prefix=prefix, confirm=confirm, extend=_extender(settings, installer, made) if made.extendable else None
    )
    return transaction.apply(
        made,
        options=options,
        ports=ports,
        checks=check_runner(installer, settings, prefix=prefix, host=lambda: made.host, no_gpu=options.no_gpu),
        stream=settings.stream,
    )


def exit_code(record: Record) -> ExitCode:
    """0 when the transaction did what it was asked to, else its failure's code."""
    return ExitCode.OK if record.failure is None else ExitCode(record.failure.exit_code)


def find_case(settings: Settings, prefix: Path, wish: Wish) -> Case | Diagnosis:
    """What to repair: the named playbook's fault, or the best finding of log and facts; the diagnosis if healthy."""
    facts = observe(settings, prefix)
    playbooks = (find_playbook(settings, wish.playbook),) if wish.playbook else load_playbooks(settings)
    if wish.playbook and crashes.SEARCHED in playbooks[0].playbook.checks:
        facts = crashes.search(settings, facts, ())
    diagnosis = diagnose_text(settings, playbooks, facts, wish.log, prefix)
    facts = diagnosis.facts or facts  # with what a search has found
    if wish.playbook is not None:
        _refuse_host_fault(diagnosis)
        return Case(facts, _finding_of(playbooks[0], diagnosis), playbooks[0], wish.command)
    if diagnosis.verdict == "healthy" and not wish.command:
        return diagnosis
    finding = _best(diagnosis)
    chosen = next(item for item in playbooks if item.playbook.id == finding.playbook)
    return Case(facts, finding, chosen, wish.command, extendable=True)


def _finding_of(loaded: LoadedPlaybook, diagnosis: Diagnosis) -> Finding:
    """The playbook's own finding, or one that nothing has confirmed yet. Raises NothingToRepair where it has no fault."""
    if loaded.playbook.fault is None:
        raise NothingToRepair(
            f"The playbook {loaded.playbook.id} repairs nothing",
            cause=f"It explains what is no fault of an environment: {loaded.playbook.title}",
            hint=f"`envmedic playbooks show {loaded.playbook.id}` says what would help",
        )
    own = (finding for finding in diagnosis.findings if finding.playbook == loaded.playbook.id)
    return next(own, None) or Finding(
        fault=loaded.playbook.fault,
        playbook=loaded.playbook.id,
        signature=None,
        confidence=0.0,
        confirmed=None,
        summary=loaded.playbook.title,
        fix_kind=loaded.playbook.fix_kind,
    )


def _best(diagnosis: Diagnosis) -> Finding:
    """The best finding, if a playbook repairs it. Raises HostFault or NothingToRepair, saying which way it is."""
    _refuse_host_fault(diagnosis)
    if diagnosis.verdict == "env" and diagnosis.findings[0].playbook is not None:
        return diagnosis.findings[0]
    if diagnosis.verdict == "not-an-env-problem":
        raise NothingToRepair(
            "This is no fault of the environment",
            cause=diagnosis.reason,
            hint="Change the program; `envmedic diagnose` shows the evidence",
        )
    raise NothingToRepair(
        "envmedic knows no repair for this",
        cause=diagnosis.reason,
        hint="Give the whole error text with --log FILE, or choose a playbook from `envmedic playbooks list`",
    )


def _refuse_host_fault(diagnosis: Diagnosis) -> None:
    if diagnosis.verdict == "host":
        target = f" -p {shlex.quote(diagnosis.prefix)}" if diagnosis.prefix else ""
        raise HostFault(
            f"A fault of the host: {diagnosis.findings[0].summary}",
            cause="The driver or the hardware is at fault, so no repair of an environment can help",
            hint=f"`envmedic diagnose{target}` shows the evidence",
        )


def _extender(settings: Settings, installer: Installer, first: Plan) -> Callable[[ExtendRequest], Plan | None]:
    """The repair loop: what failed in the clone is diagnosed in turn; the same steps are never taken twice."""
    tried = [first.steps]

    def extend(request: ExtendRequest) -> Plan | None:
        environment = request.environment()
        facts = Facts(host=request.plan.host, environment=environment)
        playbooks = load_playbooks(settings)
        text = [f"{item.reason}\n{item.detail}" for item in request.failed]
        lines = [line.encode() for block in text for line in block.splitlines()]
        diagnosis = diagnose_lines(playbooks, facts, lines, Path(request.plan.prefix))
        made = _extension(settings, installer, facts, diagnosis, playbooks)
        if made is None or made.steps in tried:
            return None
        tried.append(made.steps)
        return made

    return extend


def _extension(
    settings: Settings,
    installer: Installer,
    facts: Facts,
    diagnosis: Diagnosis,
    playbooks: tuple[LoadedPlaybook, ...],
) -> Plan | None:
    try:
        finding = _best(diagnosis)
        chosen = next(item for item in playbooks if item.playbook.id == finding.playbook)
        made = make_plan(settings, Case(facts, finding, chosen, extendable=True), installer)
    except (NothingToRepair, NoSolution, HostFault):
        return None  # nothing left to try: the transaction ends with what failed
    return made if made.steps else None


def read_plan(path: Path) -> Plan:
    """A plan written by ``envmedic plan -o``. Raises InputError when it is unreadable or was edited."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The plan {path} cannot be read", cause=error.strerror, hint="Write one with `envmedic plan -o FILE`"
        ) from error
    made = from_json(text, Plan, source=f"The plan {path}", hint="Write one with `envmedic plan -o FILE`")
    if not planner.verify_id(made):
        raise InputError(
            f"The plan {path} was edited after it was made",
            cause="Its content does not agree with its id",
            hint="Make it again with `envmedic plan -o FILE`",
        )
    return msgspec.structs.replace(made, extendable=False)
