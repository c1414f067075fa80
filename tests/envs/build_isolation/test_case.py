"""The environment builds without isolation from then on, with the tools for it installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.building import activated, failing, torch_wheel
from tests.support.native_case import SUMMARY, build_native
from tests.support.venvs import uv
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.long

PROJECT = """\
[project]
name = "ops"
version = "1.0"

[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """\
import os
import zipfile

import torch

INFO = "ops-1.0.dist-info"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {
        "ops.py": "built_with = %r\\n" % torch.__version__,
        INFO + "/METADATA": "Metadata-Version: 2.1\\nName: ops\\nVersion: 1.0\\n",
        INFO + "/WHEEL": "Wheel-Version: 1.0\\nGenerator: backend\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[INFO + "/RECORD"] = "".join(path + ",,\\n" for path in [*files, INFO + "/RECORD"])
    name = "ops-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return name
"""


def test_the_build_finds_the_installed_torch(tmp_path: Path) -> None:
    directory = tmp_path / "wheels"
    tools = [
        make_wheel(directory, name, "80.0", summary=SUMMARY) for name in ("setuptools", "wheel", "ninja", "packaging")
    ]
    case = build_native(tmp_path / "room", [torch_wheel(directory), *tools], ["torch"], "")
    (case.room / "ops").mkdir()
    (case.room / "ops" / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (case.room / "ops" / "backend.py").write_text(BACKEND, encoding="utf-8")
    build = f"{uv()} pip install --no-cache --offline ./ops && python -c 'import ops; print(ops.built_with)'"
    log = failing(case, build)
    assert "No module named 'torch'" in log.read_text()
    done = case.apply("--log", str(log))
    assert done.code == 0, done.told()
    assert activated(case, build).out == "2.5.1+cu124\n"
    assert activated(case, "echo $PIP_NO_BUILD_ISOLATION $UV_NO_BUILD_ISOLATION").out == "0 1\n"
