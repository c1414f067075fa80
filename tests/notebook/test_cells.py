"""A cell as a program by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envmedic.notebook.cells import cell_program, free_names

EARLIER = ("import json, os.path\nfrom math import sqrt as root\nrows = [1]", "await later()", "def broken(")


@pytest.mark.parametrize(
    ("cell", "missing"),
    [
        ("print(x)", {"x"}),
        ("x = 1\nprint(x)", set()),
        ("def f(a):\n    b = a\n    return [c + b for c in a] + other\nf(rows)", {"other", "rows"}),
        ("import a.b as c, d.e\nc.x, d.e", set()),
        ("def f():\n    global made\n    made = 1\nf(); made", set()),
        ("class A:\n    y = x\n    def f(self): return self.z", {"x"}),
        ("for i in range(3): print(__name__, i)", set()),
        ("open(__file__)", {"__file__"}),
    ],
)
def test_what_a_cell_takes_from_others(cell: str, missing: set[str]) -> None:
    assert free_names(cell) == missing


def test_a_cell_brings_the_imports_that_it_needs_and_runs_as_in_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 9\n")
    cell = "from __future__ import annotations\nimport beside\ndef f(a: Unknown): return json.dumps(root(a))\nprint(f(beside.VALUE))"
    program = cell_program(cell, EARLIER)
    assert not program.why_not
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "cell.py").write_text(program.source)
    done = subprocess.run([sys.executable, "state/cell.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "3.0\n", done.stderr


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("print(rows, json)", "it needs rows of other cells; put what makes them into the cell"),
        ("a, b, c, d, e", "it needs a, b, c and 2 more of other cells; put what makes them into the cell"),
        ("get_ipython().system('nvidia-smi')", "it has lines that begin with % or !, which only IPython runs"),
        ("await later()", "it is no program by itself ('await' outside function (cell, line 1))"),
    ],
)
def test_a_cell_that_is_no_program_says_why(cell: str, why: str) -> None:
    assert cell_program(cell, EARLIER) == ("", why)
