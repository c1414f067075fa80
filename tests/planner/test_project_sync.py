"""What a project's own tool would do to a repair, and where environment, lock and manifest disagree."""

from __future__ import annotations

import msgspec

from envmedic.model.facts import Environment
from envmedic.model.pins import PinKind, Project, ProjectTool, UserPin
from envmedic.planner import markers
from envmedic.planner.project_sync import disagreements, next_sync
from tests.planner.support import facts

BEFORE = facts()
HOME = "/home/me/shop"


def pin(requirement: str, kind: PinKind = "lock", line: int = 1) -> UserPin:
    name = "uv.lock" if kind == "lock" else "pyproject.toml"
    return UserPin(requirement=requirement, source=f"{HOME}/{name}:{line}", kind=kind)


def of_project(*pins: UserPin, tool: ProjectTool = "uv", lock: str | None = "uv.lock") -> Environment:
    assert BEFORE.environment is not None
    project = Project(
        tool=tool, folder=HOME, manifest="pyproject.toml", lock=lock, sync=(tool, "sync"), exact=tool == "uv"
    )
    return msgspec.structs.replace(BEFORE.environment, project=project, pins=pins)


def values(environment: Environment) -> dict[str, str]:
    return markers(environment, BEFORE.host)


def test_a_lock_with_the_fault_brings_it_back() -> None:
    environment = of_project(pin("torchvision==0.18.1", line=9))
    found = next_sync(environment, values(environment), {"torchvision": "0.20.1+cu124"})
    assert found is not None
    assert found.undoes == (f"torchvision 0.20.1+cu124 -> 0.18.1 ({HOME}/uv.lock:9)",)
    assert found.keeps == ("uv", "add", "torchvision==0.20.1")
    asked = next_sync(environment, values(environment), {"torchvision": "0.20.1"}, ["torchvision<0.21"])
    assert asked is not None
    assert asked.keeps == ("uv", "add", "torchvision<0.21")
    bounds = "torchvision>=0.16,<0.21,>0.17,>=0.17,!=0.19,<=0.21"
    joined = next_sync(environment, values(environment), {"torchvision": "0.20.1"}, [bounds])
    assert joined is not None
    assert joined.keeps == ("uv", "add", "torchvision!=0.19,<0.21,>0.17")


def test_a_lock_without_the_fault_is_the_repair_of_the_tool_itself() -> None:
    environment = of_project(pin("torchvision==0.20.1"))
    found = next_sync(environment, values(environment), {"torchvision": "0.20.1+cu124"})
    assert found is not None
    assert (found.undoes, found.keeps) == ((), ())


def test_a_tool_puts_no_damaged_version_back_that_it_takes_for_granted() -> None:
    environment = of_project(pin("torchvision==0.20.1"))
    installed = environment.distribution("torchvision")
    assert installed is not None
    same = of_project(pin(f"torchvision=={installed.public}"))
    assert next_sync(same, values(same), {"torchvision": installed.version}) is None


def test_removed_and_added_distributions() -> None:
    environment = of_project(pin("torchvision==0.18.1", line=4))
    found = next_sync(environment, values(environment), {"torchvision": None, "cupy": "13"})
    assert found is not None
    assert found.undoes == (
        f"cupy 13 -> removed (not in {HOME}/uv.lock)",
        f"torchvision removed -> 0.18.1 ({HOME}/uv.lock:4)",
    )
    other = of_project(pin("torchvision==0.18.1"), tool="pdm")  # which keeps what its lock does not have
    assert next_sync(other, values(other), {"cupy": "13"}) is None


def test_a_lock_that_is_older_than_its_manifest_does_not_agree_with_the_repair() -> None:
    environment = of_project(pin("torchvision==0.20.1"), pin("cupy>=12", "requirement"), tool="poetry")
    found = next_sync(environment, values(environment), {"cupy": "13"})
    assert found is not None
    assert found.undoes == (f"{HOME}/uv.lock does not have cupy, which pyproject.toml asks for",)
    assert (found.known, found.keeps) == (False, ("poetry", "add", "cupy>=12"))


def test_unknown_versions_may_undo_it() -> None:
    environment = of_project(lock=None)
    found = next_sync(environment, values(environment), {"torchvision": "0.20.1"})
    assert found is not None
    assert not found.known
    assert next_sync(environment, values(environment), {}) is None


def test_no_tool_of_another_environment() -> None:
    environment = of_project(pin("torchvision==0.18.1"))
    assert environment.project is not None
    other = msgspec.structs.replace(environment, project=msgspec.structs.replace(environment.project, sync=()))
    assert next_sync(other, values(other), {"torchvision": "0.20.1"}) is None


def test_environment_lock_and_manifest_disagree() -> None:
    environment = of_project(
        pin("torchvision==0.1"), pin("torchvision>=0.2", "requirement", 5), pin("nothere", "requirement", 6)
    )
    installed = environment.distribution("torchvision")
    assert installed is not None
    assert disagreements(environment, values(environment)) == (
        f"torchvision {installed.version} is installed, and {HOME}/uv.lock:1 says torchvision==0.1",
        f"nothere is not installed, and {HOME}/pyproject.toml:6 asks for nothere",
        f"{HOME}/uv.lock:1 locks torchvision 0.1, and {HOME}/pyproject.toml:5 says torchvision>=0.2",
    )
