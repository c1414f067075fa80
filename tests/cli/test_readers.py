"""Commands that read an environment write nothing inside or beside it, and settle nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import ENVMEDIC, REPAIR, Shell, failure, state_of, user_of
from tests.cli.test_interruption import signalled
from tests.envs.nms_cuda.case import Case, build
from tests.support.rooms import in_memory

pytestmark = pytest.mark.long

READERS = (
    ("diagnose",),
    ("diagnose", "--deep"),
    ("facts",),
    ("plan", "--playbook", "nms-cuda"),
    ("apply", "--dry-run", "--playbook", "nms-cuda"),
    ("verify", "--no-gpu"),
    ("history",),
    ("check", "torchvision"),
    ("guard", "pip uninstall torchvision"),
    ("lock", "--format", "requirements", "--allow-incomplete"),
    ("envs",),
)
DOCUMENTS = {"diagnose", "facts", "verify", "history", "check", "guard", "lock"}
"""Commands whose document has the field `interrupted`."""
OTHER_USER = 65534


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory in memory where there is one, which every user may enter."""
    for folder in in_memory(tmp_path_factory.mktemp("readers")):
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def clean(place: Path) -> Case:
    """A broken environment that was never repaired."""
    return build(place / "clean")


@pytest.fixture(scope="module")
def killed(place: Path) -> Case:
    """A broken environment whose repair was killed; tests only read it."""
    case = build(place / "killed")
    done = signalled(user_of(case, place / "killed-home"), case, "verify", signal.SIGKILL)
    assert done.code == -signal.SIGKILL, done.told()
    return case


def transaction_of(case: Case) -> str:
    """The id of the one transaction of `case`."""
    (found,) = case.prefix.parent.glob(".envmedic/2*")
    return found.name


