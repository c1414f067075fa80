"""Facts on what a text states, as the files of the environment have it."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(
        name="text.holds",
        type="bool",
        doc="whether the environment is as the text says of a module, a name or a requirement; by the groups `module`, "
        "`name`, `requirement`, `package` and `needed` of the match, None where they state nothing, and not observed where "
        "files do not tell",
        detail="text.observed",
    ),
    FactKind(
        name="text.conflicts",
        type="strings",
        doc="requirements of installed distributions that the installed version does not meet, as far as they concern what "
        "the match names, all where it names nothing; None without a text",
    ),
    FactKind(
        name="text.extras",
        type="strings",
        doc="what extras of installed distributions require of a module that the match names and that is missing, one "
        "sentence each; None without such a match",
    ),
    FactKind(
        name="text.distribution",
        type="string",
        doc="the requirement on the distribution that is known to bring a module that the match names, where it is not installed, or "
        "too old a release of it; None without one",
    ),
    FactKind(
        name="text.cache-remove",
        type="string",
        doc="the line for the shell that removes the part of a cache of compiled code (TORCH_EXTENSIONS_DIR, "
        "TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR, CUDA_CACHE_PATH) that the matched line names a file of, None without one",
    ),
    FactKind(
        name="text.cache-clear", type="string", doc="the line for the shell that removes that cache, None without one"
    ),
    FactKind(
        name="text.cache-redirect",
        type="string",
        doc="the line for the shell that puts that cache into a new directory, None without one",
    ),
    FactKind(name="text.observed", type="string", doc="what the files say of it, in words"),
)
