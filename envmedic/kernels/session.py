"""One verification: runs each check in its own process, and prints the outcomes as lines on stdout.

Processes: this one imports nothing but the standard library and forks a child for each imported name, several at a
time. The *zygotes* are children too, beside them: one imports torch, and forks from itself a child for the numerical
checks of each GPU, one for each other check, and one for what does not pass beside others; those forked from that
import torchvision or torchaudio on top, while the first checks run. So torch is imported once, and a crash, hang or
abort, of an import or of a check, ends that child alone. That a zygote could import its module is the outcome of that
import; if it could not, the import is tried in a child of its own as any other. A process that forks neither
initialises CUDA (its children could not use it) nor computes in parallel before (libgomp hangs in the children: seen
with torch 2.5); importing torch does neither.

The only parts of torch that are used here: ``torch.version.cuda``, ``torch.cuda.is_available()``,
``torch.cuda.init()`` (for the reason, when there is no GPU), ``torch.cuda.device_count()``,
``torch.cuda.get_device_name(index)``.
"""

from __future__ import annotations

import argparse
import json
import os

from envmedic_kernels.catalogue import (
    BY_MODULE,
    CHECKS,
    NOWHERE,
    ON_CONSUMERS,
    ON_TORCH,
    QUIET,
    SLOW,
    TOGETHER,
    Gpus,
    units_of,
)
from envmedic_kernels.consumers import common
from envmedic_kernels.harness import imports, lending, supervise
from envmedic_kernels.harness.sequence import run_sequences
from envmedic_kernels.harness.together import run_together
from envmedic_kernels.harness.units import SEED, describe, last_words, run_side_by_side, run_unit
from envmedic_kernels.zygote import Zygote

MARK = "@envmedic "
"""Start of every line of stdout with a message as JSON; all other lines are output of checks."""
AT_ONCE = 8
"""Limit of GPUs on which a check runs at once: each process has a CUDA context in host memory."""

OF_ZYGOTES = ("torch", *BY_MODULE)
OF_NAMES = ("import:", "import-sequence:", "extension-smoke:")


def visible_gpus(send):
    """Send the GPUs that torch sees; runs in a child, since asking may initialise CUDA."""
    import torch

    if not torch.version.cuda:
        send(Gpus(reason="torch is not a CUDA build").as_message())
    elif torch.cuda.is_available():
        count = torch.cuda.device_count()
        send(Gpus([("cuda:%d" % i, torch.cuda.get_device_name(i)) for i in range(count)]).as_message())
    else:
        # is_available() gives no reason; init() raises one, such as an old driver
        try:
            torch.cuda.init()
            reason = "torch.cuda.is_available() is false"
        except Exception as error:
            reason = describe(error).partition(". ")[0]
        send(Gpus(reason="no GPU is visible: " + reason).as_message())


def driver_gpus(send):
    """Send the GPUs that the driver shows, for checks without torch; runs in a child, since asking starts CUDA."""
    try:
        titles = common.by_driver()
    except (OSError, RuntimeError) as error:
        send(Gpus(reason="no GPU is visible: " + describe(error)).as_message())
        return
    send(Gpus([("cuda:%d" % i, title) for i, title in enumerate(titles)], reason="no GPU is visible").as_message())


def find_gpus(limit_s, ask=visible_gpus):
    """Ask for the GPUs in a child of this process, which holds what `ask` needs."""
    messages = []
    ending = supervise.run(ask, limit_s, messages.append)
    if messages:
        return Gpus(**messages[0]["gpus"])
    status = "timeout" if ending.timed_out else "crash"
    return Gpus(status=status, reason="looking for GPUs: " + last_words(ending))


def run_units(units, gpus, report):
    """Run `units` from this process, which holds what they import.

    Those of one GPU share a few processes, others have one each beside them, and what does not pass there is run again
    alone. On the CPU one check runs at a time, beside those on GPUs.
    """
    on_gpus = [unit for unit in units if unit.on_gpu and unit.device != "cuda"]
    shared = [unit for unit in on_gpus if unit.request["name"] in TOGETHER]
    single = [unit for unit in on_gpus if unit not in shared]
    again = run_together(shared, single, [unit for unit in units if not unit.on_gpu], AT_ONCE, report)
    waiting = [unit for unit in units if unit in again or unit.device == "cuda"]
    while waiting:
        first = waiting[0]
        together = [unit for unit in waiting if unit.name == first.name and unit.key[0] == first.key[0]]
        waiting = [unit for unit in waiting if unit not in together]
        if first.device == "cuda":
            report(first.outcome(gpus.status, gpus.reason))
        else:
            run_side_by_side(together, AT_ONCE, report)


