"""Imports of names, each in a fresh child, and the judgement of failed imports."""

from __future__ import annotations

import importlib
import importlib.util
import sys

from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.outcome import Result
from envmedic_kernels.harness.units import Unit, job_of, run_unit

NICENESS = 5
"""Of imports beside checks: they keep all CPUs busy, and those that feed a GPU wait least, since few can run at a time."""


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


def run_imports(units, workers, report, beside=None, known=None):
    """Import each name in a child of this process, `workers` at a time; `beside` is a child that counts as one of them.

    What fails beside others may fail by what another one held: memory, a lock, a port. So it is run again, but of those
    with one root error only the first, side by side with those of other errors: where that fails by it once more, the
    others count as they are. What failed elsewhere by the same error, as ``known(name, error)`` tells, is not run again.
    """
    failed = _attempted(units, workers, report, beside)
    while failed and known and beside and not beside.ended():  # it may still tell
        supervise.listen([beside])
        beside.press()
    for unit, message in list(failed) if known else ():
        if known(unit.name.partition(" ")[2], message["outcome"]["reason"]):
            failed.remove((unit, message))
            report(message)
    if min(workers, len(units) + bool(beside)) <= 1:
        for _, message in failed:
            report(message)
        return
    # the kernel kills where memory has run out: such an import needs the machine for itself
    killed = [unit for unit, message in failed if message["outcome"].get("signal") == "SIGKILL"]
    groups = {}
    for unit, message in failed:
        if unit not in killed:
            groups.setdefault(_root(unit, message), []).append((unit, message))
    while groups:
        again = dict(_attempted([group[0][0] for group in groups.values()], workers, report, beside))
        rest = [(root, _undecided(root, group, again, report)) for root, group in groups.items()]
        groups = {root: group for root, group in rest if group}
    for unit in killed:
        run_unit(unit, report)


def _attempted(units, workers, report, beside):
    """Run `units` and report those that do not fail; the others with their messages."""
    failed = []

    def listener(unit):
        def listen(message):
            if message["outcome"]["status"] in ("fail", "crash"):
                failed.append((unit, message))
            else:
                report(message)

        return listen

    jobs = [job_of(unit, listener(unit), niceness=NICENESS if beside else 0) for unit in units]
    supervise.run_all(jobs, workers, beside)
    return failed


def _undecided(root, group, again, report):
    """Those of `group`, which failed by `root`, that its first member's second run decides nothing about."""
    first, *others = group
    message = again.get(first[0])
    if message is None:
        return others
    report(message)
    if _root(first[0], message) != root:
        return others
    for _, same in others:
        report(same)
    return []


def _root(unit, message):
    """The error at the root of a failure; a crash names none, so each is its own."""
    return message.get("root") or unit
