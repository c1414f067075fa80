"""The reason of a failed build before its last words, which are the same for every reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envmedic.diagnosis.candidates import ONE_MESSAGE, Cause
from envmedic.diagnosis.roots import HARDLY_SURE

FIRST_ERROR: Final = "first-error"
"""The signature that the first error of a failed build has, whatever it says."""


def by_first_error(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Return ranked causes with those first that read the first error of a failed build."""
    build = next((cause for cause in causes if any(match.signature == FIRST_ERROR for match in cause.matches)), None)
    if build is None:
        return tuple(causes)
    number = next(match.line_number for match in build.matches if match.signature == FIRST_ERROR)
    readers = [cause for cause in causes if _reads(cause, number)]
    if not readers:
        return tuple(causes)
    # facts that confirm a cause say more than the order of the text
    if causes[0].confirmed:
        return tuple(causes)
    if readers[0].fault is None:
        # a fault of the toolchain would win over what is no fault, and here it only says that the build failed
        return tuple(cause for cause in causes if cause in readers or cause.fault != build.fault or _sure(cause))
    return tuple(sorted(causes, key=lambda cause: cause not in readers))


def _sure(cause: Cause) -> bool:
    return cause.confirmed or (cause.signature is not None and cause.signature.confidence >= HARDLY_SURE)


def _reads(cause: Cause, number: int) -> bool:
    """Whether a good signature of `cause` matches at the line `number`, or in the lines that it is wrapped over."""
    if cause.refuted or cause.playbook.harmless or not _sure(cause):
        return False
    known = {signature.id: signature.confidence for signature in cause.playbook.signatures}
    return any(
        abs(match.line_number - number) < ONE_MESSAGE
        # an exception before the build is another message, which ends where the build's own begins
        and not (cause.fault is None and cause.raised and match.line_number < number)
        and known[match.signature] >= HARDLY_SURE
        and not match.passing
        for match in cause.matches
    )
