"""Short explanations of unsolvable requests: the solver's text without its internal terms."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envmedic.errors import NoSolution
from envmedic.installers.conda.solve.solver_request import NEVER
from envmedic.installers.conda.solve.virtual_packages import Virtual

# resolvo's tree of conflicts, as of py-rattler 0.28; a text in another form is shown as it is.
_BRANCH = re.compile(r"^[\s│├└─]*")
_HEAD = "Cannot solve the request because of: "
_ANY_OPTION = re.compile(r"^(\S+) \* can be installed with any of the following options:$")
_REQUIRES = re.compile(r"^(?P<who>\S+ \S+).* would (?P<verb>require|constrain)$")
_LIMIT = re.compile(
    r"^(?P<what>__\w+)(?: (?P<range>[^\s,]\S*?))?(?:,| .*,)? (?:which conflicts|for which no candidates)"
)
_MEANING = {
    "__cuda": "the NVIDIA driver of this host supports CUDA {version}",
    "__glibc": "this host has glibc {version}",
    "__linux": "this host has Linux {version}",
}
_ABSENT = {"__cuda": "this host has no NVIDIA driver"}


def no_solution(explanation: str, title: str, virtual: Sequence[Virtual]) -> NoSolution:
    """The error for a request without solution; `title` says what was asked for."""
    lines = _lines(explanation)
    # A missing driver or an old glibc explains everything else in the tree, and is what a user can act upon.
    limit = _limit(lines, virtual)
    return NoSolution(
        f"No conda packages give {title}",
        cause=limit or _deepest(lines),
        hint="Ask for versions that fit together, or let more of the installed packages change",
        details=tuple(lines),
    )


def _lines(explanation: str) -> list[str]:
    """Lines of the explanation, indented by depth, each once."""
    found = []
    for raw in explanation.removeprefix(_HEAD).splitlines():
        branch = _BRANCH.match(raw)
        depth = len(branch[0]) // 3 if branch else 0
        text = raw[len(branch[0]) :].strip() if branch else raw.strip()
        # Undo our own encoding: a package to remove is a constraint on a build that does not exist.
        text = text.replace(f"the constraint {NEVER}", "the constraint")
        text = re.sub(rf"the constraint (\S+) \* {NEVER} cannot be fulfilled", r"\1 is to be removed", text)
        text = _ANY_OPTION.sub(r"\1 is to stay:", text) if text.startswith("__") else text
        text = text.replace(" *,", ",").replace(" * cannot", " cannot")
        line = "  " * depth + text
        if text and line not in found:
            found.append(line)
    return found


def _limit(lines: Sequence[str], virtual: Sequence[Virtual]) -> str | None:
    """The property that this machine lacks, if the explanation names one."""
    known = {name: version for name, version, _ in virtual}
    needs = ""
    for line in lines:
        text = line.strip()
        # The limit stands below the line of the package that has it.
        needs = match["who"] if (match := _REQUIRES.match(text)) else needs
        limit = _LIMIT.match(text)
        if limit is None or limit["what"] not in {*_MEANING, *_ABSENT}:
            continue
        name = limit["what"]
        have = _MEANING[name].format(version=known[name]) if name in known else _ABSENT.get(name, "this host has none")
        wanted = " ".join(filter(None, (name, limit["range"])))
        return f"{needs or 'it'} needs {wanted}, and {have}"
    return None


def _deepest(lines: Sequence[str]) -> str | None:
    """The most specific line: a package without any candidate, else the deepest conflict."""
    texts = [(len(line) - len(line.lstrip()), line.strip()) for line in lines]
    missing = [text for _, text in texts if "no candidates were found" in text]
    conflicts = [item for item in texts if "conflicts with" in item[1] or "cannot be" in item[1]]
    if missing:
        return missing[0].rstrip(".")
    return max(conflicts, default=(0, texts[0][1] if texts else ""), key=lambda item: item[0])[1] or None
