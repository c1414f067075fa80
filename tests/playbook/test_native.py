"""Texts of crashes, OpenMP and MKL: which fault they mean, how sure, and what is none of it."""

from __future__ import annotations

import pytest

from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Finding
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_file, shipped_directory

NAMES = ("decord-segfault", "import-order-crash", "openmp-runtimes", "mkl-jit-symbols", "mkl-threading-layer",
         "mkl-libraries", "static-tls")  # fmt: skip
PLAYBOOKS = tuple(load_file(shipped_directory() / f"{name}.yaml", "shipped") for name in NAMES)
SURE = 0.5


def findings(text: str) -> tuple[Finding, ...]:
    return diagnose(read_text(text.encode().split(b"\n"), PLAYBOOKS), None, PLAYBOOKS, prefix=None, log="").findings


@pytest.mark.parametrize(
    ("playbook", "text"),
    [
        ("openmp-runtimes", "OMP: Error #15: Initializing libiomp5.dylib, but found libomp.dylib already initialized."),
        ("openmp-runtimes", "OMP: Error #15: Initializing libiomp5md.dll, but found mk2iomp5md.dll already initialized."),
        ("openmp-runtimes", "P: Error #15: Initializing libomp140.x86_64.dll, but found libiomp5md.dll already initialized."),
        ("openmp-runtimes", "报错如下 OMP: Error #15: Initializing libiomp5.so, but found libiomp5.so already\ninitialized."),
        ("openmp-runtimes", "OMP: Error #179: Function pthread_mutex_init failed:\nOMP: System error #22: Invalid argument"),
        ("mkl-jit-symbols", "ImportError: /x/torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent"),
        ("mkl-jit-symbols", "报 undefined symbol: iJIT_IsProfilingActive 的错误 把 mkl 降级即可"),
        ("mkl-threading-layer", "Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is incompatible with libgomp-a34b3233.so.1 library."),
        ("mkl-threading-layer", "Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL\nis incompatible with libgomp.so.1 library."),
        ("mkl-threading-layer", "set os.environ['MKL_SERVICE_FORCE_INTEL'] = '1' before the imports"),
        ("mkl-libraries", "Intel MKL FATAL ERROR: Cannot load libmkl_avx512.so or libmkl_def.so."),
        ("mkl-libraries", "Intel oneMKL FATAL ERROR: Cannot load mkl_intel_thread.2.dll."),
        ("mkl-libraries", "python: symbol lookup error: /opt/lib/libmkl_intel_thread.so.2: undefined symbol: omp_get_num_procs"),
        ("mkl-libraries", "ImportError: libmkl_rt.so.2: cannot open shared object file: No such file or directory"),
        ("mkl-libraries", "Library not loaded: /usr/local/opt/libomp/lib/libomp.dylib"),
        ("static-tls", "OSError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block"),
        ("static-tls", "ImportError: dlopen: cannot load any more object with static TLS"),
        ("decord-segfault", "Segmentation fault (core dumped) whenever decord is imported before torch"),
        ("decord-segfault", 'File "/x/site-packages/decord/video_reader.py", line 57 in __init__'),
        ("import-order-crash", "importing open3d after torch ends in free(): invalid pointer"),
        ("import-order-crash", 'Fatal Python error: Aborted\n\n  File "<frozen importlib._bootstrap_external>", line 1176 in create_module'),
    ],
)  # fmt: skip
def test_what_leaves_no_doubt_is_found(playbook: str, text: str) -> None:
    best = findings(text)[0]
    assert (best.playbook, best.confidence >= SURE) == (playbook, True), best


@pytest.mark.parametrize(
    "text",
    [
        "Segmentation fault (core dumped)",
        "[1]    2791310 segmentation fault (core dumped)  python main.py",
        "zsh: segmentation fault  python train.py",
        "run.sh: 第 3 行: 12345 段错误 (核心已转储) python train.py",
        "Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)",
        "Process finished with exit code -1073741819 (0xC0000005)",
        "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGSEGV: 11>.",
        "exitcode  : -11 (pid: 4711)",
        "Windows fatal exception: access violation",
        "free(): invalid pointer",
        "double free or corruption (!prev)",
        "munmap_chunk(): invalid pointer",
        "*** Error in `python3': free(): invalid pointer: 0x000055e59b686ba8 ***",
        "*** stack smashing detected ***: terminated",
        "Bus error (core dumped)",
        "terminate called after throwing an instance of 'std::runtime_error'",
        "Aborted (core dumped)",
        "Fatal Python error: Segmentation fault",
    ],
)
def test_lines_that_many_causes_share_are_guesses(text: str) -> None:
    found = findings(text)
    assert found, text
    assert {item.fault for item in found} == {"native-crash"}
    assert all(item.confidence < SURE for item in found)


@pytest.mark.parametrize("text", ["Illegal instruction (core dumped)", "zsh: illegal hardware instruction  python"])
def test_instructions_that_the_processor_lacks_are_of_the_machine(text: str) -> None:
    (found,) = findings(text)
    assert (found.fault, found.fix_kind) == ("native-crash", "change-host")
    assert found.confidence >= SURE


@pytest.mark.parametrize(
    "text",
    [
        "Intel MKL ERROR: Parameter 6 was incorrect on entry to SGEMM.",
        "OMP: Info #276: omp_set_nested routine deprecated, please use omp_set_max_active_levels instead.",
        "exit code 1",
        "Process finished with exit code 0",
        "epoch 139/200, loss 11.134",
        'Traceback (most recent call last):\n  File "/x/site-packages/decord/video_reader.py", line 57, in __init__',
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "The import order of these modules does not matter",
        "The server crashes at import time in boxes.py, before any of them is folded",
        "OMP_NUM_THREADS=1 is used by default",
        "libgomp: Thread creation failed: Resource temporarily unavailable",
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default",
    ],
)
def test_what_is_no_fault_of_these_is_left_alone(text: str) -> None:
    assert not findings(text)


def test_the_variable_that_hides_it_is_named_as_no_repair() -> None:
    (loaded,) = (item for item in PLAYBOOKS if item.playbook.id == "openmp-runtimes")
    told = [text for text in loaded.playbook.alternatives if "KMP_DUPLICATE_LIB_OK" in text]
    assert len(told) == 1
    assert "never to keep" in told[0]
    assert all("KMP_DUPLICATE_LIB_OK" not in str(step) for step in loaded.playbook.steps)
