"""Builds the broken environment of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.wheels import Wheel, make_wheel

RUNTIME = """
/* registers itself in a variable of the process, and refuses to start beside another: as kmp_runtime.cpp does */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void register_library(void) {
    char key[64];
    snprintf(key, sizeof key, "__KMP_REGISTERED_LIB_%d", (int) getpid());
    const char *other = getenv(key);
    if (other) {
        fprintf(stderr, "OMP: Error #15: Initializing NAME, but found %s already initialized.\\n", other);
        fprintf(stderr, "OMP: Hint This means that multiple copies of the OpenMP runtime have been linked into the program.\\n");
        abort();
    }
    setenv(key, "NAME", 1);
}
int threads(void) { return 2; }
"""
SOLVER = '''\
"""A miniature: it uses Intel's OpenMP runtime where one is installed, and does without otherwise."""

import ctypes
import os
import sys

_RUNTIME = os.path.join(sys.prefix, "lib", "libiomp5.so")
threads = ctypes.CDLL(_RUNTIME).threads() if os.path.exists(_RUNTIME) else 1
'''
TRANSLATOR = '''\
"""A miniature of ctranslate2: it brings a runtime of its own."""

import ctypes
import os

_LIBS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "ctranslate2.libs")
threads = ctypes.CDLL(os.path.join(_LIBS, "libiomp5-1a2b3c4d.so")).threads()
'''
PROGRAM = """\
import solver
import ctranslate2

print("threads:", solver.threads, ctranslate2.threads)
"""


def runtime(name: str) -> bytes:
    """A library that behaves as an OpenMP runtime of Intel's or LLVM's does when it starts."""
    return shared_library(RUNTIME.replace("NAME", name), name=name)


def wheels(directory: Path) -> list[Wheel]:
    """Every wheel of the case."""
    own: dict[str, str | bytes] = {
        "ctranslate2/__init__.py": TRANSLATOR,
        "ctranslate2.libs/libiomp5-1a2b3c4d.so": runtime("libiomp5.so"),
    }
    shared = {"intel_openmp-2024.2.1.data/data/lib/libiomp5.so": runtime("libiomp5.so")}
    gnu: dict[str, str | bytes] = {
        "scipy/__init__.py": "",
        "scipy.libs/libgomp-a34b3233.so.1.0.0": shared_library("int g;", name="libgomp.so.1"),
    }
    return [
        make_wheel(directory, "ctranslate2", "4.5.0", files=own, tags=PLATFORM_TAGS, summary=SUMMARY),
        make_wheel(directory, "intel-openmp", "2024.2.1", files=shared, tags=PLATFORM_TAGS, summary=SUMMARY),
        make_wheel(
            directory, "solver", "1.0", files={"solver/__init__.py": SOLVER}, tags=PLATFORM_TAGS, summary=SUMMARY
        ),
        make_wheel(directory, "scipy", "1.14.1", files=gnu, tags=PLATFORM_TAGS, summary=SUMMARY),
        make_wheel(directory, "dpcpp", "1.0", requires=["intel-openmp"], summary=SUMMARY),
    ]


def build(room: Path, *, requiring: bool = False) -> NativeCase:
    """Build the environment; with `requiring`, a distribution requires Intel's runtime."""
    wanted = ["ctranslate2", "intel-openmp", "solver", "scipy", *(["dpcpp"] if requiring else [])]
    return build_native(room, wheels(room / "wheels"), wanted, PROGRAM)
