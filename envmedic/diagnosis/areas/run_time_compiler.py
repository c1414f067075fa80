"""Facts on another run-time compiler (NVRTC) that LD_PRELOAD puts in the place of torch's own."""

from __future__ import annotations

import posixpath
import re

from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts

_COMPILER = re.compile(r"libnvrtc\.so\.\d")


def derive(facts: Facts) -> Derived:
    """The compilers among what LD_PRELOAD names, and the variable without them."""
    environment = facts.environment
    if environment is None:
        return {}
    variable = facts.variables().get("LD_PRELOAD")
    entries = [entry for entry in re.split(r"[:\s]+", variable.value) if entry] if variable is not None else []
    others = {
        posixpath.join(environment.prefix, item.path): item.instead_of
        for item in environment.cuda_libraries
        if item.path is not None and item.instead_of is not None and _COMPILER.match(item.soname)
    }
    names = {posixpath.basename(place): hidden for place, hidden in others.items()}  # entries without a directory
    hiding = {entry: others.get(posixpath.normpath(entry)) or names.get(entry) for entry in entries}
    return {
        "nvidia.nvrtc-preloaded": tuple(f"{entry} comes before {own}" for entry, own in hiding.items() if own),
        "nvidia.preload": ":".join(entry for entry, own in hiding.items() if not own),
    }
