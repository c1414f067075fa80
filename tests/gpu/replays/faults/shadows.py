"""Libraries that take another's place in the process."""

from __future__ import annotations

from tests.gpu.replays.replay import Command, NotHere, Replay
from tests.gpu.replays.room import Room

NVRTC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

static void *real(const char *name) {
  static void *library;
  if (!library) library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : 0;
}
typedef long (*function)(long, long, long, long, long, long);
#define PASS(name) \
  long name(long a, long b, long c, long d, long e, long f) { return ((function)real(#name))(a, b, c, d, e, f); }
// FUNCTIONS
int nvrtcCompileProgram(void *program, int count, const char *const *options) {
  const char *changed[256];
  for (int i = 0; i < count && i < 256; ++i)
    changed[i] = strncmp(options[i], "--gpu-architecture=", 19) ? options[i] : "--gpu-architecture=sm_999";
  return ((int (*)(void *, int, const char *const *))real("nvrtcCompileProgram"))(program, count, changed);
}
"""
COMPLEX = (
    "import torch; x = torch.randn(64, dtype=torch.complex64);"
    "assert torch.allclose(torch.tan(x.cuda()).cpu(), torch.tan(x), rtol=1e-3)"
)
NAMES = (
    "import subprocess, sys, torch, os; p = os.path.join(os.path.dirname(torch.__file__), 'lib', 'libcaffe2_nvrtc.so');"
    "import re; print(*sorted(set(re.findall(rb'nvrtc[A-Z]\\w+', open(p, 'rb').read()))), sep='\\n')"
)


def refusing_nvrtc(room: Room) -> Command:
    """A preloaded NVRTC that asks the real one for an architecture that it does not know."""
    libraries = sorted(room.site.glob("nvidia/**/libnvrtc.so.*"))
    if not libraries:
        raise NotHere("torch has no NVRTC in a wheel of its own here")
    text = room.run(room.python, "-c", NAMES).must().out
    names = {word.strip("b'") for word in text.split()} - {"nvrtcCompileProgram"}
    source = room.folder / "nvrtc.c"
    passed = "\n".join(f"PASS({name})" for name in sorted(names))
    source.write_text(NVRTC.replace("// FUNCTIONS", passed), encoding="utf-8")
    shadow = room.folder / "old-cuda" / libraries[0].name
    shadow.parent.mkdir()
    define = f'-DREAL="{libraries[0]}"'
    room.run("gcc", "-shared", "-fPIC", "-w", define, f"-Wl,-soname,{shadow.name}", source, "-o", shadow, "-ldl").must()
    room.outside["USE_PYTORCH_KERNEL_CACHE"] = "0"  # what was compiled once would not be compiled again
    room.variable("LD_PRELOAD", str(shadow))
    return ("python", "-c", COMPLEX)


CORE = "#include <stdlib.h>\nlong core_open(void) { return (long)RESULT; }\n"
MODULE = r"""
#include <Python.h>
long core_open(void);
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "NAME", 0, -1, 0};
PyMODINIT_FUNC PyInit_NAME(void) {
  long got = core_open();
  USED
  return PyModule_Create(&module);
}
"""


def clash(room: Room) -> Command:
    """Two modules, each with its build of a library of one name: the second gets the first one's functions."""
    include = room.run(room.python, "-c", "import sysconfig; print(sysconfig.get_path('include'))").must().out.strip()
    for name, result, used in (
        ("replay_counter", "7", "if (got < 0) return 0;"),
        ("replay_video", "calloc(8, 8)", "((volatile long *)got)[2] = 1;"),
    ):
        folder = room.folder / name
        (folder / name).mkdir(parents=True)
        (folder / "core.c").write_text(CORE.replace("RESULT", result), encoding="utf-8")
        text = MODULE.replace("NAME", f"_{name}").replace("USED", used)
        (folder / "module.c").write_text(text, encoding="utf-8")
        core, module = folder / name / "libreplaycore.so.1", folder / name / f"_{name}.so"
        soname = "-Wl,-soname,libreplaycore.so.1"
        room.run("gcc", "-shared", "-fPIC", "-w", soname, folder / "core.c", "-o", core).must()
        linked = (f"-L{core.parent}", f"-l:{core.name}", "-Wl,-rpath,$ORIGIN")
        room.run("gcc", "-shared", "-fPIC", "-w", f"-I{include}", folder / "module.c", "-o", module, *linked).must()
        (folder / name / "__init__.py").write_text(f"from {name} import _{name}\n", encoding="utf-8")
        data = f"package_data={{{name!r}: ['*.so*']}}"
        setup = f"from setuptools import setup\nsetup(name={name!r}, version='1.0', packages=[{name!r}], {data})\n"
        (folder / "setup.py").write_text(setup, encoding="utf-8")
        room.install(folder)
    return ("python", "-X", "faulthandler", "-c", "import replay_counter\nimport replay_video")


REPLAYS = (
    Replay(
        "refusing-nvrtc",
        "a preloaded NVRTC that refuses the GPU",
        frozenset({"nvrtc-arch", "nvrtc-preloaded"}),
        refusing_nvrtc,
    ),
    Replay(
        "clash", "two libraries that clash", frozenset({"import-order-crash"}), clash, facts=False, ending="advised"
    ),
)
