"""Which copy is the right one, what is worth bringing back, and which of two stays."""

from __future__ import annotations

import msgspec

from envmedic.model.facts import Distribution, FileConflict, Leftover, Origin
from envmedic.planner.remedies import Remedy
from tests.diagnosis.helpers import SITE, distribution
from tests.diagnosis.test_files import NEW, OLD, environment, report
from tests.planner.remedies.helpers import decided


def doubled(*installed: Distribution, **more: object) -> Remedy:
    return decided("duplicate-install", environment(*installed, **more))


def overwritten(*installed: Distribution, **more: object) -> Remedy:
    return decided("clobbered", environment(*installed, **more))


def test_of_two_copies_the_one_that_others_ask_for_is_right() -> None:
    reports = (report(OLD, 2), report(NEW, 10))
    found = doubled(OLD, NEW, distribution("app", "1", "numpy<2"), files=reports)
    assert (found.purge, found.install) == (("numpy",), ("numpy==1.26.4",))
    assert found.leftovers


def test_where_nobody_minds_the_one_whose_files_are_there_is_right() -> None:
    assert doubled(OLD, NEW, files=(report(OLD, 10), report(NEW, 2))).install == ("numpy==1.26.4",)
    assert doubled(OLD, NEW, files=(report(OLD, 2), report(NEW, 10))).install == ("numpy==2.1.0",)


def test_a_copy_that_no_index_gives_is_not_removed() -> None:
    own = [msgspec.structs.replace(item, origin=Origin(kind="editable", url="file:///src")) for item in (OLD, NEW)]
    found = doubled(*own)
    assert (found.purge, found.install) == ((), ())


def leftover(name: str, version: str | None, *, code: bool = False) -> Leftover:
    return Leftover(kind="tilde", path=f"{SITE}/~{name[1:]}", name=name, version=version, code=code)


def test_what_only_leftovers_remain_of_comes_back_where_it_is_wanted() -> None:
    app = distribution("app", "1", "numpy<2")
    assert doubled(app, leftovers=(leftover("numpy", "1.26.4"),)).install == ("numpy==1.26.4",)
    assert doubled(app, leftovers=(leftover("numpy", "2.1.0"),)).install == ("numpy<2",)
    assert doubled(app, leftovers=(leftover("tqdm", "4.66.0"),)).install == ()
    assert doubled(app, leftovers=(leftover("tqdm", "4.66.0", code=True),)).install == ("tqdm==4.66.0",)
    assert doubled(app, OLD, leftovers=(leftover("numpy", "1.24.0", code=True),)).install == ()


def conflict(first: int, second: int) -> FileConflict:
    return FileConflict(distributions=("full", "lite"), paths=("view/a.py",), count=1, content_of=(first, second))


FULL, LITE = distribution("full", "4.0"), distribution("lite", "4.1")


def test_of_two_that_overwrite_each_other_the_wanted_one_stays() -> None:
    app = distribution("app", "1", "full")
    found = overwritten(FULL, LITE, app, conflicts=(conflict(0, 1),))
    assert (found.install, found.purge) == (("full==4.0",), ("full", "lite"))
    assert not found.leftovers


def test_of_two_that_nobody_asks_for_the_newer_stays_then_the_one_that_lies_there() -> None:
    assert overwritten(FULL, LITE, conflicts=(conflict(1, 0),)).install == ("lite==4.1",)
    same = distribution("lite", "4.0")
    assert overwritten(FULL, same, conflicts=(conflict(0, 1),)).install == ("lite==4.0",)
    assert overwritten(FULL, same, conflicts=(conflict(1, 0),)).install == ("full==4.0",)


def test_of_two_that_overwrite_each_other_the_one_that_fits_python_and_numpy_stays() -> None:
    numpy = distribution("numpy", "1.26.4")
    new = distribution("lite", "4.13", "numpy>=2")
    assert overwritten(FULL, new, numpy, conflicts=(conflict(0, 1),)).install == ("full==4.0",)
    refuses = msgspec.structs.replace(LITE, requires_python=">=3.99")
    assert overwritten(FULL, refuses, conflicts=(conflict(0, 1),)).install == ("full==4.0",)


def test_one_that_is_asked_for_and_does_not_fit_comes_in_another_release() -> None:
    app, numpy = distribution("app", "1", "full>=3"), distribution("numpy", "2.1.0")
    old = distribution("full", "4.0", "numpy<2")
    assert overwritten(old, LITE, app, numpy, conflicts=(conflict(0, 1),)).install == ("full>=3,!=4.0",)


def test_two_that_are_both_asked_for_stay() -> None:
    app = distribution("app", "1", "full", "lite")
    assert overwritten(FULL, LITE, app, conflicts=(conflict(0, 1),)).install == ()
