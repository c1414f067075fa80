"""Sequences of imports in fresh interpreters, all of which must end well.

Started, not forked: each start has another memory layout, on which many crashes depend.
"""

from __future__ import annotations

import os
import sys

from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.units import KEPT_DETAIL, Unit, last_words

RUNS = 10
"""Processes in which a sequence must end well, unless ``runs=N`` says otherwise."""
BEGINS = "importing "
"""Before the name of each import, on a line of its own, when it begins."""
FAILED = 3
"""Exit status of a process in which an import raised an error."""

PROGRAM = """\
import importlib, importlib.util, sys, traceback
sys.path[:] = [entry for entry in sys.path if entry]
left_out = []
for name in sys.argv[1:]:
    top = name.partition(".")[0]
    if top not in sys.modules and importlib.util.find_spec(top) is None:
        left_out.append(name)
        continue
    print("importing", name, file=sys.stderr)
    sys.stderr.flush()
    try:
        importlib.import_module(name)
    except BaseException:
        traceback.print_exc()
        print("import", name, "failed", file=sys.stderr)
        sys.stderr.flush()
        __import__("os")._exit(%d)
if len(left_out) == len(sys.argv) - 1:
    print("none of these is installed", file=sys.stderr)
    __import__("os")._exit(%d)
""" % (FAILED, FAILED)
"""Names that are no longer installed are left out: a repair may have replaced them. The interpreter ends normally,
because some libraries crash at the end.

Each import is printed before it begins, so that a crash shows which one was running.
"""


def names_of(request):
    """The names to be imported, in their order."""
    return [part for part in request["arguments"] if "=" not in part]


def runs_of(request):
    """The number of processes."""
    settings = dict(part.split("=", 1) for part in request["arguments"] if "=" in part)
    return int(settings.get("runs", RUNS))


def start(request):
    """The work of a child: become an interpreter that imports the names."""

    def work(_send):
        argv = [sys.executable, "-B", "-X", "faulthandler", "-c", PROGRAM, *names_of(request)]
        os.execv(sys.executable, argv)  # no shell is wanted

    return work


class Sequence:
    """One request: runs until one of them ends badly or all ended well, then reports its one outcome."""

    def __init__(self, request, report):
        self.unit = Unit(request, " ".join(["import-sequence", *names_of(request)]), None, None, None)
        self.left = runs_of(request)
        self.seconds = 0.0
        self._report = report
        self.done = False

    def jobs(self):
        """The jobs of all runs; those after a bad end are not needed, and end at once."""
        request = self.unit.request
        return [
            supervise.ChildJob(
                # Jobs cannot be withdrawn from `run_all`: one that is not needed starts and ends at once.
                lambda send: None if self.done else start(request)(send),
                request["timeout_s"],
                _ignore,
                self._end,
            )
            for _ in range(self.left)
        ]

    def _end(self, ending):
        if self.done:
            return
        self.seconds += ending.seconds
        self.left -= 1
        reason = words(ending)
        if not reason and self.left:
            return
        self.done = True
        status = "pass"
        if reason:
            status = "timeout" if ending.timed_out else "crash" if ending.signal_name else "fail"
        detail = _kept(ending.output) if reason else ""
        self._report(self.unit.outcome(status, reason, signal=ending.signal_name, detail=detail, seconds=self.seconds))


def _kept(output):
    """The end of the output, with the running import if the stack is longer than the kept output."""
    told = [line for line in output[:-KEPT_DETAIL].splitlines() if line.startswith(BEGINS)]
    return "\n".join([*told[-1:], output[-KEPT_DETAIL:]])


def _ignore(_message):
    """A run sends nothing."""


def words(ending):
    """Why a run ended badly, in one line; empty where it ended well."""
    if ending.exit_status == 0:
        return ""
    if ending.exit_status is None:
        return last_words(ending)
    lines = [line for line in ending.output.strip().splitlines() if line.strip() and not line.startswith(BEGINS)]
    told = lines[-2] if len(lines) > 1 and ending.exit_status == FAILED and lines[-1].endswith(" failed") else ""
    return told.strip() or (lines[-1].strip() if lines else "exit status %d" % ending.exit_status)


def run_sequences(requests, workers, report):
    """Run every sequence; `workers` processes at a time."""
    sequences = [Sequence(request, report) for request in requests]
    jobs = [job for sequence in sequences for job in sequence.jobs()]
    if jobs:
        supervise.run_all(jobs, workers)
