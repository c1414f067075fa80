"""Reading a large log with every signature, against passes of grep over the same file."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from envmedic.playbook.matching.log_stream import read_lines
from envmedic.playbook.matching.match import scan
from envmedic.playbook.schema.loader import load_all
from tests.bench.measures import SkippedError
from tests.bench.sampling import Samples, rounds

MEGABYTES = 100
PASSES = 3
WORDS = ("error", "Traceback")
"""What people look for. grep goes through a log five times faster for words with rare letters than for others."""
_LINES = (
    "2026-01-05 05:58:46,{a:03d} INFO trainer.py:291 [rank{b}]: Epoch {b} iter {c}/12345 loss: {d:.4f} eta: 3:12:44",
    "{b}%|{bar:<10}| {c}/12345 [00:{b:02d}<10:03, {d:.2f}it/s, loss={d:.3f}]",
    '  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line {c}, in _call_impl',
    "Downloading torch-2.5.{b}-cp311-cp311-manylinux1_x86_64.whl ({c} kB)",
    "[{b}/99] gcc -pthread -DNDEBUG -O2 -fPIC -I/usr/include/python3.11 -c src/file{c}.cpp -o build/temp/file{c}.o",
    'INFO: 10.0.0.{b}:{c} - "POST /v1/completions HTTP/1.1" 200 OK, {d:.3f} s',
    "NCCL INFO Channel {b:02d}/32 : {b}[{c}] -> 3[9a000] via P2P/IPC",
)


_FAILURE = (
    "Traceback (most recent call last):",
    '  File "/opt/venv/lib/python3.11/site-packages/torch/_ops.py", line 1061, in __call__',
    "RuntimeError: operator torchvision::nms does not exist",
    "ValueError: batch size must be positive",
)
_LONG_LINE_TOKENS = 20_000
FLOOD_BYTES = 10_000_000
_FLOODS = {
    "the same failure of 1000 ranks": (
        "2026-01-05 {a:02d}:{b:02d}:{c:02d},{d:03d} [rank{e}]: NotImplementedError: Could not run 'torchvision::nms' with "
        "arguments from the 'CUDA' backend. This could be because the operator doesn't exist for this backend"
    ),
    "a warning with pointers": (
        "node{b}:{f}:{g} [{a}] transport/net_ib.cc:295 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate "
        "memory comm 0x{h:012x} rank {e}, in a restart loop of {c} of {d} jobs since its last checkpoint"
    ),
    "tracebacks that end differently": (
        "[rank{e}]: Traceback (most recent call last):\n"
        '[rank{e}]:   File "/opt/venv/lib/python3.11/site-packages/torch/_ops.py", line {d}, in __call__\n'
        "[rank{e}]:     return self._op(*args, **(kwargs or {{}}))\n"
        "[rank{e}]: torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device {b}\n"
        "[rank{e}]: Fatal Python error: Segmentation fault at address 0x{h:x} of process {f} and of {g} others"
    ),
}
"""What a restart loop, or every rank of a large job, says again and again."""
_BATCH = 5000
"""Lines that end alike, with one failure among them in a mixed log."""


def large_log(path: Path, megabytes: int = MEGABYTES, *, mixed: bool = False) -> Path:
    """A log of training, building and serving of about `megabytes`; made once.

    It is without any fault; a `mixed` one has a failure and a very long line every half megabyte, line
    ends of both kinds, and none at its end.
    """
    size = megabytes * 1_000_000
    if path.is_file() and path.stat().st_size >= size:
        return path
    source = random.Random(4711)
    with path.open("w", encoding="utf-8", newline="") as stream:
        for end in itertools.cycle(("\n", "\r\n") if mixed else ("\n",)):
            lines = [_line(source) for _ in range(_BATCH)]
            if mixed:
                lines += [*_FAILURE, " ".join(f"token{source.randrange(99)}" for _ in range(_LONG_LINE_TOKENS))]
            stream.write(end.join(lines))
            if stream.tell() >= size:
                break
            stream.write(end)
        if not mixed:
            stream.write("\n")
    return path


def floods(folder: Path, size: int = FLOOD_BYTES) -> dict[str, Path]:
    """Logs of `size` bytes of which every line looks like a failure, by what is in them; made once."""
    made: dict[str, Path] = {}
    for number, (words, text) in enumerate(_FLOODS.items()):
        path = made[words] = folder / f"flood-{number}.log"
        if path.is_file():
            continue
        source = random.Random(4711)
        unfinished = path.with_suffix(".part")
        with unfinished.open("w", encoding="utf-8") as stream:
            while stream.tell() < size:
                stream.write(text.format(
                    a=source.randrange(24), b=source.randrange(60), c=source.randrange(60), d=source.randrange(1000),
                    e=source.randrange(1000), f=source.randrange(99999), g=source.randrange(99999), h=source.getrandbits(47),
                ) + "\n")  # fmt: skip
        unfinished.rename(path)
    return made


class Flooded(NamedTuple):
    """What it takes to read a log of which every line looks like a failure, in a process of its own."""

    seconds: float
    processor: float
    """Seconds of a processor."""
    memory: int
    """Peak, in bytes."""


_FLOODED = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from envmedic.playbook.schema.loader import load_all\n"
    "from envmedic.playbook.matching.match import scan\n"
    "from envmedic.playbook.matching.log_stream import read_lines\n"
    "playbooks = load_all()\n"
    "started, used = time.perf_counter(), time.process_time()\n"
    "assert scan(read_lines(sys.argv[1]), playbooks)\n"
    "now = time.perf_counter() - started, time.process_time() - used\n"
    "status = Path('/proc/self/status').read_text().split()\n"  # ru_maxrss may be that of the process that started it
    "print(*now, int(status[status.index('VmHWM:') + 1]) * 1024)\n"
)


def flooded(log: Path, count: int) -> list[Flooded]:
    """Readings of `log`."""
    found: list[Flooded] = []
    for _ in range(count):
        done = subprocess.run([sys.executable, "-c", _FLOODED, log], capture_output=True, text=True, check=True)
        seconds, processor, memory = done.stdout.split()
        found.append(Flooded(float(seconds), float(processor), int(memory)))
    return found


def _line(source: random.Random) -> str:
    return source.choice(_LINES).format(
        a=source.randrange(1000), b=source.randrange(8), c=source.randrange(12345), d=source.random(),
        bar="\u2588" * source.randrange(10),
    )  # fmt: skip


def reading(log: Path, count: int) -> Samples:
    """Seconds for three passes of grep by word, for all signatures in this process, and for the whole command."""
    grep = shutil.which("grep")
    if grep is None:
        raise SkippedError("there is no grep")
    playbooks = load_all()
    # as installed: with byte code, which the round that warms caches writes, here beside the log
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(log.with_name("bytecode"))}

    def passes(word: str, _: int) -> float:
        started = time.perf_counter()
        for _pass in range(PASSES):
            # into a pipe: where its output goes to /dev/null, grep ends at the first match
            subprocess.run([grep, "-E", "-c", word, log], stdout=subprocess.PIPE, check=False)
        return time.perf_counter() - started

    def signatures(_: int) -> float:
        started = time.perf_counter()
        scan(read_lines(log), playbooks)
        return time.perf_counter() - started

    def command(_: int) -> float:
        argv = [sys.executable, "-m", "envmedic", "diagnose", "--log-only", str(log), "--json"]
        started = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=environment)
        return time.perf_counter() - started

    return rounds({word: partial(passes, word) for word in WORDS} | {"scan": signatures, "command": command}, count)
