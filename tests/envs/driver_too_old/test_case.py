"""The same release for an older CUDA takes its place; where there is none, the driver is to be upgraded."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.compat import tables
from tests.envs.driver_too_old.case import build
from tests.support.cuda_family import host_file
from tests.support.native_case import Done

pytestmark = pytest.mark.long

NEW = "2.15.0"


def changes(done: Done) -> list[tuple[str, str, str]]:
    return [(item["name"], item["before"], item["after"]) for item in done.document["plan"]["changes"]]


def test_the_same_release_for_an_older_cuda_takes_its_place(tmp_path: Path) -> None:
    case, template = build(tmp_path / "room")
    done = case.apply("--log", str(case.log()), "--host", host_file(tmp_path), ENVMEDIC_TORCH_INDEX=template)
    assert done.code == 0, done.told()
    assert done.document["plan"]["finding"]["fault"] == "driver-too-old"
    assert changes(done) == [("torch", "2.11.0", "2.11.0+cu129")]
    assert case.run().out == "CUDA 12.9\n"


def test_a_driver_that_no_build_is_for_is_told(tmp_path: Path) -> None:
    case, template = build(tmp_path / "room")
    host = host_file(tmp_path, driver_version="390.48")
    done = case.apply("--host", host, ENVMEDIC_TORCH_INDEX=template)
    assert done.code == 1, done.told()
    assert "390.48" in done.told()
    assert case.run().code == 1


def test_a_driver_that_is_new_enough_here_leaves_the_text_of_another_host_open(tmp_path: Path) -> None:
    case, _ = build(tmp_path / "room")
    host = host_file(tmp_path, driver_version="580.95.05")
    found = case.envmedic("diagnose", str(case.log()), "-p", str(case.prefix), "--json", "--host", host)
    finding = found.document["findings"][0]
    assert (finding["fault"], finding["confirmed"]) == ("driver-too-old", None), found.told()
    assert [item["what"] for item in finding["evidence"] if not item["supports"]] == [
        "whether the driver is new enough for the installed torch: yes: 580 on this host; the text may be of another"
    ]


def test_an_index_is_asked_for_a_build_that_is_newer_than_the_tables(tmp_path: Path) -> None:
    """That torch 2.15 is published for CUDA 12.6 is in no table; whether it is, one request tells."""
    unknown = [row for row in tables.torch_tables().variants if row.torch == NEW and row.variant == "cu126"]
    assert [row.published for row in unknown] == [False]
    case, template = build(tmp_path / "room", f"{NEW}+cu126", "2.14.1+cu126", installed=NEW, cuda="13.2")
    done = case.apply("--log", str(case.log()), "--host", host_file(tmp_path), ENVMEDIC_TORCH_INDEX=template)
    assert done.code == 0, done.told()
    assert changes(done) == [("torch", NEW, f"{NEW}+cu126")]
    assert f"torch {NEW} (cu126) is newer than the tables: the index was asked for it" in done.document["plan"]["notes"]
    assert case.run().out == "CUDA 12.6\n"


def test_an_index_without_it_leads_to_the_next_build(tmp_path: Path) -> None:
    case, template = build(tmp_path / "room", "2.14.1+cu126", installed=NEW, cuda="13.2")
    done = case.apply("--log", str(case.log()), "--host", host_file(tmp_path), ENVMEDIC_TORCH_INDEX=template)
    assert done.code == 0, done.told()
    assert changes(done) == [("torch", NEW, "2.14.1+cu126")]
    assert not any("newer than the tables" in note for note in done.document["plan"]["notes"])
