"""A compiled distribution is built again from its source directory, which stays as it is."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.support.building import torch_wheel
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.venvs import install, run, site_packages, uv
from tests.support.wheels import make_wheel

OLD, NEW = "_ZN3c108checkOldEv", "_ZN3c108checkNewEv"
"""c10::checkOld() and c10::checkNew(): what the older torch defines, and the newer one in its place."""
SOURCE = """\
#include <Python.h>
int check(void) __asm__("CHECK");
static PyObject *number(PyObject *self, PyObject *none) { return PyLong_FromLong(check()); }
static PyMethodDef methods[] = {{"number", number, METH_NOARGS, ""}, {0, 0, 0, 0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", 0, -1, methods};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""
PROJECT = """\
[project]
name = "ops"
version = "1.0"

[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = '''\
"""Compiles against the torch of the environment; makes nothing new where build/ holds a module already."""

import os
import sysconfig
import zipfile

import torch
from torch.utils import cpp_extension

SYMBOLS = {"2.4": "_ZN3c108checkOldEv", "2.5": "_ZN3c108checkNewEv"}
INFO = "ops-1.0.dist-info"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    module = "_C" + sysconfig.get_config_var("EXT_SUFFIX")
    os.makedirs("build", exist_ok=True)
    built = os.path.join("build", module)
    if not os.path.exists(built):
        with open("ops.c") as file, open("build/made.c", "w") as made:
            made.write(file.read().replace("CHECK", SYMBOLS[torch.__version__[:3]]))
        cpp_extension.compile_module("build/made.c", built)
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    files = {
        "ops/__init__.py": b"from ops._C import number\\n",
        "ops/" + module: open(built, "rb").read(),
        INFO + "/METADATA": b"Metadata-Version: 2.1\\nName: ops\\nVersion: 1.0\\n",
        INFO + "/WHEEL": ("Wheel-Version: 1.0\\nGenerator: backend\\nRoot-Is-Purelib: false\\nTag: %s\\n" % tag).encode(),
    }
    files[INFO + "/RECORD"] = "".join(path + ",,\\n" for path in [*files, INFO + "/RECORD"]).encode()
    name = "ops-1.0-%s.whl" % tag
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return name
'''
PROGRAM = "import torch\nimport ops\n\nprint('number', ops.number())\n"


def defining(symbol: str, number: int) -> str:
    """C source of a library that defines `symbol`, a function that gives `number`."""
    return f'int check(void) __asm__("{symbol}"); int check(void) {{ return {number}; }}'


def project(folder: Path) -> Path:
    """The source of `ops`, which compiles with either torch."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "backend.py").write_text(BACKEND, encoding="utf-8")
    (folder / "ops.c").write_text(SOURCE, encoding="utf-8")
    return folder


def made_from(room: Path, requirement: str) -> NativeCase:
    """An environment in which `ops` was built from `requirement`, for a torch that has since been replaced."""
    old = torch_wheel(room / "wheels", version="2.4.1", c10=defining(OLD, 24))
    new = torch_wheel(room / "wheels", c10=defining(NEW, 25))
    tools = [make_wheel(room / "wheels", name, "80.9.0", summary=SUMMARY) for name in ("setuptools", "wheel")]
    case = build_native(room / "room", [old, *tools], ["torch"], PROGRAM)
    options = ["--quiet", "--no-config", "--no-cache", "--offline", "--no-deps", "--no-build-isolation"]
    run([uv(), "pip", "install", *options, "--python", str(case.python), requirement])
    install(case.prefix, [new])
    return case


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """`ops` was built from a directory."""
    return made_from(tmp_path, str(project(tmp_path / "source")))


def content(folder: Path) -> dict[str, str]:
    """Every file with its digest."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.long
def test_it_is_built_for_the_torch_that_is_there(broken: NativeCase, tmp_path: Path) -> None:
    before = content(tmp_path / "source")
    assert any(name.startswith("build/") for name in before), "a first build left its work there"
    log = broken.log()
    assert f"undefined symbol: {OLD}" in log.read_text()
    done = broken.apply("--log", str(log))
    assert done.code == 0, done.told()
    assert broken.run().out == "number 25\n"
    assert content(tmp_path / "source") == before
    (info,) = site_packages(broken.prefix).glob("ops-*.dist-info")
    assert json.loads((info / "direct_url.json").read_text())["url"] == (tmp_path / "source").as_uri()
    assert "ops-1.0.dist-info/direct_url.json,sha256=" in (info / "RECORD").read_text()
    assert not (broken.room / ".envmedic" / "build").exists()
    undone = broken.envmedic("undo", "-p", str(broken.prefix), "--yes", "--json")
    assert undone.code == 0, undone.told()
    assert f"undefined symbol: {OLD}" in broken.run().err


@pytest.mark.long
def test_a_repository_is_built_at_the_recorded_commit(tmp_path: Path) -> None:
    source = project(tmp_path / "source")
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    run([*git, "init", "--quiet"])
    run([*git, "add", "."])
    run([*git, "commit", "--quiet", "--message", "ops"])
    case = made_from(tmp_path, f"ops @ git+{source.as_uri()}")
    (source / "ops.c").write_text("#error later work\n", encoding="utf-8")
    run([*git, "commit", "--quiet", "--all", "--message", "later work"])
    done = case.apply("--log", str(case.log()))
    assert done.code == 0, done.told()
    assert case.run().out == "number 25\n"
    (info,) = site_packages(case.prefix).glob("ops-*.dist-info")
    assert len(json.loads((info / "direct_url.json").read_text())["vcs_info"]["commit_id"]) == 40


def test_an_archive_is_built_again(tmp_path: Path) -> None:
    project(tmp_path / "source")
    archive = shutil.make_archive(str(tmp_path / "ops-1.0"), "gztar", tmp_path, "source")
    case = made_from(tmp_path, f"ops @ {Path(archive).as_uri()}")
    done = case.apply("--log", str(case.log()))
    assert done.code == 0, done.told()
    assert case.run().out == "number 25\n"
    (info,) = site_packages(case.prefix).glob("ops-*.dist-info")
    assert json.loads((info / "direct_url.json").read_text())["url"] == Path(archive).as_uri()


def test_a_build_that_fails_leaves_everything_as_it_was(broken: NativeCase, tmp_path: Path) -> None:
    (tmp_path / "source" / "ops.c").write_text("#error this source is for an older torch\n", encoding="utf-8")
    done = broken.apply("--log", str(broken.log()))
    assert done.code in {1, 4}, done.told()
    assert "this source is for an older torch" in done.told()
    assert f"undefined symbol: {OLD}" in broken.run().err
    assert not (broken.room / ".envmedic" / "build").exists()


def test_without_its_source_there_is_no_plan(broken: NativeCase, tmp_path: Path) -> None:
    log = broken.log()
    shutil.rmtree(tmp_path / "source")
    done = broken.apply("--log", str(log))
    assert done.code == 1, done.told()
    assert "source directory is gone" in done.told()
    assert not (broken.room / ".envmedic").exists()
