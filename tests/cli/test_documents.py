"""Files that envmedic is given: plans, facts of another host, playbooks; and the documents that it prints."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from envmedic import __version__
from envmedic.compat import tables
from tests.cli.support import ROOT, Done, Shell, copied, failure, state_of
from tests.envs.nms_cuda.case import REPAIRED, Case, build

HOST = {
    "schema": "envmedic.facts/1",
    "host": {
        "driver_version": "550.54.15",
        "driver_cuda": "12.4",
        "gpus": [{"index": 0, "name": "NVIDIA H100", "compute_capability": "9.0"}],
    },
}
HOST_FAULT = """\
id: old-driver
fault: driver-too-old
title: the driver is too old for this torch
fix_kind: upgrade-driver
explain: A host fault for the tests of the command line.
when: {fact: driver.version, operator: "<", value: "500"}
steps:
  - step: advise
    text: Upgrade the driver
"""


@pytest.fixture
def plan_file(reader: Shell, shared: Case, tmp_path: Path) -> Path:
    """A plan for the shared environment."""
    path = tmp_path / "plan.json"
    done = reader.envmedic("plan", "--playbook", "nms-cuda", "-p", str(shared.prefix), "-o", str(path))
    assert done.code == 0, done.told()
    assert done.out.splitlines()[-1].strip() == f"envmedic apply {path} --no-gpu"
    return path


def apply(reader: Shell, path: Path, *more: str) -> Done:
    """Apply a plan file."""
    return reader.envmedic("apply", str(path), "--yes", "--no-gpu", "--json", *more)


@pytest.mark.usefixtures("untouched")
def test_a_plan_that_was_edited(reader: Shell, plan_file: Path) -> None:
    plan_file.write_text(plan_file.read_text().replace(f'"{REPAIRED}"', '"0.19.1"'))
    failure(apply(reader, plan_file), code=2, kind="input", says="was edited after it was made")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not a valid Plan document"),
        (b"not json", "is not a valid Plan document"),
        (b"\xff\xfe\x00", "is not a valid Plan document"),
        (b"[" * 100_000, "is not a valid Plan document"),
        (json.dumps(HOST).encode(), "is not a valid Plan document"),
        (b'{"schema": "envmedic.plan/2"}', "is not a valid Plan document"),
    ],
    ids=["empty", "text", "binary", "nested", "facts", "later"],
)
def test_a_plan_of_garbage(reader: Shell, tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    done = apply(reader, path)
    failure(done, code=2, kind="input", says=says)
    assert "envmedic plan -o" in done.document["hint"]


def test_a_plan_that_is_not_there_or_unreadable(reader: Shell, tmp_path: Path) -> None:
    failure(apply(reader, tmp_path / "gone.json"), code=2, kind="input", says="cannot be read")
    failure(apply(reader, tmp_path), code=2, kind="input", says="Is a directory")


@pytest.mark.usefixtures("untouched")
def test_a_plan_for_another_environment(reader: Shell, shared: Case, plan_file: Path, tmp_path: Path) -> None:
    other = copied(shared, tmp_path / "other")
    failure(apply(reader, plan_file, "-p", str(other)), code=2, kind="input", says=f"not for {other}")


def test_a_plan_whose_environment_is_gone(reader: Shell, tmp_path: Path) -> None:
    case = build(tmp_path / "case")
    path = tmp_path / "plan.json"
    user = reader.having(**case.index_variables())
    assert user.envmedic("plan", "--playbook", "nms-cuda", "-p", str(case.prefix), "-o", str(path)).code == 0
    case.prefix.rename(tmp_path / "moved")
    failure(apply(reader, path), code=2, kind="not-an-environment", says="does not exist")


@pytest.mark.usefixtures("untouched")
def test_a_plan_file_and_another_wish(reader: Shell, plan_file: Path) -> None:
    done = apply(reader, plan_file, "--playbook", "nms-cuda")
    failure(done, code=2, kind="input", says="A plan file says what to repair")


@pytest.mark.usefixtures("untouched")
def test_a_dry_run_of_a_plan_file_shows_it(reader: Shell, plan_file: Path) -> None:
    done = reader.envmedic("apply", str(plan_file), "--dry-run", "--json")
    assert (done.code, done.document) == (0, json.loads(plan_file.read_text()))


def test_a_plan_that_cannot_be_written(reader: Shell, shared: Case, tmp_path: Path) -> None:
    done = reader.envmedic(
        "plan", "--json", "--playbook", "nms-cuda", "-p", str(shared.prefix), "-o", str(tmp_path / "no" / "plan.json")
    )
    failure(done, code=2, kind="input", says="cannot be written")


@pytest.mark.usefixtures("untouched")
def test_a_plan_for_a_node_with_gpus(reader: Shell, shared: Case, tmp_path: Path) -> None:
    host = tmp_path / "node.json"
    host.write_text(json.dumps(HOST))
    options = ("--playbook", "nms-cuda", "-p", str(shared.prefix), "--host", str(host))
    plan = reader.envmedic("plan", "--json", *options).document
    assert (plan["schema"], plan["host"]["source"]) == ("envmedic.plan/1", str(host))
    assert plan["host"]["gpus"][0]["name"] == "NVIDIA H100"
    assert plan["gpu_checks"] is True
    assert "on the host that it is for" in reader.envmedic("plan", *options).out


def test_facts_written_on_one_host_are_read_on_another(reader: Shell, tmp_path: Path) -> None:
    done = reader.envmedic("facts", "--host-only", "--json")
    assert (done.code, done.document["schema"], done.document["environment"]) == (0, "envmedic.facts/1", None)
    (tmp_path / "host.json").write_text(done.out)
    again = reader.envmedic("facts", "--host-only", "--json", "--host", str(tmp_path / "host.json")).document
    assert again["host"] == done.document["host"] | {"source": str(tmp_path / "host.json")}


@pytest.mark.parametrize("content", ["", "{}", "null", '{"schema": "envmedic.facts/1", "host": {"gpus": 3}}', "\x00"])
def test_a_host_file_of_garbage(reader: Shell, shared: Case, tmp_path: Path, content: str) -> None:
    path = tmp_path / "host.json"
    path.write_text(content)
    done = reader.envmedic("diagnose", "--json", "-p", str(shared.prefix), "--host", str(path))
    failure(done, code=2, kind="input", says=f"The facts file {path} is not a valid Facts document")
    assert "envmedic facts --host-only --json" in done.document["hint"]


def test_a_host_file_that_is_not_there(reader: Shell, shared: Case, tmp_path: Path) -> None:
    done = reader.envmedic("facts", "--json", "-p", str(shared.prefix), "--host", str(tmp_path / "gone"))
    failure(done, code=2, kind="input", says="cannot be read")


@pytest.mark.usefixtures("untouched")
def test_a_host_fault_is_no_repair(reader: Shell, shared: Case, tmp_path: Path) -> None:
    playbook, host = tmp_path / "old-driver.yaml", tmp_path / "host.json"
    playbook.write_text(HOST_FAULT)
    host.write_text(json.dumps({**HOST, "host": {**HOST["host"], "driver_version": "450.80"}}))  # type: ignore[dict-item]
    options = ("--json", "-p", str(shared.prefix), "--playbook", str(playbook), "--host", str(host))
    done = reader.envmedic("apply", "--yes", "--no-gpu", *options)
    failure(done, code=5, kind="host-fault", says="the driver is too old for this torch")
    found = reader.envmedic("diagnose", *options)
    assert {item["playbook"] for item in found.document["findings"]} >= {"old-driver", "nms-cuda"}


@pytest.mark.usefixtures("untouched")
def test_an_unknown_playbook_is_told_with_near_ones(reader: Shell, shared: Case) -> None:
    for command in ("plan", "diagnose"):
        done = reader.envmedic(command, "--json", "-p", str(shared.prefix), "--playbook", "nms-cud")
        failure(done, code=2, kind="unknown-playbook", says="did you mean nms-cuda?")
    failure(reader.envmedic("playbooks", "show", "nmscuda", "--json"), code=2, kind="unknown-playbook", says="nms-cuda")


def test_an_invalid_playbook_is_told_with_all_its_mistakes(reader: Shell, shared: Case, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("id: Bad Id\nfault: none\nsteps: []\nbogus: 1\n")
    done = reader.envmedic("plan", "--json", "-p", str(shared.prefix), "--playbook", str(bad))
    failure(done, code=2, kind="invalid-playbook", says=f"{bad}:")
    assert len(done.document["details"]) > 3
    assert all(line.startswith(f"{bad}:") for line in done.document["details"])


def test_playbooks_are_listed_shown_validated_and_described(reader: Shell, tmp_path: Path) -> None:
    listed = reader.envmedic("playbooks", "list", "--json")
    names = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yaml"))
    assert (listed.code, [item["id"] for item in listed.document["playbooks"]]) == (0, names)
    shipped = ROOT / "playbooks" / "nms-cuda.yaml"
    assert reader.envmedic("playbooks", "show", "nms-cuda").out == shipped.read_text(encoding="utf-8")
    assert reader.envmedic("playbooks", "show", "nms-cuda", "--json").document["playbook"]["id"] == "nms-cuda"
    assert reader.envmedic("playbooks", "validate", str(shipped)).out == f"{shipped}: valid\n"
    schema = reader.envmedic("playbooks", "schema", "--json").document
    assert not Draft202012Validator(schema).is_valid({"id": "x"})
    (tmp_path / "bad.yaml").write_text("id: x\n")
    files = [str(tmp_path / "gone.yaml"), str(shipped), str(tmp_path / "bad.yaml")]
    done = reader.envmedic("playbooks", "validate", "--json", *files)
    failure(done, code=2, kind="invalid-playbook", says="gone.yaml:1:1: No such file")
    assert any(line.startswith(files[2]) for line in done.document["details"])


def test_a_users_own_playbook_is_found(shared: Case, reader: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "envmedic" / "playbooks"
    folder.mkdir(parents=True)
    user = reader.having(XDG_CONFIG_HOME=str(tmp_path / "config"))
    (folder / "old-driver.yaml").write_text(HOST_FAULT)
    listed = user.envmedic("playbooks", "list", "--json")
    origins = {item["id"]: item["origin"] for item in listed.document["playbooks"]}
    assert (origins.pop("old-driver"), set(origins.values())) == ("user", {"shipped"})
    before = state_of(shared.prefix)
    (folder / "old-driver.yaml").write_text("id: x\n")
    broken = user.envmedic("diagnose", "--json", "-p", str(shared.prefix))
    failure(broken, code=2, kind="invalid-playbook", says="old-driver.yaml:1:1")
    assert state_of(shared.prefix) == before


def test_the_age_of_each_table_is_told(reader: Shell) -> None:
    days = tables.written()
    assert set(days) == {
        "conda_packages",
        "consumers",
        "couplings",
        "cuda_driver",
        "extensions",
        "gpu_arch",
        "torch_releases",
    }
    assert all(dt.date.fromisoformat(day) > dt.date(2026, 1, 1) for day in days.values())
    assert reader.envmedic("facts", "--host-only", "--json").document["tables"] == days
    assert "torch releases  of " + days["torch_releases"] in reader.envmedic("facts", "--host-only").out
    shown = reader.envmedic("--version", "-v").out.splitlines()
    assert shown == [
        f"envmedic {__version__}",
        f"compatibility tables {tables.version()}, shipped",
        *(f"compatibility table {name}: of {day}" for name, day in days.items()),
    ]
    assert reader.envmedic("--version").out.splitlines() == shown[:1]
