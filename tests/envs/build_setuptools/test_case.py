"""setuptools is brought to a release that has what builds import of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.building import BUILDER, activated, failing, torch_wheel
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.wheels import Wheel, make_wheel

pytestmark = pytest.mark.long

PROGRAM = """\
import pkg_resources
import setuptools

print("setuptools", setuptools.__version__, pkg_resources.packaging)
"""


def setuptools(directory: Path, version: str) -> Wheel:
    """A miniature: its module, and ``pkg_resources`` where that release has it."""
    files = {"setuptools/__init__.py": f"__version__ = {version!r}\n"}
    if int(version.split(".", maxsplit=1)[0]) < 82:
        files["pkg_resources/__init__.py"] = f"packaging = {int(version.split('.', maxsplit=1)[0]) < 70}\n"
    return make_wheel(directory, "setuptools", version, files=files, summary=SUMMARY)


def case(root: Path, installed: tuple[str, ...], builder: str = BUILDER) -> NativeCase:
    """An environment whose torch has `builder`, and an index with three releases of setuptools."""
    directory = root / "wheels"
    wheels = [torch_wheel(directory, builder=builder), make_wheel(directory, "wheel", "0.45.1", summary=SUMMARY)]
    wheels += [setuptools(directory, version) for version in ("69.5.1", "80.9.0", "82.0.0")]
    return build_native(root / "room", wheels, ["torch", *installed], PROGRAM)


@pytest.mark.parametrize("installed", [("setuptools==82.0.0",), ()])
def test_setuptools_is_too_new_or_missing(tmp_path: Path, installed: tuple[str, ...]) -> None:
    broken = case(tmp_path, installed)
    done = broken.apply("--log", str(failing(broken)))
    assert done.code == 0, done.told()
    assert activated(broken, "python program.py").out == "setuptools 80.9.0 False\n"


def test_torch_itself_imports_a_part_that_went_earlier(tmp_path: Path) -> None:
    broken = case(tmp_path, ("setuptools==82.0.0",), f"from pkg_resources import packaging\n{BUILDER}")
    done = broken.apply("--log", str(failing(broken)))
    assert done.code == 0, done.told()
    assert activated(broken, "python program.py").out == "setuptools 69.5.1 True\n"
