"""Match specs, in which conda says which packages are meant: ``pytorch=2.3``, ``conda-forge::numpy[version='<2']``.

Rules: https://docs.conda.io/projects/conda/en/stable/dev-guide/api/conda/models/match_spec/ (MatchSpec).
"""

from __future__ import annotations

import re

import msgspec

from envmedic.conda_meta import urls, versions
from envmedic.conda_meta.globs import expression, globs, is_expression
from envmedic.model.conda import CondaPackage

_PACKAGE_FILE = (".conda", ".tar.bz2")
_BRACKETS = re.compile(r"\[(.*)\]")
_FIELD = re.compile(r"""([a-zA-Z0-9_-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^'",\s]*))\s*(?:[,\s]|$)""")
_NAME = re.compile(r"([^\s=<>!~]+)\s*(.*)", re.DOTALL)
_BUILD = re.compile(r"((?:.+?)[^><!,|]?)(?:(?<![=!|,<>~])(?:[ =])([^-=,|<>~]+?))?")
_KNOWN = frozenset({"name", "version", "build", "build_number", "channel", "subdir", "md5", "sha256", "url", "fn"})


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """A match spec, taken apart."""

    name: str
    """In lower case; ``*`` where it names none."""
    version: str | None = None
    build: str | None = None
    channel: str | None = None
    subdir: str | None = None
    fields: dict[str, str] = {}
    """What else it asks for, in brackets."""


def name_of(text: str) -> str:
    """The name of the package that a spec is of, in lower case, ``*`` where it names none. Raises ValueError."""
    return parse(text).name


def parse(text: str) -> Spec:
    """Take a spec apart. Raises ValueError when it is none."""
    if len(text) > versions.LONGEST:
        raise ValueError(f"a text of {len(text)} characters is no spec")
    plain = text.partition("#")[0].partition(" if ")[0].strip()
    if plain.endswith("@"):
        return Spec(name="*", fields={"track_features": plain[:-1]})
    if plain.endswith(_PACKAGE_FILE):
        return _of_file(plain)
    plain, fields = _without_brackets(plain, text)
    where, _, rest = plain.rpartition("::")
    channel, subdir = _channel(fields.pop("channel", where))
    match = _NAME.fullmatch(rest.rpartition(":")[2].strip() if where else rest.strip())
    if match is None:
        raise ValueError(f"{text!r} names no package")
    version, build = _version_and_build(match[2].strip())
    return Spec(
        name=match[1].lower(),
        version=fields.pop("version", version),
        build=fields.pop("build", build),
        channel=channel,
        subdir=fields.pop("subdir", subdir),
        fields={key: value for key, value in fields.items() if key != "name"},
    )


def _of_file(address: str) -> Spec:
    """The spec of one exact package, by its address or path."""
    stem = address.rpartition("/")[2].removesuffix(".conda").removesuffix(".tar.bz2")
    parts = stem.rsplit("-", 2)
    if len(parts) != 3 or not all(parts):  # noqa: PLR2004  # name, version, build
        raise ValueError(f"{address!r} is no file of a package")
    return Spec(name=parts[0].lower(), version=f"=={parts[1]}", build=parts[2])


def _without_brackets(plain: str, text: str) -> tuple[str, dict[str, str]]:
    match = _BRACKETS.search(plain)
    if match is None:
        return plain, {}
    fields = {item[1]: item[2] or item[3] or item[4] or "" for item in _FIELD.finditer(match[1])}
    if not fields or not all(fields.values()):
        raise ValueError(f"{text!r} has brackets that cannot be read")
    return plain[: match.start()] + plain[match.end() :], fields


def _channel(text: str) -> tuple[str | None, str | None]:
    """Channel and subdir of ``channel/subdir``; None for what is not stated."""
    if not text or text == "*":
        return None, None
    plain = urls.without_subdir(text)
    subdir = text.rstrip("/").rpartition("/")[2] if plain != text.rstrip("/") else None
    return (None if plain == "*" else plain), subdir


def _version_and_build(text: str) -> tuple[str | None, str | None]:
    """``=1.2`` is any 1.2, ``=1.2=build`` and ``1.2 build`` are exactly 1.2; ``=`` is any version."""
    if text in {"", "="}:
        return None, None
    match = _BUILD.fullmatch(text)
    version, build = (match[1], match[2]) if match else (text, None)
    version, build = version.replace(" ", ""), build.strip() if build else None
    if version[0] != "=" or version in {"=", "=="}:
        return version, build
    plain = version[1:]
    if version.startswith("==") and build is None:
        return version[2:], None
    if any(mark in plain for mark in "=,|"):
        return version, build
    return (plain if build is not None or plain.endswith("*") else f"{plain}*"), build


def matches(text: str, package: CondaPackage) -> bool:
    """Whether `package` is what a spec asks for. Raises ValueError when the spec, or a field of it, is not known."""
    spec = parse(text)
    unknown = set(spec.fields) - _KNOWN
    if unknown:
        raise ValueError(f"{text!r} asks for {', '.join(sorted(unknown))}, which an installed package does not tell")
    return (
        _globs(spec.name, package.name.lower())
        and (spec.version is None or versions.satisfies(package.version, spec.version))
        and (spec.build is None or _globs(spec.build, package.build))
        and (spec.channel is None or urls.same(spec.channel, package.channel))
        and (spec.subdir is None or spec.subdir == package.subdir)
        and all(_field(key, value, package) for key, value in spec.fields.items())
    )


def _globs(pattern: str, value: str) -> bool:
    return expression(pattern, value) if is_expression(pattern) else globs(pattern, value)


def _field(key: str, value: str, package: CondaPackage) -> bool:
    if key == "build_number":
        return versions.satisfies(str(package.build_number), value)
    known = {"md5": package.md5, "sha256": package.sha256, "url": package.url, "fn": package.filename}
    return known[key] == (urls.without_credentials(value) if key == "url" else value)
