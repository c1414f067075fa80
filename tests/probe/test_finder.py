"""Environments are found where conda, its relatives and virtual environments put them, each once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from envmedic.model.answers.environments import FoundEnvironment
from envmedic.probe.prefix import environments, finder
from tests.probe.prefixes import make_prefix


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The working directory; the home is beside it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work/app").mkdir(parents=True)
    return tmp_path / "work/app"


def conda(prefix: Path, history: str = "", *records: str) -> Path:
    """A conda environment of these records."""
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "conda-meta/history").write_text(history)
    for name in records:
        (prefix / "conda-meta" / f"{name}.json").write_text("{}")
    return prefix


def venv(prefix: Path, version: str = "3.11.7") -> Path:
    """A virtual environment."""
    prefix.mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n")
    return prefix


def found(here: Path, variables: Mapping[str, str] | None = None) -> dict[str, FoundEnvironment]:
    """By path relative to the test's root."""
    root = here.parent.parent
    base = {"HOME": str(root / "home"), "PATH": ""}
    listed = environments.find(base | dict(variables or {}), here).environments
    inside = [item for item in listed if Path(item.prefix).is_relative_to(root)]
    return {str(Path(item.prefix).relative_to(root)): item for item in inside}


def test_nothing_is_found_where_nothing_is(here: Path) -> None:
    assert found(here) == {}


