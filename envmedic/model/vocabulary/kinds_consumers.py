"""Facts about the consumers of NVIDIA's libraries other than torch: JAX, TensorFlow, CuPy and the rest."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(
        name="consumers.names",
        type="strings",
        doc="libraries that compute on GPUs through NVIDIA's libraries, torch apart",
    ),
    FactKind(
        name="consumers.lacking",
        type="strings",
        doc="libraries of NVIDIA that builds for the GPU open and that are nowhere, with who opens them",
    ),
    FactKind(
        name="consumers.lacking-for-gpu",
        type="strings",
        doc="libraries of NVIDIA that are nowhere and that are missed on a GPU alone, or by some functions alone",
    ),
    FactKind(
        name="consumers.nowhere",
        type="strings",
        doc="the same and those that builds for the GPU open, by name",
    ),
    FactKind(
        name="consumers.wrong",
        type="strings",
        doc="distributions of NVIDIA in a version that a consumer's own extra does not accept",
    ),
    FactKind(
        name="consumers.parts",
        type="strings",
        doc="parts of a consumer, such as core and CUDA plugin, that are not of one release",
    ),
    FactKind(
        name="consumers.twice",
        type="strings",
        doc="builds of one consumer that exclude each other and are installed together",
    ),
    FactKind(name="consumers.cpu-builds", type="strings", doc="consumers that are installed as a build for the CPU"),
    FactKind(
        name="consumers.shadowed",
        type="strings",
        doc="libraries that a consumer takes from LD_LIBRARY_PATH, before the environment's own",
    ),
    FactKind(
        name="consumers.driver-too-old",
        type="strings",
        doc="consumers that are built for a CUDA release which the driver does not serve",
    ),
    FactKind(
        name="consumers.without-gpu-code",
        type="strings",
        doc="consumers without code for some visible GPU",
    ),
)
