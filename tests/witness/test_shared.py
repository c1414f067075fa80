"""A repair of an environment that several machines share, with real witnesses, some of which have something against it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.real import ENVMEDIC
from tests.real.manifest import Entry, changed, manifest
from tests.witness.machines import Ended, Site, flags

pytestmark = pytest.mark.skipif(flags() is None, reason="private namespaces are not allowed here")
SHORT = ("--witness-limit", "120")
"""Of a repair that is to wait in vain at last: enough for what is answered before, on a busy machine."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site.build(tmp_path, tmp_path / "site")
    yield found
    found.close()


@pytest.fixture
def before(site: Site) -> dict[str, Entry]:
    return manifest(site.tree)


def given_up(site: Site, done: Ended, before: dict[str, Entry], *, code: int, says: str) -> None:
    """The environment is as it was, byte for byte, and the record says why."""
    assert done.code == code, done.told()
    assert done.document["environment"] == "unchanged"
    assert says in json.dumps(done.document["failure"]), done.told()
    assert not changed(before, manifest(site.tree))
    assert set(site.journals().values()) == {"aborted"}


def test_every_machine_is_asked_and_a_witness_proves(site: Site, before: dict[str, Entry]) -> None:
    """One swap, after n2 has proved the copy and n3 has told of no program; both see it in its place."""
    others = [site.witness("n2"), site.witness("n3")]
    done = site.repair("n1", "--witnesses", "n2", "--machines", "n3").ended()
    assert done.code == 0, done.told()
    told = {item["machine"]: (item["proved"], item["looked"]) for item in done.document["witnesses"]}
    assert told == {"n2": (True, True), "n3": (False, True)}
    ended = [one.ended() for one in others]
    assert [one.code for one in ended] == [0, 0], ended[0].told()
    asked = [[given["kind"] for given in one.document["answers"]] for one in ended]
    assert asked == [["use", "proof", "use", "look"]] * 2
    proof, look = (ended[0].document["answers"][number] for number in (1, 3))
    assert proof["digest"] == look["digest"]
    assert {"torchvision-nms", "import torch"} <= {item["check"] for item in proof["outcomes"]}
    assert site.works()
    undone = site.start("n1", *ENVMEDIC, "undo", "-p", str(site.prefix), "--yes").ended()
    assert undone.code == 0, undone.told()
    assert "are not asked: `envmedic fleet witness --users` on n2, n3" in undone.err
    assert not changed(before, manifest(site.tree))


@pytest.mark.long
def test_programs_on_another_machine_are_in_the_way(site: Site, before: dict[str, Entry]) -> None:
    sleeping = f"{site.built.python} -c 'import time; time.sleep(900)' & "
    other = site.witness("n3", under=sleeping)
    done = site.repair("n1", "--machines", "n3").ended()
    given_up(site, done, before, code=6, says="time.sleep")
    assert other.ended().code == 4
    assert "clone" not in done.document["seconds"]
    users = ("fleet", "witness", "-p", str(site.prefix), "--users")
    told = site.start("n3", *ENVMEDIC, *users, under=sleeping).ended()
    assert (told.code, "time.sleep" in told.out) == (6, True), told.told()
    assert site.start("n2", *ENVMEDIC, *users).ended().code == 0


@pytest.mark.long
def test_kept_trees_stay_while_programs_of_other_machines_may_use_them(site: Site) -> None:
    """`--keep 0` would remove the old tree, which a program on n3 has open; a later change by n1 alone asks nobody."""
    sleeping = f"{site.built.python} -c 'import time; time.sleep(900)' & "
    other = site.witness("n3", under=sleeping)
    done = site.repair("n1", "--machines", "n3", "--allow", "in-use", "--keep", "0").ended()
    assert done.code == 0, done.told()
    assert "programs on n3 use the environment" in done.document["notes"][-1]
    old = site.transaction / "env"
    assert old.is_dir()
    assert other.ended().code == 0
    alone = site.start("n1", *ENVMEDIC, "uv", "-p", str(site.prefix), "--keep", "0", "pip", "uninstall", "box-labels")
    later = alone.ended()
    assert later.code == 0, later.told()
    assert "were not asked" in later.out + later.err
    assert old.is_dir()
    assert site.start("n1", *ENVMEDIC, "prune", "-p", str(site.prefix), "--yes").ended().code == 0
    assert not old.is_dir()


@pytest.mark.long
def test_silence_is_no_consent(site: Site, before: dict[str, Entry]) -> None:
    done = site.repair("n1", "--witnesses", "n2", "--witness-limit", "2").ended()
    given_up(site, done, before, code=4, says="n2: no answer within 2 s")
    late = site.witness("n2", limit_s=2).ended()
    assert (late.code, late.document["transaction"]) == (1, None)


@pytest.mark.long
def test_a_signal_ends_the_wait(site: Site, before: dict[str, Entry]) -> None:
    asked = f"(until ls {site.store}/2*/witness/question.json > /dev/null 2>&1; do sleep 0.1; done; pkill -TERM -f 'envmedic apply') & "
    given_up(site, site.repair("n1", "--witnesses", "n2", under=asked).ended(), before, code=130, says="SIGTERM")


@pytest.mark.long
def test_a_witness_that_died_may_come_back(site: Site) -> None:
    repair = site.repair("n1", "--witnesses", "n3")
    site.until_asked_for_proof("n3")
    second = site.witness("n3")
    assert repair.ended().code == 0
    assert [given["kind"] for given in second.ended().document["answers"]] == ["proof", "use", "look"]
    assert site.works()


