"""Index settings of the user's pip and uv.

uv reads its own configuration and never that of pip. `resolution.uv_options` translates the settings of pip into uv
options, unless uv itself has the same setting. Values may hold credentials and never leave this package; `probe`
reports the same files for display.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from envmedic import limits, safe_io, toml, xdg
from envmedic.errors import InputError
from envmedic.model.facts import Environment
from envmedic.redact import redact_text

_PIP_SECTIONS = ("global", "install")
"""Sections of pip's files that apply to `pip install`, the weaker first."""
_LARGEST = 1 << 20
"""Limit for a configuration file, in bytes."""
_UV_DEFAULT_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")
_UV_EXTRA_VARIABLES = ("UV_INDEX", "UV_EXTRA_INDEX_URL")


@dataclass(frozen=True)
class PipConfiguration:
    """Settings that pip would use."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    no_index: bool = False
    cert: str | None = None
    proxy: str | None = None


@dataclass(frozen=True)
class UvConfiguration:
    """Settings of uv itself that decide which settings of pip are translated."""

    default_index: str | None = None
    extra_indexes: tuple[str, ...] = ()
    strategy: str | None = None
    no_index: bool = False

    @property
    def urls(self) -> tuple[str, ...]:
        """Every index URL, with its credentials."""
        return tuple(url for url in (self.default_index, *self.extra_indexes) if url)


@dataclass(frozen=True)
class IndexConfiguration:
    """Both tools' configuration for one environment."""

    pip: PipConfiguration
    uv: UvConfiguration

    @property
    def urls(self) -> tuple[str, ...]:
        """Every index and find-links URL, with its credentials."""
        pip = self.pip
        own = (pip.index_url or "", *pip.extra_index_urls, *pip.find_links, *self.uv.urls)
        return tuple(url for url in own if "://" in url)


def read(prefix: Path | None, environ: Mapping[str, str] = os.environ) -> IndexConfiguration:
    """Read both configurations; `prefix` adds the environment's own ``pip.conf``."""
    return IndexConfiguration(pip=read_pip(prefix, environ), uv=read_uv(environ))


def of(environment: Environment) -> IndexConfiguration:
    """Read both configurations for an environment."""
    return read(place(environment))


def place(environment: Environment) -> Path | None:
    """Where the environment's own ``pip.conf`` is; None for one that nobody named.

    That file could lead logins of other indexes to a proxy of its author.
    """
    return Path(environment.prefix) if environment.interpreter.named else None


def read_pip(prefix: Path | None, environ: Mapping[str, str]) -> PipConfiguration:
    """Read pip's files and variables in pip's order of precedence (pip's user guide, "Configuration")."""
    values = _pip_values(prefix, environ)
    return PipConfiguration(
        index_url=values.get("index-url") or None,
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        constraints=tuple(values.get("constraint", "").split()),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        no_index=values.get("no-index", "").strip().lower() in {"1", "true", "yes", "on", "y", "t"},
        cert=values.get("cert") or None,
        proxy=values.get("proxy") or None,
    )