def test_environments_of_all_kinds_of_configuration(here: Path) -> None:
    root = here.parent.parent
    for name in ("variable/a", "configured/b", "beside/c", "home/.conda/envs/d", "elsewhere/e", "xdg/f", "mamba/g"):
        conda(root / name)
    (root / "home/.condarc").write_text(f"envs_dirs: [{root}/configured]\n")
    (root / "home/.config/conda/condarc.d").mkdir(parents=True)
    (root / "home/.config/conda/condarc.d/more.yml").write_text(f"envs_dirs: [{root}/beside]\n")
    (root / "config/conda").mkdir(parents=True)
    (root / "config/conda/condarc").write_text("envs_dirs: [$PLACE/xdg]\n")
    (root / "home/.mambarc").write_text(f"envs_dirs:\n  - {root}/mamba\n")
    (root / "home/.conda/environments.txt").write_text(f"{root}/elsewhere/e\n{root}/variable/a\n")
    given = {"CONDA_ENVS_DIRS": f"{root}/variable", "XDG_CONFIG_HOME": str(root / "config")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLACE", str(root))
        listed = found(here, given)
    assert {path: (item.name, item.found_by) for path, item in listed.items()} == {
        "variable/a": ("a", "envs_dirs"),
        "configured/b": ("b", "envs_dirs"),
        "beside/c": ("c", "envs_dirs"),
        "home/.conda/envs/d": ("d", "envs_dirs"),
        "elsewhere/e": ("e", "environments.txt"),
        "xdg/f": ("f", "envs_dirs"),
        "mamba/g": ("g", "envs_dirs"),
    }


def test_base_and_installations(here: Path) -> None:
    root = here.parent.parent
    base = conda(root / "miniforge")
    (base / "condabin").mkdir()
    conda(base / "envs/torch", "==> 2024-01-01 00:00:00 <==\n# cmd: /x/bin/conda create -n torch\n")
    conda(root / "home/micromamba/envs/mm", "==> 2024-01-01 00:00:00 <==\n# cmd: micromamba create -n mm\n")
    (root / "home/.conda").mkdir()
    (root / "home/.conda/environments.txt").write_text(f"{base}\n{root}/gone\n")
    (base / "bin").mkdir()
    given = {"CONDA_EXE": str(base / "bin/conda")}
    listed = found(here, given)
    assert {path: (item.name, item.base, item.tool) for path, item in listed.items()} == {
        "miniforge": ("base", True, "unknown"),
        "miniforge/envs/torch": ("torch", False, "conda"),
        "home/micromamba/envs/mm": ("mm", False, "micromamba"),
    }
    document = environments.find({"HOME": str(root / "home"), "PATH": "", **given}, here)
    assert document.gone == (str(root / "gone"),)


def test_the_first_of_a_name_has_it(here: Path) -> None:
    root = here.parent.parent
    conda(root / "one/same")
    conda(root / "two/same")
    listed = found(here, {"CONDA_ENVS_DIRS": f"{root}/two:{root}/one"})
    assert {path: item.name for path, item in listed.items()} == {"two/same": "same", "one/same": None}


def test_projects_nearby(here: Path) -> None:
    root = here.parent.parent
    conda(root / "work/.pixi/envs/default")
    conda(root / "work/.pixi/envs/gpu")
    conda(root / "work/.conda/envs/docs")
    (root / "work/conda.toml").write_text("[workspace]\n")
    conda(root / "home/.pixi/envs/ruff")
    listed = found(here)
    assert {path: (item.tool, item.found_by, item.name) for path, item in listed.items()} == {
        "work/.pixi/envs/default": ("pixi", "project", None),
        "work/.pixi/envs/gpu": ("pixi", "project", None),
        "work/.conda/envs/docs": ("conda-workspaces", "project", None),
        "home/.pixi/envs/ruff": ("pixi", "pixi global", None),
    }


def test_virtual_environments(here: Path) -> None:
    root = here.parent.parent
    for name in ("work/app/.venv", "work/app/other", "work/venv", "home/.virtualenvs/w", "home/.pyenv/versions/p",
                 "home/.cache/pypoetry/virtualenvs/q", "uvs/here", "active", "home/.local/share/pdm/venvs/m",
                 "home/.local/share/hatch/env/virtual/app/Zx9/test"):  # fmt: skip
        venv(root / name)
    (root / "work/app/plain").mkdir()
    listed = found(here, {"VIRTUAL_ENV": str(root / "active"), "UV_PROJECT_ENVIRONMENT": "../../uvs/here"})
    assert {path: item.found_by for path, item in listed.items()} == {
        "active": "VIRTUAL_ENV",
        "work/app/../../uvs/here": "UV_PROJECT_ENVIRONMENT",
        "work/app/.venv": "working directory",
        "work/app/other": "working directory",
        "work/venv": "project",
        "home/.virtualenvs/w": "WORKON_HOME",
        "home/.pyenv/versions/p": "pyenv",
        "home/.cache/pypoetry/virtualenvs/q": "poetry",
        "home/.local/share/pdm/venvs/m": "pdm",
        "home/.local/share/hatch/env/virtual/app/Zx9/test": "hatch",
    }
    assert [path for path, item in listed.items() if item.active] == ["active"]


def test_versions_of_python_and_torch_are_read_from_names(here: Path) -> None:
    root = here.parent.parent
    prefix = make_prefix(here / ".venv")
    site = next((prefix / "lib").glob("python3*/site-packages"))
    (site / "torch-2.5.1+cu124.dist-info").mkdir()
    (site / "torch_geometric-2.6.dist-info").mkdir()
    old = conda(root / "envs/old", "", "python-3.8.20-he870216_0", "python-dateutil-2.9.0-pyhd_0")
    site = old / "lib/python3.8/site-packages"
    (site / "torch-1.13.1-py3.8.egg-info").mkdir(parents=True)
    conda(root / "envs/none")
    listed = found(here, {"CONDA_ENVS_DIRS": str(root / "envs")})
    assert listed["work/app/.venv"].torch == "2.5.1+cu124"
    assert (listed["envs/old"].python, listed["envs/old"].torch) == ("3.8.20", "1.13.1")
    assert (listed["envs/none"].python, listed["envs/none"].torch) == (None, None)


def test_an_environment_that_can_be_reached_twice_is_listed_once(here: Path) -> None:
    root = here.parent.parent
    conda(root / "envs/x")
    (root / "link").symlink_to("envs")
    listed = found(here, {"CONDA_ENVS_DIRS": f"{root}/envs:{root}/link", "CONDA_PREFIX": str(root / "link/x")})
    assert list(listed) == ["envs/x"]
    assert listed["envs/x"].active


@pytest.mark.parametrize("broken", ["envs_dirs: [", "\0", "- a", "envs_dirs: 3"])
def test_damaged_configuration_says_nothing(here: Path, broken: str) -> None:
    root = here.parent.parent
    (root / "home/.condarc").write_text(broken)
    assert found(here) == {}
    assert finder.environment_directories({"HOME": str(root / "home"), "PATH": ""})[-1] == root / "home/.conda/envs"


def test_virtual_environments_of_projects_side_by_side_are_found_three_levels_below(here: Path) -> None:
    for name in ("one/.venv", ".demo/env", "group/two/.venv", "group/deep/three/.venv", "node_modules/x/.venv"):
        venv(here / name)
    (here / "loop").symlink_to(here)
    listed = found(here)
    assert {path.removeprefix("work/app/"): item.found_by for path, item in listed.items()} == dict.fromkeys(
        ("one/.venv", ".demo/env", "group/two/.venv"), finder.BELOW
    )


def test_the_search_below_is_bounded(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "MOST", 2)
    for number in range(5):
        venv(here / f"project{number}" / ".venv")
    assert len(found(here)) == 2