@pytest.mark.long
def test_a_witness_that_stays_dead_ends_the_repair(site: Site, before: dict[str, Entry]) -> None:
    repair = site.repair("n1", "--witnesses", "n3", *SHORT)
    site.until_asked_for_proof("n3")
    given_up(site, repair.ended(), before, code=4, says="n3: no answer within 120 s")


SAYS = "this machine cannot read it"


def _unreadable(good: Path, bad: Path) -> None:
    """Write a module that fails, with the size and time of another."""
    bad.write_text(f"raise OSError({SAYS!r})\n".ljust(good.stat().st_size, "#"))
    shutil.copystat(good, bad)
    assert bad.stat().st_size == good.stat().st_size


@pytest.mark.long
def test_checks_that_fail_on_one_machine_end_the_repair(site: Site, before: dict[str, Entry]) -> None:
    """n3 reads other content of one file of the copy than is on the disk."""
    repair = site.repair("n1", "--witnesses", "n3")
    site.until_asked_for_proof("n3")
    copy, own = site.transaction / "env", site.room / "own"
    shutil.copytree(copy, own, symlinks=True)
    good = next(copy.rglob("torchvision/ops/__init__.py"))
    _unreadable(good, own / good.relative_to(copy))
    witness = site.witness("n3", under=f"mount --bind {own} {copy} && ")
    given_up(site, repair.ended(), before, code=4, says=SAYS)
    ended = witness.ended()
    assert ended.code == 4
    assert SAYS in ended.document["answers"][0]["why"][0]


@pytest.mark.long
def test_checks_that_fail_in_place_on_one_machine_take_the_repair_back(site: Site, before: dict[str, Entry]) -> None:
    """As above, but the proof does not see it: the copy is shown without what is mounted inside it."""
    repair = site.repair("n1", "--witnesses", "n3")
    site.until_asked_for_proof("n3")
    good, bad = next((site.transaction / "env").rglob("torchvision/ops/__init__.py")), site.room / "bad.py"
    _unreadable(good, bad)
    witness = site.witness("n3", under=f"mount --bind {bad} {good} && ")
    given_up(site, repair.ended(), before, code=4, says="fails at its place on other machines")
    given = witness.ended().document["answers"]
    assert [(item["kind"], item["passed"]) for item in given] == [("proof", True), ("use", True), ("look", False)]
    assert SAYS in given[-1]["why"][0]


@pytest.mark.long
def test_a_witness_proves_the_very_tree(site: Site, before: dict[str, Entry]) -> None:
    """n3 sees the old environment where the copy is."""
    shutil.copytree(site.prefix, site.room / "old", symlinks=True)
    repair = site.repair("n1", "--witnesses", "n3", *SHORT)
    site.until_asked_for_proof("n3")
    site.witness("n3", under=f"mount --bind {site.room / 'old'} {site.transaction / 'env'} && ")
    given_up(site, repair.ended(), before, code=4, says="holds other files here")


def _blind(site: Site) -> str:
    """A line of shell for a machine that goes on to see the old environment beside the store that all share."""
    here, kept, other = site.prefix.parent, site.room / "kept", site.room / "other"
    kept.mkdir()
    site.store.mkdir(mode=0o700)
    shutil.copytree(here, other, symlinks=True)
    binds = ((site.store, kept), (other, here), (kept, site.store))
    return "".join(f"mount --bind {source} {target} && " for source, target in binds)


@pytest.mark.long
def test_a_machine_that_does_not_see_the_repair_has_it_taken_back(site: Site, before: dict[str, Entry]) -> None:
    witness = site.witness("n3", under=_blind(site))
    done = site.repair("n1", "--witnesses", "n3", *SHORT).ended()
    given_up(site, done, before, code=4, says="is still what it was before the repair here")
    assert [given["kind"] for given in witness.ended().document["answers"]] == ["use", "proof", "use", "look"]


@pytest.mark.long
@pytest.mark.parametrize(("moment", "ends"), [("use", "aborted"), ("proof", "aborted"), ("look", "done")])
def test_a_repair_that_is_killed_is_settled_by_the_next_command(
    site: Site, before: dict[str, Entry], moment: str, ends: str
) -> None:
    witness = site.witness("n3", under=_blind(site)) if moment == "look" else None
    repair = site.repair("n1", "--witnesses", "n3", "--witness-limit", "120")
    if moment == "proof":
        site.until_asked_for_proof("n3")
    site.until_asked(moment)
    repair.killed()
    told = site.start("n1", *ENVMEDIC, "recover", "-p", str(site.prefix), "--json").ended()
    assert told.code == 0, told.told()
    settled = told.document["settled"]
    assert [item["state"] for item in settled] == [ends]
    assert set(site.journals().values()) == {ends}
    if ends == "done":
        assert "were not asked" in settled[0]["notes"][-1]
        assert site.works()
        assert witness is not None
        assert witness.ended().document["environment"] == "repaired"
    else:
        assert not changed(before, manifest(site.tree))


def test_what_cannot_be_is_refused(site: Site, before: dict[str, Entry]) -> None:
    relocated = site.repair("n1", "--witnesses", "n2", "--staging", "relocate").ended()
    assert (relocated.code, "--staging" in relocated.out) == (1, True), relocated.told()
    named = site.repair("n1", "--machines", "n2/../x").ended()
    assert (named.code, "no name of a machine" in named.out) == (2, True), named.told()
    assert not changed(before, manifest(site.tree))
    assert not site.store.exists()
