"""Several faults in one environment, repaired one after the other in one clone; other ways where the first fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Done, Shell, failure, state_of, torchvision
from tests.envs.nms_cuda.case import REPAIRED, Case
from tests.support.venvs import install, site_packages
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.long

OLD_PILLOW = """\
id: {name}
fault: companion-version
title: {title}
explain: A playbook of the user's own, for tests.
fix_kind: pin-package
when: {{fact: package.pillow.version, operator: is, value: "9.0.0"}}
steps:
{steps}
checks: [{checks}]
"""
INSTALL_PILLOW = '  - step: install\n    requirements: ["pillow==10.4.0"]'


@pytest.fixture
def stacked(case: Case) -> Case:
    """A torchvision of another torch, an old pillow, and what an interrupted uninstall left."""
    old = make_wheel(
        case.wheels / "old", "pillow", "9.0.0", files={"PIL/__init__.py": "raise ImportError('too old')\n"}
    )
    install(case.prefix, [old])
    left = site_packages(case.prefix) / "~umpy"
    left.mkdir()
    (left / "old.py").write_text("")
    return case


def give(
    user: Shell, name: str, steps: str, *, title: str = "pillow is too old", checks: str = "facts, import"
) -> None:
    """Put a playbook into the user's own directory."""
    folder = user.home / ".config/envmedic/playbooks"
    folder.mkdir(parents=True, exist_ok=True)
    text = OLD_PILLOW.format(name=name, title=title, steps=steps, checks=checks)
    (folder / f"{name}.yaml").write_text(text)


def apply(user: Shell, case: Case, *arguments: str) -> Done:
    return user.envmedic("apply", "--json", "--yes", "--no-gpu", "-p", str(case.prefix), *arguments)


def playbooks(record: dict[str, Any]) -> list[str]:
    return [record["plan"]["playbook"], *(item["playbook"] for item in record["extensions"])]


def test_everything_that_facts_confirm_is_repaired_in_rounds(user: Shell, stacked: Case) -> None:
    give(user, "old-pillow", INSTALL_PILLOW)
    original = state_of(stacked.prefix)
    done = apply(user, stacked)
    assert done.code == 0, done.told()
    record = done.document
    assert sorted(playbooks(record)) == ["duplicate-install", "nms-cuda", "old-pillow"]
    assert [item["failed"] for item in record["rounds"]] == [[], [], []]
    assert torchvision(stacked.prefix) == REPAIRED
    assert not (site_packages(stacked.prefix) / "~umpy").exists()
    before = {item["check"]: item["status"] for item in record["checks_before"]}
    after = {item["check"]: item["status"] for item in record["checks_after"]}
    for name in ("old-pillow", "duplicate-install"):
        assert (before[f"facts {name}"], after[f"facts {name}"]) == ("fail", "pass")
    assert (before["import PIL"], after["import PIL"]) == ("fail", "pass")
    assert "round 3: " in done.err
    again = apply(user, stacked)
    assert (again.code, again.document["verdict"]) == (0, "healthy")
    undone = user.envmedic("undo", "--yes", "--json", "-p", str(stacked.prefix))
    assert undone.code == 0, undone.told()
    assert state_of(stacked.prefix) == original


def test_a_named_playbook_repairs_its_own_fault_alone(user: Shell, stacked: Case) -> None:
    give(user, "old-pillow", INSTALL_PILLOW)
    done = apply(user, stacked, "--playbook", "old-pillow")
    assert done.code == 0, done.told()
    assert playbooks(done.document) == ["old-pillow"]
    assert torchvision(stacked.prefix) != REPAIRED


def test_a_repair_that_does_not_help_is_given_up_for_another(user: Shell, stacked: Case) -> None:
    give(user, "a-wrong-way", '  - step: install\n    requirements: ["box-labels==1.2"]', title="pillow seems too old")
    give(user, "old-pillow", INSTALL_PILLOW)
    done = apply(user, stacked)
    assert done.code == 0, done.told()
    record = done.document
    assert "a-wrong-way" not in playbooks(record)
    assert "old-pillow" in playbooks(record)
    abandoned = [item["playbook"] for item in record["abandoned"]]
    assert abandoned in (["a-wrong-way"], []), "it is tried and given up, or not needed any more"
    assert torchvision(stacked.prefix) == REPAIRED


