"""Units of one GPU in a few children: a context costs each half a second, and most checks a tenth of that."""

from __future__ import annotations

import contextlib
import os

from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.units import attempt, context_of, job_of

MANY = 8
"""Units of one GPU for which a further context pays: their references are computed on the CPU, in a second each."""
LANES = 6
"""Contexts of one GPU at most."""
CPUS_EACH = 2
"""CPUs for each child, beside the imports."""
LONG = ("long-attention-cudnn", "training-steps", "long-attention", "complex-kernels", "conv-layers")
"""How the names of the checks begin that are started first, the longest one first: with cold caches it takes ten seconds,
in which others go on."""
END_S = 60.0
"""Limit for a child to end after its last unit."""


class Together:
    """A child that runs units of one GPU, one after the other, as long as `queue` has any; siblings take from it too.

    What crashes, hangs or fails may have broken the context for the next one, so the child ends with it, and the rest
    goes on in another. `again` are those that did not pass or were skipped there.
    """

    def __init__(self, queue, report):
        self._queue = queue
        self.again = []
        self.child = None
        self._report = report
        self._unit = None
        self._units = []
        self._asked = None
        self._begun = 0.0

    @property
    def needed(self):
        """Whether something is left to run."""
        return bool(self._queue)

    def start(self):
        """Begin with the next one."""
        # a child has the units that are left when it is forked, and is told the number of the next one
        self._units = list(self._queue)
        reader, self._asked = os.pipe()
        units, limit_s = self._units, self._queue[0].request["timeout_s"]
        self.child = supervise.Supervised(lambda send: _run(units, reader, send), limit_s, self._hear)
        os.close(reader)
        self._ask()

    def finish(self):
        """Take the end of the child."""
        self.child.finish()
        os.close(self._asked)
        if self._unit is not None:
            self.again.append(self._unit)
            self._unit = None

    def _ask(self):
        """Have the child run the next unit, or end where none is left."""
        self._begun = supervise.now()
        self._unit = self._queue.pop(0) if self._queue else None
        number = self._units.index(self._unit) if self._unit is not None else len(self._units)
        with contextlib.suppress(BrokenPipeError):  # it has just died, which `finish` sees
            os.write(self._asked, b"%d\n" % number)
        limit_s = self._unit.request["timeout_s"] if self._unit is not None else END_S
        self.child.deadline = supervise.now() + limit_s

    def _hear(self, message):
        unit, self._unit = self._unit, None
        fields = message["outcome"]
        fields["seconds"] = supervise.now() - self._begun
        if fields["status"] not in ("pass", "skip"):
            self.again.append(unit)
            self.child.deadline = supervise.now() + END_S
            return
        self._report(message)
        self._ask()


def _run(units, reader, send):
    """Run those of `units` whose numbers come from `reader`, until one fails."""
    import torch

    # read once for each process, so before the first check that compiles: what an earlier process compiled proves nothing
    os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"
    with open(reader, encoding="ascii") as numbers:
        for line in iter(numbers.readline, ""):
            number = int(line)
            if number == len(units):
                return
            unit, heard = units[number], []
            attempt(unit, context_of(unit), heard.append, torch.cuda.synchronize)
            send(heard[0])
            if heard[0]["outcome"]["status"] not in ("pass", "skip"):
                return
            # the next one begins with memory of its own
            torch.cuda.empty_cache()


class InTurn:
    """Units in children of their own, one after the other.

    What does not pass is run `again` later, where others beside it can be why.
    """

    def __init__(self, units, report, *, again):
        self.again = []
        self.child = None
        self._queue = list(units)
        self._job = None
        self._retried = again
        self._report = report

    @property
    def needed(self):
        """Whether something is left to run."""
        return bool(self._queue)

    def start(self):
        """Begin with the next one."""
        unit = self._queue.pop(0)
        self._job = job_of(unit, lambda message: self._hear(unit, message))
        self.child = supervise.Supervised(self._job.work, self._job.limit_s, self._job.on_message)

    def finish(self):
        """Take the end of the child."""
        self._job.on_end(self.child.finish())

    def _hear(self, unit, message):
        if self._retried and message["outcome"]["status"] not in ("pass", "skip"):
            self.again.append(unit)
        else:
            self._report(message)


def _rank(unit):
    """The place of a unit in `LONG`; all others come after them, in their own order."""
    return next((place for place, name in enumerate(LONG) if unit.name.startswith(name)), len(LONG))


def run_together(units, single, on_cpu, at_once, report):
    """Run `units`, those of each GPU in a few children, each of `single` in one, and `on_cpu` in turn, side by side.

    `single` are those that start processes, compile or import packages. At most `at_once` children run at a time, and
    fewer where there are few CPUs, but one for each device. Returns the units that are to be run again, by themselves.
    """
    devices = {}
    for unit in sorted(units, key=_rank):
        devices.setdefault(unit.device, []).append(unit)
    children = max(1, len(os.sched_getaffinity(0)) // CPUS_EACH)
    waiting = []
    for of_device in devices.values():
        lanes = max(1, min(LANES, children // len(devices), len(of_device) // MANY))
        waiting += [Together(of_device, report) for _ in range(lanes)]
    waiting.append(InTurn(on_cpu, report, again=False))
    waiting += [InTurn([unit], report, again=True) for unit in single]
    at_once = min(at_once, max(len(devices), children))
    done, running = [], []
    while waiting or running:
        while waiting and len(running) < at_once:
            item = waiting.pop(0)
            if not item.needed:
                done.append(item)
                continue
            item.start()
            running.append(item)
        if running:
            supervise.listen([item.child for item in running])
        for item in list(running):
            if not item.child.ended():
                item.child.press()
                continue
            item.finish()
            running.remove(item)
            (waiting if item.needed else done).append(item)
    return [unit for item in done for unit in item.again]
