"""What compilers, linkers, torch and installers say of failing builds, over their versions and languages."""

from __future__ import annotations

from functools import cache

import pytest

from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all

TOOLCHAIN, MISMATCH, ARCHES = "extension-build-toolchain", "cuda-toolkit-mismatch", "cuda-arch-list"


@cache
def books() -> tuple[LoadedPlaybook, ...]:
    """Every shipped playbook."""
    return load_all(())


def judged(text: bytes) -> Diagnosis:
    """What the text alone says."""
    return diagnose(read_text(text.split(b"\n"), books()), None, books(), prefix=None, log="log")


@pytest.mark.parametrize(
    ("text", "fault", "playbook"),
    [
        # torch 1.7 to 2.15, and projects that compare by themselves
        ("RuntimeError:\nThe detected CUDA version (12.2) mismatches the version that was used to compile\nPyTorch (11.3). Please", MISMATCH, MISMATCH),
        ("RuntimeError: ('The detected CUDA version (%s) mismatches the version that was used to compilePyTorch (%s). Please make sure to use the same CUDA versions.', '12.8', '13.0')", MISMATCH, MISMATCH),
        ("CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.2 does not match the version torch was compiled with 11.8", MISMATCH, MISMATCH),
        ("RuntimeError: causal_conv1d is only supported on CUDA 11.6 and above.  Note: make sure nvcc has a supported version", MISMATCH, MISMATCH),
        ("ValueError: Unknown CUDA arch (12.0+PTX) or GPU not supported", ARCHES, ARCHES),
        ("ValueError: Unknown CUDA arch () or GPU not supported", ARCHES, ARCHES),
        ("    arch_list[-1] += '+PTX'\n    ~~~~~~~~~^^^^\nIndexError: list index out of range", ARCHES, ARCHES),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", ARCHES, ARCHES),
        ("2 | nvcc fatal : Unsupported gpu architecture 'compute_35'", ARCHES, ARCHES),
        ("OSError: Unknown compute capability. Specify the target compute capabilities in the TCNN_CUDA_ARCHITECTURES environment", ARCHES, ARCHES),
        # the linker, in other words and languages
        ("/usr/bin/x86_64-linux-gnu-ld: cannot find -lcuda: No such file or directory", TOOLCHAIN, "link-libcuda"),
        ("/usr/bin/ld: 找不到 -lcuda: 没有那个文件或目录\ncollect2: 错误\uff1ald 返回 1", TOOLCHAIN, "link-libcuda"),
        ("/usr/bin/ld: -lcuda kann nicht gefunden werden", TOOLCHAIN, "link-libcuda"),
        ("/usr/bin/ld: ne peut trouver -lcuda", TOOLCHAIN, "link-libcuda"),
        ("/usr/bin/ld: -lcuda が見つかりません", TOOLCHAIN, "link-libcuda"),
        ("/opt/conda/envs/a/bin/../lib/gcc/x86_64-conda-linux-gnu/12/ld: cannot find -lcudart", TOOLCHAIN, "cuda-home"),
        ("/usr/bin/ld: 无法找到 -lcudart", TOOLCHAIN, "cuda-home"),
        ("LINK : fatal error LNK1181: cannot open input file 'cudart.lib'", TOOLCHAIN, "cuda-home"),
        ("/usr/bin/ld: cannot find -lpython3.11", TOOLCHAIN, "python-headers"),
        # the toolkit
        ("OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.", TOOLCHAIN, "cuda-home"),
        ("EnvironmentError: CUDA_HOME environment variable is not set", TOOLCHAIN, "cuda-home"),
        ("FileNotFoundError: nvcc not found at '/opt/cuda/bin/nvcc'. Ensure CUDA path '/opt/cuda' is correct.", TOOLCHAIN, "cuda-home"),
        ("/bin/sh: 1: :/usr/local/cuda-12.1/bin/nvcc: not found", TOOLCHAIN, "cuda-home"),
        ("error: [Errno 2] No such file or directory: '/usr/local/cuda:/usr/local/cuda-11.8/bin/nvcc'", TOOLCHAIN, "cuda-home"),
        ("RuntimeError: --cuda_ext was requested, but nvcc was not found.  Are you sure your environment has nvcc available?", TOOLCHAIN, "cuda-home"),
        ("include/ATen/cuda/CUDAContext.h:6:10: fatal error: cusparse.h: No such file or directory", TOOLCHAIN, "cuda-home"),
        ("fatal error: cuda_runtime.h: 没有那个文件或目录", TOOLCHAIN, "cuda-home"),
        ("CMake Error: No CMAKE_CUDA_COMPILER could be found.", TOOLCHAIN, "cuda-home"),
        # compilers
        ("#error -- unsupported GNU version! gcc versions later than 11 are not supported!", TOOLCHAIN, "host-compiler"),
        ("RuntimeError: The current installed version of x86_64-linux-gnu-g++ (13.2.0) is greater than the maximum required version by CUDA 11.8.", TOOLCHAIN, "host-compiler"),
        ("RuntimeError: ('The current installed version of %s (%s) is greater than the maximum required version by CUDA %s.', 'g++', '15.1', '12.8')", TOOLCHAIN, "host-compiler"),
        ("/usr/include/c++/11/bits/std_function.h:530:146: error: parameter packs not expanded with \u2018...\u2019:", TOOLCHAIN, "host-compiler"),
        ('error: exception specification is incompatible with that of previous function "cospi"', TOOLCHAIN, "host-compiler"),
        ("error: command 'gcc' failed: No such file or directory", TOOLCHAIN, "host-compiler"),
        ("unable to execute 'x86_64-linux-gnu-gcc': No such file or directory", TOOLCHAIN, "host-compiler"),
        ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.", TOOLCHAIN, "host-compiler"),
        ("error: Microsoft Visual C++ 14.0 or greater is required.", TOOLCHAIN, "host-compiler"),
        ("nvcc fatal   : Cannot find compiler 'cl.exe' in PATH", TOOLCHAIN, "host-compiler"),
        ("#error C++17 or later compatible compiler is required to use PyTorch/ATen.", TOOLCHAIN, "host-compiler"),
        ("fatal error: Python.h: No such file or directory", TOOLCHAIN, "python-headers"),
        # the tools of builds
        ("RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)", TOOLCHAIN, "ninja-missing"),
        ("ModuleNotFoundError: No module named 'pkg_resources'", TOOLCHAIN, "build-setuptools"),
        ("ImportError: cannot import name 'packaging' from 'pkg_resources'", TOOLCHAIN, "build-setuptools"),
        ("AttributeError: module 'pkgutil' has no attribute 'ImpImporter'", TOOLCHAIN, "build-setuptools"),
        ("error: invalid command 'bdist_wheel'", TOOLCHAIN, "build-setuptools"),
        ('  File "<string>", line 19, in <module>\n  ModuleNotFoundError: No module named \'torch\'\n  [end of output]', TOOLCHAIN, "build-isolation"),
        ("hint: This error likely indicates that `flash-attn@2.8.3` depends on `torch`, but doesn't declare it as a build dependency.", TOOLCHAIN, "build-isolation"),
        ('  File "<string>", line 8, in <module>\n  ModuleNotFoundError: No module named \'wheel\'\n  [end of output]', TOOLCHAIN, "build-requirements"),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", TOOLCHAIN, "build-memory"),
        ("g++: fatal error: Killed signal terminated program cc1plus", TOOLCHAIN, "build-memory"),
        ('error: identifier "THCState_getCurrentStream" is undefined', TOOLCHAIN, "build-failed"),
        ("fatal error: THC/THC.h: No such file or directory", TOOLCHAIN, "build-failed"),
    ],
)  # fmt: skip
def test_a_message_is_known_for_what_it_is(text: str, fault: str, playbook: str) -> None:
    found = judged(text.encode())
    assert found.findings, text
    best = found.findings[0]
    assert (best.fault, best.playbook) == (fault, playbook)
    assert best.confidence >= 0.5


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: Failed building wheel for some-package",
        "error: subprocess-exited-with-error",
        "UserWarning: Attempted to use ninja as the BuildExtension backend but we could not find ninja.",
        "UserWarning: TORCH_CUDA_ARCH_LIST is not set, all archs for visible cards are included for compilation.",
        "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'",
    ],
)
def test_a_line_of_many_causes_establishes_nothing(text: str) -> None:
    found = judged(text.encode())
    assert all(item.confidence < 0.5 for item in found.findings)
    assert found.verdict == "unknown"


def test_the_reason_ranks_above_the_last_words() -> None:
    text = (
        b"/usr/local/cuda/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later "
        b"than 12 are not supported!\nninja: build stopped: subcommand failed.\n"
        b"RuntimeError: Error compiling objects for extension\nERROR: Failed building wheel for ops\n"
        b"error: subprocess-exited-with-error"
    )
    found = judged(text)
    assert [item.playbook for item in found.findings] == ["host-compiler", "build-failed"]


def test_the_line_of_source_in_a_traceback_does_not_name_the_architecture() -> None:
    text = (
        b'    raise ValueError(f"Unknown CUDA arch ({arch}) or GPU not supported")\n'
        b"ValueError: Unknown CUDA arch (10.1) or GPU not supported\n"
    )
    assert "'10.1'" in judged(text).findings[0].summary
