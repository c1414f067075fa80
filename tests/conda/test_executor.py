"""Changes of conda packages carried out by py-rattler in real transactions: the cures of what it does wrong by itself.

Each environment is small and made by py-rattler; `as_conda_writes` gives records the other shape. What conda itself
makes and says is in `test_both_clients`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.conda_meta import history
from envmedic.installers.conda.install import package_cache
from envmedic.installers.conda.install.change_job import WORK
from envmedic.model.ports import ApplyOptions
from tests.conda import damage
from tests.conda.changes import Case, carried_out, content, enter, installed
from tests.conda.channel import Channels, noarch
from tests.conda.room import Room, make_room, record_of
from tests.gallery.repair_gallery.conda import package
from tests.gallery.repair_gallery.conda.files import scan
from tests.gallery.repair_gallery.conda.package import Content, Package, write_channel

PYTHON = "python=3.11"


@pytest.fixture(scope="module")
def shared(local: Channels, tmp_path_factory: pytest.TempPathFactory) -> Room:
    """A room whose package cache is warm after the first environment."""
    return make_room(tmp_path_factory.mktemp("shared") / "room", local.old)


@pytest.fixture
def case(shared: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """An environment that is to be made (`made`), under a name of its own."""
    enter(shared, monkeypatch)
    return Case(shared, shared.envs / tmp_path.name)


def made(case: Case, *specs: str, channels: tuple[str, ...] = ()) -> Path:
    """The environment, with a Python and `specs`; `channels` come before the room's."""
    room = Room(case.room.root, (*channels, *case.room.channels))
    return room.by_rattler(case.prefix.name, [PYTHON, *specs])


def as_conda_writes(prefix: Path, name: str) -> None:
    """Give the record of a noarch package the paths that conda gives it."""
    path = record_of(prefix, name)
    document = json.loads(path.read_bytes())
    for entry in document["paths_data"]["paths"]:
        entry["_path"] = entry["_path"].removeprefix("lib/python3.11/")
        if entry["_path"].startswith("bin/") and entry["path_type"] == "hardlink":
            entry["_path"] = "python-scripts/" + entry["_path"].removeprefix("bin/")
    path.write_text(json.dumps(document))


def run_python(case: Case, code: str) -> str:
    """What the environment's Python prints; it writes byte code, whatever whoever runs the tests has set."""
    return subprocess.check_output([case.prefix / "bin" / "python", "-c", code], env=case.room.environment, text=True)


def site(prefix: Path) -> Path:
    return prefix / "lib" / "python3.11" / "site-packages"


def test_noarch_packages_that_conda_installed_go_with_all_their_files(case: Case) -> None:
    made(case, "sympy")
    for name in ("sympy", "mpmath"):
        as_conda_writes(case.prefix, name)
    run_python(case, "import sympy, mpmath")
    assert list(site(case.prefix).glob("sympy/__pycache__/*.pyc"))
    change = case.resolve(remove=("sympy",), removable=("mpmath",))
    assert [item.name for item in change.remove] == ["mpmath", "sympy"]
    carried_out(case.apply(change, check="import sys; sys.exit(bool(__import__('pkgutil').find_loader('sympy')))"))
    left = [path.name for path in site(case.prefix).iterdir() if "sympy" in path.name or "mpmath" in path.name]
    assert left == []
    assert not (case.prefix / "bin" / "isympy").exists()


def test_an_upgraded_noarch_package_that_conda_installed_is_there_once(case: Case) -> None:
    made(case, "filelock=3.15.4")
    as_conda_writes(case.prefix, "filelock")
    change = case.resolve("filelock=3.16.1")
    assert [(item.name, item.version) for item in change.remove] == [("filelock", "3.15.4")]
    assert [(item.name, item.version) for item in change.install] == [("filelock", "3.16.1")]
    carried_out(case.apply(change, check="import filelock; assert filelock.__version__ == '3.16.1'"))
    assert [path.name for path in site(case.prefix).glob("filelock*")] == ["filelock", "filelock-3.16.1.dist-info"]
    assert scan(case.prefix) == []


def test_byte_code_is_made_and_listed_so_that_it_goes_with_its_package(case: Case) -> None:
    made(case, "filelock=3.15.4")
    carried_out(case.apply(case.resolve("filelock=3.16.1")))
    cached = "lib/python3.11/site-packages/filelock/__pycache__/__init__.cpython-311.pyc"
    assert (case.prefix / cached).is_file()
    document = json.loads(record_of(case.prefix, "filelock").read_bytes())
    assert {"_path": cached, "path_type": "pyc_file"} in document["paths_data"]["paths"]
    assert cached in document["files"]
    carried_out(case.apply(case.resolve(remove=("filelock",))))
    assert not list(site(case.prefix).glob("filelock*"))


