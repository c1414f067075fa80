"""Reading options of another program by a table of them: what each takes, and what it means here. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from envmedic.errors import InputError

IGNORED: Final = "ignored"
"""Meaning of options that change nothing about what is installed."""
REFUSED: Final = "refused"
"""Meaning of options under which another place is changed, or something that cannot be foreseen."""


@dataclass(frozen=True)
class Option:
    """What one option means."""

    meaning: str
    value: bool = False
    """Whether a value follows."""


@dataclass(frozen=True)
class Word:
    """An argument or an option of a command line."""

    meaning: str | None
    """None for an argument."""
    flag: str
    """As the table has it; empty for an argument."""
    value: str
    """The argument, or the option's value."""


Table = Mapping[str, Option]


def table(**meanings: str) -> dict[str, Option]:
    """Options by meaning: ``ignored="-q --log="``, where ``=`` says that a value follows."""
    return {
        flag.removesuffix("="): Option(meaning, flag.endswith("="))
        for meaning, flags in meanings.items()
        for flag in flags.split()
    }


def words(arguments: Sequence[str], known: Table, program: str) -> Iterator[Word]:
    """The options and arguments, in order. Raises InputError for an option that the table does not have."""
    rest = list(arguments)
    while rest:
        text = rest.pop(0)
        if text == "--":
            yield from (Word(None, "", item) for item in rest)
            return
        if not text.startswith("-") or text == "-":
            yield Word(None, "", text)
        elif text.startswith("--"):
            yield _long(text, rest, known, program)
        else:
            yield from _short(text, rest, known, program)


def _long(text: str, rest: list[str], known: Table, program: str) -> Word:
    flag, equals, value = text.partition("=")
    option = _option(flag, known, program)
    if not option.value:
        if equals:
            raise InputError(f"{flag} of {program} takes no value", hint=f"See `{program} --help`")
        return Word(option.meaning, flag, "")
    return Word(option.meaning, flag, value if equals else _next(flag, rest, program))


def _short(text: str, rest: list[str], known: Table, program: str) -> Iterator[Word]:
    """``-qU``, ``-rFILE``, ``-r FILE``."""
    letters = text[1:]
    while letters:
        flag, letters = f"-{letters[0]}", letters[1:]
        option = _option(flag, known, program)
        if option.value:
            value = letters.removeprefix("=") if letters else _next(flag, rest, program)
            yield Word(option.meaning, flag, value)
            return
        yield Word(option.meaning, flag, "")


def _next(flag: str, rest: list[str], program: str) -> str:
    if not rest:
        raise InputError(f"{flag} of {program} needs a value", hint=f"See `{program} --help`")
    return rest.pop(0)


def _option(flag: str, known: Table, program: str) -> Option:
    option = known.get(flag)
    if option is None:
        raise InputError(
            f"The option {flag} of {program} is not understood",
            cause="What the command would do cannot be told with it",
            hint=f"Leave it out, or write it as `{program} --help` has it",
        )
    if option.meaning == REFUSED:
        raise InputError(
            f"What {program} does with {flag} cannot be foreseen for this environment",
            cause="It changes another place, or chooses for another Python",
            hint=f"Ask about the command without {flag}",
        )
    return option
