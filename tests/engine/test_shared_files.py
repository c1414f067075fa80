"""A file that several distributions list stays with the others when one of them is replaced, or nothing is repaired."""

from __future__ import annotations

import hashlib
import json

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


def share_with_conda(world: World, *, dist_info: str = "") -> None:
    """Let fam and a package of conda list one file; `dist_info` is what else the package lists."""
    world.installer = ByRecord()
    (world.site / "space").mkdir()
    (world.site / "space" / "__init__.py").write_text(CONTENT)
    record = world.site / "fam-1.0.dist-info" / "RECORD"
    record.write_text(f"{record.read_text()}space/__init__.py,{record_hash(CONTENT.encode())},{len(CONTENT)}\n")
    own = {"_path": f"{SITE}/space/__init__.py", "path_type": "hardlink"}
    own["sha256"] = hashlib.sha256(CONTENT.encode()).hexdigest()
    entries = [own, *([{"_path": dist_info, "path_type": "hardlink"}] if dist_info else [])]
    document = {"name": "space", "version": "1.0", "build": "0", "files": [item["_path"] for item in entries]}
    (world.prefix / "conda-meta").mkdir()
    path = world.prefix / "conda-meta" / "space-1.0-0.json"
    path.write_text(json.dumps({**document, "paths_data": {"paths_version": 1, "paths": entries}}))


def test_what_a_package_of_conda_lists_is_kept_too(quick: World) -> None:
    share_with_conda(quick)
    assert quick.apply().state == "done"
    assert (quick.site / "space" / "__init__.py").read_text() == CONTENT


def test_the_list_of_a_package_that_an_installer_of_wheels_replaced_keeps_nothing(quick: World) -> None:
    share_with_conda(quick, dist_info=f"{SITE}/space-1.0.dist-info/RECORD")
    assert quick.apply().state == "done"
    assert not (quick.site / "space").exists()
