"""Parts that commands share: their settings, their environment, questions on the terminal, and records."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

import msgspec

from envmedic.api import playbooks
from envmedic.api.context.settings import TORCH_INDEX, NamedTarget, Settings
from envmedic.api.context.target import find_prefix
from envmedic.api.recovery import settled_prefix, tell_unsettled
from envmedic.cli.options import installers
from envmedic.cli.output import CommandOutput
from envmedic.errors import ConfirmationNeeded, ExitCode, RepairDeclined
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import Record
from envmedic.probe.prefix import targets
from envmedic.render.documents.errors import failure_lines
from envmedic.render.documents.record import left_lines, record_lines
from envmedic.render.streams import write


def settings_of(args: argparse.Namespace, output: CommandOutput) -> Settings:
    """The settings given by the options."""
    options = vars(args)
    template = options.get("torch_index") or TORCH_INDEX
    playbook = options.get("playbook")
    wheels, conda = installers(options.get("installer") or ())
    return Settings(
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
        lifts_pins="pinned" in options.get("allow", ()),
        unnamed=targets.is_unnamed(
            name=options.get("name"), prefix=options.get("prefix"), python=options.get("python")
        ),
        # an id needs no file: shipped playbooks and the user's own are always loaded
        playbook_files=(playbook,) if playbook and playbooks.is_playbook_file(playbook) else (),
    )


def target_of(args: argparse.Namespace) -> NamedTarget:
    """The environment as the options name it."""
    return NamedTarget(name=args.name, prefix=args.prefix, python=args.python)


def prefix_of(target: NamedTarget, settings: Settings, output: CommandOutput) -> Path:
    """The environment meant, named on stderr, for a command that only reads it.

    Reports an interrupted transaction on it, there and in the command's document, and does not settle it.
    """
    try:
        prefix = find_prefix(target)
        output.narrate(f"environment: {prefix}")
    except targets.NoneActive:
        if not settings.unnamed:
            raise
        prefix = targets.of_project()
        output.narrate(f"environment: {prefix} (that of this project; none is named or active)")
    output.interrupted = tell_unsettled(settings, prefix)
    return prefix


def agreed(target: NamedTarget, settings: Settings) -> tuple[NamedTarget, Settings]:
    """The environment for a command that runs its programs, or changes it, with the settings that allow this.

    That of the project around the working directory is taken after a yes. Raises ConfirmationNeeded without a terminal,
    and RepairDeclined.
    """
    if not settings.unnamed or target != NamedTarget():
        return target, msgspec.structs.replace(settings, unnamed=False)
    prefix = targets.of_project()
    name = f"-p {shlex.quote(str(prefix))}"
    if not sys.stdin.isatty():
        raise ConfirmationNeeded(
            f"{prefix}, the environment of this project, is not named, and its own code would run",
            cause="the project may come from others, with an environment that they prepared",
            hint=f"Name it: {name}",
        )
    if not ask(f"None is named or active. Take {prefix}, that of this project, and run its code?"):
        raise RepairDeclined("Declined")
    return NamedTarget(prefix=str(prefix)), msgspec.structs.replace(settings, unnamed=False)


def prefix_to_change(target: NamedTarget, settings: Settings, output: CommandOutput) -> Path:
    """The environment meant, named on stderr. An interrupted transaction on it is settled first."""
    prefix = settled_prefix(settings, target)
    output.narrate(f"environment: {prefix}")
    return prefix


def options_of(args: argparse.Namespace) -> ApplyOptions:
    """The apply options given on the command line."""
    return ApplyOptions(
        no_gpu=args.no_gpu,
        allow=tuple(args.allow),
        clone=args.clone,
        staging=args.staging,
        layout=args.layout,
        offline=args.offline,
        max_rounds=args.max_rounds,
        timeout_s=args.timeout,
        keep=args.keep,
        profile=args.profile,
        keep_partial=args.keep_partial,
        witnesses=args.witnesses,
        machines=args.machines,
        witness_limit_s=args.witness_limit,
    )


def print_record(record: Record, output: CommandOutput, *, moved: bool = False) -> int:
    """Print what a transaction did (`moved`: one that went back or forth), and return its exit code."""
    if output.quiet and not output.json:
        # the exit code says that it was done; what was not, or not wholly, has to be said
        if record.failure is not None:
            output.insist([*failure_lines(record.failure), *left_lines(record.left)])
        elif record.left:
            output.insist(left_lines(record.left))
    else:
        output.document(record, record_lines(record, moved=moved))
    if record.failure is not None:
        return int(ExitCode(record.failure.exit_code))
    return int(ExitCode.PARTIAL if record.outcome == "partial" and not moved else ExitCode.OK)


def require_terminal(otherwise: str) -> None:
    """Raise ConfirmationNeeded without a terminal on stdin; the hint offers `otherwise` beside ``--yes``."""
    if not sys.stdin.isatty():
        raise ConfirmationNeeded(
            "A confirmation is needed and there is no terminal to ask on", hint=f"Add --yes, or {otherwise}"
        )


def ask(question: str) -> bool:
    """Ask on the terminal; anything but yes is no."""
    # on stderr, unlike `input` would: stdout takes the document and may be a pipe
    write(sys.stderr, f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
