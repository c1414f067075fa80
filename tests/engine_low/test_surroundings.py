"""Variables and user of an environment's programs."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from envmedic.engine.stage.environ import User, owner, variables

USER = User(uid=1000, gid=1000, groups=(1000,), name="ada", home="/home/ada")


def test_the_environment_comes_first_on_the_path_and_once(open_tmp: Path) -> None:
    found = variables(open_tmp, None, {}, {"PATH": f"/usr/bin:{open_tmp}/bin::/bin"})
    assert found["PATH"] == f"{open_tmp}/bin:/usr/bin:/bin"
    assert variables(open_tmp, None, {}, {})["PATH"].startswith(f"{open_tmp}/bin:")


def test_a_venv_and_a_conda_environment_are_named_as_activation_does(open_tmp: Path) -> None:
    assert variables(open_tmp, None, {}, {"VIRTUAL_ENV": "/other", "CONDA_PREFIX": "/base"})["VIRTUAL_ENV"] == str(
        open_tmp
    )
    (open_tmp / "conda-meta").mkdir()
    found = variables(open_tmp, None, {}, {"VIRTUAL_ENV": "/other"})
    assert found["CONDA_PREFIX"] == str(open_tmp)
    assert "VIRTUAL_ENV" not in found


def test_settings_that_redirect_installers_are_dropped_and_others_kept(open_tmp: Path) -> None:
    inherited = {
        "PIP_TARGET": "/x", "PIP_USER": "1", "UV_SYSTEM_PYTHON": "1", "UV_PROJECT_ENVIRONMENT": "/x", "PYTHONHOME": "/x",
        "PIP_INDEX_URL": "file:///index", "PYTHONPATH": "/mine", "LD_LIBRARY_PATH": "/lib", "UV_CACHE_DIR": "/cache",
    }  # fmt: skip
    found = variables(open_tmp, None, {}, inherited)
    assert set(found) - {"PATH", "VIRTUAL_ENV"} == {"PIP_INDEX_URL", "PYTHONPATH", "LD_LIBRARY_PATH", "UV_CACHE_DIR"}


def test_the_callers_variables_win(open_tmp: Path) -> None:
    found = variables(open_tmp, None, {"PATH": "/only", "PIP_TARGET": "/asked"}, {})
    assert (found["PATH"], found["PIP_TARGET"]) == ("/only", "/asked")


def test_another_user_gets_a_home_and_none_of_the_callers_directories(open_tmp: Path) -> None:
    found = variables(
        open_tmp, USER, {}, {"HOME": "/root", "XDG_CACHE_HOME": "/root/.cache", "UV_CACHE_DIR": "/root/uv"}
    )
    assert (found["HOME"], found["USER"], found["LOGNAME"]) == ("/home/ada", "ada", "ada")
    assert not {"XDG_CACHE_HOME", "UV_CACHE_DIR"} & set(found)


def test_another_user_gets_a_directory_for_temporary_files_that_is_theirs_to_write(open_tmp: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has directories that others cannot write")
    for name, mode in (("private", 0o700), ("shared", 0o1777)):
        (open_tmp / name).mkdir()
        (open_tmp / name).chmod(mode)
    inherited = {"TMPDIR": str(open_tmp / "private"), "TMP": str(open_tmp / "shared"), "TEMP": str(open_tmp / "none")}
    found = variables(open_tmp, USER, {}, inherited)
    assert {name: found[name] for name in inherited if name in found} == {"TMP": inherited["TMP"]}
    assert variables(open_tmp, None, {}, inherited)["TMPDIR"] == inherited["TMPDIR"]


def test_nobody_needs_to_become_the_owner_of_its_own_environment(open_tmp: Path) -> None:
    assert owner(open_tmp) is None


def test_root_finds_the_owner_with_groups_and_home(open_tmp: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root becomes the owner")
    known = next(entry for entry in pwd.getpwall() if entry.pw_uid not in {0, 65534})
    os.chown(open_tmp, known.pw_uid, known.pw_gid)
    found = owner(open_tmp)
    assert found is not None
    assert (found.uid, found.name, found.home) == (known.pw_uid, known.pw_name, known.pw_dir)
    assert found.gid in found.groups
    os.chown(open_tmp, 54321, 12345)
    assert owner(open_tmp) == User(54321, 12345, (12345,), "54321", "/")
