"""The program: one boundary that turns everything into documents, text and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from envmedic import __version__
from envmedic.cli.options import FALSE, require_readable, split_command
from envmedic.cli.output import Output
from envmedic.cli.parser import build_parser
from envmedic.errors import RECOVERABLE, UNCHANGED, EnvmedicError, ExitCode, InputError, InternalError, Interrupted


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words, command = split_command(sys.argv[1:] if argv is None else argv)
    output = _bare_output(json="--json" in words or os.environ.get("ENVMEDIC_JSON", "") not in FALSE)
    try:
        require_readable([*words, *command])
        args = build_parser().parse_args(words)
        if args.command is None:
            return _short_help()
        args.user_command = command
        output = Output.of(args)
        return _run(args, output)
    except EnvmedicError as error:
        output.error(error)
        return int(error.exit_code)
    except KeyboardInterrupt:
        output.error(Interrupted("Interrupted"))
        return int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # the one boundary: a bug is reported with what is needed to mend it
        output.error(_bug(error, in_transaction=output.stream.transaction is not None))
        return int(ExitCode.INTERNAL)


def _run(args: argparse.Namespace, output: Output) -> int:
    from envmedic.cli import commands  # noqa: PLC0415  # `--version` and `--help` need none of it

    if args.user_command and not (getattr(args, "reproduce", False) or args.command in {"run", "guard"}):
        raise InputError("A command after `--` belongs to --reproduce", hint="Add --reproduce before the `--`")
    return int(commands.RUN[args.command](args, output))


def _short_help() -> int:
    parser = build_parser()
    parser.print_usage(sys.stderr)
    print("Start with `envmedic diagnose LOG` or `envmedic --help`", file=sys.stderr)
    return int(ExitCode.USAGE)


def _bare_output(*, json: bool) -> Output:
    """For what goes wrong before the output options are known."""
    return Output(json=json, quiet=False, verbose=0, colour="auto", events=None)


def _bug(error: Exception, *, in_transaction: bool) -> InternalError:
    import traceback  # noqa: PLC0415  # only for a bug

    trace = "".join(traceback.format_exception(error))
    where = f"envmedic {__version__}, Python {sys.version.split()[0]}, {os.uname().sysname} {os.uname().release}"
    return InternalError(
        f"A bug of envmedic: {type(error).__name__}: {error}",
        cause=where,
        hint="Report it with the lines above",
        environment=RECOVERABLE if in_transaction else UNCHANGED,
        details=(trace,),
    )
