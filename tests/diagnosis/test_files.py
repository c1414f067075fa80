"""Which copy is the right one, what is worth bringing back, and which of two stays."""

from __future__ import annotations

import msgspec

from envmedic.diagnosis.areas.file_damage import derive
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import (
    Distribution,
    DistributionFiles,
    Environment,
    Facts,
    FileConflict,
    Host,
    Interpreter,
    Leftover,
    Origin,
)
from tests.diagnosis.helpers import SITE, distribution


def derived(*installed: Distribution, **more: object) -> Derived:
    """The facts of an environment in which `installed` are."""
    names = [item.name for item in installed]
    environment = Environment(
        prefix="/env",
        real_prefix="/env",
        kind="venv",
        interpreter=Interpreter(path="/env/bin/python", starts=True, version="3.11.7"),
        distributions=installed,
        duplicates=tuple(sorted({name for name in names if names.count(name) > 1})),
        files=(),
    )
    return derive(Facts(host=Host(), environment=msgspec.structs.replace(environment, **more)))


def report(item: Distribution, matching: int, *, missing: int = 0) -> DistributionFiles:
    """Ten files are recorded of `item`."""
    return DistributionFiles(
        distribution=item.name,
        version=item.version,
        metadata_path=item.metadata_path,
        recorded=10,
        matching=matching,
        missing=tuple(f"{SITE}/{item.name}/m{number}.py" for number in range(missing)),
        missing_count=missing,
    )


OLD, NEW = distribution("numpy", "1.26.4"), distribution("numpy", "2.1.0")


def test_of_two_copies_the_one_that_others_ask_for_is_right() -> None:
    reports = (report(OLD, 2), report(NEW, 10))
    found = derived(OLD, NEW, distribution("app", "1", "numpy<2"), files=reports)
    assert found["duplicates.pins"] == ("numpy==1.26.4",)
    assert found["files.damaged"] == ()


def test_where_nobody_minds_the_one_whose_files_are_there_is_right() -> None:
    assert derived(OLD, NEW, files=(report(OLD, 10), report(NEW, 2)))["duplicates.pins"] == ("numpy==1.26.4",)
    assert derived(OLD, NEW, files=(report(OLD, 2), report(NEW, 10)))["duplicates.pins"] == ("numpy==2.1.0",)


def test_a_copy_that_no_index_gives_is_not_removed() -> None:
    own = [msgspec.structs.replace(item, origin=Origin(kind="editable", url="file:///src")) for item in (OLD, NEW)]
    found = derived(*own)
    assert (found["duplicates.names"], found["duplicates.pins"]) == ((), ())


def test_damage_is_told_in_a_sentence_and_by_what_can_mend_it() -> None:
    source = msgspec.structs.replace(distribution("mine", "0.1"), origin=Origin(kind="directory", url="file:///src"))
    found = derived(OLD, source, files=(report(OLD, 8, missing=2), report(source, 9, missing=1)))
    assert (found["files.damaged"], found["files.beyond-index"]) == (("numpy==1.26.4",), ("mine",))
    assert found["files.problems"] == (
        f"numpy 1.26.4: 2 of 10 files missing, such as {SITE}/numpy/m0.py",
        f"mine 0.1: 1 of 10 files missing: {SITE}/mine/m0.py",
    )
    assert (found["files.missing-count"], found["files.first-missing"]) == (3, f"{SITE}/numpy/m0.py")


def test_what_was_not_looked_at_is_unknown() -> None:
    assert "files.damaged" not in derived(OLD, files=None)


def test_a_list_of_files_that_installers_always_write_is_missed() -> None:
    without = msgspec.structs.replace(OLD, has_record=False)
    assert derived(without)["files.unrecorded"] == ("numpy==1.26.4",)
    assert derived(msgspec.structs.replace(without, owner="other"))["files.unrecorded"] == ()


def leftover(name: str, version: str | None, *, code: bool = False) -> Leftover:
    return Leftover(kind="tilde", path=f"{SITE}/~{name[1:]}", name=name, version=version, code=code)


def test_what_only_leftovers_remain_of_comes_back_where_it_is_wanted() -> None:
    app = distribution("app", "1", "numpy<2")
    assert derived(app, leftovers=(leftover("numpy", "1.26.4"),))["leftovers.lost"] == ("numpy==1.26.4",)
    assert derived(app, leftovers=(leftover("numpy", "2.1.0"),))["leftovers.lost"] == ("numpy<2",)
    assert derived(app, leftovers=(leftover("tqdm", "4.66.0"),))["leftovers.lost"] == ()
    assert derived(app, leftovers=(leftover("tqdm", "4.66.0", code=True),))["leftovers.lost"] == ("tqdm==4.66.0",)
    assert derived(app, OLD, leftovers=(leftover("numpy", "1.24.0", code=True),))["leftovers.lost"] == ()


def conflict(first: int, second: int) -> FileConflict:
    return FileConflict(distributions=("full", "lite"), paths=("view/a.py",), count=1, content_of=(first, second))


FULL, LITE = distribution("full", "4.0"), distribution("lite", "4.1")


def test_of_two_that_overwrite_each_other_the_wanted_one_stays() -> None:
    app = distribution("app", "1", "full")
    found = derived(FULL, LITE, app, conflicts=(conflict(0, 1),))
    assert (found["clobbered.pins"], found["clobbered.distributions"]) == (("full==4.0",), ("full", "lite"))


def test_of_two_that_nobody_asks_for_the_one_that_lies_there_stays() -> None:
    assert derived(FULL, LITE, conflicts=(conflict(0, 1),))["clobbered.pins"] == ("lite==4.1",)
    assert derived(FULL, LITE, conflicts=(conflict(1, 0),))["clobbered.pins"] == ("full==4.0",)


def test_two_that_are_both_asked_for_stay() -> None:
    app = distribution("app", "1", "full", "lite")
    assert derived(FULL, LITE, app, conflicts=(conflict(0, 1),))["clobbered.pins"] == ()
