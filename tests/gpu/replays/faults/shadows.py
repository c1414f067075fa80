"""Libraries of one name that meet in one process."""

from __future__ import annotations

from tests.gpu.replays.replay import Command, Replay
from tests.gpu.replays.room import Room

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
        "clash", "two libraries that clash", frozenset({"import-order-crash"}), clash, facts=False, ending="advised"
    ),
)
