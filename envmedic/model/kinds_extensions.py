"""Facts on compiled modules: what they miss, for which GPUs they have code, and the C++ library that they find."""

from __future__ import annotations

from envmedic.model.fact_kind import FactKind

_FIRST = "extensions.first-undefined"

KINDS: tuple[FactKind, ...] = (
    FactKind(name="extensions.count", type="int", doc="number of compiled modules outside the torch family"),
    FactKind(
        name="extensions.undefined",
        type="strings",
        doc="distributions with a compiled module that needs a symbol which no library in its process defines",
        detail=_FIRST,
    ),
    FactKind(
        name="extensions.undefined-torch",
        type="strings",
        doc="those of them whose symbol is in a namespace of torch: they were built for another torch",
        detail=_FIRST,
    ),
    FactKind(
        name="extensions.undefined-own",
        type="strings",
        doc="those of them whose symbol is their own: a source file was left out when they were built",
        detail="extensions.own-undefined",
    ),
    FactKind(name="extensions.first-undefined", type="string", doc="the first such symbol of torch, and who needs it"),
    FactKind(name="extensions.own-undefined", type="string", doc="the first such symbol of their own, and who needs it"),
    FactKind(
        name="extensions.other-cxx-abi",
        type="strings",
        doc="distributions built with the other form of C++ strings than torch",
    ),
    FactKind(
        name="extensions.built-for-torch",
        type="strings",
        doc="the torch that each of extensions.undefined-torch was built for, where that can be told",
    ),
    FactKind(
        name="extensions.replacements",
        type="strings",
        doc="requirements under which those built for another torch may have a wheel for the installed one",
    ),
    FactKind(
        name="extensions.rebuildable",
        type="strings",
        doc="distributions of extensions.undefined-torch whose source is recorded",
    ),
    FactKind(
        name="extensions.own-rebuildable",
        type="strings",
        doc="distributions of extensions.undefined-own whose source is recorded",
    ),
    FactKind(
        name="extensions.missing-libraries",
        type="strings",
        doc="libraries that compiled modules need and do not find, and who needs them",
    ),
    FactKind(
        name="extensions.missing-torch-libraries",
        type="strings",
        doc="distributions that need a library of torch which the installed torch does not have",
        detail="extensions.missing-libraries",
    ),
    FactKind(
        name="extensions.without-gpu-code",
        type="strings",
        doc="distributions whose GPU code no visible GPU of some kind can run",
        detail="extensions.gpu-code",
    ),
    FactKind(
        name="extensions.gpu-code", type="strings", doc="the GPU code of those distributions, and the GPUs that lack it"
    ),
    FactKind(
        name="extensions.unreadable", type="strings", doc="compiled modules that are damaged, and in which way"
    ),
    FactKind(
        name="torch.cxx11-abi", type="bool", doc="whether torch was compiled with the newer form of C++ strings"
    ),
    FactKind(
        name="torch.gpu-code-missing",
        type="strings",
        doc="compute capabilities of visible GPUs that neither torch's machine code nor its PTX serves",
        detail="torch.arch-list",
    ),
    FactKind(name="torch.nvrtc", type="version", doc="CUDA release of the run-time compiler that torch loads"),
    FactKind(
        name="torch.nvrtc-unknown",
        type="strings",
        doc="compute capabilities of visible GPUs that this compiler does not know",
        detail="torch.nvrtc",
    ),
    FactKind(
        name="libstdcxx.missing-versions",
        type="strings",
        doc="versions of libstdc++ (GLIBCXX_3.4.30) that compiled modules need and the copy that they find lacks",
        detail="libstdcxx.needed-by",
    ),
    FactKind(
        name="libstdcxx.needed-by", type="strings", doc="the modules that need these versions, with the copy they find"
    ),
    FactKind(name="libstdcxx.path", type="string", doc="the copy of libstdc++ that lacks them, or that is found"),
    FactKind(name="libstdcxx.newest", type="string", doc="the newest version that this copy has"),
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
