"""The core alone: facts, diagnoses, explanations and runs work, and everything else says what to install."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import uv as uv_package

from envmedic import __version__
from envmedic.errors import REPAIR_PACKAGES
from tests.envs.nms_cuda import case as nms_cuda
from tests.install.core import LIMIT_BYTES, make_core, sizes, table
from tests.install.rooms import LOG
from tests.support.venvs import make_venv, python_of, site_packages, uv

OF_REPAIR = (
    "envmedic.agents.answers",
    "envmedic.agents.server",
    "envmedic.tui",
    "envmedic.installers.conda",
    "envmedic.render.cells",
    "envmedic.render.pages",
    "envmedic.render.progress",
)
"""Packages whose modules may import those of the extra `repair` at their top."""
IMPORT_ALL = """
import importlib, json, pkgutil, envmedic
absent = {}
for module in pkgutil.walk_packages(envmedic.__path__, "envmedic.", onerror=lambda name: None):
    if not module.name.startswith(("envmedic.kernels.", "envmedic.__main__", "envmedic.engine.stage.namespace_helper")):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            absent[module.name] = error.name
print(json.dumps(absent))
"""
"""Kernels run in other environments; two modules are scripts."""


@pytest.fixture(scope="module")
def core(packages: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of an environment with the core."""
    return make_core(tmp_path_factory.mktemp("core") / "venv", packages[0])


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """Variables of a user who has nothing, on PATH neither."""
    (tmp_path / "bin").mkdir()
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), "TERM": "xterm", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return make_venv(tmp_path / "env")


def ran(core: Path, variables: dict[str, str], *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    argv = [str(core / "bin" / "envmedic"), *arguments]
    return subprocess.run(
        argv, env=variables, cwd=variables["HOME"], input=stdin, capture_output=True, text=True, check=False
    )


def test_its_size(core: Path) -> None:
    sys.stdout.write(table(core))
    found = sizes(core)
    assert set(found) & {"uv", "py-rattler", "conda-lock", "textual", "jsonschema", "pip"} == set()
    assert sum(found.values()) <= LIMIT_BYTES, table(core)


def test_every_module_of_the_core_is_imported(core: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(
        [python_of(core), "-I", "-c", IMPORT_ALL], env=variables, capture_output=True, text=True, check=True
    )
    absent = json.loads(done.stdout)
    assert {name: why for name, why in absent.items() if not name.startswith(OF_REPAIR)} == {}
    assert {name.partition(".")[0] for name in absent.values()} <= {
        *REPAIR_PACKAGES,
        "anyio",  # which comes with mcp, as pydantic does
        "rich",  # which comes with Textual
        "typing_extensions",
    }


def test_it_helps_and_explains(core: Path, variables: dict[str, str]) -> None:
    assert "Examples:" in ran(core, variables, "--help").stdout
    assert "NumPy" in ran(core, variables, "explain", "numpy-abi").stdout
    listed = json.loads(ran(core, variables, "playbooks", "list", "--json").stdout)
    assert len(listed["playbooks"]) > 50


def test_it_diagnoses_a_log_and_an_environment(core: Path, variables: dict[str, str], prefix: Path) -> None:
    found = ran(core, variables, "diagnose", "--log-only", "-", "--json", stdin=LOG)
    assert (found.returncode, json.loads(found.stdout)["findings"][0]["playbook"]) == (1, "nms-cuda")
    found = ran(core, variables, "diagnose", "-p", str(prefix), "--json")
    assert (found.returncode, json.loads(found.stdout)["verdict"]) == (0, "healthy")
    found = ran(core, variables, "facts", "-p", str(prefix), "--json")
    assert json.loads(found.stdout)["environment"]["prefix"] == str(prefix)


def test_a_new_home_validates_no_playbook(core: Path, variables: dict[str, str], tmp_path: Path) -> None:
    """The wheel holds them compiled; the literals that a text is searched for are worked out."""
    ran(core, variables, "diagnose", "--log-only", "-", "--json", stdin=LOG)
    assert [path.name for path in (tmp_path / ".cache" / "envmedic").iterdir()] == ["derived"]


def test_it_runs_a_program_and_diagnoses_its_end(core: Path, variables: dict[str, str], prefix: Path) -> None:
    program = f"raise {LOG.partition(':')[0]}({LOG.partition(': ')[2].strip()!r})"
    done = ran(core, variables, "run", "-p", str(prefix), "--", str(python_of(prefix)), "-c", program)
    assert done.returncode == 1
    assert "torchvision::nms" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("apply", "--playbook", "nms-cuda", "--yes"),
        ("check", "torch>=2.7"),
        ("guard", "pip install torch"),
        ("lock",),
        ("lock", "--format", "conda-lock"),
    ],
)
def test_what_needs_more_says_what_to_install(
    core: Path, variables: dict[str, str], prefix: Path, arguments: Sequence[str]
) -> None:
    done = ran(core, variables, *arguments[:1], "-p", str(prefix), *arguments[1:])
    assert done.returncode == 1
    lines = done.stderr.splitlines()[-4:]
    assert lines[0].startswith("error: ")
    assert lines[0].endswith(" is not installed beside envmedic")
    assert lines[1:] == [
        "  cause: The extra `repair` has it: uv, and what conda environments, conda-lock.yml and the terminal UI need",
        "  hint: Install them: pip install 'envmedic[repair]', or: uv tool install 'envmedic[repair]'",
        "  The environment is unchanged",
    ]


