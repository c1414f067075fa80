"""JSON schema of playbooks, and validation with messages in plain words."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from envmedic.model.playbook import Playbook
from envmedic.playbook.schema.document import Located
from envmedic.playbook.schema.mistakes import Path, PlaybookMistake, suggestion

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

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
_SHOWN_CHOICES = 14


@functools.cache
def schema() -> Schema:
    """The JSON schema document of playbooks, as msgspec derives it from the model."""
    return msgspec.json.schema(Playbook) | {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def schema_mistakes(document: Located) -> list[PlaybookMistake]:
    """Return every mistake of `document` against the schema, with its position."""
    return list(_Judge(document).mistakes(schema(), document.plain, ()))


class _Judge:
    """Runs the validator and rewrites its errors for authors of playbooks."""

    def __init__(self, document: Located) -> None:
        self._document = document

    def mistakes(self, part: Schema, instance: object, path: Path) -> Iterator[PlaybookMistake]:
        """Yield the mistakes of `instance`, at `path`, against `part` of the schema."""
        from jsonschema import Draft202012Validator

        complete = {**part, "$defs": schema()["$defs"]}
        seen: set[Path] = set()
        for error in Draft202012Validator(complete).iter_errors(instance):
            place = (*path, *error.absolute_path)
            kind = cast("str", error.validator)
            if kind == "required":
                # the validator yields one error for each missing key without naming it, so all come from the first
                if place not in seen:
                    seen.add(place)
                    yield from self._missing(error, place)
            elif kind == "additionalProperties":
                yield from self._unknown(error, place)
            elif kind == "anyOf":
                yield from self._branch(error, place)
            else:
                yield self._mistake(place, self._message(kind, error, place))

    def _mistake(self, path: Path, message: str) -> PlaybookMistake:
        return PlaybookMistake(self._document.at(path).position, path, message)

    def _missing(self, error: ValidationError, path: Path) -> Iterator[PlaybookMistake]:
        for key in cast("list[str]", error.validator_value):
            if key not in cast("dict[str, object]", error.instance):
                yield self._mistake(path, f"the key `{key}` is missing")

    def _unknown(self, error: ValidationError, path: Path) -> Iterator[PlaybookMistake]:
        known = cast("Schema", error.schema).get("properties", {})
        here = self._document.at(path)
        for key, (position, _) in here.keys.items():
            if key not in known:
                hint = suggestion(key, known) or f"; known here: {', '.join(sorted(known))}"
                yield PlaybookMistake(position, (*path, key), f"unknown key{hint}")

    def _branch(self, error: ValidationError, path: Path) -> Iterator[PlaybookMistake]:
        # "not valid under any of the given schemas" helps nobody: find the branch that the author meant, and
        # report the mistakes against that one. msgspec marks unions of steps with OpenAPI's `discriminator`.
        part = cast("Schema", error.schema)
        if "discriminator" in part:
            yield from self._step(part["discriminator"]["mapping"], error.instance, path)
            return
        options = [_resolved(option) for option in cast("list[Schema]", error.validator_value)]
        fitting = [option for option in options if _has_type(error.instance, option)]
        if fitting:
            yield from self.mistakes(fitting[0], error.instance, path)
        else:
            kinds = [option["type"] for option in options if option.get("type") != "null" and "type" in option]
            yield self._mistake(path, self._wrong_type(kinds, path))

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

    def _message(self, kind: str, error: ValidationError, path: Path) -> str:
        limit = error.validator_value
        if kind == "type":
            return self._wrong_type([cast("str", limit)], path)
        if kind == "enum":
            return _unknown_choice(self._document.at(path).text, cast("list[str]", limit))
        if kind == "pattern":
            return f"{error.instance!r} is not an identifier: lower-case words of a-z and 0-9, joined by single hyphens"
        if kind == "minLength":
            return "must not be empty"
        return f"must be {'at least' if kind == 'minimum' else 'at most'} {limit}"

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
    kind = option.get("type", "string")  # an enum has no type
    matching: dict[str, type] = {"object": dict, "array": list, "string": str, "null": type(None)}
    return kind in matching and isinstance(instance, matching[kind])


def _unknown_choice(word: str | None, choices: list[str]) -> str:
    shown = ", ".join(choices[:_SHOWN_CHOICES]) + (", …" if len(choices) > _SHOWN_CHOICES else "")
    if word is None:
        return f"must be one of {shown}"
    return f"{word!r} is not one of the values known here" + (suggestion(word, choices) or f": {shown}")
