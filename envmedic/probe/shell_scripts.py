"""What activating an environment does to the variables of builds, and where the shell's own come from."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from envmedic.model.facts import KeptVariable
from envmedic.probe import layout
from envmedic.probe.files import names, read_bytes, read_text

NAMES = frozenset({
    "CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH", "FORCE_CUDA", "LD_LIBRARY_PATH", "LIBRARY_PATH", "MAX_JOBS",
    "NVCC_PREPEND_FLAGS", "PIP_NO_BUILD_ISOLATION", "TCNN_CUDA_ARCHITECTURES", "TORCH_CUDA_ARCH_LIST",
    "UV_NO_BUILD_ISOLATION",
})  # fmt: skip
"""Variables that decide how extensions are built."""

_STATEMENT = re.compile(
    r"\s*(?:export\s+(?:-\w+\s+)?|typeset\s+-x\s+|declare\s+-x\s+)?(?P<name>[A-Z][A-Z_]*)=(?P<value>.*)"
)
_UNSET = re.compile(r"\s*unset\s+(?:-v\s+)?(?P<names>[A-Z_ ]+?)\s*(?:$|[;#])")
_FUNCTION = re.compile(r"\s*(?:function\s+[\w-]+\s*(?:\(\s*\))?|[\w-]+\s*\(\s*\))\s*\{?\s*$")
_EXPANSION = re.compile(r"\$(?:\{(?P<braced>\w+)(?::?-(?P<default>[^{}$]*))?\}|(?P<plain>\w+))")
_SHELL_FILES = (
    ".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_aliases", ".zshrc", ".zshenv", ".zprofile",
)  # fmt: skip
_SYSTEM_FILES = ("etc/environment", "etc/profile", "etc/bash.bashrc", "etc/bashrc")


def assignments(prefix: Path, variables: Mapping[str, str]) -> tuple[KeptVariable, ...]:
    """What the activation scripts (for sh) set and unset of `NAMES`, in the order in which they do.

    `variables` are those of the shell, for expansions. What a command substitution would give is left out.
    """
    known = {**variables, "VIRTUAL_ENV": str(prefix), "CONDA_PREFIX": str(prefix)}
    found: list[KeptVariable] = []
    for script in _scripts(prefix):
        for name, value, number in _statements(read_text(script) or "", known):
            where = f"{layout.relative(script, prefix)}:{number}"
            found.append(KeptVariable(name=name, value=value, source=where))
    return tuple(found)


def _scripts(prefix: Path) -> Iterator[Path]:
    folder = prefix / "etc" / "conda" / "activate.d"
    conda = (folder / name for name in names(folder) if name.endswith(".sh"))
    yield from (prefix / "bin" / name for name in ("activate", "postactivate") if name in names(prefix / "bin"))
    yield from conda


def _statements(text: str, known: dict[str, str]) -> Iterator[tuple[str, str | None, int]]:
    """Assignments outside of functions (``deactivate`` puts old values back), with their line numbers."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if inside:
            inside = not line.startswith("}")
        elif _FUNCTION.match(line):
            inside = True
        elif (unset := _UNSET.match(line)) is not None:
            for name in NAMES.intersection(unset["names"].split()):
                known.pop(name, None)
                yield name, None, number
        elif (assigned := _STATEMENT.match(line)) is not None:
            value = _value(assigned["value"], known)
            if value is None:
                continue
            known[assigned["name"]] = value
            if assigned["name"] in NAMES:
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


def origin(name: str, value: str, variables: Mapping[str, str], root: Path = Path("/")) -> str:
    """Where the shell's `name` comes from: ``process``, with the file and line, or the image, that sets it."""
    home = Path(variables.get("HOME") or "/nonexistent")
    profile = root / "etc" / "profile.d"
    files = [
        *(home / item for item in _SHELL_FILES),
        *(root / item for item in _SYSTEM_FILES),
        *(profile / item for item in names(profile)),
    ]
    for file in files:
        known = dict(variables)
        lines = [
            number
            for item, found, number in _statements(read_text(file) or "", known)
            if (item, found) == (name, value)
        ]
        if lines:
            return f"process ({file}:{lines[-1]})"
    first = read_bytes(root / "proc/1/environ") or b""
    if os.fsencode(f"{name}={value}") in first.split(b"\0"):
        return "process (set for the whole container or system)"
    return "process"
