"""The options of commands on the kept states of an environment."""

from __future__ import annotations

from envmedic.cli.arguments import groups
from envmedic.cli.options import Parser, age, at_least, size


def snapshot(parser: Parser) -> None:
    """`envmedic snapshot`."""
    from envmedic.model.registries.modes import CLONE_MODES

    parser.option("-m", "--message", metavar="TEXT", default="", help="a note for the history")
    parser.option(
        "--clone",
        choices=("auto", *CLONE_MODES),
        default="auto",
        help="how to clone; with `link`, later edits in place change the file in the snapshot too",
    )
    groups.allow(parser, help_text="lift a protection")


def back(parser: Parser) -> None:
    """`envmedic redo`, and what `undo` shares with it."""
    parser.add_argument(
        "transaction",
        nargs="?",
        help="the generation to go to, as `envmedic history` names it (default: the one before)",
    )
    parser.option("-y", "--yes", action="store_true", help="do not ask")
    groups.allow(parser, help_text="lift a protection")


def undo(parser: Parser) -> None:
    """`envmedic undo`."""
    back(parser)
    parser.add_argument(
        "--plan",
        metavar="FILE",
        help="undo the repair of this plan for a class; where it is undone already, do nothing",
    )
    parser.add_argument("--dry-run", action="store_true", help="with --plan: say what would be undone")
    parser.option(
        "--keep-new", action="store_true", help="carry over the files that you added since; otherwise they stay behind"
    )


def diff(parser: Parser) -> None:
    """`envmedic diff`."""
    state = "a transaction of `envmedic history`, `found` for what was there before, or `now`"
    parser.add_argument("before", nargs="?", metavar="FROM", help=f"{state} (default: the live generation)")
    parser.add_argument("after", nargs="?", metavar="TO", help="the same (default: now)")


def report(parser: Parser) -> None:
    """`envmedic report`."""
    from envmedic.model.answers.report import FORMS

    parser.add_argument("transaction", nargs="?", help="as `envmedic history` names it (default: the newest)")
    parser.option(
        "--format", choices=FORMS, help="format of the report (default: from the name of the file, else markdown)"
    )
    parser.option(
        "-o", "--output", metavar="FILE|DIR", help="where to write it; a directory gets all formats (default: stdout)"
    )


def prune(parser: Parser) -> None:
    """`envmedic prune`."""
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
