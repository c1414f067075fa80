"""Comparison of match specs with installed packages by py-rattler.

py-rattler differs from conda: it does not compare channel and subdir (this module does), refuses regular expressions
on versions and build strings of more than 64 characters, accepts ``~=1.2.*``, and reads stars after other operators
than ``=`` and ``!=`` as conda does not. A spec that it refuses raises ValueError, and never matches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envmedic.conda_meta import specs, urls
from envmedic.model.conda import CondaPackage

if TYPE_CHECKING:
    from rattler import RepoDataRecord

_ELABORATE = re.compile(r"\(\?|\\[1-9]")
"""Look-around and backreferences, which need backtracking; conda's own patterns do without them."""
_ANY = re.compile(r"(?<![=<>!~])=(?=\[|$)")
"""``pytorch=`` is any version: conda writes ``pytorch=[build=*cuda*]``, and py-rattler does not read that."""
_STARS = re.compile(r"\*{2,}")
_EMPTY = re.compile(r"\[\s*\]")
_KEY = re.compile(r'[\[,](\w+)(?==[\["])')
_KNOWN = frozenset({"version", "build", "build_number", "channel", "subdir", "md5", "sha256", "url", "fn"})


def matches(text: str, package: CondaPackage) -> bool:
    """Whether `package` matches a spec. Raises ValueError for an unreadable spec or an unknown field."""
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError, InvalidUrlError, InvalidVersionError

    stated = _STARS.sub("*", _ANY.sub("", urls.without_credentials(specs.plain(text))))
    if _EMPTY.search(stated):
        raise ValueError(f"{text!r} has brackets that cannot be read")
    if "^" in stated and _ELABORATE.search(stated):
        raise ValueError(f"{text!r} has a regular expression with look-around or backreferences")
    try:
        spec = MatchSpec(stated, exact_names_only=False)
        found = spec.matches(_record(package))
    except (InvalidMatchSpecError, InvalidUrlError, InvalidVersionError) as error:
        raise ValueError(f"{text!r} holds a constraint that cannot be read: {error}") from error
    # Fields such as license are not among the facts of an installed package: the record below lacks them.
    unknown = set(_KEY.findall(spec.to_canonical_string())) - _KNOWN
    if unknown:
        raise ValueError(f"{text!r} asks for {', '.join(sorted(unknown))}, which an installed package does not tell")
    # The record below has a placeholder for the channel, so that only this comparison decides.
    channel = spec.channel
    there = channel is None or channel.name in {None, "*"} or urls.same(channel.base_url, package.channel)
    return found and there and spec.subdir in {None, package.subdir}


def canonical(text: str) -> str:
    """A spec as py-rattler writes it: ``numpy=1.26`` is ``numpy 1.26.*``. Raises ValueError for an unreadable one."""
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        return str(MatchSpec(specs.plain(text), exact_names_only=False))
    except InvalidMatchSpecError as error:
        raise ValueError(f"{text!r} cannot be read: {error}") from error


def _record(package: CondaPackage) -> RepoDataRecord:
    from rattler import BuildString, PackageRecord, RepoDataRecord

    record = PackageRecord(
        package.name,
        package.version,
        BuildString(package.build),
        package.build_number,
        package.subdir or "noarch",
        md5=bytes.fromhex(package.md5 or "") or None,
        sha256=bytes.fromhex(package.sha256 or "") or None,
    )
    filename = package.filename or f"{package.name}-{package.version}-{package.build}.conda"
    url = package.url or f"file:///unknown/{package.subdir}/{filename}"
    return RepoDataRecord(record, filename, url, "file:///unknown")
