"""Virtual packages: properties of a machine in the form of conda packages.

https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from envmedic.compat import tables, versions
from envmedic.conda_meta import specs
from envmedic.installers.conda.configuration.spec_matching import matches
from envmedic.model.conda import CondaArtifact, CondaPackage
from envmedic.model.facts import Host

Virtual = tuple[str, str, str]
"""Name, version and build."""
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
OBSERVED = "observed"
_ASKED = frozenset({"__cuda", "__glibc", "__linux"})
"""Properties whose version a package may limit."""


def packages(host: Host, environ: Mapping[str, str] = os.environ) -> tuple[Virtual, ...]:
    """The virtual packages of `host`, without its processor if it is this machine (`of_this_machine`).

    CONDA_OVERRIDE_GLIBC and CONDA_OVERRIDE_LINUX count only on this machine; CONDA_OVERRIDE_CUDA is in the facts.
    """
    own = environ if of_this_machine(host) else {}
    if host.system != "linux":
        return _elsewhere(host)
    found = [("__unix", "0", "0")]
    found += _numbered("__linux", own.get("CONDA_OVERRIDE_LINUX", host.kernel))
    found += _numbered("__glibc", own.get("CONDA_OVERRIDE_GLIBC", host.glibc))
    found += _numbered("__cuda", cuda(host))
    # On this machine py-rattler adds __archspec in the helper: it knows microarchitectures, and the facts only x86_64.
    if not of_this_machine(host):
        found.append(("__archspec", "1", host.machine))
    return tuple(found)


def of_this_machine(host: Host) -> bool:
    """Whether `host` is this machine, and not one that a file of facts describes."""
    return host.source == OBSERVED


def cuda(host: Host) -> str | None:
    """The newest CUDA version that the driver supports: as reported, or else derived from the driver's version."""
    if host.driver_cuda or not host.driver_version:
        return host.driver_cuda
    driver = versions.dotted(host.driver_version)
    known = [
        version
        for version, toolkit in tables.toolkits().items()
        if toolkit.driver_linux and driver and driver >= versions.dotted(toolkit.driver_linux)
    ]
    return max(known, key=versions.dotted, default=None)


def unmet_requirements(
    wanted: Sequence[CondaArtifact], host: Host, environ: Mapping[str, str] = os.environ
) -> tuple[str, ...]:
    """Requirements on a machine that `host` does not meet, a sentence each. Raises ValueError for a bad spec.

    A constraint of a package (``constrains``) counts only if the host has that virtual package at all.
    """
    here = {name: version for name, version, _ in packages(host, environ)}
    lacking: dict[str, list[str]] = {}
    for item in wanted:
        for text in (*item.metadata.get("depends", ()), *item.metadata.get("constrains", ())):
            name = specs.name_of(text)
            present = name in here or text in item.metadata.get("depends", ())
            if name in _ASKED and present and not _offered(text, name, here.get(name)):
                lacking.setdefault(f"{name} {text[len(name) :].strip()}".strip(), []).append(item.name)
    return tuple(
        f"{', '.join(dict.fromkeys(names))} {'needs' if len(set(names)) == 1 else 'need'} {asked}, "
        f"and this host has {here.get(asked.split()[0], 'none')}"
        for asked, names in lacking.items()
    )


def _offered(spec: str, name: str, version: str | None) -> bool:
    return version is not None and matches(spec, CondaPackage(name=name, version=version, build="0"))


def subdir(host: Host) -> str:
    """The platform's part of a channel: ``linux-64``."""
    system = {"darwin": "osx", "win32": "win"}.get(host.system, host.system)
    # conda's names: linux-64 and osx-64 for x86_64, but linux-aarch64 and osx-arm64.
    return f"{system}-{'64' if host.machine in {'x86_64', 'AMD64'} else host.machine}"


def _elsewhere(host: Host) -> tuple[Virtual, ...]:
    """Virtual packages of macOS or Windows, for a lock; macOS 11.0 is the oldest that conda-lock assumes."""
    family = ("__win", "0", "0") if host.system == "win32" else ("__unix", "0", "0")
    release = [("__osx", "11.0", "0")] if host.system == "darwin" else []
    machine = "x86_64" if host.machine == "AMD64" else host.machine
    return (family, *release, *_numbered("__cuda", cuda(host)), ("__archspec", "1", machine))


def _numbered(name: str, value: str | None) -> Iterator[Virtual]:
    # A kernel such as 5.15.0-91-generic; an empty CONDA_OVERRIDE variable means that the package is absent, as in
    # conda.
    match = _NUMBER.match(value or "")
    if match is not None:
        yield name, match[0], "0"
