"""Child processes that import a module once, for all checks that need it."""

from __future__ import annotations

import importlib
import json
import math
import os
import traceback

from envmedic_kernels.catalogue import Gpus, units_of
from envmedic_kernels.checks import operators
from envmedic_kernels.harness import supervise
from envmedic_kernels.harness.units import KEPT_DETAIL, describe, ended_badly

ZYGOTE_SLACK_S = 60.0


class Zygote:
    """A child that imports `module` and then works with it in memory.

    Every unit of `requests` gets an outcome, whatever happens to the child. `own`, the unit of the import itself, gets
    one only if the import succeeded or never ended. `on_top` are further units that the child runs, and may leave out.
    """

    def __init__(self, module, requests, report, own=None, on_top=()):
        self.module = module
        self.requests = requests
        self.gpus = Gpus()
        self.report = report
        self.own = own
        self.on_top = on_top
        self.done = set()
        self.ready = False
        self.failure = None
        self.because = ""
        self.child = None
        self._go = None
        self._told = False

    def begin(self, work):
        """Begin to import and to run ``work(send)``, heard while this process waits for other children."""
        self._start(work)
        self.child.attend()

    def end(self):
        """Wait for the end of what has begun; what was reported of no unit is reported then."""
        ending = self.child.wait()
        if self._go is not None:
            os.close(self._go)
        if self.own and not self.ready and ending.timed_out:
            self.report(ended_badly(self.own, ending))
        for unit in units_of(self.requests, self.gpus):
            if unit.key not in self.done:
                self.report(self._missing(unit, ending))

    def start(self, work):
        """Begin the import while this process does other work; `proceed` then runs ``work(gpus, send)``."""
        reader, self._go = os.pipe()

        def wait(send):
            os.close(self._go)
            line = b""
            while not line.endswith(b"\n"):
                part = os.read(reader, 65536)
                # the parent is gone, so nobody waits for outcomes
                if not part:
                    return
                line += part
            work(Gpus(**json.loads(line.decode())), send)

        self._start(wait)
        os.close(reader)
        self.child.attend()

    def proceed(self, gpus):
        """Send the GPUs as soon as the import has ended, while this process goes on with other work."""
        self.gpus = gpus
        # not before: a child that crashed in its import has closed the pipe, and the write would fail
        self._told = True
        if self.ready:
            self._tell()

    def _start(self, work):
        limits = [request["timeout_s"] for request in ([self.own.request] if self.own else self.requests)]
        self.child = supervise.Supervised(lambda send: self._live(work, send), max(limits), self._hear)

    def _tell(self):
        os.write(self._go, json.dumps(self.gpus.as_message()["gpus"]).encode() + b"\n")
        self._extend()

    def _live(self, work, send):
        try:
            importlib.import_module(self.module)
        except BaseException as error:
            traceback.print_exc()
            # a module that itself misses another module is broken, not absent
            absent = isinstance(error, ModuleNotFoundError) and error.name == self.module
            send({"failed": describe(error), "absent": absent})
            if self.module == "torchvision" and not absent:
                send({"because": operators.loader_message()})
            return
        send({"ready": True})
        work(send)

    def _hear(self, message):
        if "outcome" in message:
            outcome = message["outcome"]
            self.done.add((outcome["index"], outcome["check"], outcome["device"]))
            self.report(message)
        elif "gpus" in message:
            self.gpus = Gpus(**message["gpus"])
            self.report(message)
        elif "failed" in message:
            self.failure = message
        elif "because" in message:
            self.because = message["because"]
        elif "ready" in message:
            self._imported()
        self._extend()

    def _imported(self):
        self.ready = True
        if self.own:
            self.report(self.own.outcome("pass", seconds=supervise.now() - self.child.started))
        if self._told:
            self._tell()

    def _extend(self):
        """Extend the limit: after the import each unit has its own limit, and this one only catches a hanging child."""
        if self.ready and self._go is not None and not self._told:
            self.child.deadline = math.inf  # it waits for this process
            return
        units = len(units_of(self.requests, self.gpus)) + 1
        longest = max((request["timeout_s"] for request in self.requests), default=0.0)
        limits = sum(unit.request["timeout_s"] for unit in self.on_top)
        self.child.deadline = supervise.now() + units * longest + limits + ZYGOTE_SLACK_S

    def _missing(self, unit, ending):
        if self.failure and self.failure["absent"]:
            return unit.outcome("skip", "%s is not installed" % self.module)
        if self.failure:
            because = " (loader: %s)" % self.because if self.because else ""
            reason = "import %s: %s%s" % (self.module, self.failure["failed"], because)
            return unit.outcome("fail", reason, detail=ending.output[-KEPT_DETAIL:], seconds=ending.seconds)
        message = ended_badly(unit, ending)
        message["outcome"]["reason"] = "import %s: %s" % (self.module, message["outcome"]["reason"])
        return message
