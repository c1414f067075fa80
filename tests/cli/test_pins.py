"""What the user states about versions binds a repair, or is named with file and line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Shell, failure
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, TORCH, Case

PLAN = ("plan", "--playbook", "nms-cuda", "--no-gpu", "--json")
OLD, NEW = (f"torchvision=={version.partition('+')[0]}" for version in (BROKEN, REPAIRED))
KEPT = f"torch<={TORCH}"


@pytest.fixture
def requirements(shared: Case) -> Iterator[Path]:
    """A file of requirements beside the environment, which goes again."""
    path = shared.prefix.parent / "requirements.txt"
    yield path
    path.unlink()


def test_a_plan_that_a_requirement_forbids_is_refused_with_file_and_line(
    reader: Shell, shared: Case, requirements: Path
) -> None:
    requirements.write_text(f"# what the shop needs\nnumpy\n{OLD}  # as in production\n", encoding="utf-8")
    refused = reader.envmedic(*PLAN, "-p", str(shared.prefix))
    failure(refused, code=1, kind="no-solution", says=f"{requirements}:3 says {OLD}")


def test_a_constraint_of_pip_forbids_too(reader: Shell, shared: Case, requirements: Path) -> None:
    requirements.write_text(f"{OLD}\n", encoding="utf-8")
    held = requirements.rename(requirements.with_name("held.in"))
    refused = reader.having(PIP_CONSTRAINT=str(held)).envmedic(*PLAN, "-p", str(shared.prefix))
    held.rename(requirements)
    failure(refused, code=1, kind="no-solution", says=f"{held}:1 says {OLD}")


def test_a_requirement_that_the_plan_keeps_is_told(reader: Shell, shared: Case, requirements: Path) -> None:
    requirements.write_text(f"./wheels/a.whl\n{OLD} ; sys_platform == 'win32'\n{NEW}\n", encoding="utf-8")
    old = requirements.with_name("requirements-old.txt")  # not about this environment
    old.write_text("torchvision==0.1\n", encoding="utf-8")
    planned = reader.envmedic(*PLAN, "-p", str(shared.prefix))
    old.unlink()
    assert planned.code == 0, planned.told()
    assert f"Kept: {NEW} ({requirements}:3)" in planned.document["notes"]


ROUND = (*PLAN, "--allow", "pinned")


def test_a_refusal_by_a_pin_names_the_way_around_it_and_the_way_keeps_all_other_pins(
    reader: Shell, shared: Case, requirements: Path
) -> None:
    requirements.write_text(f"numpy\n{OLD}  # as in production\n{KEPT}\n", encoding="utf-8")
    refused = reader.envmedic(*PLAN, "-p", str(shared.prefix))
    assert "--allow pinned" in refused.document["hint"]
    planned = reader.envmedic(*ROUND, "-p", str(shared.prefix))
    assert planned.code == 0, planned.told()
    pin = {"pin": OLD, "source": f"{requirements}:2", "kind": "requirement", "instead": NEW}
    assert planned.document["lifted"] == [pin]
    shown = reader.envmedic(*(word for word in ROUND if word != "--json"), "-p", str(shared.prefix))
    assert f"Walks around a pin (--allow pinned): {requirements}:2 says {OLD}; the next installation" in shown.out
    assert f"To keep the repair, change `{OLD}` there to `{NEW}`; envmedic does not edit it" in shown.out
    assert "--allow pinned" in shown.out.splitlines()[-1]
    assert requirements.read_text(encoding="utf-8").splitlines()[1] == f"{OLD}  # as in production"


@pytest.mark.parametrize("tool", ["PIP_CONSTRAINT", "UV_CONSTRAINT", "uv.toml"])
def test_constraints_that_the_resolver_reads_itself_are_walked_around_too(
    reader: Shell, shared: Case, tmp_path: Path, tool: str
) -> None:
    bound = OLD.replace("==", "<=")
    held = tmp_path / ("held.in" if tool != "uv.toml" else "config/uv/uv.toml")
    held.parent.mkdir(parents=True, exist_ok=True)
    held.write_text(bound if tool != "uv.toml" else f"constraint-dependencies = ['{bound}']\n", encoding="utf-8")
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "UV_NO_CONFIG": "0"}
    user = reader.having(**(variables if tool == "uv.toml" else {tool: str(held)}))
    failure(user.envmedic(*PLAN, "-p", str(shared.prefix)), code=1, kind="no-solution", says=f"{held}:1 says {bound}")
    planned = user.envmedic(*ROUND, "-p", str(shared.prefix))
    assert planned.code == 0, planned.told()
    instead = NEW.replace("==", "<=")
    assert planned.document["lifted"] == [
        {"pin": bound, "source": f"{held}:1", "kind": "constraint", "instead": instead}
    ]


def test_a_pin_that_can_be_kept_is_kept_all_the_same(reader: Shell, shared: Case, requirements: Path) -> None:
    requirements.write_text(f"{NEW}\n", encoding="utf-8")
    planned = reader.envmedic(*ROUND, "-p", str(shared.prefix))
    assert planned.code == 0, planned.told()
    assert planned.document["lifted"] == []
    assert f"Kept: {NEW} ({requirements}:1)" in planned.document["notes"]
