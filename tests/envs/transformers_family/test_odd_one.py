"""The library that is out of step moves, however many others complain about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.transformers_family.case import WORKS
from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import prove_repair, pure

pytestmark = pytest.mark.long

NEW_HUB = "huggingface-hub>=1.0"
PROGRAM = "import transformers\n\nprint('ready')\n"
COMPARES = """
import importlib.metadata

if importlib.metadata.version('huggingface-hub').startswith('0.'):
    raise ImportError('huggingface-hub>=1.0 is required for a normal functioning of this module, but found an older one')
"""


def build(room: Path, *installed: str) -> NativeCase:
    """Three libraries that need a new hub, their newest releases, beside a tokenizers that holds an old one."""
    directory = room / "wheels"
    wheels = [
        pure(directory, "transformers", "5.19.0", COMPARES, requires=(NEW_HUB, "tokenizers>=0.22")),
        pure(directory, "transformers", "4.0.0", "", requires=("huggingface-hub<1.0", "tokenizers")),
        pure(directory, "datasets", "5.2.0", "", requires=(NEW_HUB,)),
        pure(directory, "datasets", "4.0.0", "", requires=("huggingface-hub<1.0",)),
        pure(directory, "diffusers", "0.42.0", "", requires=(NEW_HUB,)),
        pure(directory, "diffusers", "0.30.0", "", requires=("huggingface-hub<1.0",)),
        pure(directory, "tokenizers", "0.20.3", "", requires=("huggingface-hub<1.0",)),
        pure(directory, "tokenizers", "0.22.1", "", requires=("huggingface-hub<2.0",)),
        pure(directory, "huggingface-hub", "0.36.2", ""),
        pure(directory, "huggingface-hub", "1.4.0", ""),
    ]
    names = ["transformers==5.19.0", "datasets==5.2.0", "diffusers==0.42.0", "tokenizers==0.20.3"]
    return build_native(room, wheels, [*names, *installed], PROGRAM)


def test_what_holds_the_others_back_moves_and_they_stay(tmp_path: Path) -> None:
    case = build(tmp_path, "huggingface-hub==0.36.2")
    target = ("-p", str(case.prefix))
    plan = case.envmedic("plan", *target, "--json").document
    assert plan["choice"]["cost"] == {
        "moves": ["huggingface-hub", "tokenizers"],
        "dependents": 0,
        "majors": 1,
        "own_majors": 0,
        "downgrades": 0,
        "new": 0,
    }
    shown = case.envmedic("plan", *target).out
    assert "chosen because it moves 2 distributions (huggingface-hub, tokenizers)" in shown
    assert "another way would move at least 3 (datasets, diffusers, transformers)" in shown
    changes = [("huggingface-hub", "0.36.2", "1.4.0"), ("tokenizers", "0.20.3", "0.22.1")]
    prove_repair(case, "transformers-family", list(changes), WORKS)


def test_one_that_nobody_else_complains_about_moves_alone(tmp_path: Path) -> None:
    case = build(tmp_path, "huggingface-hub==1.4.0")
    plan = case.envmedic("plan", "-p", str(case.prefix), "--json").document
    assert [(item["name"], item["after"]) for item in plan["changes"]] == [("tokenizers", "0.22.1")]
    assert plan["choice"]["why"].startswith("moves 1 distribution (tokenizers); another way would move")
