"""``envmedic fleet rollout``, ``undo`` and ``status`` on paper: what is written, what is said, and how it ends."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from envmedic.analysis.fleet import ansible_files, slurm_files
from envmedic.analysis.fleet.stages import CANARY
from envmedic.api.fleet import folder
from envmedic.model.answers.rollout import FleetPlan, NodeSettings, Stage
from envmedic.model.plan import Plan
from tests.cli.support import Shell, failure
from tests.fleet import stub
from tests.fleet.paper import write_fleet


@pytest.fixture
def place(class_plan: Plan, tmp_path: Path) -> Path:
    write_fleet(tmp_path / "repair", class_plan, 12)
    return tmp_path / "repair"


@pytest.fixture
def admin(tmp_path: Path) -> Shell:
    (tmp_path / "home").mkdir()
    return Shell(tmp_path / "home")


def answer(place: Path, kind: str, *nodes: str, part: str = "results", **more: object) -> None:
    """What machines answered that behave in that way."""
    fleet = folder.fleet_of(place)
    (place / part).mkdir(exist_ok=True)
    for item in fleet.classes:
        plan = json.loads((place / item.file).read_text())["id"]
        for node in set(nodes) & set(item.nodes):
            _, _, out = stub.step(kind, (0, 0, "broken"), plan)
            (place / part / f"{node}.json").write_text(json.dumps({**json.loads(out or "{}"), **more}))


def test_canaries_come_first_and_a_failed_one_stops_everything(place: Path, admin: Shell) -> None:
    done = admin.envmedic("fleet", "rollout", str(place), "--batches", "2,100%", "--json")
    stages = [(item["name"], item["nodes"]) for item in done.document["left"]["stages"]]
    assert stages[0] == (CANARY, ["n2", "n1"])
    assert [len(nodes) for _, nodes in stages] == [2, 2, 8]
    assert sorted(node for _, nodes in stages for node in nodes) == sorted(f"n{number}" for number in range(1, 13))
    assert done.document["command"].endswith(f"ansible-playbook -i hosts.ini {place}/rollout.yml")
    answer(place, "fails", "n1")
    stopped = admin.envmedic("fleet", "rollout", str(place))
    assert stopped.code == 4, stopped.told()
    assert "the canary n1 failed: failed: It is failed" in stopped.out
    again = admin.envmedic("fleet", "rollout", str(place), "--retry", "--json")
    # the steps are those of the first call, and what was answered is kept
    assert [len(item["nodes"]) for item in again.document["left"]["stages"]] == [2, 2, 8]
    assert (place / "retried" / "n1.results.json").is_file()


def test_a_limit_is_that_of_the_whole_batch_when_it_goes_on(place: Path, admin: Shell) -> None:
    answer(place, "sound", "n1", "n2")
    first = admin.envmedic("fleet", "rollout", str(place), "--batches", "5", "--max-fail", "1", "--json")
    batch = first.document["left"]["stages"][0]["nodes"]
    answer(place, "fails", batch[0])
    answer(place, "dies before", batch[1])
    left = admin.envmedic("fleet", "rollout", str(place), "--json").document["left"]["stages"]
    assert (left[0]["nodes"], left[0]["allowed"]) == (batch[1:], 0)
    answer(place, "fails", batch[2])
    assert admin.envmedic("fleet", "rollout", str(place)).code == 4
    told = admin.envmedic("fleet", "status", str(place), "--stage", "1")
    assert told.code == 4, told.told()
    answer(place, "sound", *batch[1:])
    assert admin.envmedic("fleet", "status", str(place), "--stage", "1").code == 0


def test_undo_is_for_what_was_repaired_and_is_told(place: Path, admin: Shell) -> None:
    answer(place, "sound", *(f"n{number}" for number in range(1, 12)))
    answer(place, "other-class", "n12")
    assert admin.envmedic("fleet", "rollout", str(place), "--max-fail", "2").code == 1
    written = admin.envmedic("fleet", "undo", str(place), "--only", "class:B", "--only", "n12", "--json")
    assert YAML(typ="safe").load((place / "undo.yml").read_text())[0]["hosts"] == ["n1", "n4", "n7", "n10"], (
        written.told()
    )
    answer(place, "sound", "n1", "n10", "n4", "n7", part="undone", state="undone")
    after = admin.envmedic("fleet", "undo", str(place), "--only", "class:B", "--json")
    assert (after.code, after.document["command"], after.document["done"]) == (0, "", 4)
    status = admin.envmedic("fleet", "status", str(place))
    assert "class B  4 undone" in status.out
    rolled = admin.envmedic("fleet", "rollout", str(place), "--json")
    assert (rolled.document["command"], len(rolled.document["taken_back"])) == ("", 4)
    wrong = admin.envmedic("fleet", "undo", str(place), "--only", "class:C")
    failure(wrong, code=2, kind="input", says="class:C")


def test_a_plan_for_others_and_a_name_that_acts_are_refused(place: Path, admin: Shell) -> None:
    (place / "B.json").write_text((place / "A.json").read_text())
    failure(
        admin.envmedic("fleet", "rollout", str(place)), code=2, kind="input", says="driver branch 580 in place of 550"
    )
    text = (place / "fleet.json").read_text()
    (place / "fleet.json").write_text(text.replace('"n3"', '"n3;reboot"'))
    failure(admin.envmedic("fleet", "rollout", str(place)), code=2, kind="input", says="n3;reboot")


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=6))
def test_ansible_counts_as_the_stages_do(sizes: list[tuple[int, int]]) -> None:
    """Each batch of the playbook lets as many machines fail as its stage, by Ansible's arithmetic."""
    stages = [
        Stage(name=str(number), nodes=tuple(f"n{number}-{one}" for one in range(size)), allowed=min(allowed, size))
        for number, (size, allowed) in enumerate(sizes, start=1)
    ]
    totals = {stage.name: len(stage.nodes) for stage in stages}
    text = ansible_files.rollout(_fleet(stages), NodeSettings(), stages, totals)
    found: list[int] = []
    for play in YAML(typ="safe").load(text):
        for size in play.get("serial", [len(play["hosts"])]):
            limit = play["max_fail_percentage"] / 100
            found.append(max(count for count in range(size + 1) if not count / size > limit))
    assert found == [stage.allowed for stage in stages]


