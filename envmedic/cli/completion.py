"""Shell completion: the scripts for the shells, and the words that they ask for.

The scripts only pass on what is typed (``envmedic __complete WORD…``), so that they never go out of date: the
words come from the parser, and from the playbooks and environments that are there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from envmedic.api.context.settings import Settings
from envmedic.api.environments import list_environments
from envmedic.api.playbooks import survey_playbooks
from envmedic.cli.options import Parser
from envmedic.cli.parser import build_parser
from envmedic.model.events import EventStream
from envmedic.model.registries.check_kinds import CHECK_NAMES
from envmedic.model.registries.faults import FAULTS
from envmedic.model.registries.installers import INSTALLERS

FILES, DIRECTORIES = ":files", ":directories"
"""Requests to a completion script for the shell's own completion of paths."""

# COMP_WORDBREAKS of bash holds `=`: `--option=value` arrives as three words, see `_joined`.
_BASH = """\
# bash completion for envmedic
_envmedic() {
    local line plain=1 current="${COMP_WORDS[COMP_CWORD]}"
    local -a found=()
    [[ $current == "=" ]] && current=""
    while IFS= read -r line; do
        case $line in
            :files) plain=0; while IFS= read -r line; do found+=("$line"); done < <(compgen -f -- "$current") ;;
            :directories) plain=0; while IFS= read -r line; do found+=("$line"); done < <(compgen -d -- "$current") ;;
            ?*) found+=("${line%%$'\\t'*}") ;;
        esac
    done < <(envmedic __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if (( plain && ${#found[@]} )); then
        printf -v found '%q\\n' "${found[@]}"
        mapfile -t found <<< "${found%$'\\n'}"
    elif (( ! plain )); then
        compopt -o filenames 2>/dev/null
    fi
    COMPREPLY=("${found[@]}")
}
complete -F _envmedic envmedic
"""

_ZSH = """\
#compdef envmedic
_envmedic() {
    local line
    local -a found
    for line in "${(@f)$(envmedic __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :files) _files ;;
            :directories) _files -/ ;;
            *$'\\t'*) found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}") ;;
            ?*) found+=("${line//:/\\\\:}") ;;
        esac
    done
    (( $#found )) && _describe -t words envmedic found
}
if [[ $funcstack[1] == _envmedic ]]; then _envmedic "$@"; else compdef _envmedic envmedic; fi
"""

_FISH = """\
# fish completion for envmedic
function __envmedic_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (envmedic __complete $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':directories'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c envmedic -f -a '(__envmedic_complete)'
"""

SCRIPTS: Mapping[str, str] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""Output of ``envmedic completion SHELL``, by shell."""

Word = tuple[str, str]
"""A word that may stand here, and its meaning."""


@dataclass
class _State:
    """State of the parse after the words before the cursor."""

    parser: Parser
    option: argparse.Action | None = None
    """The option whose value comes next."""
    given: set[str] = field(default_factory=set)
    """Names of the options that were given."""
    place: int = 0
    """Number of positional arguments that were given to this command."""
    foreign: bool = False
    """Whether the words belong to a command of the user's own, after ``--``."""


def complete(words: Sequence[str]) -> Iterator[Word]:
    """Completions of the last of `words`, each with its meaning."""
    *before, current = _joined(words) or [""]
    state = _State(build_parser())
    for word in before:
        _step(state, word)
    yield from _candidates(state, current)


def _joined(words: Sequence[str]) -> list[str]:
    """The words as envmedic would get them, apart from ``--option=value``, which is two here.

    bash takes ``=`` for a word of its own.
    """
    found: list[str] = []
    for word in words:
        if word == "=" and found and found[-1].startswith("--"):
            found.append("")
        elif found and found[-1] == "" and len(found) > 1 and found[-2].startswith("--"):
            found[-1] = word
        else:
            found.append(word)
    return found


def _step(state: _State, word: str) -> None:
    if state.foreign:
        return
    if word == "--":
        state.foreign = True
    elif state.option is not None:
        state.option = None
    elif word.startswith("-") and word != "-":
        _option(state, word)
    else:
        _positional(state, word)


def _option(state: _State, word: str) -> None:
    name, equals, _ = word.partition("=")
    action = _options(state.parser).get(name)
    if action is not None:
        state.given.add(action.dest)
        state.option = action if _takes_value(action) and not equals else None


def _positional(state: _State, word: str) -> None:
    commands = _commands(state.parser)
    if commands is None:
        state.place += 1
    elif word in commands.choices:
        state.parser, state.place, state.given = commands.choices[word], 0, set()


