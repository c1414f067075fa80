"""Commands in the directory of a project whose environment nobody named or activated."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.cli import main as main_module
from tests.cli.support import Shell, copied, failure
from tests.cli.test_projects import run_uv
from tests.envs.nms_cuda.case import Case
from tests.support.venvs import site_packages

LOG = "Traceback (most recent call last):\nRuntimeError: operator torchvision::nms does not exist\n"
CRASH = "Fatal Python error: Segmentation fault\n  File x/site-packages/torchvision/_meta.py\nSegmentation fault\n"
PLAN = ("plan", "--playbook", "nms-cuda", "--no-gpu")
READERS = (
    ("facts",),
    ("diagnose",),
    ("diagnose", "{crash}"),
    ("diagnose", "--playbook", "import-order-crash"),
    PLAN,
    ("check", "torchvision"),
    ("guard", "--", "pip", "install", "-U", "torchvision"),
    ("lock", "--allow-incomplete"),
    ("lock", "--format", "requirements", "--fetch-hashes", "--allow-incomplete"),
    ("history",),
    ("envs",),
    ("apply", "--playbook", "nms-cuda", "--no-gpu", "--dry-run"),
    ("apply", "--playbook", "nms-cuda", "--no-gpu", "--yes"),
    ("verify", "--no-gpu"),
    ("undo", "--yes"),
    ("recover",),
    ("prune", "--yes"),
    ("diagnose", "--reproduce", "--", "python", "-c", "import torchvision"),
)
"""Every command that works on an environment."""
STARTING = (
    ("facts",),
    ("diagnose",),
    PLAN,
    ("guard", "--", "pip", "install", "-U", "torchvision"),
    ("verify", "--no-gpu"),
)
"""Those that start the interpreter of a named one."""


class Checkout:
    """A project with a prepared environment; whatever runs there leaves a file in `ran`."""

    def __init__(self, shared: Case, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.ran = folder / "ran"
        self.folder.mkdir()
        self.ran.mkdir()
        self.venv = copied(shared, self.folder / ".venv")
        (self.folder / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n', encoding="utf-8")
        (self.folder / "error.log").write_text(LOG, encoding="utf-8")
        (self.folder / "crash.log").write_text(CRASH, encoding="utf-8")

    def told(self, name: str) -> str:
        """Python code that leaves the file `name`, with what is there before any library."""
        return f"import posix; posix.close(posix.open({str(self.ran / name)!r}, posix.O_CREAT | posix.O_WRONLY))"

    def program(self, path: Path) -> None:
        """A script that leaves a file with its name."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n: > {self.ran}/{path.name}\nexit 0\n", encoding="utf-8")
        path.chmod(0o755)

    def words(self, command: tuple[str, ...]) -> list[str]:
        """The command with the logs of the project."""
        return [item.format(log=self.folder / "error.log", crash=self.folder / "crash.log") for item in command]

    def found(self) -> set[str]:
        """What ran."""
        return {path.name for path in self.ran.iterdir()}


@pytest.fixture
def checkout(shared: Case, tmp_path: Path) -> Checkout:
    """A project that is cloned as it is."""
    return Checkout(shared, tmp_path)


