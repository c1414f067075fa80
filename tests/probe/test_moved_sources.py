"""Where a source is looked for that is no longer where it was installed from."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.probe.integrity import moved_sources


def source(folder: Path, text: str, manifest: str = "pyproject.toml") -> str:
    folder.mkdir(parents=True)
    (folder / manifest).write_text(text)
    return str(folder)


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ("pyproject.toml", '[project]\nname = "Shop.Kit"\n'),
        ("setup.cfg", "[metadata]\nname = shop_kit\n"),
        ("setup.py", "setup(name='shop-kit')\n"),
    ],
)
@pytest.mark.parametrize("place", ["packages/shop-kit", "libs/renamed", "a/b/kit"])
def test_a_project_of_that_name_is_found_around_the_former_place(
    tmp_path: Path, place: str, manifest: str, text: str
) -> None:
    (tmp_path / "work" / "libs").mkdir(parents=True)
    source(tmp_path / "work" / "other", '[project]\nname = "shop-kit-tests"\n')
    now = source(tmp_path / "work" / place, text, manifest)
    assert moved_sources.found(tmp_path / "work" / "libs" / "shop-kit", "shop-kit") == now


def test_the_nearest_one_is_named_and_none_in_installed_packages(tmp_path: Path) -> None:
    text = '[project]\nname = "kit"\n'
    source(tmp_path / "work" / "a" / "b" / "c", text)
    source(tmp_path / "work" / "a" / "site-packages" / "kit", text)
    source(tmp_path / "work" / ".cache", text)
    near = source(tmp_path / "work" / "z" / "kit", text)
    assert moved_sources.found(tmp_path / "work" / "kit", "kit") == near


def test_other_peoples_directories_are_not_looked_through(tmp_path: Path) -> None:
    assert moved_sources.found(Path("/no-such-home/kit"), "kit") is None
    source(tmp_path / "far" / "kit", '[project]\nname = "kit"\n')
    assert moved_sources.found(tmp_path / "work" / "libs" / "a" / "kit", "kit") is not None
    (tmp_path / "work" / "libs" / "a").mkdir(parents=True)
    assert moved_sources.found(tmp_path / "work" / "libs" / "a" / "kit", "kit") is None
