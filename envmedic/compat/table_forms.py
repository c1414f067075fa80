"""The form of every text in the tables that a data file may bring.

Versions and variants end up in requirements and in the addresses of the user's own indexes: what is no version is refused
before any of it is used. Columns that rules do not read are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_VERSION = re.compile(r"\d[\w.]{0,40}")
_VARIANT = re.compile(r"cpu|cu\d{2,4}")
_TAG = re.compile(r"\d\.\d{1,3}t?|py3")
_DOTTED = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,4}")
_CAPABILITY = re.compile(r"\d{1,3}\.\d[af]?")
_SPEC = re.compile(r"[\w.,<>=!~*+ ]{0,200}")
_PLATFORM = re.compile(r"linux_x86_64|linux_aarch64")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_WORDS = re.compile(r"[\w .,()\-]{0,200}")
_SOURCE = re.compile(r"[^\x00-\x1f\x7f]{0,1000}")
_FORMS: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(
        ("version", "torch", "torchvision", "torchaudio", "first", "last", "recommended_for", "numpy"), _VERSION
    ),
    **dict.fromkeys(("variant", "variants"), _VARIANT),
    **dict.fromkeys(("requires_python", "spec", "requires"), _SPEC),
    **dict.fromkeys(("platform", "platforms", "default_on"), _PLATFORM),
    **dict.fromkeys(("cuda", "driver_linux", "minor_compatibility_linux", "exclude_until_cuda"), _DOTTED),
    **dict.fromkeys(("wheels_min", "wheels_max", "python"), _TAG),
    **dict.fromkeys(
        (
            "arch_linux_x86_64", "arch_linux_aarch64", "arch_in_binary", "nvcc_min", "nvcc_max", "nvrtc", "clamp", "code", "cc",
            "devices_only", "exclude",
        ),
        _CAPABILITY,
    ),
    **dict.fromkeys(("linux_64", "linux_aarch64", "builds", "host_compiler_max", "arch", "file_tags"), _WORDS),
    "name": _NAME,
    "channel": re.compile(r"conda-forge|pytorch|pytorch-lts"),
    "interface": re.compile(r"stable|torch|none"),
    "release_date": re.compile(r"\d{4}-\d\d-\d\d"),
    "triton": re.compile(r"triton[\w.,<>=!~* ]{0,100}"),
    "triton_marker": re.compile(r"[\w.<>=!\"'() ]{0,300}"),
    "source": _SOURCE,
}  # fmt: skip
"""By column, wherever it stands. Columns of numbers and truth values need none."""
_KEYS: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("variants", "python", "numpy_abi"), _PLATFORM),
    "requires": _NAME,
    "host_compiler_max": _NAME,
}
"""Of the keys of a column that is a mapping."""
KNOWN = frozenset({*_FORMS, *_KEYS})


def misshapen(table: Mapping[str, object]) -> str | None:
    """Return what is wrong with the first text that has not the form of its column; None where all have."""
    texts: dict[tuple[str, re.Pattern[str]], set[str]] = {}
    for rows in table.values():
        for row in rows if isinstance(rows, list) else ():
            for column, value in row.items() if isinstance(row, dict) else ():
                if column in _FORMS:
                    texts.setdefault((column, _FORMS[column]), set()).update(_texts(value))
                if column in _KEYS and isinstance(value, dict):
                    texts.setdefault((column, _KEYS[column]), set()).update(value)
    return next(_wrong(texts), None)


def _wrong(texts: Mapping[tuple[str, re.Pattern[str]], Iterable[str]]) -> Iterator[str]:
    for (column, form), found in texts.items():
        yield from (f"{text[:60]!r} is no value of {column}" for text in sorted(found) if not form.fullmatch(text))


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, dict):
        value = list(value.values())
    # a row decodes to lists of lists at most: deeper ones are refused by its type
    return (text for item in value for text in _texts(item)) if isinstance(value, list) else ()
