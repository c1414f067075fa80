"""Installers' own commands behind envmedic: run in a clone, checked, and taken back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from envmedic.cli.main import parse
from envmedic.errors import InputError
from envmedic.planner.guard.installer_commands import read
from tests.cli.support import failure
from tests.installs.conftest import Place
from tests.support.venvs import editable_project, python_of, uv


def test_an_install_takes_the_environments_place_and_undo_brings_every_byte_back(place: Place) -> None:
    before = place.state()
    done = place.run("pip", "--json", "install", "tool-a")
    assert done.code == 0, done.told()
    record = done.document
    assert (record["outcome"], record["environment"], record["state"]) == ("installed", "installed", "done")
    assert (record["plan"]["purpose"], record["plan"]["text"]) == ("install", "pip install tool-a")
    assert place.imports("tool_a")
    assert place.version("six") == "1.17.0"
    (generation,) = place.history()
    assert generation["text"] == "pip install tool-a"
    assert generation["changes"] == ["six 1.16.0 -> 1.17.0", "install tool-a 1.0"]
    assert place.run("undo", "--yes").code == 0
    assert place.state() == before


def test_uv_installs_too_and_neither_asks_nor_names_what_is_harmless(place: Place) -> None:
    before = place.state()
    done = place.run("uv", "pip", "install", "lazy", "tool-b==1.0")
    assert done.code == 0, done.told()
    assert "installed and checked" in done.out
    assert "+ lazy==1.0" in done.err, "what the installer says is shown"
    assert "in the cache of uv, where undo does not reach" in done.out
    assert place.imports("lazy, tool_b")
    assert place.run("undo", "--yes").code == 0
    assert place.state() == before


def test_what_is_foreseen_to_break_is_not_begun_and_done_with_force(place: Place) -> None:
    before = place.state()
    done = place.run("pip", "install", "-U", "tokenizers")
    failure(done, code=1, kind="repair-declined", says="transformers 4.40.0")
    assert "--force" in done.err
    assert place.state() == before
    assert place.history() == []
    done = place.run("pip", "--force", "install", "-U", "tokenizers")
    assert done.code == 0, done.told()
    assert "Worse than before: pip-check: " in done.out
    assert place.version("tokenizers") == "0.22.0"
    assert place.run("undo", "--yes").code == 0
    assert place.state() == before


def test_what_only_the_checks_see_leaves_the_environment_as_it_was(place: Place) -> None:
    before = place.state()
    done = place.run("pip", "--json", "install", "-U", "protobuf")
    assert done.code == 4, done.told()
    record = done.document
    assert (record["state"], record["environment"], record["failure"]["code"]) == (
        "aborted",
        "unchanged",
        "checks-failed",
    )
    assert "import onnx" in record["failure"]["cause"]
    assert "Descriptors cannot be created" in str(record["checks_after"])
    assert place.state() == before


def test_a_command_that_fails_says_so_in_its_own_words(place: Place) -> None:
    before = place.state()
    done = place.run("pip", "install", "torchvison")
    assert done.code == 1, done.told()
    assert "No matching distribution found for torchvison" in done.out
    assert f"Did you mean torchvision? `envmedic pip -p {place.prefix} install torchvision`" in done.out
    assert place.state() == before


def test_what_is_there_already_makes_no_generation(place: Place) -> None:
    before = place.state()
    done = place.run("pip", "install", "six")
    assert done.code == 0, done.told()
    assert "all of it is there already" in done.out
    assert place.state() == before
    assert [item["kept"] for item in place.history()] == [False]


def test_an_uninstall_misses_no_import_that_it_removes(place: Place) -> None:
    before = place.state()
    done = place.run("pip", "uninstall", "pillow")
    assert done.code == 0, done.told()
    assert not place.imports("pillow")
    assert place.run("undo", "--yes").code == 0
    assert place.state() == before
    done = place.run("pip", "uninstall", "-y", "numpy")
    assert (done.code, place.state()) == (1, before), done.told()


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (("pip", "instal", "six"), "did you mean 'install'?", "`envmedic pip install six`"),
        (("uv", "pip", "instll", "-U", "six"), "did you mean 'pip install'?", "`envmedic uv pip install -U six`"),
        (("pipp", "install", "six"), "did you mean pip?", "envmedic --help"),
        (("pip", "list"), "changes no environment", "without envmedic"),
        (("pip", "install", "--user", "six"), "another place", "undo` would not reach"),
        (("pip", "install", "--dry-run", "six"), "changes nothing", "envmedic guard -- pip install --dry-run six"),
        (
            ("uv", "add", "--dev", "six"),
            "lie outside of the environment",
            "`uv add --no-sync --dev six`, then `envmedic uv sync`",
        ),
        (("poetry", "add", "six"), "is not run in a copy", "`envmedic snapshot` before it"),
        (("mamba", "install", "six"), "is not run in a copy", "`conda` in its place"),
        (("conda", "install", "six"), "is no conda environment", "-p PREFIX or -n NAME"),
        (("uv", "sync"), "is not the environment of the project here", "Go to its directory"),
    ],
)
def test_mistakes_are_told_with_the_next_step(template: Place, words: tuple[str, ...], says: str, hint: str) -> None:
    done = template.run(*words)
    assert done.code == 2, done.told()
    assert says in done.err
    assert hint in done.err
    assert template.history() == []


def test_programs_that_run_from_it_are_asked_about_and_named_for_a_restart(place: Place) -> None:
    kernel = subprocess.Popen([str(python_of(place.prefix)), "-c", "import time; print(flush=True); time.sleep(600)"],
                              stdout=subprocess.PIPE)  # fmt: skip
    try:
        assert kernel.stdout is not None
        kernel.stdout.readline()
        done = place.run("pip", "install", "tool-b")
        failure(done, code=6, kind="busy", says=str(kernel.pid))
        assert "--allow in-use" in done.err
        done = place.run("pip", "--allow", "in-use", "install", "tool-b")
        assert done.code == 0, done.told()
        assert f"Restart what runs with the old files: {kernel.pid} " in done.out
    finally:
        kernel.kill()
        kernel.communicate()


@pytest.mark.long
def test_files_from_the_directory_and_editable_projects_are_found_and_their_traces_named(
    place: Place, tmp_path: Path
) -> None:
    project = editable_project(tmp_path / "mine", "my-project")
    (tmp_path / "requirements.txt").write_text("tool-b\n")
    done = place.run(
        "pip", "install", "--no-build-isolation", "-r", "requirements.txt", "-e", "./mine", folder=tmp_path
    )
    assert done.code == 0, done.told()
    assert place.imports("my_project, tool_b")
    assert str(project / "built by hand") not in done.out
    done = place.run("undo", "--yes")
    assert done.code == 0, done.told()
    assert not place.imports("my_project")


def test_what_a_build_leaves_in_the_project_is_named(place: Place, tmp_path: Path) -> None:
    project = editable_project(tmp_path / "mine", "my-project")
    backend = project / "backend.py"
    backend.write_text(backend.read_text() + "\nos.makedirs('build', exist_ok=True)\n")
    done = place.run("pip", "install", "--no-build-isolation", "-e", "mine", folder=tmp_path)
    assert done.code == 0, done.told()
    assert f"where undo does not reach: {project / 'build'}" in done.out


@pytest.mark.long
def test_the_program_or_an_option_names_the_environment(place: Place, template: Place) -> None:
    for words in (
        (str(place.prefix / "bin" / "pip"), "install", "tool-b"),
        (str(python_of(place.prefix)), "-m", "pip", "uninstall", "-y", "tool-b"),
        ("pip3", "-p", str(place.prefix), "install", "tool-b"),
    ):
        done = template.run(*words)
        assert done.code == 0, done.told()
        assert place.imports("tool_b") == ("install" in words)
    assert not template.imports("tool_b")


@pytest.mark.long
@pytest.mark.parametrize("tool", [("pip",), ("uv", "pip")])
@pytest.mark.parametrize("staging", ["namespace", "relocate"])
def test_scripts_run_in_place_however_the_command_saw_the_clone(
    place: Place, staging: str, tool: tuple[str, ...]
) -> None:
    before = place.state()
    first, *rest = tool
    done = place.run(f"!{first}", "--staging", staging, *rest, "install", "tool-c")
    assert done.code == 0, done.told()
    script = place.prefix / "bin" / "tool-c"
    said = subprocess.run([str(script)], check=True, capture_output=True, text=True, timeout=600).stdout
    assert said.strip() == str(place.prefix)
    assert ".envmedic" not in script.read_text()
    assert place.run("undo", "--yes").code == 0
    assert place.state() == before


def test_secrets_in_the_command_line_are_kept_nowhere(place: Place) -> None:
    done = place.run("pip", "install", "--extra-index-url", "https://me:hunter2@127.0.0.1:9/simple", "--timeout", "1",
                     "--retries", "0", "tool-b==1.0", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(place.wheels))  # fmt: skip
    noted = place.run("snapshot", "-m", "before https://me:hunter2@127.0.0.1:9/simple with token=hunter2")
    assert noted.code == 0, noted.told()
    assert "hunter2" not in done.out + done.err + noted.out + place.run("history").out
    kept = (path for path in (place.prefix.parent / ".envmedic").rglob("*.json*") if path.is_file())
    assert not [path for path in kept if b"hunter2" in path.read_bytes()]


def test_modules_in_the_working_directory_are_not_run(place: Place, tmp_path: Path) -> None:
    for name in ("pip", "importlib", "runpy", "six"):
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\nraise SystemExit(9)\n"
        )
    done = place.run("pip", "install", "tool-a", folder=tmp_path)
    assert done.code == 0, done.told()
    assert not (tmp_path / "ran").exists()


def test_a_snapshot_before_pip_by_hand_comes_back(place: Place) -> None:
    before = place.state()
    done = place.run("snapshot", "-m", "before the demo")
    assert done.code == 0, done.told()
    assert place.state() == before | {name: entry for name, entry in place.state().items() if "envmedic-tx" in name}
    place.by_hand("install", "-q", "--no-deps", "-U", "numpy", "six", "tool-b")
    assert not place.imports("scipy")
    assert "snapshot: before the demo" in place.run("history").out
    assert place.run("undo", "--yes").code == 0
    assert place.state() == before


@pytest.mark.long
def test_uv_sync_runs_in_a_clone_and_writes_no_lock(tmp_path: Path, template: Place) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    text = '[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["six==1.16.0", "pillow"]\n'
    (project / "pyproject.toml").write_text(text)
    variables = template.shell.environment()
    subprocess.run([uv(), "sync", "-q"], cwd=project, env=variables, check=True, timeout=600)
    prefix = project / ".venv"
    here = Place(prefix, template.index, template.wheels, template.shell)
    before = here.state()
    (project / "pyproject.toml").write_text(text.replace('"six==1.16.0", "pillow"', '"six==1.17.0"'))
    lock = (project / "uv.lock").read_bytes()
    done = here.run("uv", "sync", folder=project)
    assert done.code == 1, done.told()
    assert "uv.lock" in done.out
    assert (here.state(), (project / "uv.lock").read_bytes()) == (before, lock)
    subprocess.run([uv(), "lock", "-q"], cwd=project, env=variables, check=True, timeout=600)
    done = here.run("uv", "sync", folder=project)
    assert done.code == 0, done.told()
    assert (here.version("six"), here.version("pillow")) == ("1.17.0", None)
    assert "The next" not in done.out
    done = here.run("uv", "pip", "install", "six==1.16.0", folder=project)
    assert f"The next `uv sync` in {project} undoes this: six 1.16.0 -> 1.17.0" in done.out, done.told()
    for _ in range(2):
        assert here.run("undo", "--yes").code == 0
    assert here.state() == before


@pytest.mark.long
def test_an_uv_that_writes_into_what_it_finds_gets_a_clone_that_shares_no_file(place: Place, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "uv"
    old.parent.mkdir()
    old.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "uv 0.9.30" && exit\nexec {uv()} "$@"\n')
    old.chmod(0o755)
    path = f"{old.parent}{os.pathsep}{os.environ['PATH']}"
    done = place.run("uv", "--json", "pip", "install", "tool-b", PATH=path)
    assert done.code == 0, done.told()
    assert done.document["clone"] in {"copy", "reflink"}
    assert place.run("uv", "--json", "pip", "install", "namespace-b").document["clone"] in {"link", "reflink"}


@pytest.mark.parametrize(
    ("words", "named", "left"),
    [
        ("uv pip install -p {env} six", "{env}", "pip install six"),
        ("uv pip install --python={env}/bin/python six", "{env}/bin/python", "pip install six"),
        ("pip install six --python {env}", "{env}", "install six"),
        ("conda install -n x six", "x", "install six"),
        ("uv sync --python 3.12", None, "sync --python 3.12"),
    ],
)
def test_an_environment_named_in_the_installers_way_is_the_one_meant(
    words: str, named: str | None, left: str, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").touch()
    args = parse(words.format(env=tmp_path).split())
    assert (args.prefix or args.python or args.name) == (named and named.format(env=tmp_path))
    assert " ".join(args.words) == left


def test_what_names_no_environment_or_two_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names no environment"):
        parse(["uv", "pip", "install", "-p", str(tmp_path / "none"), "six"])
    with pytest.raises(InputError, match="named twice"):
        parse(["uv", "-p", "x", "pip", "install", "-p", str(tmp_path), "six"])
    with pytest.raises(InputError, match="another place"):
        read("uv", ("pip", "install", "--system", "six"))
