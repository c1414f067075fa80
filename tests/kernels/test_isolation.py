"""A check that crashes, hangs, prints or leaves processes behind is a result of that check alone."""

from __future__ import annotations

import os
import py_compile
import shutil
import time
from pathlib import Path

import pytest

from tests.kernels import driving
from tests.kernels.driving import STAND_IN, drive, statuses

MODULES = {
    "fine": "x = 1",
    "raises": "raise ImportError('libfoo.so.1: cannot open shared object file\\nmore')",
    "leaves": "import sys; sys.exit(3)",
    "vanishes": "import os; print('last words', flush=True); os._exit(0)",
    "segfaults": "import ctypes; ctypes.string_at(0)",
    "aborts": "import os; os.abort()",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "hangs": "import time\ndef deep():\n    time.sleep(600)\ndeep()",
    "stubborn": "import signal, time\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\nwhile True: time.sleep(1)",
    "asks": "input('name? ')",
    "chatty": "print('@envmedic {\"end\": true}\\n' + 'no line end', end='')",
    "mute": "import sys; sys.stdout.close(); sys.stderr = None",
    "closes": "import os; os.closerange(0, 3)",
    "interrupted": "raise KeyboardInterrupt",
    "flood": "import os\nchunk = b'y' * 65536\nfor _ in range(1600): os.write(1, chunk)\nraise ImportError('after 100 MB')",
}
BAD = {
    "raises": ("fail", "ImportError: libfoo.so.1: cannot open shared object file"),
    "leaves": ("fail", "SystemExit: 3"),
    "vanishes": ("crash", "ended with exit status 0 before it had a result"),
    "segfaults": ("crash", "ended by SIGSEGV"),
    "aborts": ("crash", "ended by SIGABRT"),
    "killed": ("crash", "ended by SIGKILL"),
    "asks": ("fail", "EOFError: EOF when reading a line"),
    "interrupted": ("fail", "KeyboardInterrupt"),
    "absent": ("fail", "ModuleNotFoundError: No module named 'absent'"),
    "flood": ("fail", "ImportError: after 100 MB"),
}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("modules")
    for name, source in MODULES.items():
        (directory / f"{name}.py").write_text(source)
    return directory


