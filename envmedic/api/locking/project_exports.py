"""Reading of a lock that a command names; one of uv, poetry or PDM is exported by its own tool first."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from envmedic import proc
from envmedic.errors import InputError
from envmedic.installers.uv import find_uv
from envmedic.locks import reading
from envmedic.model.lock import Lock
from envmedic.probe.packages.user_pins import parsed_toml
from envmedic.probe.readable import read_text

_TIMEOUT_S = 120.0


def read_lock(path: Path) -> Lock:
    """Return the lock at `path`; one of a project as its tool exports it: with default groups, without the project itself.

    Raises InputError where it is none that can be read or exported, RepairPackageMissing without uv.
    """
    # of another name, `read` says what to do: the tools look for these
    if _export_of(path) is None:
        return reading.read(path)
    with exported(path) as output:
        return msgspec.structs.replace(reading.read(output), path=str(path))


@contextmanager
def exported(path: Path) -> Iterator[Path]:
    """Export the lock of a project at `path` by its tool, into a file that is there within the context.

    Raises InputError where the tool cannot export it, RepairPackageMissing without uv.
    """
    tool, folder = reading.project_tool(path), path.resolve().parent
    export = _export_of(path)
    if export is None:
        raise InputError(f"{path} is no lock that can be exported here", hint="Export it by the project's own tool")
    with tempfile.TemporaryDirectory(prefix="envmedic-export-") as name:
        argv, output = export(folder, Path(name))
        variables = {
            "VIRTUAL_ENV": None,
            "POETRY_VIRTUALENVS_CREATE": "false",
            "PDM_CHECK_UPDATE": "0",
            "NO_COLOR": "1",
        }
        result = proc.run(argv, env=variables, cwd=str(folder), timeout_s=_TIMEOUT_S)
        if result.returncode != 0 or not output.is_file():
            said = [line for line in result.stderr.splitlines() if line.strip()]
            plugin = tool == "poetry" and "does not exist" in result.stderr
            alone = f"Export it yourself, and give that: {shlex.join([str(tool).lower(), *argv[1:4]])}"
            raise InputError(
                f"{path} cannot be exported by {tool}",
                cause=(said[0] if plugin else said[-1]) if said else None,
                hint="Give poetry that command: poetry self add poetry-plugin-export" if plugin else alone,
            )
        yield output


_Export = Callable[[Path, Path], tuple[list[str], Path]]


def _export_of(path: Path) -> _Export | None:
    tool = reading.project_tool(path)
    known: dict[str, _Export] = {"uv": _of_uv, "poetry": _of_poetry, "PDM": _of_pdm}
    if tool not in known or path.name != f"{tool.lower()}.lock":
        return None
    return known[tool] if tool == "uv" or shutil.which(tool.lower()) is not None else None


def _of_uv(folder: Path, place: Path) -> tuple[list[str], Path]:
    output = place / "pylock.toml"
    # frozen: neither the lock nor an environment is touched; another Python than the project's, which is not started
    argv = [find_uv(), "export", "--frozen", "--format=pylock.toml", "--no-header", "--quiet", "--color=never"]
    argv += ["--no-python-downloads", f"--python={sys.executable}", f"--project={folder}", "-o", str(output)]
    return argv, output


def _of_poetry(folder: Path, place: Path) -> tuple[list[str], Path]:
    output = place / "requirements.txt"
    manifest = parsed_toml(read_text(folder / "pyproject.toml", follow=True))
    own = manifest.get("tool", {}).get("poetry", {}).get("group", {})
    listed = {**{key: {} for key in manifest.get("dependency-groups", {})}, **own}
    groups = [name for name, value in listed.items() if not (isinstance(value, dict) and value.get("optional") is True)]
    argv = ["poetry", "export", "--format=requirements.txt", f"--output={output}", "--no-ansi", "--no-interaction"]
    return [*argv, *([f"--with={','.join(groups)}"] if groups else [])], output


def _of_pdm(folder: Path, place: Path) -> tuple[list[str], Path]:
    output = place / "pylock.toml"
    return ["pdm", "export", "--format=pylock", f"--output={output}", f"--project={folder}"], output
