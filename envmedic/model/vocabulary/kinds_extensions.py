"""Facts on compiled modules outside the torch family: what they miss, and for which torch they were built."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(name="extensions.count", type="int", doc="number of compiled modules outside the torch family"),
    FactKind(
        name="extensions.undefined",
        type="strings",
        doc="distributions with a compiled module that needs a symbol which no library in its process defines",
    ),
    FactKind(
        name="extensions.undefined-symbols",
        type="strings",
        doc="the symbols that these need, as they stand in the files: the first twenty of each module",
        detail="extensions.undefined",
    ),
    FactKind(
        name="extensions.undefined-torch",
        type="strings",
        doc="those of them whose symbol is in a namespace of torch: they were built for another torch",
        detail="extensions.torch-symbols",
    ),
    FactKind(
        name="extensions.torch-symbols",
        type="strings",
        doc="of each of them, a module, the first such symbol, and for which torch it was built where that can be told",
    ),
    FactKind(
        name="extensions.undefined-own",
        type="strings",
        doc="distributions that lack a symbol of their own: a source file was left out of the build",
        detail="extensions.own-symbols",
    ),
    FactKind(name="extensions.own-symbols", type="strings", doc="of each of them, a module and the first such symbol"),
    FactKind(
        name="extensions.missing-torch-libraries",
        type="strings",
        doc="distributions that need a library of torch which the installed torch does not have",
        detail="extensions.missing-libraries",
    ),
    FactKind(
        name="extensions.missing-libraries",
        type="strings",
        doc="libraries that compiled modules need and do not find (the driver's apart), and who needs them",
    ),
    FactKind(
        name="extensions.other-cxx-abi",
        type="strings",
        doc="distributions built with the other form of C++ strings than torch",
    ),
    FactKind(
        name="extensions.names-other-torch",
        type="strings",
        doc="those built for another torch that name it themselves, in their version label or their requirement on torch",
        detail="extensions.torch-symbols",
    ),
    FactKind(
        name="extensions.rebuildable",
        type="strings",
        doc="distributions built for another torch that can be built again from a source",
        detail="extensions.torch-symbols",
    ),
    FactKind(
        name="extensions.own-rebuildable",
        type="strings",
        doc="distributions that lack symbols of their own and can be built again from a source",
    ),
    FactKind(
        name="extensions.without-gpu-half",
        type="strings",
        doc="distributions built here from a source with GPU code whose modules use none, beside a CUDA build of torch",
    ),
    FactKind(
        name="extensions.half-rebuildable",
        type="strings",
        doc="the same, empty also where it is not known",
        detail="extensions.without-gpu-half",
    ),
    FactKind(name="extensions.unreadable", type="strings", doc="compiled modules that are damaged, and in which way"),
    FactKind(name="torch.cxx11-abi", type="bool", doc="whether torch was compiled with the newer form of C++ strings"),
)
