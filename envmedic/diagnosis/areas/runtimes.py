"""The C and C++ run-time libraries: versions that compiled modules need and do not find, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import CxxRuntime, Environment, Facts, UnmetVersion

_CXX = ("GLIBCXX_", "CXXABI_")
_C = ("GLIBC_",)
_LIBRARY_PATH = "LD_LIBRARY_PATH"


def derive(facts: Facts) -> Derived:
    """The facts of `model.kinds_runtimes`."""
    environment = facts.environment
    if environment is None:
        return {}
    unmet = [item for library in (*environment.libraries, *environment.extensions) for item in library.unmet_versions]
    cxx = [item for item in unmet if item.version.startswith(_CXX)]
    process = next((item for item in environment.cxx_runtimes if item.found_by == "process"), None)
    path = facts.variables().get(_LIBRARY_PATH)
    derived = _missing("libstdcxx", cxx) | _missing("libc", [item for item in unmet if item.version.startswith(_C)])
    derived |= {
        "libstdcxx.path": process.path if process is not None else None,
        "libstdcxx.newest": process.newest if process is not None else None,
        "libstdcxx.library-path": _library_path(environment, cxx, path.value if path is not None else ""),
    }
    return derived | ({"libstdcxx.advice": _advice(environment, cxx)} if cxx or unmet else {})


def _missing(name: str, unmet: Iterable[UnmetVersion]) -> Derived:
    found = list(unmet)
    told = (f"{item.needed_by} needs {item.version}, {item.found} lacks it" for item in found)
    return {
        f"{name}.missing-versions": tuple(sorted({item.version for item in found}, key=_key)),
        f"{name}.needed-by": tuple(dict.fromkeys(told)),
    }


def _key(version: str) -> tuple[str, list[int]]:
    family, _, number = version.partition("_")
    return family, [int(part) for part in re.findall(r"\d+", number)]


def sufficient(runtime: CxxRuntime, versions: Iterable[str]) -> bool:
    """Whether a copy has all these versions. Each release has those of all before it."""
    newest = {item.partition("_")[0]: item for item in (runtime.newest, runtime.newest_abi) if item is not None}
    families = ((item.partition("_")[0], item) for item in versions)
    return all(family in newest and _key(item) <= _key(newest[family]) for family, item in families)


def _library_path(environment: Environment, unmet: Sequence[UnmetVersion], value: str) -> str | None:
    """LD_LIBRARY_PATH without the entries that lead to too old a copy, if the next one in line is good."""
    versions = {item.version for item in unmet}
    found = {item.found for item in unmet}
    process = next((item for item in environment.cxx_runtimes if item.path in found), None)
    if process is None or process.entry is None or not value:
        return None
    bad = {item.entry for item in environment.cxx_runtimes if item.entry and not sufficient(item, versions)}
    rest = [item for item in environment.cxx_runtimes if item is not process and item.entry not in bad]
    following = [item for item in rest if item.found_by in {_LIBRARY_PATH, "system"}]
    if not following or not sufficient(following[0], versions):
        return None
    return ":".join(entry for entry in re.split("[:;]", value) if entry and entry not in bad)


def _advice(environment: Environment, unmet: Sequence[UnmetVersion]) -> str:
    if not unmet:
        return (
            "The module was made for a newer operating system, whose C library cannot be exchanged alone. Install a "
            "release of it with a wheel for this system (pip download --no-deps shows which are offered), build it "
            "here, or run it in a container of a newer system."
        )
    versions = {item.version for item in unmet}
    better = next((item for item in environment.cxx_runtimes if sufficient(item, versions)), None)
    needed = ", ".join(sorted(versions, key=_key))
    if better is not None:
        folder = PurePosixPath(better.path).parent
        return (
            f"{better.path} has {needed}, and {unmet[0].found} is found before it. Put {folder} first in "
            f"LD_LIBRARY_PATH where Python is started, or take the older copy out of the way of the loader."
        )
    if environment.kind == "conda":
        return f"No copy here has {needed}: conda install -c conda-forge 'libstdcxx-ng>=12' brings one."
    return (
        f"No copy of libstdc++ here has {needed}. Install a newer one with the system's package manager (package "
        "libstdc++6 or libstdc++) or from conda-forge (libstdcxx-ng), or a build of the module for this system."
    )
