"""One function per command: options to use cases, values to text, results to exit codes.

Each loads the renderer of its own document.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from envmedic import api
from envmedic.cli.options import installers
from envmedic.cli.output import CommandOutput
from envmedic.errors import ConfirmationNeeded, ExitCode, InputError
from envmedic.model.base import to_json
from envmedic.model.checks import VerifyWish
from envmedic.model.findings import Diagnoses, Diagnosis
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import Record
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.text import Line, line

Command = Callable[[argparse.Namespace, CommandOutput], int]
NOTHING_TO_DO = "Nothing to repair. If a program fails all the same, give its error text with --log FILE"
_VERDICT_EXIT = {"healthy": ExitCode.OK, "host": ExitCode.HOST}


def settings_of(args: argparse.Namespace, output: CommandOutput) -> api.Settings:
    """What the options say of how to run."""
    options = vars(args)
    template = options.get("torch_index") or api.TORCH_INDEX
    playbook = options.get("playbook")
    wheels, conda = installers(options.get("installer") or ())
    return api.Settings(
        stream=output.stream,
        host_file=options.get("host"),
        find_links=tuple(options.get("find_links", ())),
        torch_index=template,
        offline=options.get("offline", False),
        installer=wheels,
        conda_installer=conda,
        timeout_s=options.get("timeout"),
        deep=options.get("deep", False),
        pin=options.get("pin", False),
        ahead=options.get("ahead"),
        playbook_files=(playbook,) if playbook and api.is_playbook_file(playbook) else (),
    )


def prefix_of(args: argparse.Namespace, settings: api.Settings, output: CommandOutput) -> Path:
    """The environment meant, named on stderr."""
    prefix = api.find_prefix(settings, api.NamedTarget(name=args.name, prefix=args.prefix, python=args.python))
    output.narrate(f"environment: {prefix}")
    return prefix


def wish_of(args: argparse.Namespace) -> api.RepairRequest:
    """What the options say of what to repair, or to move on. Raises InputError where they say both."""
    if args.policy and (args.playbook or args.log or args.user_command):
        raise InputError(
            "--policy moves an environment on in which nothing is at fault",
            hint="Repair the fault first; leave out --policy, or --playbook, --log and --reproduce",
        )
    return api.RepairRequest(
        playbook=args.playbook, log=args.log, command=args.user_command, policy=args.policy, way=args.way
    )


def diagnose(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic diagnose``."""
    if args.log_only and not args.logs:
        raise InputError("--log-only needs a LOG", hint="Name a file, or `-` for standard input")
    settings = settings_of(args, output)
    if args.playbook and not settings.playbook_files:
        api.show_playbook(settings, args.playbook)  # an id is matched anyway, if there is such a playbook
    found: tuple[Diagnosis, ...]
    if args.reproduce:
        found = (_reproduced(args, settings, output),)
    else:
        prefix = None if args.log_only else prefix_of(args, settings, output)
        found = api.diagnose(settings, prefix, args.logs)
    document: Diagnosis | Diagnoses = found[0] if len(found) == 1 else Diagnoses(diagnoses=found)
    lines = [row for item in found for row in [*_log_title(item, len(found)), *diagnosis_lines(item)]]
    output.document(document, lines)
    return max(int(_VERDICT_EXIT.get(item.verdict, ExitCode.PROBLEM)) for item in found)


def _reproduced(args: argparse.Namespace, settings: api.Settings, output: CommandOutput) -> Diagnosis:
    from envmedic.api import running  # noqa: PLC0415  # only where a command is run

    if args.logs or args.log_only or not args.user_command:
        raise InputError(
            "--reproduce takes a command in the place of a LOG",
            hint="Give it after `--`: envmedic diagnose --reproduce -- python train.py",
        )
    return running.diagnose_reproduced(settings, prefix_of(args, settings, output), args.user_command)


def _log_title(diagnosis: Diagnosis, count: int) -> list[Line]:
    return [line(f"== {diagnosis.log}")] if count > 1 and diagnosis.log else []


