"""What activating an environment sets and unsets, by whoever wrote it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from envmedic import activation

BLOCK = f"{activation.BEGIN}\n{{}}\n{activation.END}\n"


def activate(prefix: Path, text: str) -> Path:
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    script = prefix / "bin" / "activate"
    script.write_text(text, encoding="utf-8")
    return script


def values(prefix: Path, **given: str) -> dict[str, str | None]:
    return activation.activated_values(prefix, prefix, given)


LINES = [
    "export PYTHONPATH=/old",
    "PYTHONPATH=/old; export PYTHONPATH",
    "export PYTHONPATH=$PYTHONPATH:/old",
    "export PYTHONPATH=$VIRTUAL_ENV/old-packages",
    "export PYTHONPATH=/old\nunset PYTHONPATH",
    "export PYTHONPATH=/first\nexport PYTHONPATH=/second:$PYTHONPATH",
]


@pytest.mark.parametrize("line", LINES)
def test_lines_of_users_count_as_the_shell_reads_them(tmp_path: Path, line: str) -> None:
    script = activate(tmp_path, f"VIRTUAL_ENV='{tmp_path}'\n{line}\n")
    shown = 'printf "%s" "${PYTHONPATH-unset}"'
    told = subprocess.run(
        ["sh", "-c", f'. "{script}"; {shown}'], env={"PATH": "/bin:/usr/bin", "PYTHONPATH": "/given"},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = values(tmp_path, PYTHONPATH="/given")["PYTHONPATH"]
    assert (found if found is not None else "unset") == told


def test_what_envmedic_keeps_comes_after_what_the_user_wrote(tmp_path: Path) -> None:
    activate(tmp_path, "export PYTHONPATH=/old\nexport OTHER=1\n" + BLOCK.format("unset PYTHONPATH\nexport MINE='a'"))
    assert values(tmp_path) == {"PYTHONPATH": None, "MINE": "a"}
    assert activation.variables(tmp_path) == {"PYTHONPATH": None, "MINE": "a"}


def test_it_is_said_where_a_variable_comes_from(tmp_path: Path) -> None:
    activate(tmp_path, "\nexport LD_PRELOAD=/x.so\n" + BLOCK.format("export CUDA_VISIBLE_DEVICES='0'"))
    found = activation.activated(tmp_path, tmp_path, {})
    assert found == {"CUDA_VISIBLE_DEVICES": ("0", "bin/activate"), "LD_PRELOAD": ("/x.so", "bin/activate:2")}


def test_scripts_of_conda_packages_come_after_conda_s_own_variables(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    state = {"env_vars": {"PYTHONPATH": "/state", "KEPT": "1", "LD_PRELOAD": activation.CONDA_UNSET}}
    (tmp_path / "conda-meta" / "state").write_text(json.dumps(state), encoding="utf-8")
    folder = tmp_path / "etc" / "conda" / "activate.d"
    folder.mkdir(parents=True)
    (folder / "a.sh").write_text("export PYTHONPATH=/script:$PYTHONPATH\n", encoding="utf-8")
    (folder / "b.fish").write_text("set -gx PYTHONPATH /fish\n", encoding="utf-8")
    assert values(tmp_path) == {"PYTHONPATH": "/script:/state", "KEPT": "1", "LD_PRELOAD": None}


def test_a_prefix_without_scripts_keeps_nothing(tmp_path: Path) -> None:
    assert activation.activated(tmp_path, tmp_path, {}) == {}
