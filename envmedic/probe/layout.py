"""The layout of an environment on disk: its kind, its interpreter and its site-packages directories."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from envmedic.errors import NotAnEnvironment
from envmedic.model.facts import EnvironmentKind
from envmedic.probe.metadata import parse_pyvenv
from envmedic.probe.readable import is_directory, names, read_bytes

_LIBRARY = re.compile(r"python(?P<version>\d{1,2}\.\d{1,2})(?P<threads>t?)")
_VERSION = re.compile(r"\d{1,2}\.\d{1,2}(?!\d)")


class Layout(msgspec.Struct, frozen=True):
    """Facts from the directory entries and pyvenv.cfg."""

    prefix: Path
    kind: EnvironmentKind
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """pyvenv.cfg; empty where there is none."""
    libraries: tuple[str, ...] = ()
    """Names such as ``python3.11`` under lib and lib64, ascending by version."""

    @property
    def python(self) -> Path:
        """The interpreter, whether or not it exists."""
        for name in ("python", "python3"):
            candidate = self.prefix / "bin" / name
            if os.path.lexists(candidate):
                return candidate
        return self.prefix / "bin" / "python"

    @property
    def includes_system_site(self) -> bool:
        """Whether the base interpreter's site-packages are on the path too."""
        return self.settings.get("include-system-site-packages", "false").lower() == "true"

    @property
    def version(self) -> str | None:
        """Python's version as the files tell: pyvenv.cfg, else the newest library directory."""
        stated = self.settings.get("version") or self.settings.get("version_info") or ""
        match = re.match(r"\d{1,2}\.\d{1,2}(\.\d{1,3})?(?!\d)", stated)
        if match:
            return match[0]
        return self.libraries[-1].removeprefix("python").rstrip("t") if self.libraries else None


def read_layout(prefix: Path) -> Layout:
    """Read the layout of `prefix`. Raises `NotAnEnvironment` when it holds no Python environment."""
    settings = parse_pyvenv(read_bytes(prefix / "pyvenv.cfg") or b"")
    libraries = _libraries(prefix)
    kind = _kind(prefix, settings, libraries)
    if kind is None:
        raise NotAnEnvironment(
            f"{prefix} holds no Python environment",
            cause="it has no pyvenv.cfg, no conda-meta/ and no bin/python with lib/pythonX.Y",
            hint="Name the directory that holds the environment's bin/ with -p, or its interpreter with --python",
        )
    return Layout(prefix, kind, settings, libraries)


def _libraries(prefix: Path) -> tuple[str, ...]:
    found = {name for part in ("lib", "lib64") for name in names(prefix / part) if _LIBRARY.fullmatch(name)}
    return tuple(sorted(found, key=_library_key))


def _library_key(name: str) -> tuple[int, int, str]:
    major, _, minor = name.removeprefix("python").rstrip("t").partition(".")
    return int(major), int(minor), name


def _kind(prefix: Path, settings: dict[str, str], libraries: tuple[str, ...]) -> EnvironmentKind | None:
    # conda first: a virtual environment made in a conda prefix leaves its pyvenv.cfg there
    if is_directory(prefix / "conda-meta"):
        return "conda"
    if os.path.lexists(prefix / "pyvenv.cfg"):
        # uv and virtualenv write their version under their own name, the venv module neither
        return "uv" if "uv" in settings else "virtualenv" if "virtualenv" in settings else "venv"
    has_python = any(os.path.lexists(prefix / "bin" / name) for name in ("python", "python3"))
    return "system" if has_python and libraries else None


def site_packages(layout: Layout, version: str | None) -> tuple[Path, ...]:
    """Existing site-packages directories of the Python `version` inside the prefix, each once, purelib first."""
    wanted = [name for name in layout.libraries if _serves(name, version)] or list(layout.libraries[-1:])
    folders = [
        layout.prefix / library / name / folder
        for name in wanted
        for library in ("lib", "lib64")
        for folder in ("site-packages", "dist-packages")
    ]
    # Debian and Ubuntu: apt installs into python3/dist-packages, pip into local
    if layout.kind == "system":
        folders += [layout.prefix / "lib" / "python3" / "dist-packages"]
        folders += [layout.prefix / "local" / "lib" / name / "dist-packages" for name in wanted]
    return distinct(folders)


def base_site_packages(base_prefix: str, version: str | None) -> tuple[Path, ...]:
    """Site-packages of the base interpreter, for environments that include them."""
    base = Path(base_prefix)
    return site_packages(Layout(base, "system", libraries=_libraries(base)), version)


def _serves(library: str, version: str | None) -> bool:
    match = _VERSION.match(version or "")
    return match is not None and library.removeprefix("python").rstrip("t") == match[0]


def distinct(folders: list[Path]) -> tuple[Path, ...]:
    """The directories that exist, each once even where it can be reached by several names (lib64 → lib)."""
    found: dict[str, Path] = {}
    for folder in folders:
        if is_directory(folder):
            found.setdefault(os.path.realpath(folder), folder)
    return tuple(found.values())


def relative(path: Path, prefix: Path) -> str:
    """`path` relative to the prefix where it lies inside it, else as it is."""
    try:
        return str(path.relative_to(prefix))
    except ValueError:
        return str(path)
