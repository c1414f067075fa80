"""A variable of the shell is at fault: the line that mends it is given, and the environment stays as it is."""

from __future__ import annotations

from pathlib import Path

from tests.support.host_case import HostCase
from tests.support.native_case import NativeCase

HERE = Path(__file__).resolve().parent
HOST: dict[str, object] = {
    "variables": [{"name": "NVIDIA_TF32_OVERRIDE", "value": "1"}],
}


def case(sound: NativeCase, room: Path) -> HostCase:
    log = HERE / "sample_error.log"
    return HostCase(sound, room, log, "shell-precision", HOST, fault="shell-variable", verdict="shell", code=1)


def test_the_text_alone_tells(sound: NativeCase, tmp_path: Path) -> None:
    case(sound, tmp_path).text_alone_tells()


def test_facts_of_the_shell_confirm_it(sound: NativeCase, tmp_path: Path) -> None:
    case(sound, tmp_path).facts_confirm_it(alone=False)
