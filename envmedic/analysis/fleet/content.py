"""What of an environment's files is content, and what is only place, time or installer. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from packaging.version import InvalidVersion, Version

from envmedic.model.answers.content import Content, ContentDifference, DistributionContent
from envmedic.model.lock import Lock, LockedPackage

PLACE = b"{prefix}"
_INCIDENTAL = frozenset({
    "RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json",
})  # fmt: skip
"""Files of a dist-info that an installer writes about itself and about where a wheel came from."""
_FRAME = re.compile(
    r"pyvenv\.cfg|\.gitignore|CACHEDIR\.TAG|\.lock|\.envmedic-tx|lib64|bin/(?:python[\d.]*t?|pypy[\d.]*)"
    r"|bin/(?:activate|deactivate|Activate|pydoc)[^/]*|conda-meta/(?!pinned$).*"
    r"|lib/python[^/]*/site-packages/_virtualenv\.(?:py|pth)"
)
"""Paths of what makes a directory an environment, which name its place and its base Python."""
_SHEBANG = re.compile(rb"#![^\n]*\n(?:'''exec' [^\n]*\n' '''\n)?")
"""The first line of a script, and the two after it where the path is too long for the kernel."""


def is_incidental(name: str) -> bool:
    """Whether a path belongs to the dist-info files that say who installed a distribution, and from where."""
    folder, _, file = name.rpartition("/")
    return file in _INCIDENTAL and folder.endswith((".dist-info", ".egg-info"))


def is_frame(name: str) -> bool:
    """Whether the path, relative to the prefix, belongs to the environment's own frame."""
    return _FRAME.fullmatch(name) is not None


def is_script(name: str) -> bool:
    """Whether the path, relative to the prefix, is a program, into which installers write the path of Python."""
    return name.startswith("bin/")


def without_place(data: bytes, homes: Sequence[bytes]) -> bytes:
    """Return the content of a text without shebang, and with a mark for each of the paths `homes` in it."""
    if b"\0" in data:  # a binary file, in which nobody writes paths of another length
        return data
    data = _SHEBANG.sub(b"#!\n", data, count=1) if data.startswith(b"#!") else data
    for home in sorted(homes, key=len, reverse=True):
        if home in data:
            data = re.sub(re.escape(home) + rb"(?![\w.-])", PLACE, data)
    return data


def place_of(name: str, sites: Sequence[str]) -> str:
    """Return the place under which an untracked file is counted: below a site-packages directory its first level."""
    for site in sites:
        if name.startswith(f"{site}/"):
            return f"{site}/{name[len(site) + 1 :].partition('/')[0]}"
    return "/".join(name.split("/")[:2])


def content_differences(before: Content, after: Content) -> tuple[ContentDifference, ...]:
    """Return what differs between the contents of two environments; nothing where their digests are equal."""
    if before.digest == after.digest:
        return ()
    found = [*_distributions(_by_name(before), _by_name(after))]
    for place in sorted(before.untracked.keys() | after.untracked.keys()):
        one, two = before.untracked.get(place), after.untracked.get(place)
        if one != two:
            found.append(ContentDifference(kind="untracked", name=place, before=one, after=two))
    for name in sorted(before.variables.keys() | after.variables.keys()):
        old, new = _variable(before, name), _variable(after, name)
        if old != new:
            found.append(ContentDifference(kind="variable", name=name, before=old, after=new))
    if before.system_site != after.system_site:
        words = [str(item.system_site).lower() for item in (before, after)]
        found.append(ContentDifference(kind="system-site", name="packages", before=words[0], after=words[1]))
    return tuple(found)


def lock_differences(wanted: Lock, found: Content) -> tuple[ContentDifference, ...]:
    """Return in what distributions differ from a lock, which tells versions and builds, and nothing of other files.

    A distribution whose files are not as its own list says differs too.
    """
    asked = {(item.name, item.manager == "conda"): item for item in wanted.packages}
    unheld = {item.name for item in wanted.incomplete}
    here = _by_name(found)
    rows = []
    for key in sorted(asked.keys() | here.keys()):
        item, items = asked.get(key), here.get(key, ())
        altered = tuple(path for one in items for path in one.altered)
        if item is None and key[0] in unheld:
            continue
        locked = item is not None and len(items) == 1 and _is_locked(item, items[0])
        if altered or not locked:
            after = _stated(items)
            # of the locked version, and so told as one whose files differ
            before = after if locked else None if item is None else f"{item.version} {item.build or ''}".strip()
            rows.append(
                ContentDifference(kind="distribution", name=key[0], before=before, after=after, altered=altered)
            )
    return tuple(rows)


def _is_locked(wanted: LockedPackage, found: DistributionContent) -> bool:
    if wanted.build and wanted.build != found.variant:
        return False
    try:
        return Version(wanted.version) == Version(found.version)
    except InvalidVersion:  # of conda, such as 9e
        return wanted.version == found.version


def _variable(content: Content, name: str) -> str | None:
    """The value of a variable, ``unset`` where activation unsets it, None where it leaves it alone."""
    if name not in content.variables:
        return None
    value = content.variables[name]
    return "unset" if value is None else f"={value}"


_ByName = Mapping[tuple[str, bool], Sequence[DistributionContent]]


def _by_name(content: Content) -> _ByName:
    """Distributions by name, apart from packages of conda: a name can have one of each, and several by mistake."""
    found: dict[tuple[str, bool], list[DistributionContent]] = {}
    for item in content.distributions:
        found.setdefault((item.name, item.owner == "conda"), []).append(item)
    return found


def _distributions(before: _ByName, after: _ByName) -> Iterator[ContentDifference]:
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key, ()), after.get(key, ())
        words = [_stated(items) for items in (old, new)]
        same = words[0] == words[1]
        if not same or [item.files for item in old] != [item.files for item in new]:
            altered = tuple(dict.fromkeys(path for item in new for path in item.altered)) if same else ()
            yield ContentDifference(kind="distribution", name=key[0], before=words[0], after=words[1], altered=altered)


def _stated(items: Sequence[DistributionContent]) -> str | None:
    """Versions with variant and owner; None where it is not installed."""
    told = (f"{item.version}{f' {item.variant}' if item.variant else ''} ({item.owner})" for item in items)
    return ", ".join(told) or None
