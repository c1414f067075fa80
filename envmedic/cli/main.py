"""The program: one boundary that turns everything into documents, text and exit codes."""

from __future__ import annotations

import argparse
import mmap
import os
import sys
from collections.abc import Callable, Sequence

from envmedic.cli.options import FALSE, require_readable, split_command
from envmedic.cli.parser import build_parser
from envmedic.errors import RECOVERABLE, UNCHANGED, EnvmedicError, ExitCode, InputError, Interrupted, exhausted

TYPE_CHECKING = False  # as in typing, which takes longer to load than `--version` may
if TYPE_CHECKING:
    from envmedic.ahead import Ahead
    from envmedic.api.context.settings import Settings
    from envmedic.cli.output import CommandOutput
    from envmedic.model.ports import ApplyOptions

    Ui = Callable[[Settings, ApplyOptions], int]

_SPARE_BYTES = 4 << 20
"""Given back where memory has run out: to say so takes some. Nothing writes to it, so it takes none before."""
_LOOKING = frozenset({"diagnose", "facts", "plan", "check"})


def main(argv: Sequence[str] | None = None, *, ui: Ui | None = None) -> int:
    """Run one command and return its exit code; without a command and in a terminal, `ui` if there is one."""
    given = list(sys.argv[1:] if argv is None else argv)
    words, command = split_command(given)
    output: CommandOutput | None = None  # loaded when something is said: `--version` and `--help` are quick
    json = "--json" in words or os.environ.get("ENVMEDIC_JSON", "") not in FALSE
    spare = mmap.mmap(-1, _SPARE_BYTES)  # a mapping of its own goes back at once, unlike what malloc was given
    try:
        require_readable(given)
        if given[:1] == ["__complete"]:
            return _complete(given[1:])
        args = build_parser().parse_args(words)
        if args.command in {None, "completion"}:
            return _completion(args) if args.command else _without_command(ui)
        args.user_command = command
        from contextlib import closing  # noqa: PLC0415  # `--version` and `--help` need none of it

        with closing(_ahead(args)) as args.ahead:
            from envmedic.cli.output import CommandOutput  # noqa: PLC0415

            output = CommandOutput.of(args)
            return _run(args, output)
    except EnvmedicError as error:
        (output or _bare_output(json=json)).error(error)
        return int(error.exit_code)
    except KeyboardInterrupt:
        (output or _bare_output(json=json)).error(Interrupted("Interrupted"))
        return int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # the one boundary: a bug is reported with what is needed to mend it
        spare.close()
        return _unexpected(error, output or _bare_output(json=json))


def _unexpected(error: Exception, output: CommandOutput) -> int:
    from envmedic.render.documents.errors import bug  # noqa: PLC0415

    environment = UNCHANGED if output.stream.transaction is None else RECOVERABLE
    known = exhausted(error, environment=environment) or bug(error, environment=environment)
    output.error(known)
    return int(known.exit_code)


def _complete(words: Sequence[str]) -> int:
    from envmedic.cli import completion  # noqa: PLC0415  # only a shell that completes asks for it

    return completion.answer(words)


def _completion(args: argparse.Namespace) -> int:
    from envmedic.cli import completion  # noqa: PLC0415

    return completion.show(args)


def _without_command(ui: Ui | None) -> int:
    return _short_help() if ui is None or not _in_terminal() else _open(ui)


def _ahead(args: argparse.Namespace) -> Ahead:
    """What can be begun already on the environment that is probably meant."""
    from envmedic.ahead import Ahead  # noqa: PLC0415  # `--version` and `--help` need none of it

    ahead = Ahead()
    if args.command not in _LOOKING and not (args.command == "undo" and args.yes):
        return ahead
    prefix = args.prefix or os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    alone = getattr(args, "log_only", False) or getattr(args, "host_only", False)
    if not prefix or args.name or args.python or alone:
        return ahead
    if args.command == "undo":
        from envmedic.api.undoing import begin  # noqa: PLC0415

        begin(ahead, prefix)
    else:
        ahead.begin_survey(prefix)
    return ahead


def _run(args: argparse.Namespace, output: CommandOutput) -> int:
    from envmedic.cli.commands import repair  # noqa: PLC0415  # `--version` and `--help` need none of it

    if args.user_command and not (getattr(args, "reproduce", False) or args.command in {"run", "guard"}):
        raise InputError("A command after `--` belongs to --reproduce", hint="Add --reproduce before the `--`")
    return int(repair.RUN[args.command](args, output))


def _in_terminal() -> bool:
    streams = (sys.stdin, sys.stdout, sys.stderr)  # Textual draws on the last
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") not in {None, "", "dumb", "unknown"}


def _open(ui: Ui) -> int:
    """Open the terminal UI, told what the variables say that set options of commands."""
    from envmedic.cli.commands import repair  # noqa: PLC0415  # `--version` and `--help` need none of it
    from envmedic.cli.output import CommandOutput  # noqa: PLC0415

    args = build_parser().parse_args(["apply"])
    return ui(repair.settings_of(args, CommandOutput.of(args)), repair.options_of(args))


def _short_help() -> int:
    parser = build_parser()
    parser.print_usage(sys.stderr)
    print("Start with `envmedic diagnose LOG` or `envmedic --help`", file=sys.stderr)
    return int(ExitCode.USAGE)


def _bare_output(*, json: bool) -> CommandOutput:
    """For what goes wrong before the output options are known."""
    from envmedic.cli.output import CommandOutput  # noqa: PLC0415

    return CommandOutput(json=json, quiet=False, verbose=0, colour="auto", events=None)
