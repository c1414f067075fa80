"""Running code as another user, in other namespaces or under a filter, for tests of what can be refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.engine_low import seccomp

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
_PRELUDE = """
import errno, json, os, sys
from functools import lru_cache
from pathlib import Path
from tests.engine_low import seccomp
result = None
"""


class Wrap(NamedTuple):
    """How to run code differently: the command before the interpreter, and an interpreter that works there."""

    command: list[str]
    python: str = sys.executable


def run_code(code: str, *arguments: str | os.PathLike[str], wrap: Wrap | None = None) -> Any:
    """Run `code` in a fresh interpreter and return what it leaves in `result`; `sys.argv[1:]` are `arguments`."""
    command, python = wrap or Wrap([])
    program = _PRELUDE + code + "\nprint(json.dumps(result))\n"
    done = _run([*command, python, "-c", program, *(os.fspath(argument) for argument in arguments)])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([os.fspath(ROOT), os.fspath(Path(msgspec.__file__).parents[1])])
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800, env=env)


@lru_cache(maxsize=1)
def as_user() -> Wrap:
    """Run as an ordinary user; skips the test where there is none to be.

    The interpreter of the tests may lie where only root can go: then the system's, of the same version.
    """
    if os.geteuid() != 0:
        return Wrap([])
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root without setpriv cannot become an ordinary user")
    command = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    again = (
        "import subprocess, sys, envmedic.engine.stage.runners; subprocess.run([sys.executable, '-c', ''], check=True)"
    )
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, system):
        if _run([*command, python, "-c", again]).returncode == 0:
            return Wrap(command, python)
    pytest.skip("an ordinary user cannot read this checkout or its interpreter")


def own_mounts() -> Wrap:
    """Run with mounts of its own, as root at least in its own eyes; or skips."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare program")
    command = [unshare, "--mount"] if os.geteuid() == 0 else [unshare, "--mount", "--map-root-user"]
    allowed = _run([*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
    if allowed.returncode != 0:
        pytest.skip(f"mount namespaces are not allowed here: {allowed.stderr.strip()}")
    return Wrap(command)


def needs_seccomp() -> None:
    """Skip the test where the filters are not known for this machine."""
    if not seccomp.supported():
        pytest.skip("no seccomp filters for this machine")


def make_prefix(prefix: Path, *, packages: int = 3) -> Path:
    """Make a small tree that looks like a venv, down to links, modes and old times."""
    site = prefix / "lib" / "python3.11" / "site-packages"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").symlink_to(sys.executable)
    write(prefix / "bin" / "tool", f"#!{prefix}/bin/python\n", mode=0o755)
    write(prefix / "pyvenv.cfg", "home = /usr/bin\n")
    write(prefix / "etc" / "settings.ini", "[x]\n")
    write(prefix / "share" / "jupyter" / "kernels" / "python3" / "kernel.json", "{}")
    write(site / "local.pth", "import this\n")
    for number in range(packages):
        write(site / f"package{number}" / "__init__.py", f"value = {number}\n")
        write(site / f"package{number}" / "native.so", "\x7fELF" * 64, mode=0o755)
        write(site / f"package{number}-1.0.dist-info" / "METADATA", f"Name: package{number}\n")
        write(site / f"package{number}-1.0.dist-info" / "licenses" / "LICENSE", "free\n")
    (site / "linked").symlink_to("package0")
    (site / "dangling").symlink_to("/nowhere/at all")
    old = 946684800_123456789
    for path in sorted(prefix.rglob("*"), reverse=True):
        os.utime(path, ns=(old, old + len(path.name)), follow_symlinks=False)
    return prefix


def write(path: Path, text: str, *, mode: int = 0o644) -> Path:
    """Write a file with its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path
