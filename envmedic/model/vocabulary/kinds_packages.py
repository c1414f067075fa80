"""Facts on what installed distributions require of each other, and on NumPy's binary interface."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(
        name="requirements.conflicts",
        type="strings",
        doc="requirements of installed distributions that the installed version does not meet, one sentence each; "
        "what the torch family, NVIDIA's libraries and NumPy are asked for is told by facts of their own",
    ),
    FactKind(
        name="requirements.missing",
        type="strings",
        doc="requirements of installed distributions on what is not installed at all, one sentence each; what the "
        "torch family and NVIDIA's libraries are asked for is told by facts of their own",
    ),
    FactKind(
        name="requirements.missing-modules",
        type="strings",
        doc="these by name, and as the import packages that they would install, as far as their names tell",
        detail="requirements.missing",
    ),
    FactKind(
        name="sources.lost",
        type="strings",
        doc="modules of editable installs whose source directory is gone; None without any",
        detail="sources.reasons",
    ),
    FactKind(
        name="sources.folders", type="strings", doc="these directories; None without any", detail="sources.reasons"
    ),
    FactKind(name="sources.reasons", type="strings", doc="which directory each distribution lacks; None without any"),
    FactKind(
        name="sources.advice",
        type="strings",
        doc="what helps, with the place where such a source is now if there is one; None without any",
    ),
    FactKind(
        name="requirements.of-torch",
        type="strings",
        doc="requirements of torch itself that are not met, apart from NVIDIA's libraries and triton",
    ),
    FactKind(
        name="huggingface.unmet",
        type="strings",
        doc="requirements that are not met of transformers, and of the libraries around it on each other",
    ),
    FactKind(
        name="protobuf.unmet",
        type="strings",
        doc="requirements on protobuf that the installed version does not meet",
    ),
    FactKind(
        name="protobuf.generated",
        type="strings",
        doc="modules that protobuf's compiler generated for other runtimes than the installed one, one sentence for each "
        "distribution; empty also where no text made envmedic look",
    ),
    FactKind(
        name="triton.required",
        type="string",
        doc="what the installed torch requires of triton, None where it requires none",
    ),
    FactKind(
        name="triton.accepted",
        type="bool",
        doc="whether the installed triton is one that torch requires, None where torch requires none",
        detail="triton.required",
    ),
    FactKind(
        name="xformers.requires-torch",
        type="string",
        doc="the requirement of xformers on torch, None where it states none",
    ),
    FactKind(
        name="xformers.accepts-torch",
        type="bool",
        doc="whether that requirement accepts the installed torch",
        detail="xformers.requires-torch",
    ),
    FactKind(
        name="bitsandbytes.cuda-libraries",
        type="strings",
        doc="CUDA releases that the installed bitsandbytes has a library for",
    ),
    FactKind(
        name="bitsandbytes.knows-cuda",
        type="bool",
        doc="whether one of them is that of the installed torch, None for a CPU build of torch",
        detail="bitsandbytes.cuda-libraries",
    ),
    FactKind(
        name="bitsandbytes.misses-triton-ops",
        type="bool",
        doc="whether the installed bitsandbytes imports triton.ops, which the installed triton does not have",
    ),
    FactKind(
        name="flash-attn.undefined",
        type="strings",
        doc="symbols of torch that flash-attn's modules need and the installed torch does not define",
    ),
    FactKind(
        name="flash-attn.wheel",
        type="string",
        doc="URL of the wheel that fits Python, torch and CUDA, by the rules of the project's release page",
    ),
    FactKind(
        name="companions.unmet",
        type="strings",
        doc="torchtext, torchdata and torchcodec, as far as they were made for another torch, one sentence each",
    ),
    FactKind(
        name="numpy.built-for-one",
        type="strings",
        doc="distributions that know the binary interface of NumPy 1 only, while NumPy 2 is installed",
        detail="numpy.modules-for-one",
    ),
    FactKind(
        name="numpy.modules-for-one",
        type="strings",
        doc="the module of each of them that shows it",
    ),
    FactKind(
        name="numpy.refused-by",
        type="strings",
        doc="distributions that compare NumPy's version when they are imported, and refuse the installed one",
    ),
    FactKind(
        name="numpy.unmet",
        type="strings",
        doc="requirements on NumPy that the installed version does not meet",
    ),
)
