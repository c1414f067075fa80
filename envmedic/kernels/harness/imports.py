"""Imports of names, each in a fresh child, and the judgement of failed imports."""

from __future__ import annotations

import importlib
import importlib.util
import sys

from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.outcome import Result
from envmedic_kernels.harness.units import Unit, job_of, run_unit


def unit_of(request, name):
    """The unit that imports `name`."""

    def check(_context):
        importlib.import_module(name)
        return Result("")

    alone = dict(request, arguments=[])
    return Unit(alone, "import " + name, check, None, None, excuse=lambda error: excuse(name, error))


def excuse(name, error):
    """The reason why a failed import of `name` is no fault of the environment; empty if it is one.

    A package may need another one for a part that is not used here, and a module that exits is a script.
    """
    # along the chain of causes, as Python prints it: packages wrap an ImportError in errors of their own. A chain can
    # be circular.
    if isinstance(error, SystemExit):
        return "it is a script"
    seen = []
    while error is not None and id(error) not in seen:
        if isinstance(error, ModuleNotFoundError) and is_absent(error.name, name):
            return "%s is not installed" % error.name.partition(".")[0]
        seen.append(id(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return ""


def is_absent(missing, name):
    """Whether the top-level package of `missing` is not installed; parts of `name` or of Python never count."""
    top = (missing or "").partition(".")[0]
    own = (name.partition(".")[0], *getattr(sys, "stdlib_module_names", ()))
    return bool(top) and top not in own and top not in sys.modules and importlib.util.find_spec(top) is None


def divided(requests, zygotes):
    """The units of all names that `requests` are about: those to be imported alone, and by name those of `zygotes`."""
    alone, own = [], {}
    for request in requests:
        for name in request["arguments"]:
            unit = unit_of(request, name)
            if name in zygotes and name not in own:
                own[name] = unit
            else:
                alone.append(unit)
    return alone, own


def run_imports(units, workers, report):
    """Import each name in a child of this process, which has imported none of them, `workers` at a time.

    What fails beside others runs once more alone, and only that counts: memory, a lock or a port that another one
    held is no fault of the environment.
    """
    workers = min(workers, len(units))
    # several processes that import torch at once can run out of memory, which is no fault of the environment
    again = []

    def together(unit):
        def listen(message):
            if workers > 1 and message["outcome"]["status"] in ("fail", "crash"):
                again.append(unit)
            else:
                report(message)

        return job_of(unit, listen)

    supervise.run_all([together(unit) for unit in units], workers)
    for unit in again:
        run_unit(unit, report)
