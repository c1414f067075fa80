"""Reading commands: what is understood, and that nothing else is answered."""

from __future__ import annotations

import pytest

from envmedic.errors import InputError
from envmedic.installers.uv import uv_help
from envmedic.model.answers.guard import CondaCommand, OtherPlaceCommand, PipCommand, ProjectCommand
from envmedic.planner.guard import command_words


def read(text: str) -> command_words.Read:
    return command_words.read_command(command_words.split(text), uv_help)


@pytest.mark.parametrize(
    "text",
    [
        "pip install torch",
        "pip3.11 install torch",
        "python -m pip install torch",
        "/usr/bin/python3 -I -m pip install torch",
        "uv pip install torch",
        "uv --offline pip install torch",
        "env PIP_PRE=1 pip install torch",
        "PIP_INDEX_URL=x pip -q install torch",
        "pip install -qv torch",
    ],
)
def test_the_ways_to_say_install(text: str) -> None:
    command = read(text).command
    assert isinstance(command, PipCommand)
    assert (command.verb, command.requirements) == ("install", ("torch",))


def test_options_of_pip_are_told_in_the_words_of_uv() -> None:
    command = read(
        "pip install -Uq --pre --no-deps -rreq.txt -c limits.txt --index-url=https://a -f ./links "
        "--extra-index-url https://b --trusted-host c --only-binary=:all: -e ./x 'torch[y]>=2; python_version > \"3\"'"
    ).command
    assert isinstance(command, PipCommand)
    assert (command.upgrade, command.files, command.constraints) == ("named", ("req.txt",), ("limits.txt",))
    assert (command.index_url, command.extra_index_urls, command.find_links) == (
        "https://a",
        ("https://b",),
        ("./links",),
    )
    assert command.options == ("--prerelease=allow", "--no-deps")
    assert command.only_wheels
    assert command.editables == ("./x",)
    assert command.requirements == ('torch[y]>=2; python_version > "3"',)


def test_upgrading_means_more_for_uv_than_for_pip() -> None:
    ways = {text: read(text).command for text in ("pip install -U x", "uv pip install -U x")}
    eager = read("pip install -U --upgrade-strategy eager x").command
    found = [item.upgrade for item in (*ways.values(), eager) if isinstance(item, PipCommand)]
    assert found == ["named", "all", "all"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no program"),
        ("pip install", "nothing to install"),
        ("pip install -r", "needs a value"),
        ("pip install --target x torch", "--target"),
        ("pip install --frobnicate torch", "--frobnicate"),
        ("pip install --pre=1 torch", "takes no value"),
        ("pip install 'two words'", "not a requirement"),
        ("pip download torch", "pip download"),
        ("pip install a; rm -rf b", "more than one"),
        ("pip install a && pip install b", "more than one"),
        ("pip install $(cat x)", "more than one"),
        ("pip install $PKG", "more than one"),
        ("pip install `x`", "more than one"),
        ("pip install torch > log", "more than one"),
        ("pip install 'unclosed", "cannot be read"),
        ("uv run pip install x", "uv run"),
        ("uv run --directory x python", "--directory"),
        ("uv add --project elsewhere torch", "--project"),
        ("pip instal torch", "did you mean `pip install`?"),
        ("uv snyc", "did you mean `uv sync`?"),
        ("uv pip instal x", "did you mean `uv pip install`?"),
        ("poetry ad torch", "did you mean `poetry add`?"),
        ("conda isntall scipy", "did you mean `conda install`?"),
        ("conda env updat", "did you mean `conda env update`?"),
        ("hatch env create", "hatch"),
        ("python setup.py install", "-m pip"),
        ("conda install --revision 3", "--revision"),
        ("conda install", "nothing to install"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert says in f"{caught.value.summary} {caught.value.cause}"


def test_conda_and_its_likes_are_read() -> None:
    command = read("mamba install -y -n env -c conda-forge -c nvidia 'pytorch=2.4' cuda-version").command
    assert command == CondaCommand(
        tool="mamba",
        verb="install",
        specs=("pytorch=2.4", "cuda-version"),
        channels=("conda-forge", "nvidia"),
        name="env",
    )
    assert isinstance(removed := read("conda uninstall --force pytorch").command, CondaCommand)
    assert (removed.verb, removed.options) == ("remove", ("--force-remove",))


@pytest.mark.parametrize(
    "text", ["!pip install -q x", "%pip install -q x", "! pip install x", "!python -m pip install x"]
)
def test_cells_of_notebooks_are_read(text: str) -> None:
    found = read(text)
    assert isinstance(found.command, PipCommand)
    assert found.command.requirements == ("x",)
    assert found.notes[0].startswith("In a notebook, restart the kernel afterwards")


def test_sudo_runs_another_pip_unless_its_place_is_named() -> None:
    assert isinstance(read("sudo -H pip install x").command, OtherPlaceCommand)
    named = read("sudo -u me /env/bin/pip install x")
    assert isinstance(named.command, PipCommand)
    assert named.notes == ("Run as root, it leaves files that only root can change or remove",)


@pytest.mark.parametrize(
    ("text", "tool", "verb", "words"),
    [
        ("uv add 'torch>=2.8' --group gpu", "uv", "add", ("torch>=2.8", "--group", "gpu")),
        ("uv sync --no-dev -q", "uv", "sync", ("--no-dev",)),
        ("uv run --extra cu126 -- python -m x --group y", "uv", "run", ("--extra=cu126",)),
        ("poetry add transformers", "poetry", "add", ("transformers",)),
        ("pdm update --no-lock numpy", "pdm", "update", ("--no-lock", "numpy")),
        ("pixi add pytorch-gpu", "pixi", "add", ("pytorch-gpu",)),
    ],
)
def test_commands_of_projects_are_read(text: str, tool: str, verb: str, words: tuple[str, ...]) -> None:
    assert read(text).command == ProjectCommand(tool=tool, verb=verb, words=words)  # type: ignore[arg-type]


def test_commands_of_conda_about_files_and_other_environments_are_read() -> None:
    update = read("conda env update -n own -f x.yml --prune").command
    assert update == CondaCommand("conda", "install", name="own", environment_file="x.yml", prune=True)
    assert read("conda install --file r.txt").command == CondaCommand("conda", "install", files=("r.txt",))
    made = read("conda create -y -n new -c conda-forge python=3.11 --file r.txt").command
    assert isinstance(made, OtherPlaceCommand)
    assert made.name == "new"
    assert isinstance(read("conda env list").command, OtherPlaceCommand)


def test_a_requirement_that_a_shell_would_cut_is_told() -> None:
    told = command_words.notes("pip install torch>=2.7 'numpy<2' \"pillow>9\" x==1")
    assert told == ("In a shell, quote 'torch>=2.7': it redirects input or output",)
