"""Strict YAML 1.2 reader whose values keep their position in the file.

It accepts one document, without anchors, aliases, merge keys, tags, directives and duplicate keys, and only string
keys, so that a playbook means what its text shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from envmedic.playbook.schema.mistakes import START, Key, Path, PlaybookMistake, Position

if TYPE_CHECKING:
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.nodes import Node, ScalarNode

MAX_DEPTH = 60
"""Limit of nesting, which bounds recursion; playbooks nest about ten levels."""

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
_LARGEST = 1 << 63
"""Bound of integers: 64 bits with sign."""
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Located:
    """A value of the document with its position."""

    position: Position
    plain: Plain
    text: str | None = None
    """A scalar as written in the file."""
    quoted: bool = False
    items: tuple[Located, ...] = ()
    keys: dict[str, tuple[Position, Located]] = field(default_factory=dict)
    """A mapping's values, each with the position of its key."""

    def child(self, key: Key) -> Located | None:
        """The value under `key`, or None."""
        if isinstance(key, int):
            return self.items[key] if 0 <= key < len(self.items) else None
        return self.keys[key][1] if key in self.keys else None

    def at(self, path: Path) -> Located:
        """Return the value at `path`, or its nearest existing parent."""
        here = self
        for key in path:
            there = here.child(key)
            if there is None:
                return here
            here = there
        return here

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, Located]]:
        """Yield this value and every value inside it, in the order of the file."""
        yield path, self
        for index, item in enumerate(self.items):
            yield from item.walk((*path, index))
        for key, (_, value) in self.keys.items():
            yield from value.walk((*path, key))


