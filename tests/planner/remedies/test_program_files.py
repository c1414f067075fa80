"""What is done for programs that cannot be started, and for a moved environment."""

from __future__ import annotations

from envmedic.diagnosis.areas import program_files
from envmedic.model.facts import Defect, Environment, Facts, Host
from envmedic.model.plan import MakeExecutable, ProgramScript, Relocate, WriteScripts
from tests.diagnosis.helpers import distribution
from tests.diagnosis.test_files import environment
from tests.planner.remedies.helpers import decided

MOVED = Defect(kind="moved", path="bin/activate", detail="was moved", names="/old/env", now="/new/env")
OF_MOVE = Defect(kind="program", path="bin/a", detail="gone", names="/old/env/bin/python", entry_point="a:main")
ELSEWHERE = Defect(kind="program", path="bin/b", detail="gone", names="/other/bin/python", entry_point="b:main")
SOURCE = Defect(kind="source-gone", path="c", detail="gone", names="/old/src", now="/new/src")
LOST = Defect(kind="program", path="bin/d", detail="is gone", distribution="d")
DATA = Defect(kind="program", path="bin/e", detail="dead", names="/other/bin/python3")
DENIED = Defect(kind="program-mode", path="bin/ninja", detail="is not executable")


def broken(*defects: Defect) -> Environment:
    return environment(distribution("d", "1.5"), defects=defects, files=())


def test_a_move_takes_along_what_names_the_former_path() -> None:
    found = decided("moved-environment", broken(MOVED, OF_MOVE, ELSEWHERE, SOURCE))
    assert found.steps == (Relocate(former="/old/env", programs=("bin/a",), sources={"/old/src": "/new/src"}),)
    assert decided("moved-environment", broken(OF_MOVE)).empty


def test_other_scripts_are_written_again_or_installed_again() -> None:
    found = decided("scripts", broken(MOVED, OF_MOVE, ELSEWHERE, LOST, DATA))
    assert found.steps == (
        WriteScripts(
            scripts=(ProgramScript(path="bin/b", entry_point="b:main"), ProgramScript(path="bin/e", entry_point=None))
        ),
    )
    assert (found.purge, found.install) == (("d",), ("d==1.5",))


def test_programs_get_their_permission_back() -> None:
    assert decided("make-executable", broken(DENIED)).steps == (MakeExecutable(programs=("bin/ninja",)),)
    assert decided("make-executable", broken()).empty


def test_the_facts_tell_a_move_from_scripts_that_are_broken_without_one() -> None:
    derived = program_files.derive(Facts(host=Host(), environment=broken(MOVED, OF_MOVE, ELSEWHERE, SOURCE, DENIED)))
    assert derived["files.moved-from"] == "/old/env"
    assert derived["files.naming-it"] == ("bin/a", "c")
    assert derived["programs.broken"] == ("bin/b",)
    assert derived["programs.not-executable"] == ("bin/ninja",)
