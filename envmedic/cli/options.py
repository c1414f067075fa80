"""argparse helpers: options that ENVMEDIC_* variables can set, and the values that they take."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from envmedic.errors import InputError
from envmedic.model.registries.installers import DEFAULT, DEFAULT_OF_CONDA, INSTALLERS, OF_CONDA, OF_WHEELS

TYPE_CHECKING = False  # as in typing, which takes longer to load than `--version` may
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from envmedic.model.conda import CondaExecutor
    from envmedic.model.registries.installers import WheelInstaller

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"", "0", "false", "no", "off"})
_TIMES = {"h": 3600.0, "d": 86400.0, "w": 604800.0}
_ANY_WIDTH = 80
VERB = "VERB"
"""Stands for the verb of a command in its usage."""
_SIZES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are envmedic's own errors, and whose options can be set by variables."""

    def __init__(self, *, description: str = "", **settings: Any) -> None:
        super().__init__(
            allow_abbrev=False, formatter_class=_plain_formatter, **settings
        )  # an abbreviation means another option one day
        self.meaning = description
        """Purpose of the command in one sentence, the first line of its help."""
        self.tail = ""
        """What follows the options in its usage beside its arguments: the user's own command."""
        self.variables: list[tuple[argparse.Action, tuple[str, ...]]] = []
        """Options whose variable is set, each with the names of options that mean the same thing in another way."""
        self.settable: list[argparse.Action] = []
        """Options that have a variable."""
        # Options are added late: a start needs those of one command only.
        self._fill: Callable[[Parser], None] | None = None

    def later(self, fill: Callable[[Parser], None]) -> None:
        """Let `fill` add the options when they are first needed: of some twenty commands, one is given."""
        self._fill = fill

    def fill(self) -> None:
        """Add the options now, if that was put off."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)

    def format_help(self) -> str:
        """The help text."""
        from envmedic.cli.help import help_of

        self.fill()
        return help_of(self, self.meaning, self.tail)

    def format_usage(self) -> str:
        """How the command is called."""
        from envmedic.cli.help import usage_of

        self.fill()
        return usage_of(self, self.tail)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and exiting, so that ``--json`` can report it."""
        if message.endswith(f": {VERB}"):
            message = f"{self.prog} takes one of {', '.join(self._choices())}"
        raise InputError(message, hint=f"See `{self.prog} --help`")

    def _choices(self) -> list[str]:
        """The names of commands or verbs."""
        return [name for action in self._subparsers_actions() for name in action.choices]

    def _subparsers_actions(self) -> list[argparse._SubParsersAction[Parser]]:
        return [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all words. Raises InputError that names the command whose words are not understood."""
        parsed, rest = self.parse_known_args(args, namespace)
        if rest:
            raise self._not_understood(rest, parsed.command)
        return parsed

    def _not_understood(self, rest: list[str], command: str | None) -> InputError:
        parser = self._of_command(command)
        if command == "run":
            return InputError(
                "The command to run stands after `--`", hint=f"Write it so: envmedic run -- {' '.join(rest)}"
            )
        known = [flag for action in parser._actions for flag in action.option_strings]
        near = _near(rest[0], known)
        # an option that the command has was not understood, so it was written before the command
        cause = f"{near} belongs after `{command}`" if rest[0] in known else f"did you mean {near}?"
        return InputError(
            f"{parser.prog} does not understand: {' '.join(rest)}",
            cause=cause if near else None,
            hint=f"See `{parser.prog} --help`",
        )

    def _of_command(self, command: str | None) -> argparse.ArgumentParser:
        """The parser of one command, this one where there is none."""
        return next((action.choices[command] for action in self._subparsers_actions() if command), self)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check as argparse does, and suggest the choice that is likely meant."""
        if action.choices is None or value in action.choices:
            return
        near = _near(value, action.choices)
        meant = f", did you mean {near}?" if near else ""
        choices = ", ".join(map(repr, action.choices))
        if action.dest == "command":
            raise argparse.ArgumentError(None, f"there is no command {value!r}{meant or f' (there are {choices})'}")
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{meant} (choose from {choices})")

    def option(
        self,
        *flags: str,
        group: argparse._ActionsContainer | None = None,
        rivals: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        """Add an option whose default can be set by ``ENVMEDIC_<NAME>``.

        A value on the command line wins over the variable, also one of the `rivals`, the names of
        options that mean the same thing in another way.
        """
        action = (group or self).add_argument(*flags, **settings)
        self.settable.append(action)
        if _variable(action) in os.environ:
            action.default = argparse.SUPPRESS  # a missing attribute tells that the command line is silent
            self.variables.append((action, tuple(rivals)))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and let variables speak where the command line is silent."""
        self.fill()
        parsed, rest = super().parse_known_args(args, namespace)
        given = dict(vars(parsed))
        for action, rivals in self.variables:
            if action.dest not in given:
                # `-p` on the command line overrules ENVMEDIC_NAME: both name the environment.
                overruled = any(given.get(rival) is not None for rival in rivals)
                setattr(parsed, action.dest, None if overruled else _from_variable(action))
        return parsed, rest


def _near(word: str, known: Iterable[str]) -> str:
    """The one of the known words that was likely meant, nothing without one."""
    import difflib

    # without the value of `--option=value`, which would spoil the comparison
    return next(iter(difflib.get_close_matches(word.partition("=")[0], list(known), n=1)), "")


def _plain_formatter(prog: str) -> argparse.HelpFormatter:
    """Return argparse's formatter, for names of commands: without a width, it would load `shutil` and the archive modules."""
    return argparse.HelpFormatter(prog, width=_ANY_WIDTH)


def _variable(action: argparse.Action) -> str:
    return "ENVMEDIC_" + action.dest.upper()


def _from_variable(action: argparse.Action) -> object:
    variable = _variable(action)
    text = os.environ[variable]
    # argparse converts words of the command line only; values of variables are converted here by the same rules.
    if isinstance(action, argparse._CountAction):
        return _count(variable, text)
    if action.nargs == 0:
        return _flag(variable, text)
    if isinstance(action, argparse._AppendAction):
        return [_value(action, variable, word) for word in _words(variable, text)]
    return _value(action, variable, text)


def _value(action: argparse.Action, variable: str, text: str) -> object:
    convert = action.type if callable(action.type) else str
    try:
        value: object = convert(text)
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise _bad(variable, text, str(error)) from error
    if action.choices is not None and value not in action.choices:
        raise _bad(variable, text, f"it can be one of: {', '.join(str(choice) for choice in action.choices)}")
    return value


def _words(variable: str, text: str) -> list[str]:
    """The values of an option that can be repeated: separated by spaces, quoted where one holds spaces."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError as error:
        raise _bad(variable, text, str(error)) from error


def _count(variable: str, text: str) -> int:
    return int(text) if text.isdecimal() else int(_flag(variable, text))


def _flag(variable: str, text: str) -> bool:
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise _bad(variable, text, "it switches something on (1) or off (0)")


def _bad(variable: str, text: str, cause: str) -> InputError:
    return InputError(f"{variable} is {text!r}", cause=cause, hint=f"Set {variable} otherwise, or unset it")


def sentence(text: str) -> str:
    """The help text of a command as a full sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def seconds(text: str) -> float:
    """A limit in seconds: a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # float() accepts `inf` and `nan` too
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def at_least(lowest: int) -> Callable[[str], int]:
    """The type of whole numbers from `lowest` on."""

    def convert(text: str) -> int:
        # int() alone would accept `1_0`, `+1` and spaces
        if text.isdecimal() and int(text) >= lowest:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {lowest} on")

    return convert


def compute_capability(text: str) -> str:
    """A compute capability as ``12.0``, also written ``sm_120`` or ``120``, with the ``a`` or ``f`` of some code lists."""
    digits = text.lower().removeprefix("sm_").removeprefix("compute_").rstrip("af")
    major, _, minor = digits.partition(".") if "." in digits else (digits[:-1], "", digits[-1:])
    if not (major.isdecimal() and minor.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no compute capability such as sm_90, sm_120 or 12.0")
    return f"{int(major)}.{int(minor)}"


def names(text: str) -> tuple[str, ...]:
    """Names between commas, each once."""
    found = tuple(dict.fromkeys(name for name in text.split(",") if name))
    if not found:
        raise argparse.ArgumentTypeError("it names nothing")
    return found


def age(text: str) -> float:
    """A length of time, as ``30d``, in seconds."""
    return _measured(text, _TIMES, "a length of time such as 12h, 30d or 8w")


def size(text: str) -> int:
    """An amount of disk space, as ``20GB``, in bytes."""
    return int(_measured(text.upper().removesuffix("B"), _SIZES, "a size such as 500MB or 20GB"))


def _measured(text: str, units: Mapping[str, float], meaning: str) -> float:
    number, unit = text[:-1], text[-1:]
    if number.replace(".", "", 1).isdecimal() and number.isascii() and unit in units:
        return float(number) * units[unit]
    raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")


def split_command(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split ``… --reproduce -- CMD…`` into what argparse reads and the user's own command."""
    words = list(argv)
    if "--" not in words:
        return words, ()
    cut = words.index("--")
    # argparse would remove the `--` and take the user's command for arguments
    return words[:cut], tuple(words[cut + 1 :])


def require_readable(words: Sequence[str]) -> None:
    """Raise InputError for a word that is no text: documents are JSON and could not hold it."""
    # surrogates: how Python represents bytes of an argument that are not UTF-8
    strange = [word for word in words if any("\ud800" <= character <= "\udfff" for character in word)]
    if strange:
        raise InputError(
            f"An argument is not valid UTF-8: {os.fsencode(strange[0])!r}",
            hint="Reach the file through a symbolic link with a readable name",
        )


def installer(text: str) -> str:
    """A word of ``--installer``. Raises ArgumentTypeError."""
    if text in {"mamba", "micromamba", "pixi"}:
        raise argparse.ArgumentTypeError(
            f"{text} is not used to install: nobody could try yet what it does in a copy of an environment; leave it "
            "out, and py-rattler puts the conda packages in place"
        )
    if text not in INSTALLERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(INSTALLERS[:-1])} and {INSTALLERS[-1]}")
    return text


def installers(words: Sequence[str]) -> tuple[WheelInstaller, CondaExecutor]:
    """Installers of wheels and of conda packages. Raises InputError for two installers of one kind."""
    wheels = [name for word in dict.fromkeys(words) for name in OF_WHEELS if name == word]
    conda = [name for word in dict.fromkeys(words) for name in OF_CONDA if name == word]
    for found in (wheels, conda):
        if len(found) > 1:
            raise InputError(
                f"--installer {found[0]} and --installer {found[1]} install the same kind of package",
                hint=f"Give one of {' and '.join(OF_WHEELS)}, for wheels, and one of {' and '.join(OF_CONDA)}, for conda packages",
            )
    return (wheels or [DEFAULT])[0], (conda or [DEFAULT_OF_CONDA])[0]
