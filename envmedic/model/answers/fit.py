"""The answer to ``envmedic check -r FILE``: would what a file names work on a machine, before it is installed there."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model

FITS_SCHEMA: Final = "envmedic.fits/1"

FitVerdict = Literal["fits", "does-not-fit", "unknown"]


class NamedPackage(Model, frozen=True, kw_only=True):
    """One exact package that a file names."""

    name: str
    """Normalised."""
    version: str
    """With its local label where the file states one."""
    line: int = 0
    """Where it stands in the file, from 1; 0 where that was not noted."""
    manager: Literal["conda", "pip"] = "pip"
    build: str | None = None
    """Build string of a conda package."""
    files: tuple[str, ...] = ()
    """Names of the wheels that may be taken; empty where the file names none."""
    index: str | None = None
    """URL of the index, page or file that it comes from, without credentials."""


class NamedPackages(Model, frozen=True, kw_only=True):
    """What a file names."""

    packages: tuple[NamedPackage, ...] = ()
    loose: tuple[str, ...] = ()
    """Requirements without an exact version, as they stand there."""
    python: str | None = None
    """Python that the file is for."""


class Objection(Model, frozen=True, kw_only=True):
    """Why a package would not work there."""

    rule: str
    """Stable id of the rule, such as ``driver-minimum``."""
    package: str
    severity: Literal["error", "warning"]
    """A warning is what could not be shown, or what is not known."""
    text: str
    """What is wrong, in one sentence."""
    source: str = ""
    """Where that is known from."""
    line: int = 1
    """Where the package stands in the file."""


class Fit(Model, frozen=True, kw_only=True):
    """The answer for one file."""

    file: str
    verdict: FitVerdict
    """``unknown``: nothing speaks against it, and something that decides could not be judged."""
    summary: str
    """The answer in one sentence."""
    python: str
    """``major.minor`` that it was judged for."""
    driver: str | None
    """Driver version that it was judged for, null where none was named or found."""
    capabilities: tuple[str, ...] = ()
    """Compute capability of each GPU that it was judged for."""
    packages: int = 0
    """Number of packages that were judged."""
    misfits: tuple[Objection, ...] = ()
    """Errors first."""
    unjudged: tuple[str, ...] = ()
    """What was not judged, with the reason."""


class Fits(Model, frozen=True, kw_only=True):
    """The document of ``envmedic check -r FILE --json``."""

    schema: Literal["envmedic.fits/1"] = FITS_SCHEMA
    fits: tuple[Fit, ...]
    """One for each file, in the order given."""

    @property
    def yes(self) -> bool:
        """Whether every file fits."""
        return all(item.verdict == "fits" for item in self.fits)
