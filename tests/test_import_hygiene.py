"""What starts quickly stays quick: heavy libraries are loaded by the commands that need them, torch by none."""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import envmedic

ROOT = Path(envmedic.__file__).resolve().parent.parent
PACKAGE = ROOT / "envmedic"
SAMPLE = ROOT / "tests" / "envs" / "nms_cuda" / "sample_operator_does_not_exist.log"
HEAVY = (
    "textual", "conda_lock", "rattler", "pynvml", "urllib3", "jsonschema", "ruamel", "sh", "torch", "torchvision", "numpy",
)  # fmt: skip
RUN = """
import json, os, sys
from envmedic.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.stdout.flush()
os.write(3, json.dumps(sorted({name.partition('.')[0] for name in sys.modules})).encode())
"""
PROGRAM = "import sys; from envmedic.__main__ import program; sys.argv[0] = 'envmedic'; sys.exit(program())"


def loaded(home: Path, *arguments: str) -> set[str]:
    """Top-level modules that a run of the command line has loaded at its end."""
    ours, theirs = os.pipe()
    command = f'exec 3>&{theirs}; exec "$@"'
    variables = {**os.environ, "XDG_CACHE_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    try:
        subprocess.run(
            ["bash", "-c", command, "bash", sys.executable, "-c", RUN, *arguments],
            pass_fds=[theirs], stdout=subprocess.DEVNULL, check=True, env=variables, cwd=ROOT,
        )  # fmt: skip
    finally:
        os.close(theirs)
    with os.fdopen(ours) as file:
        return set(json.load(file))


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("apply", "--help")])
def test_help_and_version_load_next_to_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert loaded(tmp_path, *arguments) & {*HEAVY, "re2"} == set()


def times(*arguments: str) -> set[str]:
    """Every module that the program loads, as ``-X importtime`` tells on stderr."""
    argv = [sys.executable, "-S", "-X", "importtime", "-c", PROGRAM, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_the_version_loads_no_parser_and_help_nothing_but_one() -> None:
    assert times("--version") & {"argparse", "re", "enum", "typing", "envmedic.cli"} == set()
    for arguments in (("--help",), ("plan", "--help")):
        found = times(*arguments)
        assert "argparse" in found
        assert found & {"typing", "contextlib", "shutil", "threading", "shlex", "dataclasses", "msgspec"} == set()


def test_a_diagnosis_of_a_text_loads_no_heavy_library(tmp_path: Path) -> None:
    loaded(tmp_path, "diagnose", "--log-only", str(SAMPLE))  # reads the playbooks, and keeps what it read
    found = loaded(tmp_path, "diagnose", "--log-only", str(SAMPLE))
    assert found & set(HEAVY) == set()
    assert "re2" in found


def imports(path: Path) -> Iterator[str]:
    """Top-level names that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_torch_is_imported_by_the_kernels_alone() -> None:
    importers = {path for path in PACKAGE.rglob("*.py") if {"torch", "torchvision"} & set(imports(path))}
    assert importers
    assert {path.relative_to(PACKAGE).parts[0] for path in importers} == {"kernels"}


def test_the_terminal_ui_alone_imports_textual() -> None:
    importers = {
        path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if "textual" in set(imports(path))
    }
    assert importers == {"tui"}


def test_the_first_frame_needs_no_engine_and_no_heavy_library(tmp_path: Path) -> None:
    program = "import sys, envmedic.tui.app\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    names = set(done.stdout.split())
    assert "textual" in names
    assert {
        "conda_lock",
        "rattler",
        "pynvml",
        "urllib3",
        "jsonschema",
        "ruamel",
        "sh",
        "re2",
        "torch",
        "packaging.requirements",  # 5 ms, of use once an environment is read
        "envmedic.render.progress.result",
    } & names == set()
    assert {
        name for name in names if name.startswith(("envmedic.engine", "envmedic.probe", "envmedic.planner"))
    } == set()


def test_no_module_loads_torch_or_the_terminal_ui_when_imported(tmp_path: Path) -> None:
    names = [
        item.name
        for item in pkgutil.walk_packages([str(PACKAGE)], "envmedic.")
        if not item.name.startswith(
            ("envmedic.kernels", "envmedic.__main__", "envmedic.engine.stage.namespace_helper", "envmedic.tui")
        )
    ]
    assert "envmedic.cli.commands.repair" in names
    program = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\n"
    program += "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program, *names], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert {"torch", "torchvision", "numpy", "textual", "conda_lock", "rattler", "pynvml"} & set(
        done.stdout.split()
    ) == set()
