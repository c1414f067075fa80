"""Options that several commands share."""

from __future__ import annotations

import argparse

from envmedic.cli.options import Parser, installer, seconds
from envmedic.model.registries.installers import DEFAULT, DEFAULT_OF_CONDA, INSTALLERS

POLICIES = ("keep-torch", "keep-release", "keep-cuda-variant", "default-index", "newest")
ALLOW_NAMES = ("base", "frozen", "external", "in-use", "ownership", "capabilities", "pinned")


def output(parser: Parser) -> None:
    """How much is printed, and in which form."""
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


def target(parser: Parser) -> None:
    """Which environment a command is about."""
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


def host(parser: Parser) -> None:
    """The facts of another host."""
    parser.option(
        "--host",
        metavar="FILE",
        help="use these facts instead of this host's (from `envmedic facts --json`)",
    )


def deep(parser: Parser) -> None:
    """How closely files are looked at."""
    parser.option(
        "--deep", action="store_true", help="read and hash every installed file (default: existence and size)"
    )


def sources(parser: Parser) -> None:
    """Where wheels and packages come from, and who installs them."""
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


def what(parser: Parser) -> None:
    """The fault to repair, or the move to make."""
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
    last(group)
    parser.option(
        "--pass-after",
        group=group,
        type=seconds,
        metavar="SECONDS",
        help="with --last: a program that runs this long without the reported error has passed, and is stopped "
        "(default: twice the time to its failure, at least 60)",
    )


def last(group: argparse._ActionsContainer) -> None:
    """The failure that `envmedic run` kept."""
    # no variable may set it: it is about one failure
    group.add_argument(
        "--last",
        action="store_true",
        help="use the last failure of `envmedic run -- CMD`; a repair counts if CMD then works",
    )


def checks(parser: Parser) -> None:
    """Limits of checks."""
    parser.option("--no-gpu", action="store_true", help="accept that nothing is verified on a GPU")
    parser.option("--timeout", type=seconds, metavar="SECONDS", help="limit for each check and step")


def allow(parser: Parser, group: argparse._ArgumentGroup | None = None, *, help_text: str) -> None:
    """Protections to lift."""
    parser.option("--allow", group=group, action="append", choices=ALLOW_NAMES, default=[], help=help_text)
