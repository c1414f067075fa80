"""Variables that stay with an environment: marked blocks in a venv's activate scripts, conda's own state file.

A venv's interpreter that is started without activation does not see them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from envmedic import activation
from envmedic.engine.fs.safe_paths import replace_file
from envmedic.errors import InputError, PreflightError

Changes = Mapping[str, str | None]
"""Name → value; None unsets."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _sh(name: str, value: str | None) -> str:
    return f"unset {name}" if value is None else f"export {name}=" + "'" + value.replace("'", "'\\''") + "'"


def _csh(name: str, value: str | None) -> str:
    if value is None:
        return f"unsetenv {name}"
    return f"setenv {name} '" + value.replace("'", "'\\''").replace("!", "\\!") + "'"


def _fish(name: str, value: str | None) -> str:
    if value is None:
        return f"set -e {name}"
    return f"set -gx {name} '" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _powershell(name: str, value: str | None) -> str:
    if value is None:
        return f"Remove-Item Env:{name} -ErrorAction SilentlyContinue"
    return f"$env:{name} = '" + value.replace("'", "''") + "'"


def _python(name: str, value: str | None) -> str:
    if value is None:
        return f"__import__('os').environ.pop({name!r}, None)"
    return f"__import__('os').environ[{name!r}] = {value!r}"


_DIALECTS: Mapping[str, Callable[[str, str | None], str]] = {
    "activate": _sh,
    "activate.csh": _csh,
    "activate.fish": _fish,
    "Activate.ps1": _powershell,
    "activate.ps1": _powershell,
    "activate_this.py": _python,
}
_NOT_WRITTEN = ("activate.nu", "activate.xsh", "activate.bat")


def keep(tree: Path, changes: Changes) -> tuple[str, ...]:
    """Lay `changes` over the variables that `tree` keeps already; returns the files written, relative to it.

    Raises InputError for a name or value that no shell can hold, PreflightError where there is no place.
    """
    for name, value in changes.items():
        if not _NAME.fullmatch(name) or (value is not None and re.search(r"[\0\r\n]", value)):
            raise InputError(f"{name!r} cannot be kept as an environment variable", cause=f"Its value is {value!r}")
    if (tree / "conda-meta").is_dir():
        return _keep_conda(tree, changes)
    merged = {**activation.variables(tree), **changes}
    written = tuple(f"bin/{script}" for script in _DIALECTS if (tree / "bin" / script).is_file())
    if "bin/activate" not in written:
        raise PreflightError(
            "The environment has no activate script to keep variables in",
            cause=f"{tree.name}/bin/activate is missing",
            hint="Set them in the shell instead: " + " ".join(sorted(changes)),
        )
    for relative in written:
        text = _text(tree / relative)
        block = _block(merged, _DIALECTS[relative.removeprefix("bin/")])
        replace_file(tree, relative, (_without_block(text) + block).encode("utf-8", "surrogateescape"))
    return written


def not_written(tree: Path) -> tuple[str, ...]:
    """Activate scripts of shells that `keep` leaves alone."""
    return tuple(f"bin/{script}" for script in _NOT_WRITTEN if (tree / "bin" / script).is_file())


def _text(script: Path) -> str:
    """The bytes of a script as text, line ends and invalid characters included."""
    return script.read_bytes().decode("utf-8", "surrogateescape")


def _block(variables: Changes, dialect: Callable[[str, str | None], str]) -> str:
    lines = [dialect(name, variables[name]) for name in sorted(variables)]
    return "\n" + "\n".join([activation.BEGIN, *lines, activation.END]) + "\n"


def _without_block(text: str) -> str:
    text = activation.BLOCK.sub("", text)
    return text if not text or text.endswith("\n") else text + "\n"


def _keep_conda(tree: Path, changes: Changes) -> tuple[str, ...]:
    state = activation.conda_state(tree)
    values = {name: activation.CONDA_UNSET if value is None else value for name, value in changes.items()}
    state["env_vars"] = {**state.get("env_vars", {}), **values}
    replace_file(tree, activation.CONDA_STATE, json.dumps(state, indent=2).encode())
    return (activation.CONDA_STATE,)
