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

from envmedic.playbook.loader import load_all
from envmedic.playbook.match import scan
from envmedic.playbook.reading import read_lines
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
