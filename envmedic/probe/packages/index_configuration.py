"""Index settings of pip and uv: their configuration files and variables.

Settings are listed in the order in which the tool reads them: of several with the same key the last one
wins (values that are lists add up in pip's files no more than its variables do). Credentials of URLs are
hidden: these facts are shared, and the installer reads the user's configuration itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, cast

from envmedic import limits, toml, xdg
from envmedic.model.facts import InstallerSetting
from envmedic.probe.readable import is_file, read_text
from envmedic.redact import redact_url

Tool = Literal["pip", "uv"]
Key = Literal[
    "index-url", "extra-index-url", "find-links", "no-index", "constraint", "cert", "index-strategy", "torch-backend",
    "unreadable",
]  # fmt: skip

_PIP_KEYS: tuple[Key, ...] = ("index-url", "extra-index-url", "find-links", "no-index", "constraint", "cert")
_PIP_SECTIONS = ("global", "install")
_UV_VARIABLES: dict[str, tuple[Key, str | None]] = {
    "UV_INDEX_URL": ("index-url", None),
    "UV_DEFAULT_INDEX": ("index-url", None),
    "UV_EXTRA_INDEX_URL": ("extra-index-url", " "),
    "UV_INDEX": ("extra-index-url", " "),
    "UV_FIND_LINKS": ("find-links", ","),
    "UV_NO_INDEX": ("no-index", None),
    "UV_CONSTRAINT": ("constraint", " "),
    "SSL_CERT_FILE": ("cert", None),
    "UV_INDEX_STRATEGY": ("index-strategy", None),
    "UV_TORCH_BACKEND": ("torch-backend", None),
}
"""Variable → setting, and what separates its values."""
_UV_KEYS: tuple[Key, ...] = (
    "index-url", "extra-index-url", "find-links", "no-index", "index-strategy", "torch-backend",
)  # fmt: skip


def observe(prefix: Path, variables: Mapping[str, str] | None = None) -> tuple[InstallerSetting, ...]:
    """Settings of pip and uv for the environment at `prefix`; `variables` defaults to this process's."""
    given = os.environ if variables is None else variables
    return (*_pip(prefix, given), *_uv(given))


def _setting(tool: Tool, key: Key, value: str, source: str) -> InstallerSetting:
    return InstallerSetting(tool=tool, key=key, value=redact_url(value), source=source)


def _pip(prefix: Path, variables: Mapping[str, str]) -> Iterator[InstallerSetting]:
    for path in pip_files(prefix, variables):
        text = read_text(path, follow=True)
        if text is not None:
            yield from parse_pip(text, str(path))
        elif is_file(path):
            yield _setting("pip", "unreadable", "cannot be read", str(path))
    for key in _PIP_KEYS:
        name = "PIP_" + key.upper().replace("-", "_")
        for value in _words(key, variables.get(name, "")):
            yield _setting("pip", key, value, name)


def _words(key: str, value: str) -> list[str]:
    """Values of a setting of pip: those that are lists are separated by white space."""
    return value.split() if key in ("extra-index-url", "find-links", "constraint") else [value] if value else []


def pip_files(prefix: Path, variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Pip's configuration files in its order of reading: global, user, environment, PIP_CONFIG_FILE."""
    chosen = variables.get("PIP_CONFIG_FILE")
    # pip's documented way to ignore every configuration file
    if chosen == os.devnull:
        return ()
    paths = [Path(item, "pip", "pip.conf") for item in _system_directories(variables)]
    paths.append(Path("/etc/pip.conf"))
    # pip skips the files of the user where PIP_CONFIG_FILE names a file that exists
    if not (chosen and Path(chosen).exists()):
        paths.append(xdg.home(variables) / ".pip" / "pip.conf")
        paths.append(xdg.config(variables) / "pip" / "pip.conf")
    paths.append(prefix / "pip.conf")
    return (*paths, Path(chosen)) if chosen else tuple(paths)


def _system_directories(variables: Mapping[str, str]) -> list[str]:
    return [item for item in (variables.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if item]


def parse_pip(text: str, source: str) -> tuple[InstallerSetting, ...]:
    """Settings in the text of a pip.conf; one ``unreadable`` setting where it is no valid file."""
    import configparser

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(limits.settings(text))
    except configparser.Error as error:
        return (_setting("pip", "unreadable", str(error).splitlines()[0], source),)
    return tuple(
        _setting("pip", key, value, source)
        for section in _PIP_SECTIONS
        if parser.has_section(section)
        for name, stated in parser.items(section)
        for key in _PIP_KEYS
        # pip accepts --index-url and index_url in its files too
        if name.lstrip("-").replace("_", "-") == key
        for value in _words(key, stated.strip())
    )


def _uv(variables: Mapping[str, str]) -> Iterator[InstallerSetting]:
    for path in uv_files(variables):
        text = read_text(path, follow=True)
        if text is not None:
            yield from parse_uv(text, str(path))
        elif is_file(path):
            yield _setting("uv", "unreadable", "cannot be read", str(path))
    for name, (key, separator) in _UV_VARIABLES.items():
        stated = variables.get(name, "")
        for value in stated.split(separator) if separator else [stated]:
            if value.strip():
                yield _setting("uv", key, value.strip(), name)


def uv_files(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Uv's configuration files outside of projects, in ascending order of precedence."""
    if variables.get("UV_NO_CONFIG", "").lower() in ("1", "true", "yes", "on"):
        return ()
    chosen = variables.get("UV_CONFIG_FILE")
    if chosen:
        return (Path(chosen),)
    system = [Path(item, "uv", "uv.toml") for item in _system_directories(variables)]
    return (*system, Path("/etc/uv/uv.toml"), xdg.config(variables) / "uv" / "uv.toml")


def parse_uv(text: str, source: str) -> tuple[InstallerSetting, ...]:
    """Settings in the text of a uv.toml, its ``[pip]`` table and its ``[[index]]`` entries."""
    try:
        content = cast("dict[str, object]", toml.loads(text))
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is no TOMLDecodeError
        return (_setting("uv", "unreadable", str(error), source),)
    tables = [content, content["pip"]] if isinstance(content.get("pip"), dict) else [content]
    stated = [_setting("uv", key, value, source) for table in tables for key, value in _uv_table(table)]
    return (*stated, *(_setting("uv", key, value, source) for key, value in _uv_indexes(content.get("index"))))


def _uv_table(table: object) -> Iterator[tuple[Key, str]]:
    if not isinstance(table, dict):
        return
    for key in _UV_KEYS:
        value = table.get(key)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, bool):
                yield key, str(item).lower()
            elif isinstance(item, str):
                yield key, item


def _uv_indexes(indexes: object) -> Iterator[tuple[Key, str]]:
    for index in indexes if isinstance(indexes, list) else []:
        if isinstance(index, dict) and isinstance(index.get("url"), str):
            name = f"{index['name']}=" if isinstance(index.get("name"), str) else ""
            yield "index-url" if index.get("default") is True else "extra-index-url", name + index["url"]
