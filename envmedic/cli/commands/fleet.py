"""``envmedic fleet``: answers from documents that others collected, and what others are to run; no connection is opened."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from envmedic.api.context.settings import Settings
from envmedic.api.fleet import collected
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InputError
from envmedic.model.answers.rollout import FleetPlan, NodeSettings, Rollout, RolloutWish
from envmedic.model.answers.witness import WitnessReport
from envmedic.render.documents.answers.fleet import drift_lines, fleet_diagnosis_lines, status_lines, survey_lines


def fleet(args: argparse.Namespace, output: CommandOutput) -> int:
    """Run the verb; 1 where a machine is silent, has drifted, or is not repaired, 4 where a rollout goes no further."""
    if args.verb == "witness":
        return _witness(args, output)
    code: int = _VERBS[args.verb](args, Path(args.place), output)
    return code


def _witness(args: argparse.Namespace, output: CommandOutput) -> int:
    from envmedic.api.context.target import find_prefix_or_missing
    from envmedic.api.fleet import witness
    from envmedic.cli.context import target_of
    from envmedic.render.documents.answers.witness import witness_lines

    # whatever transaction is under way there is the one to answer, not one that was cut off
    prefix = find_prefix_or_missing(target_of(args))
    output.narrate(f"environment: {prefix}")
    machine = args.machine or os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    if args.users:
        found = WitnessReport(prefix=str(prefix), machine=machine, processes=witness.users(prefix))
        output.document(found, witness_lines(found, users=True))
        return int(ExitCode.BUSY if found.processes else ExitCode.OK)
    settings = Settings(stream=output.stream)
    found = witness.witness(settings, prefix, machine, limit_s=args.limit, no_gpu=args.no_gpu)
    output.document(found, witness_lines(found))
    return int(_ENDS[found.environment])


def _survey(args: argparse.Namespace, place: Path, output: CommandOutput) -> int:
    if args.on:
        found = collected.collecting(args.on, args.node_prefix, place, shlex.split(args.envmedic or "envmedic"))
    else:
        found = collected.survey(place, _names(args))
    output.document(found, survey_lines(found))
    return _exit(good=not found.silent)


def _diagnose(args: argparse.Namespace, place: Path, output: CommandOutput) -> int:
    from envmedic.api.fleet import diagnosis

    found = diagnosis.diagnose(Settings(stream=output.stream), place, args.log, _names(args))
    output.document(found, fleet_diagnosis_lines(found))
    return _exit(good=found.healthy)


def _drift(args: argparse.Namespace, place: Path, output: CommandOutput) -> int:
    found = collected.drift(place, args.against, _names(args))
    output.document(found, drift_lines(found))
    return _exit(good=not found.drifted and not found.silent)


def _names(args: argparse.Namespace) -> Path | None:
    """The file with the names of all machines."""
    return Path(args.nodes) if args.nodes else None


def _status(args: argparse.Namespace, place: Path, output: CommandOutput) -> int:
    from envmedic.api.fleet import folder, rollout

    if not folder.is_fleet(place):
        if args.stage:
            raise InputError(f"{place} is no directory of a rollout", hint="Leave out --stage")
        status = collected.status(place, _names(args))
    else:
        status = rollout.status(place)
    output.document(status, status_lines(status))
    if args.html:
        from envmedic.api import reporting
        from envmedic.render.reports.fleet_page import fleet_page

        reporting.write({Path(args.html): fleet_page(status, str(place))})
        output.narrate(f"wrote {args.html}")
    if args.stage:
        why = rollout.exceeded(place, args.stage)
        output.narrate(why or "the next batch may begin")
        return int(ExitCode.CHECKS if why else ExitCode.OK)
    return _exit(good=status.done)


def _plan(args: argparse.Namespace, facts: Path, output: CommandOutput) -> int:
    from envmedic.api.fleet import rollout
    from envmedic.render.documents.answers.rollout import fleet_plan_lines

    wish = rollout.PlanWish(
        on=args.on,
        prefix=args.node_prefix,
        playbook=args.node_playbook,
        log=args.log,
        settings=_settings(args) or NodeSettings(),
    )
    made: FleetPlan = rollout.plan(Settings(stream=output.stream), facts, Path(args.output), wish, _names(args))
    output.document(made, fleet_plan_lines(made))
    return _exit(good=bool(made.classes))


def _settings(args: argparse.Namespace) -> NodeSettings | None:
    """How envmedic is started on the machines; None where no option tells."""
    if not (args.envmedic or args.node_links or args.online or args.node_no_gpu or args.limit or args.drain):
        return None
    usual = NodeSettings()
    return NodeSettings(
        command=tuple(shlex.split(args.envmedic)) if args.envmedic else usual.command,
        find_links=tuple(args.node_links or ()),
        offline=not args.online,
        no_gpu=args.node_no_gpu,
        limit_s=args.limit or usual.limit_s,
        drain=args.drain,
    )


def _rollout(args: argparse.Namespace, place: Path, output: CommandOutput) -> int:
    from envmedic.api.fleet import folder, rollout, shared

    stepwise = args.canary is not None or args.batches or args.max_fail
    before = folder.begun(place)
    if args.shared is not None or (before is not None and before.shared is not None):
        if stepwise:
            raise InputError(
                "A shared environment is repaired once, on all machines",
                hint="Leave out --canary, --batches, --max-fail",
            )
        found = shared.rolled_out(
            place, args.shared or None, args.witnesses, _settings(args), layout=args.layout, retry=args.retry
        )
        return _printed(found, place, output)
    if args.witnesses is not None or args.layout is not None:
        raise InputError("--witnesses and --layout are of an environment that machines share", hint="Add --shared")
    wish = None
    if stepwise:
        usual = RolloutWish()
        wish = RolloutWish(
            canary=usual.canary if args.canary is None else args.canary,
            batches=tuple(args.batches.split(",")) if args.batches else usual.batches,
            max_fail=args.max_fail or usual.max_fail,
        )
    return _printed(rollout.rollout(place, wish, _settings(args), retry=args.retry), place, output)


def _undo(args: argparse.Namespace, place: Path, output: CommandOutput) -> int:
    from envmedic.api.fleet import rollout

    return _printed(rollout.undo(place, tuple(args.only)), place, output)


def _printed(found: Rollout, place: Path, output: CommandOutput) -> int:
    from envmedic.render.documents.answers.rollout import rollout_lines

    output.document(found, rollout_lines(found, str(place)))
    if found.left.stopped:
        return int(ExitCode.CHECKS)
    return _exit(good=bool(found.left.stages) or not (found.failed or found.taken_back))


def _exit(*, good: bool) -> int:
    return int(ExitCode.OK if good else ExitCode.PROBLEM)


_VERBS = {
    "survey": _survey, "diagnose": _diagnose, "drift": _drift, "plan": _plan, "rollout": _rollout, "status": _status,
    "undo": _undo,
}  # fmt: skip
_ENDS = {
    "repaired": ExitCode.OK, "unchanged": ExitCode.CHECKS, "restored": ExitCode.CHECKS, None: ExitCode.PROBLEM,
}  # fmt: skip
"""How a witness exits, by the end of the repair."""
