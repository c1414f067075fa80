"""Real conda's own readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest


class Conda:
    """What real conda makes of versions, specs and histories; None where it refuses them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _ask(self, method: str, *arguments: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([method, arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "real conda's readers ended"
        return json.loads(answer)

    def order(self, one: str, other: str) -> int | None:
        """Negative, zero or positive."""
        found: int | None = self._ask("order", one, other)
        return found

    def satisfies(self, version: str, constraint: str) -> bool | None:
        """Whether a version answers to a constraint."""
        found: bool | None = self._ask("satisfies", version, constraint)
        return found

    def name(self, spec: str) -> str | None:
        """The name in a spec."""
        found: str | None = self._ask("name", spec)
        return found

    def text(self, spec: str) -> str:
        """A spec as conda writes it into its history."""
        return str(self._ask("text", spec))

    def matches(self, spec: str, package: Mapping[str, object]) -> bool | None:
        """Whether a package is what a spec asks for."""
        found: bool | None = self._ask("matches", spec, package)
        return found

    def dist_string(self, package: Mapping[str, object]) -> str:
        """A package as conda's history names it."""
        return str(self._ask("dist_string", package))

    def specs(self, prefix: Path) -> dict[str, str] | None:
        """What conda takes for asked for in an environment."""
        found: dict[str, str] | None = self._ask("specs", str(prefix))
        return found

    def state(self, prefix: Path) -> set[str]:
        """What is installed by the history alone."""
        return set(self._ask("state", str(prefix)))


@pytest.fixture(scope="module")
def conda(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conda]:
    """Conda's own readers, with a home and configuration of their own."""
    home = tmp_path_factory.mktemp("home")
    oracle = Path(__file__).with_name("oracle.py")
    environment = {"HOME": str(home), "CONDARC": str(home / "condarc"), "PATH": os.defpath}
    with (home / "stderr").open("w") as errors, subprocess.Popen(
        [sys.executable, "-W", "ignore", str(oracle)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        text=True, env=environment, cwd=home,
    ) as process:  # fmt: skip
        yield Conda(process)
        process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
