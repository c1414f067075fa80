"""Names in match specs such as ``conda-forge::pytorch=2.3`` or ``numpy[version='<2']``.

Whether a package matches a spec is py-rattler's to say (`installers.conda.configuration.spec_matching`); names need no order of versions.
"""

from __future__ import annotations

import re

LONGEST = 1024
"""Characters of a spec; those of addresses with their hashes have some hundreds."""
_PACKAGE_FILE = (".conda", ".tar.bz2")
_NAME = re.compile(r"[^\s=<>!~]+")
_FIELD = re.compile(r"""[\[,\s](version|build)\s*=\s*["']?([^"',\]]*)""")
_RANGE = frozenset("<>!~,|*")


def plain(text: str) -> str:
    """`text` without comment and condition. Raises ValueError when it is longer than any spec."""
    if len(text) > LONGEST:
        raise ValueError(f"a text of {len(text)} characters is no spec")
    return text.partition("#")[0].partition(" if ")[0].strip()


def name_of(text: str) -> str:
    """The name of the package that a spec is of, in lower case, ``*`` where it names none. Raises ValueError."""
    return _parts(text)[0]


def is_exact(text: str) -> bool:
    """Whether a spec binds its package to one version, or to builds of a pattern. Raises ValueError."""
    _, rest = _parts(text)
    fields = dict(_FIELD.findall(rest))
    version, _, build = (part.strip() for part in rest.partition("[")[0].strip().partition(" "))
    if build and {version[-1:], build[0]} & set("<>=!~,|"):  # `>= 1`, `>=2, <3`: no build
        version, build = version + build, ""
    version = fields.get("version", version)
    number, _, joined = version.lstrip("=").partition("=")  # `=2.3=build`
    one_version = bool(number) and not set(version) & _RANGE and (version[0] != "=" or version.startswith("=="))
    return bool(build or "build" in fields or (joined and not set(number) & _RANGE) or one_version)


def _parts(text: str) -> tuple[str, str]:
    """The name in lower case, and what follows it."""
    spec = plain(text)
    if spec.endswith("@"):  # a feature: whatever package tracks it
        return "*", ""
    if spec.endswith(_PACKAGE_FILE):
        stem = spec.rpartition("/")[2].removesuffix(".conda").removesuffix(".tar.bz2")
        name, version, build = (["", "", "", *stem.rsplit("-", 2)])[-3:]
        if not (name and version and build):
            raise ValueError(f"{text!r} is no file of a package")
        return name.lower(), f"=={version} {build}"
    before, bracket, fields = spec.partition("[")
    where, _, rest = before.rpartition("::")
    rest = (rest.rpartition(":")[2] if where else rest).strip()
    match = _NAME.match(rest)
    if match is None:
        raise ValueError(f"{text!r} names no package")
    return match[0].lower(), rest[match.end() :].strip() + bracket + fields
