"""Help texts: what a command does, its usage in one line, examples, then its options; commands by what they are for.

Only argparse is loaded beside this: a help text is there at once.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from envmedic.cli.examples import example_lines

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Find out what is wrong", ("diagnose", "run", "facts", "envs", "explain")),
    ("Repair", ("plan", "apply", "verify", "report")),
    ("Go back", ("undo", "redo", "history", "diff", "snapshot", "recover", "prune")),
    ("Install without breaking anything", ("check", "guard", "pip", "uv", "conda")),
    ("Share and reproduce", ("lock", "create")),
)
"""Commands by purpose; others follow under `OTHERS`."""
OTHERS = "More"
WIDEST = 100
"""Columns of the longest line: longer ones are hard to read."""
_COLUMNS = 80
"""Columns where there is no terminal."""
_WORDS_AT = 26
"""Column of the meanings at most."""
_HEADING = re.compile(r"^(\S.*:)$", re.MULTILINE)
_WORDS = re.compile(r"^( {2,4})((?:-|\w)\S*(?:[ ,]+(?! )\S+)*?)(?=  |\n|$)", re.MULTILINE)
_STRONG, _WORD, _END = "\x1b[1m", "\x1b[36m", "\x1b[0m"


class Formatter(argparse.HelpFormatter):
    """argparse's formatter at the width of the terminal: argparse itself would load `shutil` and the archive modules."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_WORDS_AT, width=min(columns() - 2, WIDEST))

    def add_commands(self, title: str, actions: Sequence[argparse.Action]) -> None:
        """A section with these commands."""
        self.start_section(title)
        self.add_arguments(actions)
        self.end_section()


def help_of(parser: argparse.ArgumentParser, meaning: str, tail: str) -> str:
    """The whole help text of a command; `tail` is what stands after its options beside the positional arguments."""
    formatter = Formatter(parser.prog)
    for group in parser._action_groups:
        for action in group._group_actions:
            if isinstance(action, argparse._SubParsersAction):
                _add_commands(formatter, action)
                break
        else:
            formatter.start_section("arguments" if group is parser._positionals else group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
    examples = example_lines(parser.prog.partition(" ")[2])
    head = [meaning, ""] if meaning else []
    head += [usage_of(parser, tail)]
    head += ["Examples:", *examples, ""] if examples else []
    text = re.sub(
        r"^([a-z])(.*:)$", lambda found: found[1].upper() + found[2], formatter.format_help(), flags=re.MULTILINE
    )
    tables = [parser.epilog, ""] if parser.epilog else []
    return _coloured("\n".join([*head, text, *tables]))


def usage_of(parser: argparse.ArgumentParser, tail: str) -> str:
    """How the command is called, in one line: options stand below."""
    formatter = Formatter(parser.prog)
    needed = [action for action in parser._actions if action.required or not action.option_strings]
    formatter.add_usage(None, needed, [], prefix="")
    usage = formatter.format_help().strip().removeprefix(parser.prog).strip()
    words = [parser.prog, usage.replace("...", "…"), "[OPTIONS]", tail]
    return f"Usage: {' '.join(filter(None, words))}\n"


def _add_commands(formatter: Formatter, action: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    known = {item.dest: item for item in action._get_subactions()}
    if action.dest != "command":
        formatter.add_commands("verbs", list(known.values()))
        return
    grouped = {name for _, names in GROUPS for name in names}
    groups = [*GROUPS, (OTHERS, tuple(name for name in known if name not in grouped))]
    for title, names in groups:
        formatter.add_commands(title, [known[name] for name in names if name in known])


def _coloured(text: str) -> str:
    """`text` with weight on headings and colour on what is typed, where it is seen on a terminal."""
    from envmedic.render.streams import wants_colour

    if not wants_colour(sys.stdout):
        return text
    usage = text.replace("Usage:", f"{_STRONG}Usage:{_END}", 1)
    strong = _HEADING.sub(rf"{_STRONG}\1{_END}", usage)
    return _WORDS.sub(rf"\1{_WORD}\2{_END}", strong)


def columns() -> int:
    """The width as `shutil.get_terminal_size` finds it: from COLUMNS, else the terminal, else 80."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated) > 0:
        return int(stated)
    if sys.__stdout__ is None:
        return _COLUMNS
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS
    except (OSError, ValueError):  # no terminal, or closed
        return _COLUMNS
