"""``envmedic plan``, ``envmedic apply`` and ``envmedic verify``."""

from __future__ import annotations

import argparse
import shlex
from functools import cache, partial
from pathlib import Path

from msgspec.structs import replace

from envmedic.api import fetching, repair, verification
from envmedic.api.context.settings import NamedTarget, RepairRequest, Settings
from envmedic.api.fleet import class_plans
from envmedic.api.locking import locks
from envmedic.cli.context import (
    agreed,
    ask,
    options_of,
    prefix_of,
    prefix_to_change,
    print_record,
    require_terminal,
    settings_of,
    target_of,
)
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InputError, RepairDeclined
from envmedic.linked_prefix import real_prefix
from envmedic.model.base import to_json
from envmedic.model.checks import VerifyWish
from envmedic.model.findings import Diagnosis
from envmedic.model.pins import ProjectEdit
from envmedic.model.plan import Plan
from envmedic.model.record import Left, Record
from envmedic.planner.identity import named
from envmedic.render.documents.checks import verification_lines
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.documents.plan import plan_lines
from envmedic.render.documents.record import left_lines
from envmedic.render.next_command import apply_command
from envmedic.render.style import duration
from envmedic.render.text import TextPart, line, part

NOTHING_TO_DO = "Nothing to repair. If a program fails all the same, give its error text with --log FILE"


def wish_of(args: argparse.Namespace) -> RepairRequest:
    """The repair or the change of release that the options request. Raises InputError if they request both."""
    if args.policy and (args.playbook or args.log or args.user_command or args.last):
        raise InputError(
            "--policy moves an environment on in which nothing is at fault",
            hint="Repair the fault first; leave out --policy, or --playbook, --log, --last and --reproduce",
        )
    if args.last and (args.log or args.user_command):
        raise InputError(
            "--last brings a text and a command of its own", hint="Leave out --last, or --log and --reproduce"
        )
    if args.pass_after and not args.last:
        raise InputError("--pass-after is about the program of --last", hint="Add --last, or leave it out")
    return RepairRequest(
        playbook=args.playbook,
        log=args.log,
        command=args.user_command,
        last=args.last,
        pass_after_s=args.pass_after,
        policy=args.policy,
        way=args.way,
        keep_partial=getattr(args, "keep_partial", False),
    )