def test_the_wrong_way_alone_changes_nothing(user: Shell, stacked: Case) -> None:
    give(user, "a-wrong-way", '  - step: install\n    requirements: ["box-labels==1.2"]')
    before = state_of(stacked.prefix)
    done = apply(user, stacked, "--playbook", "a-wrong-way")
    assert done.code == 4, done.told()
    assert "facts a-wrong-way: fail" in done.document["failure"]["cause"]
    assert state_of(stacked.prefix) == before


def test_advice_is_no_plan_and_hides_none(user: Shell, stacked: Case) -> None:
    give(user, "old-pillow", "  - step: advise\n    text: Ask your administrator for a newer pillow", checks="")
    failed = apply(user, stacked, "--playbook", "old-pillow")
    failure(failed, code=1, kind="not-confirmed", says="Ask your administrator for a newer pillow")
    planned = user.envmedic("plan", "--json", "--playbook", "old-pillow", "-p", str(stacked.prefix))
    assert (planned.code, planned.document["schema"]) == (1, "envmedic.error/1")
    done = apply(user, stacked)
    assert done.code == 0, done.told()
    assert "old-pillow" not in playbooks(done.document)
    assert torchvision(stacked.prefix) == REPAIRED


def test_a_finding_without_a_plan_hides_none(user: Shell, stacked: Case) -> None:
    give(
        user, "a-missing-wheel", '  - step: install\n    requirements: ["pillow==99"]', title="pillow is not new enough"
    )
    done = apply(user, stacked)
    assert done.code == 0, done.told()
    assert "a-missing-wheel" not in playbooks(done.document)
    assert torchvision(stacked.prefix) == REPAIRED
    assert "Not repaired: pillow is not new enough" in done.err


def test_plan_and_advice_are_shown_together(user: Shell, stacked: Case) -> None:
    steps = f"{INSTALL_PILLOW}\n  - step: advise\n    text: Then start your program anew"
    give(user, "old-pillow", steps)
    shown = user.envmedic("plan", "--playbook", "old-pillow", "-p", str(stacked.prefix))
    assert shown.code == 0, shown.told()
    assert "Then start your program anew" in shown.out
    done = apply(user, stacked, "--playbook", "old-pillow")
    assert done.code == 0, done.told()
    assert "Then start your program anew" in done.err


def test_verify_can_ask_the_facts(user: Shell, stacked: Case) -> None:
    done = user.envmedic("verify", "--json", "--check", "facts", "--no-gpu", "-p", str(stacked.prefix))
    assert done.code == 1, done.told()
    outcome = done.document["outcomes"][0]
    assert (outcome["check"], outcome["status"]) == ("facts", "fail")
    assert "nms-cuda" in outcome["detail"]
    assert apply(user, stacked).code == 0
    again = user.envmedic("verify", "--json", "--check", "facts", "--no-gpu", "-p", str(stacked.prefix))
    assert again.code == 0, again.told()


VARIABLE = """\
id: odd-list
fault: cuda-arch-list
title: The list of architectures is not what it should be
explain: A playbook of the user's own, for tests.
fix_kind: change-env-var
when: {fact: variables.arch-list, operator: is-not, value: "8.6+PTX"}
steps:
  - step: set_env
    variables: {TORCH_CUDA_ARCH_LIST: "8.6+PTX"}
  - step: unset_env
    names: [MAX_JOBS]
checks: [facts]
"""


