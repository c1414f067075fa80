"""Units of work: one check on one device, run in its own child, with its outcome as a message."""

from __future__ import annotations

import os
import traceback

from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.outcome import Context, Disagreement, Ended, NotApplicable, Skipped

SEED = 20250
KEPT_DETAIL = 4000
"""Characters of a failed check's output that are reported."""


class Unit:
    """One check on one device."""

    def __init__(self, request, name, function, device, label, *, excuse=None):
        self.request = request
        self.name = name
        self.function = function
        self.device = device
        self.label = label
        self._excuse = excuse

    @property
    def key(self):
        """Identifies the unit in its session."""
        return (self.request["index"], self.name, self.label)

    @property
    def on_gpu(self):
        """Whether it is of a GPU."""
        return (self.device or "cpu").startswith("cuda")

    def outcome(self, status, reason="", **more):
        """The unit's outcome as a message."""
        fields = {"index": self.request["index"], "check": self.name, "device": self.label}
        fields.update(status=status, reason=reason, **more)
        return {"outcome": fields}

    def excuse(self, error):
        """The reason why `error` is no fault of the environment; empty if it is one."""
        return self._excuse(error) if self._excuse else ""


def describe(error):
    """An exception in one line: its class and the first line of its message."""
    lines = str(error).strip().splitlines()
    return ("%s: %s" % (type(error).__name__, lines[0][:500])) if lines else type(error).__name__


def last_words(ending):
    """Why a child ended without a result, in one line."""
    if ending.timed_out:
        return "no end within its time limit (%.0f s)" % ending.limit_s
    if ending.signal_name:
        return "ended by %s" % ending.signal_name
    return "ended with exit status %d before it had a result" % ending.exit_status


def ended_badly(unit, ending):
    """The outcome of a unit whose child ended without a result."""
    return unit.outcome(
        "timeout" if ending.timed_out else "crash",
        last_words(ending),
        signal=ending.signal_name,
        detail=ending.output[-KEPT_DETAIL:],
        seconds=ending.seconds,
    )


def attempt(unit, context, send, settle=None):
    """Run a unit's check in this process and send its outcome; `settle` raises what is still to come of it."""
    try:
        result = unit.function(context)
        if settle:
            settle()
    except NotApplicable as reason:
        send(unit.outcome("skip", str(reason), applicable=False))
    except Skipped as reason:
        send(unit.outcome("skip", str(reason)))
    except Disagreement as error:
        send(unit.outcome("fail", str(error), max_relative_error=finite(error.error), tolerance=error.tolerance))
    except Ended as error:
        status = "timeout" if error.ending.timed_out else "crash"
        send(unit.outcome(status, str(error), signal=error.ending.signal_name))
    # SystemExit too: a package that exits on import has not been imported.
    except BaseException as error:
        traceback.print_exc()
        send({**unit.outcome("fail", describe(error), excuse=unit.excuse(error)), "root": describe(root_of(error))})
    else:
        more = {"warnings": result.warnings, "figures": result.figures}
        more.update(max_relative_error=finite(result.error), tolerance=result.tolerance)
        send(unit.outcome("pass", result.note, **more))


def root_of(error):
    """The first error of the chain that `error` ends, as Python prints it: packages wrap errors in their own."""
    # a chain can be circular
    seen = []
    while error is not None and id(error) not in seen:
        seen.append(id(error))
        last, error = error, error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return last


def finite(number):
    """`number`, or None for infinity and NaN, which JSON does not have."""
    return number if number is not None and abs(number) < float("inf") else None


def context_of(unit):
    """The parameters of a unit's check."""
    arguments = dict(part.split("=", 1) for part in unit.request["arguments"] if "=" in part)
    seed = int(arguments.get("seed", unit.request.get("seed", SEED)))
    return Context(unit.device or "cpu", seed, int(arguments.get("rounds", 1)))


def job_of(unit, report, niceness=0):
    """The job that runs a unit in a child, by so much nicer to others, and reports its one outcome."""
    context = context_of(unit)
    messages = []

    def on_end(ending):
        # a child may send its outcome and hang afterwards, in its end: that is a fault too
        if not messages or ending.timed_out:
            report(ended_badly(unit, ending))
            return
        fields = messages[0]["outcome"]
        fields["seconds"] = ending.seconds
        if fields["status"] != "pass":
            fields["detail"] = ending.output[-KEPT_DETAIL:]
        report(messages[0])

    def work(send):
        os.nice(niceness)
        attempt(unit, context, send)

    return supervise.ChildJob(work, unit.request["timeout_s"], messages.append, on_end)


def run_unit(unit, report):
    """Run a unit in a child and report its one outcome."""
    supervise.run_all([job_of(unit, report)], 1)


def run_side_by_side(units, at_once, report):
    """Run `units`, `at_once` of them at a time, and report their outcomes in their order."""
    outcomes = {}

    def keep(unit):
        return lambda message: outcomes.update({unit.key: message})

    supervise.run_all([job_of(unit, keep(unit)) for unit in units], at_once)
    for unit in units:
        report(outcomes[unit.key])