def begun(requests, own, no_gpu, report, on_top=(), workers=1):
    """The zygote of torch, which runs all checks that need torch, and forks zygotes for other modules from itself.

    `own` has the units that import these modules, by module; `on_top` are imports that begin with torch imported.
    """

    def work(send):
        zygotes = [zygote_of(module, requests, own, send) for module in BY_MODULE]
        zygotes = [zygote for zygote in zygotes if zygote]
        # the zygotes of other modules import while the GPUs are looked for
        gpus = Gpus(reason=no_gpu)
        if not no_gpu and any(request["gpu"] for request in requests):
            gpus = find_gpus(max(request["timeout_s"] for request in requests))
        send(gpus.as_message())
        imports.run_imports(on_top, workers, send)
        for zygote in zygotes:
            zygote.proceed(gpus)
        mine = [request for request in requests if request["name"] in ON_TORCH]
        run_units(units_of([request for request in mine if request["name"] not in QUIET], gpus), gpus, send)
        for zygote in zygotes:
            zygote.end()
        run_units(units_of([request for request in mine if request["name"] in QUIET], gpus), gpus, send)

    zygote = Zygote("torch", requests, report, own.get("torch"), on_top)
    zygote.begin(work)
    return zygote


def zygote_of(module, requests, own, send):
    """The zygote for the checks that need `module`, which begins to import it; None where there are none."""
    mine = [request for request in requests if request["name"] in BY_MODULE[module]]
    if not mine and module not in own:
        return None
    zygote = Zygote(module, mine, send, own.get(module))
    zygote.start(lambda gpus, up: run_units(units_of(mine, gpus), gpus, up))
    return zygote


def run(requests, no_gpu, report, workers=1, *, torch_once=False, apart=False):
    """Run a session: `requests` are dictionaries with ``index, name, arguments, gpu, timeout_s``.

    `workers` is the number of processes that import at a time. With `torch_once`, what is imported is imported on top
    of the one torch that the checks use: it proves less of its own, and costs no second import of torch. With `apart`
    torch's companions are imported in processes of their own from the start, as they are anyway where their zygote
    cannot: before a repair most cannot.
    """
    on_torch = [request for request in requests if request["name"] in CHECKS and request["name"] not in ON_CONSUMERS]
    on_consumers = [request for request in requests if request["name"] in ON_CONSUMERS]
    wanted = [request for request in requests if request["name"] == "import"]
    family = on_torch or (torch_once and any("torch" in request["arguments"] for request in wanted))
    zygotes = OF_ZYGOTES[:1] if apart and workers > 1 else OF_ZYGOTES
    alone, own = imports.divided(wanted, zygotes if family else ())
    heard, errors, zygote = set(), set(), None

    def hear(message):
        heard.add(key_of(message))
        errors.add(message.get("outcome", {}).get("reason", ""))
        report(message)

    def failed_there(name, error):
        return bool(error) and any(("%s (" % said).startswith("import %s: %s (" % (name, error)) for said in errors)

    if family:
        on_top, alone = (alone, []) if torch_once else ([], alone)
        zygote = begun(on_torch, own, no_gpu, hear, on_top, workers)
    others = WithoutTorch(on_consumers, no_gpu, report, measured=any(request["name"] in QUIET for request in requests))
    # beside the checks: they wait for one process each, and those on GPUs hardly use a CPU
    units, beside = [*alone, *others.beside], zygote and zygote.child
    imports.run_imports(units, workers, others.hear, beside, failed_there if apart else None)
    run_sequences([request for request in requests if request["name"] == "import-sequence"], workers, report)
    if zygote:
        zygote.end()
        left = [unit for unit in (*own.values(), *on_top) if unit.key not in heard]
        imports.run_imports(left, workers, report)
    others.end()
    report({"end": True})


