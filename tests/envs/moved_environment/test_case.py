"""An environment that was renamed with its project: its files name the present place, and nothing is installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native, run
from tests.support.venvs import editable_project, install_editable
from tests.support.wheels import make_wheel

PROGRAM = "import mine, tool\nprint(mine.version, tool.__file__)\n"


@pytest.fixture
def case(tmp_path: Path) -> NativeCase:
    """A renamed project: ``before/env`` is ``after/env`` now."""
    tool = make_wheel(
        tmp_path / "wheels", "tool", "1.0",
        files={"tool/__init__.py": "def main():\n    print('tool runs')\n"},
        entry_points="[console_scripts]\ntool = tool:main\n",
    )  # fmt: skip
    made = build_native(tmp_path / "before", [tool], ["tool"], PROGRAM)
    install_editable(made.prefix, editable_project(made.room / "project", "mine"))
    room = tmp_path / "after"
    made.room.rename(room)
    return NativeCase(room, room / made.prefix.name, room / made.program.name, (room / "index").as_uri())


@pytest.mark.parametrize("staging", ["namespace", "relocate"])
def test_scripts_activation_and_sources_lead_to_the_present_place(case: NativeCase, staging: str) -> None:
    assert case.run().code != 0
    with pytest.raises(FileNotFoundError):
        run([str(case.prefix / "bin/tool")], {}, case.room)
    before = manifest(case.prefix)
    done = case.apply("--staging", staging)
    if staging == "namespace" and "namespace" in done.document.get("summary", ""):
        pytest.skip("this host has no namespaces")
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert (plan["playbook"], plan["changes"]) == ("moved-environment", [])
    assert {item["check"]: item["status"] for item in done.document["checks_before"]}["programs"] == "fail"
    assert run([str(case.prefix / "bin/tool")], {}, case.room).out == "tool runs\n"
    assert case.run().out == f"0.1 {next(case.prefix.glob('lib/python3*/site-packages'))}/tool/__init__.py\n"
    shell = f'. "{case.prefix}/bin/activate"; command -v tool'
    assert subprocess.check_output(["bash", "-c", shell], text=True).strip() == str(case.prefix / "bin/tool")
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["verdict"] == "healthy"
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before
