"""Facts on the run-time libraries of C and C++ that compiled modules find."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(
        name="libstdcxx.missing-versions",
        type="strings",
        doc="versions of libstdc++ (GLIBCXX_3.4.30) that compiled modules need and the copy that they find lacks",
        detail="libstdcxx.needed-by",
    ),
    FactKind(
        name="libstdcxx.needed-by",
        type="strings",
        doc="the modules that need these versions, and the copy that they find",
    ),
    FactKind(name="libstdcxx.path", type="string", doc="the copy of libstdc++ that compiled modules find"),
    FactKind(name="libstdcxx.newest", type="string", doc="the newest version that this copy has"),
    FactKind(
        name="libstdcxx.old-entries",
        type="strings",
        doc="entries of LD_LIBRARY_PATH that lead to too old a copy, where a good one is found without them",
        detail="libstdcxx.path",
    ),
    FactKind(
        name="libstdcxx.advice", type="string", doc="what to do about it, by where that copy is and which others exist"
    ),
    FactKind(
        name="libc.missing-versions",
        type="strings",
        doc="versions of the C library (GLIBC_2.34) that compiled modules need and the system's lacks",
        detail="libc.needed-by",
    ),
    FactKind(name="libc.needed-by", type="strings", doc="the modules that need these versions"),
)
