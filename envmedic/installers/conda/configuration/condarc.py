"""Conda's configuration files, for machines without a usable conda.

Merging: https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/ ("How conda merges configurations").
Search path and precedence: `conda_meta.condarc`. ``#!final``, ``#!top`` and ``#!bottom`` are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from envmedic import safe_io
from envmedic.conda_meta import condarc
from envmedic.errors import InputError
from envmedic.redact import redact_text

_LARGEST: Final = 1 << 20
"""Limit for a file, in bytes."""
_LISTS: Final = ("channels", "default_channels", "pinned_packages", "pkgs_dirs", "allowlist_channels",
                 "denylist_channels")  # fmt: skip
_TABLES: Final = ("custom_channels", "custom_multichannels", "proxy_servers")
_ALIASES: Final = {"channel": "channels", "whitelist_channels": "allowlist_channels", "verify_ssl": "ssl_verify",
                   "default_channel": "default_channels"}  # fmt: skip
_PINS: Final = "pinned_packages"
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


def read(prefix: Path, root: Path | None, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Configuration of the environment at `prefix`, with conda installed at `root`; unset keys are absent.

    Raises InputError for an unreadable file.
    """
    sources = [_file(path, environ, prefix) for path in condarc.files(prefix, root, environ)]
    sources.append(_from_variables(environ))
    merged: dict[str, Any] = {}
    for source in sources:
        for key, value in source.items():
            if key in _LISTS:
                # Sources come from weak to strong, and conda puts the items of a stronger list first.
                merged[key] = list(dict.fromkeys([*value, *merged.get(key, [])]))
            elif key in _TABLES:
                merged[key] = {**merged.get(key, {}), **value}
            else:
                merged[key] = value
    return merged


def pin_places(prefix: Path, root: Path | None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Where each item of `pinned_packages` stands: file and line, or the variable; of several the strongest."""
    found: dict[str, str] = {}
    for path in condarc.files(prefix, root, environ):
        try:
            pins = _file(path, environ, prefix).get(_PINS, ())
            lines = safe_io.read(path, _LARGEST, follow=not path.is_relative_to(prefix)).decode().splitlines()
        except (OSError, InputError):
            continue  # conda may read what is refused here: its pins hold all the same, without a place
        found |= {pin: f"{path}:{_line(pin, [_expanded(line, environ) for line in lines])}" for pin in pins}
    variable = f"CONDA_{_PINS.upper()}"
    return found | dict.fromkeys(_from_variables(environ).get(_PINS, ()), variable)


def _line(pin: str, lines: list[str]) -> int:
    """Number of the line that states `pin`; that of the key where YAML writes it otherwise."""
    key = next((number for number, text in enumerate(lines, 1) if text.lstrip("{'\" ").startswith(_PINS)), 1)
    stated = (number for number, text in enumerate(lines, 1) if number >= key and _states(text, pin))
    return next(stated, key)


def _states(text: str, pin: str) -> bool:
    """Whether a line has the whole pin: `numpy 1.2` is no part of `numpy 1.26`."""
    return re.search(rf"(?<![\w.-]){re.escape(pin)}(?![\w.*])", text.partition(" #")[0]) is not None


def _file(path: Path, environ: Mapping[str, str], prefix: Path) -> dict[str, Any]:
    """Settings of one file; a file in the environment is untrusted, and may not be a link to a file outside."""
    try:
        document = condarc.load(safe_io.read(path, _LARGEST, follow=not path.is_relative_to(prefix)).decode())
    except (OSError, ValueError) as error:
        cause = redact_text(" ".join(str(error).split()))
        raise InputError(f"{path} cannot be read", cause=cause, hint=f"Correct {path}, or move it away") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InputError(f"{path} is no configuration of conda's", hint=f"Correct {path}, or move it away")
    # YAML keys may be numbers or dates; a key without a value is unset for conda.
    named = {_ALIASES.get(str(key), str(key)): value for key, value in document.items() if value is not None}
    return {key: _checked(key, _expanded(value, environ), path) for key, value in named.items()}


def _checked(key: str, value: Any, where: Path) -> Any:
    if key in _LISTS:
        value = [value] if isinstance(value, str) else value
        wrong = not isinstance(value, list) or not all(isinstance(item, str) for item in value)
    elif key in _TABLES:
        wrong = not isinstance(value, dict) or not all(_fits(key, item) for item in value.values())
    else:
        wrong = key == "channel_alias" and not _fits(key, value)
    if wrong:
        raise InputError(
            f"{where} has a {key} that conda does not take",
            cause=f"it is no {'list of texts' if key in _LISTS else 'table of texts' if key in _TABLES else 'text'}",
            hint=f"Correct {where}: `conda config --describe {key}` says what it may be",
        )
    return value


def _fits(key: str, value: Any) -> bool:
    """Whether `value` is valid in the table `key`, or as channel alias: an address, whole or in parts."""
    if key == "proxy_servers":
        return value is None or isinstance(value, str)
    if key == "custom_multichannels":
        return isinstance(value, list) and all(_fits("custom_channels", item) for item in value)
    parts = value.values() if isinstance(value, dict) else [value]
    return all(isinstance(part, str) or (part is None and isinstance(value, dict)) for part in parts)


def _expanded(value: Any, environ: Mapping[str, str]) -> Any:
    """`value` with environment variables expanded in every text, as conda does."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: environ.get(match[1] or match[2], match[0]), value)
    if isinstance(value, list):
        return [_expanded(item, environ) for item in value]
    if isinstance(value, dict):
        return {key: _expanded(item, environ) for key, item in value.items()}
    return value


def _from_variables(environ: Mapping[str, str]) -> dict[str, Any]:
    """Settings from ``CONDA_CHANNELS`` and similar variables, which override every file."""
    found: dict[str, Any] = {}
    for key in (*_LISTS, "channel_alias", "channel_priority", "offline", "ssl_verify"):
        value = environ.get(f"CONDA_{key.upper()}")
        if not value:
            continue
        # conda splits directories at the separator of PATH, pins at ampersands, and other lists at commas.
        if key == "pkgs_dirs":
            found[key] = [part for part in value.replace(os.pathsep, ",").split(",") if part]
        elif key in _LISTS:
            found[key] = [part.strip() for part in value.replace("&", ",").split(",") if part.strip()]
        else:
            found[key] = _word(value)
    return found


def _word(value: str) -> str | bool:
    lower = value.strip().lower()
    if lower in {"true", "yes", "on", "1", "y"}:
        return True
    return False if lower in {"false", "no", "off", "0", "n"} else value
