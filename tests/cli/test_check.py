"""`envmedic check`: would a requirement work here, and what would it change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Done, Shell, state_of
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, TORCH, Case
from tests.support.index import write_index
from tests.support.wheels import make_wheel


def asked(reader: Shell, case: Case, *requirements: str) -> Done:
    """Ask, and hold the environment against what it was."""
    before = state_of(case.prefix)
    done = reader.envmedic("check", "--json", "-p", str(case.prefix), *requirements)
    assert state_of(case.prefix) == before
    return done


def test_what_is_installed_and_met_is_a_yes(reader: Shell, shared: Case) -> None:
    done = asked(reader, shared, f"torch>={TORCH}")
    assert done.code == 0, done.told()
    assert done.document["verdict"] == "works"
    assert done.document["changes"] == []


def test_the_companion_that_fits_is_a_yes_with_its_change(reader: Shell, shared: Case) -> None:
    done = asked(reader, shared, f"torchvision=={REPAIRED}")
    assert done.code == 0, done.told()
    assert done.document["verdict"] == "works-with-changes"
    changes = {row["name"]: (row["before"], row["after"]) for row in done.document["changes"]}
    assert changes == {"torchvision": (BROKEN, REPAIRED)}
    assert f"torchvision=={REPAIRED}" in done.document["command"]


def test_a_package_that_no_index_has_is_a_no_with_the_reason(reader: Shell, shared: Case) -> None:
    done = asked(reader, shared, "no-such-distribution>=1")
    assert done.code == 1, done.told()
    assert done.document["verdict"] == "does-not-work"
    assert any(item["speaks"] == "against" for item in done.document["considerations"])
    assert done.document["command"] == []


def test_an_extension_that_is_built_from_source_says_what_that_takes(reader: Shell, shared: Case) -> None:
    done = asked(reader, shared, "flash-attn")
    assert done.code == 1, done.told()
    assert done.document["verdict"] == "needs-build"
    assert "ninja" in done.document["summary"]


@pytest.mark.parametrize("text", ["torch=>2", "", "two words"])
def test_what_is_no_requirement_is_refused(reader: Shell, shared: Case, text: str) -> None:
    done = asked(reader, shared, text)
    assert done.code == 2, done.told()
    assert "requirement" in done.document["summary"]


def test_people_read_the_answer_first(reader: Shell, shared: Case) -> None:
    done = reader.envmedic("check", "-p", str(shared.prefix), f"torchvision=={REPAIRED}")
    assert done.out.startswith("yes, with changes  torchvision")
    assert f"{BROKEN} -> {REPAIRED}" in done.out


@pytest.mark.parametrize("named", ["", "mine="])
def test_indexes_of_uv_count_beside_those_of_pip(reader: Shell, shared: Case, tmp_path: Path, named: str) -> None:
    wheel = make_wheel(tmp_path, "of-uv", "1.0")
    own = write_index(tmp_path / "uv", [wheel])
    extra = write_index(tmp_path / "pip", [make_wheel(tmp_path, "of-pip", "1.0")])
    both = reader.having(UV_INDEX=f"{named}{own}", PIP_EXTRA_INDEX_URL=extra)
    for name in ("of-uv", "of-pip"):
        done = asked(both, shared, name)
        assert done.code == 0, done.told()
        assert [row["name"] for row in done.document["changes"]] == [name]
    planned = both.envmedic("plan", "--playbook", "nms-cuda", "--no-gpu", "-p", str(shared.prefix))
    assert planned.code == 0, planned.told()
