"""Facts on crashes in compiled code, OpenMP runtimes and MKL."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envmedic.analysis.shared_runtimes import mkl_wheels, openmp_family, removable
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Environment, Facts, ImportCrash, Library, OpenMpRuntime

_MKL_FILE = re.compile(r"(lib)?mkl_|libi?omp5?\.|libgomp")
# functions of Intel's profilers (ITT, JIT): torch builds with MKL 2024.0 link them, MKL 2024.1 removed them
_PROFILER = re.compile(r"iJIT_|__itt_")
_STACK = re.compile(r"File \"|(?:Current t|T)hread 0x|Traceback |Extension modules:|\^+$|<no Python frame>")
_SHOWN = 400
_LAYER = "MKL_THREADING_LAYER"


def derive(facts: Facts) -> Derived:
    """The facts of ``crash.*``, ``openmp.*`` and ``mkl.*``."""
    derived = _crash(facts.import_crash, facts.environment)
    environment = facts.environment
    if environment is None:
        return derived
    layer = facts.variables().get(_LAYER)
    derived["mkl.threading-layer"] = layer.value if layer is not None else None
    return derived | _openmp(environment) | _mkl(environment)


def _crash(crash: ImportCrash | None, environment: Environment | None) -> Derived:
    if crash is None:
        return {"crash.advice": UNKNOWN_PAIR}
    tops = {name.partition(".")[0] for name in crash.sequence}
    installed = environment.distributions if environment is not None else ()
    return {
        "crash.sequence": crash.sequence,
        "crash.signal": crash.signal,
        "crash.error": told(crash.error),
        "crash.works": crash.works,
        "crash.distributions": tuple(dict.fromkeys(item.name for item in installed if tops & set(item.import_names))),
        "crash.advice": _advice(crash),
    }


def told(error: str) -> str:
    """The last output of a process as one line, without the stack."""
    lines = (line.strip() for line in error.splitlines())
    return " ".join(line for line in lines if line and not _STACK.match(line))[:_SHOWN]


UNKNOWN_PAIR = (
    "Find out which imports crash together: run the program with `envmedic run -- CMD`, which shows the Python lines "
    "of the crash, and give its text with --log."
)


def _advice(crash: ImportCrash) -> str:
    names = " then ".join(crash.sequence)
    how = f"is ended by {crash.signal}" if crash.signal else "fails"
    if len(crash.sequence) == 1:
        return f"Importing {names} alone {how}: install another release of it."
    seen = f"Importing {names} {how}."
    if crash.works:
        order = "; ".join(f"import {name}" for name in crash.works)
        return f"{seen} The order `{order}` works: put these lines first in the program."
    return f"{seen} No order of them works: use them in separate processes, or another release of one of them."


def _openmp(environment: Environment) -> Derived:
    family = openmp_family(environment)
    derived: Derived = {
        "openmp.runtimes": tuple(f"{item.path} ({item.distribution or 'nobody known'})" for item in family),
        "openmp.advice": _openmp_advice(family, removable(environment, family)),
    }
    if len(family) > 1:  # absent otherwise: one runtime may be linked statically, which no file shows
        derived["openmp.doubled"] = True
    return derived


def _openmp_advice(family: Sequence[OpenMpRuntime], going: tuple[str, ...]) -> str:
    owners = ", ".join(dict.fromkeys(f"{item.distribution or item.path}" for item in family))
    if going:
        return f"Once {', '.join(going)} is gone, one runtime is left. KMP_DUPLICATE_LIB_OK is not needed."
    if len(family) > 1:
        return (
            f"Each of {owners} brings an OpenMP runtime of Intel's or LLVM's. Install them from one source, so that they "
            "share one, or use them in separate processes. KMP_DUPLICATE_LIB_OK=TRUE only hides it: results can be "
            "silently wrong."
        )
    return (
        "Another OpenMP runtime is linked into a library, or comes from outside the environment (LD_LIBRARY_PATH, "
        "LD_PRELOAD). Install the packages that meet from one source, so that they share one."
    )


def _mkl(environment: Environment) -> Derived:
    by_conda = {item.name: item.version for item in environment.native_packages}
    installed = environment.distribution("mkl")
    derived: Derived = {
        "mkl.version": installed.version if installed is not None else by_conda.get("mkl"),
        "mkl.distributions": tuple(item.name for item in mkl_wheels(environment)),
        "mkl.service": environment.distribution("mkl-service") is not None or "mkl-service" in by_conda,
    }
    own = [item for item in environment.libraries if _of_torch(item)]
    # an unreadable library of torch may be the one that lacks MKL: then nothing is known
    if own and all(item.error is None for item in own):
        missing = dict.fromkeys(name for item in own for name in item.missing if _MKL_FILE.match(name))
        symbols = [symbol.symbol for item in own for symbol in item.unresolved]
        derived["mkl.missing-libraries"] = tuple(missing)
        derived["mkl.profiler-symbols-missing"] = any(map(_PROFILER.match, symbols))
    return derived


def _of_torch(library: Library) -> bool:
    return library.distribution == "torch" or "/torch/" in f"/{library.path}"