def _pip_values(prefix: Path | None, environ: Mapping[str, str]) -> dict[str, str]:
    sections: dict[str, dict[str, str]] = {name: {} for name in _PIP_SECTIONS}
    for file in _pip_files(prefix, environ):
        parser = configparser.RawConfigParser()
        try:
            # pip.conf of the environment may be a stranger's: a link in it could lead to any file that this user can
            # read.
            own = prefix is None or not file.is_relative_to(prefix)
            text = safe_io.read(file, _LARGEST, follow=own).decode()
            # limits.settings: configparser's regular expressions take quadratic time on long runs of blanks.
            parser.read_string(limits.settings(text), source=str(file))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        except (configparser.Error, UnicodeDecodeError, OSError) as error:
            raise _unreadable(file, error) from error
        for section in _PIP_SECTIONS:
            if parser.has_section(section):
                sections[section].update({key.replace("_", "-"): value for key, value in parser.items(section)})
    # pip's order: [install] beats [global] whichever file it stands in, and variables beat every file.
    values = {**sections["global"], **sections["install"]}
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            values[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    return values


def _pip_files(prefix: Path | None, environ: Mapping[str, str]) -> Iterator[Path]:
    named = environ.get("PIP_CONFIG_FILE")
    # pip documents os.devnull as the way to read no configuration file at all.
    if named == os.devnull:
        return
    for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"):
        yield Path(folder) / "pip" / "pip.conf"
    yield Path("/etc/pip.conf")
    # pip's rule (Configuration.iter_config_files): an existing PIP_CONFIG_FILE replaces the user's files, and no
    # others.
    if not (named and Path(named).exists()):
        yield xdg.home(environ) / ".pip" / "pip.conf"
        yield xdg.config(environ) / "pip" / "pip.conf"
    if prefix is not None:
        yield prefix / "pip.conf"
    if named:
        yield Path(named)


def read_uv(environ: Mapping[str, str]) -> UvConfiguration:
    """Read uv's settings: variables first, then the nearest configuration files."""
    result = UvConfiguration(
        default_index=next((environ[name] for name in _UV_DEFAULT_VARIABLES if environ.get(name)), None),
        extra_indexes=tuple(
            _named_index(value, environ) for name in _UV_EXTRA_VARIABLES for value in environ.get(name, "").split()
        ),
        strategy=environ.get("UV_INDEX_STRATEGY") or None,
        no_index=environ.get("UV_NO_INDEX", "") not in {"", "0", "false"},
    )
    for path, table in _uv_tables(environ):
        result = _merge(result, _from_table(_settings(path, table), environ))
    return result


_LIMITS = frozenset({"constraint-dependencies", "override-dependencies"})
_OF_PROJECTS = frozenset({
    "build-backend", "conflicts", "default-groups", "dependency-groups", "dev-dependencies", "environments", "managed",
    "package", "required-environments", "required-version", "sources", "workspace",
})  # fmt: skip
"""Settings that uv takes from a ``pyproject.toml`` alone, and one that is about uv itself."""


def without_limits(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return uv's settings that apply here, as one ``uv.toml`` without limits on versions.

    As in uv, lists are joined, the nearest file first; of other values the nearest counts.
    """
    merged: dict[str, Any] = {}
    for path, table in _uv_tables(environ):
        for key, given in table.items():
            if key in _LIMITS | _OF_PROJECTS:
                continue
            value = [_below(path, item) for item in given] if key == "find-links" else given
            known = merged.get(key)
            merged[key] = [*known, *value] if isinstance(known, list) and isinstance(value, list) else known or value
    return merged


def _below(path: Path, where: Any) -> Any:
    """A location as seen from the file that names it."""
    return where if not isinstance(where, str) or "://" in where else str(path.parent / where)


def _merge(strong: UvConfiguration, weak: UvConfiguration) -> UvConfiguration:
    return UvConfiguration(
        default_index=strong.default_index or weak.default_index,
        # uv concatenates the lists of its files, the nearest file first, and asks indexes in that order.
        extra_indexes=strong.extra_indexes + weak.extra_indexes,
        strategy=strong.strategy or weak.strategy,
        no_index=strong.no_index or weak.no_index,
    )


class _UvIndex(msgspec.Struct):
    """An entry of ``[[index]]``."""

    url: str = ""
    name: str | None = None
    default: bool = False


class _UvTable(msgspec.Struct, rename="kebab"):
    """The uv settings that count here (https://docs.astral.sh/uv/reference/settings/)."""

    index: list[_UvIndex] = []
    index_url: str | None = None
    extra_index_url: list[str] = []
    index_strategy: str | None = None
    no_index: bool = False


def _from_table(table: _UvTable, environ: Mapping[str, str]) -> UvConfiguration:
    urls = [(with_login(item.url, item.name, environ), item.default) for item in table.index if item.url]
    return UvConfiguration(
        default_index=next((url for url, default in urls if default), None) or table.index_url,
        extra_indexes=(*(url for url, default in urls if not default), *table.extra_index_url),
        strategy=table.index_strategy,
        no_index=table.no_index,
    )


def _named_index(value: str, environ: Mapping[str, str]) -> str:
    """URL of an index that may be written ``name=url``."""
    name, equals, url = value.partition("=")
    # A bare URL may hold "=" in its query too; a name never holds "://".
    return with_login(url, name, environ) if equals and "://" not in name else value


def with_login(url: str, name: str | None, environ: Mapping[str, str]) -> str:
    """`url` with the login that the ``_USERNAME`` and ``_PASSWORD`` of uv or poetry give a named index.

    https://python-poetry.org/docs/repositories/#configuring-credentials
    """
    # both tools' rule for a name: upper case, everything but letters and digits becomes "_"
    mark = re.sub(r"[^A-Za-z0-9]", "_", name or "").upper()
    logins = (
        (environ.get(f"{start}{mark}_USERNAME", ""), environ.get(f"{start}{mark}_PASSWORD", ""))
        for start in ("UV_INDEX_", "POETRY_HTTP_BASIC_")
    )
    user, password = next((pair for pair in logins if any(pair)), ("", ""))
    if not name or not (user or password) or "@" in urlsplit(url).netloc:
        return url
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{quote(user, safe='')}:{quote(password, safe='')}@{rest}"


def _uv_tables(environ: Mapping[str, str]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The ``[tool.uv]`` or ``uv.toml`` tables that apply here with their files: the project's, the user's, the system's."""
    if environ.get("UV_NO_CONFIG", "") not in {"", "0", "false"}:
        return
    if environ.get("UV_CONFIG_FILE"):
        yield _of_file(Path(environ["UV_CONFIG_FILE"]))
        return
    yield from _project_table(Path.cwd())
    yield _of_file(xdg.config(environ) / "uv" / "uv.toml")
    for folder in (*(environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"), "/etc"):
        yield _of_file(Path(folder) / "uv" / "uv.toml")


def _of_file(path: Path) -> tuple[Path, Mapping[str, Any]]:
    return path, _toml(path)


def _project_table(start: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for folder in (start, *start.parents):
        # As in uv, uv.toml hides [tool.uv] of a pyproject.toml beside it, and a pyproject.toml without that table does
        # not end the search.
        if (folder / "uv.toml").is_file():
            yield _of_file(folder / "uv.toml")
            return
        if (folder / "pyproject.toml").is_file():
            table = _toml(folder / "pyproject.toml").get("tool")
            if isinstance(table, dict) and "uv" in table:
                own = table["uv"]
                if not isinstance(own, dict):
                    raise _unreadable(folder / "pyproject.toml", ValueError("[tool.uv] is no table"))
                yield folder / "pyproject.toml", own
                return


def _settings(path: Path, whole: Mapping[str, Any]) -> _UvTable:
    """The settings in a table of a file; those of ``[pip]`` win. Raises InputError."""
    try:
        return msgspec.convert({**whole, **msgspec.convert(whole.get("pip", {}), dict[str, Any])}, _UvTable)
    except msgspec.ValidationError as error:
        raise _unreadable(path, error) from error


def _toml(path: Path) -> Mapping[str, Any]:
    """A TOML file's content; empty when there is none."""
    try:
        return toml.loads(safe_io.read(path, _LARGEST, follow=True).decode())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, RecursionError) as error:  # ValueError also for integers beyond Python's limit of digits
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path} cannot be read as a configuration file",
        cause=redact_text(" ".join(str(error).split())),
        hint=f"Correct {path}, or move it away",
    )
