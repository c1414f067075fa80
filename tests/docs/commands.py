"""The commands as the parser has them: the reference in ``docs/commands.md``, and the manual page."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unittest import mock

from envmedic.cli.examples import EXAMPLES
from envmedic.cli.options import Parser
from envmedic.cli.parser import DESCRIPTION, build_parser
from envmedic.errors import ExitCode

Table = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Option:
    """An option or an argument."""

    names: str
    """As it is typed: ``-p DIR, --prefix DIR``."""
    meaning: str
    variable: str
    """The variable that sets it; empty where none does."""


@dataclass(frozen=True)
class Command:
    """One command with all that it takes."""

    name: str
    meaning: str
    groups: tuple[tuple[str, tuple[Option, ...]], ...]
    """Title of each group, empty for the first, and its options."""
    examples: tuple[tuple[str, str], ...]


def commands() -> tuple[Command, ...]:
    """Every command, in the order of the help; those of ``playbooks`` after it."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("ENVMEDIC_")}
    with mock.patch.dict(os.environ, clean, clear=True):
        return tuple(_walk(build_parser(), ""))


def _walk(parser: Parser, name: str) -> Iterator[Command]:
    parser.fill()
    if name:
        yield Command(name, parser.meaning, tuple(_groups(parser)), EXAMPLES.get(name, ()))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from _walk(child, f"{name} {word}".strip())


def _groups(parser: Parser) -> Iterator[tuple[str, tuple[Option, ...]]]:
    optional = {action.dest for action in parser.settable}
    for group in parser._action_groups:
        shown = [item for item in group._group_actions if item.help != argparse.SUPPRESS and item.dest != "help"]
        found = tuple(_option(item, item.dest in optional) for item in shown)
        if found and not any(isinstance(item, argparse._SubParsersAction) for item in shown):
            title = "" if group.title in {"positional arguments", "options", "optional arguments"} else str(group.title)
            yield title, found


def _option(action: argparse.Action, settable: bool) -> Option:  # noqa: FBT001
    value = _value(action)
    names = ", ".join(f"{name} {value}".rstrip() for name in action.option_strings) or value
    variable = f"ENVMEDIC_{action.dest.upper()}" if settable else ""
    return Option(names, action.help or "", variable)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    word = action.metavar if isinstance(action.metavar, str) else None
    if word is None:
        word = "|".join(map(str, action.choices)) if action.choices is not None else action.dest.upper()
    if action.option_strings:
        return f"[{word}]" if action.nargs == "?" else word
    return {"?": f"[{word}]", "*": f"[{word}…]", "+": f"{word}…"}.get(str(action.nargs), word)


def reference() -> str:
    """Every command with its examples and options, as Markdown."""
    return "\n\n".join(_section(command) for command in commands())


def _section(command: Command) -> str:
    parts = [f"## envmedic {command.name}", command.meaning]
    if command.examples:
        lines = [line for text, meaning in command.examples for line in (f"# {meaning}", f"$ envmedic {text}")]
        parts.append("\n".join(["```console", *lines, "```"]))
    for title, options in command.groups:
        rows = [(f"`{item.names}`", item.meaning, f"`{item.variable}`" if item.variable else "") for item in options]
        parts += [f"{title[:1].upper()}{title[1:]}:"] if title else []
        parts.append(_table(rows))
    return "\n\n".join(parts)


def _table(rows: Table) -> str:
    lines = [("option", "meaning", "variable"), ("---",) * 3, *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def manual() -> str:
    """The manual page, in the macros of man(7)."""
    lines = [
        '.TH ENVMEDIC 1 "" "envmedic" "User Commands"',
        ".SH NAME",
        "envmedic \\- repair a broken PyTorch/CUDA environment",
        ".SH SYNOPSIS",
        ".B envmedic",
        ".I COMMAND",
        "[\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
        _roff(DESCRIPTION),
        ".PP",
        "Without a command, and in a terminal, the terminal UI is opened.",
        ".SH EXAMPLES",
        *_manual_examples(EXAMPLES[""]),
        ".SH COMMANDS",
    ]
    for command in commands():
        lines += _manual_command(command)
    lines += [".SH EXIT STATUS", *_manual_codes(), ".SH ENVIRONMENT", *_manual_environment()]
    return "\n".join(lines) + "\n"


def _manual_command(command: Command) -> Iterator[str]:
    yield f".SS envmedic {_roff(command.name)}"
    yield _roff(command.meaning)
    yield from _manual_examples(command.examples)
    for _, options in command.groups:
        for item in options:
            yield ".TP"
            yield f".B {_roff(item.names)}"
            yield _roff(item.meaning)


def _manual_examples(examples: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for text, meaning in examples:
        yield ".TP"
        yield f"\\fBenvmedic {_roff(text)}\\fR"
        yield _roff(meaning)


def _manual_codes() -> Iterator[str]:
    from tests.docs.schemas import attribute_docstrings  # it loads every model

    meanings = attribute_docstrings(ExitCode)
    for item in ExitCode:
        yield from (".TP", f".B {int(item)}", _roff(meanings[item.name].replace("`", "")))


def _manual_environment() -> Iterator[str]:
    yield "Most options can be set by a variable: ENVMEDIC_NO_GPU=1 is \\-\\-no\\-gpu. The command line wins."
    yield "NO_COLOR, FORCE_COLOR, CONDA_OVERRIDE_CUDA, CUDA_VISIBLE_DEVICES and LD_LIBRARY_PATH are understood."


def _roff(text: str) -> str:
    """`text` with what roff would read as a command or a sign escaped."""
    text = (
        re.sub(r"\s+", " ", text).replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    )
    text = text.replace("…", "...")
    return f"\\&{text}" if text.startswith((".", "'")) else text
