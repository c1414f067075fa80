"""Requirements that only together have a solution: what binds the releases of what moves has to move along."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native
from tests.support.venvs import uv
from tests.support.wheels import make_wheel

RELEASES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("reader", "1.0", ("store<2",)),
    ("store", "1.0", ()),
    ("store", "2.0", ()),
    ("writer", "0.5", ("store<2",)),
    ("writer", "1.0", ("store>=2",)),
    ("shell", "0.9", ()),
    ("shell", "1.0", ("writer>=1",)),
)


def build(room: Path) -> NativeCase:
    """The reader needs an old store, the writer a new one, and the shell the new writer: each has an older release."""
    wheels = [
        make_wheel(room / "wheels", name, version, files={f"{name}/__init__.py": ""}, requires=requires)
        for name, version, requires in RELEASES
    ]
    case = build_native(room, wheels, ["store==2.0", "writer==1.0", "shell==1.0"], "import reader, writer, shell\n")
    command = [uv(), "pip", "install", "--quiet", "--no-deps", "--no-config", "--index-url", case.index]
    subprocess.run([*command, "--python", str(case.python), "reader==1.0"], check=True)
    return case


def test_what_binds_the_releases_moves_along(tmp_path: Path) -> None:
    case = build(tmp_path)
    before = manifest(case.prefix)
    done = case.apply("--playbook", "unmet-requirement")
    assert done.code == 0, done.told()
    moved = {item["name"]: (item["before"], item["after"]) for item in done.document["plan"]["changes"]}
    assert moved == {"store": ("2.0", "1.0"), "writer": ("1.0", "0.5"), "shell": ("1.0", "0.9")}
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["verdict"] == "healthy"
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before