def test_with_a_uv_on_path_it_answers_repairs_and_undoes(core: Path, tmp_path: Path) -> None:
    """What `uvx envmedic` is: the core, beside the uv that started it."""
    case = nms_cuda.build(tmp_path / "case")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").symlink_to(uv())
    variables = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), "LC_ALL": "C.UTF-8", **case.index_variables()}
    where = ("-p", str(case.prefix))
    assert ran(core, variables, "check", *where, "numpy>=1.20").returncode == 0
    guarded = ran(core, variables, "guard", *where, "pip install numpy==1.26.4", "--json")
    assert json.loads(guarded.stdout)["verdict"] == "harmless"
    (tmp_path / "error.log").write_text(LOG)
    done = ran(core, variables, "apply", *where, "--log", str(tmp_path / "error.log"), "--yes", "--no-gpu", "--json")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "repaired")
    assert ran(core, variables, "undo", *where, "--yes").returncode == 0


def test_a_uv_that_is_too_old_is_told(core: Path, variables: dict[str, str], prefix: Path, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "uv"
    old.write_text("#!/bin/sh\necho 'uv 0.4.30 (abc 2024-11-04)'\n")
    old.chmod(0o755)
    done = ran(core, variables, "check", "-p", str(prefix), "numpy")
    assert done.returncode == 1
    assert f"{old} is uv 0.4.30, and envmedic needs 0.9.9 or newer" in done.stderr


def test_what_is_missing_is_offered_on_a_terminal_and_a_no_ends_it(
    core: Path, variables: dict[str, str], prefix: Path, tmp_path: Path
) -> None:
    code, shown = dialogue(core, variables, ["check", "-p", str(prefix), "numpy"], b"n\n")
    assert code == 1
    assert b"Put the packages of the extra `repair` into " in shown
    assert b"uv is not installed beside envmedic" in shown
    assert not (tmp_path / ".local").exists()


@pytest.mark.long
def test_an_install_that_fails_leaves_nothing(
    core: Path, variables: dict[str, str], prefix: Path, tmp_path: Path
) -> None:
    nowhere = variables | {"PIP_NO_INDEX": "1"}
    code, shown = dialogue(core, nowhere, ["check", "-p", str(prefix), "numpy"], b"y\n")
    assert code == 1
    assert b"The packages of the extra `repair` could not be installed" in shown
    assert list((tmp_path / ".local" / "share" / "envmedic").iterdir()) == []


def test_a_command_goes_on_where_the_rest_is(
    core: Path, variables: dict[str, str], prefix: Path, tmp_path: Path, packages: tuple[Path, ...]
) -> None:
    whole = make_core(tmp_path / ".local" / "share" / "envmedic" / f"repair-{__version__}", packages[0])
    shutil.copytree(Path(uv_package.__file__).parent, site_packages(whole) / "uv")
    (whole / "bin" / "uv").symlink_to(uv())
    done = ran(core, variables, "check", "-p", str(prefix), "numpy", "--offline", "--json")
    assert f"going on with {whole / 'bin' / 'python'}" in done.stderr
    assert json.loads(done.stdout)["schema"] == "envmedic.check/1"


def test_an_environment_is_not_begun(core: Path, variables: dict[str, str], tmp_path: Path) -> None:
    done = ran(core, variables, "create", "--lock", "pylock.toml", "-p", str(tmp_path / "new"), "--json")
    error = json.loads(done.stdout)
    assert (error["code"], error["environment"], done.returncode) == ("repair-package-missing", "unchanged", 1)
    assert not (tmp_path / "new").exists()


def test_the_terminal_ui_says_it_too(core: Path, variables: dict[str, str]) -> None:
    code, shown = dialogue(core, variables, [], b"n\n")
    assert code == 1
    assert b"textual is not installed beside envmedic" in shown
    assert b"uv tool install 'envmedic[repair]'" in b" ".join(shown.split())  # a terminal wraps it


def dialogue(core: Path, variables: dict[str, str], words: list[str], answer: bytes) -> tuple[int, bytes]:
    """Run a command on a terminal, with what is typed there; return its exit code and what it shows."""
    ours, theirs = pty.openpty()
    try:
        program = subprocess.Popen(
            [core / "bin" / "envmedic", *words], env=variables, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        os.write(ours, answer)
        shown = bytearray()
        while chunk := _read(ours):
            shown += chunk
        return program.wait(), bytes(shown)
    finally:
        os.close(ours)


def _read(terminal: int) -> bytes:
    """What the program shows next; nothing once it has ended."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
