"""What the user states about versions binds a repair, or is named with file and line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Shell, failure
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case

PLAN = ("plan", "--playbook", "nms-cuda", "--no-gpu", "--json")
OLD, NEW = (f"torchvision=={version.partition('+')[0]}" for version in (BROKEN, REPAIRED))


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
