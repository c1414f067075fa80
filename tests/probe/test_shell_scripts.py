"""What activation scripts do to the variables of builds, and where a shell's own come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.probe.prefix.shell_scripts import assignments, origin

SCRIPT = """\
# conda and venv put old values back here
deactivate () {
    unset CUDA_HOME
    export TORCH_CUDA_ARCH_LIST="$_OLD"
}
VIRTUAL_ENV='/somewhere'
"""


def kept(prefix: Path, text: str, **variables: str) -> dict[str, str | None]:
    (prefix / "bin").mkdir(exist_ok=True)
    (prefix / "bin" / "activate").write_text(SCRIPT + text, encoding="utf-8")
    return {item.name: item.value for item in assignments(prefix, variables)}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('export TORCH_CUDA_ARCH_LIST="8.6;9.0+PTX"', "8.6;9.0+PTX"),
        ("TORCH_CUDA_ARCH_LIST='8.6 9.0'; export TORCH_CUDA_ARCH_LIST", "8.6 9.0"),
        ("export TORCH_CUDA_ARCH_LIST=8.6;9.0", "8.6"),
        ("  export TORCH_CUDA_ARCH_LIST=8.6   # for the old cards", "8.6"),
        ("export TORCH_CUDA_ARCH_LIST=${ARCHES:-7.5}", "7.5"),
        ("export TORCH_CUDA_ARCH_LIST=$GIVEN+PTX", "8.9+PTX"),
        ("export TORCH_CUDA_ARCH_LIST='$GIVEN'", "$GIVEN"),
        ("export TORCH_CUDA_ARCH_LIST=", ""),
        ("unset TORCH_CUDA_ARCH_LIST", None),
    ],
)
def test_values_are_those_of_the_shell(tmp_path: Path, line: str, value: str | None) -> None:
    assert kept(tmp_path, line, GIVEN="8.9") == {"TORCH_CUDA_ARCH_LIST": value}


def test_what_cannot_be_known_without_running_it_is_left_out(tmp_path: Path) -> None:
    assert kept(tmp_path, "export CUDA_HOME=$(dirname $(which nvcc))\nexport MAX_JOBS=`nproc`\n") == {}


def test_the_prefix_and_earlier_lines_are_known(tmp_path: Path) -> None:
    text = "CUDA_HOME=$VIRTUAL_ENV/cuda\nexport CUDA_PATH=$CUDA_HOME\n"
    assert kept(tmp_path, text) == {"CUDA_HOME": "/somewhere/cuda", "CUDA_PATH": "/somewhere/cuda"}


def test_conda_scripts_count_with_file_and_line(tmp_path: Path) -> None:
    folder = tmp_path / "etc" / "conda" / "activate.d"
    folder.mkdir(parents=True)
    (folder / "cuda.sh").write_text("#!/bin/sh\nexport CUDA_HOME=/opt/cuda\n", encoding="utf-8")
    (folder / "cuda.fish").write_text("set -gx CUDA_HOME /other\n", encoding="utf-8")
    assert [(item.value, item.source) for item in assignments(tmp_path, {})] == [
        ("/opt/cuda", "etc/conda/activate.d/cuda.sh:2")
    ]


def test_a_variable_of_the_shell_is_traced_to_its_file(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("alias ll='ls -l'\nexport CUDA_HOME=/opt/cuda\n", encoding="utf-8")
    variables = {"HOME": str(tmp_path)}
    assert origin("CUDA_HOME", "/opt/cuda", variables, tmp_path) == f"process ({tmp_path}/.bashrc:2)"
    assert origin("CUDA_HOME", "/opt/other", variables, tmp_path) == "process"
    (tmp_path / "proc" / "1").mkdir(parents=True)
    (tmp_path / "proc" / "1" / "environ").write_bytes(b"PATH=/bin\0CUDA_HOME=/opt/other\0")
    assert origin("CUDA_HOME", "/opt/other", variables, tmp_path).startswith("process (set for the whole container")