def packages(project: Checkout) -> None:
    """Code in site-packages, in programs, and in what activation names."""
    site = site_packages(project.venv)
    (site / "first.pth").write_text(f"{project.told('pth')}\n", encoding="utf-8")
    (site / "sitecustomize.py").write_text(f"{project.told('sitecustomize')}\n", encoding="utf-8")
    for package in ("torch", "torchvision"):
        file = site / package / "__init__.py"
        file.write_text(f"{project.told(package)}\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    names = ("nvcc", "gcc", "g++", "cc", "c++", "ninja", "uv", "git", "keyring", "conda", "pip", "nvidia-smi")
    for name in names:
        project.program(project.venv / "bin" / name)
    project.program(project.folder / "cuda" / "bin" / "nvcc")
    with (project.venv / "bin" / "activate").open("a", encoding="utf-8") as activate:
        activate.write(f"export CUDA_HOME={project.folder}/cuda\nexport CC={project.venv}/bin/gcc\nexport CXX=g++\n")


def library(folder: Path, code: str) -> Path:
    """A prepared standard library, and the directory of programs above which Python looks for it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (folder / "lib" / version / "os.py", folder / "lib" / version / "encodings" / "__init__.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{code}\n", encoding="utf-8")
    (folder / "lib" / version / "lib-dynload").mkdir()
    (folder / "bin").mkdir()
    return folder / "bin"


def home(project: Checkout) -> None:
    """pyvenv.cfg leads a Python of the host to a prepared standard library."""
    base = library(project.folder / "base", project.told("home"))
    (base / "python").symlink_to(sys.executable)
    (project.venv / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3.11.0\n", encoding="utf-8")


def search_path(project: Checkout) -> None:
    """A file beside the interpreter states where Python looks for modules."""
    base = library(project.folder / "base", project.told("_pth"))
    (project.venv / "bin" / "python._pth").write_text(f"{base.parent}/lib/python3.11\n", encoding="utf-8")


def script(project: Checkout) -> None:
    """The interpreter is a script."""
    for path in (project.venv / "bin").glob("python*"):
        path.unlink()
    for name in ("python", "python3"):
        project.program(project.venv / "bin" / name)


def link(project: Checkout) -> None:
    """The interpreter is a link into the project."""
    project.program(project.folder / "base" / "bin" / "python3.11")
    for path in (project.venv / "bin").glob("python*"):
        path.unlink()
    (project.venv / "bin" / "python").symlink_to(project.folder / "base" / "bin" / "python3.11")


def gone(project: Checkout) -> None:
    """The interpreter is a dangling link, and pyvenv.cfg says where the former one was."""
    link(project)
    (project.venv / "bin" / "python").unlink()
    (project.venv / "bin" / "python").symlink_to("/nonexistent/python3.11")
    text = f"home = {project.folder}/base/bin\nversion = 3.11.0\n"
    (project.venv / "pyvenv.cfg").write_text(text, encoding="utf-8")


def tool(project: Checkout) -> None:
    """The interpreter is a link to another program of the host."""
    for path in (project.venv / "bin").glob("python*"):
        path.unlink()
    shell = project.ran.parent / "sh"  # as the system's, and told when it is started
    project.program(shell)
    (project.venv / "bin" / "python").symlink_to(shell)


@pytest.mark.long
@pytest.mark.parametrize(
    "trap", [packages, home, search_path, script, link, gone, tool], ids=lambda item: item.__name__
)
def test_nothing_of_a_checkout_runs(reader: Shell, checkout: Checkout, trap: Callable[[Checkout], None]) -> None:
    trap(checkout)
    for command in READERS if trap is packages else STARTING:
        done = reader.envmedic(*checkout.words(command), folder=checkout.folder)
        assert not checkout.found(), f"{command}: {done.told()}"
        assert "bug of envmedic" not in done.err, done.told()
    assert not (checkout.folder / ".envmedic").exists()


def test_the_traps_are_none_of_paper(reader: Shell, checkout: Checkout) -> None:
    packages(checkout)
    for command in (READERS[0], PLAN):
        reader.envmedic(*checkout.words(command), "-p", str(checkout.venv))
    assert {"pth", "nvcc", "gcc"} <= checkout.found()
    home(checkout)
    reader.envmedic("facts", "-p", str(checkout.venv))
    assert "home" in checkout.found()


def test_a_project_of_uv_is_diagnosed_and_planned_without_activation(
    reader: Shell, shared: Case, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(shared.prefix, folder / ".venv", symlinks=True)
    (folder / "src").mkdir()
    log = folder / "error.log"
    log.write_text(LOG, encoding="utf-8")
    done = reader.envmedic("diagnose", "--json", str(log), folder=folder / "src")
    assert f"environment: {folder}/.venv (that of this project; none is named or active)" in done.lines, done.told()
    found = done.document
    assert found["prefix"] == str(folder / ".venv")
    python = found["facts"]["environment"]["interpreter"]
    assert (python["named"], python["answers"]) == (False, os.path.realpath(sys.executable))
    named = reader.envmedic("facts", "--json", "-p", str(folder / ".venv")).document["environment"]["interpreter"]
    assert {**python, "named": True, "answers": None} == named
    assert "nms-cuda" in {item["playbook"] for item in found["findings"]}
    planned = reader.envmedic("plan", "--json", "--log", str(log), "--no-gpu", folder=folder / "src")
    assert planned.code == 0, planned.told()
    told = reader.envmedic("plan", "--log", str(log), "--no-gpu", folder=folder / "src")
    assert f"-p {folder}/.venv" in told.out.rpartition("To carry it out")[2]


def test_a_named_or_active_one_wins(reader: Shell, shared: Case, checkout: Checkout) -> None:
    active = reader.having(VIRTUAL_ENV=str(shared.prefix)).envmedic("facts", "--json", folder=checkout.folder)
    assert active.document["environment"]["prefix"] == str(shared.prefix)
    named = reader.envmedic("facts", "--json", "-p", str(shared.prefix), folder=checkout.folder)
    assert named.document["environment"]["interpreter"]["named"] is True


def test_several_are_named_in_the_hint(reader: Shell, shared: Case, checkout: Checkout) -> None:
    copied(shared, checkout.folder / "venv")
    done = reader.envmedic("facts", folder=checkout.folder)
    failure(done, code=2, kind="input", says=f"-p {checkout.folder}/.venv or -p {checkout.folder}/venv")


def test_the_place_that_uv_is_told_wins(reader: Shell, shared: Case, checkout: Checkout) -> None:
    copied(shared, checkout.folder / "other")
    done = reader.having(UV_PROJECT_ENVIRONMENT="other").envmedic("facts", "--json", folder=checkout.folder)
    assert done.document["environment"]["prefix"] == str(checkout.folder / "other"), done.told()


def test_files_alone_are_read_until_it_is_named(reader: Shell, checkout: Checkout) -> None:
    script(checkout)
    done = reader.envmedic("diagnose", str(checkout.folder / "error.log"), folder=checkout.folder)
    assert "its files alone are read" in done.err
    assert "torchvision" in done.out
    planned = reader.envmedic(*checkout.words(PLAN), folder=checkout.folder)
    failure(planned, code=2, kind="input", says=f"-p {checkout.venv}")
    facts = reader.envmedic("facts", "--json", folder=checkout.folder).document["environment"]["interpreter"]
    assert (facts["starts"], facts["answers"]) == (True, None)
    assert facts["version"] == ".".join(map(str, sys.version_info[:3]))


def test_what_runs_its_code_wants_it_named(reader: Shell, checkout: Checkout) -> None:
    for command in (("verify", "--no-gpu"), ("apply", "--yes"), ("undo", "--yes"), ("prune", "--yes")):
        done = reader.envmedic(*command, "--json", folder=checkout.folder)
        failure(done, code=3, kind="confirmation-needed", says=f"Name it: -p {checkout.venv}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_one_of_another_user_is_not_taken(reader: Shell, checkout: Checkout) -> None:
    os.chown(checkout.venv, 12345, 12345)
    done = reader.envmedic("facts", folder=checkout.folder)
    failure(done, code=2, kind="input", says="can be changed by others than you and root")


def test_one_that_others_can_exchange_is_not_taken(reader: Shell, checkout: Checkout) -> None:
    checkout.folder.chmod(0o777)
    done = reader.envmedic("facts", folder=checkout.folder)
    failure(done, code=2, kind="input", says="can be changed by others than you and root")


@pytest.mark.parametrize("tool_name", ["poetry", "pdm"])
def test_an_environment_in_a_project_of_poetry_or_pdm(reader: Shell, checkout: Checkout, tool_name: str) -> None:
    (checkout.folder / "pyproject.toml").write_text(f'[tool.{tool_name}]\nname = "shop"\n', encoding="utf-8")
    done = reader.envmedic("facts", "--json", folder=checkout.folder)
    assert done.document["environment"]["project"]["tool"] == tool_name, done.told()


def test_a_real_project_of_uv(reader: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.10"\n', encoding="utf-8"
    )
    run_uv(folder, "sync")
    done = reader.envmedic("facts", "--json", folder=folder)
    found = done.document["environment"]
    assert (found["prefix"], found["kind"], found["project"]["tool"]) == (str(folder / ".venv"), "uv", "uv")
    assert found["interpreter"]["answers"] == os.path.realpath(sys.executable)


def test_an_environment_without_a_command_opens_the_ui_there_and_needs_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def ui(_settings: object, _options: object, place: str) -> int:
        opened.append(place)
        return 0

    monkeypatch.setattr(main_module, "_in_terminal", lambda: True)
    for words in (["-p", "/an/env"], ["--prefix", "/an/env"], ["--prefix=/an/env"]):
        assert main_module.main(words, ui=ui) == 0
    assert opened == ["/an/env"] * 3
    monkeypatch.setattr(main_module, "_in_terminal", lambda: False)
    assert main_module.main(["-p", "/an/env"], ui=ui) == 2
    assert "envmedic diagnose -p /an/env" in capsys.readouterr().err
