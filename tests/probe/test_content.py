"""The content of environments: equal for equal ones wherever they were installed, and what differs has a name."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.analysis.fleet.content import content_differences, without_place
from envmedic.engine.transaction import activation_edits
from envmedic.model.answers.content import Content
from envmedic.probe.content_files import observe_content
from envmedic.probe.environment import observe_environment
from tests.support.venvs import install, make_venv, site_packages
from tests.support.wheels import Wheel, make_wheel

SHAPES: dict[str, str | bytes] = {
    "grid/__init__.py": "import grid.shapes\n",
    "grid/shapes.py": "SIDES = 4\n",
    "grid/data.bin": b"\0" * 64,
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Wheel, ...]:
    folder = tmp_path_factory.mktemp("wheels")
    programs = "[console_scripts]\ngrid = grid.shapes:main\n"
    return (make_wheel(folder, "grid", "1.5", files=SHAPES, entry_points=programs), make_wheel(folder, "mesh", "2.0"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, wheels: tuple[Wheel, ...]) -> Path:
    return environment(tmp_path_factory.mktemp("one") / "venv", wheels)


@pytest.fixture
def both(made: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The environment, and a copy that the test may change."""
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    return made, tmp_path / "copy"


def environment(prefix: Path, wheels: tuple[Wheel, ...]) -> Path:
    make_venv(prefix)
    install(prefix, wheels)
    return prefix


def content(prefix: Path, *, deep: bool = False) -> Content:
    return observe_content(observe_environment(prefix, {}), deep=deep)


def test_environments_that_were_installed_separately_have_one_digest(
    made: Path, tmp_path: Path, wheels: tuple[Wheel, ...]
) -> None:
    # a name so long that installers write the longer form of a shebang
    other = environment(tmp_path / ("other-" + "x" * 140) / "env", wheels)
    script = (other / "bin" / "grid").read_bytes()
    assert script.startswith(b"#!/bin/sh")
    assert script != (made / "bin" / "grid").read_bytes()
    found = [content(prefix, deep=deep) for prefix in (made, other) for deep in (False, True)]
    assert len({item.digest for item in found}) == 1
    assert [(item.name, item.version, item.owner) for item in found[0].distributions] == [
        ("grid", "1.5", "uv"), ("mesh", "2.0", "uv"),
    ]  # fmt: skip
    assert found[0].untracked == {}


def edited(site: Path) -> None:
    (site / "grid" / "shapes.py").write_text("SIDES = 44\n")


def missing(site: Path) -> None:
    (site / "grid" / "data.bin").unlink()


def stray(site: Path) -> None:
    (site / "grid" / "mine.py").write_text("")


def program(site: Path) -> None:
    with (site.parents[2] / "bin" / "grid").open("a") as file:
        file.write("# mine\n")


def link(site: Path) -> None:
    (site / "also").symlink_to("grid")


def kept(site: Path) -> None:
    activation_edits.keep(site.parents[2], {"GRID_HOME": f"{site.parents[2]}/share"})


def gone(site: Path) -> None:
    (site / "mesh.py").unlink()
    shutil.rmtree(site / "mesh-2.0.dist-info")


SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


@pytest.mark.parametrize(
    ("change", "kind", "name", "altered"),
    [
        (edited, "distribution", "grid", (f"{SITE}/grid/shapes.py",)),
        (missing, "distribution", "grid", (f"{SITE}/grid/data.bin",)),
        (stray, "untracked", f"{SITE}/grid", ()),
        (program, "distribution", "grid", ()),
        (link, "untracked", f"{SITE}/also", ()),
        (gone, "distribution", "mesh", ()),
        (kept, "variable", "GRID_HOME", ()),
    ],
)
def test_what_differs_is_named(
    both: tuple[Path, Path], change: Callable[[Path], None], kind: str, name: str, altered: tuple[str, ...]
) -> None:
    made, copy = both
    change(site_packages(copy))
    before, after = content(made), content(copy)
    (found,) = content_differences(before, after)
    assert (found.kind, found.name, found.altered) == (kind, name, altered)
    assert before.digest != after.digest
    assert content_differences(after, after) == ()


def test_byte_code_times_and_what_installers_note_about_themselves_do_not_count(made: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(made, copy, symlinks=True, copy_function=shutil.copyfile)
    site = site_packages(copy)
    (site / "grid" / "__pycache__").mkdir()
    (site / "grid" / "__pycache__" / "shapes.cpython-311.pyc").write_bytes(b"code")
    (site / "grid-1.5.dist-info" / "direct_url.json").write_text('{"url": "file:///w/grid.whl", "archive_info": {}}')
    (site / "grid-1.5.dist-info" / "REQUESTED").unlink(missing_ok=True)
    assert content(copy).digest == content(made).digest


def test_an_edit_of_the_same_size_takes_deep(both: tuple[Path, Path]) -> None:
    made, copy = both
    (site_packages(copy) / "grid" / "shapes.py").write_text("SIDES = 5\n")
    assert content(copy).digest == content(made).digest
    (found,) = content_differences(content(made, deep=True), content(copy, deep=True))
    assert (found.name, found.altered) == ("grid", (f"{SITE}/grid/shapes.py",))


def test_paths_are_replaced_whole() -> None:
    homes = (b"/opt/env", b"/data/opt/env")
    assert without_place(b"#!/opt/env/bin/python\nrun('/opt/env/x')", homes) == b"#!\nrun('{prefix}/x')"
    assert without_place(b"/opt/env2 /opt/env-old", homes) == b"/opt/env2 /opt/env-old"
    assert without_place(b"\0/opt/env", homes) == b"\0/opt/env"
