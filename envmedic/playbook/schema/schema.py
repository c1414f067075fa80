"""JSON schema of playbooks, and validation with messages in plain words."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from envmedic.model.playbook import Playbook
from envmedic.playbook.schema.document import Located
from envmedic.playbook.schema.mistakes import Path, PlaybookMistake, suggestion

Schema = dict[str, Any]
_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
_SHOWN_CHOICES = 14


@functools.cache
def schema() -> Schema:
    """The JSON schema document of playbooks, as msgspec derives it from the model."""
    return msgspec.json.schema(Playbook) | {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def schema_mistakes(document: Located) -> list[PlaybookMistake]:
    """Return every mistake of `document` against the schema, with its position."""
    return list(_Judge(document).mistakes(schema(), document.plain, ()))


class _Judge:
    """Holds a document against the part of JSON Schema that msgspec writes, with messages for authors of playbooks.

    A validator of the whole standard says in its own words what is wrong, and takes a seventh of the core's disk space.
    """

    def __init__(self, document: Located) -> None:
        self._document = document

    def mistakes(self, part: Schema, instance: object, path: Path) -> Iterator[PlaybookMistake]:
        """Yield the mistakes of `instance`, at `path`, against `part` of the schema."""
        part = _resolved(part)
        if "anyOf" in part:
            yield from self._branch(part, instance, path)
        elif "enum" in part:
            if instance not in part["enum"]:
                yield self._mistake(path, _unknown_choice(self._document.at(path).text, part["enum"]))
        elif not _has_type(instance, part):
            yield self._mistake(path, self._wrong_type([part["type"]], path))
        elif isinstance(instance, dict):
            yield from self._mapping(part, instance, path)
        elif isinstance(instance, list):
            for index, item in enumerate(instance):
                yield from self.mistakes(part.get("items", {}), item, (*path, index))
        else:
            yield from self._scalar(part, instance, path)

    def _mapping(self, part: Schema, instance: dict[str, object], path: Path) -> Iterator[PlaybookMistake]:
        known: Schema = part.get("properties", {})
        others = part.get("additionalProperties", True)
        for key in part.get("required", ()):
            if key not in instance:
                yield self._mistake(path, f"the key `{key}` is missing")
        for key, value in instance.items():
            if key in known:
                yield from self.mistakes(known[key], value, (*path, key))
            elif isinstance(others, dict):
                yield from self.mistakes(others, value, (*path, key))
            elif not others:
                position, _ = self._document.at(path).keys[key]
                hint = suggestion(key, known) or f"; known here: {', '.join(sorted(known))}"
                yield PlaybookMistake(position, (*path, key), f"unknown key{hint}")

    def _scalar(self, part: Schema, instance: object, path: Path) -> Iterator[PlaybookMistake]:
        if isinstance(instance, str):
            if len(instance) < part.get("minLength", 0):
                yield self._mistake(path, "must not be empty")
            if "pattern" in part and not re.search(part["pattern"], instance):
                words = "lower-case words of a-z and 0-9, joined by single hyphens"
                yield self._mistake(path, f"{instance!r} is not an identifier: {words}")
        elif isinstance(instance, int | float):
            if instance < part.get("minimum", instance):
                yield self._mistake(path, f"must be at least {part['minimum']}")
            if instance > part.get("maximum", instance):
                yield self._mistake(path, f"must be at most {part['maximum']}")

    def _mistake(self, path: Path, message: str) -> PlaybookMistake:
        return PlaybookMistake(self._document.at(path).position, path, message)

    def _branch(self, part: Schema, instance: object, path: Path) -> Iterator[PlaybookMistake]:
        # "not valid under any of the given schemas" helps nobody: find the branch that the author meant, and
        # report the mistakes against that one. msgspec marks unions of steps with OpenAPI's `discriminator`.
        if "discriminator" in part:
            yield from self._step(part["discriminator"]["mapping"], instance, path)
            return
        options = [_resolved(option) for option in part["anyOf"]]
        fitting = [list(self.mistakes(option, instance, path)) for option in options if _has_type(instance, option)]
        if not fitting:
            kinds = [option["type"] for option in options if option.get("type") != "null" and "type" in option]
            yield self._mistake(path, self._wrong_type(kinds, path))
        elif all(fitting):
            yield from fitting[0]

    def _step(self, mapping: dict[str, str], instance: object, path: Path) -> Iterator[PlaybookMistake]:
        if not isinstance(instance, dict):
            yield self._mistake(path, f"a step is a mapping with the key `step`, not {self._found(path)}")
        elif "step" not in instance:
            yield self._mistake(path, f"the key `step` is missing; it is one of {', '.join(mapping)}")
        elif not isinstance(instance["step"], str) or instance["step"] not in mapping:
            word = self._document.at((*path, "step")).text or "that"
            hint = suggestion(word, mapping) or f"; known: {', '.join(mapping)}"
            yield self._mistake((*path, "step"), f"there is no step of kind {word}{hint}")
        else:
            yield from self.mistakes({"$ref": mapping[instance["step"]]}, instance, path)

    def _wrong_type(self, kinds: list[str], path: Path) -> str:
        here = self._document.at(path)
        # the commonest mistake: `version: 2.10` is the number 2.1 in YAML
        if "string" in kinds and not here.quoted and isinstance(here.plain, bool | int | float):
            what = "true or false" if isinstance(here.plain, bool) else "a number"
            return f'YAML reads {here.text} as {what}; quote it: "{here.text}"'
        wanted = " or ".join(dict.fromkeys(_WORDS[kind] for kind in kinds))
        return f"must be {wanted}, not {self._found(path)}"

    def _found(self, path: Path) -> str:
        here = self._document.at(path)
        if here.text is None:
            return "a mapping" if isinstance(here.plain, dict) else "a list"
        return f"{here.text!r}" if here.text else "nothing"


def _resolved(option: Schema) -> Schema:
    reference = option.get("$ref")
    return option if reference is None else cast("Schema", schema()["$defs"][reference.rpartition("/")[2]])


def _has_type(instance: object, option: Schema) -> bool:
    """Whether `option` accepts the type of `instance`, so that its author probably meant this branch."""
    kind = option.get("type", "string" if "enum" in option else None)  # an enum has no type, and texts alone
    if kind is None:
        return True
    # True is a number in Python, and 1.0 no integer: in JSON Schema it is the other way round
    if kind in {"integer", "number"} and isinstance(instance, bool):
        return False
    return isinstance(instance, _TYPES[kind]) or (
        kind == "integer" and isinstance(instance, float) and instance.is_integer()
    )


def _unknown_choice(word: str | None, choices: list[str]) -> str:
    shown = ", ".join(choices[:_SHOWN_CHOICES]) + (", …" if len(choices) > _SHOWN_CHOICES else "")
    if word is None:
        return f"must be one of {shown}"
    return f"{word!r} is not one of the values known here" + (suggestion(word, choices) or f": {shown}")
