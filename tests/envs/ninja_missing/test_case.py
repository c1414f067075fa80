"""ninja is installed into the environment, where an activated shell finds it."""

from __future__ import annotations

from pathlib import Path

from tests.support.building import activated, failing, programs, torch_wheel
from tests.support.native import PLATFORM_TAGS
from tests.support.native_case import SUMMARY, build_native
from tests.support.wheels import make_wheel

PROGRAM = """\
from torch.utils import cpp_extension

print("ninja", cpp_extension.load())
"""


def test_ninja_is_installed(tmp_path: Path) -> None:
    scripts = {"ninja/__init__.py": "", "ninja-1.11.1.data/scripts/ninja": "#!/bin/sh\necho 1.11.1\n"}
    ninja = make_wheel(tmp_path / "wheels", "ninja", "1.11.1", files=scripts, tags=PLATFORM_TAGS, summary=SUMMARY)
    case = build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels"), ninja], ["torch"], PROGRAM)
    path = str(programs(tmp_path))
    log = failing(case, PATH=path)
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json", PATH=path).document["verdict"] == "healthy"
    done = case.apply("--log", str(log), PATH=path)
    assert done.code == 0, done.told()
    assert [(item["kind"], item["name"]) for item in done.document["plan"]["changes"]] == [("install", "ninja")]
    assert activated(case, "python program.py", PATH=path).out == "ninja 1.11.1\n"
