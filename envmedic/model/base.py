"""Base class of all model values, and their JSON form.

msgspec structs rather than plain dataclasses: the same declaration gives frozen values, strict
decoding with the path of a mistake, tagged unions and the JSON schema of every document.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from envmedic.errors import InputError

T = TypeVar("T")


# Paths are `str` in every value: msgspec encodes no `pathlib.Path`, and documents are JSON.
class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen value with keyword-only fields that can be written as JSON."""


def to_json(value: object, *, indent: int = 2) -> str:
    """Return `value` as JSON text; `indent` of 0 gives one line."""
    # encoded first, indented second: msgspec's encoder has no indentation of its own
    raw = msgspec.json.encode(value)
    return (msgspec.json.format(raw, indent=indent) if indent else raw).decode()


def from_json(text: str | bytes, kind: type[T], *, source: str, hint: str | None = None) -> T:
    """Decode JSON `text` into `kind`.

    `source` names the file for the error, `hint` says how to get a good one. Raises `InputError` with
    the path of the first mistake.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    # RecursionError: deep nesting in a file that someone else made
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{source} is not a valid {kind.__name__} document",
            cause=str(error),
            hint=hint or "Write the file with the same version of envmedic and do not edit it",
        ) from error
