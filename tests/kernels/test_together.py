"""Checks of one GPU share a process; what crashes, hangs or fails in it runs again alone, and ends nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kernels.driving import STAND_IN, drive, statuses

CHECKS = "fft,autograd,torchvision-nms,torchvision-roi-align"
GPU = "cuda:0 Stand-in GPU"


def processes(tmp_path: Path, **more: str) -> tuple[dict[tuple[str, str | None], str], list[str]]:
    """Statuses of the checks on GPUs, and one line for each process and GPU that a check has chosen."""
    path, notes = tmp_path / "path", tmp_path / "notes"
    shutil.copytree(STAND_IN, path)
    with (path / "torch" / "__init__.py").open("a") as module:
        module.write(
            "\n_plain = cuda.empty_cache\n"
            f"def _noted():\n    open({str(notes)!r}, 'a').write('%d\\n' % os.getpid())\n"
            "cuda.empty_cache = _noted\n"
        )
    found = statuses(drive("--checks", CHECKS, path=path, variables={"GPUS": "1", "CUDA_BUILD": "12.4", **more}))
    on_gpu = {key: status for key, status in found.items() if (key[1] or "").startswith("cuda")}
    return on_gpu, notes.read_text().split()


def test_all_checks_of_a_gpu_that_need_one_import_share_a_process(tmp_path: Path) -> None:
    found, used = processes(tmp_path)
    assert set(found.values()) <= {"pass", "skip"}
    assert len(found) == 4
    assert len(used) == len(found)
    assert len(set(used)) == 2, "of torch's checks and of torchvision's"


@pytest.mark.long
@pytest.mark.parametrize(("what", "status"), [("segfault", "crash"), ("hang", "timeout"), ("error", "fail")])
def test_a_bad_end_is_that_of_one_check(tmp_path: Path, what: str, status: str) -> None:
    path = tmp_path / "path"
    shutil.copytree(STAND_IN, path)
    settings = {"GPUS": "2", "CUDA_BUILD": "12.4", "FAULT": f"{what} at nms"}
    found = drive("--checks", CHECKS, "--timeout", "8", path=path, variables=settings)
    seen = {key: outcome["status"] for key, outcome in found.items() if (key[1] or "").startswith("cuda:")}
    assert {status for key, status in seen.items() if key[0] == "torchvision-nms"} == {status}
    assert {status for key, status in seen.items() if key[0] != "torchvision-nms"} <= {"pass", "skip"}
    assert {key[1] for key in seen} == {"cuda:0 Stand-in GPU", "cuda:1 Stand-in GPU"}


def test_what_fails_beside_others_and_passes_alone_has_passed(tmp_path: Path) -> None:
    path = tmp_path / "path"
    shutil.copytree(STAND_IN, path)
    # a state that the first check of a process leaves, and the second stumbles over
    with (path / "torch" / "__init__.py").open("a") as module:
        module.write(
            "\n_count = []\ndef _second():\n    _count.append(1)\n"
            "    if len(_count) == 2: ctypes.string_at(0)\ncuda.synchronize = _second\n"
        )
    found = statuses(drive("--checks", "fft,autograd", path=path, variables={"GPUS": "1", "CUDA_BUILD": "12.4"}))
    assert {status for (_, device), status in found.items() if device == GPU} <= {"pass", "skip"}


def test_many_checks_of_a_gpu_share_two_processes_where_cpus_are_free(tmp_path: Path) -> None:
    path, notes = tmp_path / "path", tmp_path / "notes"
    shutil.copytree(STAND_IN, path)
    with (path / "torch" / "__init__.py").open("a") as module:
        module.write(
            "\nfrom envmedic_kernels.harness import together\ntogether.MANY = 2\n"
            "os.sched_getaffinity = lambda _pid: set(range(8))\n"
            f"def _noted():\n    open({str(notes)!r}, 'a').write('%d\\n' % os.getpid())\n"
            "cuda.empty_cache = _noted\n"
        )
    checks = "fft,autograd,sparse,streams"
    found = statuses(drive("--checks", checks, path=path, variables={"GPUS": "1", "CUDA_BUILD": "12.4"}))
    assert {status for (_, device), status in found.items() if device == GPU} <= {"pass", "skip"}
    assert len(set(notes.read_text().split())) == 2


def test_those_that_take_long_begin_first_and_others_go_on_beside(tmp_path: Path) -> None:
    path, notes = tmp_path / "path", tmp_path / "notes"
    shutil.copytree(STAND_IN, path)
    with (path / "torch" / "__init__.py").open("a") as module:
        module.write(
            "\nfrom envmedic_kernels.harness import together, units\n"
            "together.MANY, together.LONG = 2, {'streams'}\n"
            "os.sched_getaffinity = lambda _pid: set(range(8))\n"
            "def _slow(unit, context, send, settle=None):\n"
            f"    open({str(notes)!r}, 'a').write('%d %s\\n' % (os.getpid(), unit.name))\n"
            "    if unit.name == 'streams':\n"
            "        import time\n        deadline = time.monotonic() + 60\n"
            f"        while open({str(notes)!r}).read().count('\\n') < 5 and time.monotonic() < deadline:\n"
            "            time.sleep(0.05)\n"
            "    units.attempt(unit, context, send, settle)\n"
            "together.attempt = _slow\n"
        )
    found = statuses(
        drive("--checks", "fft,autograd,sparse,streams", path=path, variables={"GPUS": "1", "CUDA_BUILD": "12.4"})
    )
    assert {status for (_, device), status in found.items() if device == GPU} <= {"pass", "skip"}
    rows = [line.split() for line in notes.read_text().splitlines()]
    (busy,) = {pid for pid, name in rows if name == "streams"}
    assert sorted(name for pid, name in rows if pid != busy and name != "streams-graph") == [
        "autograd",
        "fft",
        "sparse",
    ]
