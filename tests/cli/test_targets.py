"""What the user names as environment: what is no environment, and what is not to be repaired."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.support import REPAIR, Shell, copied, failure, state_of
from tests.envs.nms_cuda.case import Case
from tests.support.venvs import make_venv, python_of, site_packages

COMMANDS = (("diagnose",), REPAIR, ("verify",), ("undo", "-y"))


def ids(value: object) -> str:
    """The command's name."""
    return value[0] if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize("command", COMMANDS, ids=ids)
def test_a_missing_prefix(reader: Shell, tmp_path: Path, command: tuple[str, ...]) -> None:
    done = reader.envmedic(*command, "--json", "-p", str(tmp_path / "gone"))
    failure(done, code=2, kind="not-an-environment", says=f"{tmp_path / 'gone'} does not exist")


def test_a_directory_that_is_no_environment(reader: Shell, tmp_path: Path) -> None:
    done = reader.envmedic(*REPAIR, "--json", "-p", str(tmp_path))
    failure(done, code=2, kind="not-an-environment", says="holds no Python environment")
    assert list(tmp_path.iterdir()) == []


def test_a_file(reader: Shell, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    failure(reader.envmedic(*REPAIR, "-p", str(file)), code=2, kind="not-an-environment", says="is not a directory")


def test_a_name_that_nothing_has_and_no_name_at_all(reader: Shell) -> None:
    failure(
        reader.envmedic("diagnose", "-n", "train"), code=2, kind="not-an-environment", says="No conda environment is"
    )
    failure(reader.envmedic("diagnose"), code=2, kind="input", says="none is active")
    failure(reader.envmedic("diagnose", "-n", "a", "-p", "b"), code=2, kind="input", says="not allowed with")


def test_a_text_without_any_environment_is_read_alone(reader: Shell, tmp_path: Path) -> None:
    log = tmp_path / "error.log"
    log.write_text("RuntimeError: operator torchvision::nms does not exist\n", encoding="utf-8")
    done = reader.envmedic("diagnose", "--json", str(log))
    assert done.document["prefix"] is None, done.told()
    assert "no environment is named and none is active: only the text is read" in done.lines
    told = reader.envmedic("diagnose", str(log)).out
    assert "Next: " not in told, "a plan would have no environment to be made for"
    assert "name the environment with -p" in told


def test_a_path_that_is_no_text(reader: Shell) -> None:
    done = reader.envmedic("plan", "--json", "--playbook", "nms-cuda", "-p", os.fsdecode(b"/tmp/\xff"))
    failure(done, code=2, kind="input", says="not valid UTF-8")


@pytest.mark.usefixtures("untouched")
def test_the_environment_is_always_named(reader: Shell, shared: Case, tmp_path: Path) -> None:
    link = tmp_path / "a link é"
    link.symlink_to(shared.prefix)
    for arguments, named in (
        (("-p", str(shared.prefix)), shared.prefix),
        (("-p", str(link)), link),
        (("--python", str(shared.python)), shared.prefix),
    ):
        done = reader.envmedic("diagnose", *arguments)
        assert f"environment: {named}" in done.lines, done.told()
    done = reader.having(VIRTUAL_ENV=str(shared.prefix)).envmedic("diagnose", "--json")
    assert done.document["prefix"] == str(shared.prefix)
    assert "Next: envmedic plan --playbook nms-cuda -p '" in reader.envmedic("diagnose", "-p", str(link)).out


@pytest.mark.parametrize("how", ["dangling", "missing"])
def test_a_python_that_does_not_start(reader: Shell, shared: Case, tmp_path: Path, how: str) -> None:
    prefix = copied(shared, tmp_path / "env")
    for name in (prefix / "bin").glob("python*"):
        name.unlink()
    if how == "dangling":
        (prefix / "bin" / "python").symlink_to(tmp_path / "base-is-gone" / "python3")
    before = state_of(prefix)
    done = reader.envmedic(*REPAIR, "--json", "-p", str(prefix))
    failure(done, code=1, kind="installer", says=f"{python_of(prefix)} does not start")
    told = reader.envmedic("diagnose", "-p", str(prefix))
    assert told.code == 1
    assert "the Python that the environment was made with is gone" in told.out
    assert "Next: envmedic plan --playbook base-python" in told.out
    for wanted in (("--check", "torchvision-nms"), ("--profile", "quick")):
        verified = reader.envmedic("verify", "--json", *wanted, "--no-gpu", "-p", str(prefix))
        failure(verified, code=1, kind="preflight", says="does not start, so nothing can be checked")
    assert reader.envmedic("facts", "--json", "-p", str(prefix)).code == 0
    assert state_of(prefix) == before
    assert not (tmp_path / ".envmedic").exists()


def test_an_environment_without_torch(reader: Shell, tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    before = state_of(prefix)
    done = reader.envmedic(*REPAIR, "--json", "-p", str(prefix))
    failure(done, code=1, kind="no-solution", says="none of it is installed here")
    assert "this one has no torch" in done.err
    healthy = reader.envmedic("apply", "--yes", "--json", "-p", str(prefix))
    assert (healthy.code, healthy.document["verdict"]) == (0, "healthy")
    assert state_of(prefix) == before


def test_torch_alone_is_no_fault(reader: Shell, shared: Case, tmp_path: Path) -> None:
    prefix = copied(shared, tmp_path / "env")
    for folder in site_packages(prefix).glob("torchvision*"):
        shutil.rmtree(folder)
    found = reader.envmedic("diagnose", "--json", "-p", str(prefix)).document["findings"]
    assert all(item["latent"] or item["playbook"] == "moved-environment" for item in found), (
        "copied, and a file is edited"
    )


def test_envmedics_own_environment_is_refused(reader: Shell) -> None:
    done = reader.envmedic(*REPAIR, "--json", "-p", sys.prefix)
    failure(done, code=2, kind="input", says="envmedic itself runs from")


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the system has no Python of its own")
def test_the_systems_python_is_refused_before_anything_is_looked_at(reader: Shell) -> None:
    done = reader.envmedic(*REPAIR, "--json", "-p", "/usr", limit_s=20)
    failure(done, code=1, kind="preflight", says="belongs to the operating system")


def test_protected_environments_need_leave(reader: Shell, shared: Case, tmp_path: Path) -> None:
    prefix = copied(shared, tmp_path / "env")
    (prefix / "pyvenv.cfg").unlink()
    (site_packages(prefix).parent / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    before = state_of(prefix)
    done = reader.envmedic(*REPAIR, "--json", "-p", str(prefix))
    failure(done, code=1, kind="preflight", says="is protected")
    assert "--allow external" in done.document["hint"]
    assert state_of(prefix) == before
