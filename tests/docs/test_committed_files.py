"""What is committed speaks of no registry host and of no machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = "https://download.pytorch.org/whl/{variant}"
"""The one index that envmedic knows by itself; an option overrides it."""
HOST = TEMPLATE.split("/")[2]
DATA = ("envmedic/compat/data/", "tests/tables/documents.json")
"""Facts about releases name their sources, the PyTorch index among them."""
FORBIDDEN = re.compile(r"""
    pypi[.](?:org|python[.]org)
    | files[.]pythonhosted
    | /wor[k]/
    | /opt/pyp[i]
    | /tmp/(?:rea[l]|wheel[s])\b
    | /hom[e]/(?!(?:user|ada|me)\b)\w
""", re.VERBOSE)  # fmt: skip
"""Brackets keep the pattern from finding itself."""


def committed() -> list[str]:
    """Paths of the files that git knows, relative to the root."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def found_in(name: str, text: str) -> list[str]:
    """What must not stand in the file called `name`, each with its line."""
    hits = []
    for number, line in enumerate(text.splitlines(), start=1):
        other_index = HOST in line.replace(TEMPLATE, "") and not name.startswith(DATA)
        hits += [f"{name}:{number}: {match[0]}" for match in FORBIDDEN.finditer(line)]
        hits += [f"{name}:{number}: {HOST}"] if other_index else []
    return hits


def test_no_committed_file_names_a_registry_host_or_a_machine() -> None:
    names = committed()
    assert "README.md" in names
    contents = {name: (ROOT / name).read_bytes() for name in names}
    texts = {name: content.decode() for name, content in contents.items() if b"\0" not in content}
    assert [hit for name, text in texts.items() for hit in found_in(name, text)] == []


@pytest.mark.parametrize(
    "line",
    [
        "index = https://py|pi.org/simple",
        "url: https://files.|pythonhosted.org/packages/x.whl",
        "see /wor|k/notes",
        "/hom|e/somebody/env",
        "https://download.|pytorch.org/whl/cu124",
    ],
)
def test_each_is_found(line: str) -> None:
    (hit,) = found_in("docs/x.md", "first\n" + line.replace("|", "") + "\n")
    assert hit.startswith("docs/x.md:2: ")


@pytest.mark.parametrize("line", [f"`{TEMPLATE}`", "network", "/home/user/env", "https://pytorch.org/get-started/"])
def test_what_may_stand_there_is_left_alone(line: str) -> None:
    assert found_in("docs/x.md", line) == []


def test_data_may_name_its_source() -> None:
    line = TEMPLATE.replace("{variant}", "torch_stable.html")
    assert found_in(f"{DATA[0]}releases.json", line) == []
    assert found_in("envmedic/other.json", line) != []
