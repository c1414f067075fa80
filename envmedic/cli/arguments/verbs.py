"""The verbs of `data`, `playbooks` and `fleet`, with their options."""

from __future__ import annotations

from collections.abc import Callable

from envmedic.cli.arguments import groups
from envmedic.cli.options import VERB, Parser, at_least, seconds, sentence


def data(parser: Parser) -> None:
    """`envmedic data`."""
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


def playbooks(parser: Parser) -> None:
    """`envmedic playbooks`."""
    verb = _verbs(parser)
    verb("list", "list the playbooks found")
    verb("show", "print the file of a playbook").add_argument("playbook", metavar="ID|FILE")
    verb("validate", "list all mistakes of playbook files").add_argument("files", nargs="+", metavar="FILE")
    test = verb("test", "test whether a playbook finds what it should, and nothing else")
    test.add_argument("file", metavar="FILE", help="the playbook")
    test.add_argument("logs", nargs="*", metavar="LOG", help="error texts that it should be found in")
    verb("schema", "print the JSON schema of playbooks, for an editor")


def fleet(parser: Parser) -> None:
    """`envmedic fleet`."""
    from envmedic.model.registries.modes import LAYOUTS

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
    rollout.add_argument(
        "--shared",
        nargs="?",
        const="",
        metavar="CLASS",
        help="all machines share one environment: repair it once, by the plan of this class (default: the first), after "
        "witnesses of every class have proved the copy",
    )
    rollout.add_argument(
        "--witnesses", type=at_least(0), metavar="N", help="with --shared: witnesses of each class (default: 1)"
    )
    rollout.add_argument(
        "--layout", choices=tuple(LAYOUTS), help="with --shared: make it a link, as `envmedic apply --layout` does"
    )
    rollout.add_argument("--retry", action="store_true", help="try again where the repair failed or was undone")
    _nodes(rollout)
    status = verb("status", "show how a rollout, or a plan for a class, ended on each machine")
    status.add_argument("--stage", metavar="NAME", help="exit with 4 if too many machines of this batch failed")
    status.add_argument("--html", metavar="FILE", help="also write a page with a picture of all machines")
    undo = verb("undo", "write and print what the engine runs to undo a rollout")
    undo.add_argument("--only", action="append", default=[], metavar="class:A|NODE", help="only these; can be repeated")
    witness = verb("witness", "answer on this machine what a repair of an environment that it shares asks")
    groups.target(witness)
    witness.add_argument(
        "--machine", metavar="NAME", help="the name of this machine (default: SLURMD_NODENAME, or its own)"
    )
    witness.add_argument("--no-gpu", action="store_true", help="leave out proofs on GPUs")
    witness.add_argument(
        "--limit", type=seconds, default=3600.0, metavar="SECONDS", help="limit for the whole repair (default: 3600)"
    )
    witness.add_argument(
        "--users", action="store_true", help="wait for nothing: print which programs here use it (exit 6 if some do)"
    )
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


def _verbs(parser: Parser) -> Callable[[str, str], Parser]:
    """Return what adds a verb, with its meaning, to a command."""
    verbs = parser.add_subparsers(dest="verb", metavar=VERB, required=True, parser_class=Parser)

    def verb(name: str, meaning: str) -> Parser:
        found: Parser = verbs.add_parser(name, help=meaning, description=sentence(meaning))
        groups.output(found)
        return found

    return verb
