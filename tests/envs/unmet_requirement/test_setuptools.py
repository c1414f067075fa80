"""A repair brings no setuptools without pkg_resources to an environment that has one with it."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import build_native
from tests.support.repairs import pure

PROGRAM = "import plots\nimport old_plots\n\nprint('drawn')\n"


def test_pkg_resources_stays_where_it_is_used(tmp_path: Path) -> None:
    directory = tmp_path / "wheels"
    wheels = [
        pure(directory, "setuptools", "65.0", "RESOURCES = True\n"),
        pure(directory, "setuptools", "80.9", "RESOURCES = True\n"),
        pure(directory, "setuptools", "82.0", ""),
        pure(directory, "old-plots", "1.0", "from setuptools import RESOURCES\n", requires=("setuptools",)),
        pure(
            directory,
            "plots",
            "2.0",
            "from setuptools import __version__\nassert __version__ > '70'\n",
            requires=("setuptools>=70",),
        ),
    ]
    names = ["setuptools==65.0", "old-plots", "plots"]
    case = build_native(tmp_path, wheels, names, PROGRAM)
    log = tmp_path / "conflict.log"
    log.write_text("plots 2.0 requires setuptools>=70, but you have setuptools 65.0 which is incompatible.\n")
    done = case.envmedic("plan", "-p", str(case.prefix), "--json", "--log", str(log))
    assert done.code == 0, done.told()
    changes = done.document["changes"]
    assert [(item["name"], item["after"]) for item in changes] == [("setuptools", "80.9")]
