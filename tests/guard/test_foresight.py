"""What guard foresees is what the command then does: both are held against each other on the same environment."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from envmedic.api import guarding
from envmedic.api.context.settings import Settings
from envmedic.model.events import EventStream
from tests.guard.conftest import World, installed
from tests.support.venvs import site_packages, uv

COMMANDS = [
    "pip install alpha",
    "pip install -U alpha",
    "pip install --upgrade --upgrade-strategy=eager alpha",
    "pip install -U alpha beta",
    "pip install 'alpha>=2'",
    "pip install epsilon",
    "pip install --pre epsilon",
    "pip install --no-deps alpha==2.0",
    "pip install -r wanted.txt",
    "pip install -Ur wanted.txt",
    "pip install -c limits.txt -U alpha beta",
    "pip install ./alpha-2.0-py3-none-any.whl",
    "pip install --no-index -f . -U beta",
    "pip install --force-reinstall --no-deps gamma",
    "pip install --only-binary :all: delta",
    "pip uninstall -y beta gamma",
    "pip uninstall -y -r wanted.txt",
    "uv pip install -U alpha",
    "uv pip install alpha==2.0",
    "uv pip install -P alpha alpha",
    "uv pip install --exact alpha",
    "uv pip sync pinned.txt",
    "uv pip uninstall gamma",
]


@pytest.fixture
def files(world: World) -> Path:
    """Files that the commands name, in the directory that they run in."""
    (world.wheels / "wanted.txt").write_text("alpha  # the newest\nbeta<3,>=1\n", encoding="utf-8")
    (world.wheels / "limits.txt").write_text("beta<3\n", encoding="utf-8")
    (world.wheels / "pinned.txt").write_text("alpha==2.0\nbeta==2.0\n", encoding="utf-8")
    return world.wheels


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_does_what_was_foreseen(
    world: World, files: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in set(os.environ) - set(world.shell.environment()):
        monkeypatch.delenv(name)
    for name, value in world.shell.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(files)
    words = shlex.split(command)
    found = guarding.guard(Settings(stream=EventStream([])), world.prefix, words)
    assert found.verdict in {"harmless", "breaks"}, found
    foreseen = {row.name: row.after for row in found.changes}
    prefix, is_uv = world.copied(tmp_path / "env"), words[0] == "uv"
    assert world.carry_out(prefix, *words[2 if is_uv else 1 :], uv=uv() if is_uv else None) == 0
    before, after = installed(world.prefix), installed(prefix)
    really = {name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)}
    again = {name for name, version in foreseen.items() if before.get(name) == version}
    assert {name: version for name, version in foreseen.items() if name not in again} == really, found
    assert bool(again) == ("--force-reinstall" in command)


def test_what_would_fail_is_said_and_fails(world: World, tmp_path: Path) -> None:
    done = world.ask("pip install 'alpha>=3'")
    assert (done.code, done.document["verdict"]) == (1, "fails"), done.told()
    assert "alpha" in done.document["summary"]
    assert world.carry_out(world.copied(tmp_path / "env"), "install", "alpha>=3") != 0


def test_a_release_that_would_be_built_is_not_answered_and_not_built(world: World) -> None:
    built = world.wheels.parent / "index" / "built"
    done = world.ask("pip install delta")
    assert (done.code, done.document["verdict"]) == (1, "unanswered"), done.told()
    assert "delta==2.0" in done.document["summary"]
    assert not built.exists()


def test_a_source_tree_that_must_be_built_to_tell_is_not_answered(world: World, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    trace = tmp_path / "ran"
    (project / "setup.py").write_text(f"open({str(trace)!r}, 'w').close()\n", encoding="utf-8")
    done = world.ask(f"pip install -e {project}")
    assert (done.code, done.document["verdict"]) == (1, "unanswered"), done.told()
    assert not trace.exists()


@pytest.mark.parametrize(
    "command",
    [
        "uv pip install delta",
        "uv pip install --no-binary :all: delta",
        "uv pip install --only-binary :none: delta",
        "uv pip install --build delta",
        "uv pip install --no-build-isolation delta==2.0",
        "uv pip install --reinstall delta==2.0",
        "pip install --no-binary :all: delta",
        "pip install --no-build-isolation delta==2.0",
    ],
)
def test_no_option_of_the_command_lets_the_dry_run_build(world: World, command: str) -> None:
    done = world.ask(command)
    assert (done.code, done.document["verdict"]) == (1, "unanswered"), done.told()
    assert not (world.wheels.parent / "index" / "built").exists()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("pip install --frobnicate alpha", "--frobnicate"),
        ("pip install --target x alpha", "--target"),
        ("uv pip install --frobnicate alpha", "--frobnicate"),
        ("uv pip install --directory x alpha", "--directory"),
        ("uv pip install --prefix x alpha", "--prefix"),
    ],
)
def test_an_option_whose_effect_is_not_known_leaves_no_answer_and_is_named(
    world: World, command: str, option: str
) -> None:
    done = world.ask(command)
    assert (done.code, done.document["verdict"]) == (1, "unanswered"), done.told()
    assert option in done.document["summary"]
    assert done.document["tool"] == command.partition(" ")[0]


def test_programs_of_the_environment_are_not_run_by_uv(world: World, tmp_path: Path) -> None:
    prefix, trace = world.copied(tmp_path / "env"), tmp_path / "ran"
    trap = prefix / "bin" / "git"
    trap.write_text(f"#!/bin/sh\ntouch {trace}\n", encoding="utf-8")
    trap.chmod(0o755)
    path = f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}"
    world.shell.having(PATH=path).envmedic(
        "guard", "--json", "-p", str(prefix), f"pip install 'zeta @ git+file://{tmp_path}/nowhere'"
    )
    assert not trace.exists()


@pytest.mark.parametrize(
    "command",
    [
        "pip install {q}",
        "pip install -e {q}",
        "uv pip install -e {q}[x]",
        "uv pip install -r {q}/setup.py",
        "uv pip install -r {q}/pyproject.toml",
        "uv pip sync {q}/editable.txt",
        "pip install -r {q}/editable.txt",
    ],
)
def test_a_project_that_is_built_to_tell_its_version_is_not_built(world: World, tmp_path: Path, command: str) -> None:
    project, trace = tmp_path / "q", tmp_path / "ran"
    project.mkdir()
    (project / "setup.py").write_text(f"open({str(trace)!r}, 'w').close()\n", encoding="utf-8")
    (project / "pyproject.toml").write_text(
        '[project]\nname = "q"\ndynamic = ["version", "dependencies"]\n[build-system]\nrequires = ["setuptools"]\n',
        encoding="utf-8",
    )
    (project / "editable.txt").write_text(f"--editable={project}\n", encoding="utf-8")
    done = world.ask(command.format(q=project))
    assert (done.code, done.document.get("verdict")) == (1, "unanswered"), done.told()
    assert not trace.exists()


def test_variables_in_front_of_the_command_count(world: World, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = world.ask(f"PIP_INDEX_URL={empty.as_uri()} pip install epsilon")
    assert done.document["verdict"] == "fails", done.told()
    assert world.ask("pip install epsilon").document["verdict"] == "harmless"


def test_constraints_that_the_shell_has_are_kept_by_pip_and_by_the_forecast(world: World, tmp_path: Path) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text("beta<2\n", encoding="utf-8")
    done = world.ask(f"PIP_CONSTRAINT={limits} pip install -U beta")
    assert [(row["name"], row["after"]) for row in done.document["changes"]] == [("beta", "1.5")], done.told()


def test_credentials_are_not_shown(world: World) -> None:
    done = world.ask("pip install --extra-index-url https://user:secret@127.0.0.1:9/simple --no-index alpha")
    assert "secret" not in done.out + done.err
    assert "****@127.0.0.1" in " ".join(done.document["command"])


@pytest.mark.parametrize("command", ["pip install -U alpha", "uv pip sync pinned.txt"])
def test_a_dry_run_starts_no_python_with_the_secrets_of_the_shell(
    world: World, files: Path, tmp_path: Path, command: str
) -> None:
    prefix = world.copied(tmp_path / "env")
    told = tmp_path / "told"
    hook = f"import os; open({str(told)!r}, 'a').write(' '.join(os.environ) + '\\n')\n"
    (site_packages(prefix) / "hook.pth").write_text(hook)
    shell = world.shell.having(MY_NOTES="x", LC_TIME="C", UV_CACHE_DIR=str(tmp_path / "cache"))
    done = shell.envmedic("guard", "--json", "-p", str(prefix), command.replace("pinned", f"{files}/pinned"))
    assert done.code in {0, 1}, done.told()
    asked = [line.split() for line in told.read_text().splitlines()]
    assert any("LC_TIME" in names for names in asked)
    assert not any("MY_NOTES" in names for names in asked)
