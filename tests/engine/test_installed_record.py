"""What an installer says it has installed is compared with its RECORD before the repair goes on."""

from __future__ import annotations

import zipfile
from pathlib import Path

import msgspec
import pytest

from envmedic.engine.transaction.installed_record import require_whole
from envmedic.errors import InstallerError
from envmedic.model.plan import Artifact, Install, Purge
from envmedic.tree import fingerprint
from tests.engine.world import SITE, ShellInstaller, World, artifact

INFO = "fam-2.0.dist-info"
ROWS = ("fam/__init__.py,sha256=a,6", f"{INFO}/METADATA,sha256=b,4", f"{INFO}/RECORD,,")
WHOLE = "".join(f"{row}\n" for row in ROWS)


class Damaging(ShellInstaller):
    """Ends with 0 though what it installed is damaged."""

    def __init__(self, damage: str) -> None:
        super().__init__()
        self._damage = damage

    def commands(self, step: Purge | Install, python: str) -> tuple[tuple[str, ...], ...]:
        done = super().commands(step, python)
        if isinstance(step, Purge):
            return done
        info = f"{python.removesuffix('/bin/python')}/{SITE}/{INFO}"
        return (*done, ("/bin/sh", "-ec", f"cd '{info}'; {self._damage}"))


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (": > RECORD", f"{INFO}/RECORD is empty"),
        ("rm RECORD", f"there is no {INFO}/RECORD"),
        (f"rm -r ../{INFO}", "no metadata of fam 2.0 is in site-packages"),
        ("printf fam/__init__.py,sha > RECORD", f"{INFO}/RECORD is cut off"),
        ("echo fam/__init__.py,, > RECORD", f"{INFO}/RECORD does not list {INFO}/METADATA"),
        ("echo fam/__init__.py,sha256=x,1 >> RECORD", "fam/__init__.py has 20 bytes"),
        ("echo fam/gone.py,sha256=x,1 >> RECORD", "fam/gone.py is missing"),
    ],
)
def test_an_installation_in_parts_ends_the_repair_with_the_environment_unchanged(
    quick: World, damage: str, cause: str
) -> None:
    before = fingerprint.manifest(quick.prefix)
    quick.installer = Damaging(damage)
    record = quick.apply()
    assert record.failure is not None
    assert (record.failure.code, record.state) == ("installer", "aborted")
    assert "fam 2.0 was not installed whole" in record.failure.summary
    assert cause in (record.failure.cause or "")
    assert fingerprint.manifest(quick.prefix) == before


def installed(root: Path, *, record: str = WHOLE) -> tuple[Artifact, Path]:
    """A wheel, and the clone in which it is installed with that RECORD."""
    wheel = root / "fam-2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("fam/__init__.py", "x = 1\n")
        file.writestr("fam-2.0.data/scripts/fam", "#!python\n")
        file.writestr(f"{INFO}/METADATA", "meta")
        file.writestr(f"{INFO}/RECORD", WHOLE + "fam-2.0.data/scripts/fam,sha256=c,9\n")
    site = root / "clone" / SITE
    (site / "fam").mkdir(parents=True)
    (site / INFO).mkdir()
    (site / "fam" / "__init__.py").write_text("x = 1\n")
    (site / INFO / "METADATA").write_text("meta")
    (site / INFO / "RECORD").write_text(record)
    return msgspec.structs.replace(artifact("fam", "2.0"), local_path=str(wheel)), root / "clone"


def test_a_whole_installation_is_accepted(tmp_path: Path) -> None:
    item, clone = installed(tmp_path)
    require_whole([item], clone)


def test_a_record_that_ends_after_a_whole_row_is_compared_with_that_of_the_wheel(tmp_path: Path) -> None:
    item, clone = installed(tmp_path, record="".join(f"{row}\n" for row in ROWS[1:]))
    with pytest.raises(InstallerError) as raised:
        require_whole([item], clone)
    assert f"{INFO}/RECORD does not list fam/__init__.py" in (raised.value.cause or "")


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    item, clone = installed(tmp_path)
    (clone / SITE / "fam" / "__init__.py").write_text("x")
    with pytest.raises(InstallerError) as raised:
        require_whole([item], clone)
    assert "fam/__init__.py has 1 bytes" in (raised.value.cause or "")


def test_a_wheel_that_is_wrong_about_itself_is_not_the_installer_s_fault(tmp_path: Path) -> None:
    item, clone = installed(tmp_path, record=WHOLE.replace(",6\n", ",7\n") + "fam/never.py,sha256=d,3\n")
    require_whole([item], clone)


def test_a_file_that_two_distributions_write_has_the_size_of_one_of_them(tmp_path: Path) -> None:
    item, clone = installed(tmp_path)
    other = clone / SITE / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("")
    (other / "RECORD").write_text("fam/__init__.py,sha256=e,2\nother-1.0.dist-info/METADATA,,\n")
    (clone / SITE / "fam" / "__init__.py").write_text("y\n")
    require_whole([item, artifact("other", "1.0")], clone)
