"""The program: one boundary that turns everything into documents, text and exit codes."""

from __future__ import annotations

import argparse
import mmap
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from envmedic.cli.options import FALSE, require_readable, split_command
from envmedic.cli.parser import WITH_VALUE, build_parser
from envmedic.errors import (
    RECOVERABLE,
    UNCHANGED,
    EnvmedicError,
    ExitCode,
    InputError,
    InternalError,
    Interrupted,
    RepairPackageMissing,
    damaged_byte_code,
    exhausted,
    missing_package,
    storage,
)

TYPE_CHECKING = False  # as in typing, which takes longer to load than `--version` may
if TYPE_CHECKING:
    from envmedic.api.context.settings import Settings
    from envmedic.cli.output import CommandOutput
    from envmedic.model.ports import ApplyOptions

    Command = Callable[[argparse.Namespace, CommandOutput], int]
    Ui = Callable[[Settings, ApplyOptions, str], int]

_INSTALLERS = ("pip", "uv", "conda", "python", "mamba", "micromamba", "pixi", "poetry", "pdm", "hatch", "easy_install")
"""Beginnings of the names of installers; which they are is for `planner.guard.installer_commands` to say."""
_SPARE_BYTES = 4 << 20
"""Given back where memory has run out: to say so takes some. Nothing writes to it, so it takes none before."""
_HOMES = {
    "diagnose": "diagnose",
    "run": "run",
    "facts": "diagnose",
    "envs": "envs",
    "plan": "repair",
    "apply": "repair",
    "verify": "repair",
    "pip": "wrapped",
    "uv": "wrapped",
    "conda": "wrapped",
    "snapshot": "generations",
    "undo": "generations",
    "redo": "generations",
    "history": "generations",
    "diff": "generations",
    "recover": "generations",
    "report": "report",
    "prune": "generations",
    "playbooks": "playbooks",
    "explain": "knowledge",
    "check": "knowledge",
    "data": "data",
    "guard": "guard",
    "fleet": "fleet",
    "create": "create",
    "lock": "lock",
}
"""Module of `cli` that holds the function of each command, by its name. Only that of the given command is loaded."""

_TEXT_ALONE = {"completion": "completion", "agents": "for_agents", "mcp": "for_agents", "notebook": "for_notebooks"}
"""Modules of the commands whose standard output is a text or a protocol, never a document."""


def main(argv: Sequence[str] | None = None, *, ui: Ui | None = None) -> int:  # noqa: PLR0911  # one for each way to start
    """Run one command and return its exit code; without a command and in a terminal, `ui` if there is one."""
    given = list(sys.argv[1:] if argv is None else argv)
    words, _ = split_command(given)
    output: CommandOutput | None = None  # loaded when something is said: `--version` and `--help` are quick
    # Read before the parser runs: its own errors must follow --json too.
    json = "--json" in words or os.environ.get("ENVMEDIC_JSON", "") not in FALSE
    spare = mmap.mmap(-1, _SPARE_BYTES)  # a mapping of its own goes back at once, unlike what malloc was given
    try:
        require_readable(given)
        if given[:1] == ["__complete"]:
            return _complete(given[1:])
        place = _place_of_ui(given)
        if place is not None:
            return _open_at(ui, place)
        args = parse(given)
        if args.command is None:
            return _without_command(ui)
        # None of them has the output options that `_output` reads.
        if args.command in _TEXT_ALONE:
            return int(_function(_TEXT_ALONE[args.command], args.command)(args))
        # As root only: everything below runs as the owner of the environment, before any of its files is read.
        ended = _handed_over(args, argv) if os.geteuid() == 0 else None
        if ended is None:
            output = _output(args)
            ended = _run(args, output)
        return ended  # noqa: TRY300  # no else: what is imported here is part of the command
    except EnvmedicError as error:
        return _told(_gone_on(error, given, output), output or _bare_output(json=json))
    except KeyboardInterrupt:
        (output or _bare_output(json=json)).error(Interrupted("Interrupted"))
        return int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # the one boundary: a bug is reported with its traceback
        spare.close()
        return _told(_gone_on(_known(error, output), given, output), output or _bare_output(json=json))


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line, with the user's own command. Raises InputError."""
    installer = _installer(given)
    words, command = split_command(given) if installer is None else (installer[0], ())
    args: argparse.Namespace = build_parser().parse_args(words)
    args.user_command = command
    if installer is not None and installer[1]:
        args.words = installer[1]
    return args


