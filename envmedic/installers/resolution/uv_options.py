"""uv options for a resolution: the user's pip configuration in uv's terms, and the PyTorch index when needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from envmedic.errors import InputError, InstallerError
from envmedic.installers.index.configuration import IndexConfiguration, without_limits
from envmedic.installers.index.credentials import redacted, without_credentials
from envmedic.installers.wheels import download_cache
from envmedic.installers.wheels.remote_metadata import local_file
from envmedic.model.facts import Environment
from envmedic.model.ports import ResolveRequest

_OWN = ("UV_TORCH_BACKEND", "UV_SYSTEM_PYTHON", "UV_PYTHON", "UV_EXCLUDE", "UV_OVERRIDE", "UV_NO_BINARY")
"""uv variables that would change the resolution; the plan decides these."""


@dataclass(frozen=True)
class UvOptions:
    """Options and variables for uv, and the indexes for display."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str | None]
    indexes: tuple[str, ...]
    """Index URLs given to uv, without credentials; uv adds its own configuration."""
    settings: Mapping[str, Any] | None = None
    """What stands in the place of uv's own settings; None leaves these to uv."""


def translate(
    configuration: IndexConfiguration, request: ResolveRequest, environ: Mapping[str, str] = os.environ
) -> UvOptions:
    """Return the options that uv needs beyond its own configuration. Raises InputError for an invalid address."""
    _require_addresses(configuration, request)
    indexes = _index_arguments(configuration, request)
    words, variables = _beside_own(tuple(argument for argument, _ in indexes), environ)
    arguments = [
        *(f"--find-links={where}" for where in _find_links(configuration, request)),
        *words,
        *(argument for path in configuration.pip.constraints for argument in ("-c", path)),
        *(f"--allow-insecure-host={host}" for host in configuration.pip.trusted_hosts),
    ]
    # --no-index would also disable the index that the user has configured for uv itself.
    if configuration.pip.no_index and not configuration.uv.default_index:
        arguments.append("--no-index")
    if len(indexes) + len(environ.get("UV_INDEX", "").split()) > 1 and indexes and configuration.uv.strategy is None:
        # As pip does; uv's default stops at the first index that has the name.
        arguments.append("--index-strategy=unsafe-best-match")
    if request.offline:
        arguments.append("--offline")
    shown = tuple(without_credentials(url) for _, url in indexes)
    environment = {**_environment(configuration, environ), **variables}
    return UvOptions(arguments=tuple(arguments), environment=environment, indexes=shown)


