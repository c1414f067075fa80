"""The referee accepts what is sound and refuses what is not, in environments made both ways."""

from __future__ import annotations

import pytest

from tests.conda import damage
from tests.conda.referee import Referee, builds
from tests.conda.room import Room
from tests.gallery.repair_gallery.conda.client import VERSION

pytestmark = pytest.mark.long

SPECS = ("python=3.11", "pytorch=2.5", "torchvision", "cpuonly", "pip")


def test_it_is_conda(old: Room) -> None:
    assert Referee(old).run("--version") == f"conda {VERSION}\n"


@pytest.mark.conda
def test_a_sound_environment_made_by_conda_is_accepted(old: Room) -> None:
    referee = Referee(old)
    prefix = referee.create("env", SPECS)
    assert builds(prefix)["pytorch"].startswith("2.5.1 py3.11_cpu_0 ")
    referee.judge(prefix, names=["pytorch", "torchvision"])


@pytest.mark.conda
def test_a_sound_environment_made_by_py_rattler_is_accepted(old: Room) -> None:
    referee = Referee(old)
    prefix = old.by_rattler("env", SPECS)
    # Its history is empty, so what conda itself removes later takes everything else along, here as anywhere.
    referee.judge(prefix, before=referee.doctor(prefix), other=None)


@pytest.mark.conda
def test_what_conda_does_not_see_is_refused(old: Room) -> None:
    referee = Referee(old)
    prefix = referee.create("env", SPECS)
    complaints = referee.doctor(prefix)
    damage.edit_in_place(prefix, "filelock", "filelock/__init__.py")
    assert referee.doctor(prefix) == complaints, "conda sees it by now"
    with pytest.raises(AssertionError, match="other content than recorded"):
        referee.judge(prefix, before=complaints)


@pytest.mark.conda
def test_a_change_that_the_history_does_not_know_is_refused(old: Room) -> None:
    referee = Referee(old)
    prefix = referee.create("env", ("python=3.11", "pytorch=2.3", "cpuonly", "pip"))
    old.force(prefix, "pytorch=2.4.1=py3.11_cpu_0")
    with pytest.raises(AssertionError, match=r"conda install python would change .*2\.3\.1"):
        referee.judge(prefix)
    with pytest.raises(AssertionError, match=r"conda install tqdm changes .*2\.3\.1"):
        referee.judge(prefix, names=())