def _installer(given: Sequence[str]) -> tuple[list[str], tuple[str, ...]] | None:
    """The words for the parser and those of an installer, where the command line begins with one."""
    if not given or not os.path.basename(given[0].lstrip("!%")).startswith(_INSTALLERS):  # noqa: PTH119  # quicker
        return None
    from envmedic.planner.guard import installer_commands

    found = installer_commands.started(given)
    if found is None:
        return None
    own, command = installer_commands.split_own(found.rest, WITH_VALUE)
    named, rest = installer_commands.split_place(found.tool, command)
    told = bool({"-p", "--prefix", "-n", "--name", "--python"} & {*own})
    if told and named:
        raise InputError("The environment is named twice", hint=f"Name it once: {' '.join(named)}, or before {rest[0]}")
    by_path = [] if told or found.python is None else ["--python", found.python]
    return [found.tool, *(named or by_path), *own], rest


def _handed_over(args: argparse.Namespace, given: Sequence[str] | None) -> int | None:
    from envmedic.cli import as_owner

    return as_owner.hand_over(args, given)


def _known(error: Exception, output: CommandOutput | None) -> EnvmedicError:
    from envmedic.render.documents.errors import bug

    environment = RECOVERABLE if _begun(output) else UNCHANGED
    # `bug` comes last: a full disk or a missing package raises an ordinary exception too. Byte code takes time.
    return (
        exhausted(error, environment=environment)
        or missing_package(error, environment=environment)
        or storage(error, environment=environment)
        or damaged_byte_code(error, environment=environment)
        or bug(error, environment=environment)
    )


def _begun(output: CommandOutput | None) -> bool:
    return output is not None and output.stream.transaction is not None


def _gone_on(error: EnvmedicError, given: Sequence[str], output: CommandOutput | None) -> EnvmedicError:
    """Where only the extra `repair` is missing, and the user agrees, this does not return; else the error to tell."""
    if not isinstance(error, RepairPackageMissing) or _begun(output):
        return error
    from envmedic.cli import own_place

    try:
        own_place.go_on(given)
    except EnvmedicError as failed:
        return failed
    return error


def _told(error: EnvmedicError, output: CommandOutput) -> int:
    if isinstance(error, InternalError) and not output.json:
        from envmedic.cli import bugs

        error = bugs.kept(error)
    output.error(error)
    return int(error.exit_code)


def _complete(words: Sequence[str]) -> int:
    from envmedic.cli import completion

    return completion.answer(words)


def _without_command(ui: Ui | None) -> int:
    return _short_help() if ui is None or not _in_terminal() else _open(ui)


def _output(args: argparse.Namespace) -> CommandOutput:
    from envmedic.cli.output import CommandOutput

    return CommandOutput.of(args)


def _run(args: argparse.Namespace, output: CommandOutput) -> int:
    if args.user_command and not (getattr(args, "reproduce", False) or args.command in {"run", "guard"}):
        raise InputError("A command after `--` belongs to --reproduce", hint="Add --reproduce before the `--`")
    return int(command(args.command)(args, output))


def command(name: str) -> Command:
    """Return the function of the command `name`."""
    found: Command = _function(f"commands.{_HOMES[name]}", name)
    return found


def _function(module: str, name: str) -> Callable[..., int]:
    found: Callable[..., int] = getattr(import_module(f"{__package__}.{module}"), name)
    return found


def _in_terminal() -> bool:
    streams = (sys.stdin, sys.stdout, sys.stderr)  # Textual draws on the last
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") not in {None, "", "dumb", "unknown"}


def _place_of_ui(given: Sequence[str]) -> str | None:
    """DIR of ``envmedic -p DIR``, which names an environment and no command."""
    match given:
        case ["-p" | "--prefix", place] if place:
            return place
        case [word] if word.startswith("--prefix=") and len(word) > len("--prefix="):
            return word.partition("=")[2]
        case _:
            return None


def _open_at(ui: Ui | None, place: str) -> int:
    """Open the terminal UI on the environment at `place`. Raises InputError without a terminal."""
    if ui is None or not _in_terminal():
        import shlex

        again = shlex.join(["envmedic", "diagnose", "-p", place])
        raise InputError("There is no command, and no terminal to open the UI in", hint=f"Name a command: {again}")
    return _open(ui, place)


def _open(ui: Ui, place: str = "") -> int:
    """Open the terminal UI, on the environment at `place`, with the settings that variables give to options."""
    from envmedic.cli import context

    # a repair has the options of every setting that the UI uses
    args = build_parser().parse_args(["apply"])
    return ui(context.settings_of(args, _output(args)), context.options_of(args), place)


def _short_help() -> int:
    parser = build_parser()
    parser.print_usage(sys.stderr)
    print("Start with `envmedic diagnose LOG` or `envmedic --help`", file=sys.stderr)
    return int(ExitCode.USAGE)


def _bare_output(*, json: bool) -> CommandOutput:
    """The output for errors that occur before the output options are parsed."""
    from envmedic.cli.output import CommandOutput

    return CommandOutput(json=json, quiet=False, verbose=0, colour="auto", events=None)
