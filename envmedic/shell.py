"""Scripts for sh as text: what their assignments set and unset, without running anything."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping

from envmedic.regex import compile_late

_STATEMENT = compile_late(
    r"\s*(?:export\s+(?:-\w+\s+)?|typeset\s+-x\s+|declare\s+-x\s+)?(?P<name>[A-Z][A-Z_]*)=(?P<value>.*)"
)
_UNSET = compile_late(r"\s*unset\s+(?:-v\s+)?(?P<names>[A-Z_ ]+?)\s*(?:$|[;#])")
_FUNCTION = compile_late(r"\s*(?:function\s+[\w-]+\s*(?:\(\s*\))?|[\w-]+\s*\(\s*\))\s*\{?\s*$")
_EXPANSION = compile_late(r"\$(?:\{(?P<braced>\w+)(?::?-(?P<default>[^{}$]*))?\}|(?P<plain>\w+))")


def statements(text: str, known: dict[str, str], names: Collection[str]) -> Iterator[tuple[str, str | None, int]]:
    """Assignments to `names` outside of functions (``deactivate`` puts old values back): name, value, line number.

    The value is None where a variable is unset. `known` are the variables before, for expansions; it is kept up to
    date. What a command substitution would give is left out.
    """
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if inside:
            inside = not line.startswith("}")
        elif _FUNCTION.match(line):
            inside = True
        elif (unset := _UNSET.match(line)) is not None:
            for name in unset["names"].split():
                known.pop(name, None)
                if name in names:
                    yield name, None, number
        elif (assigned := _STATEMENT.match(line)) is not None:
            value = _value(assigned["value"], known)
            if value is None:
                continue
            known[assigned["name"]] = value
            if assigned["name"] in names:
                yield assigned["name"], value, number


def _value(text: str, known: Mapping[str, str]) -> str | None:
    """What the shell makes of the right side of an assignment; None where a command would have to run."""
    if "$(" in text or "`" in text:
        return None
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    try:
        word = "" if text[:1].isspace() else lexer.get_token() or ""
    except ValueError:  # a quotation that goes on in the next line
        return None
    if set(word) <= set(";&|"):
        return ""
    return word if text.startswith("'") else _EXPANSION.sub(lambda match: _expanded(match, known), word)


def _expanded(match: re.Match[str], known: Mapping[str, str]) -> str:
    return known.get(match["braced"] or match["plain"]) or match["default"] or ""
