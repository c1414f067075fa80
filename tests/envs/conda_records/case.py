"""Builds the broken environment of this case. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.conda import damage
from tests.conda.channel import channels
from tests.conda.referee import Referee
from tests.conda.room import Room, make_room


def build(root: Path) -> tuple[Room, Path]:
    """A room, and in it an environment of conda's in which the record of filelock breaks off."""
    room = make_room(root / "room", [channels().url("main")])
    prefix = Referee(room).create("lab", ["python=3.11", "filelock=3.16.1"])
    damage.corrupt_record(prefix, "filelock")
    return room, prefix