def test_damaged_byte_code_of_envmedic_is_no_fault_of_the_environment(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each module is loaded from its source then, by a process that was started for it too."""
    copy = shutil.copytree(driving.KERNELS, tmp_path / "kernels", ignore=shutil.ignore_patterns("*.pyc"))
    for path in copy.rglob("*.py"):
        compiled = Path(py_compile.compile(str(path), doraise=True) or "")
        compiled.write_bytes(compiled.read_bytes()[: 99 if path.stat().st_size else 17])
    monkeypatch.setattr(driving, "KERNELS", copy)
    assert drive("--checks", "import:fine,import:raises", path=modules)["import fine", None]["status"] == "pass"


def test_each_name_is_imported_in_a_process_of_its_own(modules: Path) -> None:
    names = ["fine", "chatty", "mute", "closes", *BAD]
    found = drive("--checks", ",".join(f"import:{name}" for name in names), path=modules)
    seen = {name: (found[f"import {name}", None]["status"], found[f"import {name}", None]["reason"]) for name in names}
    assert seen == {**dict.fromkeys(("fine", "chatty", "mute", "closes"), ("pass", "")), **BAD}
    assert found["import segfaults", None]["signal"] == "SIGSEGV"
    assert "Fatal Python error: Segmentation fault" in found["import segfaults", None]["detail"]
    assert found["import vanishes", None]["detail"] == "last words\n"
    assert len(found["import flood", None]["detail"]) == 4000
    assert "detail" not in found["import fine", None]


def test_a_hang_is_a_timeout_that_shows_where_it_hangs(modules: Path) -> None:
    started = time.monotonic()
    found = drive("--checks", "import:hangs,import:stubborn,import:fine", "--timeout", "1", path=modules)
    assert statuses(found) == {
        ("import hangs", None): "timeout", ("import stubborn", None): "timeout", ("import fine", None): "pass",
    }  # fmt: skip
    assert "in deep" in found["import hangs", None]["detail"]
    assert time.monotonic() - started < 300


def test_what_an_import_leaves_running_is_ended_and_not_waited_for(modules: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    (modules / "daemon.py").write_text(
        "import os, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
    )
    started = time.monotonic()
    found = drive("--checks", "import:daemon", path=modules)
    assert found["import daemon", None]["status"] == "pass"
    assert time.monotonic() - started < 280
    assert _gone(int(note.read_text()))


def _gone(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("what", "status", "reason"),
    [
        ("segfault", "crash", "import torch: ended by SIGSEGV"),
        ("abort", "crash", "import torch: ended by SIGABRT"),
        ("hang", "timeout", "import torch: no end within its time limit (2 s)"),
        ("error", "fail", "import torch: RuntimeError: import torch is broken"),
        ("exit", "crash", "import torch: ended with exit status 0 before it had a result"),
    ],
)
def test_a_torch_that_cannot_be_imported_fails_every_check_that_needs_it(what: str, status: str, reason: str) -> None:
    checks = "matmul,torchvision-dispatch,torchvision-nms,import:json"
    found = drive("--checks", checks, "--timeout", "2", FAULT=f"{what} at import torch", GPUS="1", CUDA_BUILD="12.4")
    assert found.pop(("import json", None))["status"] == "pass"
    assert set(found) == {
        ("matmul-fp32", "cpu"), ("matmul-fp32", "cuda"), ("matmul-bf16", "cpu"), ("matmul-bf16", "cuda"),
        ("matmul-tf32", "cuda"), ("matmul-fp16", "cuda"), ("matmul-fp8", "cuda"),
        ("torchvision-dispatch", None), ("torchvision-nms", "cpu"), ("torchvision-nms", "cuda"),
    }  # fmt: skip
    assert {(outcome["status"], outcome["reason"]) for outcome in found.values()} == {(status, reason)}


def test_a_torchvision_that_cannot_be_imported_leaves_torch_its_checks() -> None:
    found = drive("--devices", "cpu", "--checks", "matmul,torchvision-nms", FAULT="segfault at import torchvision")
    assert statuses(found) == {
        ("matmul-fp32", "cpu"): "pass", ("matmul-bf16", "cpu"): "pass", ("torchvision-nms", "cpu"): "crash",
    }  # fmt: skip
    assert found["torchvision-nms", "cpu"]["reason"] == "import torchvision: ended by SIGSEGV"


def test_what_is_not_installed_is_skipped(tmp_path: Path) -> None:
    found = drive("--devices", "cpu", "--checks", "matmul,torchvision-nms", path=tmp_path)
    assert set(statuses(found).values()) == {"skip"}
    assert {outcome["reason"] for outcome in found.values()} == {"torch is not installed"}


@pytest.mark.parametrize(("what", "status"), [("segfault", "crash"), ("hang", "timeout"), ("exit", "crash")])
def test_a_kernel_that_crashes_or_hangs_ends_alone(what: str, status: str) -> None:
    found = drive("--devices", "cpu", "--timeout", "2", "--checks", "matmul,torchvision-nms", FAULT=f"{what} at nms")
    assert statuses(found) == {
        ("matmul-fp32", "cpu"): "pass", ("matmul-bf16", "cpu"): "pass", ("torchvision-nms", "cpu"): status,
    }  # fmt: skip


def test_a_crash_while_counting_gpus_is_told_by_each_gpu_check() -> None:
    settings = {"FAULT": "segfault at counting GPUs", "CUDA_BUILD": "12.4"}
    found = drive("--checks", "torchvision-nms", variables=settings)
    assert found["torchvision-nms", "cpu"]["status"] == "pass"
    outcome = found["torchvision-nms", "cuda"]
    assert (outcome["status"], outcome["reason"]) == ("crash", "looking for GPUs: ended by SIGSEGV")


def test_children_die_with_the_driver(modules: Path, tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys

    from tests.kernels.driving import KERNELS

    note = tmp_path / "pid"
    (modules / "waits.py").write_text(
        f"import os, time\nopen({str(note) + '.new'!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({str(note) + '.new'!r}, {str(note)!r})\ntime.sleep(300)\n"
    )
    argv = [sys.executable, "-B", str(KERNELS / "driver.py"), "--checks", "import:waits"]
    environment = {**os.environ, "PYTHONPATH": str(modules)}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL) as driver:
        while not note.exists():
            time.sleep(0.02)
        driver.send_signal(signal.SIGKILL)
    assert _gone(int(note.read_text()))


FAMILY = "import:torch+torchvision+torchaudio"


def test_what_checks_need_is_imported_once_and_that_is_the_outcome_of_the_import(tmp_path: Path) -> None:
    copied, seen = tmp_path / "path", tmp_path / "seen"
    shutil.copytree(STAND_IN, copied)
    for name in ("torch", "torchvision", "torchaudio"):
        with (copied / name / "__init__.py").open("a") as module:
            module.write(f"with open({str(seen)!r}, 'a') as seen: seen.write('{name}\\n')\n")
    found = drive("--devices", "cpu", "--checks", f"{FAMILY},matmul,torchvision-nms", path=copied)
    assert statuses(found) == {
        ("import torch", None): "pass", ("import torchvision", None): "pass", ("import torchaudio", None): "pass",
        ("matmul-fp32", "cpu"): "pass", ("matmul-bf16", "cpu"): "pass", ("torchvision-nms", "cpu"): "pass",
    }  # fmt: skip
    assert sorted(seen.read_text().split()) == ["torch", "torchaudio", "torchvision"]


@pytest.mark.parametrize(
    ("what", "status", "reason"),
    [
        ("segfault", "crash", "ended by SIGSEGV"),
        ("hang", "timeout", "no end within its time limit (3 s)"),
        ("error", "fail", "RuntimeError: import torchvision is broken"),
        ("exit", "crash", "ended with exit status 0 before it had a result"),
    ],
)
def test_a_torchvision_that_checks_need_and_that_cannot_be_imported_is_told_as_such(
    what: str, status: str, reason: str
) -> None:
    fault = f"{what} at import torchvision"
    found = drive("--devices", "cpu", "--timeout", "3", "--checks", f"{FAMILY},matmul,torchvision-nms", FAULT=fault)
    outcome = found["import torchvision", None]
    assert (outcome["status"], outcome["reason"]) == (status, reason)
    assert outcome["detail"] or what == "exit"
    assert statuses(found) == {
        ("import torch", None): "pass", ("import torchvision", None): status, ("import torchaudio", None): "pass",
        ("matmul-fp32", "cpu"): "pass", ("matmul-bf16", "cpu"): "pass", ("torchvision-nms", "cpu"): status,
    }  # fmt: skip


def test_without_a_torch_that_can_be_imported_each_import_of_its_family_is_told_by_itself() -> None:
    found = drive("--devices", "cpu", "--checks", f"{FAMILY},matmul", FAULT="error at import torch")
    reasons = {check: outcome["reason"] for (check, _), outcome in found.items()}
    broken = "RuntimeError: import torch is broken"
    assert {name: reasons[f"import {name}"] for name in ("torch", "torchvision", "torchaudio")} == {
        "torch": broken, "torchvision": broken, "torchaudio": broken,
    }  # fmt: skip
    assert reasons["matmul-fp32"] == f"import torch: {broken}"


@pytest.mark.long
def test_an_import_that_goes_on_beside_other_checks_keeps_its_own_limit() -> None:
    faults = "hang at import torchvision;hang at matmul"
    found = drive("--devices", "cpu", "--timeout", "3", "--checks", f"{FAMILY},matmul,torchvision-nms", FAULT=faults)
    assert found["import torchvision", None]["status"] == "timeout"
    assert found["matmul-fp32", "cpu"]["status"] == "timeout"
    assert found["import torchaudio", None]["status"] == "pass"