def read_document(content: bytes) -> tuple[Located | None, list[PlaybookMistake]]:
    """Return the document in `content` and the mistakes of its YAML; None when it cannot be read at all."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.scanner import Scanner

    class BoundedScanner(Scanner):
        """Refuses deep nesting at once: ruamel.yaml looks at every open bracket for each token."""

        def fetch_flow_collection_start(self, *args: Any, **kwargs: Any) -> None:
            if len(self.flow_context) > MAX_DEPTH:
                raise RecursionError
            super().fetch_flow_collection_start(*args, **kwargs)

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{content[error.start]:02x}; save the file as UTF-8"
        return None, [PlaybookMistake(_position_of_byte(content, error.start), (), message)]
    # `%YAML 1.1` would make ruamel.yaml read `on` and `yes` as booleans
    directive = _directive(text)
    if directive is not None:
        return None, [directive]
    try:
        # composed, not loaded: nodes have positions, and no anchor or tag has taken effect yet;
        # pure, because the C parser of ruamel.yaml reads YAML 1.1
        reading = YAML(typ="safe", pure=True)
        reading.Scanner = BoundedScanner
        reading.composer.warn_double_anchors = False  # anchors are refused, and no warning goes to stderr
        node = reading.compose(text)
    except YAMLError as error:
        return None, [_syntax_mistake(error, text)]
    except RecursionError:
        return None, [PlaybookMistake(START, (), "nested too deeply to be a playbook")]
    if node is None:
        return None, [PlaybookMistake(START, (), "the file is empty; a playbook is a mapping that starts with `id:`")]
    reader = _Reader()
    return reader.located(node, ()), reader.mistakes


def _directive(text: str) -> PlaybookMistake | None:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("%"):
            return PlaybookMistake(
                Position(number, 1), (), "YAML directives are not read: playbooks are YAML 1.2; delete it"
            )
        if line.strip() and not line.lstrip().startswith("#"):
            return None
    return None


def _position_of_byte(content: bytes, offset: int) -> Position:
    before = content[:offset]
    start = before.rfind(b"\n") + 1
    return Position(before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1)


def _syntax_mistake(error: YAMLError, text: str) -> PlaybookMistake:
    # the classes of YAMLError have no common fields: a ReaderError has a character position and no mark
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    if mark is not None:
        position = Position(mark.line + 1, mark.column + 1)
    else:
        position = _position_of_byte(text.encode(), len(text[: getattr(error, "position", 0)].encode()))
    if "another document" in problem:
        return PlaybookMistake(position, (), "several documents in one file; a file holds one playbook")
    return PlaybookMistake(position, (), f"not YAML: {problem}" + (f" ({context})" if context else ""))


class _Reader:
    """Converts composed nodes to `Located` values and collects the mistakes."""

    def __init__(self) -> None:
        from ruamel.yaml.nodes import ScalarNode, SequenceNode

        self._scalar_node, self._sequence_node = ScalarNode, SequenceNode
        self.mistakes: list[PlaybookMistake] = []

    def located(self, node: Node, path: Path) -> Located:
        """Return the value of `node`."""
        position = Position(node.start_mark.line + 1, node.start_mark.column + 1)
        # an anchored node is not entered: nested aliases would multiply it ("billion laughs")
        if getattr(node, "anchor", None):
            self._refuse(position, path, "anchors and aliases are not read: write the value out where it is used")
            return Located(position, None)
        if len(path) > MAX_DEPTH:
            self._refuse(position, path[:3], "nested too deeply to be a playbook")
            return Located(position, None)
        if isinstance(node, self._scalar_node):
            return self._scalar(node, position, path)
        if node.tag not in {f"{_TAG}seq", f"{_TAG}map"}:
            self._refuse(position, path, f"the tag {node.tag} is not read; delete it")
        if isinstance(node, self._sequence_node):
            items = tuple(self.located(item, (*path, index)) for index, item in enumerate(node.value))
            return Located(position, [item.plain for item in items], items=items)
        return self._mapping(node, position, path)

    def _refuse(self, position: Position, path: Path, message: str) -> None:
        self.mistakes.append(PlaybookMistake(position, path, message))

    def _mapping(self, node: Node, position: Position, path: Path) -> Located:
        keys: dict[str, tuple[Position, Located]] = {}
        for key_node, value_node in node.value:
            key_position = Position(key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            key = self._key(key_node, key_position, path)
            if key is None:
                continue
            if key in keys:
                first = keys[key][0]
                self._refuse(key_position, (*path, key), f"this key is there twice; the first is on line {first.line}")
                continue
            keys[key] = (key_position, self.located(value_node, (*path, key)))
        return Located(position, {key: value.plain for key, (_, value) in keys.items()}, keys=keys)

    def _key(self, node: Node, position: Position, path: Path) -> str | None:
        if node.tag == f"{_TAG}merge":
            self._refuse(position, path, "merge keys are not read: write the keys out")
            return None
        if node.tag != f"{_TAG}str" or not isinstance(node.value, str):
            shown = node.value if isinstance(node.value, str) else "a list or mapping"
            self._refuse(position, path, f"a key must be text, and YAML does not read {shown} as text; quote it")
            return None
        return node.value

    def _scalar(self, node: ScalarNode, position: Position, path: Path) -> Located:
        text, quoted = node.value, node.style is not None
        kind = str(node.tag).removeprefix(_TAG)
        if kind not in _CONVERT:
            what = {"timestamp": "a date", "binary": "binary data", "merge": "a merge key"}.get(kind)
            cure = f'YAML reads {text} as {what}; quote it: "{text}"' if what else f"the tag {node.tag} is not read"
            self._refuse(position, path, cure)
            return Located(position, text, text=text, quoted=quoted)
        try:
            value = _CONVERT[kind](text)
        except ValueError:
            self._refuse(position, path, f"{text[:40]} is not a number that can be used here")
            value = None
        return Located(position, value, text=text, quoted=quoted)


def _integer(text: str) -> int:
    body = text.replace("_", "").lower()
    sign, digits = (-1, body[1:]) if body.startswith("-") else (1, body.removeprefix("+"))
    # not int(text, 0): it refuses leading zeros, which YAML 1.2 reads as decimal
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits[:2])
    value = sign * (int(digits) if base is None else int(digits[2:], base))
    if not -_LARGEST <= value < _LARGEST:
        raise ValueError(text)
    return value


def _number(text: str) -> float:
    value = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    # JSON has no infinity and no NaN, and documents of playbooks are JSON
    if not math.isfinite(value):
        raise ValueError(text)
    return value


_CONVERT: dict[str, Callable[[str], Plain]] = {
    "str": str,
    "int": _integer,
    "float": _number,
    "bool": lambda text: text.lower() == "true",
    "null": lambda _: None,
}
