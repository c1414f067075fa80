"""Begins a session from sources handed over on the command line, for users who cannot read envmedic's own files.

`SOURCES` (file name without ending → text) is put in front of this text, which runs as ``python -c``.
"""

from __future__ import annotations

import linecache
import sys
import types

SOURCES = globals().get("SOURCES", {})
ORDER = (
    "outcome",
    "reference",
    "supervise",
    "units",
    "imports",
    "sequence",
    "versions",
    "exact",
    "dense",
    "operators",
    "extension",
    "memory",
    "transforms",
    "algebra",
    "attention",
    "queues",
    "compiled",
    "collective",
    "audio",
    "smoke",
    "catalogue",
    "zygote",
    "session",
)


def load():
    """Make the package of the kernels in memory; returns its last module."""
    sys.path[:] = [entry for entry in sys.path if entry]  # ``-c`` puts the working directory in front
    package = types.ModuleType("envmedic_kernels")
    package.__path__ = []
    sys.modules[package.__name__] = package
    for name in ORDER:
        module = types.ModuleType("envmedic_kernels." + name)
        module.__file__ = "<envmedic/kernels/%s.py>" % name
        lines = SOURCES[name].splitlines(True)
        linecache.cache[module.__file__] = (len(SOURCES[name]), None, lines, module.__file__)
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(SOURCES[name], module.__file__, "exec"), module.__dict__)  # noqa: S102  # envmedic's own text
    return module


if __name__ == "__main__":
    sys.exit(load().main(sys.argv[1:]))