def _beside_own(arguments: tuple[str, ...], environ: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Index arguments, and those of them that go into UV_INDEX, since an option would replace the user's indexes there."""
    own, option = environ.get("UV_INDEX", "").strip(), "--index="
    if not own or not any(item.startswith(option) for item in arguments):
        return arguments, {}
    ours = (item.removeprefix(option) for item in arguments if item.startswith(option))
    rest = tuple(item for item in arguments if not item.startswith(option))
    return rest, {"UV_INDEX": " ".join((*ours, own))}


def _require_addresses(configuration: IndexConfiguration, request: ResolveRequest) -> None:
    pip, uv = configuration.pip, configuration.uv
    given = (variant_index(request), *request.indexes, *request.find_links)
    configured = (pip.index_url, *pip.extra_index_urls, *pip.find_links, *uv.urls)
    for address in filter(None, (*given, *configured)):
        _require_address(address)


def _require_address(address: str) -> None:
    try:
        urlsplit(address)
    except ValueError as error:
        raise InputError(
            f"{redacted(address)} is no address of an index",
            cause=str(error),
            hint="Correct it on the command line, or in the configuration of pip or uv",
        ) from error


def without_constraints(told: UvOptions, own: Path, environ: Mapping[str, str] = os.environ) -> UvOptions:
    """`told` without our own file of constraints: a new repair may change what an earlier one pinned."""
    names = {str(own), own.as_uri()}
    arguments, rest = [], list(told.arguments)
    while rest:
        word = rest.pop(0)
        if word == "-c" and rest and rest[0] in names:
            rest.pop(0)
        else:
            arguments.append(word)
    words = [word for word in environ.get("UV_CONSTRAINT", "").split() if word not in names]
    environment = {**told.environment, "UV_CONSTRAINT": " ".join(words) or None}
    return replace(told, arguments=tuple(arguments), environment=environment)


def without_files(told: UvOptions, environ: Mapping[str, str] = os.environ) -> UvOptions:
    """`told` without the files of constraints of this machine, and without the limits of uv's own settings."""
    stated = pairwise((*told.arguments, ""))
    files = [index for index, (flag, word) in enumerate(stated) if flag == "-c" and _is_local(word)]
    gone = {place for index in files for place in (index, index + 1)}
    return replace(
        told,
        arguments=tuple(word for index, word in enumerate(told.arguments) if index not in gone),
        environment={**told.environment, "UV_CONSTRAINT": " ".join(_remote(environ)) or None, "UV_NO_CONFIG": None},
        settings=without_limits(environ),
    )


def _remote(environ: Mapping[str, str]) -> list[str]:
    return [word for word in environ.get("UV_CONSTRAINT", "").split() if not _is_local(word)]


def _is_local(where: str) -> bool:
    return "://" not in where or local_file(where) is not None


def _index_arguments(configuration: IndexConfiguration, request: ResolveRequest) -> list[tuple[str, str]]:
    """(argument, URL) of each index, strongest first."""
    pip, found = configuration.pip, []
    variant = variant_index(request)
    # In uv earlier indexes come first, and the default index last, in whatever order the options stand.
    found += [_location_argument(where) for where in (variant, *request.indexes) if where is not None]
    if not pip.no_index:
        found += [(f"--index={url}", url) for url in pip.extra_index_urls]
        if pip.index_url and configuration.uv.default_index is None:
            found.append((f"--default-index={pip.index_url}", pip.index_url))
    return found


def variant_index(request: ResolveRequest) -> str | None:
    """The PyTorch index of the wanted variant, or None when it is not needed."""
    if not request.needs_variant_index or request.variant is None:
        return None
    given = request.torch_index != ResolveRequest(pins=()).torch_index
    # An option on the command line before the variable, and that before the built-in address.
    template = request.torch_index if given else os.environ.get("ENVMEDIC_TORCH_INDEX") or request.torch_index
    return template.replace("{variant}", request.variant)


def _location_argument(where: str) -> tuple[str, str]:
    """A directory or page of wheels is a find-links location, anything else a simple index."""
    path = local_file(where) or (Path(where) if "://" not in where else None)
    flat = any(path.glob("*.whl")) if path is not None else urlsplit(where).path.endswith((".html", ".htm"))
    if flat:
        return f"--find-links={where}", where
    return f"--index={path.resolve().as_uri() if path is not None else where}", where


def _find_links(configuration: IndexConfiguration, request: ResolveRequest) -> list[str]:
    for where in request.find_links:
        if not _may_exist(where):
            raise InputError(
                f"{where} does not exist",
                cause="it was given with --find-links",
                hint="Give a directory that holds wheels, or the URL of a page that links to them",
            )
    own = [where for where in configuration.pip.find_links if _may_exist(where)]  # pip ignores a missing directory too
    # Offline, the only wheels are those fetched earlier; each has a directory of its own, hence many options.
    cached = [str(folder) for folder in download_cache.folders()] if request.offline else []
    return list(dict.fromkeys([*request.find_links, *own, *cached]))


def _may_exist(where: str) -> bool:
    return "://" in where or os.path.exists(where)  # noqa: PTH110  # Path.exists raises for a name that is too long


def _environment(configuration: IndexConfiguration, environ: Mapping[str, str]) -> dict[str, str | None]:
    """Certificates and proxy as variables of uv; values that the user has set stay."""
    values: dict[str, str | None] = dict.fromkeys(_OWN)
    pip = configuration.pip
    # uv reads SSL_CERT_FILE, but neither the variable of requests nor pip's setting.
    certificates = environ.get("REQUESTS_CA_BUNDLE") or pip.cert
    if certificates and not environ.get("SSL_CERT_FILE"):
        values["SSL_CERT_FILE"] = certificates
    if pip.proxy and not any(environ.get(name) for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")):
        values["ALL_PROXY"] = pip.proxy
    return values


def require_interpreter(environment: Environment) -> None:
    """Raise InstallerError unless the environment's Python starts: uv asks it for tags and markers."""
    if not environment.interpreter.starts:
        raise InstallerError(
            f"{environment.interpreter.path} does not start",
            cause=environment.interpreter.error,
            hint="Restore the interpreter that the environment was made with",
        )
