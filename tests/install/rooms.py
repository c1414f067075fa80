"""Homes that hold nothing, into which envmedic is installed, and what is tried there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.venvs import uv

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LIMIT_S = 1800
LOG = "RuntimeError: operator torchvision::nms does not exist\n"
PASSED_ON = (
    "PATH",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "PIP_INDEX_URL",
    "PIP_CERT",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
)
"""Variables of this machine that say where packages come from."""


class InstallError(Exception):
    """Something did not work as a stranger expects."""


def pythons() -> Mapping[str, str | None]:
    """Each version with its interpreter, None where there is none; nothing is downloaded."""
    return {version: _python(version) for version in VERSIONS}


def _python(version: str) -> str | None:
    wanted = tuple(map(int, version.split(".")))
    ask = f"import sys; print(sys.executable if sys.version_info[:2] == {wanted} else '')"
    find = [uv(), "python", "find", "--no-python-downloads", "--system", "--no-project", version]
    for argv in ([f"python{version}", "-c", ask], [_of_pyenv(version), "-c", ask], find):
        path = _printed(argv)
        if path:
            return path
    return None


def _of_pyenv(version: str) -> str:
    root = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()) / "versions"
    return str(next(root.glob(f"{version}.*/bin/python"), root / version))


def _printed(argv: Sequence[str]) -> str:
    """What a command prints; nothing where it is not there or fails."""
    if shutil.which(argv[0]) is None:
        return ""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True)
class Room:
    """A home for one installation."""

    path: Path
    installer: str
    """``uv`` or ``pipx``."""
    python: Path

    @contextmanager
    def opened(self) -> Iterator[None]:
        """The empty home, for a ``with`` block."""
        shutil.rmtree(self.path, ignore_errors=True)
        (self.path / "home").mkdir(parents=True)
        try:
            yield
        finally:
            shutil.rmtree(self.path, ignore_errors=True)

    def variables(self) -> dict[str, str]:
        """What commands see: of this machine, only where packages come from."""
        home = self.path / "home"
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        configured = {"PIP_CONFIG_FILE": _config("pip/pip.conf"), "UV_CONFIG_FILE": _config("uv/uv.toml")}
        own = {
            "HOME": str(home),
            "PIPX_HOME": str(home / "pipx"),
            "PIPX_BIN_DIR": str(home / "bin"),
            "PIPX_MAN_DIR": str(home / "man"),
            "UV_TOOL_DIR": str(home / "tools"),
            "UV_TOOL_BIN_DIR": str(home / "bin"),
            "UV_PYTHON_DOWNLOADS": "never",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm",
            "CUDA_VISIBLE_DEVICES": "",
        }
        cache = {"UV_CACHE_DIR": _output([uv(), "cache", "dir"])}  # wheels of dependencies are fetched once
        return {**kept, **{name: path for name, path in configured.items() if path}, **cache, **own}

    def install(self, package: Path) -> None:
        """Install a wheel or a source archive with the extra `repair`. Raises InstallError."""
        wanted = f"{package}[repair]"
        commands = {
            "uv": [uv(), "tool", "install", "--quiet", "--python", str(self.python), wanted],
            "pipx": [uv(), "tool", "run", "--quiet", "--python", sys.executable, "pipx", "install", "--quiet",
                     "--python", str(self.python), wanted],
        }  # fmt: skip
        self.run(commands[self.installer])

    def run(self, argv: Sequence[str], *, code: int = 0, stdin: str = "") -> str:
        """What a command prints on stdout. Raises InstallError for another exit code."""
        done = subprocess.run(
            argv,
            env=self.variables(),
            cwd=self.path,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode != code:
            told = (done.stderr or done.stdout).strip().splitlines()[-6:]
            raise InstallError(f"`{' '.join(argv)}` exits with {done.returncode}, not {code}: {' | '.join(told)}")
        return done.stdout

    def envmedic(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        """Run the installed program."""
        return self.run([str(self.path / "home" / "bin" / "envmedic"), *arguments], code=code, stdin=stdin)

    @property
    def own_python(self) -> Path:
        """The Python of the environment that envmedic was installed into."""
        program = (self.path / "home" / "bin" / "envmedic").resolve()
        return program.parent / "python"


def _config(name: str) -> str:
    """The user's own configuration file of that name; empty where there is none."""
    path = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / name
    return str(path) if path.is_file() else ""


def _output(argv: Sequence[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def tried(room: Room) -> int:
    """Run what must work anywhere, and count it. Raises InstallError."""
    checks = (_version, _playbooks, _log, _environment, _terminal_ui, _completion, _manual)
    for check in checks:
        check(room)
    return len(checks)


def _must(condition: object, what: str) -> None:
    if not condition:
        raise InstallError(what)


def _version(room: Room) -> None:
    _must(room.envmedic("--version").startswith("envmedic "), "--version names no version")
    _must("Examples:" in room.envmedic("--help"), "--help shows no examples")


def _playbooks(room: Room) -> None:
    listed = json.loads(room.envmedic("playbooks", "list", "--json"))["playbooks"]
    _must(
        len(listed) > 50 and {item["origin"] for item in listed} == {"shipped"}, "the shipped playbooks are not there"
    )


def _log(room: Room) -> None:
    found = json.loads(room.envmedic("diagnose", "--log-only", "-", "--json", code=1, stdin=LOG))
    _must(found["findings"][0]["playbook"] == "nms-cuda", f"a known error is taken for {found['verdict']}")


def _environment(room: Room) -> None:
    prefix = room.path / "env"
    room.run([uv(), "venv", "--quiet", "--python", str(room.python), str(prefix)])
    found = json.loads(room.envmedic("diagnose", "-p", str(prefix), "--json"))
    _must(found["verdict"] == "healthy", f"an empty environment is taken for {found['verdict']}")


def _terminal_ui(room: Room) -> None:
    room.run([str(room.own_python), "-c", "import envmedic.tui.app"])


def _completion(room: Room) -> None:
    _must("complete -F" in room.envmedic("completion", "bash"), "bash gets no completion")
    _must("nms-cuda" in room.envmedic("__complete", "explain", "nms"), "no playbook is completed")


def _manual(room: Room) -> None:
    page = room.own_python.parent.parent / "share" / "man" / "man1" / "envmedic.1.gz"
    _must(page.is_file(), "there is no manual page")
    shown = room.path / "home" / "man" / "man1" / "envmedic.1.gz"
    _must(room.installer != "pipx" or shown.is_file(), "pipx does not show the manual page")
