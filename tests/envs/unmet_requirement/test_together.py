"""Requirements that only together have a solution: what binds the releases of what moves has to move along."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native
from tests.support.venvs import uv
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.long

Releases = tuple[tuple[str, str, tuple[str, ...]], ...]
"""Name, version and requirements of each."""
RELEASES: Releases = (
    ("reader", "1.0", ("store<2",)),
    ("store", "1.0", ()),
    ("store", "2.0", ()),
    ("writer", "0.5", ("store<2",)),
    ("writer", "1.0", ("store>=2",)),
    ("shell", "0.9", ()),
    ("shell", "1.0", ("writer>=1",)),
)


def build(room: Path, releases: Releases, installed: Sequence[str]) -> NativeCase:
    """An environment with these releases, whatever they require, and an index with all."""
    wheels = [
        make_wheel(room / "wheels", name, version, files={f"{name}/__init__.py": ""}, requires=requires)
        for name, version, requires in releases
    ]
    names = sorted({name for name, _, _ in releases})
    case = build_native(room, wheels, installed[:1], f"import {', '.join(names)}\n")
    command = [uv(), "pip", "install", "--quiet", "--no-deps", "--no-config", "--index-url", case.index]
    subprocess.run([*command, "--python", str(case.python), *installed[1:]], check=True)
    return case


def repaired(case: NativeCase) -> dict[str, tuple[str, str]]:
    """What a repair moves; the environment is healthy after it, and undo brings every byte back."""
    before = manifest(case.prefix)
    done = case.apply("--playbook", "unmet-requirement")
    assert done.code == 0, done.told()
    moved = {item["name"]: (item["before"], item["after"]) for item in done.document["plan"]["changes"]}
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["verdict"] == "healthy"
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before
    return moved


def test_what_binds_the_releases_moves_along(tmp_path: Path) -> None:
    """The reader needs an old store, the writer a new one, and the shell the new writer: each has an older release."""
    case = build(tmp_path, RELEASES, ["store==2.0", "writer==1.0", "shell==1.0", "reader==1.0"])
    assert repaired(case) == {"store": ("2.0", "1.0"), "writer": ("1.0", "0.5"), "shell": ("1.0", "0.9")}


CHAIN: Releases = (
    ("app", "1.0", ("base>=2",)),
    ("base", "1.0", ("core",)),
    ("base", "2.0", ("core>=2",)),
    ("core", "1.0", ("disk",)),
    ("core", "2.0", ("disk>=2",)),
    ("disk", "1.0", ()),
    ("disk", "2.0", ()),
    ("edge", "1.0", ("disk<2",)),
)
CHAINED = ["base==1.0", "core==1.0", "disk==1.0", "edge==1.0", "app==1.0"]
FORWARD = dict.fromkeys(("base", "core", "disk"), ("1.0", "2.0"))


def test_a_chain_of_new_releases_is_followed_to_its_end(tmp_path: Path) -> None:
    case = build(tmp_path, (*CHAIN, ("edge", "2.0", ("disk>=2",))), CHAINED)
    assert repaired(case) == {**FORWARD, "edge": ("1.0", "2.0")}


def test_an_older_release_at_its_beginning_is_less(tmp_path: Path) -> None:
    case = build(tmp_path, (*CHAIN, ("edge", "2.0", ("disk>=2",)), ("app", "0.9", ("base<2",))), CHAINED)
    assert repaired(case) == {"app": ("1.0", "0.9")}


def test_a_chain_through_what_nothing_here_requires_yet_is_followed(tmp_path: Path) -> None:
    """Another release of the tool, of the disk and of the clock go together; nothing installed names the clock."""
    releases: Releases = (
        ("tool", "1.0", ("clock>=2", "disk<3")),
        ("tool", "2.0", ("disk<2",)),
        ("tool", "3.0", ("base>=3", "edge<3")),
        ("base", "1.0", ("clock>=2", "disk>=2")),
        ("base", "2.0", ("tool>=1", "disk>=2")),
        ("clock", "1.0", ()),
        ("clock", "2.0", ("disk>=2",)),
        ("disk", "1.0", ("clock>=2",)),
        ("disk", "2.0", ()),
        ("disk", "3.0", ()),
        ("edge", "1.0", ()),
        ("edge", "2.0", ()),
    )
    case = build(tmp_path, releases, ["base==2.0", "clock==1.0", "disk==3.0", "edge==1.0", "tool==2.0"])
    assert repaired(case) == {"clock": ("1.0", "2.0"), "disk": ("3.0", "2.0"), "tool": ("2.0", "1.0")}