def _candidates(state: _State, current: str) -> Iterator[Word]:
    if state.foreign:
        yield FILES, ""
        return
    name, equals, begun = current.partition("=")
    action = _options(state.parser).get(name) if equals else None
    if action is not None:
        found = values(action, begun)
        yield from ((word if word.startswith(":") else f"{name}={word}", meaning) for word, meaning in found)
    elif state.option is not None:
        yield from values(state.option, current)
    elif current.startswith("-") and current != "-":
        yield from _option_words(state, current)
    else:
        yield from _positional_words(state, current)


def _option_words(state: _State, current: str) -> Iterator[Word]:
    for name, action in _options(state.parser).items():
        again = action.dest not in state.given or isinstance(action, argparse._AppendAction)
        if again and name.startswith(current) and action.help != argparse.SUPPRESS:
            yield name, action.help or ""


def _positional_words(state: _State, current: str) -> Iterator[Word]:
    commands = _commands(state.parser)
    if commands is not None:
        told = {item.dest: item.help or "" for item in commands._get_subactions()}
        yield from ((name, told.get(name, "")) for name in commands.choices if name.startswith(current))
        return
    places = [item for item in state.parser._actions if not item.option_strings]
    if places and (state.place < len(places) or places[-1].nargs in {"*", "+"}):
        yield from values(places[min(state.place, len(places) - 1)], current)


def _options(parser: Parser) -> dict[str, argparse.Action]:
    parser.fill()
    return {name: action for action in parser._actions for name in action.option_strings}


def _commands(parser: Parser) -> argparse._SubParsersAction[Parser] | None:
    parser.fill()
    kinds = (item for item in parser._actions if isinstance(item, argparse._SubParsersAction))
    return next(kinds, None)


def _takes_value(action: argparse.Action) -> bool:
    return action.nargs not in {0, "?"}


def values(action: argparse.Action, begun: str) -> Iterator[Word]:
    """The values of an option or argument that begin so."""
    if action.choices is not None:
        words: Iterator[Word] = ((str(choice), "") for choice in action.choices)
    elif action.dest in _SOURCES:
        words = _SOURCES[action.dest]()
    else:
        metavar = action.metavar if isinstance(action.metavar, str) else action.dest
        words = _by_metavar(metavar)
    # a colon begins a request to the shell's own completion, which must not be filtered out
    yield from ((word, meaning) for word, meaning in words if word.startswith((begun, ":")))


def _by_metavar(metavar: str) -> Iterator[Word]:
    if "FILE" in metavar or metavar in {"LOG", "PATH", "PLAN.json", "PATH|VERSION"}:
        yield FILES, ""
    elif "DIR" in metavar or metavar == "NEW":
        yield DIRECTORIES, ""


def _playbooks() -> Iterator[Word]:

    found = survey_playbooks(Settings(stream=EventStream(())))
    yield from ((item.playbook.id, item.playbook.title) for item in found.playbooks)


def _playbooks_or_file() -> Iterator[Word]:
    yield from _playbooks()
    yield FILES, ""


def _topics() -> Iterator[Word]:
    yield from ((name, "a class of fault") for name in FAULTS)
    yield from _playbooks()


def _environments() -> Iterator[Word]:
    found = list_environments().environments
    yield from ((item.name, item.prefix) for item in found if item.name)


# The prefix is shown relative to the working directory where it begins with it, as users type it.
def _prefixes() -> Iterator[Word]:
    here = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118  # a text that ends with a slash
    yield from ((item.prefix.removeprefix(here), item.torch or "") for item in list_environments().environments)
    yield DIRECTORIES, ""


def _checks() -> Iterator[Word]:
    yield from CHECK_NAMES.items()


def _installers() -> Iterator[Word]:
    yield from ((name, "") for name in INSTALLERS)


_SOURCES: Mapping[str, Callable[[], Iterator[Word]]] = {
    "playbook": _playbooks_or_file,
    "topic": _topics,
    "name": _environments,
    "prefix": _prefixes,
    "check": _checks,
    "installer": _installers,
}
"""Options and arguments whose values depend on the machine or the registries."""


def answer(words: Sequence[str]) -> int:
    """``envmedic __complete WORD…``: a line for each word, with its meaning after a tab. Always 0."""
    # a word may come from two sources, such as classes of fault and playbooks: the first meaning stays
    found: dict[str, str] = {}
    for word, meaning in complete(words):
        found.setdefault(word, " ".join(meaning.split()))
    # zsh and fish show the meaning beside the word; bash has no place for it
    lines = (f"{word}\t{meaning}" if meaning else word for word, meaning in found.items())
    print("\n".join(lines))
    return 0


def completion(args: argparse.Namespace) -> int:
    """``envmedic completion SHELL``."""
    print(SCRIPTS[args.shell], end="")
    return 0
