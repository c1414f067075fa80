"""Results of checks: a check returns a `Result`, or raises `Skipped`, `Disagreement` or another error."""

from __future__ import annotations


class Skipped(Exception):
    """The check cannot be run here; the message says why. Never counts as passed."""


class NotApplicable(Skipped):
    """The check has no meaning on this device, such as bf16 on a GPU without it."""


class Ended(Exception):
    """A process that the check started ended without a result; `ending` says how."""

    def __init__(self, message, ending):
        super().__init__(message)
        self.ending = ending


class Disagreement(Exception):
    """The kernel ran and its result is wrong."""

    def __init__(self, message, error=None, tolerance=None):
        super().__init__(message)
        self.error = error
        self.tolerance = tolerance


class Result:
    """A passed check: a note, its largest relative error with the tolerance, and what should be known nevertheless."""

    def __init__(self, note, error=None, tolerance=None, *, warnings=(), figures=None):
        self.note = note
        self.error = error
        self.tolerance = tolerance
        self.warnings = list(warnings)
        self.figures = figures or {}


class Context:
    """The parameters of a check: its device, its seed, and the number of rounds with different inputs."""

    def __init__(self, device, seed, rounds):
        self.device = device
        self.seed = seed
        self.rounds = rounds

    @property
    def on_gpu(self):
        """Whether the device is a GPU."""
        return self.device != "cpu"

    def seeds(self):
        """One seed per round."""
        return [self.seed + 1000 * number for number in range(self.rounds)]


def within(what, error, tolerance):
    """Raise `Disagreement` unless `error` is at most `tolerance`; NaN and infinity never are."""
    # not `error > tolerance`, which is false for NaN
    if not error <= tolerance:
        raise Disagreement(
            "%s: largest relative error %.3g, tolerance %.3g" % (what, error, tolerance), error, tolerance
        )
    return error


def same(what, got, expected):
    """Raise `Disagreement` unless `got` equals `expected`."""
    if got != expected:
        raise Disagreement("%s is %.200r, expected %.200r" % (what, got, expected))
