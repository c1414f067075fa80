"""Resolution of an environment's wheels for another platform by uv: the same versions and their dependencies there."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import canonicalize_name, parse_wheel_filename

from envmedic import proc, toml
from envmedic.errors import NoSolution
from envmedic.installers.index import configuration
from envmedic.installers.resolution import uv_options
from envmedic.installers.resolution.pythons import python_for, run_for
from envmedic.installers.resolution.simple_index import TIMEOUT_S, files_of
from envmedic.installers.resolution.uv_errors import error_from
from envmedic.model.answers.family import Offered
from envmedic.model.events import Emit, Notice
from envmedic.model.facts import Environment
from envmedic.model.lock import WheelFile
from envmedic.model.ports import ResolveRequest

TRIPLES: Final = {
    "linux-64": "x86_64-manylinux_2_28",
    "linux-aarch64": "aarch64-manylinux_2_28",
    "osx-64": "x86_64-apple-darwin",
    "osx-arm64": "aarch64-apple-darwin",
    "win-64": "x86_64-pc-windows-msvc",
}
"""Platform by conda's name: the name for uv's ``--python-platform``."""
_MACHINES: Final = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "osx-64": "x86_64", "osx-arm64": "arm64"}
_GLIBC: Final = 28
"""Minor version of the assumed glibc: that of manylinux_2_28."""


@dataclass(frozen=True)
class PlatformRequest:
    """Pins for another platform."""

    platform: str
    roots: tuple[tuple[str, str], ...]
    """Name and version of each distribution that no other pip-installed one requires."""
    others: tuple[tuple[str, str], ...]
    """Name and version of the others, which are installed there only if required."""
    left_out: tuple[str, ...] = ()
    """Names to leave out: packages of conda, and what cannot be locked."""


def wheels(
    uv: str, environment: Environment, wanted: PlatformRequest, emit: Emit, torch_index: str
) -> tuple[WheelFile, ...]:
    """The wheels for the platform. Raises NoSolution, NetworkError or InstallerError.

    Labels such as ``+cu124`` belong to this platform: there, any build of the same public version will do.
    """
    if not wanted.roots:
        return ()
    try:
        return _ask(uv, environment, wanted, torch_index, pinned=True)
    except NoSolution:
        # The dependencies differ by platform (no NVIDIA wheels on macOS), and their installed versions may not exist
        # there. The roots stay exact: a lock of other versions would be another environment.
        found = _ask(uv, environment, wanted, torch_index, pinned=False)
        text = f"{wanted.platform}: not every version that is installed here is there; dependencies may differ"
        emit(Notice(code="other-versions", message=text, level="warning"))
        return found


def _ask(
    uv: str, environment: Environment, wanted: PlatformRequest, torch_index: str, *, pinned: bool
) -> tuple[WheelFile, ...]:
    read = configuration.of(environment)
    python = python_for(environment.interpreter)
    asked = uv_options.translate(read, ResolveRequest(pins=(), torch_index=torch_index))
    version = ".".join((environment.interpreter.version or "").split(".")[:2])
    with tempfile.TemporaryDirectory(prefix="envmedic-elsewhere-") as name:
        folder = Path(name)
        output = folder / "pylock.toml"
        argv = [
            *(uv, "pip", "compile", "--format=pylock.toml", "--no-header", "--color=never", "--no-progress"),
            *("--only-binary=:all:", "--no-python-downloads", f"--python={python}"),
            *(f"--python-platform={TRIPLES[wanted.platform]}", f"--python-version={version}"),
            f"--excludes={_write(folder / 'excluded.txt', wanted.left_out)}",
            *("-c", str(_write(folder / "constraints.txt", _pins(wanted.others) if pinned else ()))),
            *(*asked.arguments, "-o", str(output), str(_write(folder / "roots.in", _pins(wanted.roots)))),
        ]
        result = run_for(python, argv, env=asked.environment, timeout_s=TIMEOUT_S)
        if result.returncode != 0:
            raise error_from(result, _pins(wanted.roots), None)
        packages = toml.loads(output.read_text(encoding="utf-8")).get("packages", ())
    ranks = tag_ranks(version, wanted.platform)
    return tuple(_chosen(item["name"], item["version"], files_of(item), ranks) for item in packages)


def _write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _pins(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{name}=={version.partition('+')[0]}" for name, version in pairs)


def _chosen(name: str, version: str, files: Sequence[Offered], ranks: dict[Tag, int]) -> WheelFile:
    fitting = [file for file in files if file.is_wheel and file.sha256 and _rank(file, ranks) < len(ranks)]
    if not fitting:
        raise NoSolution(
            f"No wheel of {name} {version} fits that platform",
            cause=f"there are {', '.join(file.filename for file in files) or 'none'}",
            hint="Lock without --platform, or leave the platform out",
        )
    # Of equal rank, the file on an index: a path of this machine means nothing on the other.
    best = min(fitting, key=lambda file: (_rank(file, ranks), file.url.startswith("file:")))
    return WheelFile(
        name=canonicalize_name(name), version=version, kind="wheel", filename=best.filename, sha256=best.sha256 or "",
        source="index", url=best.url, size_bytes=best.size_bytes,
    )  # fmt: skip


def _rank(file: Offered, ranks: dict[Tag, int]) -> int:
    return min(ranks.get(tag, len(ranks)) for tag in parse_wheel_filename(file.filename)[3])


def tag_ranks(python: str, platform: str) -> dict[Tag, int]:
    """Rank of each tag that CPython `python` (``3.11``) accepts on a platform; smaller is better."""
    major, minor = map(int, python.split("."))
    platforms = list(_platforms(platform))
    tags = [
        *cpython_tags((major, minor), platforms=platforms),
        *compatible_tags((major, minor), f"cp{major}{minor}", platforms),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def _platforms(platform: str) -> Iterable[str]:
    if platform.startswith("win"):
        return ("win_amd64",)
    machine = _MACHINES[platform]
    if platform.startswith("osx"):
        return mac_platforms((13, 0), machine)
    # PEP 600 names of the older aliases, which wheels still carry in place of or beside manylinux_2_X.
    old = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    named = (f"manylinux_2_{minor}_{machine}" for minor in range(_GLIBC, 4, -1))
    return [*named, *(f"{name}_{machine}" for name in old.values()), f"linux_{machine}"]


def needed_by_others(environment: Environment) -> frozenset[str]:
    """Names that installed distributions require, with or without a marker; extras do not count."""
    texts = (text for item in environment.distributions for text in item.requires if "extra ==" not in text)
    found = (re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", text) for text in texts)
    return frozenset(canonicalize_name(match[0]) for match in found if match is not None)


def of_file(uv: str, file: Path, *, python: str, machine: str, request: ResolveRequest) -> str:
    """Return the pylock document of what the requirements in `file` come to for ``major.minor`` on Linux.

    Raises NoSolution, NetworkError or InstallerError.
    """
    asked = uv_options.translate(configuration.read(None), request)
    with tempfile.TemporaryDirectory(prefix="envmedic-fit-") as folder:
        output = Path(folder) / "pylock.toml"
        argv = [
            uv,
            "pip",
            "compile",
            "--format=pylock.toml",
            "--no-header",
            "--color=never",
            "--no-progress",
            "--quiet",
        ]
        argv += [f"--python-version={python}", f"--python-platform={machine}-manylinux_2_{_GLIBC}"]
        result = proc.run(
            [*argv, *asked.arguments, "-o", str(output), str(file)], env=asked.environment, timeout_s=TIMEOUT_S
        )
        if result.returncode != 0:
            raise error_from(result, (f"-r {file}",))
        return output.read_text(encoding="utf-8")
