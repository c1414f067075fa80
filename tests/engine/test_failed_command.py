"""What is told of a command that fails: its name, why, and what to do."""

from __future__ import annotations

import pytest

from envmedic.engine.store.workspace import called
from envmedic.errors import InstallerError
from envmedic.model.plan import Install, Purge
from envmedic.model.ports import ApplyOptions
from tests.engine.world import ShellInstaller, World


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("/opt/uv", "pip", "install", "x"), "uv"),
        (("/usr/bin/env", "PIP_CONFIG_FILE=/dev/null", "/env/bin/python", "-I", "-m", "pip", "check"), "pip"),
        (("/env/bin/python", "-c", "pass"), "python"),
        (("/usr/bin/env",), "env"),
    ],
)
def test_a_command_is_called_by_what_it_runs(argv: tuple[str, ...], name: str) -> None:
    assert called(argv) == name


class Scripted(ShellInstaller):
    """Every step is one script."""

    def __init__(self, script: str) -> None:
        super().__init__()
        self._script = script

    def commands(self, step: Purge | Install, python: str) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002  # the port's
        return (("/bin/sh", "-c", self._script),)


@pytest.mark.parametrize(
    ("script", "summary", "cause"),
    [
        ("exit 3", "sh exited with status 3", "It did not say why"),
        ("echo no such thing >&2; exit 1", "sh exited with status 1", "no such thing"),
        ("kill -15 $$", "sh was ended by signal 15", "It said nothing before"),
    ],
)
def test_a_command_that_fails_is_told_with_a_cause(quick: World, script: str, summary: str, cause: str) -> None:
    quick.installer = Scripted(script)
    failure = quick.apply().failure
    assert failure is not None
    assert (failure.code, failure.summary, failure.cause) == (InstallerError.code, summary, cause)
    assert failure.hint


def test_a_command_that_hangs_is_told_with_the_option_that_gives_it_more_time(quick: World) -> None:
    quick.installer = Scripted("sleep 600")
    quick.options = ApplyOptions(staging="relocate", timeout_s=0.5)
    failure = quick.apply().failure
    assert failure is not None
    assert failure.cause == "It said nothing, and was killed with all it had started"
    assert "--timeout" in (failure.hint or "")
    assert quick.version() == "1.0"


COMPILER = "c++: fatal error: Killed signal terminated program cc1plus"
FULL = "OSError: [Errno 28] No space left on device: '/env/lib/x.so'"


@pytest.mark.parametrize(
    ("script", "code", "summary", "cause"),
    [
        ("kill -9 $$", "killed", "sh was killed", "memory had run out"),
        (f"echo '{COMPILER}'; exit 1", "killed", "A program that sh ran was killed", "memory had run out"),
        (f'echo "{FULL}" >&2; exit 2', "storage", "There is no room left for sh", "No space left on device"),
    ],
)
def test_no_memory_and_no_room_are_told_with_the_step_and_what_was_seen_before(
    quick: World, script: str, code: str, summary: str, cause: str
) -> None:
    quick.installer = Scripted(script)
    failure = quick.apply().failure
    assert failure is not None
    assert (failure.code, failure.summary, failure.environment) == (code, summary, "unchanged")
    assert cause in (failure.cause or "")
    assert failure.details[0].startswith("in step 1: ")
    assert failure.details[1].startswith("before the steps: fail: fam-imports")
    assert failure.hint
    assert quick.version() == "1.0"
