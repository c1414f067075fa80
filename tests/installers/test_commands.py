"""The commands of a step, run as they stand in real environments."""

from __future__ import annotations

import ensurepip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envmedic.errors import InstallerError
from envmedic.installers.pip import PipInstaller
from envmedic.installers.uv import UvInstaller
from envmedic.model.plan import Install, Purge
from tests.installers.observed import artifact, reference
from tests.support.venvs import (
    editable_project,
    install,
    install_editable,
    make_venv,
    python_of,
    run,
    site_packages,
    uv,
)
from tests.support.wheels import Wheel, make_wheel

INSTALLERS = {"uv": UvInstaller, "pip": PipInstaller}


def venv_with_pip(prefix: Path) -> Path:
    """A venv that has the pip that comes with Python."""
    bundled = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"), None)
    if bundled is None:  # some distributions keep it elsewhere
        subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
        return prefix
    make_venv(prefix)
    run([uv(), "pip", "install", "--no-index", "--no-config", "--python", str(python_of(prefix)), str(bundled)])
    return prefix


@pytest.fixture(scope="module")
def pip_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One venv with pip for all tests of a module; each test works with names of its own."""
    return venv_with_pip(tmp_path_factory.mktemp("with pip é") / "env")


@pytest.fixture(params=["uv", "pip"])
def installer(request: pytest.FixtureRequest) -> UvInstaller:
    """Each installer in turn."""
    return INSTALLERS[request.param]()


@pytest.fixture
def prefix(installer: UvInstaller, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An environment with spaces and letters beyond ASCII in its path; with pip for pip."""
    if isinstance(installer, PipInstaller):
        template: Path = request.getfixturevalue("pip_template")
        return template
    return make_venv(tmp_path / "mein Büro é" / "env")


def carry_out(installer: UvInstaller, step: Purge | Install, prefix: Path) -> str:
    """Run every command of a step and return its output."""
    output = ""
    for argv in installer.commands(step, str(python_of(prefix))):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        output += done.stdout + done.stderr
        assert done.returncode == 0, output
    return output


def fetched(installer: UvInstaller, *wheels: Wheel) -> Install:
    """A step that installs `wheels`, which are in the cache."""
    artifacts = tuple(artifact(wheel) for wheel in wheels)
    installer.fetch(artifacts, offline=True, emit=lambda _: None)
    return Install(artifacts=artifacts)


def unique(tmp_path: Path, version: str = "1.0", **settings: object) -> Wheel:
    """A wheel whose name no other test uses."""
    name = f"app-{abs(hash(tmp_path)) % 10**8}"
    return make_wheel(tmp_path / "w", name, version, **settings)  # type: ignore[arg-type]


def module_of(prefix: Path, wheel: Wheel) -> Path:
    """The wheel's one module, installed."""
    return site_packages(prefix) / f"{wheel.name.replace('-', '_')}.py"


def test_a_wheel_is_installed_as_if_from_an_index(installer: UvInstaller, prefix: Path, tmp_path: Path) -> None:
    wheel = unique(tmp_path, "1.0+cu124", requires=["not-there"])
    carry_out(installer, fetched(installer, wheel), prefix)
    assert module_of(prefix, wheel).read_text(encoding="utf-8") == "version = '1.0+cu124'\n"
    info = site_packages(prefix) / reference(prefix, wheel).metadata_path.rpartition("/")[2]
    assert not (info / "direct_url.json").exists()
    assert not list(site_packages(prefix).glob(f"__pycache__/{module_of(prefix, wheel).stem}*"))


def test_the_same_version_is_installed_again_over_broken_files(
    installer: UvInstaller, prefix: Path, tmp_path: Path
) -> None:
    wheel = unique(tmp_path)
    step = fetched(installer, wheel)
    carry_out(installer, step, prefix)
    module_of(prefix, wheel).write_text("broken", encoding="utf-8")
    carry_out(installer, step, prefix)
    assert module_of(prefix, wheel).read_text(encoding="utf-8") == "version = '1.0'\n"


def test_a_purge_removes_what_it_names_and_nothing_else(installer: UvInstaller, prefix: Path, tmp_path: Path) -> None:
    wheel, other = unique(tmp_path), make_wheel(tmp_path / "w", "stays-here", "1.0")
    carry_out(installer, fetched(installer, wheel, other), prefix)
    carry_out(installer, Purge(distributions=(reference(prefix, wheel),)), prefix)
    assert not module_of(prefix, wheel).exists()
    assert module_of(prefix, other).exists()


@pytest.mark.parametrize("owner", ["uv", "conda"])
def test_what_no_installer_can_remove_is_not_asked_of_it(
    owner: str, installer: UvInstaller, prefix: Path, tmp_path: Path
) -> None:
    wheel = unique(tmp_path)
    carry_out(installer, fetched(installer, wheel), prefix)
    named = reference(prefix, wheel, owner)
    if owner == "uv":
        (prefix / named.metadata_path / "RECORD").unlink()
    assert installer.commands(Purge(distributions=(named,)), str(python_of(prefix))) == ()


