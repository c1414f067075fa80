"""Construction of a lock from the facts of an environment. Pure: no solver, no network, no files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from envmedic.conda_meta.specs import name_of
from envmedic.conda_meta.urls import without_credentials
from envmedic.model.conda import CondaEnvironment, CondaPackage
from envmedic.model.facts import Distribution, Environment, Host
from envmedic.model.lock import Incomplete, Lock, LockedKind, LockedPackage, WheelFile

Known = Mapping[tuple[str, str], WheelFile]
"""Origin files of distributions, by normalised name and version."""

LOCAL_BUILDS: Final = frozenset({"sdist", "vcs", "directory", "editable"})
"""Kinds that are built on the machine of the installation."""
_PLATFORMS: Final = {
    ("linux", "x86_64"): "linux-64",
    ("linux", "aarch64"): "linux-aarch64",
    ("linux", "ppc64le"): "linux-ppc64le",
    ("linux", "s390x"): "linux-s390x",
    ("darwin", "x86_64"): "osx-64",
    ("darwin", "arm64"): "osx-arm64",
    ("win32", "AMD64"): "win-64",
}
"""Conda's names of platforms, its "subdirectories".

https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/channels.html
"""
_VIRTUAL = re.compile(r"(?P<name>__[a-z]+)\s*(?:>=|==?|~=)?\s*(?P<version>[0-9][0-9.]*)?")


def collect(environment: Environment, host: Host, known: Known, *, envmedic: str, created: str) -> Lock:
    """The lock of `environment`: conda packages, then distributions of pip or uv, both sorted by name."""
    conda = environment.conda or CondaEnvironment()
    own = tuple(_by_pip(environment, conda))
    by_conda = (_conda_package(item, _requested(item, conda)) for item in conda.packages)
    packages = (*by_conda, *(_pip_package(item, known) for item in own))
    return Lock(
        envmedic=envmedic,
        created=created,
        platform=platform_of(host),
        python=environment.interpreter.version or "",
        packages=packages,
        channels=_channels(conda),
        indexes=_indexes(packages),
        cuda=environment.torch.cuda if environment.torch is not None else None,
        virtual_packages=_virtual_packages(conda),
        incomplete=tuple(_not_in_it(environment, conda, own)),
        name=environment.prefix.rstrip("/").rpartition("/")[2],
        builds=any(item.kind in LOCAL_BUILDS for item in packages),
    )


def platform_of(host: Host) -> str:
    """Conda's name of the machine's platform, such as ``linux-64``."""
    return _PLATFORMS.get((host.system, host.machine), f"{host.system}-{host.machine}")


def without_secrets(url: str) -> str:
    """`url` without user, password, query and fragment: any of them can hold a credential."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _by_pip(environment: Environment, conda: CondaEnvironment) -> Iterator[Distribution]:
    """The environment's own distributions outside of conda packages, each name once."""
    # of a duplicate the first copy counts, and `_not_in_it` names the others
    seen = set()
    for item in sorted(environment.distributions, key=lambda item: item.name):
        if not item.outside_prefix and item.name not in seen and not _is_of_conda(item, conda):
            seen.add(item.name)
            yield item


def _is_of_conda(item: Distribution, conda: CondaEnvironment) -> bool:
    # INSTALLER alone does not decide: a distribution may say conda while no record of conda has it
    return item.owner == "conda" and conda.owner_of(item.name) is not None


def _not_in_it(
    environment: Environment, conda: CondaEnvironment, own: tuple[Distribution, ...]
) -> Iterator[Incomplete]:
    """Installed packages that no format can lock."""
    for path in conda.damaged:
        reason = "its record cannot be read: repair the environment first"
        yield Incomplete(name=path.rpartition("/")[2].removesuffix(".json"), version="", reason=reason)
    for name in environment.duplicates:
        versions = sorted({item.version for item in environment.distributions if item.name == name})
        reason = f"installed more than once ({', '.join(versions)}): repair the environment first"
        yield Incomplete(name=name, version=versions[0] if versions else "", reason=reason)
    here = {item.name for item in own} | {name for package in conda.packages for name in package.distributions}
    # with system site-packages the base Python shows hundreds: only those that the environment itself needs matter
    needed = {_required(text) for item in own for text in item.requires}
    for item in environment.distributions:
        if item.outside_prefix and item.name in needed - here:
            reason = "lies outside the environment, in the Python that it was made from: install it in the environment"
            yield Incomplete(name=item.name, version=item.version, reason=reason)


