"""A torch that no table knows: its own wheel is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Done, Shell, state_of
from tests.envs.nms_cuda.case import Case
from tests.support.index import IndexServer, serve, write_index
from tests.support.wheels import Wheel, make_wheel
from tests.tables.test_tables_are_made import torch

GPU = {"index": 0, "name": "NVIDIA RTX", "compute_capability": "12.0", "visible": True}


@pytest.fixture
def wheels(tmp_path: Path, reader: Shell, shared: Case) -> list[Wheel]:
    """Torch 2.99 and its companions for the Python of the shared environment."""
    seen = reader.envmedic("facts", "--json", "-p", str(shared.prefix)).document
    digits = "".join(seen["environment"]["interpreter"]["version"].split(".")[:2])
    python, tags = f"cp{digits}-cp{digits}", (f"cp{digits}-cp{digits}-manylinux_2_17_x86_64",)
    folder = tmp_path / "files"
    return [
        torch(folder, "2.99.0", python=python, requires_python=">=3.8", platform="manylinux_2_17_x86_64"),
        make_wheel(folder, "torchvision", "0.99.0", requires=("torch==2.99.0",), tags=tags),
        make_wheel(folder, "torch", "3.0.0rc1", tags=tags),
        make_wheel(folder, "triton", "9.1.0", tags=tags),
        make_wheel(folder, "filelock", "3.0"),
    ]


def asked(reader: Shell, case: Case, index: IndexServer, tmp_path: Path, *words: str, **host: object) -> Done:
    facts: dict[str, Any] = reader.envmedic("facts", "--host-only", "--json").document
    facts["host"].update({"machine": "x86_64", "driver_version": "610.43.02", "gpus": [GPU], "glibc": "2.39", **host})
    file = tmp_path / "host.json"
    file.write_text(json.dumps(facts))
    user = reader.having(PIP_INDEX_URL=index.url, PIP_EXTRA_INDEX_URL="")
    before = state_of(case.prefix)
    done = user.envmedic(*words, "--json", "-p", str(case.prefix), "--host", str(file))
    assert state_of(case.prefix) == before
    return done


def test_it_is_judged_by_its_own_wheel_and_that_is_said(
    reader: Shell, shared: Case, tmp_path: Path, wheels: list[Wheel]
) -> None:
    write_index(tmp_path, wheels)
    with serve(tmp_path) as index:
        fits = asked(reader, shared, index, tmp_path, "check", "torch>=2.99")
        read = [seen for seen in index.seen if "/torch-2.99.0" in seen.path and seen.range]
        old = asked(reader, shared, index, tmp_path, "check", "torch>=2.99", driver_version="550.54.14")
        other = asked(
            reader, shared, index, tmp_path, "check", "torch>=2.99", gpus=[{**GPU, "compute_capability": "3.5"}]
        )
        lacking = asked(reader, shared, index, tmp_path, "check", "torch>=3")
    assert read, "its wheel was asked by ranges"
    after = {row["name"]: row["after"] for row in fits.document["changes"]}
    assert after["torch"] == "2.99.0", fits.told()
    assert after["torchvision"] == "0.99.0"
    assert fits.document["variant"] == "cu132"
    assert any("less certain" in item["text"] for item in fits.document["considerations"])
    assert old.code == 1
    assert "driver" in str(old.document["considerations"])
    assert "2.99.0" not in str(old.document["changes"])
    assert other.code == 1
    assert lacking.document["verdict"] == "does-not-work"


def test_offline_nothing_is_asked(reader: Shell, shared: Case, tmp_path: Path, wheels: list[Wheel]) -> None:
    write_index(tmp_path, wheels)
    with serve(tmp_path) as index:
        done = asked(reader, shared, index, tmp_path, "check", "torch>=2.99", "--offline")
        assert index.seen == []
    assert (done.code, done.document["verdict"]) == (1, "does-not-work")


def test_a_move_to_the_newest_torch_goes_to_it(
    reader: Shell, shared: Case, tmp_path: Path, wheels: list[Wheel]
) -> None:
    write_index(tmp_path, wheels)
    with serve(tmp_path) as index:
        moved = asked(reader, shared, index, tmp_path, "plan", "--policy", "newest")
        old = asked(reader, shared, index, tmp_path, "plan", "--policy", "newest", driver_version="440.33.01")
        index.seen.clear()
        offline = asked(reader, shared, index, tmp_path, "plan", "--policy", "newest", "--offline")
        assert index.seen == []
    after = {row["name"]: row["after"] for row in moved.document["changes"]}
    assert (after["torch"], after["torchvision"]) == ("2.99.0", "0.99.0"), moved.told()
    assert any("2.99.0 is newer than the tables" in note for note in moved.document["notes"])
    assert old.code == 1
    assert "torch 2.99.0 (cu132)" in old.document["cause"]
    assert offline.code == 1
