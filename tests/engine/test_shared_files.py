"""A file that several distributions list stays with the others when one of them is replaced, or nothing is repaired."""

from __future__ import annotations

from envmedic.model.plan import Install, Purge
from envmedic.tree import fingerprint
from tests.engine.world import SITE, ShellInstaller, World
from tests.support.wheels import record_hash

CONTENT = "# one namespace for all\n"


class ByRecord(ShellInstaller):
    """Removes all that RECORD lists, as installers do, whoever else lists it."""

    def commands(self, step: Purge | Install, python: str) -> tuple[tuple[str, ...], ...]:
        done = super().commands(step, python)
        site = f"{python.removesuffix('/bin/python')}/{SITE}"
        listed = f"cd '{site}'; cut -d, -f1 fam-1.0.dist-info/RECORD | xargs rm -f; rmdir space"
        return (("/bin/sh", "-ec", listed), *done) if isinstance(step, Purge) else done


def share(world: World, *, stated: str) -> None:
    """Let fam and other0 list one file, other0 with the hash of `stated`."""
    world.installer = ByRecord()
    (world.site / "space").mkdir()
    (world.site / "space" / "__init__.py").write_text(CONTENT)
    for name, content in (("fam-1.0", CONTENT), ("other0-3.1", stated)):
        row = f"space/__init__.py,{record_hash(content.encode())},{len(content)}\n"
        record = world.site / f"{name}.dist-info" / "RECORD"
        record.write_text(record.read_text() + row)


def test_what_another_distribution_lists_with_the_same_content_is_kept(quick: World) -> None:
    share(quick, stated=CONTENT)
    shared = quick.site / "space" / "__init__.py"
    old, times = fingerprint.manifest(quick.prefix), shared.stat().st_mtime_ns
    assert quick.apply().state == "done"
    assert (shared.read_text(), shared.stat().st_mtime_ns) == (CONTENT, times)
    assert quick.version() == "2.0"
    quick.undo()
    assert fingerprint.manifest(quick.prefix) == old


def test_a_repair_that_takes_a_file_which_stays_listed_is_none(quick: World) -> None:
    share(quick, stated="# another\n")
    old = fingerprint.manifest(quick.prefix)
    record = quick.apply()
    assert record.failure is not None
    assert (record.failure.code, record.state) == ("checks-failed", "aborted")
    assert record.regressions == (f"other0 3.1 lists {SITE}/space/__init__.py, gone by the repair",)
    assert fingerprint.manifest(quick.prefix) == old