def _fleet(stages: list[Stage]) -> FleetPlan:
    nodes = tuple(node for stage in stages for node in stage.nodes)
    return msgspec.convert(
        {
            "engine": "slurm", "target": "n[1-64]", "prefix": "/opt/my env",
            "classes": [{
                "name": "A", "nodes": nodes, "file": "A.json", "maker": nodes[0],
                "environment": {"content": "", "machine": "x86_64", "python": "cpython 3.11"},
            }],
        },
        FleetPlan,
    )  # fmt: skip


def test_the_scripts_of_slurm_submit_each_machine_once(tmp_path: Path) -> None:
    """The script is run by a shell, with a `sbatch` that writes down its words."""
    stages = [
        Stage(name=CANARY, nodes=("n1",), allowed=0),
        Stage(name="1", nodes=("n2", "n3"), allowed=1),
        Stage(name="2", nodes=("n4",), allowed=0),
    ]
    place = tmp_path / "a repair"
    settings = NodeSettings(drain=True, find_links=("/shared/my wheels",))
    folder.write(place, slurm_files.rollout(_fleet(stages), settings, stages, str(place)))
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/jobs\nwc -l < {tmp_path}/jobs\n')
    sbatch.chmod(0o755)
    subprocess.run(["sh", str(place / "rollout.sh")], check=True, env={"PATH": f"{sbatch.parent}:/usr/bin:/bin"})
    jobs = (tmp_path / "jobs").read_text().splitlines()
    assert [line.split("unit.sh ")[-1] for line in jobs if "unit.sh" in line] == [
        f"n{one} A.json" for one in range(1, 5)
    ]
    assert "--dependency" not in jobs[0]
    assert "--dependency=afterok:1 " in jobs[1]
    assert "--dependency=afterok:1 " in jobs[2]
    assert "--dependency=afterany:2:3 " in jobs[3]
    assert jobs[3].endswith(f"envmedic fleet status '{place}' --stage 1 --quiet")
    assert "--dependency=afterok:4 " in jobs[4]
    subprocess.run(["sh", "-n", str(place / "unit.sh")], check=True)


def test_the_answer_about_a_node_is_kept_and_told_once(tmp_path: Path) -> None:
    """The script of its health, with programs of Slurm that write down their words, and an envmedic that says no."""
    kept, node, told = tmp_path / "kept", "n1", tmp_path / "told"
    stubs = {
        "squeue": "exit 0",
        "sinfo": f"cat {tmp_path}/state",
        "scontrol": f'echo "$*" >> {told}',
        "envmedic": f"touch {tmp_path}/asked; echo 'Verification  not passed (x: fail)'; exit $(cat {tmp_path}/code)",
    }
    (tmp_path / "bin").mkdir()
    for name, text in stubs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    fleet = msgspec.structs.replace(_fleet([Stage(name="1", nodes=(node,), allowed=0)]), prefix=str(tmp_path))
    script = slurm_files.health(fleet).replace("/var/cache/envmedic", str(kept))
    folder.write(tmp_path, {slurm_files.HEALTH: script})
    variables = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "SLURMD_NODENAME": node}

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [tmp_path / "health.sh", *words], env=variables, capture_output=True, text=True, check=False
        )
        assert not done.stderr
        return done.returncode, done.stdout

    (tmp_path / "code").write_text("1")
    (tmp_path / "state").write_text("drained fan")
    assert run() == (0, "")  # nothing is known yet; it is looked at in the background
    while not list(kept.glob("health-*/n1")):
        time.sleep(0.05)
    (tmp_path / "asked").unlink()
    assert run() == (1, "envmedic: not passed (x: fail)\n")
    assert not told.exists()
    (tmp_path / "state").write_text("idle none")
    assert [run()[0], run()[0]] == [1, 1]
    assert told.read_text() == "update nodename=n1 state=drain reason=envmedic health: not passed (x: fail)\n"
    assert not (tmp_path / "asked").exists()
    (tmp_path / "code").write_text("0")
    (tmp_path / "state").write_text("drained envmedic health: not passed")
    run("look")
    assert [run()[0], run()[0]] == [0, 0]
    assert told.read_text().splitlines()[1:] == ["update nodename=n1 state=resume"]


def test_a_page_has_a_square_for_each_machine(place: Path, admin: Shell) -> None:
    answer(place, "sound", *(f"n{number}" for number in range(1, 11)))
    answer(place, "fails", "n11", error={"message": "<b>no</b>"})
    page = place / "status.html"
    assert admin.envmedic("fleet", "status", str(place), "--html", str(page)).code == 1
    text = page.read_text()
    assert "10 of 12 machines repaired" in text
    assert text.count("<rect ") == 12
    assert "<title>n12: unknown: it sent nothing</title>" in text
    assert "Class A: 8 machines" in text
    assert "<script" not in text
    assert "<b>no" not in text