def target(case: Case) -> tuple[str, ...]:
    return ("--json", "-p", str(case.prefix))


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_a_reader_changes_nothing_of_an_environment_without_store(
    clean: Case, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = state_of(clean.prefix.parent)
    done = user_of(clean, tmp_path).envmedic(*words, *(("--json",) if words == ("envs",) else target(clean)))
    assert done.code in {0, 1}, done.told()
    assert done.document.get("interrupted") is None
    assert "interrupted" not in done.err
    assert state_of(clean.prefix.parent) == before


@pytest.mark.parametrize("words", [*READERS[:-1], ("diff",)], ids=" ".join)
def test_a_reader_reports_an_interrupted_transaction_and_reads_on(
    killed: Case, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = state_of(killed.prefix.parent)
    done = user_of(killed, tmp_path).envmedic(*words, *target(killed))
    assert state_of(killed.prefix.parent) == before
    assert f"run `envmedic recover -p {killed.prefix}`" in done.err
    if words == ("diff",):
        failure(done, code=2, kind="input", says="There is nothing to compare")
        return
    assert done.code in {0, 1}, done.told()
    if words[0] in DOCUMENTS:
        assert done.document["interrupted"] == transaction_of(killed)
    else:  # the digest of a plan covers its notes, so they can say it
        assert any(transaction_of(killed) in note for note in done.document["notes"])


def test_a_command_that_fails_is_diagnosed_without_settling_anything(killed: Case, tmp_path: Path) -> None:
    before = state_of(killed.prefix.parent)
    user = user_of(killed, tmp_path)
    done = user.envmedic("run", *target(killed), "--", str(killed.python), "-B", "-c", "raise SystemExit(3)")
    assert done.code == 3, done.told()
    assert f'"interrupted": "{transaction_of(killed)}"' in done.err
    assert state_of(killed.prefix.parent) == before


def test_the_saved_plan_of_an_interrupted_environment_is_intact(killed: Case, tmp_path: Path) -> None:
    user, saved = user_of(killed, tmp_path), tmp_path / "plan.json"
    made = user.envmedic("plan", "--playbook", "nms-cuda", "-o", str(saved), *target(killed))
    assert made.code == 0, made.told()
    shown = user.envmedic("apply", str(saved), "--dry-run", "--json")
    assert shown.code == 0, shown.told()
    assert shown.document["id"] == made.document["id"] == json.loads(saved.read_text())["id"]


def test_a_reader_during_a_repair_says_who_works_there(case: Case, user: Shell) -> None:
    with user.running(*REPAIR, "--events", "--json", "-p", str(case.prefix)) as first:
        assert first.stderr is not None
        for line in first.stderr:
            if b'"verify"' in line:
                first.send_signal(signal.SIGSTOP)
                break
        try:
            done = user.envmedic("history", *target(case))
        finally:
            first.send_signal(signal.SIGCONT)
        first.communicate()
    assert (done.code, done.document["interrupted"]) == (0, None), done.told()
    assert f"Another envmedic works on {case.prefix} (process {first.pid})" in done.err
    assert first.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("state", ["clean", "killed"])
@pytest.mark.parametrize("words", [("diagnose",), ("history",), ("plan", "--playbook", "nms-cuda")], ids=" ".join)
def test_a_user_without_write_permission_reads(
    request: pytest.FixtureRequest, tmp_path: Path, state: str, words: tuple[str, ...]
) -> None:
    case: Case = request.getfixturevalue(state)
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv")
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, OTHER_USER, OTHER_USER)
    become = ("setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups")
    user = dataclasses.replace(user_of(case, home), program=(*become, *ENVMEDIC))
    if user.envmedic("--version").code != 0:
        pytest.skip("another user may not start this Python")
    before = state_of(case.prefix.parent)
    done = user.envmedic(*words, *target(case))
    assert "Traceback" not in done.err, done.told()
    assert done.code in {0, 1}, done.told()
    assert state == "clean" or "belongs to another user" in done.err
    assert state_of(case.prefix.parent) == before


READ_ONLY = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
shift
exec "$@"
"""


def on_read_only_disk(user: Shell, case: Case) -> Shell:
    """The user while the file system of the case is read-only."""
    own = ("unshare", "-m", "sh", "-c", READ_ONLY, "sh", str(case.prefix.parent))
    if shutil.which("unshare") is None or subprocess.run([*own, "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounts of its own are not to be had here")
    return dataclasses.replace(user, program=(*own, *user.program))


@pytest.mark.parametrize("state", ["clean", "killed"])
@pytest.mark.parametrize("words", [("diagnose",), ("history",), ("verify", "--no-gpu")], ids=" ".join)
def test_a_reader_reads_from_a_read_only_disk(
    request: pytest.FixtureRequest, tmp_path: Path, state: str, words: tuple[str, ...]
) -> None:
    case: Case = request.getfixturevalue(state)
    done = on_read_only_disk(user_of(case, tmp_path), case).envmedic(*words, *target(case))
    assert done.code in {0, 1}, done.told()
    assert done.document["interrupted"] == (transaction_of(case) if state == "killed" else None)


@pytest.mark.parametrize(
    "words",
    [("recover",), ("undo", "--yes"), ("redo", "--yes"), ("prune", "--yes"), REPAIR],
    ids=lambda words: words[0],
)
def test_what_cannot_be_settled_on_a_read_only_disk_is_told(
    killed: Case, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = state_of(killed.prefix.parent)
    done = on_read_only_disk(user_of(killed, tmp_path), killed).envmedic(*words, *target(killed))
    assert (done.code, done.document["code"]) == (6, "recovery-needed"), done.told()
    assert "Read-only file system" in done.err
    assert "writable again" in done.document["hint"]
    assert done.document["environment"] == "recoverable"
    assert state_of(killed.prefix.parent) == before


@pytest.mark.parametrize(
    "words", [("prune", "--yes", "--keep", "0"), ("undo", "--yes"), REPAIR], ids=lambda words: words[0]
)
def test_a_change_on_a_read_only_disk_is_refused_in_words(case: Case, user: Shell, words: tuple[str, ...]) -> None:
    done = user.envmedic(*REPAIR, *target(case))
    assert done.code == 0, done.told()
    done = on_read_only_disk(user, case).envmedic(*words, *target(case))
    failure(done, code=1, kind="preflight", says="ead-only file system")


def halfway(case: Case) -> Path:
    """Leave the environment as a kill between the renames of an exchange does: at neither place."""
    displaced = case.prefix.parent / ".envmedic" / transaction_of(case) / "displaced"
    case.prefix.rename(displaced)
    return displaced


@pytest.fixture
def missing(killed: Case) -> Iterator[Case]:
    """`killed`, without its environment in its place."""
    displaced = halfway(killed)
    yield killed
    if not killed.prefix.exists():
        displaced.rename(killed.prefix)


@pytest.mark.parametrize(
    "words",
    [("diagnose",), ("history",), ("plan",), ("guard", "pip list"), ("undo", "--yes"), ("prune", "--yes"), REPAIR],
    ids=" ".join,
)
def test_a_prefix_that_is_missing_in_an_exchange_is_named_as_that(
    missing: Case, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = state_of(missing.prefix.parent)
    done = user_of(missing, tmp_path).envmedic(*words, *target(missing))
    assert (done.code, done.document["code"]) == (6, "recovery-needed"), done.told()
    assert "is missing: its exchange was interrupted" in done.document["summary"]
    assert f"envmedic recover -p {missing.prefix}" in done.document["hint"]
    assert state_of(missing.prefix.parent) == before


def test_a_missing_prefix_is_named_however_it_was_named(missing: Case, tmp_path: Path) -> None:
    user = user_of(missing, tmp_path)
    ways = (
        user.envmedic("facts", "--json", "--python", str(missing.python)),
        user.having(VIRTUAL_ENV=str(missing.prefix)).envmedic("facts", "--json"),
        user.having(CONDA_ENVS_DIRS=str(missing.prefix.parent)).envmedic("facts", "--json", "-n", missing.prefix.name),
    )
    for done in ways:
        assert (done.code, done.document["code"]) == (6, "recovery-needed"), done.told()


def test_recovery_brings_a_missing_active_environment_back(case: Case, user: Shell) -> None:
    signalled(user, case, "verify", signal.SIGKILL)
    before = state_of(case.prefix)
    halfway(case)
    done = user.having(VIRTUAL_ENV=str(case.prefix)).envmedic("recover", "--json")
    assert done.code == 0, done.told()
    assert state_of(case.prefix) == before


@pytest.mark.usefixtures("untouched")
def test_facts_has_the_content_in_it_and_alone(shared: Case, reader: Shell) -> None:
    alone = reader.envmedic("facts", "-p", str(shared.prefix), "--content", "--json")
    assert alone.code == 0, alone.told()
    assert alone.document["schema"] == "envmedic.content/1"
    assert "torchvision" in {item["name"] for item in alone.document["distributions"]}
    assert reader.envmedic("facts", "-p", str(shared.prefix), "--json").document["content"] == alone.document
    told = reader.envmedic("facts", "-p", str(shared.prefix), "--content")
    assert told.out.startswith(alone.document["digest"])
    failure(reader.envmedic("facts", "--content", "--host-only"), code=2, kind="input", says="--content")
