"""Which environment the options mean."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envmedic.errors import InputError, NotAnEnvironment
from envmedic.probe.prefix import finder, targets
from tests.probe.prefixes import make_prefix


@pytest.fixture(autouse=True)
def _no_active_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE", "CONDA_ENVS_DIRS", "CONDA_ENVS_PATH", "MAMBA_ROOT_PREFIX",
                 "CONDA_ROOT"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def resolve(*, name: str | None = None, prefix: str | None = None, python: str | None = None) -> Path:
    return targets.resolve_prefix(name=name, prefix=prefix, python=python)


def conda_environment(folder: Path) -> Path:
    (folder / "conda-meta").mkdir(parents=True)
    return folder


def test_prefix_becomes_absolute_and_keeps_its_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_prefix(tmp_path / "env")
    (tmp_path / "link").symlink_to("env")
    monkeypatch.chdir(tmp_path)
    assert resolve(prefix="link/../link/") == tmp_path / "link"


def test_prefix_may_start_with_the_home(tmp_path: Path) -> None:
    make_prefix(tmp_path / "home" / "env")
    assert resolve(prefix="~/env") == tmp_path / "home" / "env"


def test_python_names_its_prefix_without_following_its_link(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (tmp_path / "link").symlink_to("env")
    assert resolve(python=str(prefix / "bin" / "python")) == prefix
    assert resolve(python=str(tmp_path / "link" / "bin" / "python")) == prefix


def test_python_that_does_not_exist_or_is_a_directory(tmp_path: Path) -> None:
    with pytest.raises(NotAnEnvironment, match="There is no interpreter"):
        resolve(python=str(tmp_path / "bin" / "python"))
    with pytest.raises(NotAnEnvironment, match="There is no interpreter pythonnone"):
        resolve(python="pythonnone")
    with pytest.raises(NotAnEnvironment, match="is a directory"):
        resolve(python=str(tmp_path))


def test_a_file_that_is_no_interpreter_names_no_environment(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ls").touch()
    for file in ("/etc/passwd", str(tmp_path / "bin" / "ls")):
        with pytest.raises(NotAnEnvironment, match="is not an interpreter"):
            resolve(python=file)


def test_the_root_of_the_file_system_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "root").symlink_to("/")
    for prefix in ("/", str(tmp_path / "root")):
        with pytest.raises(NotAnEnvironment, match="root of the file system") as caught:
            resolve(prefix=prefix)
        assert "-p /usr" in str(caught.value.hint)


@pytest.mark.parametrize("inside", [".venv", "venv", ".pixi/envs/default"])
def test_a_project_is_told_where_its_environment_lies(tmp_path: Path, inside: str) -> None:
    (tmp_path / "project").mkdir()
    make_prefix(tmp_path / "project" / inside)
    with pytest.raises(NotAnEnvironment, match="holds no Python") as caught:
        resolve(prefix=str(tmp_path / "project"))
    assert caught.value.hint == f"Perhaps it is this one: -p {tmp_path / 'project' / inside}"


def test_the_bin_of_an_environment_is_told_whose_it_is(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    with pytest.raises(NotAnEnvironment) as caught:
        resolve(prefix=str(prefix / "bin"))
    assert caught.value.hint == f"Perhaps it is this one: -p {prefix}"


def test_active_environment_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv, conda = make_prefix(tmp_path / "env"), conda_environment(tmp_path / "conda")
    monkeypatch.setenv("CONDA_PREFIX", str(conda))
    assert resolve() == conda
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    assert resolve() == venv


def test_an_active_environment_that_is_gone_is_told_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "gone"))
    with pytest.raises(NotAnEnvironment, match="The active environment") as caught:
        resolve()
    assert "VIRTUAL_ENV" in str(caught.value.cause)


def test_nothing_named_and_nothing_active() -> None:
    with pytest.raises(InputError, match="none is active") as caught:
        resolve()
    assert caught.value.hint is not None
    assert "-p DIR" in caught.value.hint


def test_the_environments_of_the_project_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".venv", "venv"):
        make_prefix(tmp_path / "shop" / name)
    (tmp_path / "shop" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "shop" / "src")
    with pytest.raises(targets.NoneActive) as caught:
        resolve()
    assert str(caught.value.hint).startswith(
        f"Perhaps it is this one: -p {tmp_path / 'shop' / '.venv'} or -p {tmp_path / 'shop' / 'venv'}. "
    )


def test_two_options_contradict() -> None:
    with pytest.raises(InputError, match="More than one"):
        resolve(name="a", prefix="/b")


def test_missing_prefix_file_and_plain_directory_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "plain").mkdir()
    for name, words in (
        ("missing", "does not exist"),
        ("dangling", "does not exist"),
        ("file", "is not a directory"),
        ("plain", "holds no Python environment"),
    ):
        with pytest.raises(NotAnEnvironment, match=words) as caught:
            resolve(prefix=str(tmp_path / name))
        assert caught.value.hint
    assert caught.value.cause is not None
    assert "pyvenv.cfg" in caught.value.cause


def test_own_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(sys.prefix)
    for spelling in (sys.prefix, str(tmp_path / "link")):
        with pytest.raises(InputError, match="envmedic itself"):
            resolve(prefix=spelling)


def test_names_are_found_where_conda_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = conda_environment(tmp_path / "elsewhere" / "listed")
    (tmp_path / "home" / ".conda").mkdir(parents=True)
    (tmp_path / "home" / ".conda" / "environments.txt").write_text(f"{listed}\n\n")
    configured = conda_environment(tmp_path / "configured" / "mine")
    (tmp_path / "home" / ".condarc").write_text(f"envs_dirs:\n  - {tmp_path}/configured\n")
    by_variable = conda_environment(tmp_path / "variable" / "mine")
    assert resolve(name="listed") == listed
    assert resolve(name="mine") == configured
    monkeypatch.setenv("CONDA_ENVS_DIRS", f"{tmp_path}/variable")
    assert resolve(name="mine") == by_variable


def test_base_is_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = conda_environment(tmp_path / "miniforge")
    (root / "bin").mkdir()
    (root / "bin" / "conda").write_text("")
    own = conda_environment(root / "envs" / "torch")
    monkeypatch.setenv("CONDA_EXE", str(root / "bin" / "conda"))
    assert resolve(name="base") == root
    assert resolve(name="torch") == own


def test_unknown_name_shows_near_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conda_environment(tmp_path / "envs" / "pytorch-25")
    monkeypatch.setenv("CONDA_ENVS_DIRS", str(tmp_path / "envs"))
    with pytest.raises(NotAnEnvironment, match="pytorch-24") as caught:
        resolve(name="pytorch-24")
    assert "pytorch-25" in str(caught.value.cause)


def test_a_path_is_no_name() -> None:
    with pytest.raises(InputError, match="is a path"):
        resolve(name="envs/torch")


def test_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    make_prefix(tmp_path / name)
    with pytest.raises(InputError, match="not valid UTF-8"):
        resolve(prefix=str(tmp_path / name))


@pytest.mark.parametrize("text", ["envs_dirs: 3", "envs_dirs: [", "- envs_dirs", "envs_dirs:\n  - 3\n"])
def test_condarc_that_says_nothing_useful(text: str) -> None:
    assert finder.parse_condarc(text) == []
