"""Options on the command line of a package manager, and whether they take a value. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envmedic.errors import InputError

_INDENT = 8
"""Deepest indent of a line with options; descriptions in a help text are indented further."""


class CannotTell(InputError):
    """An option whose effect is not known, or that changes another place than the environment."""


class Option(NamedTuple):
    """An option under the longest of its spellings."""

    name: str
    value: bool
    """Whether a value follows."""


Options = Mapping[str, Option]
"""Options by every spelling."""


class Word(NamedTuple):
    """An option with its value, or under an empty name an argument."""

    name: str
    value: str


def parse_options(text: str) -> dict[str, Option]:
    """Return the options of a help text, or of a table in its form: ``-r, --requirements <FILE>``, ``-q --quiet``."""
    found: dict[str, Option] = {}
    for line in text.splitlines():
        flags: list[str] = []
        values: list[str] = []
        for part in line.replace(",", " ").split():
            (flags if part.startswith("-") and not values else values).append(part.rstrip("."))
        if flags and len(line) - len(line.lstrip()) <= _INDENT and line.lstrip().startswith("-"):
            found |= dict.fromkeys(flags, Option(max(flags, key=len), bool(values)))
    return found


def words(arguments: Sequence[str], known: Options, program: str) -> Iterator[Word]:
    """Yield options and arguments in order. Raises CannotTell for unknown options, InputError for missing values."""
    # not argparse, which accepts abbreviated options and prints its own errors
    rest = list(arguments)
    while rest:
        text = rest.pop(0)
        if text == "--":
            yield from (Word("", item) for item in rest)
            return
        # a lone `-` is an argument: standard input, for `-r -`
        if not text.startswith("-") or text == "-":
            yield Word("", text)
        elif text.startswith("--"):
            flag, equals, value = text.partition("=")
            option = _option(flag, known, program)
            if equals and not option.value:
                raise InputError(f"{flag} of {program} takes no value", hint=f"See `{program} --help`")
            yield Word(option.name, value if equals or not option.value else _next(flag, rest, program))
        else:
            yield from _short(text[1:], rest, known, program)


def _short(letters: str, rest: list[str], known: Options, program: str) -> Iterator[Word]:
    """``-qU``, ``-rFILE``, ``-r FILE``."""
    while letters:
        flag, letters = f"-{letters[0]}", letters[1:]
        option = _option(flag, known, program)
        if option.value:
            yield Word(option.name, letters.removeprefix("=") if letters else _next(flag, rest, program))
            return
        yield Word(option.name, "")


def _next(flag: str, rest: list[str], program: str) -> str:
    if not rest:
        raise InputError(f"{flag} of {program} needs a value", hint=f"See `{program} --help`")
    return rest.pop(0)


def _option(flag: str, known: Options, program: str) -> Option:
    option = known.get(flag)
    if option is None:
        raise CannotTell(
            f"what {program} does with {flag} is not known",
            hint=f"Leave it out, or write it as `{program} --help` has it",
        )
    return option
