"""Playbooks are held against their schema as a validator of the whole standard would."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from envmedic.playbook.schema.document import Located, read_document
from envmedic.playbook.schema.schema import schema, schema_mistakes
from tests.playbook.test_shipped import FILES

VALIDATOR = Draft202012Validator(schema())


def read(content: bytes) -> Located:
    found, mistakes = read_document(content)
    assert found is not None
    assert not mistakes
    return found


WHOLE = [read(path.read_bytes()).plain for path in FILES[:12]]
STRANGE: st.SearchStrategy[Any] = st.sampled_from([
    None, True, 0, -1, 1.0, 2.5, "", "x", "Not An Id", "torch", [], ["", 3], {}, {"step": "purge"}, {"step": 1}, {"x": {}},
])  # fmt: skip


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in places(item, (*path, key)))]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_what_a_validator_refuses_is_a_mistake_and_nothing_else(data: st.DataObject) -> None:
    changed: Any = copy.deepcopy(data.draw(st.sampled_from(WHOLE)))
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(places(changed)[1:]))
        holder = changed
        for key in way:
            holder = holder[key]
        match data.draw(st.sampled_from(["other", "gone", "new"])):
            case "other":
                holder[last] = copy.deepcopy(data.draw(STRANGE))
            case "gone":
                del holder[last]
            case _ if isinstance(holder, dict):
                holder["unheard-of"] = copy.deepcopy(data.draw(STRANGE))
    assert bool(schema_mistakes(read(json.dumps(changed).encode()))) == (not VALIDATOR.is_valid(changed)), changed
