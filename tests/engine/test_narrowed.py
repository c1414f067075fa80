"""After the steps, only what they can have affected is imported."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import pytest

from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit
from envmedic.model.plan import SetEnv
from envmedic.model.ports import ApplyOptions, Runner
from envmedic.model.record import Record
from envmedic.probe.packages.affected import Affected
from envmedic.tree import fingerprint
from tests.engine.test_apply import by_module, reported
from tests.engine.world import SITE, World, make_environment, replacement

IMPORTS = Check(name="import", role="regression", arguments=("fam", "other1", "other2"))


def repaired(world: World, **changes: object) -> tuple[Record, list[str]]:
    world.checks = by_module([])
    plan = world.plan(checks=(*world.plan().checks, IMPORTS))
    record = world.apply(msgspec.structs.replace(plan, **changes))
    assert record.state == "done", record.failure
    return record, [item.check for item in record.checks_after if item.check.startswith("import ")]


@pytest.mark.parametrize("clone", ["link", "auto"])
def test_what_nothing_of_the_change_concerns_is_left_out(tmp_path: Path, clone: str) -> None:
    world = World(make_environment(tmp_path / "env"), msgspec.convert({"clone": clone}, ApplyOptions))
    (world.site / "other1" / "__init__.py").write_text("import fam\n")
    (world.site / "other1" / "__init__.py").chmod(0o644)
    seen: list[Collection[str]] = []

    def find(before: Path, after: Path, changed: Collection[str], moved: Collection[str]) -> frozenset[str]:
        seen.extend([changed, moved])
        return Affected().unaffected(before, after, changed, moved)

    world.unaffected = find
    _, imported = repaired(world)
    assert imported == ["import fam", "import other1"]
    assert {name for name in seen[0] if name.startswith(SITE)} == {
        f"{SITE}/fam/__init__.py", f"{SITE}/fam-1.0.dist-info", f"{SITE}/fam-1.0.dist-info/METADATA",
        f"{SITE}/fam-1.0.dist-info/RECORD", f"{SITE}/fam-2.0.dist-info", f"{SITE}/fam-2.0.dist-info/METADATA",
        f"{SITE}/fam-2.0.dist-info/RECORD",
    }  # fmt: skip
    assert set(seen[1]) == {"fam"}


def all_but_fam(*_arguments: object) -> frozenset[str]:
    return frozenset({"other1", "other2"})


NUMBA = Check(name="numba", role="informative", arguments=("pass",))


@pytest.mark.parametrize(
    ("spared", "library", "asked"),
    [
        ({"numba", "other1", "other2"}, "other2/other.so", False),
        ({"other1", "other2"}, "other2/other.so", True),
        ({"numba", "other1", "other2"}, "other2/libcudnn_ops.so.9", True),
    ],
)
def test_a_library_beside_torch_is_asked_only_where_something_that_it_loads_can_have_changed(
    world: World, spared: set[str], library: str, *, asked: bool
) -> None:
    world.unaffected = lambda *_arguments: frozenset(spared)
    world.checks = by_module([])
    seen: list[str] = []
    run = world.checks

    def note(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        seen.extend(f"{phase} {check.name}" for check in checks)
        return run(checks, runner, phase, emit)

    world.checks = note

    def add(name: str) -> None:
        if name == "step-taken":
            (next(world.store.glob("*/env")) / SITE / library).write_bytes(b"")

    record = world.apply(world.plan(checks=(*world.plan().checks, IMPORTS, NUMBA)), point=add)
    assert record.state == "done", record.failure
    assert ("after numba" in seen) == asked


def test_the_full_profile_imports_all(world: World) -> None:
    world.options, world.unaffected = ApplyOptions(profile="full"), all_but_fam
    assert repaired(world)[1] == ["import fam", "import other1", "import other2"]


def test_variables_concern_every_import(world: World) -> None:
    world.unaffected = all_but_fam
    steps = (*replacement("2.0"), SetEnv(variables={"NAME": "value"}))
    assert len(repaired(world, steps=steps)[1]) == 3


def test_what_was_imported_before_is_compared(world: World) -> None:
    world.unaffected = all_but_fam
    passes = Check(name="facts", role="playbook", arguments=("pass",))
    error = reported("ImportError: built for another torch")
    record, imported = repaired(world, checks=(passes, IMPORTS), finding=error)
    assert imported == ["import fam", "import other1", "import other2"]
    assert record.regressions == ()


def test_a_shared_file_that_is_replaced_by_one_that_looks_the_same_has_changed(world: World) -> None:
    world.options = ApplyOptions(clone="link")
    seen: list[Collection[str]] = []

    def find(_before: Path, _after: Path, changed: Collection[str], _moved: Collection[str]) -> frozenset[str]:
        seen.append(changed)
        return frozenset()

    world.unaffected = find

    def replace(name: str) -> None:
        if name == "step-taken":
            clone = next(world.store.glob("*/env")) / SITE / "other2" / "__init__.py"
            original = world.site / "other2" / "__init__.py"
            new = clone.with_name("new")
            new.write_bytes(original.read_bytes())
            os.utime(new, ns=(original.stat().st_atime_ns, original.stat().st_mtime_ns))
            new.replace(clone)

    world.checks = by_module([])
    world.apply(world.plan(checks=(*world.plan().checks, IMPORTS)), point=replace)
    assert f"{SITE}/other2/__init__.py" in seen[0]
    assert f"{SITE}/other2-3.1.dist-info/RECORD" not in seen[0]
    assert fingerprint.manifest(world.prefix)
