"""Variables of an environment's programs."""

from __future__ import annotations

from pathlib import Path

from envmedic.engine.stage.environ import variables


def test_the_environment_comes_first_on_the_path_and_once(open_tmp: Path) -> None:
    found = variables(open_tmp, {}, {"PATH": f"/usr/bin:{open_tmp}/bin::/bin"})
    assert found["PATH"] == f"{open_tmp}/bin:/usr/bin:/bin"
    assert variables(open_tmp, {}, {})["PATH"].startswith(f"{open_tmp}/bin:")


def test_a_venv_and_a_conda_environment_are_named_as_activation_does(open_tmp: Path) -> None:
    assert variables(open_tmp, {}, {"VIRTUAL_ENV": "/other", "CONDA_PREFIX": "/base"})["VIRTUAL_ENV"] == str(open_tmp)
    (open_tmp / "conda-meta").mkdir()
    found = variables(open_tmp, {}, {"VIRTUAL_ENV": "/other"})
    assert found["CONDA_PREFIX"] == str(open_tmp)
    assert "VIRTUAL_ENV" not in found


def test_settings_that_redirect_installers_are_dropped_and_others_kept(open_tmp: Path) -> None:
    inherited = {
        "PIP_TARGET": "/x", "PIP_USER": "1", "UV_SYSTEM_PYTHON": "1", "UV_PROJECT_ENVIRONMENT": "/x", "PYTHONHOME": "/x",
        "PIP_INDEX_URL": "file:///index", "PYTHONPATH": "/mine", "LD_LIBRARY_PATH": "/lib", "UV_CACHE_DIR": "/cache",
    }  # fmt: skip
    found = variables(open_tmp, {}, inherited)
    assert set(found) - {"PATH", "VIRTUAL_ENV"} == {"PIP_INDEX_URL", "PYTHONPATH", "LD_LIBRARY_PATH", "UV_CACHE_DIR"}


def test_the_callers_variables_win(open_tmp: Path) -> None:
    found = variables(open_tmp, {"PATH": "/only", "PIP_TARGET": "/asked"}, {})
    assert (found["PATH"], found["PIP_TARGET"]) == ("/only", "/asked")
