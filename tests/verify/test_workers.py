"""How many imports run at a time, by CPUs and memory as the kernel tells them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envmedic.engine.verify import concurrency
from envmedic.engine.verify.concurrency import BYTES_EACH, MOST, System, at_once, available_bytes

GIB = 1 << 30


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    """A machine of 64 CPUs and 100 GiB without control groups."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:  {100 * GIB // 1024} kB\n")
    (tmp_path / "groups").mkdir()
    return System(tmp_path / "meminfo", tmp_path / "membership", tmp_path / "groups")


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_in_", "!").replace("_", ".").replace("!", "_in_")).write_text(text + "\n")


def test_a_large_machine_runs_the_most(system: System) -> None:
    assert available_bytes(system) == 100 * GIB
    assert at_once(system) == MOST


def test_cpus_that_this_process_may_not_use_do_not_count(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    assert at_once(system) == 2


def test_little_memory_runs_few_and_always_one(system: System) -> None:
    system.meminfo.write_text(f"MemAvailable: {3 * BYTES_EACH // 1024} kB\n")
    assert at_once(system) == 3
    system.meminfo.write_text("MemAvailable: 1000 kB\n")
    assert at_once(system) == 1


def test_control_groups_limit_memory_and_cpus_at_every_level(system: System) -> None:
    system.membership.write_text("0::/job/step\n")
    group(system.groups / "job" / "step", memory_max="max", memory_current=str(GIB), cpu_max="max 100000")
    assert at_once(system) == MOST
    stat = f"anon 5\ninactive_file {2 * GIB}"
    group(system.groups / "job", memory_max=str(9 * GIB), memory_current=str(5 * GIB), memory_stat=stat)
    assert available_bytes(system) == 6 * GIB
    assert at_once(system) == 6 * GIB // BYTES_EACH
    group(system.groups / "job", cpu_max="150000 100000")
    assert at_once(system) == 2


def test_control_groups_version_1_limit_memory(system: System) -> None:
    system.membership.write_text("4:memory:/job\n3:cpuset:/\n0::/\n")
    folder = system.groups / "memory" / "job"
    group(folder, memory_stat="cache 3\ntotal_inactive_file 100")
    (folder / "memory.limit_in_bytes").write_text(f"{4 * GIB}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{GIB}\n")
    assert available_bytes(system) == 3 * GIB + 100


def test_this_machine_has_an_answer() -> None:
    assert 1 <= at_once() <= min(MOST, os.cpu_count() or 1)
    assert 0 < available_bytes(concurrency.System()) < float("inf")
