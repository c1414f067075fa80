"""Facts about conda's packages: damaged ones, and ones overwritten by other installers."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

# Files and owners are separate facts: reinstalling a package mends the first; for the second, one owner must go.
KINDS: tuple[FactKind, ...] = (
    FactKind(name="conda.packages", type="strings", doc="names of the installed conda packages"),
    FactKind(name="conda.made-by", type="string", doc="the tool that owns the environment: conda, mamba, pixi, …"),
    FactKind(
        name="conda.damaged",
        type="strings",
        doc="conda packages of which files are missing or cut off, to be put in place again",
        detail="files.problems",
    ),
    FactKind(
        name="conda.damaged-records",
        type="strings",
        doc="records in conda-meta that cannot be read: conda refuses to work on the environment",
    ),
    FactKind(
        name="conda.clobbered",
        type="strings",
        doc="conda packages whose files and those that pip or uv put over them are mixed",
        detail="conda.reasons",
    ),
    FactKind(
        name="conda.overlaid",
        type="strings",
        doc="conda packages of which pip or uv has put another copy of the same distribution in place",
        detail="conda.reasons",
    ),
    FactKind(
        name="conda.doubled",
        type="strings",
        doc="conda packages beside whose metadata other metadata of the same distribution lie that no installer owns",
        detail="conda.reasons",
    ),
    FactKind(
        name="conda.lacking",
        type="strings",
        doc="what installed conda packages depend on and no installed package is, as match specs",
    ),
    FactKind(
        name="conda.unmet",
        type="strings",
        doc="what packages whose modules miss something depend on, where another release is installed, as match specs",
        detail="conda.unmet-reasons",
    ),
    FactKind(
        name="conda.unmet-reasons", type="strings", doc="which module, package and release that is, one sentence each"
    ),
    FactKind(
        name="conda.unrecorded",
        type="strings",
        doc="conda packages whose record is gone, as match specs: their files are there, or others depend on them",
    ),
    FactKind(
        name="conda.of-former-path",
        type="strings",
        doc="packages of a moved conda environment with its former path in their files, to be put in place again",
    ),
    FactKind(name="conda.reasons", type="strings", doc="what lies over or beside them, one sentence each"),
)
"""Each is derived by `diagnosis.areas.conda_packages`."""
