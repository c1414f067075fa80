"""Conversion of undecodable file names and variables to text that JSON can hold."""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

T = TypeVar("T")


def encodable(value: T) -> T:
    """Return `value` (a model value, tuple or string) with each undecodable byte shown by its number."""
    return cast("T", _encodable(value))


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value if value.isascii() else _shown(value)
    if isinstance(value, tuple):
        return tuple(_encodable(item) for item in value)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: new for name, old in fields.items() if (new := _encodable(old)) != old}
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def _shown(text: str) -> str:
    """Bytes that `os.fsdecode` could not decode are lone surrogates in `text`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return text