def plan(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic plan``."""
    target, settings = target_of(args), settings_of(args, output)
    if getattr(args, "for_class", False) and not (args.output or output.json):
        raise InputError("--for-class makes a plan to carry out on other machines", hint="Name a file for it with -o")
    if args.user_command:
        target, settings = agreed(target, settings)
    made = repair.plan(settings, prefix_of(target, settings, output), wish_of(args))
    if isinstance(made, Diagnosis):
        return _print_healthy(made, output)
    if output.interrupted is not None:
        text = f"Made while transaction {output.interrupted} was interrupted: `envmedic recover` settles it first"
        made = named(replace(made, notes=(*made.notes, text)))
    if getattr(args, "for_class", False):
        made = class_plans.for_class(settings, made)
    if getattr(args, "fetch", False):
        fetching.fetch(settings, made)
    if getattr(args, "output", None):
        _write_plan(Path(args.output), made)
    return _print_plan(made, apply_command(made, args), output)


def _print_plan(made: Plan, command: str, output: CommandOutput) -> int:
    where = "" if made.host.source == "observed" else " on the host that it is for"
    if any(item.kind == "unproven" for item in made.obstacles):
        where += ", with no proof on a GPU"
    how = [
        line(""),
        line(f"Nothing has been changed. To carry it out{where}:", "bold"),
        (TextPart("  "), part(command, "command")),
    ]
    output.document(made, [*plan_lines(made, detail=output.verbose), *how])
    return int(ExitCode.OK)


def _print_healthy(diagnosis: Diagnosis, output: CommandOutput) -> int:
    output.document(diagnosis, [*diagnosis_lines(diagnosis), line(NOTHING_TO_DO)])
    return int(ExitCode.OK)


def _write_plan(path: Path, made: Plan) -> None:
    try:
        path.write_text(to_json(made) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written", cause=error.strerror, hint="Name another file with -o") from error


def apply(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic apply``."""
    if args.dry_run:
        return _dry_run(args, output)
    if not args.yes:
        # before anything is read: without a terminal the command fails at once
        require_terminal("look at it first with `envmedic plan`")
    if args.lock:
        # before the repair: a directory that cannot be written must not be discovered after it
        locks.require_folder(Path(args.lock))
    settings = settings_of(args, output)
    edits = cache(partial(_edits_project, asked=args.edit_project, yes=args.yes))
    confirm = partial(_confirm_plan, output=output, yes=args.yes)
    accept = None if args.yes else partial(_accept_partial, output=output)
    if args.plan:
        settings = replace(settings, unnamed=False)  # the plan names it
        made = _read_plan(args, settings, output)
        record = repair.apply_plan(
            settings, made, options_of(args), confirm, accept_partial=accept, edits_project=edits
        )
        return _print_repair(record, settings, args, output)
    target, settings = agreed(target_of(args), settings)
    prefix = prefix_to_change(target, settings, output)
    if args.user_command and not args.yes:
        _require_first_run(prefix, args, output)
    done = repair.apply(
        settings,
        prefix,
        wish_of(args),
        options_of(args),
        confirm,
        accept_partial=accept,
        edits_project=edits,
    )
    return _print_healthy(done, output) if isinstance(done, Diagnosis) else _print_repair(done, settings, args, output)


def _print_repair(record: Record, settings: Settings, args: argparse.Namespace, output: CommandOutput) -> int:
    """Print the record of a repair, and lock its result before that where it was asked for."""
    if args.lock:
        record = locks.lock_repair(settings, record, Path(args.lock))
    return print_record(record, output)


def _dry_run(args: argparse.Namespace, output: CommandOutput) -> int:
    if not args.plan:
        return plan(args, output)
    settings = settings_of(args, output)
    made = _read_plan(args, settings, output)
    args.output = args.plan  # the plan is in a file already
    if made.for_class is not None:
        found = class_plans.foreseen(settings, made)
        if isinstance(found, Record):
            return print_record(found, output)
        made = found
    return _print_plan(made, apply_command(made, args), output)


def _read_plan(args: argparse.Namespace, settings: Settings, output: CommandOutput) -> Plan:
    if args.playbook or args.log or args.user_command or args.way or args.policy or args.last or args.pass_after:
        raise InputError(
            "A plan file says what to repair",
            hint="Leave out --playbook, --log, --last, --pass-after, --policy, --way, --reproduce",
        )
    made = repair.read_plan(Path(args.plan))
    given = target_of(args) if args.name or args.prefix or args.python else None
    # Only a real repair settles an interrupted transaction first: a dry run changes nothing.
    find = prefix_of if args.dry_run else prefix_to_change
    prefix = find(given or NamedTarget(prefix=made.prefix), settings, output)
    # a symbolic link may have been changed since the plan was made
    if real_prefix(prefix) != Path(made.real_prefix):
        raise InputError(
            f"The plan is for {made.prefix}, not for {prefix}",
            cause=None if given else f"{made.prefix} led to {made.real_prefix} when it was made",
            hint=f"Make a plan for this environment: envmedic plan -p {shlex.quote(str(prefix))}",
        )
    return made


def _confirm_plan(made: Plan, *, output: CommandOutput, yes: bool) -> bool:
    output.narrate_lines([*plan_lines(made, alternatives=not yes, detail=output.verbose), line("")])
    program = ", run your program there," if any(check.name == "command" for check in made.checks) else ""
    return yes or ask(f"Repair the environment in a clone{program} and swap it in when the checks pass?")


def _require_first_run(prefix: Path, args: argparse.Namespace, output: CommandOutput) -> None:
    """Say what is run before there is a plan, and ask. Raises RepairDeclined.

    With a text or a playbook nothing is run before the plan, which has a question of its own.
    """
    if args.log or args.playbook:
        return
    limit = f"until it ends, at most {duration(args.timeout)} (--timeout)" if args.timeout else "until it ends"
    output.narrate_lines([
        line(f"If the facts do not explain how it fails, this runs once before there is a plan, {limit}:"),
        (TextPart("  "), part(shlex.join(args.user_command), "command")),
        line(f"  in {Path.cwd()}, in {prefix} as it is; whatever it writes stays written"),
    ])  # fmt: skip
    if not ask("Run it if need be?"):
        raise RepairDeclined("Declined", hint="Give the text of its failure instead: --log FILE")


def _edits_project(edit: ProjectEdit, *, asked: bool, yes: bool) -> bool:
    """Whether files of the user's own are written: never without a word about them, `--yes` is about the repair."""
    names = " and ".join(item.name for item in edit.files)
    return asked or (not yes and ask(f"Write this to {names} in {edit.folder}, too?"))


def _accept_partial(left: tuple[Left, ...], *, output: CommandOutput) -> bool:
    output.narrate_lines([line(""), *left_lines(left)])
    return ask("A part is repaired, and nothing got worse. Swap it in all the same?")


def verify(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic verify``."""
    target, settings = agreed(target_of(args), settings_of(args, output))
    prefix = prefix_of(target, settings, output)
    names = tuple(args.check)
    wish = VerifyWish(names=names, profile=args.profile, no_gpu=args.no_gpu, seed=args.seed, baseline=args.baseline)
    if args.lock is None:
        found = verification.verify(settings, prefix, wish)
    else:
        found = verification.verify_lock(settings, prefix, Path(args.lock), wish)
    output.document(found, verification_lines(found))
    return int(ExitCode.OK if found.passed else ExitCode.PROBLEM)