def test_byte_code_of_the_old_modules_is_not_taken_for_that_of_the_new_ones(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same size and same time: only the content differs, which Python's byte code does not tell.

    py-rattler clears directories of byte code with what they belong to, and none that packages share.
    """
    fill = package._fill
    monkeypatch.setattr(package, "_fill", lambda archive, members, _seconds: fill(archive, members, 1_700_000_000))
    url = write_channel(tmp_path / "extra", [_module("1.0"), _module("2.0")])
    made(case, "same=1.0", channels=(url,))
    code = "import same; print(same.__version__)"
    assert run_python(case, code) == "1.0\n"
    carried_out(case.apply(case.resolve("same=2.0", channels=(url,))))
    assert run_python(case, code) == "2.0\n"
    carried_out(case.apply(case.resolve(remove=("same",), channels=(url,))))
    assert not list(site(case.prefix).rglob("same*"))


def _module(version: str) -> Package:
    files: dict[str, Content] = {"site-packages/same.py": f'__version__ = "{version}"\n'}
    return Package("same", version, "0", files=files, depends=("python",), subdir="noarch", noarch="python")


def test_the_history_gets_a_revision_that_overrides_what_no_longer_holds(case: Case) -> None:
    made(case, "filelock=3.15.4", "sympy")
    old = (
        "==> 2024-05-01 12:00:00 <==\n# cmd: conda create -n x filelock=3.15.4 sympy\n# conda version: 24.7.1\n"
        "+pytorch/noarch::filelock-3.15.4-pyhd8ed1ab_0\n"
        "# update specs: ['filelock=3.15.4', 'sympy', 'python=3.11']\n"
    )
    (case.prefix / history.PATH).write_text(old)
    carried_out(case.apply(case.resolve("filelock>=3.16", remove=("sympy",), removable=("mpmath",))))
    text = (case.prefix / history.PATH).read_text()
    assert text.startswith(old)
    last = history.read(text)[-1]
    assert last.command == ("envmedic", "apply")
    assert any(item.endswith("filelock-3.16.1-pyhd8ed1ab_0") for item in last.added)
    assert history.specs_in_force(history.read(text)) == {"filelock": "filelock>=3.16", "python": "python=3.11"}


def test_a_damaged_file_is_put_right_although_the_cache_has_the_damage(case: Case) -> None:
    made(case, "filelock=3.15.4")
    file = damage.edit_in_place(case.prefix, "filelock", "filelock/__init__.py")
    cached = next((case.room.root / "rattler").rglob("filelock-3.15.4-*/site-packages/filelock/__init__.py"))
    assert cached.read_text().endswith("# edited\n")
    change = case.resolve(reinstall=("filelock",))
    assert [(item.name, item.version) for item in change.install] == [("filelock", "3.15.4")]
    assert not change.specs
    carried_out(case.apply(change))
    assert not file.read_text().endswith("# edited\n")
    assert file.stat().st_nlink == 1
    assert scan(case.prefix) == []
    assert "extracted_package_dir" not in json.loads(record_of(case.prefix, "filelock").read_bytes())
    assert not (case.prefix / WORK).exists()


def test_missing_files_come_back(case: Case) -> None:
    made(case, "sympy")
    gone = damage.delete(case.prefix, "sympy", ".py")
    carried_out(case.apply(case.resolve(reinstall=("sympy",)), check="import sympy"))
    assert all(path.is_file() for path in gone)


def test_undo_gives_back_every_byte(case: Case) -> None:
    made(case, "filelock=3.15.4", "sympy")
    before = content(case.prefix)
    carried_out(case.apply(case.resolve("filelock=3.16.1", remove=("sympy",))))
    assert content(case.prefix) != before
    case.undo()
    assert content(case.prefix) == before


def test_a_package_whose_files_are_not_what_it_says_changes_nothing(case: Case, tmp_path: Path) -> None:
    url = lying_channel(tmp_path / "extra")
    made(case, "filelock=3.15.4")
    before = content(case.prefix)
    record = case.apply(case.resolve("filelock=9.0", channels=(url,)))
    assert record.failure is not None
    assert (record.failure.code, record.environment) == ("integrity", "unchanged")
    assert "_lying.py: another content" in (record.failure.cause or "")
    assert content(case.prefix) == before


def lying_channel(directory: Path) -> str:
    """A channel with a package whose list of files has another hash for one of them."""
    sound = noarch("filelock", "9.0")
    lying = dataclasses.replace(sound, files={**sound.files, "site-packages/filelock/_lying.py": "value = 1\n"})
    with pytest.MonkeyPatch.context() as patch:
        entry = package._path_entry
        wrong = {"sha256": "0" * 64}
        patch.setattr(
            package, "_path_entry", lambda path, of: entry(path, of) | (wrong if path.endswith("_lying.py") else {})
        )
        return write_channel(directory, [lying])


def test_a_package_file_that_was_damaged_in_the_cache_is_not_taken(case: Case) -> None:
    made(case, "filelock=3.15.4")
    change = case.resolve("filelock=3.16.1")
    case.side.fetch(change, offline=False, emit=case.events.append)
    path = package_cache.path_of(change.install[0])
    path.write_bytes(path.read_bytes()[:-10])
    carried_out(case.apply(change))
    assert case.notices("damaged-cache") == [f"{path} was damaged and is fetched again"]
    assert scan(case.prefix) == []


def test_scripts_of_packages_are_not_run_and_that_is_said(case: Case) -> None:
    made(case)
    carried_out(case.apply(case.resolve("linked-tool")))
    assert not (case.prefix / "linked-tool-was-here").exists()
    assert case.notices("link-script-not-run") == [
        "bin/.linked-tool-post-link.sh of linked-tool was not run: scripts of packages can change what is not theirs"
    ]


def test_beside_the_environment_files_are_made_for_its_own_path(case: Case) -> None:
    made(case, "openssl=3.0.15", "tqdm")
    case.options = ApplyOptions(staging="relocate")
    record = carried_out(case.apply(case.resolve(reinstall=("openssl", "tqdm"))))
    assert record.staging == "relocate"
    assert (case.prefix / "ssl" / "openssl.cnf").read_text() == f"# A miniature\ndir = {case.prefix}/ssl\n"
    assert (case.prefix / "bin" / "tqdm").read_text().startswith(f"#!{case.prefix}/bin/python")
    assert named_in(case.prefix, ".envmedic") == []
    assert scan(case.prefix) == []


def named_in(prefix: Path, word: str) -> list[str]:
    files = (path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink())
    return [str(path) for path in files if word.encode() in path.read_bytes()]


def test_a_clobbered_file_is_not_taken_for_damage(case: Case, tmp_path: Path) -> None:
    """Two packages of one channel bring the same file with another content."""
    one = Package("one", "1.0", "0", files={"share/both": "one\n", "share/one": "1\n"})
    two = Package("two", "1.0", "0", files={"share/both": "two\n", "share/two": "2\n"})
    url = write_channel(tmp_path / "extra", [one, two])
    made(case)
    carried_out(case.apply(case.resolve("one", "two", channels=(url,))))
    assert (case.prefix / "share" / "both").read_text() in {"one\n", "two\n"}
    carried_out(case.apply(case.resolve(remove=("two",), channels=(url,))))
    assert (case.prefix / "share" / "both").read_text() == "one\n"
    assert "two" not in installed(case.prefix)


def test_a_file_of_two_packages_stays_with_the_one_that_stays(case: Case, tmp_path: Path) -> None:
    """Both bring the same bytes, as packages of one family do with a header or a licence."""
    both: dict[str, Content] = {"share/both": "the same\n", "share/deep/both": "the same\n"}
    one = Package("one", "1.0", "0", files={**both, "share/one": "1\n"})
    two = Package("two", "1.0", "0", files={**both, "share/two": "2\n"})
    url = write_channel(tmp_path / "extra", [one, two])
    made(case, "one", channels=(url,))
    carried_out(case.apply(case.resolve("two", channels=(url,))))
    before = content(case.prefix)
    carried_out(case.apply(case.resolve(remove=("one",), channels=(url,))))
    assert {path: (case.prefix / path).read_text() for path in both} == both
    assert not (case.prefix / "share" / "one").exists()
    assert "one" not in installed(case.prefix)
    assert scan(case.prefix) == []
    case.undo()
    assert content(case.prefix) == before


@pytest.mark.long
def test_killed_in_the_middle_the_environment_is_as_it_was_and_the_next_run_repairs_it(
    case: Case, tmp_path: Path
) -> None:
    made(case, "sympy")
    before = content(case.prefix)
    script = tmp_path / "apply.py"
    script.write_text(_APPLY.format(here=str(Path(__file__).parents[2]), prefix=str(case.prefix), room=case.room))
    process = subprocess.Popen([sys.executable, str(script)], start_new_session=True, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: found(case.prefix.parent, f".envmedic/*/*/{WORK}/packages/*"), process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert content(case.prefix) == before
    carried_out(case.apply(case.resolve(reinstall=("sympy", "python"))))
    assert scan(case.prefix) == []


_APPLY = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path, PosixPath
from tests.conda.changes import Case
from tests.conda.room import Room
case = Case({room!r}, Path({prefix!r}))
case.apply(case.resolve(reinstall=("sympy", "python")))
"""


def found(folder: Path, pattern: str) -> bool:
    """Whether anything is there; what vanishes meanwhile is not."""
    try:
        return any(folder.glob(pattern))
    except FileNotFoundError:
        return False


def wait_for(there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    for _ in range(30_000):
        if there():
            return
        assert process.poll() is None, (process.communicate()[1] or b"").decode()[-3000:]
        time.sleep(0.01)
    raise AssertionError("nothing happened")
