"""Scripts for sh as text: what their assignments set and unset, without running anything."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence

_STATEMENT = re.compile(
    r"\s*(?:export\s+(?:-\w+\s+)?|typeset\s+-x\s+|declare\s+-x\s+)?(?P<name>[A-Z][A-Z_]*)=(?P<value>.*)"
)
_UNSET = re.compile(r"\s*unset\s+(?:-v\s+)?(?P<names>[A-Z_ \t]+)(?:$|[;#])")
_FUNCTION = re.compile(r"\s*(?:function\s+[\w-]+(?:\s*\(\s*\))?|[\w-]+\s*\(\s*\))(?:\s*\{)?$")
"""Of a line without the space at its end."""
LARGEST = 1 << 20
"""Bytes of a script that is worth reading; those of environments have some thousands."""
_LONGEST_VALUE = 32 << 10
"""Characters of a variable, whose every expansion could double it."""
_MOST_EXPANDED = 8 << 20
"""Characters of all variables of a script together."""
_EXPANSION = re.compile(r"\$(?:\{(?P<braced>\w+)(?::?-(?P<default>[^{}$]*))?\}|(?P<plain>\w+))")


def statements(text: str, known: dict[str, str], names: Collection[str]) -> Iterator[tuple[str, str | None, int]]:
    """Assignments to `names` outside of functions (``deactivate`` puts old values back): name, value, line number.

    The value is None where a variable is unset. `known` are the variables before, for expansions; it is kept up to
    date. What a command substitution would give is left out, and what is longer than any variable.
    """
    inside, left = False, _MOST_EXPANDED
    for number, line in enumerate(text.splitlines(), 1):
        if inside:
            inside = not line.startswith("}")
        elif _FUNCTION.match(line.rstrip()):
            inside = True
        elif (unset := _UNSET.match(line)) is not None:
            for name in unset["names"].split():
                known.pop(name, None)
                if name in names:
                    yield name, None, number
        elif (assigned := _STATEMENT.match(line)) is not None:
            value = _value(assigned["value"], known)
            left -= len(value or "")
            if value is None or left < 0:
                continue
            known[assigned["name"]] = value
            if assigned["name"] in names:
                yield assigned["name"], value, number


def _value(text: str, known: Mapping[str, str]) -> str | None:
    """What the shell makes of the right side of an assignment; None where a command would have to run."""
    if "$(" in text or "`" in text or len(text) > _LONGEST_VALUE:
        return None
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    try:
        word = "" if text[:1].isspace() else lexer.get_token() or ""
    except ValueError:  # a quotation that goes on in the next line
        return None
    if set(word) <= set(";&|"):
        return ""
    if text.startswith("'"):
        return word
    return _within(_EXPANSION.split(word), known)


def _within(parts: Sequence[str | None], known: Mapping[str, str]) -> str | None:
    """The value of a word, cut at its expansions: text, and the three groups of each; None where it is too long."""
    found: list[str] = []
    size = 0
    for place, part in enumerate(parts[::4]):
        braced, default, plain = parts[4 * place - 3 : 4 * place] if place else ("", "", "")
        found += [known.get(braced or plain or "") or default or "", part or ""]
        size += len(found[-2]) + len(found[-1])
        if size > _LONGEST_VALUE:
            return None
    return "".join(found)
