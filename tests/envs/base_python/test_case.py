"""An environment whose Python is gone is led to one of the same series, and keeps every package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native, run
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.long

SERIES = f"python{sys.version_info.major}.{sys.version_info.minor}"
PROGRAM = "import tool\nprint('works')\n"


@pytest.fixture
def case(tmp_path: Path) -> NativeCase:
    """An environment with a package and a script; the Python that it was made with is gone."""
    tool = make_wheel(
        tmp_path / "wheels", "tool", "1.0",
        files={"tool/__init__.py": "def main():\n    print('tool runs')\n"},
        entry_points="[console_scripts]\ntool = tool:main\n",
    )  # fmt: skip
    made = build_native(tmp_path / "room", [tool], ["tool"], PROGRAM)
    python = made.prefix / "bin" / "python"
    python.unlink()
    python.symlink_to(f"/opt/gone/bin/{SERIES}")
    settings = made.prefix / "pyvenv.cfg"
    lines = settings.read_text().splitlines()
    settings.write_text("".join("home = /opt/gone/bin\n" if x.startswith("home") else x + "\n" for x in lines))
    return made


@pytest.fixture
def host(tmp_path: Path) -> str:
    """A PATH with a Python of that series."""
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / SERIES).symlink_to(os.path.realpath(sys.executable))
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("staging", ["namespace", "relocate"])
def test_it_starts_again_with_all_that_is_installed(case: NativeCase, host: str, staging: str) -> None:
    before = manifest(case.prefix)
    done = case.apply("--staging", staging, PATH=host)
    if staging == "namespace" and "namespace" in done.document.get("summary", ""):
        pytest.skip("this host has no namespaces")
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert (plan["playbook"], plan["changes"]) == ("base-python", [])
    assert case.run().out == "works\n"
    assert run([str(case.prefix / "bin/tool")], {}, case.room).out == "tool runs\n"
    assert f"home = {host.partition(os.pathsep)[0]}\n" in (case.prefix / "pyvenv.cfg").read_text()
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json", PATH=host).document["verdict"] == "healthy"
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before


def test_requirements_that_were_unmet_before_do_not_keep_it_from_repair(case: NativeCase, host: str) -> None:
    metadata = next(case.prefix.glob("lib/python3*/site-packages/tool-1.0.dist-info/METADATA"))
    metadata.write_text(metadata.read_text().replace("Version: 1.0\n", "Version: 1.0\nRequires-Dist: absent\n", 1))
    done = case.apply(PATH=host)
    assert done.code == 0, done.told()
    assert case.run().out == "works\n"


def test_a_python_of_another_series_does_not_take_its_place(case: NativeCase, host: str) -> None:
    library = next((case.prefix / "lib").glob("python3*"))
    library.rename(library.with_name("python3.5"))
    before = manifest(case.prefix)
    done = case.apply(PATH=host)
    assert done.code != 0
    assert manifest(case.prefix) == before
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", PATH=host).document
    assert "broken-interpreter" in [item["playbook"] for item in found["findings"]]