class WithoutTorch:
    """The checks of what computes without torch, each in a process that has imported nothing.

    On a GPU each opens a context of its own, for which memory may lack beside checks of torch: what does not pass there
    is run again alone. With `measured`, nothing of it runs on GPUs until the rest has ended.
    """

    def __init__(self, requests, no_gpu, report, *, measured):
        asking = [request for request in requests if request["gpu"]]
        self._gpus = Gpus(reason=no_gpu)
        if not no_gpu and asking:
            self._gpus = find_gpus(max(request["timeout_s"] for request in asking), driver_gpus)
        units = units_of(requests, self._gpus)
        self._nowhere = [unit for unit in units if unit.device == "cuda"]
        self._on_gpus = {unit.key: unit for unit in units if unit.on_gpu and unit not in self._nowhere}
        self._left = list(self._on_gpus.values()) if measured else []
        self._report = report
        self.beside = [unit for unit in units if unit not in (*self._left, *self._nowhere)]
        """Those that run beside others."""

    def hear(self, message):
        """Report an outcome, unless it is to be asked again."""
        unit = self._on_gpus.get(key_of(message))
        if unit is not None and message["outcome"]["status"] not in ("pass", "skip"):
            self._left.append(unit)
        else:
            self._report(message)

    def end(self):
        """Run what is left, and report it."""
        for unit in self._left:
            run_unit(unit, self._report)
        for unit in self._nowhere:
            self._report(unit.outcome(self._gpus.status, self._gpus.reason))


def key_of(message):
    """The unit that a message is the outcome of, as `Unit.key`; None where it is none."""
    outcome = message.get("outcome")
    return outcome and (outcome["index"], outcome["check"], outcome["device"])


def print_line(message):
    """Write a message as one marked line; the line before may have been left open by something else."""
    data = ("\n" + MARK + json.dumps(message) + "\n").encode()
    # os.write, not print: libraries replace sys.stdout, and a pipe may take a part only
    while data:
        data = data[os.write(1, data) :]


class Human:
    """A readable table, and the exit status: 1 after any failure."""

    def __init__(self):
        self.status = 0

    def __call__(self, message):
        """Show a message if it is an outcome."""
        outcome = message.get("outcome")
        if outcome is None:
            return
        if outcome["status"] not in ("pass", "skip"):
            self.status = 1
        error = outcome.get("max_relative_error")
        numbers = "" if error is None else "error %.2e of %.2e" % (error, outcome["tolerance"])
        print(
            "%-7s %-22s %-24s %7.2f s  %-26s %s"
            % (
                outcome["status"],
                outcome["check"],
                outcome["device"] or "-",
                outcome.get("seconds", 0.0),
                numbers,
                outcome["reason"],
            ),
            flush=True,
        )
        if outcome["status"] not in ("pass", "skip") and outcome.get("detail"):
            print("        | " + "\n        | ".join(outcome["detail"].strip().splitlines()[-15:]), flush=True)


def parse(argv):
    """The command line of a person, or ``--spec`` with all of it as JSON."""
    parser = argparse.ArgumentParser(description="Run envmedic's checks with this Python.")
    parser.add_argument("--spec", help="requests as JSON; the other options are for people")
    parser.add_argument(
        "--checks",
        default=",".join(name for name in CHECKS if name not in SLOW and name not in ON_CONSUMERS),
        help="comma-separated; import:NAME, import-sequence:NAME+NAME, extension-smoke:DISTRIBUTION (default: %(default)s)",
    )
    parser.add_argument("--devices", choices=("all", "cpu"), default="all")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each check (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--rounds", type=int, default=1, help="different inputs for each check (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="imports at a time (default: %(default)s)")
    parser.add_argument("--human", action="store_true", help="a table instead of JSON lines")
    options = parser.parse_args(argv)
    if options.spec is None:
        unknown = [part for part in options.checks.split(",") if part not in CHECKS and not part.startswith(OF_NAMES)]
        if unknown:
            parser.error("no such check: %s" % ", ".join(unknown))
    return options


def _anywhere(name):
    """Whether some part of a check runs on a device."""
    return any(where != NOWHERE for _, _, where in CHECKS.get(name, ()))


def requests_of(options):
    """Requests from the options of a person."""
    requests = []
    for index, part in enumerate(options.checks.split(",")):
        name, _, names = part.partition(":")
        arguments = names.split("+") if names else ["seed=%d" % options.seed, "rounds=%d" % options.rounds]
        gpu = options.devices == "all" and _anywhere(name)
        request = {"index": index, "name": name, "arguments": arguments, "gpu": gpu, "timeout_s": options.timeout}
        requests.append(request)
    return requests


def main(argv):
    """Run the session that the command line asks for; returns the exit status."""
    options = parse(argv)
    if options.spec is not None:
        spec = json.loads(options.spec)
        if spec.get("byte_code"):
            lending.lend(spec["byte_code"])
        more = {name: spec.get(name, False) for name in ("torch_once", "apart")}
        run(spec["requests"], spec.get("no_gpu", ""), print_line, spec.get("workers", 1), **more)
        return 0
    show = Human() if options.human else print_line
    run(requests_of(options), "", show, options.workers)
    return show.status if options.human else 0
