"""Files of exact versions on the user's indexes: names, URLs and hashes, without downloads.

uv lists them, so that its configuration, logins and cache count: from its cache alone, or over the network if the user
allows it. It builds nothing for that. The files of a release without wheels come from the index itself
(the simple API: https://packaging.python.org/en/latest/specifications/simple-repository-api/).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from envmedic import toml
from envmedic.errors import NoSolution
from envmedic.installers.index import pages
from envmedic.installers.resolution.pythons import python_for, run_for
from envmedic.installers.resolution.uv_errors import error_from
from envmedic.installers.resolution.uv_options import UvOptions
from envmedic.model.answers.family import Offered
from envmedic.model.facts import Environment

if TYPE_CHECKING:
    from envmedic.installers.index.http import IndexSession

TIMEOUT_S = 300.0
_DEFAULT_INDEX = re.compile(r"^--index-url (\S+)$", re.MULTILINE)
Pin = tuple[str, str]
"""Normalised name and version."""


@dataclass(frozen=True)
class IndexQuery:
    """Path of uv, the environment and the options for a listing."""

    uv: str
    environment: Environment
    options: UvOptions
    offline: bool = True
    """Whether uv may use only its own cache."""


def offered_wheels(asking: IndexQuery, pins: Sequence[Pin]) -> dict[Pin, tuple[Offered, ...]]:
    """The wheels of each pin for this interpreter; pins without any are left out.

    Raises `NetworkError` or `InstallerError`.
    """
    if not pins:
        return {}
    try:
        return _read(_ask(asking, pins, "--format=pylock.toml", "--no-build"))
    except NoSolution as error:
        told = "\n".join((error.cause or "", *error.details))  # not the summary, which names every pin
    # uv answers for all pins or for none. Those that its explanation names are missing; where it names none of them,
    # halves of the list find them in few runs.
    rest = [pin for pin in pins if not re.search(rf"(?<![\w.-]){re.escape(pin[0])}(?![\w.-])", told)]
    if len(rest) < len(pins):
        return offered_wheels(asking, rest)
    if len(pins) == 1:
        return {}
    middle = len(pins) // 2
    return {**offered_wheels(asking, pins[:middle]), **offered_wheels(asking, pins[middle:])}


def wheels_and_archives(asking: IndexQuery, pins: Sequence[Pin]) -> dict[Pin, tuple[Offered, ...]]:
    """The wheels and source archive of each pin. Every pin must have a wheel: uv would build the archive otherwise."""
    # the index of a foreign project could offer the wheel once, and an archive with code the second time
    more = () if asking.environment.interpreter.named else ("--no-build",)
    return _read(_ask(asking, pins, "--format=pylock.toml", *more)) if pins else {}


def default_index(asking: IndexQuery) -> str | None:
    """URL of uv's default index, with its login; None without one."""
    found = _DEFAULT_INDEX.search(_ask(asking, (), "--emit-index-url"))
    return found[1] if found is not None else None


def _ask(asking: IndexQuery, pins: Sequence[Pin], *more: str) -> str:
    with tempfile.TemporaryDirectory(prefix="envmedic-listing-") as name:
        folder = Path(name)
        wanted = folder / "requirements.in"
        # Not ==, which accepts a build with a local label, and prefers it.
        exact = (f"{name}==={version}\n" for name, version in pins)
        wanted.write_text("".join(exact), encoding="utf-8")
        output = folder / ("pylock.toml" if pins else "requirements.txt")  # uv derives the format from the name
        python = python_for(asking.environment.interpreter)
        argv = [
            *(asking.uv, "pip", "compile", "--no-header", "--no-deps", "--color=never", "--no-progress"),
            *("--no-annotate", "--no-python-downloads", f"--python={python}", *more),
            *asking.options.arguments,
            *(("--offline",) if asking.offline else ()),
            *("-o", str(output), str(wanted)),
        ]
        result = run_for(python, argv, env=asking.options.environment, timeout_s=TIMEOUT_S)
        if result.returncode != 0:
            raise error_from(result, tuple(f"{name}=={version}" for name, version in pins), None)
        return output.read_text(encoding="utf-8")


def _read(pylock: str) -> dict[Pin, tuple[Offered, ...]]:
    packages = toml.loads(pylock).get("packages", ())
    return {(item["name"], item["version"]): files_of(item) for item in packages if "version" in item}


def files_of(package: Mapping[str, Any]) -> tuple[Offered, ...]:
    """The files of one package of a pylock document: its wheels, then its source archive."""
    sdist = [package["sdist"]] if "sdist" in package else []
    return tuple(_file(file) for file in (*package.get("wheels", ()), *sdist))


def _file(file: Mapping[str, Any]) -> Offered:
    url = file.get("url") or Path(file["path"]).absolute().as_uri()
    return pages.offered(url, file.get("hashes", {}).get("sha256"), file.get("size"))


def project_files(session: IndexSession, index: str, name: str) -> tuple[Offered, ...]:
    """Every file of a project on the index; empty if it has none. Raises `NetworkError`."""
    if urlsplit(index).scheme not in {"http", "https"}:
        return ()  # a local directory, which uv has read already
    return pages.project_files(session, index, name)
