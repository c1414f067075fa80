"""A slice of `make fuzz`: every reader, from a fixed seed; and the fuzzer itself, which must see what is wrong."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.fuzz import driver
from tests.fuzz.__main__ import main
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

COUNTS = {
    "log": 8, "playbook": 8, "prefix": 12, "elf": 40, "conda-spec": 30, "activation": 30, "settings": 30, "condarc": 8, "shown": 8,
    "conda-lock": 12, "command": 20, "documents": 20, "processes": 20, "rewritten": 10, "requirement-files": 30, "symbols": 40,
}  # fmt: skip
"""Inputs of targets that take long; the others take what `COMMON` says."""
COMMON = 80
GROUPS = tuple(tuple(target.name for target in TARGETS[start::3]) for start in range(3))
"""Targets that share a process, since starting one takes longer than all that is read."""
CODE = """
import pathlib, sys
from tests.fuzz import driver
from tests.fuzz.targets import TARGETS, guarded
driver.watch_effects()
driver.limit_memory()
wrong = []
for target in TARGETS:
    if target.name in sys.argv[2:]:
        scratch = pathlib.Path(sys.argv[1], target.name)
        scratch.mkdir()
        tally = driver.fuzz(driver.Fuzzer(guarded(target), 1, scratch, allowed=scratch.parent), inputs=%r.get(target.name, %r))
        wrong += [f"{target.name}: {item.reason}" for item in tally.failures.values()]
sys.exit("\\n".join(wrong) or 0)
"""


@pytest.mark.parametrize("names", GROUPS, ids=[names[0] for names in GROUPS])
def test_every_input_is_read_or_refused_in_words(names: tuple[str, ...], tmp_path: Path) -> None:
    places = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    argv = [sys.executable, "-c", CODE % (COUNTS, COMMON), str(tmp_path), *names]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env={**os.environ, **places})
    assert (done.returncode, done.stderr) == (0, "")


def fuzzer(read: Callable[[bytes], object], scratch: Path) -> driver.Fuzzer:
    driver.watch_effects()
    target = Target(name="t", reader=lambda _: read, samples=lambda: [b"sample"], promised=(KeyError,))
    return driver.Fuzzer(target, 1, scratch)


def reason(read: Callable[[bytes], object], scratch: Path) -> str:
    failure = fuzzer(read, scratch).one(b"x")
    return "" if failure is None else failure.reason


def test_an_error_that_is_not_promised_is_seen(tmp_path: Path) -> None:
    def refuse(_: bytes) -> None:
        raise KeyError

    assert reason(lambda data: data[7], tmp_path).startswith("IndexError")
    assert reason(refuse, tmp_path) == ""


def test_effects_are_seen(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    inside = tmp_path / "in"
    inside.mkdir()
    assert reason(lambda _: (inside / "a").write_bytes(b""), inside) == ""
    assert "open" in reason(lambda _: outside.read_bytes(), inside)
    assert "os.remove" in reason(lambda _: outside.unlink(), inside)
    assert "subprocess" in reason(lambda _: subprocess.run(["/bin/true"], check=True), inside)
    with socket.socket() as plug:
        assert "socket.connect" in reason(lambda _: plug.connect(("127.0.0.1", 9)), inside)
    assert outside.exists()


def test_what_never_ends_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "INPUT_CPU_S", 0.2)

    def forever(_: bytes) -> None:
        while True:
            pass

    assert reason(forever, tmp_path).startswith("TooLong")


def test_the_same_seed_makes_the_same_inputs(tmp_path: Path) -> None:
    first, second = (fuzzer(len, tmp_path).inputs() for _ in range(2))
    assert [next(first) for _ in range(50)] == [next(second) for _ in range(50)]


def test_a_run_tells_what_it_tried_and_keeps_what_was_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    assert main(["pyvenv", "--seconds", "2", "--seed", "1"]) == 0
    told = capfd.readouterr().out
    assert "pyvenv" in told
    assert "every input was read" in told
    tally = msgspec.json.decode((tmp_path / ".fuzz/pyvenv/tally.json").read_bytes(), type=driver.Tally)
    assert tally.inputs > 2
    assert tally.reached > 2
