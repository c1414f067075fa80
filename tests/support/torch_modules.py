"""A miniature torch with a real libc10 and its headers, and modules that are compiled against it.

A release of torch defines c10::Error's constructor with the old or the new form of C++ strings. A module that is
compiled with its headers asks for that name, and loads into no torch of the other kind, in the loader's own words.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY
from tests.support.wheels import Wheel, make_wheel

OLD = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
NEW = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
EXTENSION = f"torch/_C{sysconfig.get_config_var('EXT_SUFFIX')}"
INIT = '''\
"""A miniature of torch for envmedic's tests: it loads its libraries, and computes nothing."""

import ctypes
import os

from torch.version import __version__, cuda

_C = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "EXTENSION"))


class ops:
    """What extensions load their libraries with."""

    @staticmethod
    def load_library(path):
        """Open a library of operators."""
        return ctypes.CDLL(path)
'''


@dataclass(frozen=True)
class Release:
    """A release of torch, as modules see it."""

    version: str
    error: str
    """Name of c10::Error's constructor."""

    @property
    def library(self) -> str:
        """C source of libc10."""
        return f"int {self.error}(void) {{ return 10; }} int c10_ready(void) {{ return 1; }}"


OLDER, NEWER = Release("2.5.1", OLD), Release("2.7.1", NEW)


def torch_wheel(folder: Path, release: Release) -> Wheel:
    """The miniature of one release, with the header that modules are compiled with."""
    needs = (("libc10.so", release.library),)
    files: dict[str, str | bytes] = {
        "torch/__init__.py": INIT.replace("EXTENSION", EXTENSION.rpartition("/")[2]),
        "torch/version.py": f"__version__ = '{release.version}+cpu'\ncuda = None\nhip = None\n",
        "torch/include/c10.h": f"#define C10_ERROR {release.error}\nint C10_ERROR(void);\n",
        "torch/lib/libc10.so": shared_library(release.library, name="libc10.so"),
        EXTENSION: shared_library(
            "int c10_ready(void); int ready(void) { return c10_ready(); }",
            name=EXTENSION.rpartition("/")[2],
            needs=needs,
            rpath="$ORIGIN/lib",
        ),
    }
    return make_wheel(folder, "torch", release.version, files=files, tags=PLATFORM_TAGS, summary=SUMMARY)


PACKAGE = '''\
"""A miniature of a package with operators for torch."""

import os

import torch

_library = torch.ops.load_library(os.path.join(os.path.dirname(os.path.abspath(__file__)), "_C.so"))


def area(width, height):
    """Area of a box."""
    return _library.box_area(width, height)
'''
OPERATOR = "int box_area(int w, int h) { return w < 0 || h < 0 ? C10_ERROR() : w * h; }"
PROGRAM = "import box_ops\n\nprint('area:', box_ops.area(3, 4))\n"


def module_wheel(folder: Path, version: str, release: Release) -> Wheel:
    """``box-ops``, compiled for one release of torch."""
    source = f"#define C10_ERROR {release.error}\nint C10_ERROR(void);\n{OPERATOR}"
    files: dict[str, str | bytes] = {
        "box_ops/__init__.py": PACKAGE,
        "box_ops/_C.so": shared_library(source, name="_C.so", needs=(("libc10.so", release.library),)),
    }
    return make_wheel(folder, "box-ops", version, files=files, tags=PLATFORM_TAGS, summary=SUMMARY)


BACKEND = '''\
"""Compiles the operators against the torch that is installed, as torch.utils.cpp_extension does."""

import os
import pathlib
import subprocess
import sysconfig
import zipfile

import torch

HERE = pathlib.Path(__file__).parent
TAG = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
INFO = "box_ops-1.0.dist-info"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    built = HERE / "build" / "_C.so"
    if not built.exists():  # what an earlier build left is taken
        built.parent.mkdir(exist_ok=True)
        folder = pathlib.Path(torch.__file__).parent
        sources = [HERE / name for name in SOURCES]
        command = ["gcc", "-shared", "-fPIC", "-w", "-Wl,-soname,_C.so", "-Wl,--no-as-needed", f"-I{folder}/include", "-o", built]
        subprocess.run([*command, *sources, f"-L{folder}/lib", "-l:libc10.so"], check=True)
    files = {
        "box_ops/__init__.py": (HERE / "box_ops" / "__init__.py").read_bytes(),
        "box_ops/_C.so": built.read_bytes(),
        INFO + "/METADATA": b"Metadata-Version: 2.1\\nName: box-ops\\nVersion: 1.0\\n",
        INFO + "/WHEEL": f"Wheel-Version: 1.0\\nGenerator: backend\\nRoot-Is-Purelib: false\\nTag: {TAG}\\n".encode(),
    }
    files[INFO + "/RECORD"] = "".join(f"{path},,\\n" for path in [*files, INFO + "/RECORD"]).encode()
    name = f"box_ops-1.0-{TAG}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return name
'''


def project(directory: Path, *, sources: str = '["box.c"]') -> Path:
    """The source of ``box-ops``, with a build backend of its own; `sources` is the expression that chooses files."""
    (directory / "box_ops").mkdir(parents=True)
    (directory / "box_ops" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    (directory / "box.c").write_text(f"#include <c10.h>\n{OPERATOR}\n", encoding="utf-8")
    (directory / "backend.py").write_text(f"{BACKEND}\n\nSOURCES = {sources}\n", encoding="utf-8")
    (directory / "pyproject.toml").write_text(
        '[project]\nname = "box-ops"\nversion = "1.0"\n\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        encoding="utf-8",
    )
    return directory


def build_tools(folder: Path) -> list[Wheel]:
    """What a build without isolation wants installed; empty, as the backend of `project` needs none of it."""
    versions = {"setuptools": "75.6.0", "wheel": "0.45.1", "ninja": "1.11.1.3"}
    return [
        make_wheel(folder, name, version, files={f"{name}.py": ""}, summary=SUMMARY)
        for name, version in versions.items()
    ]
