"""Requirements with hashes, as ``pip install --require-hashes`` and uv read them.

Format: https://pip.pypa.io/en/stable/reference/requirements-file-format/ and
https://pip.pypa.io/en/stable/topics/secure-installs/.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from envmedic import limits
from envmedic.errors import InputError
from envmedic.locks import seal
from envmedic.locks.completeness import complete
from envmedic.locks.lock_format import LockFormat
from envmedic.model.lock import Lock, LockedKind, LockedPackage

_HASH = re.compile(r"--hash[= ]sha256:([0-9a-f]{64})")
_FACT = re.compile(r"# ([a-z]+): (.*)")
_INDEXED = re.compile(r"# from an index: (\S+) (\S+)")
"""Name and index; without it, a wheel of an index would read back as an archive installed by URL."""
_BY_HAND = ("pip", "install", "--no-deps")
_LOCAL = re.compile(rf"^# local project (\S+): ({' '.join(_BY_HAND)} .+)$", re.MULTILINE)
_LABELLED = frozenset({"torch", "torchvision", "torchaudio"})
"""Distributions whose builds have labels: ``2.5.1+cpu``."""
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_OPTION = re.compile(r"(?:--index-url|-i|--extra-index-url|--find-links|-f)[= ](\S+)")
_KNOWN = ("--index-url", "-i", "--extra-index-url", "--find-links", "-f", "--no-index", "--pre", "--prefer-binary",
          "--only-binary", "--no-binary", "--require-hashes", "--trusted-host")  # fmt: skip


def text(lock: Lock) -> str:
    """The file. Entries that the format cannot hold are named in a comment."""
    held = complete(lock, FORMAT)
    entries = [entry(item) for item in held if item.path is None]
    head = ["# What is installed, exactly; made by `envmedic lock`."]
    head += [f"# {key}: {value}" for key, value in seal.facts(lock).items()]
    head += [f"# digest: {seal.digest(entries)}", "#"]
    head += [f"# from an index: {item.name} {item.index}" for item in held if item.index]
    head += [f"# not in it: {item.name} {item.version}: {item.reason}" for item in lock.incomplete]
    head += [f"# local project {item.name}: {_by_hand(item)}" for item in held if item.path is not None]
    head += ["# pip install --no-deps --require-hashes -r FILE", "# uv pip sync --require-hashes FILE", ""]
    return "\n".join([*head, *entries]) + "\n"


def _by_hand(item: LockedPackage) -> str:
    """The command for a project in a directory, which has no hash: pip takes none beside those that have."""
    path = item.path or ""
    place = path if path.startswith((".", "/")) else f"./{path}"
    return shlex.join([*_BY_HAND, *(["-e"] if item.kind == "editable" else []), place])


def _local_projects(content: str, source: str) -> Iterator[LockedPackage]:
    for name, command in _LOCAL.findall(content):
        *_, path = shlex.split(command)
        yield LockedPackage(
            manager="pip",
            name=name,
            version="",
            kind="editable" if "-e" in shlex.split(command)[:-1] else "directory",
            path=str((Path(source).parent / path).resolve()),
        )


def entry(item: LockedPackage) -> str:
    """The lines of one package."""
    return f"{requirement(item)} \\\n    --hash=sha256:{item.sha256}"


def requirement(item: LockedPackage) -> str:
    """``name==version`` for the default index, ``name @ URL`` for another origin."""
    elsewhere = item.kind == "archive" or item.index is not None
    if item.kind == "vcs":
        inside = f"#subdirectory={item.subdirectory}" if item.subdirectory else ""
        return f"{item.name} @ git+{item.url}@{item.revision}{inside}"
    if elsewhere and item.url:
        return f"{item.name} @ {item.url}"
    # `==2.5.1` accepts 2.5.1+cu124 as well, and PEP 440 orders the labelled build after the plain one, so uv takes it
    # where an index has both; `===` compares texts
    exactly = "===" if item.name in _LABELLED and "+" not in item.version else "=="
    return f"{item.name}{exactly}{item.version}"


def parse(content: str, source: str) -> Lock:
    """The lock in `content`. Raises InputError where it is none, or was edited by hand."""
    facts = {found[1]: found[2] for line in content.splitlines() if (found := _FACT.fullmatch(line)) is not None}
    entries: list[str] = []
    indexes: list[str] = []
    for number, line in logical_lines(content):
        if line.startswith("-"):
            indexes += _option(line, f"{source}:{number}")
        else:
            entries.append(line)
    indexed = dict(_INDEXED.findall(content))
    packages = tuple(_of_index(_package(line, source), indexed) for line in entries)
    # the digest is over entries as written, not over the text: comments and options may change
    seal.require([entry(item) for item in packages], facts.get("digest"), source)
    packages = tuple(sorted((*packages, *_local_projects(content, source)), key=lambda item: item.name))
    values = seal.restored(facts)
    return Lock(**values, packages=packages, indexes=tuple(indexes), format=FORMAT.name, path=source)  # type: ignore[arg-type]  # texts


def logical_lines(content: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first one, without comments."""
    pending, first = "", 0
    for number, line in enumerate(content.splitlines(), 1):
        first = first if pending else number
        bare = _COMMENT.sub("", line).rstrip()
        pending = f"{pending} {bare.removesuffix(chr(92)).strip()}".strip()
        if not bare.endswith("\\"):
            if pending:
                yield first, pending
            pending = ""
    if pending:
        yield first, pending


