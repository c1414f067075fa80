"""Starts a session from sources on the command line, for owners of environments who cannot read envmedic's files.

`SOURCES` (module name → text) is prepended to this text, which runs as ``python -c``.
"""

from __future__ import annotations

import linecache
import sys
import types

SOURCES = globals().get("SOURCES", {})
# each module after those that it imports: nothing here finds a module by its name
ORDER = (
    "harness.outcome",
    "references.reference",
    "harness.supervise",
    "harness.units",
    "harness.imports",
    "harness.sequence",
    "harness.torch_support",
    "references.exact",
    "checks.dense",
    "checks.operators",
    "checks.extension",
    "checks.memory",
    "checks.transforms",
    "checks.algebra",
    "checks.attention",
    "checks.queues",
    "checks.compiled",
    "checks.collective",
    "checks.audio",
    "checks.smoke",
    "catalogue",
    "zygote",
    "session",
)


def _package(name):
    package = types.ModuleType(name)
    package.__path__ = []
    sys.modules[name] = package
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, package)


def load():
    """Make the package of the kernels in memory, and return its last module."""
    sys.path[:] = [entry for entry in sys.path if entry]  # ``-c`` puts the working directory in front
    rooms = sorted({name.rpartition(".")[0] for name in ORDER})
    for room in rooms:  # "" is the package itself, and comes first
        _package("envmedic_kernels." + room if room else "envmedic_kernels")
    for name in ORDER:
        module = types.ModuleType("envmedic_kernels." + name)
        module.__file__ = "<envmedic/kernels/%s.py>" % name.replace(".", "/")
        lines = SOURCES[name].splitlines(True)
        # so that a traceback of a failed check shows source lines though there is no file
        linecache.cache[module.__file__] = (len(SOURCES[name]), None, lines, module.__file__)
        sys.modules[module.__name__] = module
        parent, _, own = module.__name__.rpartition(".")
        setattr(sys.modules[parent], own, module)
        exec(compile(SOURCES[name], module.__file__, "exec"), module.__dict__)  # noqa: S102  # envmedic's own text
    return module


if __name__ == "__main__":
    sys.exit(load().main(sys.argv[1:]))
