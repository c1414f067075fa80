"""Conda's side of real environments, made by conda and by py-rattler, healthy and broken."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.conda import CondaEnvironment
from envmedic.model.facts import Environment, Facts, Host
from envmedic.probe.environment import observe_environment
from tests.conda import damage
from tests.conda.channel import channels
from tests.conda.referee import Referee
from tests.conda.room import Room, make_room, record_of
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.long

SPECS = ["python=3.11", "pip", "filelock=3.16", "numpy", "tqdm", "typing_extensions"]
MAKERS = ("conda", "rattler")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    """A room with the local channel."""
    return make_room(tmp_path_factory.mktemp("conda") / "room", [channels().url("main")])


@pytest.fixture(scope="module")
def originals(room: Room) -> dict[str, Path]:
    """The same environment, made both ways."""
    return {"conda": Referee(room).create("made", SPECS), "rattler": room.by_rattler("placed", SPECS)}


@pytest.fixture(params=MAKERS)
def prefix(request: pytest.FixtureRequest, originals: dict[str, Path], tmp_path: Path) -> Iterator[Path]:
    """A copy to break: a file that is edited must be `replaced`, since it is a hard link."""
    target = tmp_path / "env"
    subprocess.run(["cp", "-al", str(originals[request.param]), str(target)], check=True)
    yield target
    subprocess.run(["rm", "-rf", str(target)], check=True)


def replaced(path: Path, content: bytes) -> None:
    """Put another file in the place of a hard link."""
    path.unlink()
    path.write_bytes(content)


def observed(prefix: Path, *, deep: bool = False) -> tuple[Environment, CondaEnvironment, Derived]:
    """What is seen of it, and the flat facts."""
    environment = observe_environment(prefix, {}, deep=deep)
    assert environment.conda is not None
    return environment, environment.conda, derive(Facts(host=Host(), environment=environment))


def test_a_healthy_environment_has_nothing_to_report(prefix: Path) -> None:
    environment, conda, facts = observed(prefix, deep=True)
    assert environment.files == ()
    assert {item.owner for item in environment.distributions} == {"conda"}
    assert {item.origin.kind for item in environment.distributions} == {"conda"}
    assert (conda.damaged, conda.overlaid, conda.unowned) == ((), (), 0)
    told = {name: value for name, value in facts.items() if name.startswith("conda.") and name.count(".") == 1}
    # the copy is not where conda made it, and its files say so
    assert {name for name, value in told.items() if value} == {
        "conda.packages", "conda.made-by", "conda.of-former-path",
    }  # fmt: skip


def test_packages_bring_distributions(prefix: Path) -> None:
    _, conda, _ = observed(prefix)
    brought = {item.name: item.distributions for item in conda.packages if item.distributions}
    assert brought == {name: (name.replace("_", "-"),) for name in SPECS_BROUGHT}
    filelock = conda.owner_of("filelock")
    assert filelock is not None
    assert (filelock.noarch, filelock.subdir, filelock.filename) == (
        "python", "noarch", "filelock-3.16.1-pyhd8ed1ab_0.conda",
    )  # fmt: skip
    assert filelock.sha256 is not None
    assert filelock.channel == channels().url("main")


SPECS_BROUGHT = ("filelock", "numpy", "pip", "tqdm", "typing_extensions")


def test_what_was_requested_is_known_as_far_as_the_maker_wrote_it(originals: dict[str, Path]) -> None:
    _, made, _ = observed(originals["conda"])
    assert (made.history, made.made_by) == ("present", "conda")
    assert set(made.requested) == {"python=3.11", "pip", "filelock=3.16", "numpy", "tqdm", "typing_extensions"}
    _, placed, _ = observed(originals["rattler"])
    assert (placed.history, placed.made_by, placed.requested) == ("empty", "unknown", ())
    assert {name for item in placed.packages for name in item.requested} >= {"filelock 3.16.*", "numpy"}


@pytest.mark.parametrize(("package", "ending"), [("filelock", "filelock/__init__.py"), ("numpy", "numpy/__init__.py")])
def test_missing_modules_are_seen_wherever_the_record_lists_them(prefix: Path, package: str, ending: str) -> None:
    damage.delete(prefix, package, ending)
    environment, _, facts = observed(prefix)
    assert facts["conda.damaged"] == (package,)
    (report,) = environment.files or ()
    assert report.missing == (f"lib/python3.11/site-packages/{ending}",)
    assert facts["files.beyond-index"] == ()


def test_a_missing_program_is_damage(prefix: Path) -> None:
    (prefix / "bin/python3.11").rename(prefix / "bin/gone")
    _, _, facts = observed(prefix)
    assert facts["conda.damaged"] == ("python",)


def test_a_cut_off_library_is_damage(prefix: Path) -> None:
    library = next((prefix / "lib/python3.11/lib-dynload").glob("_json.*.so"))
    replaced(library, library.read_bytes()[:9000])
    environment, _, facts = observed(prefix)
    assert facts["conda.damaged"] == ("python",)
    assert (environment.files or ())[0].cut_off == (str(library.relative_to(prefix)),)


def test_an_edit_is_told_and_is_no_damage(prefix: Path) -> None:
    (module,) = damage.files_of(prefix, "filelock", "filelock/__init__.py")
    replaced(module, module.read_bytes() + b"# edited\n")
    environment, _, facts = observed(prefix)
    assert [item.changed for item in environment.files or ()] == [(str(module.relative_to(prefix)),)]
    assert facts["conda.damaged"] == ()


def test_an_edit_of_the_same_size_is_seen_when_contents_are_read(prefix: Path) -> None:
    (module,) = damage.files_of(prefix, "filelock", "filelock/__init__.py")
    replaced(module, module.read_bytes().replace(b"filelock", b"fileLOCK"))
    assert observed(prefix)[0].files == ()
    (report,) = observed(prefix, deep=True)[0].files or ()
    assert (report.distribution, report.changed) == ("filelock", (str(module.relative_to(prefix)),))


def test_a_wheel_that_took_the_place_of_a_conda_package_is_an_overlay(room: Room, prefix: Path, tmp_path: Path) -> None:
    damage.pip_over_conda(
        room, prefix, [make_wheel(tmp_path / "wheels", "filelock", "3.20.0", files=_package("x = 1\n"))]
    )
    environment, conda, facts = observed(prefix)
    (overlay,) = conda.overlaid
    assert (overlay.package, overlay.distribution, overlay.version) == ("filelock", "filelock", "3.20.0")
    assert overlay.same
    assert not overlay.mixed
    assert [(item.version, item.owner) for item in environment.distributions if item.name == "filelock"] == [
        ("3.20.0", "pip")
    ]
    assert (facts["conda.overlaid"], facts["conda.clobbered"], facts["conda.damaged"]) == (("filelock",), (), ())
    assert facts["conda.reasons"] == (
        "conda's filelock and filelock 3.20.0 (lib/python3.11/site-packages/filelock-3.20.0.dist-info)",
    )


def _package(text: str, more: str = "more") -> dict[str, str]:
    return {"filelock/__init__.py": text, f"filelock/{more}.py": ""}


def test_a_wheel_beside_condas_files_clobbers_them(room: Room, prefix: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "filelock", "3.20.0", files=_package("x = 1\n"))
    damage.pip_over_conda(room, prefix, [wheel], beside=True)
    environment, _, facts = observed(prefix)
    assert environment.duplicates == ("filelock",)
    assert {item.version: item.owner for item in environment.distributions if item.name == "filelock"} == {
        "3.16.1": "conda", "3.20.0": "pip",
    }  # fmt: skip
    assert facts["conda.clobbered"] == ("filelock",)
    conflicts = [item for item in environment.conflicts if item.conda]
    assert [(item.distributions, item.content_of) for item in conflicts] == [(("filelock", "filelock"), (0, 1))]
    assert facts["clobbered.reasons"] == ()


def test_the_same_version_by_pip_belongs_to_pip(room: Room, prefix: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "filelock", "3.16.1", files=_package("x = 1\n"))
    damage.pip_over_conda(room, prefix, [wheel], beside=True)
    environment, conda, _ = observed(prefix)
    (found,) = (item for item in environment.distributions if item.name == "filelock")
    assert found.owner == "pip"
    assert [item.package for item in conda.overlaid] == ["filelock"]


def test_conda_over_pip_leaves_condas_content_under_pips_name(room: Room, prefix: Path, tmp_path: Path) -> None:
    (module,) = damage.files_of(prefix, "filelock", "filelock/__init__.py")
    condas = module.read_bytes()
    wheel = make_wheel(tmp_path / "wheels", "filelock", "3.20.0", files=_package("x = 1\n"))
    damage.pip_over_conda(room, prefix, [wheel])
    replaced(module, condas)
    _, conda, facts = observed(prefix)
    assert [(item.condas, item.mixed) for item in conda.overlaid] == [(1, True)]
    assert facts["conda.clobbered"] == ("filelock",)


def test_modules_that_conda_alone_brought_are_mixed_in(room: Room, prefix: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "tqdm", "5.0", files={"tqdm/new.py": "x = 1\n"})
    damage.pip_over_conda(room, prefix, [wheel], beside=True)
    _, conda, facts = observed(prefix)
    assert [(item.package, item.left) for item in conda.overlaid] == [("tqdm", 1)]
    assert facts["conda.clobbered"] == ("tqdm",)


def test_a_wheel_of_another_name_may_overwrite_a_conda_package(room: Room, prefix: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "locks-of-files", "1.0", files=_package("x = 1\n"))
    damage.pip_over_conda(room, prefix, [wheel])
    _, conda, facts = observed(prefix)
    assert [(item.package, item.distribution, item.same) for item in conda.overlaid] == [
        ("filelock", "locks-of-files", False)
    ]
    assert (facts["conda.clobbered"], facts["conda.overlaid"], facts["conda.damaged"]) == (("filelock",), (), ())
    (reason,) = _texts(facts["conda.reasons"])
    assert reason == (
        "conda's filelock and locks-of-files both bring 1 files, such as "
        "lib/python3.11/site-packages/filelock/__init__.py; "
        "0 of them hold what conda brought and 1 what locks-of-files does"
    )


def _texts(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value


def test_metadata_that_nobody_owns_double_a_package(prefix: Path) -> None:
    damage.duplicate_metadata(prefix, "filelock", "3.15.4")
    environment, _, facts = observed(prefix)
    assert environment.duplicates == ("filelock",)
    assert (facts["conda.doubled"], facts["conda.clobbered"]) == (("filelock",), ())
    assert "filelock-3.15.4.dist-info" in "".join(_texts(facts["conda.reasons"]))


def test_files_of_nobody_are_counted(prefix: Path) -> None:
    site = damage.site_packages(prefix)
    (site / "mine.py").write_text("")
    (site / "theirs.so").write_text("")
    (site / "mine.pyc").write_text("")
    assert observed(prefix)[1].unowned == 2


def _cut(prefix: Path) -> None:
    record = record_of(prefix, "numpy")
    replaced(record, record.read_bytes()[:300])


@pytest.mark.parametrize(
    ("break_it", "damaged", "history"),
    [
        (_cut, ("conda-meta/numpy-2.1.3-py311h0f1e2d3_0.json",), None),
        (damage.lose_history, (), "missing"),
        (lambda prefix: replaced(prefix / "conda-meta/history", b"\xff\xfe\0==> x"), (), "empty"),
        (lambda prefix: record_of(prefix, "python").unlink(), (), None),
    ],
)
def test_damaged_records_and_history_are_facts(
    prefix: Path, break_it: Callable[[Path], object], damaged: tuple[str, ...], history: str | None
) -> None:
    before = observed(prefix)[1]
    break_it(prefix)
    _, conda, facts = observed(prefix)
    assert conda.damaged == damaged == facts["conda.damaged-records"]
    assert conda.history == (history or before.history)
    assert facts["conda.damaged"] == ()


def test_records_of_a_newer_conda_are_read(prefix: Path) -> None:
    record = record_of(prefix, "filelock")
    newer = record.read_bytes().replace(b'"version": "3.16.1"', b'"version": "3.16.1", "schema": 9, "new": {"a": [1]}')
    replaced(record, newer)
    _, conda, _ = observed(prefix)
    assert conda.damaged == ()
    assert conda.package("filelock") is not None


def test_pins_are_read(prefix: Path) -> None:
    (prefix / "conda-meta/pinned").write_text("numpy <3\n")
    assert observed(prefix)[1].pinned == ("numpy <3",)
