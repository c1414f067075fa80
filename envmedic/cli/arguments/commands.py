"""The options of commands that diagnose, repair, ask and lock."""

from __future__ import annotations

import argparse

from envmedic.cli.arguments import groups
from envmedic.cli.options import Parser, at_least, compute_capability, names, seconds

SHELLS = ("bash", "zsh", "fish")


def diagnose(parser: Parser) -> None:
    """`envmedic diagnose`."""
    parser.add_argument("logs", nargs="*", metavar="LOG", help="the error text, `-` for stdin")
    parser.option(
        "--log-only", action="store_true", help="read the text alone: neither an environment nor this machine"
    )
    parser.add_argument(
        "--reproduce",
        action="store_true",
        help="with `-- CMD…`: run the command in the environment as it is, without a terminal, and diagnose its failure",
    )
    groups.last(parser)
    parser.option("--playbook", metavar="FILE", help="also match this playbook")
    groups.host(parser)
    groups.deep(parser)


def run(parser: Parser) -> None:
    """`envmedic run`."""
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
    groups.host(parser)


def facts(parser: Parser) -> None:
    """`envmedic facts`."""
    parser.option("--host-only", action="store_true", help="read the machine only, no environment")
    parser.option(
        "--content",
        action="store_true",
        help="list what is installed in a small document with one digest; equal environments have the same digest at any "
        "path and on any machine",
    )
    groups.host(parser)
    groups.deep(parser)


def plan(parser: Parser) -> None:
    """`envmedic plan`."""
    groups.what(parser)
    parser.option(
        "--pin", action="store_true", help="also write constraints for pip, uv and conda that keep the repair"
    )
    groups.host(parser)
    groups.deep(parser)
    groups.sources(parser)
    groups.checks(parser)
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
    groups.allow(parser, help_text="pinned: break your pins where no plan keeps them; the other names are for `apply`")


def apply(parser: Parser) -> None:
    """`envmedic apply`."""
    from envmedic.model.registries.modes import CLONE_MODES, LAYOUTS, STAGING_MODES

    parser.add_argument("plan", nargs="?", metavar="PLAN.json", help="a plan written by `envmedic plan -o`")
    groups.what(parser)
    parser.option(
        "--pin", action="store_true", help="also write constraints for pip, uv and conda that keep the repair"
    )
    groups.host(parser)
    groups.deep(parser)
    groups.sources(parser)
    groups.checks(parser)
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
        "--layout",
        group=group,
        choices=tuple(LAYOUTS),
        help="symlink: make the environment a symbolic link to one of its trees, so that later exchanges replace a link, "
        "which also takes one step where the file system cannot exchange two directories (NFS)",
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
    # no variables: they are about this repair
    others = parser.add_argument_group(
        "other machines that share the environment, on which `envmedic fleet witness` runs"
    )
    others.add_argument(
        "--witnesses",
        type=names,
        default=(),
        metavar="NAME,…",
        help="the repaired copy must pass its checks on these too",
    )
    others.add_argument(
        "--machines", type=names, default=(), metavar="NAME,…", help="also ask these which programs use the environment"
    )
    others.add_argument(
        "--witness-limit", type=seconds, default=1800.0, metavar="SECONDS", help="limit for each answer (default: 1800)"
    )
    groups.allow(
        parser, group, help_text="lift a protection (pinned: break your pins where no plan keeps them); can be repeated"
    )


def verify(parser: Parser) -> None:
    """`envmedic verify`."""
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
    groups.checks(parser)
    groups.host(parser)
    groups.deep(parser)


def wrapped(parser: Parser, *, words: str) -> None:
    """`envmedic pip`, `uv` and `conda`; `words` is how their own command begins."""
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
    groups.allow(parser, group, help_text="lift a protection")


def explain(parser: Parser) -> None:
    """`envmedic explain`."""
    parser.add_argument("topic", metavar="FAULT|PLAYBOOK", help="a class of fault, or the id or file of a playbook")


def check(parser: Parser) -> None:
    """`envmedic check`."""
    parser.add_argument("requirements", nargs="*", metavar="REQ", help="such as flash-attn or 'torch>=2.7'")
    groups.host(parser)
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
    groups.sources(parser)
    parser.option("--timeout", type=seconds, metavar="SECONDS", help="limit for each question to the installer")


def guard(parser: Parser) -> None:
    """`envmedic guard`."""
    parser.add_argument(
        "words", nargs="?", metavar="CMD", help="such as 'pip install -U transformers'; or after `--`, unquoted"
    )
    groups.host(parser)
    parser.option("--offline", action="store_true", help="use caches only, even if the command would use the network")
    parser.option("--timeout", type=seconds, metavar="SECONDS", help="limit for each question to the installer")


def lock(parser: Parser) -> None:
    """`envmedic lock`."""
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
    groups.sources(parser)


def create(parser: Parser) -> None:
    """`envmedic create`."""
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
    groups.sources(parser)
    groups.checks(parser)
    groups.host(parser)


def notebook(parser: Parser) -> None:
    """`envmedic notebook`."""
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)  # what the extension calls


def completion(parser: Parser) -> None:
    """`envmedic completion`."""
    parser.add_argument("shell", choices=SHELLS, metavar="|".join(SHELLS), help="for which shell")
