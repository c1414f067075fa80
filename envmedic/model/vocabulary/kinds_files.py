"""Facts on installed files: missing, duplicate, overwritten and hidden ones."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(
        name="files.damaged",
        type="strings",
        doc="distributions of which files are missing or cut off; as name==version to install again",
        detail="files.problems",
    ),
    FactKind(
        name="files.unrecorded",
        type="strings",
        doc="distributions whose RECORD is gone; as name==version to install again",
    ),
    FactKind(
        name="files.foreign",
        type="strings",
        doc="distributions from wheels for another platform or Python; as name==version to install again",
        detail="files.foreign-tags",
    ),
    FactKind(
        name="files.foreign-tags", type="strings", doc="what such a wheel is for, one sentence for each distribution"
    ),
    FactKind(
        name="files.beyond-index",
        type="strings",
        doc="damaged distributions that no index can give again: from a source tree or an archive",
        detail="files.problems",
    ),
    FactKind(
        name="files.problems", type="strings", doc="what is missing or cut off, one sentence for each distribution"
    ),
    FactKind(
        name="files.missing-count",
        type="int",
        doc="number of recorded files that are missing and matter",
        detail="files.first-missing",
    ),
    FactKind(name="files.first-missing", type="string", doc="the first of them, None where none is"),
    FactKind(name="files.cut-off", type="strings", doc="files that are empty or end before their content does"),
    FactKind(name="files.changed", type="strings", doc="files that somebody changed after their installation"),
    FactKind(
        name="env.python-replacement",
        type="string",
        doc="Python of the host that can take the place of the one that the virtual environment was made with, None where "
        "that one is in place or there is none",
    ),
    FactKind(
        name="files.moved-from",
        type="string",
        doc="directory where a moved environment was made, None where it is there",
    ),
    FactKind(
        name="files.naming-it",
        type="strings",
        doc="scripts and sources of a moved environment that name that directory",
    ),
    FactKind(
        name="programs.not-executable",
        type="strings",
        doc="scripts and binaries of installed distributions without permission to execute",
    ),
    FactKind(
        name="programs.broken",
        type="strings",
        doc="scripts of installed distributions that are gone, or run by a Python that is gone or of another environment",
        detail="programs.reasons",
    ),
    FactKind(
        name="path-files.dead",
        type="strings",
        doc="path files (.pth) of no distribution that import a module that is gone",
        detail="path-files.reasons",
    ),
    FactKind(name="path-files.reasons", type="strings", doc="what each of them imports"),
    FactKind(name="programs.reasons", type="strings", doc="what is wrong with each of them"),
    FactKind(name="duplicates.reasons", type="strings", doc="which versions there are, and why that one is right"),
    FactKind(name="clobbered.reasons", type="strings", doc="which files, and whose content lies there"),
    FactKind(
        name="shadow.user-site",
        type="strings",
        doc="packages that are found in the user's home before the environment's own",
    ),
    FactKind(
        name="shadow.pythonpath",
        type="strings",
        doc="packages that PYTHONPATH puts before the environment's own",
    ),
)
"""Each is derived by `diagnosis.areas.file_damage`."""
