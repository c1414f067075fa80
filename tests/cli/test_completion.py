"""Shell completion: the words that may stand in a place, and real shells that are asked for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envmedic.cli.arguments.commands import SHELLS
from envmedic.cli.completion import DIRECTORIES, FILES, SCRIPTS, complete
from envmedic.cli.examples import EXAMPLES
from tests.cli.support import ENVMEDIC, LIMIT_S, ROOT, Shell

CACHE = os.environ.get("XDG_CACHE_HOME", str(Path("~/.cache").expanduser()))
"""Reading all playbooks takes seconds: what was read before serves here too."""


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No playbooks, environments and settings but those of the test."""
    for name in [name for name in os.environ if name.startswith(("ENVMEDIC_", "CONDA", "VIRTUAL_ENV"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))


def words(*typed: str) -> list[str]:
    return [word for word, _ in complete(typed)]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("pl",), ["plan", "playbooks"]),
        (("playbooks", "v"), ["validate"]),
        (("plan", "--play"), ["--playbook"]),
        (("plan", "--playbook", "nms"), ["nms-cuda", FILES]),
        (("plan", "--playbook=nms"), ["--playbook=nms-cuda", FILES]),
        (("plan", "--playbook", "=", "nms"), ["nms-cuda", FILES]),
        (("plan", "--playbook", "="), ["nms-cuda"]),
        (("lock", "--format", "p"), ["pylock"]),
        (("lock", "--format=py"), ["--format=pylock"]),
        (("apply", "--clone", "re"), ["reflink"]),
        (("apply", "--yes", "--clone", "copy", "--stag"), ["--staging"]),
        (("explain", "numpy"), ["numpy-abi"]),
        (("verify", "--check", "torchv"), ["torchvision-dispatch", "torchvision-nms", "torchvision-roi-align"]),
        (("diagnose", "x"), [FILES]),
        (("diagnose", "a.log", "b"), [FILES]),
        (("plan", "--find-links", "x"), [DIRECTORIES]),
        (("explain", "numpy-abi", "x"), []),
        (("diff", "found", "now", "x"), []),
        (("run", "--", "pyth"), [FILES]),
        (("nonsense", "pl"), ["plan", "playbooks"]),
        (("plan", "--unknown", "--pl"), ["--playbook"]),
        (("completion", ""), list(SHELLS)),
    ],
    ids=" ".join,
)
def test_what_may_stand_in_a_place(typed: tuple[str, ...], expected: list[str]) -> None:
    found = list(dict.fromkeys(words(*typed)))
    assert [word for word in found if word in expected] == expected
    begun = typed[-1].rpartition("=")[2] if typed[-1] == "=" else typed[-1]
    assert all(word.startswith((begun, ":")) for word in found)


def test_an_option_is_offered_once_and_one_that_can_be_repeated_again() -> None:
    assert "--json" in words("plan", "--j")
    assert "--json" not in words("plan", "--json", "--j")
    assert "--find-links" in words("plan", "--find-links", "a", "--find")


def test_every_command_is_offered_with_its_meaning() -> None:
    found = dict(complete([""]))
    assert set(found) == {command for command in EXAMPLES if command and " " not in command}
    assert all(found.values())
    assert "__complete" not in found


def test_environments_are_offered_by_name_and_by_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "conda"
    for prefix in (root, root / "envs" / "train"):
        (prefix / "conda-meta").mkdir(parents=True)
        (prefix / "conda-meta" / "history").touch()
        (prefix / "bin").mkdir()
        (prefix / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("CONDA_ENVS_PATH", str(root / "envs"))
    assert words("plan", "-n", "tr") == ["train"]
    assert words("plan", "--name=tr") == ["--name=train"]
    assert "conda/envs/train" in words("plan", "-p", "conda")
    assert words("plan", "-p", "")[-1] == DIRECTORIES


def test_a_broken_playbook_of_the_user_does_not_keep_others_from_being_offered(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "envmedic" / "playbooks"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("id: [", encoding="utf-8")
    assert "nms-cuda" in words("explain", "nms")


def test_the_script_of_each_shell_is_printed(tmp_path: Path) -> None:
    user = Shell(tmp_path)
    for shell in SHELLS:
        done = user.envmedic("completion", shell)
        assert (done.code, done.out) == (0, SCRIPTS[shell])
    assert user.envmedic("completion", "tcsh").code == 2


def on_path(folder: Path) -> dict[str, str]:
    """Variables of a shell whose `envmedic` is the one under test."""
    program = folder / "bin" / "envmedic"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(ENVMEDIC)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (folder / "a file.log").touch()
    own = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    return {**own, "HOME": str(folder), "XDG_CACHE_HOME": CACHE, "TERM": "dumb"}


def ran(argv: list[str], folder: Path) -> list[str]:
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd=folder, env=on_path(folder), timeout=LIMIT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


BASH = """
source <(envmedic completion bash)
complete -p envmedic
for line in 'pl' 'lock --format = py' 'plan --playbook nms' 'diagnose a' 'apply --clone re'; do
    COMP_WORDS=(envmedic $line); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
    _envmedic 2>/dev/null; printf '%s|' "${COMPREPLY[@]}"; echo
done
"""


def test_bash_completes(tmp_path: Path) -> None:
    told, *completed = ran(["bash", "--norc", "-c", BASH], tmp_path)
    assert told == "complete -F _envmedic envmedic"
    assert completed == ["plan|playbooks|", "pylock|", "nms-cuda|", "a file.log|", "reflink|"]


FISH = """
envmedic completion fish | source
for line in 'pl' 'lock --format=py' 'plan --playbook nms' 'diagnose a' 'apply --clone re'
    complete -C "envmedic $line" | string replace -r '\\t.*' '' | string join '|'
end
true
"""


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish_completes(tmp_path: Path) -> None:
    completed = ran(["fish", "--no-config", "-c", FISH], tmp_path)
    assert completed == ["plan|playbooks", "--format=pylock", "nms-cuda", "a file.log", "reflink"]


ZSH = """
compdef() { :; }
_files() { print files; }
_describe() { print -l -- "${(@P)4}"; }
source <(envmedic completion zsh)
for line in 'pl' 'lock --format=py' 'plan --playbook nms' 'diagnose a' 'apply --clone re'; do
    words=(envmedic ${=line}); CURRENT=${#words}
    _envmedic | cut -d: -f1 | paste -sd'|' -
done
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
def test_zsh_is_offered_the_words(tmp_path: Path) -> None:
    completed = ran(["zsh", "-f", "-c", ZSH], tmp_path)
    assert completed == ["plan|playbooks", "--format=pylock", "files|nms-cuda", "files", "reflink"]
