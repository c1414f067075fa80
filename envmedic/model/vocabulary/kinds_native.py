"""Facts about crashes in compiled code, OpenMP runtimes and MKL."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(
        name="crash.sequence",
        type="strings",
        doc="import names that end Python when they are imported in this order, the smallest set that does; not "
        "observed unless imports were tried and ended so",
        detail="crash.error",
    ),
    FactKind(
        name="crash.signal",
        type="string",
        doc="signal that ends Python then, None where an import fails only in that order",
    ),
    FactKind(name="crash.error", type="string", doc="what such a process prints at its end"),
    FactKind(name="crash.works", type="strings", doc="an order of the same names that works, empty where none does"),
    FactKind(name="crash.distributions", type="strings", doc="distributions that bring those names"),
    FactKind(name="crash.advice", type="string", doc="what to do about the order of imports, in sentences"),
    FactKind(
        name="openmp.runtimes",
        type="strings",
        doc="files of Intel's and LLVM's OpenMP runtimes (libiomp5, libomp), each with who installed it",
    ),
    FactKind(
        name="openmp.doubled",
        type="bool",
        doc="whether there are several files of that kind; not observed for one, since others can be linked in",
        detail="openmp.runtimes",
    ),
    FactKind(name="openmp.advice", type="string", doc="what to do about several OpenMP runtimes, in sentences"),
    FactKind(name="mkl.version", type="version", doc="version of MKL, by pip or conda, None when it is not installed"),
    FactKind(name="mkl.distributions", type="strings", doc="installed wheels of MKL and of the runtimes that it needs"),
    FactKind(
        name="mkl.profiler-symbols-missing",
        type="bool",
        doc="whether torch's libraries need symbols of Intel's profiler that no library defines",
        detail="mkl.version",
    ),
    FactKind(
        name="mkl.missing-libraries",
        type="strings",
        doc="libraries of MKL or of an OpenMP runtime that torch's libraries need and do not find",
    ),
    FactKind(name="mkl.service", type="bool", doc="whether mkl-service, which chooses MKL's threads, is installed"),
    FactKind(
        name="mkl.threading-layer",
        type="string",
        doc="MKL_THREADING_LAYER as an activated shell has it here, None where it is not set",
    ),
)
