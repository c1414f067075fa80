"""Builds the broken environments of this case from miniature wheels with a real compiled module. See README.md."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.repairs import pure
from tests.support.wheels import Wheel, make_wheel

PROGRAM = "import boxmath\n\nprint('area', boxmath.area())\n"
WORKS = "area 12\n"
HAS_NUMPY_ONE = sys.version_info < (3, 13)
"""Whether there is a NumPy 1 with wheels for this Python."""

MODULE = """
#include "INCLUDE/Python.h"

static PyObject *interface(void) {
    PyObject *module = NULL;
    const char *names[] = {NAMES};
    for (int i = 0; i < (int) (sizeof names / sizeof *names) && !module; i++) {
        PyErr_Clear();
        module = PyImport_ImportModule(names[i]);
    }
    if (!module) return NULL;
    PyObject *api = PyObject_GetAttrString(module, "_ARRAY_API");
    if (api && PyLong_AsLong(api) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000");
        return NULL;
    }
    return api;
}
static PyObject *area(PyObject *self, PyObject *arguments) { return PyLong_FromLong(12); }
static PyMethodDef methods[] = {{"area", area, METH_NOARGS, ""}, {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_boxmath", "", -1, methods};
PyMODINIT_FUNC PyInit__boxmath(void) {
    if (!interface()) {
        if (!PyErr_ExceptionMatches(PyExc_RuntimeError))
            PyErr_SetString(PyExc_ImportError, "numpy.core.multiarray failed to import");
        return NULL;
    }
    return PyModule_Create(&definition);
}
"""
"""As the headers of NumPy do it in `import_array`."""
ONE = '"numpy.core._multiarray_umath"'
TWO = f'"numpy._core._multiarray_umath", {ONE}'

REFUSAL = """
def __getattr__(name):
    if name == '_ARRAY_API':
        import sys
        import numpy
        print('A module that was compiled using NumPy 1.x cannot be run in', file=sys.stderr)
        print(f'NumPy {numpy.__version__} as it may crash.', file=sys.stderr)
        raise AttributeError('_ARRAY_API not found')
    raise AttributeError(name)
"""


def boxmath(directory: Path, version: str, names: str, *requires: str) -> Wheel:
    """A distribution whose module asks NumPy for its interface under `names` when it is imported."""
    source = MODULE.replace("INCLUDE", sysconfig.get_path("include")).replace("NAMES", names)
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    files: dict[str, str | bytes] = {
        "boxmath/__init__.py": f'"""{SUMMARY}."""\n\nfrom boxmath._boxmath import area\n',
        f"boxmath/_boxmath{suffix}": shared_library(source, name=f"_boxmath{suffix}"),
    }
    return make_wheel(
        directory, "boxmath", version, files=files, requires=requires or ("numpy",), tags=PLATFORM_TAGS, summary=SUMMARY
    )


def numpy(directory: Path, version: str) -> Wheel:
    """A NumPy that hands its interface out under the names, and with the refusal, of that generation."""
    api = "_ARRAY_API = 1\n"
    files = {"numpy/__init__.py": f'"""{SUMMARY}."""\n\n__version__ = {version!r}\n', "numpy/core/__init__.py": ""}
    if version.startswith("1."):
        files["numpy/core/_multiarray_umath.py"] = api
    else:
        files |= {"numpy/_core/__init__.py": "", "numpy/_core/_multiarray_umath.py": api}
        files["numpy/core/_multiarray_umath.py"] = REFUSAL.lstrip()
    return make_wheel(directory, "numpy", version, files=files, summary=SUMMARY)


def build(room: Path, *, wants_two: bool = False, built_for: str = ONE, installed: str = "2.2.6") -> NativeCase:
    """An environment with a `boxmath` that was compiled for NumPy 1 beside another NumPy.

    `wants_two` adds a distribution that requires NumPy 2.
    """
    directory = room / "wheels"
    numpies = [numpy(directory, version) for version in ("1.26.4", "2.2.6")]
    boxes = [boxmath(directory, "1.0", built_for), boxmath(directory, "1.1", TWO)]
    charts = pure(directory, "charts", "3.0", "", requires=("numpy>=2",))
    names = [f"numpy=={installed}", "boxmath==1.0", *(["charts"] if wants_two else [])]
    return build_native(room, [*numpies, *boxes, charts], names, PROGRAM)
