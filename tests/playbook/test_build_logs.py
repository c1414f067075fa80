"""The first failing command of a build and its first error line, in the words of every tool."""

from __future__ import annotations

from functools import cache

import pytest

from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching.blocks import BLOCK_BYTES, blocks, joined
from envmedic.playbook.matching.build_log import BuildLog
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all
from envmedic.render.documents.diagnosis import diagnosis_lines

TOOLCHAIN = "extension-build-toolchain"


def read(text: str) -> tuple[str | None, str | None]:
    """The command and the error that are found in `text`."""
    build = BuildLog()
    for block in blocks(joined(text.encode().split(b"\n"))):
        build.see(block)
    return build.command and build.command.text, build.error and build.error.text


@cache
def books() -> tuple[LoadedPlaybook, ...]:
    return load_all(())


def judged(text: str) -> Diagnosis:
    return diagnose(read_text(text.encode().split(b"\n"), books()), None, books(), prefix=None, log="log")


NINJA = """\
[1/3] c++ -c good.cpp -o good.o
good.cpp:4:2: warning: unused variable
[2/3] /usr/local/cuda/bin/nvcc -c boxes.cu -o boxes.o
FAILED: boxes.o
/usr/local/cuda/bin/nvcc -c boxes.cu -o boxes.o
boxes.cu(12): error: no suitable widget for "Frob"
1 error detected in the compilation of "boxes.cu".
ninja: build stopped: subcommand failed.
RuntimeError: Error compiling objects for extension"""


@pytest.mark.parametrize(
    ("text", "command", "error"),
    [
        (NINJA, "FAILED: boxes.o", 'boxes.cu(12): error: no suitable widget for "Frob"'),
        # ninja prints the command before its errors: one before it did not fail the build
        ("old.cpp:1:1: error: tried\n" + NINJA, "FAILED: boxes.o", 'boxes.cu(12): error: no suitable widget for "Frob"'),
        ("FAILED: [code=137] a.o\nnvcc -c a.cu\nKilled", "FAILED: [code=137] a.o", None),
        # make prints it after them
        (
            ("src/a.cc:7:10: error: 'frob' was not declared in this scope\ncompilation terminated.\n"
            "make[2]: *** [CMakeFiles/a.dir/build.make:76: CMakeFiles/a.dir/a.cc.o] Error 1\nmake: *** [Makefile:91: all] Error 2"),
            "make[2]: *** [CMakeFiles/a.dir/build.make:76: CMakeFiles/a.dir/a.cc.o] Error 1",
            "src/a.cc:7:10: error: 'frob' was not declared in this scope",
        ),
        # setuptools, with the colours of gcc
        (
            "building 'ext' extension\na.cpp:3:5: \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kexpected ';'\nerror: command 'gcc' failed with exit status 1",
            "error: command 'gcc' failed with exit status 1",
            "a.cpp:3:5: error: expected ';'",
        ),
        (
            ("CMake Error at CMakeLists.txt:3 (find_package):\n  Could not find a frob.\n\nCall Stack (most recent call first):\n  x.cmake:1\n"
            "subprocess.CalledProcessError: Command '['cmake', '..']' returned non-zero exit status 1."),
            "subprocess.CalledProcessError: Command '['cmake', '..']' returned non-zero exit status 1.",
            "CMake Error at CMakeLists.txt:3 (find_package): Could not find a frob.",
        ),
        (
            "a.cpp(9): error C2065: 'frob': undeclared identifier\nerror: command 'C:\\\\VC\\\\cl.exe' failed with exit code 2",
            "error: command 'C:\\\\VC\\\\cl.exe' failed with exit code 2",
            "a.cpp(9): error C2065: 'frob': undeclared identifier",
        ),
        ("LINK : fatal error LNK1181: cannot open input file 'frob.lib'", None, "LINK : fatal error LNK1181: cannot open input file 'frob.lib'"),
        ("C:\\a\\cstdlib(41): error C2061: 语法错误: 标识符", None, "C:\\a\\cstdlib(41): error C2061: 语法错误: 标识符"),
        ("ptxas /tmp/x.ptx, line 41; error   : Feature 'f' requires .target sm_90", None, "ptxas /tmp/x.ptx, line 41; error   : Feature 'f' requires .target sm_90"),
        ("nvlink error   : Undefined reference to 'frob' in 'a.o'", None, "nvlink error   : Undefined reference to 'frob' in 'a.o'"),
        ("/usr/bin/ld: cannot find -lfrob\ncollect2: error: ld returned 1 exit status", None, "/usr/bin/ld: cannot find -lfrob"),
        ("c++: fatal error: Killed signal terminated program cc1plus", None, "c++: fatal error: Killed signal terminated program cc1plus"),
        ("a.cpp:1:10: 致命错误\uff1afrob.h\uff1a没有那个文件或目录", None, "a.cpp:1:10: 致命错误:frob.h:没有那个文件或目录"),
        (
            "   Compiling frob v1.0.0\nerror[E0425]: cannot find value `x` in this scope\nerror: could not compile `frob` (lib) due to 1 previous error",
            "error: could not compile 'frob' (lib) due to 1 previous error",
            "error[E0425]: cannot find value 'x' in this scope",
        ),
        # Docker's prefixes, and its own last words
        (
            ("#12 33.9 a.cpp:1:2: error: stray text\n#12 34.5 ninja: build stopped: subcommand failed.\n"
            'ERROR: failed to solve: process "/bin/sh -c pip install ." did not complete successfully: exit code: 1'),
            'ERROR: failed to solve: process "/bin/sh -c pip install ." did not complete successfully: exit code: 1',
            "a.cpp:1:2: error: stray text",
        ),
        # where no tool reports an error, what Python raised counts, except where it was handled
        (
            ("  \u00d7 python setup.py bdist_wheel did not run successfully.\n  ╰─> [9 lines of output]\n      urllib.error.HTTPError: HTTP Error 404: Not Found\n\n"
            "      During handling of the above exception, another exception occurred:\n\n      FrobError: no frob in sight\n      [end of output]"),
            "\u00d7 python setup.py bdist_wheel did not run successfully.",
            "FrobError: no frob in sight",
        ),
        ("running build_ext\nerror: [WinError 2] The system cannot find the file specified", None, "error: [WinError 2] The system cannot find the file specified"),
    ],
)  # fmt: skip
def test_the_first_error_of_a_build_is_found(text: str, command: str | None, error: str | None) -> None:
    assert read(text) == (command, error)


