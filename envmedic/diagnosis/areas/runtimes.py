"""Facts on the C and C++ run-time libraries: missing symbol versions, with advice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from envmedic.analysis.cxx_runtimes import LIBRARY_PATH, key, old_entries, sufficient, unmet_cxx, unmet_versions
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Environment, Facts, UnmetVersion

_C = ("GLIBC_",)


def derive(facts: Facts) -> Derived:
    """The facts of `model.vocabulary.kinds_runtimes`."""
    environment = facts.environment
    if environment is None:
        return {}
    unmet, cxx = unmet_versions(environment), unmet_cxx(environment)
    process = next((item for item in environment.cxx_runtimes if item.found_by == "process"), None)
    path = facts.variables().get(LIBRARY_PATH)
    derived = _missing("libstdcxx", cxx) | _missing("libc", [item for item in unmet if item.version.startswith(_C)])
    derived |= {
        "libstdcxx.path": process.path if process is not None else None,
        "libstdcxx.newest": process.newest if process is not None else None,
        "libstdcxx.old-entries": old_entries(environment, path.value if path is not None else ""),
    }
    return derived | ({"libstdcxx.advice": _advice(environment, cxx)} if cxx or unmet else {})


def _missing(name: str, unmet: Iterable[UnmetVersion]) -> Derived:
    found = list(unmet)
    sentences = (f"{item.needed_by} needs {item.version}, {item.found} lacks it" for item in found)
    return {
        f"{name}.missing-versions": tuple(sorted({item.version for item in found}, key=key)),
        f"{name}.needed-by": tuple(dict.fromkeys(sentences)),
    }


def _advice(environment: Environment, unmet: Sequence[UnmetVersion]) -> str:
    # no C++ version is missing, so it is glibc: the loader and libc must be of one build, so no copy can be put first
    if not unmet:
        return (
            "The module was made for a newer operating system, whose C library cannot be exchanged alone. Install a "
            "release of it with a wheel for this system (pip download --no-deps shows which are offered), build it "
            "here, or run it in a container of a newer system."
        )
    versions = {item.version for item in unmet}
    better = next((item for item in environment.cxx_runtimes if sufficient(item, versions)), None)
    needed = ", ".join(sorted(versions, key=key))
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
