"""Libraries that a distribution brings for several CUDA releases, by the names of their files."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envmedic.probe.packages.distributions import Scan
from envmedic.probe.readable import names

_BITSANDBYTES = re.compile(r"libbitsandbytes_cuda(?P<major>\d\d)(?P<minor>\d)\.so")


def bitsandbytes_cuda(scans: Sequence[Scan]) -> tuple[str, ...] | None:
    """CUDA releases that the installed bitsandbytes has a library for, ascending; None without bitsandbytes."""
    for scan in scans:
        if any(item.distribution.name == "bitsandbytes" for item in scan.installed):
            found = (_BITSANDBYTES.fullmatch(name) for name in names(scan.site / "bitsandbytes"))
            releases = sorted((int(match["major"]), int(match["minor"])) for match in found if match)
            return tuple(f"{major}.{minor}" for major, minor in releases)
    return None