def facts(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic facts``."""
    from envmedic.render.documents.facts import facts_lines  # noqa: PLC0415

    settings = settings_of(args, output)
    prefix = None if args.host_only else prefix_of(args, settings, output)
    observed = api.observe(settings, prefix)
    output.document(observed, facts_lines(observed))
    return int(ExitCode.OK)


def plan(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic plan``."""
    from envmedic.render.next_command import apply_command  # noqa: PLC0415

    settings = settings_of(args, output)
    made = api.plan(settings, prefix_of(args, settings, output), wish_of(args))
    if isinstance(made, Diagnosis):
        return _print_healthy(made, output)
    if getattr(args, "fetch", False):
        api.fetch(settings, made)
    if getattr(args, "output", None):
        _write_plan(Path(args.output), made)
    return _print_plan(made, apply_command(made, args), output)


def _print_plan(made: Plan, command: str, output: CommandOutput) -> int:
    from envmedic.render.documents.plan import plan_lines  # noqa: PLC0415

    where = "" if made.host.source == "observed" else " on the host that it is for"
    how = [line(""), line(f"Nothing has been changed. To carry it out{where}:"), line(f"  {command}")]
    output.document(made, [*plan_lines(made), *how])
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
        require_terminal("look at it first with `envmedic plan`")
    if args.lock:
        api.require_folder(Path(args.lock))
    settings = settings_of(args, output)
    confirm = partial(_confirm_plan, output=output, yes=args.yes)
    if args.plan:
        made = _read_plan(args, settings, output)
        return _print_repair(api.apply_plan(settings, made, options_of(args), confirm), settings, args, output)
    done = api.apply(settings, prefix_of(args, settings, output), wish_of(args), options_of(args), confirm)
    return _print_healthy(done, output) if isinstance(done, Diagnosis) else _print_repair(done, settings, args, output)


def _print_repair(record: Record, settings: api.Settings, args: argparse.Namespace, output: CommandOutput) -> int:
    """Print the record of a repair, and lock its result before that where it was asked for."""
    if args.lock:
        record = api.lock_repair(settings, record, Path(args.lock))
    return print_record(record, output)


def _dry_run(args: argparse.Namespace, output: CommandOutput) -> int:
    if not args.plan:
        return plan(args, output)
    made = _read_plan(args, settings_of(args, output), output)
    return _print_plan(made, shlex.join(["envmedic", "apply", args.plan]), output)


def _read_plan(args: argparse.Namespace, settings: api.Settings, output: CommandOutput) -> Plan:
    if args.playbook or args.log or args.user_command or args.way or args.policy:
        raise InputError(
            "A plan file says what to repair", hint="Leave out --playbook, --log, --policy, --way, --reproduce"
        )
    made = api.read_plan(Path(args.plan))
    named = args.name or args.prefix or args.python
    prefix = (
        prefix_of(args, settings, output) if named else api.find_prefix(settings, api.NamedTarget(prefix=made.prefix))
    )
    if Path(os.path.realpath(prefix)) != Path(made.real_prefix):
        raise InputError(
            f"The plan is for {made.prefix}, not for {prefix}",
            cause=None if named else f"{made.prefix} led to {made.real_prefix} when it was made",
            hint=f"Make a plan for this environment: envmedic plan -p {shlex.quote(str(prefix))}",
        )
    if not named:
        output.narrate(f"environment: {made.prefix}")
    return made


def options_of(args: argparse.Namespace) -> ApplyOptions:
    """What the options say of how to carry a repair out."""
    return ApplyOptions(
        no_gpu=args.no_gpu,
        allow=tuple(args.allow),
        clone=args.clone,
        staging=args.staging,
        offline=args.offline,
        max_rounds=args.max_rounds,
        timeout_s=args.timeout,
        keep=args.keep,
    )


def print_record(record: Record, output: CommandOutput, *, moved: bool = False) -> int:
    """Print what a transaction did (`moved`: one that went back or forth), and return its exit code."""
    from envmedic.render.documents.record import record_lines  # noqa: PLC0415

    output.document(record, record_lines(record, moved=moved))
    return int(api.exit_code(record))


def require_terminal(otherwise: str) -> None:
    """Raise unless somebody can answer a question; `otherwise` is what to do instead of adding ``--yes``."""
    if not sys.stdin.isatty():
        raise ConfirmationNeeded(
            "A confirmation is needed and there is no terminal to ask on", hint=f"Add --yes, or {otherwise}"
        )


def _confirm_plan(made: Plan, *, output: CommandOutput, yes: bool) -> bool:
    from envmedic.render.documents.plan import plan_lines  # noqa: PLC0415

    output.narrate_lines([*plan_lines(made, alternatives=not yes), line("")])
    return yes or ask("Repair the environment in a clone and swap it in when the checks pass?")


def ask(question: str) -> bool:
    """Ask on the terminal; anything but yes is no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def verify(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic verify``."""
    from envmedic.render.documents.checks import verification_lines  # noqa: PLC0415

    settings = settings_of(args, output)
    prefix = prefix_of(args, settings, output)
    names = tuple(args.check)
    wish = VerifyWish(names=names, profile=args.profile, no_gpu=args.no_gpu, baseline=args.baseline)
    if args.lock is None:
        verification = api.verify(settings, prefix, wish)
    else:
        verification = api.verify_lock(settings, prefix, Path(args.lock), wish)
    output.document(verification, verification_lines(verification))
    return int(ExitCode.OK if verification.passed else ExitCode.PROBLEM)


def generations(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic undo``, ``redo``, ``history``, ``diff``, ``recover`` and ``prune``."""
    from envmedic.cli.commands import generations as generation_commands  # noqa: PLC0415

    return generation_commands.RUN[args.command](args, output)


def run(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic run``."""
    from envmedic.cli.commands import run as run_command  # noqa: PLC0415  # nothing else runs a command of the user's

    return run_command.run(args, settings_of(args, output), output)


def playbooks(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic playbooks``."""
    from envmedic.cli.commands import playbooks as playbook_commands  # noqa: PLC0415  # the loader's libraries are only needed here

    return playbook_commands.RUN[args.verb](args, output)


def explain(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic explain``."""
    from envmedic.cli.commands import knowledge  # noqa: PLC0415  # its pages are only needed here

    return knowledge.explain(args, output)


def check(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic check``."""
    from envmedic.cli.commands import knowledge  # noqa: PLC0415

    return knowledge.check(args, output)


def guard(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic guard``."""
    from envmedic.cli.commands import guard as guard_command  # noqa: PLC0415

    return guard_command.guard(args, output)


def create(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic create``."""
    from envmedic.cli.commands import create as create_command  # noqa: PLC0415

    return create_command.create(args, output)


def lock(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic lock``."""
    from envmedic.cli.commands import lock as lock_command  # noqa: PLC0415  # its formats are only needed here

    return lock_command.lock(args, output)


def envs(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic envs``."""
    from envmedic.cli.commands import envs as envs_command  # noqa: PLC0415

    return envs_command.envs(args, output)


RUN: dict[str, Command] = {
    "diagnose": diagnose,
    "run": run,
    "facts": facts,
    "envs": envs,
    "plan": plan,
    "apply": apply,
    "verify": verify,
    "undo": generations,
    "redo": generations,
    "history": generations,
    "diff": generations,
    "recover": generations,
    "prune": generations,
    "playbooks": playbooks,
    "explain": explain,
    "check": check,
    "guard": guard,
    "create": create,
    "lock": lock,
}
