"""Pairs of extension releases and torch releases, parsed from the notation of the data's authors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from envmedic.compat import tables, versions
from envmedic.model.base import Model

_SPAN = re.compile(r"(?:(?P<first>\d[\w.]*) to |up to )(?P<last>\d[\w.]*)")
_WORD = re.compile(r"[>=.]*\d[\w.]*|\.post\d+")
FLASH_ATTENTION = (
    "https://github.com/Dao-AILab/flash-attention/releases/download/v{version}/"
    "flash_attn-{version}+cu{cuda}torch{torch}cxx11abi{abi}-{tag}-{tag}-linux_x86_64.whl"
)
"""Where the project publishes its wheels, as `extensions.json` has it."""
TRITON_WITHOUT_OPS = "3.2"
"""First release of triton without ``triton.ops``. Source: the wheels of 3.1.0 and 3.2.0."""
BITSANDBYTES_WITH_TRITON_OPS = ">=0.38,<0.45.1"
"""Releases that import ``triton.ops`` when triton is there. Source: the wheels of 0.42.0 to 0.45.1."""


class Unstated(Model, frozen=True, kw_only=True):
    """A limit of a release that its metadata do not state, because a later release of its dependency removed an API."""

    by: str
    versions: str
    """Releases that have the limit."""
    name: str
    accepted: str


UNSTATED = (
    # they import cached_download, which 0.26.0 removed. Source: the wheels of 2.2.2, 2.3.0, 0.28.2, 0.29.2 and 0.26.0
    Unstated(by="sentence-transformers", versions="<2.3", name="huggingface-hub", accepted="<0.26"),
    Unstated(by="diffusers", versions=">=0.12,<0.29", name="huggingface-hub", accepted="<0.26"),
)


class _Coupling(Model, frozen=True, kw_only=True):
    rows: tuple[dict[str, str], ...] = ()


class _Package(Model, frozen=True, kw_only=True):
    package: str
    coupling: _Coupling = _Coupling()


class _File(Model, frozen=True, kw_only=True):
    packages: tuple[_Package, ...]


@lru_cache(maxsize=1)
def _rows() -> dict[str, tuple[dict[str, str], ...]]:
    decoded = msgspec.json.decode(tables.read_data_file("extensions.json"), type=_File)
    return {item.package: item.coupling.rows for item in decoded.packages}


def xformers_for(torch: str) -> str | None:
    """Return the newest xformers that goes with that torch (a version without label) by its metadata, or None."""
    rows = (row for row in tables.coupling_tables().releases if row.name == "xformers" and row.requires.get("torch"))
    found = (row.version for row in rows if row.python and versions.allows(row.requires["torch"], torch))
    return max(found, key=versions.parsed, default=None)


def torchcodec_for(torch: str) -> str | None:
    """Return the minor release of torchcodec for that torch, such as ``0.1``; None where the data have none."""
    minor = ".".join(torch.split(".")[:2])
    found = (row["torchcodec"] for row in _rows()["torchcodec"] if _names(row["torch"], minor))
    return max((_last(text) for text in found), key=versions.parsed, default=None)


def flash_attention_for(torch: str) -> str | None:
    """Return the newest release of flash-attn with wheels for that torch, or None."""
    rows = _rows()["flash-attn"]
    found = (row["flash_attn"] for row in rows if _spans(row["prebuilt_for_torch"], torch))
    return max((_last(text) for text in found), key=versions.parsed, default=None)


# patch releases of torch keep torchcodec's ABI, so its table pairs minor releases only
def torchcodec_fits(torchcodec: str, torch: str) -> bool | None:
    """Whether the data pair these versions; None where they have no row for that torchcodec."""
    minor, parts = ".".join(torch.split(".")[:2]), torchcodec.split(".")
    for row in _rows()["torchcodec"]:
        if _has_minor(row["torchcodec"], parts):
            # a row in words, such as a development version, does not tell
            return _names(row["torch"], minor) if re.match(r"[>\d]", row["torch"]) else None
    return None


def _has_minor(text: str, parts: list[str]) -> bool:
    """Whether ``0.1``, ``0.0.3`` or ``0.12 to 0.16`` covers a version."""
    span = _SPAN.fullmatch(text)
    if span is None:
        return parts[: len(text.split("."))] == text.split(".")
    minor = ".".join(parts[:2])
    return versions.allows(f">={span['first']},<={span['last']}", minor)


def _names(text: str, torch: str) -> bool:
    """Whether a row's torch covers a release: an exact one, or a lower limit (``>=2.10 (stable ABI)``)."""
    first = text.partition(" ")[0]
    return versions.allows(first if first.startswith(">") else f"=={first}", torch)


def _spans(text: str, torch: str) -> bool:
    span = _SPAN.fullmatch(text)
    if span is None:
        return any(versions.allows(f"=={item}", torch) for item in re.findall(r"\d[\d.]*\d", text))
    return versions.allows(f"<={span['last']}" + (f",>={span['first']}" if span["first"] else ""), torch)


def _last(text: str) -> str:
    """Return the last version of ``0.0.28.post3, 0.0.29``, ``0.0.28, .post1`` or ``0.0.17 to 0.0.19``."""
    # the data list versions in ascending order
    return list(_listed(text))[-1]


def _listed(text: str) -> Iterator[str]:
    base = ""
    for word in _WORD.findall(text):
        if word.startswith(".post"):
            # `0.0.28, .post1`: a bare post-release belongs to the version before it
            yield base + word
        else:
            base = word.partition(".post")[0]
            yield word
