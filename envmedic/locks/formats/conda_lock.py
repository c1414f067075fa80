"""Format ``conda-lock.yml``, through conda-lock's own models; the only importer of conda-lock.

Format: https://conda.github.io/conda-lock/ and ``conda-lock-v1.schema.json`` in conda-lock.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from envmedic import limits
from envmedic.errors import EnvmedicError, InputError, InstallerError, RepairPackageMissing
from envmedic.locks import seal
from envmedic.locks.completeness import complete
from envmedic.locks.lock_format import LockFormat, has_dependencies, is_yaml
from envmedic.locks.markers import dependencies
from envmedic.model.lock import Lock, LockedKind, LockedPackage

VERSION: Final = 1
_MODELS: Final = "conda_lock.lockfile.v1.models"
_EXACTLY: Final = re.compile(r"^==(?=[^,|*]+$)")
_HEAD: Final = """\
# What is installed, exactly, conda and pip packages; made by `envmedic lock`. Do not edit.
# conda-lock install -p NEW FILE, or: envmedic create --lock FILE -p NEW
"""


@dataclass(frozen=True)
class CondaLockModels:
    """conda-lock's models, and the YAML library that it brings."""

    models: Any
    yaml: Any


def libraries() -> CondaLockModels:
    """Import them. Raises RepairPackageMissing, or InstallerError where conda-lock is another release than is known."""
    try:
        with _stand_ins("conda_lock", "conda_lock.lockfile"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of conda-lock's own parts to its makers
            return CondaLockModels(importlib.import_module(_MODELS), importlib.import_module("yaml"))
    except ImportError as error:
        raise InstallerError(
            "conda-lock cannot be used",
            cause=str(error),
            hint="Install the release that envmedic knows: pip install 'conda-lock>=4'",
        ) from error


@contextmanager
def _stand_ins(*names: str) -> Iterator[None]:
    """Empty packages in the place of `names` while the block runs, unless they are loaded already."""
    # importing any part of conda-lock imports its whole command line (0.5 to 1.6 s), through the __init__ of the
    # packages above it; the models alone take a third of that
    made = []
    try:
        for name in names:
            if name not in sys.modules:
                sys.modules[name] = _stand_in(name)
                made.append(name)
        yield
    finally:
        # a later import of conda-lock must get the real packages
        for name in made:
            del sys.modules[name]


def _stand_in(name: str) -> ModuleType:
    found = importlib.util.find_spec(name)
    if found is None:
        raise RepairPackageMissing("conda-lock")
    if found.submodule_search_locations is None:
        raise ImportError(f"{name} is no package")
    module = ModuleType(name)
    module.__path__ = list(found.submodule_search_locations)
    return module


def _is_lock(content: str) -> bool:
    """Whether a text has both tables of the format, whatever the file is called."""
    return all(re.search(rf"^{key}:", content, re.MULTILINE) for key in ("metadata", "package"))


def text(lock: Lock) -> str:
    """The file, in version 1 of the format. Raises InstallerError without conda-lock."""
    used = libraries()
    packages = [_entry(item, lock, platform) for item in complete(lock, FORMAT) for platform in _of(item, lock)]
    # sorted, so that two locks of one environment are the same text, and the digest the same
    packages.sort(key=lambda item: (item["manager"], item["name"], item["platform"]))
    platforms = sorted({item["platform"] for item in packages} | {lock.platform})
    try:
        document = used.models.Lockfile.model_validate(
            {
                "package": packages,
                "metadata": {
                    # conda-lock hashes its source files here, to see whether a lock is out of date; there are none, so
                    # the entries stand in
                    "content_hash": {name: _digest(packages, name) for name in platforms},
                    "channels": list(lock.channels),
                    "platforms": platforms,
                    "sources": [],
                    "custom_metadata": {**seal.facts(lock), "digest": seal.digest(packages)},
                },
            }
        )
    except ValueError as error:  # pydantic's
        raise _refused("conda-lock does not accept the lock", error) from error
    missing = "".join(f"# not in it: {item.name} {item.version}: {item.reason}\n" for item in lock.incomplete)
    # libyaml's dumper where PyYAML was built with it: the one in Python takes seconds on hundreds of packages
    dumper = getattr(used.yaml, "CSafeDumper", used.yaml.SafeDumper)
    body: str = used.yaml.dump(document.dict_for_output(), Dumper=dumper, sort_keys=False, allow_unicode=True)
    return f"{_HEAD}{missing}{body}"


def _refused(summary: str, error: Exception) -> EnvmedicError:
    return InstallerError(summary, cause=" ".join(str(error).split()), hint="Choose another --format")


def _of(item: LockedPackage, lock: Lock) -> tuple[str, ...]:
    return item.platforms or (lock.platform,)


def _digest(packages: list[dict[str, Any]], platform: str) -> str:
    return seal.digest([item for item in packages if item["platform"] == platform])


def _entry(item: LockedPackage, lock: Lock, platform: str) -> dict[str, Any]:
    hashes = {"md5": item.md5, "sha256": item.sha256}
    entry = {
        "name": item.name,
        "version": item.version,
        "manager": item.manager,
        "platform": platform,
        "dependencies": _specs(item) if item.manager == "conda" else dependencies(item, lock, platform),
        "url": item.url,
        "hash": {key: value for key, value in hashes.items() if value},
        "category": "main",
        "optional": False,
    }
    return {**entry, "build": item.build} if item.build else entry


def _specs(item: LockedPackage) -> dict[str, str]:
    """Match specs by name; several of one name are joined."""
    found: dict[str, str] = {}
    for spec in item.requires:
        name, _, rest = spec.strip().partition(" ")
        # conda adds pip to python's dependencies, while pip depends on python: conda-lock would find a cycle.
        # py-rattler records `==1.0 build` for `1.0 build`, so _EXACTLY makes the two the same
        if not (item.name == "python" and name == "pip"):
            found[name] = ",".join(part for part in (found.get(name, ""), _EXACTLY.sub("", rest.strip())) if part)
    return {name: spec or "*" for name, spec in sorted(found.items())}


def parse(content: str, source: str, platform: str | None = None) -> Lock:
    """The lock in `content` for `platform`, by default the one that it was made on or the only one.

    Raises InputError where it is none, of an unknown version, edited by hand, or not for that platform.
    """
    used = libraries()
    raw = _raw(used, content, source)
    if raw.get("version") != VERSION:
        raise InputError(
            f"{source} is a conda-lock file of version {raw.get('version')!r}",
            cause=f"envmedic reads version {VERSION}, which every conda-lock since 1.0 writes",
            hint="Write it again with conda-lock 1 to 4, or with `envmedic lock`",
        )
    try:
        document = used.models.Lockfile.model_validate(raw)
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # pydantic's, and conda-lock's own besides
        hint = "Write it again with `conda-lock` or `envmedic lock`"
        raise InputError(f"{source} is not a valid conda-lock file", cause=_short(error), hint=hint) from error
    facts = document.metadata.custom_metadata or {}
    seal.require(raw["package"], facts.get("digest"), source)
    return _lock(document, facts, source, platform)


def _raw(used: CondaLockModels, content: str, source: str) -> Mapping[str, Any]:
    loader = getattr(used.yaml, "CSafeLoader", used.yaml.SafeLoader)
    try:
        _require_shallow(used, content, loader)
        raw: object = used.yaml.load(content, Loader=loader)  # a safe loader
        limits.require(raw)
    except (used.yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{source} is not YAML", cause=" ".join(str(error).split()), hint=seal.AGAIN) from error
    if not isinstance(raw, dict) or "package" not in raw:
        raise InputError(
            f"{source} is not a conda-lock file",
            cause="It has no `package` list",
            hint="Give a conda-lock.yml, a pylock.toml, or requirements with hashes",
        )
    return raw


def _require_shallow(used: CondaLockModels, content: str, loader: Any) -> None:
    """Raise ValueError where values nest deeper than in any lock."""
    # libyaml's loader builds nested values by recursion in C, which overflows the stack; its events do not recurse
    depth = 0
    for event in used.yaml.parse(content, Loader=loader):
        depth += isinstance(event, used.yaml.CollectionStartEvent) - isinstance(event, used.yaml.CollectionEndEvent)
        if depth > limits.DEEPEST:
            raise ValueError(f"its lists and tables lie more than {limits.DEEPEST} deep in each other")


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _lock(document: Any, facts: Mapping[str, str], source: str, platform: str | None) -> Lock:
    known = list(document.metadata.platforms)
    # envmedic writes the platform of the environment; locks of conda-lock itself name none
    chosen = platform or facts.get("platform") or (known[0] if len(known) == 1 else None)
    if chosen not in known:
        raise InputError(
            f"{source} is not for {chosen or 'one platform'}",
            cause=f"It is for {', '.join(known)}",
            hint="Lock for this platform too with `envmedic lock --platform`",
        )
    entries = [item for item in document.package if item.platform == chosen and item.category == "main"]
    packages = tuple(sorted(map(_read, entries), key=lambda item: (item.manager, item.name)))
    values: dict[str, Any] = {**seal.restored(facts), "platform": chosen}
    values["python"] = values["python"] or next((item.version for item in packages if item.name == "python"), "")
    return Lock(
        **values,
        packages=packages,
        channels=tuple(channel.url for channel in document.metadata.channels),
        format=FORMAT.name,
        path=source,
    )


def _read(item: Any) -> LockedPackage:
    conda = item.manager == "conda"
    parts = item.url.split("/")
    filename = parts[-1].partition("#")[0]
    kind: LockedKind = "conda" if conda else "wheel" if filename.endswith(".whl") else "sdist"
    return LockedPackage(
        manager=item.manager,
        name=item.name,
        version=item.version,
        kind=kind,
        url=item.url,
        filename=filename,
        sha256=item.hash.sha256,
        md5=item.hash.md5,
        requires=tuple(f"{name} {spec}".removesuffix(" *") for name, spec in item.dependencies.items()),
        build=(item.build or _build(filename)) if conda else None,
        channel="/".join(parts[:-2]) if conda else None,
        subdir=parts[-2] if conda and len(parts) > 1 else None,
        hash_source="lock",
    )


def _build(filename: str) -> str:
    """Build string of a conda package from its file name, ``name-version-build.conda``."""
    return filename.removesuffix(".conda").removesuffix(".tar.bz2").rpartition("-")[2]


FORMAT: Final = LockFormat(
    name="conda-lock",
    filename="conda-lock.yml",
    about="conda and pip packages, for conda-lock",
    holds="conda packages and wheels of one environment, in one file (version 1)",
    read_by="`conda-lock install`, `conda-lock render`",
    holds_conda=True,
    needs_conda=True,
    holds_hashes=True,
    needs_url=True,
    needs_pep440=False,
    holds_repositories=False,
    holds_subdirectories=False,
    holds_directories=False,
    holds_platforms=True,
    noun="a conda-lock.yml",
    recognises=lambda path, content: (is_yaml(path) or _is_lock(content)) and not has_dependencies(content),
    write=text,
    read=parse,
)
