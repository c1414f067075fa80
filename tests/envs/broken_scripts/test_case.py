"""Console scripts come back from the entry points of their distributions."""

from __future__ import annotations

from pathlib import Path

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native, run
from tests.support.venvs import site_packages
from tests.support.wheels import make_wheel

SCRIPTS = ("Tool", "tool-dead", "tool-gone")
PROGRAM = "import tool\n"


def build(room: Path) -> NativeCase:
    """A package with three scripts, one of which is gone; the two others are run by a Python that is gone."""
    lines = "".join(f"{name} = tool:Command.main\n" for name in SCRIPTS)
    tool = make_wheel(
        room / "wheels", "tool", "1.0",
        files={"tool/__init__.py": "class Command:\n    @staticmethod\n    def main():\n        print('works')\n"},
        entry_points=f"[console_scripts]\n{lines}\n[other]\nx = no target at all\n",
    )  # fmt: skip
    case = build_native(room, [tool], ["tool"], PROGRAM)
    (case.prefix / "bin/tool-gone").unlink()
    for name in SCRIPTS[:2]:
        script = case.prefix / "bin" / name
        script.write_text("#!/gone/python3.9/bin/python\n" + script.read_text().partition("\n")[2])
    return case


def test_scripts_are_written_again_and_recorded(tmp_path: Path) -> None:
    case = build(tmp_path)
    before = manifest(case.prefix)
    done = case.apply()
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert (plan["playbook"], plan["changes"]) == ("broken-scripts", [])
    assert {item["check"]: item["status"] for item in done.document["checks_before"]}["programs"] == "fail"
    for name in SCRIPTS:
        assert run([str(case.prefix / "bin" / name)], {}, case.room).out == "works\n"
    # the new content is that of the list: nothing is missing, and nothing was changed by hand
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--deep", "--json").document["verdict"] == "healthy"
    assert (site_packages(case.prefix) / "tool-1.0.dist-info/RECORD").read_text().count("bin/tool-gone,sha256=") == 1
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before