def _option(line: str, where: str) -> list[str]:
    if not line.startswith(_KNOWN):
        raise InputError(
            f"{where}: `{line}` cannot stand in a lock",
            cause="It names other files or requirements, not an exact package",
            hint=seal.AGAIN,
        )
    found = _OPTION.match(line)
    return [found[1]] if found is not None else []


def _package(line: str, source: str) -> LockedPackage:
    hashes = tuple(_HASH.findall(line))
    wanted = line.partition(" --hash")[0].strip()
    try:
        parsed = limits.parsed(wanted)
    except InvalidRequirement as error:
        raise InputError(f"{source}: `{wanted}` is no requirement", cause=str(error), hint=seal.AGAIN) from error
    version, kind = _version(parsed, wanted, source)
    if not hashes and kind != "vcs":
        raise InputError(
            f"{source}: `{wanted}` has no hash",
            cause="A lock names the content of every package by --hash=sha256:…",
            hint="Write it with `envmedic lock --format requirements`, or `uv pip compile --generate-hashes`",
        )
    return LockedPackage(
        manager="pip",
        name=canonicalize_name(parsed.name),
        version=version,
        kind=kind,
        url=parsed.url,
        filename=_filename(parsed.url) if parsed.url and kind == "archive" else None,
        sha256=hashes[0] if len(hashes) == 1 else None,
        accepted=hashes if len(hashes) > 1 else (),
        hash_source="lock" if hashes else "",
    )


def _filename(url: str) -> str:
    return unquote(url.partition("#")[0].rpartition("/")[2])


def _of_index(item: LockedPackage, indexed: Mapping[str, str]) -> LockedPackage:
    """`item` with its index from the head of the file."""
    index = indexed.get(item.name)
    return item if index is None or item.kind != "archive" else replace(item, kind="wheel", index=index)


def _version(parsed: Requirement, wanted: str, source: str) -> tuple[str, LockedKind]:
    """The exact version and the kind; of a URL the version in its file name, empty without one."""
    exact = [item.version for item in parsed.specifier if item.operator in {"==", "==="} and "*" not in item.version]
    if parsed.url is not None:
        return _version_of_file(_filename(parsed.url)), "vcs" if parsed.url.startswith("git+") else "archive"
    if len(exact) != 1:
        raise InputError(
            f"{source}: `{wanted}` names no exact version",
            cause="A lock has one version of each package, by ==",
            hint="Write it with `envmedic lock --format requirements`",
        )
    return exact[0], "wheel"


def _version_of_file(filename: str) -> str:
    try:
        if filename.endswith(".whl"):
            return str(parse_wheel_filename(filename)[1])
        return str(parse_sdist_filename(filename)[1])
    except (InvalidWheelFilename, InvalidSdistFilename):
        return ""  # an archive of a repository is named after its branch or tag


FORMAT: Final = LockFormat(
    name="requirements",
    filename="requirements.txt",
    about="wheels with hashes, for any pip or uv",
    holds="wheels and archives with hashes; projects in directories near it as comments",
    read_by="`pip install --no-deps --require-hashes -r`, `uv pip sync --require-hashes`",
    holds_conda=False,
    needs_conda=False,
    holds_hashes=True,
    needs_url=False,
    needs_pep440=False,
    holds_repositories=False,
    holds_subdirectories=False,
    holds_directories=True,
    holds_platforms=False,
    noun="requirements with hashes",
    recognises=lambda _path, _content: False,  # they are any text that no other format claims
    write=text,
    read=lambda content, source, _platform: parse(content, source),
)
