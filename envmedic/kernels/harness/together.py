"""Units of one GPU in one child, many in two: a context costs each half a second, and most checks a tenth of that."""

from __future__ import annotations

import os

from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.units import attempt, context_of

MANY = 8
"""Units of one GPU for which a second context pays: their references are computed on the CPU, in a second each."""
CPUS = 4
"""For a second child beside the imports."""


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


def run_together(units, at_once, report):
    """Run `units`, those of each device in one child or two, `at_once` children at a time; returns those to be run alone."""
    devices = {}
    for unit in units:
        devices.setdefault(unit.device, []).append(unit)
    waiting = []
    for of_device in devices.values():
        lanes = 2 if len(of_device) >= MANY and len(os.sched_getaffinity(0)) >= CPUS else 1
        waiting += [Together(of_device[lane::lanes], report) for lane in range(lanes)]
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
