"""`envmedic check`: would a requirement work here, and what would it change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    assert f"torchvision  {BROKEN}  →  {REPAIRED}" in done.out


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


def host_file(directory: Path, facts: dict[str, Any], **changes: object) -> str:
    """Facts of another machine."""
    facts["host"].update(changes)
    path = directory / "host.json"
    path.write_text(json.dumps(facts))
    return str(path)


def test_a_pair_without_wheels_together_is_named_with_the_nearest_set_and_the_build(
    reader: Shell, shared: Case
) -> None:
    done = asked(reader, shared, "vllm>=0.17,<=0.33", "flash-attn")
    assert (done.code, done.document["verdict"]) == (1, "needs-build"), done.told()
    together = done.document["together"]
    assert "have no wheels for one torch" in together["lacking"][0]
    assert together["nearest"] == ["torch==2.8.0", "vllm==0.11.0", "flash-attn==2.8.3.post1"]
    assert together["build"].startswith("building flash-attn beside torch==2.14.0, vllm==0.33.0 takes ")
    assert "ninja" in together["build"]
    shown = reader.envmedic("check", "-p", str(shared.prefix), "vllm>=0.17,<=0.33", "flash-attn").out
    assert "take the nearest set that has wheels: torch==2.8.0 vllm==0.11.0" in shown


def test_a_machine_of_another_kind_gets_its_own_wheels(reader: Shell, shared: Case, tmp_path: Path) -> None:
    wheels = [
        make_wheel(tmp_path, "everywhere", "1.0", tags=("py3-none-manylinux_2_28_x86_64",)),
        make_wheel(tmp_path, "everywhere", "2.0", tags=("py3-none-manylinux_2_28_aarch64",)),
        make_wheel(tmp_path, "only-here", "1.0", tags=("py3-none-manylinux_2_28_x86_64",)),
    ]
    user = reader.having(PIP_EXTRA_INDEX_URL=write_index(tmp_path / "index", wheels))
    here = user.envmedic("facts", "--host-only", "--json").document
    other = "aarch64" if here["host"]["machine"] == "x86_64" else "x86_64"
    file = host_file(tmp_path, here, machine=other, glibc="2.39")
    words = ("check", "--json", "-p", str(shared.prefix), "--host", file)
    versions = {
        name: [row["after"] for row in user.envmedic(*words, name).document["changes"]]
        for name in ("everywhere", "only-here")
    }
    assert versions == (
        {"everywhere": ["2.0"], "only-here": []}
        if other == "aarch64"
        else {"everywhere": ["1.0"], "only-here": ["1.0"]}
    )
    lacking = user.envmedic(*words, "flash-attn", "bitsandbytes")
    if other == "aarch64":
        assert lacking.document["together"]["without_wheel"] == ["flash-attn"]