def _required(requirement: str) -> str:
    """Normalised name of a requirement, which need not be valid otherwise."""
    found = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _requested(package: CondaPackage, conda: CondaEnvironment) -> tuple[str, ...]:
    """The user's specs for a package: by the history, or by its record in an environment whose history has none."""
    # conda trusts the history alone; py-rattler and mamba 2 write the specs into records too
    stated = [text for text in conda.requested if _is_of(text, package)] if conda.requested else package.requested
    return tuple(without_credentials(text) for text in stated)


def _is_of(spec: str, package: CondaPackage) -> bool:
    """Whether a spec names the package; an unreadable one names none."""
    try:
        return name_of(spec) == package.name.lower()
    except ValueError:
        return False


def _conda_package(package: CondaPackage, requested: tuple[str, ...]) -> LockedPackage:
    return LockedPackage(
        manager="conda",
        name=package.name,
        version=package.version,
        kind="conda",
        url=without_secrets(package.url) or None,
        filename=package.filename or None,
        sha256=package.sha256,
        md5=package.md5,
        size_bytes=package.size_bytes,
        requires=package.depends,
        build=package.build,
        channel=package.channel or None,
        subdir=package.subdir or None,
        hash_source="conda record" if package.sha256 or package.md5 else "",
        installed_by="conda",
        requested=requested,
    )


def _pip_package(item: Distribution, known: Known) -> LockedPackage:
    stated = _stated(item)
    file = known.get((item.name, item.version))
    # the hash in direct_url.json is that of the installed file: a known file with another hash is not the one
    if file is None or (stated.sha256 is not None and stated.sha256 != file.sha256) or stated.kind not in _FROM_FILES:
        return stated
    return LockedPackage(
        manager="pip",
        name=item.name,
        version=item.version,
        kind=stated.kind if stated.kind == "archive" else file.kind,
        url=stated.url or file.url,
        filename=stated.filename or file.filename,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        requires=item.requires,
        index=file.index,
        subdirectory=stated.subdirectory,
        hash_source=stated.hash_source or file.source,
        installed_by=item.owner,
        requested=stated.requested,
    )


_FROM_FILES = frozenset({"wheel", "archive", "unknown"})
"""Kinds with a package file whose hash can be known."""
_KINDS: Mapping[str, LockedKind] = {
    "index": "wheel",
    "archive": "archive",
    "vcs": "vcs",
    "directory": "directory",
    "editable": "editable",
    "conda": "unknown",  # by its INSTALLER, and no record of conda has it
    "unknown": "unknown",
}


def _stated(item: Distribution) -> LockedPackage:
    """The entry by the distribution's own metadata, without paths of this machine."""
    origin = item.origin
    url = without_secrets(origin.url) if origin.url else ""
    # without a scheme it is no URL that another machine could fetch either
    local = url.startswith("file:") or "://" not in url
    filename = unquote(urlsplit(url).path).rpartition("/")[2] if origin.kind == "archive" else ""
    kind = _KINDS[origin.kind]
    return LockedPackage(
        manager="pip",
        name=item.name,
        version=item.version,
        path=unquote(urlsplit(url).path) if kind in {"directory", "editable"} and url.startswith("file:") else None,
        # a wheel from a local file may be one that an index has as well, by its name and version
        kind="wheel" if kind == "archive" and local and filename.endswith(".whl") else kind,
        url=None if local else url,
        filename=filename or None,
        sha256=origin.sha256,
        requires=item.requires,
        revision=origin.revision,
        subdirectory=origin.subdirectory,
        hash_source="direct_url.json" if origin.sha256 else "",
        installed_by=item.owner,
        requested=(item.name,) if item.requested else (),
    )


def _channels(conda: CondaEnvironment) -> tuple[str, ...]:
    """Channels by the number of their packages: records do not state the priority."""
    counts: dict[str, int] = {}
    for package in conda.packages:
        if package.channel:
            counts[package.channel] = counts.get(package.channel, 0) + 1
    return tuple(sorted(counts, key=lambda channel: (-counts[channel], channel)))


def _indexes(packages: tuple[LockedPackage, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.index for item in packages if item.index))


def _virtual_packages(conda: CondaEnvironment) -> dict[str, str]:
    """The highest version of each virtual package that a record asks for."""
    found: dict[str, str] = {}
    for package in conda.packages:
        # conda-forge's cuda-version constrains __cuda without depending on it
        for spec in (*package.depends, *(text for text in package.constrains if text.startswith("__cuda"))):
            match = _VIRTUAL.match(spec)
            if match is not None:
                version = (match["version"] or "0").rstrip(".")
                found[match["name"]] = max(found.get(match["name"], "0"), version, key=_numbers)
    return dict(sorted(found.items()))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)
