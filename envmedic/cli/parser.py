"""Every command and option, and nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from envmedic import __version__
from envmedic.cli.arguments import commands as options_of
from envmedic.cli.arguments import generations, groups, verbs
from envmedic.cli.options import Parser, sentence

DESCRIPTION = "Repair a broken PyTorch/CUDA environment in a clone, prove it, and swap it in atomically."
WITH_VALUE = frozenset({
    "-n", "--name", "-p", "--prefix", "--python", "--color", "--allow", "--clone", "--staging", "--timeout", "--keep",
})  # fmt: skip
"""Options of `pip`, `uv` and `conda` behind envmedic that take a value: they stand before the installer's own words."""
EXIT_CODES = """\
Exit codes:
  0    healthy, repaired, or yes        5    fault of the machine, which no repair can help
  1    problems, or no repair           6    busy, or a recovery is needed
  2    usage or input                   7    repaired in part
  3    a confirmation is needed         8    the plan is for another class of environments
  4    checks failed                    70   a bug;  130  interrupted
The environment is changed only by a repair that exits with 0 or 7."""


def build_parser() -> Parser:
    """Return the parser of ``envmedic``."""
    parser = Parser(prog="envmedic", description=DESCRIPTION, epilog=EXIT_CODES)
    parser.add_argument(
        "--version",
        action="version",
        version=f"envmedic {__version__}",
        help="print the version; with -v also the dates of the compatibility tables",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    _command(
        commands, "diagnose", "say what is wrong: from an error text, an environment, or both", options_of.diagnose
    )
    _command(commands, "run", "run a program, and say what is wrong when it fails", options_of.run)
    _command(commands, "facts", "print what is installed, and what the machine has", options_of.facts)
    _command(
        commands,
        "envs",
        "list the conda, project and virtual environments on this machine",
        target=False,
    )
    _command(commands, "plan", "show what a repair would change, without changing anything", options_of.plan)
    _command(commands, "apply", "repair a copy, prove it, and swap it in", options_of.apply)
    _command(commands, "verify", "check an environment as it is: imports, kernels, requirements", options_of.verify)
    for tool, words in (("pip", "install …"), ("uv", "pip install …"), ("conda", "install …")):
        told = f"run `{tool} {words}` in a copy, check it, and swap it in"
        _command(commands, tool, told, partial(options_of.wrapped, words=words))
    _command(
        commands, "snapshot", "keep the environment as it is now, so that undo can return to it", generations.snapshot
    )
    _command(commands, "undo", "go back to before the last repair", generations.undo)
    _command(commands, "redo", "bring back a repair that was undone", generations.back)
    _command(commands, "history", "list repairs and snapshots, and what is kept of them")
    _command(
        commands, "diff", "show what differs between two states, or what changed outside envmedic", generations.diff
    )
    _command(commands, "report", "write a report of a repair: Markdown, a picture or a page", generations.report)
    _command(commands, "recover", "finish or drop an interrupted repair")
    _command(commands, "prune", "remove kept states, and free their disk space", generations.prune)
    _command(
        commands,
        "playbooks",
        "list, show, validate or test playbooks, or print their schema",
        verbs.playbooks,
        bare=True,
    )
    _command(commands, "explain", "explain a fault or a playbook in plain words", options_of.explain, target=False)
    _command(commands, "check", "say whether a package would work here, and what it would change", options_of.check)
    _command(commands, "data", "show, update or pin the compatibility tables", verbs.data, bare=True)
    _command(
        commands,
        "guard",
        "say whether a command would undo a repair or break something, without running it",
        options_of.guard,
    )
    _command(commands, "create", "make an environment from a lock file, and verify it", options_of.create, target=False)
    _command(
        commands,
        "fleet",
        "compare and repair many machines: writes files for Ansible or Slurm, opens no connection",
        verbs.fleet,
        bare=True,
    )
    _command(commands, "lock", "write a lock file of exactly what is installed", options_of.lock)
    _command(commands, "mcp", "serve coding agents over the Model Context Protocol, on stdin and stdout", bare=True)
    _command(commands, "agents", "print lines for AGENTS.md that tell coding agents about envmedic", bare=True)
    _command(commands, "notebook", "print the lines that load envmedic in a notebook", options_of.notebook, bare=True)
    _command(commands, "completion", "print a shell completion script", options_of.completion, bare=True)
    return parser


_Commands = argparse._SubParsersAction


def _command(
    commands: _Commands[Parser],
    name: str,
    help_text: str,
    options: Callable[[Parser], None] | None = None,
    *,
    target: bool = True,
    bare: bool = False,
) -> None:
    """Add a command; a `bare` one has its own options alone."""

    # Called for the given command alone, see `Parser.later`.
    def fill(parser: Parser) -> None:
        if not bare:
            groups.output(parser)
        if target and not bare:
            groups.target(parser)
        if options is not None:
            options(parser)

    commands.add_parser(name, help=help_text, description=sentence(help_text)).later(fill)