def test_a_purge_of_leftovers_alone_has_no_command(installer: UvInstaller, prefix: Path) -> None:
    assert installer.commands(Purge(leftovers=("lib/~orchvision",)), str(python_of(prefix))) == ()


def test_both_copies_of_a_doubled_distribution_go(installer: UvInstaller, prefix: Path, tmp_path: Path) -> None:
    old, new = unique(tmp_path, "1.0", files={"one.py": ""}), unique(tmp_path, "2.0", files={"two.py": ""})
    carry_out(installer, fetched(installer, old), prefix)
    hidden = tmp_path / "hidden"
    info = prefix / reference(prefix, old).metadata_path
    info.rename(hidden)
    carry_out(installer, fetched(installer, new), prefix)
    hidden.rename(info)
    carry_out(installer, Purge(distributions=(reference(prefix, old), reference(prefix, new))), prefix)
    assert not list(site_packages(prefix).glob(f"{old.name.replace('-', '_')}*.dist-info"))
    assert not (site_packages(prefix) / "one.py").exists()
    assert not (site_packages(prefix) / "two.py").exists()


def test_no_setting_of_the_user_takes_part(
    installer: UvInstaller, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = unique(tmp_path)
    step = fetched(installer, wheel)
    hostile = {
        "UV_COMPILE_BYTECODE": "1",
        "UV_CONSTRAINT": "/nowhere/constraints.txt",
        "UV_NO_BINARY": "1",
        "UV_REQUIRE_HASHES": "1",
        "UV_INDEX_URL": "http://127.0.0.1:9/simple",
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
        "UV_INDEX": "http://127.0.0.1:9/simple",
        "UV_FIND_LINKS": "http://127.0.0.1:9/links",
        "UV_TORCH_BACKEND": "cpu",
        "UV_LINK_MODE": "symlink",
        "UV_CONFIG_FILE": "/nowhere/uv.toml",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_FIND_LINKS": "http://127.0.0.1:9/links",
        "PIP_CONSTRAINT": "/nowhere/constraints.txt",
        "PIP_NO_BINARY": ":all:",
        "PIP_TARGET": str(tmp_path / "elsewhere"),
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PYTHONPATH": str(tmp_path / "shadow"),
    }
    for name, value in hostile.items():
        monkeypatch.setenv(name, value)
    (prefix / "pip.conf").write_text("[install]\ntarget = /nowhere\n", encoding="utf-8")
    carry_out(installer, step, prefix)
    (prefix / "pip.conf").unlink()
    assert module_of(prefix, wheel).is_file()
    assert not module_of(prefix, wheel).is_symlink()
    assert not list(site_packages(prefix).glob(f"__pycache__/{module_of(prefix, wheel).stem}*"))


def test_installed_files_share_nothing_with_the_cache(venv: Path, tmp_path: Path) -> None:
    wheel = unique(tmp_path)
    carry_out(UvInstaller(), fetched(UvInstaller(), wheel), venv)
    assert module_of(venv, wheel).stat().st_nlink == 1


def check(installer: UvInstaller, prefix: Path) -> tuple[int, str]:
    """Exit status and output of the command that lists unmet requirements."""
    argv = installer.check_command(str(python_of(prefix)))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_check_writes_no_byte_code(installer: UvInstaller, prefix: Path) -> None:
    for cache in list(prefix.rglob("__pycache__")):
        shutil.rmtree(cache)
    check(installer, prefix)
    assert not list(prefix.rglob("*.pyc"))


def test_the_check_lists_unmet_requirements(installer: UvInstaller, prefix: Path, tmp_path: Path) -> None:
    needed = make_wheel(tmp_path / "w", f"needed-{abs(hash(tmp_path)) % 10**8}", "2.0")
    install(prefix, [unique(tmp_path, requires=[f"{needed.name}>=2"])])
    status, output = check(installer, prefix)
    assert status == 1
    assert needed.name in output
    install(prefix, [needed])
    assert needed.name not in check(installer, prefix)[1]


def test_editable_installs_stay(venv: Path, tmp_path: Path) -> None:
    installer, prefix = UvInstaller(), venv
    project = editable_project(tmp_path / "project", "my-project")
    install_editable(prefix, project)
    wheel = unique(tmp_path)
    step = fetched(installer, wheel)
    carry_out(installer, step, prefix)
    carry_out(installer, Purge(distributions=(reference(prefix, wheel),)), prefix)
    output = subprocess.run(
        [python_of(prefix), "-B", "-c", "import my_project; print(my_project.__file__)"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    ).stdout
    assert output.strip() == str(project / "my_project.py")


def test_pip_is_refused_where_the_environment_has_none(venv: Path) -> None:
    with pytest.raises(InstallerError, match="has no pip") as raised:
        PipInstaller().commands(Install(artifacts=()), str(python_of(venv)))
    assert raised.value.hint == "Leave --installer out: uv installs from outside"
