"""Units of one GPU in a few children: a context costs each half a second, and most checks a tenth of that."""

from __future__ import annotations

import os

from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.units import attempt, context_of, job_of

MANY = 8
"""Units of one GPU for which a further context pays: their references are computed on the CPU, in a second each."""
LANES = 4
"""Contexts of one GPU at most."""
CPUS_EACH = 2
"""CPUs for each child, beside the imports."""


class Together:
    """Units of one GPU that run in one child after the other; `again` are those that did not pass or were skipped there.

    What crashes, hangs or fails may have broken the context for the next one, so the child ends with it, and the rest
    goes on in another.
    """

    def __init__(self, units, report):
        self.left = list(units)
        self.again = []
        self.child = None
        self._report = report
        self._begun = 0.0
        self._failed = False

    def start(self):
        """Begin with what is left."""
        self._failed = False
        self._begun = supervise.now()
        units = list(self.left)
        self.child = supervise.Supervised(lambda send: _run(units, send), units[0].request["timeout_s"], self._hear)

    def finish(self):
        """Take the end of the child."""
        self.child.finish()
        if self.left and not self._failed:
            self.again.append(self.left.pop(0))

    def _hear(self, message):
        unit = self.left.pop(0)
        fields = message["outcome"]
        fields["seconds"] = supervise.now() - self._begun
        self._begun = supervise.now()
        self._failed = fields["status"] not in ("pass", "skip")
        if self._failed:
            self.again.append(unit)
        else:
            self._report(message)
        self.child.deadline = supervise.now() + (self.left[0] if self.left else unit).request["timeout_s"]


def _run(units, send):
    """Run units one after the other in this process, until one fails."""
    import torch

    # read once for each process, so before the first check that compiles: what an earlier process compiled proves nothing
    os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"
    for unit in units:
        heard = []
        attempt(unit, context_of(unit), heard.append, torch.cuda.synchronize)
        send(heard[0])
        if heard[0]["outcome"]["status"] == "fail":
            return
        # the next one begins with memory of its own
        torch.cuda.empty_cache()


class Alone:
    """A unit in a child of its own: it starts processes, compiles or imports packages."""

    left = ()

    def __init__(self, unit, report):
        self.again = []
        self.child = None
        self._unit = unit
        self._report = report
        self._job = job_of(unit, self._hear)

    def start(self):
        """Begin."""
        self.child = supervise.Supervised(self._job.work, self._job.limit_s, self._job.on_message)

    def finish(self):
        """Take the end of the child."""
        self._job.on_end(self.child.finish())

    def _hear(self, message):
        if message["outcome"]["status"] in ("pass", "skip"):
            self._report(message)
        else:
            self.again.append(self._unit)


def run_together(units, single, at_once, report):
    """Run `units`, those of each device in a few children, and each of `single` in one, all of them side by side.

    At most `at_once` children run at a time, and fewer where there are few CPUs, but one for each device. Returns the
    units that are to be run again, by themselves.
    """
    devices = {}
    for unit in units:
        devices.setdefault(unit.device, []).append(unit)
    children = max(1, len(os.sched_getaffinity(0)) // CPUS_EACH)
    waiting = []
    for of_device in devices.values():
        lanes = max(1, min(LANES, children // len(devices), len(of_device) // MANY))
        waiting += [Together(of_device[lane::lanes], report) for lane in range(lanes)]
    waiting += [Alone(unit, report) for unit in single]
    at_once = min(at_once, max(len(devices), children))
    done, running = [], []
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(waiting.pop(0))
            running[-1].start()
        supervise.listen([item.child for item in running])
        for item in list(running):
            if not item.child.ended():
                item.child.press()
                continue
            item.finish()
            running.remove(item)
            (waiting if item.left else done).append(item)
    return [unit for item in done for unit in item.again]
