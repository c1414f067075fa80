"""One fuzzer: samples are mutated and read, under limits, and what goes wrong is kept.

A run is reproducible by its seed. What is wrong: an error that the reader does not promise, too much time or memory
for one input, and any effect at all: a file opened or changed outside the target's own directory, a process, a socket.
"""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from tests.fuzz.mutation import LARGEST, mutated
from tests.fuzz.reach import Reach
from tests.fuzz.target import Target

INPUT_CPU_S = 30.0
"""CPU seconds for one input of at most a quarter of a megabyte: thousands of times what they take."""
MEMORY_BYTES = 2 << 30
"""Address space of a fuzzing process, of which the libraries take a quarter."""
_KEPT = 400
"""Inputs that reached something new and are mutated further."""
_EFFECTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "socket.connect", "os.remove", "os.rename",
            "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate", "shutil.rmtree")  # fmt: skip


class TooLong(BaseException):
    """An input took more CPU time than any may; no reader catches this."""


class Effect(BaseException):
    """A reader of text opened, changed or started something."""


class Failure(msgspec.Struct, frozen=True):
    """An input that was read wrongly."""

    target: str
    reason: str
    """The error's last line, and where it was raised."""
    input: bytes


class Tally(msgspec.Struct):
    """What a run has tried."""

    target: str
    seconds: float = 0.0
    inputs: int = 0
    reached: int = 0
    slowest: float = 0.0
    """CPU seconds of the slowest input."""
    failures: dict[str, Failure] = msgspec.field(default_factory=dict)
    """By reason."""


class Fuzzer:
    """Inputs of one target, from one seed."""

    def __init__(self, target: Target, seed: int, scratch: Path, *, allowed: Path | None = None) -> None:
        self._target = target
        self._chance = random.Random(f"{target.name} {seed}")
        self._samples = [sample[:LARGEST] for sample in target.samples()]
        self._deep: list[bytes] = []
        self._reach = Reach()
        self._run = target.reader(scratch)
        self.tally = Tally(target.name)
        self.slowest = b""
        """The input that took longest."""
        self._allowed = (str(allowed or scratch), *target.reads)

    def inputs(self) -> Iterator[bytes]:
        """The samples as they are, then mutations without end."""
        yield from self._samples
        while True:
            known = self._deep if self._deep and self._chance.random() < 0.7 else self._samples
            sample = min(self._chance.choice(known), self._chance.choice(known), key=len)  # small ones are read soon
            yield mutated(sample, self._samples, self._target.words, self._chance)

    def one(self, data: bytes) -> Failure | None:
        """Read one input; the failure where that went wrong."""
        started = time.process_time()
        try:
            with limited_time(INPUT_CPU_S), nullcontext() if self._target.free else without_effects(self._allowed):
                if self._reach.of(self._run, data):
                    self._deep.append(data)
        except self._target.promised:
            pass
        except (Exception, TooLong, Effect) as error:  # noqa: BLE001  # whatever a reader raises is what is looked for
            return self._failed(error, data)
        finally:
            self.tally.inputs += 1
            spent = time.process_time() - started
            if spent > self.tally.slowest:
                self.tally.slowest, self.slowest = spent, data
            self.tally.reached = len(self._reach.seen)
            if len(self._deep) > _KEPT:
                del self._deep[self._chance.randrange(_KEPT)]
        return None

    def _failed(self, error: BaseException, data: bytes) -> Failure:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/envmedic/" in frame.filename] or frames
        said = str(error).partition("\n")[0][:160]
        reason = f"{type(error).__name__}: {said} at {Path(own[-1].filename).name}:{own[-1].lineno} {own[-1].name}"
        key = f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}"
        failure = Failure(self._target.name, reason, data)
        self.tally.failures.setdefault(key, failure)
        return failure


@contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after so many CPU seconds of this process, however loaded the machine is."""

    def over(_: int, __: FrameType | None) -> NoReturn:
        raise TooLong(f"more than {seconds:.0f} s of CPU")

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


_watched: list[tuple[str, ...]] = []
"""The directory in which effects are allowed just now, and files that may be read; empty outside of a run."""


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if not _watched:
        return
    if event in _EFFECTS:
        allowed = _watched[-1][0]
        places = [os.fsdecode(item) for item in arguments if isinstance(item, str | bytes)]
        if not places or not all(place.startswith(allowed) for place in places):
            raise Effect(f"{event} {places}")
    elif event == "open" and isinstance(arguments[0], str | bytes):
        _watch_open(os.fsdecode(arguments[0]), arguments)


def _watch_open(path: str, arguments: tuple[object, ...]) -> None:
    flags = arguments[2] if isinstance(arguments[2], int) else 0
    reading = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) == 0
    allowed, *files = _watched[-1]
    if path.startswith(allowed) or (reading and (path in files or _of_python(path))):
        return
    raise Effect(f"open {path!r} with flags {flags:#x}")


def _of_python(path: str) -> bool:
    """Whether a module, or data beside one, is read: imports come late."""
    roots = {os.path.realpath(item) for item in sys.path if item} | {sys.prefix, sys.base_prefix, *sys.path}
    return any(path.startswith(root + "/") for root in roots if root)


@contextmanager
def without_effects(allowed: tuple[str, ...]) -> Iterator[None]:
    """Raise `Effect` for what is opened or done outside of the directory `allowed[0]`.

    Python's own modules, and the files that follow it, may be read.
    """
    _watched.append(allowed)
    try:
        yield
    finally:
        _watched.pop()


_hooked: list[bool] = []


def watch_effects() -> None:
    """Begin to see effects in this process, for good (`sys.addaudithook`)."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_watch)


def limit_memory() -> None:
    """Let this process have `MEMORY_BYTES` and no more: what wants more raises MemoryError."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def fuzz(fuzzer: Fuzzer, *, inputs: int | None = None, seconds: float | None = None,
         before: Callable[[bytes], None] | None = None) -> Tally:  # fmt: skip
    """Read so many inputs, or for so long; `before` gets each input, so that it outlives a crash of the process."""
    started = time.monotonic()
    for number, data in enumerate(fuzzer.inputs()):
        if (inputs is not None and number >= inputs) or (seconds is not None and time.monotonic() - started >= seconds):
            break
        if before is not None:
            before(data)
        fuzzer.one(data)
    fuzzer.tally.seconds = time.monotonic() - started
    return fuzzer.tally


def named(data: bytes) -> str:
    """The name of an input that is kept."""
    return hashlib.sha256(data).hexdigest()[:16]
