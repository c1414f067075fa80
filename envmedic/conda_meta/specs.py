"""Names in match specs such as ``conda-forge::pytorch=2.3`` or ``numpy[version='<2']``, and plain ranges of versions.

py-rattler decides whether a package matches a spec (`installers.conda.configuration.spec_matching`), and takes 0.16 s
to import. Names need no order of versions, and most ranges only that of numbers.
"""

from __future__ import annotations

import re

LONGEST = 1024
"""Limit in characters; a spec with a URL and hashes has some hundreds."""
_PACKAGE_FILE = (".conda", ".tar.bz2")
_NAME = re.compile(r"[^\s=<>!~]+")
_FIELD = re.compile(r"""[\[,\s](version|build)\s*=\s*["']?([^"',\]]*)""")
_RANGE = frozenset("<>!~,|*")
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
# `<3.0a0` is below all of 3.0: no version of numbers alone is between the two
_BOUND = re.compile(r"(?P<operator>[<>]=?|[=!]=|=|)(?P<numbers>\d+(?:\.\d+)*)(?P<end>a0|\.\*|)")


def plain(text: str) -> str:
    """`text` without comment and condition. Raises ValueError when it is longer than any spec."""
    if len(text) > LONGEST:
        raise ValueError(f"a text of {len(text)} characters is no spec")
    return text.partition("#")[0].partition(" if ")[0].strip()


def name_of(text: str) -> str:
    """Return the package name of a spec in lower case; ``*`` for a feature. Raises ValueError."""
    return _parts(text)[0]


def is_exact(text: str) -> bool:
    """Whether a spec allows one version only, or names a build. Raises ValueError."""
    _, rest = _parts(text)
    # a field in brackets overrides the positional part: `numpy 1.0[version=2.0]` means 2.0, as in conda's MatchSpec
    fields = dict(_FIELD.findall(rest))
    version, _, build = (part.strip() for part in rest.partition("[")[0].strip().partition(" "))
    # in `>= 1` and `>=2, <3` the blank belongs to the version, and there is no build
    if build and {version[-1:], build[0]} & set("<>=!~,|"):
        version, build = version + build, ""
    version = fields.get("version", version)
    number, _, joined = version.lstrip("=").partition("=")  # `=2.3=build`
    # `=2.3` is a prefix (2.3.*), `==2.3` and `2.3` are one version
    one_version = bool(number) and not set(version) & _RANGE and (version[0] != "=" or version.startswith("=="))
    return bool(build or "build" in fields or (joined and not set(number) & _RANGE) or one_version)


def admits(text: str, version: str) -> bool | None:
    """Whether a spec admits a version of numbers alone; None for all others, where more than the order of numbers decides."""
    try:
        _, rest = _parts(text)
    except ValueError:
        return None
    stated, _, build = rest.partition(" ")
    if "[" in rest or _NUMBERS.fullmatch(version) is None or build[:1] in set("<>=!~,|*") - {"*"}:
        return None
    ways = [[_within(part, version) for part in way.split(",")] for way in stated.split("|")] if stated else [[True]]
    found = [False if False in way else None if None in way else True for way in ways]
    return True if True in found else None if None in found else False


def _within(part: str, version: str) -> bool | None:
    """Whether a version of numbers lies within one bound."""
    if part == "*":
        return True
    bound = _BOUND.fullmatch(part)
    if bound is None:
        return None
    operator, end = bound["operator"], bound["end"]
    wanted, there = _filled(bound["numbers"], version)
    if end == ".*" or operator == "=":
        size = bound["numbers"].count(".") + 1
        inside = wanted[:size] == there[:size]
        # stars after other operators are read in several ways
        return {"": inside, "=": inside, "==": inside, "!=": not inside}.get(operator) if end != "a0" else None
    if end == "a0":
        return {"<": there < wanted, ">=": there >= wanted}.get(operator)
    compared = {
        "": there == wanted, "==": there == wanted, "!=": there != wanted, "<": there < wanted, "<=": there <= wanted,
        ">": there > wanted, ">=": there >= wanted,
    }  # fmt: skip
    return compared[operator]


def _filled(*texts: str) -> tuple[tuple[int, ...], ...]:
    """Versions as numbers, with zeros behind the shorter ones."""
    numbers = [tuple(map(int, text.split("."))) for text in texts]
    longest = max(map(len, numbers))
    return tuple(item + (0,) * (longest - len(item)) for item in numbers)


def _parts(text: str) -> tuple[str, str]:
    """Split a spec into the name in lower case and the rest."""
    spec = plain(text)
    if spec.endswith("@"):  # a feature: whatever package tracks it
        return "*", ""
    if spec.endswith(_PACKAGE_FILE):
        # a name may contain hyphens, version and build may not
        stem = spec.rpartition("/")[2].removesuffix(".conda").removesuffix(".tar.bz2")
        name, version, build = (["", "", "", *stem.rsplit("-", 2)])[-3:]
        if not (name and version and build):
            raise ValueError(f"{text!r} is no file of a package")
        return name.lower(), f"=={version} {build}"
    # the bracket first: a URL inside it contains colons that are no channel
    before, bracket, fields = spec.partition("[")
    where, _, rest = before.rpartition("::")
    rest = (rest.rpartition(":")[2] if where else rest).strip()
    match = _NAME.match(rest)
    if match is None:
        raise ValueError(f"{text!r} names no package")
    return match[0].lower(), rest[match.end() :].strip() + bracket + fields
