"""The tool that a build asks for is installed, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tests.support.building import activated, failing, torch_wheel
from tests.support.native_case import SUMMARY, build_native
from tests.support.wheels import make_wheel

SETUP = "import torch\nfrom packaging import version\n\nprint('built', version.TEXT)\n"
BUILD = "python setup.py"


def test_the_tool_is_installed(tmp_path: Path) -> None:
    packaging = make_wheel(
        tmp_path / "wheels",
        "packaging",
        "24.2",
        files={"packaging/__init__.py": "", "packaging/version.py": "TEXT = '24.2'\n"},
        summary=SUMMARY,
    )
    case = build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels"), packaging], ["torch"], "")
    (case.room / "setup.py").write_text(SETUP, encoding="utf-8")
    done = case.apply("--log", str(failing(case, BUILD)))
    assert done.code == 0, done.told()
    assert [(item["kind"], item["name"]) for item in done.document["plan"]["changes"]] == [("install", "packaging")]
    assert activated(case, BUILD).out == "built 24.2\n"
