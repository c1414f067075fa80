"""Every command and option, and nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from envmedic import __version__
from envmedic.cli.options import VERB, Parser, age, at_least, compute_capability, installer, seconds, sentence, size
from envmedic.model.registries.installers import DEFAULT, DEFAULT_OF_CONDA, INSTALLERS

DESCRIPTION = "Repair a broken PyTorch/CUDA environment in a clone, prove it, and swap it in atomically."
POLICIES = ("keep-torch", "keep-release", "keep-cuda-variant", "default-index", "newest")
ALLOW_NAMES = ("base", "frozen", "external", "in-use", "ownership", "capabilities", "pinned")
SHELLS = ("bash", "zsh", "fish")
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
    _command(commands, "diagnose", "say what is wrong: from an error text, an environment, or both", _diagnose)
    _command(commands, "run", "run a program, and say what is wrong when it fails", _run)
    _command(commands, "facts", "print what is installed, and what the machine has", _facts)
    _command(
        commands,
        "envs",
        "list the conda, project and virtual environments on this machine",
        target=False,
    )
    _command(commands, "plan", "show what a repair would change, without changing anything", _plan)
    _command(commands, "apply", "repair a copy, prove it, and swap it in", _apply)
    _command(commands, "verify", "check an environment as it is: imports, kernels, requirements", _verify)
    for tool, words in (("pip", "install …"), ("uv", "pip install …"), ("conda", "install …")):
        told = f"run `{tool} {words}` in a copy, check it, and swap it in"
        _command(commands, tool, told, partial(_wrapped, words=words))
    _command(commands, "snapshot", "keep the environment as it is now, so that undo can return to it", _snapshot)
    _command(commands, "undo", "go back to before the last repair", _undo)
    _command(commands, "redo", "bring back a repair that was undone", _back)
    _command(commands, "history", "list repairs and snapshots, and what is kept of them")
    _command(commands, "diff", "show what differs between two states, or what changed outside envmedic", _diff)
    _command(commands, "report", "write a report of a repair: Markdown, a picture or a page", _report)
    _command(commands, "recover", "finish or drop an interrupted repair")
    _command(commands, "prune", "remove kept states, and free their disk space", _prune)
    _command(
        commands, "playbooks", "list, show, validate or test playbooks, or print their schema", _playbooks, bare=True
    )
    _command(commands, "explain", "explain a fault or a playbook in plain words", _explain, target=False)
    _command(commands, "check", "say whether a package would work here, and what it would change", _check)
    _command(commands, "data", "show, update or pin the compatibility tables", _data, bare=True)
    _command(
        commands, "guard", "say whether a command would undo a repair or break something, without running it", _guard
    )
    _command(commands, "create", "make an environment from a lock file, and verify it", _create, target=False)
    _command(
        commands,
        "fleet",
        "compare and repair many machines: writes files for Ansible or Slurm, opens no connection",
        _fleet,
        bare=True,
    )
    _command(commands, "lock", "write a lock file of exactly what is installed", _lock)
    _command(commands, "mcp", "serve coding agents over the Model Context Protocol, on stdin and stdout", bare=True)
    _command(commands, "agents", "print lines for AGENTS.md that tell coding agents about envmedic", bare=True)
    _command(commands, "notebook", "print the lines that load envmedic in a notebook", _notebook, bare=True)
    _command(commands, "completion", "print a shell completion script", _completion, bare=True)
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
            _output(parser)
        if target and not bare:
            _target(parser)
        if options is not None:
            options(parser)

    commands.add_parser(name, help=help_text, description=sentence(help_text)).later(fill)


def _output(parser: Parser) -> None:
    group = parser.add_argument_group("output")
    parser.option("--json", group=group, action="store_true", help="one JSON document on stdout and nothing else")
    parser.option(
        "--events",
        group=group,
        nargs="?",
        const="-",
        metavar="FILE",
        help="events as JSON lines while it runs (default: stderr)",
    )
    parser.option("-q", "--quiet", group=group, action="store_true", help="print results and warnings only")
    parser.option("-v", "--verbose", group=group, action="count", default=0, help="more detail")
    parser.option(
        "--color", group=group, choices=("auto", "always", "never"), default="auto", help="colour (default: auto)"
    )


def _target(parser: Parser) -> None:
    group = parser.add_argument_group(
        "environment (default: the active one)",
        "If a repair was interrupted, apply, snapshot, undo, redo and prune settle it first; other commands report it.",
    ).add_mutually_exclusive_group()
    parser.option("-n", "--name", group=group, rivals=("prefix", "python"), help="name of a conda environment")
    parser.option(
        "-p", "--prefix", group=group, rivals=("name", "python"), metavar="DIR", help="prefix of an environment"
    )
    parser.option(
        "--python", group=group, rivals=("name", "prefix"), metavar="PATH", help="the Python of an environment"
    )


def _host(parser: Parser) -> None:
    parser.option(
        "--host",
        metavar="FILE",
        help="use these facts instead of this host's (from `envmedic facts --json`)",
    )


def _deep(parser: Parser) -> None:
    parser.option(
        "--deep", action="store_true", help="read and hash every installed file (default: existence and size)"
    )


def _sources(parser: Parser) -> None:
    group = parser.add_argument_group("where distributions come from (default: your pip and uv configuration)")
    parser.option(
        "--find-links", group=group, action="append", default=[], metavar="DIR|URL", help="also look for wheels here"
    )
    parser.option(
        "--torch-index", group=group, metavar="TEMPLATE", help="template of the PyTorch wheel index, with {variant}"
    )
    parser.option("--offline", group=group, action="store_true", help="use caches and --find-links only")
    parser.option(
        "--installer",
        group=group,
        action="append",
        type=installer,
        metavar="|".join(INSTALLERS),
        help=f"installer of wheels (default: {DEFAULT}) or of conda packages (default: {DEFAULT_OF_CONDA}); can be repeated",
    )


def _what(parser: Parser) -> None:
    group = parser.add_argument_group("what to repair")
    parser.option("--playbook", group=group, metavar="ID|FILE", help="follow this playbook")
    parser.option("--log", group=group, metavar="FILE", help="the error text, `-` for stdin")
    parser.option(
        "--policy",
        group=group,
        choices=POLICIES,
        help="no fault to fix: upgrade torch and everything tied to its version. keep-torch: only the packages that belong "
        "to torch; keep-release: the same torch for a newer CUDA; keep-cuda-variant: the newest torch for the same CUDA; "
        "default-index: the newest torch that the default index has with all that belongs to it; newest: the newest torch that works here",
    )
    parser.option("--way", group=group, metavar="TITLE", help="use this alternative from the plan")
    group.add_argument(
        "--reproduce",
        action="store_true",
        help="with `-- CMD…`: run the failing command; the repair counts if it then works",
    )
    _last(group)
    parser.option(
        "--pass-after",
        group=group,
        type=seconds,
        metavar="SECONDS",
        help="with --last: a program that runs this long without the reported error has passed, and is stopped "
        "(default: twice the time to its failure, at least 60)",
    )


def _last(group: argparse._ActionsContainer) -> None:
    # no variable may set it: it is about one failure
    group.add_argument(
        "--last",
        action="store_true",
        help="use the last failure of `envmedic run -- CMD`; a repair counts if CMD then works",
    )


def _checks(parser: Parser) -> None:
    parser.option("--no-gpu", action="store_true", help="accept that nothing is verified on a GPU")
    parser.option("--timeout", type=seconds, metavar="SECONDS", help="limit for each check and step")


def _diagnose(parser: Parser) -> None:
    parser.add_argument("logs", nargs="*", metavar="LOG", help="the error text, `-` for stdin")
    parser.option(
        "--log-only", action="store_true", help="read the text alone: neither an environment nor this machine"
    )
    parser.add_argument(
        "--reproduce",
        action="store_true",
        help="with `-- CMD…`: run the command in the environment as it is, without a terminal, and diagnose its failure",
    )
    _last(parser)
    parser.option("--playbook", metavar="FILE", help="also match this playbook")
    _host(parser)
    _deep(parser)


def _notebook(parser: Parser) -> None:
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)  # what the extension calls


def _run(parser: Parser) -> None:
    parser.tail = "-- CMD…"
    parser.option(
        "--no-ask",
        action="store_true",
        help="do not offer the repair (default: ask on a terminal; no answer in 30 s means no)",
    )
    parser.option(
        "--report", metavar="FILE", help="write the diagnosis to this file (default: stderr); NAME.json gets JSON"
    )
    parser.option("--playbook", metavar="FILE", help="also match this playbook")
    _host(parser)


def _facts(parser: Parser) -> None:
    parser.option("--host-only", action="store_true", help="read the machine only, no environment")
    parser.option(
        "--content",
        action="store_true",
        help="list what is installed in a small document with one digest; equal environments have the same digest at any "
        "path and on any machine",
    )
    _host(parser)
    _deep(parser)


def _plan(parser: Parser) -> None:
    _what(parser)
    parser.option(
        "--pin", action="store_true", help="also write constraints for pip, uv and conda that keep the repair"
    )
    _host(parser)
    _deep(parser)
    _sources(parser)
    _checks(parser)
    parser.option(
        "--fetch",
        action="store_true",
        help="download what the plan installs into the cache, so that `apply --offline` needs no network",
    )
    parser.option("-o", "--output", metavar="FILE", help="write the plan for `envmedic apply FILE`")
    parser.option(
        "--for-class",
        action="store_true",
        help="make the plan for every machine with the same content at this path, the same Python, GPU types and driver "
        "branch; `apply FILE` checks that there and resolves nothing",
    )
    _allow(parser, help_text="pinned: break your pins where no plan keeps them; the other names are for `apply`")


def _apply(parser: Parser) -> None:
    from envmedic.model.registries.modes import CLONE_MODES, STAGING_MODES

    parser.add_argument("plan", nargs="?", metavar="PLAN.json", help="a plan written by `envmedic plan -o`")
    _what(parser)
    parser.option(
        "--pin", action="store_true", help="also write constraints for pip, uv and conda that keep the repair"
    )
    _host(parser)
    _deep(parser)
    _sources(parser)
    _checks(parser)
    parser.option("-y", "--yes", action="store_true", help="do not ask")
    parser.option("--dry-run", action="store_true", help="the same as `envmedic plan`")
    parser.add_argument(
        "--lock",
        metavar="DIR",
        help="after the repair, write lock files of the verified environment into this directory",
    )
    group = parser.add_argument_group("transaction")
    parser.option("--clone", group=group, choices=("auto", *CLONE_MODES), default="auto", help="how to clone")
    parser.option(
        "--staging",
        group=group,
        choices=("auto", *STAGING_MODES),
        default="auto",
        help="how steps and checks run in the clone",
    )
    parser.option(
        "--max-rounds", group=group, type=at_least(1), default=4, help="rounds of the repair loop (default: 4)"
    )
    parser.option(
        "--profile",
        group=group,
        choices=("standard", "full"),
        default="standard",
        help="full also imports packages that the change cannot affect",
    )
    parser.option("--keep", group=group, type=at_least(0), default=1, help="generations kept for undo (default: 1)")
    parser.option(
        "--keep-partial",
        group=group,
        action="store_true",
        help="keep a repair that solves only a part of what was reported",
    )
    parser.option(
        "--edit-project",
        group=group,
        action="store_true",
        help="also write the manifest and lock of the project, as the plan shows them, so that its next sync keeps the repair",
    )
    _allow(
        parser, group, help_text="lift a protection (pinned: break your pins where no plan keeps them); can be repeated"
    )


def _allow(parser: Parser, group: argparse._ArgumentGroup | None = None, *, help_text: str) -> None:
    parser.option("--allow", group=group, action="append", choices=ALLOW_NAMES, default=[], help=help_text)


def _verify(parser: Parser) -> None:
    from envmedic.model.registries.check_kinds import PROFILES

    parser.option("--check", action="append", default=[], metavar="NAME", help="only this check; can be repeated")
    parser.option(
        "--profile",
        choices=tuple(PROFILES),
        default="standard",
        help="checks to run (default: standard)",
    )
    parser.option(
        "--lock", metavar="FILE", help="compare the environment with this lock, and its files with their records"
    )
    parser.option(
        "--seed",
        type=int,
        metavar="NUMBER",
        help="seed of the numbers that checks compute with, as an earlier run printed it",
    )
    parser.option(
        "--baseline", metavar="FILE", help="compare with an earlier `verify --json`: only what got worse since counts"
    )
    _checks(parser)
    _host(parser)
    _deep(parser)


def _wrapped(parser: Parser, *, words: str) -> None:
    from envmedic.model.registries.modes import CLONE_MODES, STAGING_MODES

    parser.add_argument("words", nargs="*", metavar=words, help="the installer's own command, after the options below")
    parser.add_argument(
        "--force",
        action="store_true",
        help="run it even if it would undo a repair or break something; `undo` goes back",
    )
    parser.option("-y", "--yes", action="store_true", help="do not ask about programs that run from the environment")
    parser.option("--offline", action="store_true", help="predict its effects from caches only, without a network")
    parser.option("--timeout", type=seconds, metavar="SECONDS", help="limit for the command, and for each check")
    group = parser.add_argument_group("transaction")
    parser.option("--clone", group=group, choices=("auto", *CLONE_MODES), default="auto", help="how to clone")
    parser.option(
        "--staging",
        group=group,
        choices=("auto", *STAGING_MODES),
        default="auto",
        help="how steps and checks run in the clone",
    )
    parser.option("--keep", group=group, type=at_least(0), default=3, help="generations kept for undo (default: 3)")
    _allow(parser, group, help_text="lift a protection")


def _snapshot(parser: Parser) -> None:
    from envmedic.model.registries.modes import CLONE_MODES

    parser.option("-m", "--message", metavar="TEXT", default="", help="a note for the history")
    parser.option(
        "--clone",
        choices=("auto", *CLONE_MODES),
        default="auto",
        help="how to clone; with `link`, later edits in place change the file in the snapshot too",
    )
    _allow(parser, help_text="lift a protection")


def _back(parser: Parser) -> None:
    parser.add_argument(
        "transaction",
        nargs="?",
        help="the generation to go to, as `envmedic history` names it (default: the one before)",
    )
    parser.option("-y", "--yes", action="store_true", help="do not ask")
    _allow(parser, help_text="lift a protection")


def _undo(parser: Parser) -> None:
    _back(parser)
    parser.add_argument(
        "--plan",
        metavar="FILE",
        help="undo the repair of this plan for a class; where it is undone already, do nothing",
    )
    parser.add_argument("--dry-run", action="store_true", help="with --plan: say what would be undone")
    parser.option(
        "--keep-new", action="store_true", help="carry over the files that you added since; otherwise they stay behind"
    )


def _diff(parser: Parser) -> None:
    state = "a transaction of `envmedic history`, `found` for what was there before, or `now`"
    parser.add_argument("before", nargs="?", metavar="FROM", help=f"{state} (default: the live generation)")
    parser.add_argument("after", nargs="?", metavar="TO", help="the same (default: now)")


def _report(parser: Parser) -> None:
    from envmedic.model.answers.report import FORMS

    parser.add_argument("transaction", nargs="?", help="as `envmedic history` names it (default: the newest)")
    parser.option(
        "--format", choices=FORMS, help="format of the report (default: from the name of the file, else markdown)"
    )
    parser.option(
        "-o", "--output", metavar="FILE|DIR", help="where to write it; a directory gets all formats (default: stdout)"
    )


def _prune(parser: Parser) -> None:
    parser.option(
        "--keep", type=at_least(0), metavar="N", help="keep the N nearest (default: 0, if no other limit is given)"
    )
    parser.option("--older-than", type=age, metavar="AGE", help="remove older ones, such as 12h, 30d or 8w")
    parser.option(
        "--max-size",
        type=size,
        metavar="SIZE",
        help="remove the oldest until the rest takes no more than this, such as 20GB",
    )
    parser.option("--drop-new", action="store_true", help="also remove trees with files that exist nowhere else")
    parser.option("-y", "--yes", action="store_true", help="do not ask")


def _verbs(parser: Parser) -> Callable[[str, str], Parser]:
    """Return what adds a verb, with its meaning, to a command."""
    verbs = parser.add_subparsers(dest="verb", metavar=VERB, required=True, parser_class=Parser)

    def verb(name: str, meaning: str) -> Parser:
        found: Parser = verbs.add_parser(name, help=meaning, description=sentence(meaning))
        _output(found)
        return found

    return verb


def _data(parser: Parser) -> None:
    verb = _verbs(parser)
    verb("status", "show the tables in use, their age, and data files that are not used; needs no network")
    update = verb("update", "fetch newer tables: the wheel envmedic-data from your indexes, or a file")
    update.add_argument("source", nargs="?", metavar="FILE", help="a wheel of envmedic-data, or a data file")
    update.option("--sha256", metavar="HEX", help="the file must have this SHA-256")
    pinned = verb("pin", "keep one version of the tables, even if a newer one is there")
    pinned.add_argument("version", nargs="?", metavar="VERSION", help="such as 2026.11.4 (default: the one in use)")
    pinned.add_argument("--off", action="store_true", help="pin no version any longer: use the newest one")
    for found in (update, pinned):
        found.option(
            "--find-links", action="append", default=[], metavar="DIR|URL", help="also look for the wheel here"
        )
        found.option("--offline", action="store_true", help="ask no index: use only what is here and in --find-links")


def _playbooks(parser: Parser) -> None:
    verb = _verbs(parser)
    verb("list", "list the playbooks found")
    verb("show", "print the file of a playbook").add_argument("playbook", metavar="ID|FILE")
    verb("validate", "list all mistakes of playbook files").add_argument("files", nargs="+", metavar="FILE")
    test = verb("test", "test whether a playbook finds what it should, and nothing else")
    test.add_argument("file", metavar="FILE", help="the playbook")
    test.add_argument("logs", nargs="*", metavar="LOG", help="error texts that it should be found in")
    verb("schema", "print the JSON schema of playbooks, for an editor")


def _fleet(parser: Parser) -> None:
    verb = _verbs(parser)
    survey = verb("survey", "show the classes of machines, and how they differ")
    survey.option(
        "--on", metavar="ENGINE", help="print the command that collects facts: ansible:INVENTORY or slurm:NODES"
    )
    # neither `prefix` nor its variable: nothing is looked at there on this machine
    survey.add_argument("-p", "--prefix", dest="node_prefix", metavar="PATH", help="with --on: the environment there")
    survey.add_argument(
        "--envmedic", metavar="COMMAND", help="with --on: the command that starts envmedic there (default: envmedic)"
    )
    diagnose = verb("diagnose", "say what is wrong in each class of machines, from their facts and an error text")
    diagnose.option("--log", metavar="FILE", help="the error text, `-` for stdin")
    drift = verb("drift", "show which machines differ from one of them, and how")
    drift.option(
        "--against",
        metavar="NODE|FILE",
        help="a machine, a document of facts, or a lock (default: the content that most machines have)",
    )
    plan = verb("plan", "write and print what the engine runs to plan a repair for each class of machines")
    plan.add_argument(
        "--on", metavar="ENGINE", required=True, help="the engine that runs it: ansible:INVENTORY or slurm:NODES"
    )
    plan.add_argument(
        "-p", "--prefix", dest="node_prefix", metavar="PATH", required=True, help="the environment on the machines"
    )
    plan.add_argument("--log", metavar="FILE", help="the error text; classes without that fault are left out")
    plan.add_argument(
        "--playbook", dest="node_playbook", metavar="ID", help="the playbook to follow, without an error text"
    )
    plan.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="the directory of this repair; a shared one for Slurm"
    )
    _nodes(plan)
    rollout = verb("rollout", "write and print what the engine runs to repair the remaining machines, canaries first")
    rollout.add_argument(
        "--canary", type=at_least(0), metavar="N", help="number of machines of each class that come first (default: 1)"
    )
    rollout.add_argument(
        "--batches", metavar="SIZES", help="sizes of the batches after that, the last repeated (default: 10%%,100%%)"
    )
    rollout.add_argument(
        "--max-fail", metavar="N|PART", help="how many machines of a batch may fail, such as 1 or 2%% (default: 0)"
    )
    rollout.add_argument("--retry", action="store_true", help="try again where the repair failed or was undone")
    _nodes(rollout)
    status = verb("status", "show how a rollout, or a plan for a class, ended on each machine")
    status.add_argument("--stage", metavar="NAME", help="exit with 4 if too many machines of this batch failed")
    status.add_argument("--html", metavar="FILE", help="also write a page with a picture of all machines")
    undo = verb("undo", "write and print what the engine runs to undo a rollout")
    undo.add_argument("--only", action="append", default=[], metavar="class:A|NODE", help="only these; can be repeated")
    collected = "directory with the output of `envmedic facts --json` of each machine, in a file of its name"
    fleet = "the directory that `envmedic fleet plan` wrote"
    for found, kind, meaning in (
        (survey, "DIR", collected),
        (diagnose, "DIR", "the same"),
        (drift, "DIR", "the same; `envmedic facts --content --json` is enough"),
        (plan, "DIR", collected),
        (rollout, "DIR", fleet),
        (status, "DIR|FILE", f"{fleet}, or one with the output of `envmedic apply PLAN --json` of each machine"),
        (undo, "DIR", fleet),
    ):
        found.add_argument("place", metavar=kind, help=meaning)
        if found not in {rollout, undo}:
            found.option(
                "--nodes",
                metavar="FILE",
                help="a file with the names of all machines, to see which of them sent nothing",
            )


def _nodes(parser: Parser) -> None:
    """How envmedic is started on machines. No variable of this one sets any of it."""
    group = parser.add_argument_group(
        "on the machines (a later rollout without these options uses those of the one before)"
    )
    group.add_argument(
        "--envmedic", metavar="COMMAND", help="the command that starts envmedic there (default: envmedic)"
    )
    group.add_argument(
        "--find-links", dest="node_links", action="append", metavar="DIR", help="a directory there with wheels"
    )
    group.add_argument("--online", action="store_true", help="allow the machines to download wheels")
    group.add_argument("--no-gpu", dest="node_no_gpu", action="store_true", help="ask for no proof on GPUs")
    group.add_argument(
        "--limit", type=at_least(1), metavar="SECONDS", help="time limit for each machine (default: 3600)"
    )
    group.add_argument("--drain", action="store_true", help="Slurm: drain a machine whose repair failed, and say why")


def _explain(parser: Parser) -> None:
    parser.add_argument("topic", metavar="FAULT|PLAYBOOK", help="a class of fault, or the id or file of a playbook")


def _check(parser: Parser) -> None:
    parser.add_argument("requirements", nargs="*", metavar="REQ", help="such as flash-attn or 'torch>=2.7'")
    _host(parser)
    group = parser.add_argument_group("files, for a machine that you describe (no environment is read)")
    group.add_argument(
        "-r",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="requirements.txt, uv.lock, pylock.toml, conda-lock.yml or environment.yml; can be repeated. With it, "
        "--python takes a version, such as 3.12",
    )
    parser.option(
        "--gpu",
        group=group,
        action="append",
        type=compute_capability,
        default=[],
        metavar="sm_120",
        help="compute capability of a GPU there, also as 12.0 (default: the GPUs here); can be repeated",
    )
    parser.option("--driver", group=group, metavar="VERSION", help="NVIDIA driver there, such as 570 or 570.86.10")
    parser.option("--sarif", group=group, metavar="FILE", help="also write the misfits there, for code scanning")
    _sources(parser)
    parser.option("--timeout", type=seconds, metavar="SECONDS", help="limit for each question to the installer")


def _guard(parser: Parser) -> None:
    parser.add_argument(
        "words", nargs="?", metavar="CMD", help="such as 'pip install -U transformers'; or after `--`, unquoted"
    )
    _host(parser)
    parser.option("--offline", action="store_true", help="use caches only, even if the command would use the network")
    parser.option("--timeout", type=seconds, metavar="SECONDS", help="limit for each question to the installer")


def _lock(parser: Parser) -> None:
    from envmedic.model.lock import LOCK_FORMAT_NAMES

    parser.option(
        "--format",
        choices=LOCK_FORMAT_NAMES,
        help="format of the lock (default: conda-lock if there are conda packages, else pylock)",
    )
    parser.option(
        "--from-history",
        action="store_true",
        help="write an environment.yml of what you asked conda and pip for, instead of what is installed",
    )
    parser.option("-o", "--output", metavar="FILE", help="where to write it (default: stdout)")
    parser.option(
        "--platform",
        action="append",
        default=[],
        metavar="NAME",
        help="also solve and lock for this platform, such as linux-aarch64; can be repeated",
    )
    parser.option(
        "--fetch-hashes",
        action="store_true",
        help="fail if an index cannot be asked for a hash that is not known here (default: leave it out)",
    )
    parser.option(
        "--allow-incomplete", action="store_true", help="write it without the entries that cannot be locked (exit 1)"
    )
    _sources(parser)


def _create(parser: Parser) -> None:
    from envmedic.model.registries.check_kinds import PROFILES

    parser.option(
        "--lock", required=True, metavar="FILE", help="a conda-lock.yml, pylock.toml or requirements with hashes"
    )
    group = parser.add_argument_group("where (it must not exist yet)").add_mutually_exclusive_group()
    parser.option("-p", "--prefix", group=group, rivals=("name",), metavar="NEW", help="its directory")
    parser.option("-n", "--name", group=group, rivals=("prefix",), help="its name, for conda environments")
    parser.option(
        "--python", metavar="PATH|VERSION", help="make it with this Python (default: the version in the lock)"
    )
    parser.option("--profile", choices=tuple(PROFILES), default="standard", help="checks to run (default: standard)")
    _sources(parser)
    _checks(parser)
    _host(parser)


def _completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="|".join(SHELLS), help="for which shell")