@pytest.mark.parametrize(
    "text",
    [
        'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: frob',
        "train.py:12: error: Incompatible types in assignment",
        "2026-01-01 12:00:00 ERROR worker failed with error: 12",
        "-- Performing Test HAVE_FROB - Failed",
        "FAILED tests/test_a.py::test_b - AssertionError",
        "FAILED (errors=1)",
        "cv2.error: OpenCV(4.10.0) /io/opencv/modules/core/src/boxes.cpp:196: error: (-215:Assertion failed) !lid",
    ],
)  # fmt: skip
def test_other_texts_are_no_builds(text: str) -> None:
    assert read(text) == (None, None)


def test_an_error_in_the_middle_of_a_long_log_is_found() -> None:
    line = "[1/900] c++ -O3 -Wall -c something.cpp -o something.o\n"
    much = line * (2 * BLOCK_BYTES // len(line))
    error = "FAILED: late.o\nc++ -c late.cpp\nlate.cpp:3:1: error: frob\n"
    build = BuildLog()
    for block in blocks(joined((much + error + much).encode().split(b"\n"))):
        build.see(block)
    assert build.error is not None
    assert build.error.text == "late.cpp:3:1: error: frob"
    assert build.error.number == much.count("\n") + 3


def test_the_finding_quotes_command_and_error() -> None:
    finding = judged(NINJA).findings[0]
    assert (finding.playbook, finding.fault) == ("build-failed", TOOLCHAIN)
    assert "no suitable widget" in finding.summary
    told = [(item.where, item.what) for item in finding.evidence]
    assert told[:2] == [("log:6", 'boxes.cu(12): error: no suitable widget for "Frob"'), ("log:4", "FAILED: boxes.o")]


def test_an_error_without_a_failed_command_makes_no_verdict() -> None:
    diagnosis = judged('boxes.cu(12): error: no suitable widget for "Frob"')
    assert diagnosis.verdict == "unknown"
    assert "no suitable widget" in diagnosis.findings[0].summary


@pytest.mark.parametrize(
    ("line", "playbook"),
    [
        ("/usr/include/c++/11/cstdlib:75:15: fatal error: stdlib.h: No such file or directory", "host-compiler"),
        ("glutil.h:36:10: fatal error: EGL/egl.h: No such file or directory", "build-failed"),
        ("CMake Error at CMakeLists.txt:67 (message):\n  Can't find CUDA or HIP installation.", "cuda-home"),
        ("nvcc error   : 'ptxas' died due to signal 9 (Kill signal)", "build-memory"),
        ("nvcc error   : 'ptxas' died due to signal 11 (Invalid memory reference)", "build-failed"),
        ("a.cu:20:10: fatal error: cuda/pipeline: No such file or directory", "cuda-home"),
    ],
)
def test_the_first_error_gives_the_cause_and_not_what_follows(line: str, playbook: str) -> None:
    # the command of a launcher names -lcuda, and a linker misses a library only since nothing was compiled
    text = (
        f"FAILED: a.o\nc++ -c a.cpp -lcuda\n{line}\nninja: build stopped: subcommand failed.\n"
        "subprocess.CalledProcessError: Command '['/usr/bin/gcc', 'main.c', '-lcuda', '-o', 'a.so']' returned non-zero exit status 1."
    )
    findings = judged(text).findings
    assert findings[0].playbook == playbook
    assert "stands before" not in findings[0].summary


def test_a_build_that_cannot_reach_a_host_is_no_fault_of_the_environment() -> None:
    text = (
        "Building wheel for frob (pyproject.toml) ... error\n"
        "  fatal: unable to access 'https://example.org/cutlass.git/': Could not resolve host: example.org\n"
        "  CMake Error at fetch.cmake:39 (message):\n    Failed to clone repository\n"
        "subprocess.CalledProcessError: Command '['cmake', '..']' returned non-zero exit status 1."
    )
    assert judged(text).verdict == "not-an-env-problem"


def test_advice_alone_is_shown_and_no_plan_offered() -> None:
    diagnosis = judged(NINJA)
    assert diagnosis.findings[0].advice
    shown = ["".join(piece.text for piece in line) for line in diagnosis_lines(diagnosis)]
    assert not any("Next:" in line for line in shown)


def test_what_python_raised_in_a_build_is_a_guess_and_a_named_cause_goes_first() -> None:
    text = (
        "  \u00d7 python setup.py egg_info did not run successfully.\n  ╰─> [9 lines of output]\n"
        "      setup.py:113: UserWarning: frob was requested, but nvcc was not found.  Are you sure?\n"
        "      NameError: name 'bare_metal_version' is not defined\n      [end of output]"
    )
    first = judged(text).findings[0]
    assert (first.playbook, first.signature) == ("cuda-home", "nvcc-missing")
    alone = judged(text.replace("nvcc was not found", "no frob was found")).findings[0]
    assert alone.confidence < 0.5
    assert "bare_metal_version" in alone.summary


@pytest.mark.parametrize(
    "line",
    [
        'impl.h(40): error: identifier "uint32_t" is undefined',
        'impl.h(22): error: namespace "std" has no member "uintptr_t"',
        "impl.h:9:5: error: 'uint64_t' does not name a type",
    ],
)
def test_a_header_that_newer_compilers_do_not_include_is_named(line: str) -> None:
    assert judged(f"FAILED: a.o\nnvcc -c a.cu\n{line}").findings[0].signature == "cstdint-missing"


def test_a_layer_of_an_image_without_its_output_leaves_the_verdict_open() -> None:
    text = 'ERROR: failed to solve: process "/bin/sh -c pip install frob" did not complete successfully: exit code: 1'
    diagnosis = judged(text)
    assert (diagnosis.verdict, diagnosis.findings[0].signature) == ("unknown", "layer-failed")
    assert not judged(text.replace("pip install frob", "ls frob")).findings


def test_a_symbol_that_a_linker_lacks_is_of_the_build_and_not_of_a_module_that_loads() -> None:
    warned = "launcher.c:338: warning: implicit declaration of function 'PyBox_New'"
    found = judged(f"{warned}\ntcc: error: undefined symbol 'PyBox_New'")
    assert [item.fault for item in found.findings] == [TOOLCHAIN]
    several = judged(f"{warned}\ntcc: error: undefined symbol 'fold_box'\ntcc: error: undefined symbol 'fold_lid'")
    assert [item.fault for item in several.findings] == [TOOLCHAIN]
    loaded = judged("ImportError: /opt/env/boxes.so: undefined symbol: PyBox_New")
    assert [item.fault for item in loaded.findings] == ["extension-undefined-symbol"]


def test_a_program_that_reports_a_failure_is_no_ninja() -> None:
    text = "[Warning] [boxes] Preload failed: /opt/boxes/libboxes.so\nModuleNotFoundError: No module named 'lids'"
    assert "extension-build-toolchain" not in [item.fault for item in judged(text).findings]