def test_variables_are_kept_seen_by_the_facts_and_taken_back(user: Shell, case: Case) -> None:
    folder = user.home / ".config/envmedic/playbooks"
    folder.mkdir(parents=True)
    (folder / "odd-list.yaml").write_text(VARIABLE)
    user = user.having(TORCH_CUDA_ARCH_LIST="10.1", MAX_JOBS="999")
    target = ("-p", str(case.prefix))
    shown = user.envmedic("plan", "--playbook", "odd-list", *target)
    assert "set TORCH_CUDA_ARCH_LIST=8.6+PTX" in shown.out, shown.told()
    assert "unset MAX_JOBS" in shown.out
    command = "import os; assert os.environ['TORCH_CUDA_ARCH_LIST'] == '8.6+PTX' and 'MAX_JOBS' not in os.environ"
    program = ("--reproduce", "--", str(case.python), "-c", command)
    done = apply(user, case, "--playbook", "odd-list", *program)
    assert done.code == 0, done.told()
    outcomes = {item["check"].split(" /")[0]: item["status"] for item in done.document["checks_after"]}
    assert (outcomes["facts odd-list"], outcomes["command"]) == ("pass", "pass")
    facts = user.envmedic("facts", "--json", *target).document["environment"]["variables"]
    kept = {item["name"]: item["value"] for item in facts}
    assert kept == {"TORCH_CUDA_ARCH_LIST": "8.6+PTX", "MAX_JOBS": None}
    healthy = user.envmedic("verify", "--check", "facts", "--json", *target)
    assert "odd-list" not in json.dumps(healthy.document)
    assert user.envmedic("undo", "--yes", *target).code == 0
    assert user.envmedic("facts", "--json", *target).document["environment"]["variables"] == []


REPORTED = """\
id: reported
fault: companion-version
title: The text says that pillow is too old
explain: A playbook of the user's own, for tests, which asks no facts.
fix_kind: pin-package
signatures: [{id: old, pattern: "pillow is old", sample: "pillow is old"}]
steps:
  - step: install
    requirements: ["pillow==10.4.0"]
checks: [import]
"""


@pytest.fixture
def reported(user: Shell, room: Path) -> tuple[str, str]:
    """A playbook that only a text finds, and such a text."""
    folder = user.home / ".config/envmedic/playbooks"
    folder.mkdir(parents=True)
    (folder / "reported.yaml").write_text(REPORTED)
    (room / "error.log").write_text("pillow is old\n")
    return ("--log", str(room / "error.log"))


def test_what_only_the_text_says_is_repaired_where_a_check_shows_it(
    user: Shell, stacked: Case, reported: tuple[str, str]
) -> None:
    done = apply(user, stacked, *reported)
    assert done.code == 0, done.told()
    assert sorted(playbooks(done.document)) == ["duplicate-install", "nms-cuda", "reported"]


def test_another_repair_does_not_stand_for_the_one_that_was_asked_for(
    user: Shell, case: Case, reported: tuple[str, str]
) -> None:
    before = state_of(case.prefix)
    refused = apply(user, case, *reported)
    assert refused.code == 1, refused.told()
    error = refused.document["failure"]
    assert (error["code"], error["summary"][:29]) == ("not-confirmed", "The fault does not reproduce ")
    assert "Repair it by itself with --playbook nms-cuda" in refused.err
    assert (refused.document["outcome"], refused.document["environment"]) == ("unchanged", "unchanged")
    assert state_of(case.prefix) == before
    done = apply(user, case, *reported, "--keep-partial")
    assert done.code == 7, done.told()
    assert (done.document["outcome"], playbooks(done.document)) == ("partial", ["nms-cuda"])
    (left,) = done.document["left"]
    assert left["summary"] == "The text says that pillow is too old"
    assert left["why"].startswith("The fault does not reproduce")
    assert left["reported"]
    assert torchvision(case.prefix) == REPAIRED


def test_a_text_that_facts_refute_is_not_repaired(user: Shell, case: Case, room: Path) -> None:
    steps = '  - step: install\n    requirements: ["pillow==10.4.0"]'
    give(user, "old-pillow", f'{steps}\nsignatures: [{{id: old, pattern: "pillow is old", sample: "pillow is old"}}]')
    log = room / "error.log"
    log.write_text("pillow is old\n")
    assert apply(user, case).code == 0, "the rest is repaired first"
    before = state_of(case.prefix)
    done = apply(user, case, "--log", str(log))
    failure(done, code=1, kind="not-confirmed", says="facts refute it: pillow 10.4.0 is installed")
    assert state_of(case.prefix) == before
