"""``apply --lock``: the locks of what was verified."""

from __future__ import annotations

from pathlib import Path

from envmedic.locks.reading import read
from tests.cli.support import REPAIR, Shell, state_of
from tests.envs.nms_cuda.case import REPAIRED, Case


def test_a_repair_is_locked_with_what_proved_it(user: Shell, case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "locks" / "new"
    done = user.envmedic(*REPAIR, "-p", str(case.prefix), "--lock", str(folder), "--json")
    assert done.code == 0, done.told()
    assert {path.name for path in folder.iterdir()} == {"pylock.toml", "requirements.txt"}
    found = read(folder / "requirements.txt")
    torchvision = next(item for item in found.packages if item.name == "torchvision")
    wheel = next(case.wheels.glob(f"torchvision-{REPAIRED}-*.whl"))
    assert (torchvision.version, torchvision.sha256) == (REPAIRED, _sha256(wheel))
    assert found.transaction == done.document["transaction"]
    assert {"torchvision-dispatch", "pip-check", "import torchvision"} <= set(found.verified)
    assert "torchvision-nms" not in found.verified, "no GPU was there for it"
    assert len([text for text in done.document["notes"] if text.startswith("Locked in")]) == 2


def test_the_record_keeps_what_became_of_the_locks(user: Shell, case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    done = user.envmedic(*REPAIR, "-p", str(case.prefix), "--lock", str(folder), "--json")
    store = case.prefix.parent / ".envmedic" / done.document["transaction"]
    assert f"Locked in {folder}/pylock.toml" in (store / "record.json").read_text(encoding="utf-8")
    assert user.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0


def test_a_directory_that_cannot_be_written_is_told_before_anything_is_done(user: Shell, case: Case) -> None:
    before = state_of(case.prefix)
    (case.wheels / "file").write_text("", encoding="utf-8")
    done = user.envmedic(*REPAIR, "-p", str(case.prefix), "--lock", str(case.wheels / "file"), "--json")
    assert done.code == 2
    assert done.document["schema"] == "envmedic.error/1"
    assert state_of(case.prefix) == before


def test_after_a_change_the_lock_no_longer_claims_the_repair(user: Shell, case: Case) -> None:
    assert user.envmedic(*REPAIR, "-p", str(case.prefix)).code == 0
    proven = user.envmedic("lock", "-p", str(case.prefix), "--json").document
    assert proven["transaction"]
    case.edited.write_text(case.edited.read_text(encoding="utf-8") + "\nmore = 1\n", encoding="utf-8")
    edited = user.envmedic("lock", "-p", str(case.prefix), "--json").document
    assert edited["transaction"] is None
    assert edited["verified"] == []


def _sha256(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()
