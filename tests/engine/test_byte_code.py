"""What is installed has byte code afterwards where the environment had it before, of the path where it runs."""

from __future__ import annotations

import importlib.util
import marshal
import py_compile
from pathlib import Path

import msgspec
import pytest

from envmedic.model.ports import ApplyOptions
from envmedic.tree import fingerprint
from tests.engine.test_apply import STAGINGS
from tests.engine.world import World, make_environment


def byte_code(module: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(module)))


@pytest.mark.parametrize("staging", STAGINGS)
def test_byte_code_is_there_as_it_was_before(tmp_path: Path, staging: str) -> None:
    world = World(make_environment(tmp_path / "env"), msgspec.convert({"staging": staging}, ApplyOptions))
    module = world.site / "fam" / "__init__.py"
    py_compile.compile(str(module), doraise=True)
    old = fingerprint.manifest(world.prefix)
    assert world.apply().state == "done"
    header, code = byte_code(module).read_bytes()[:16], marshal.loads(byte_code(module).read_bytes()[16:])
    assert code.co_filename == str(module)
    assert int.from_bytes(header[8:12], "little") == int(module.stat().st_mtime) & 0xFFFFFFFF
    world.undo()
    assert fingerprint.manifest(world.prefix) == old


def test_what_had_none_gets_none(world: World) -> None:
    assert world.apply().state == "done"
    assert not list(world.prefix.rglob("*.pyc"))
