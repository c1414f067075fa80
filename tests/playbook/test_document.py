from __future__ import annotations

import time

import pytest

from envmedic.playbook.schema.document import read_document
from envmedic.playbook.schema.mistakes import key_path


def rendered(content: bytes) -> list[str]:
    return [mistake.render("f.yaml") for mistake in read_document(content)[1]]


def test_values_are_read_as_yaml_1_2_with_positions() -> None:
    document, mistakes = read_document(b"a: yes\nb: [1, 2.5, true, null, 0o17, 0x1f, -3]\nc: '2.10'\n")
    assert mistakes == []
    assert document is not None
    assert document.plain == {"a": "yes", "b": [1, 2.5, True, None, 15, 31, -3], "c": "2.10"}
    second = document.at(("b", 1))
    assert (second.position.line, second.position.column, second.text) == (2, 8, "2.5")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", "f.yaml:1:1: the file is empty", id="empty"),
        pytest.param(b"# nothing\n", "f.yaml:1:1: the file is empty", id="comment only"),
        pytest.param(b"a: \xff\n", "f.yaml:1:4: not UTF-8: byte 0xff", id="not UTF-8"),
        pytest.param("a: 1".encode("utf-16"), "f.yaml:1:1: not UTF-8", id="UTF-16"),
        pytest.param(b"x: 1\na: b: c", "f.yaml:2:5: not YAML: mapping values are not allowed here", id="syntax"),
        pytest.param(b"a: [1\nb: 2", "f.yaml:2:2: not YAML", id="unclosed list"),
        pytest.param(b"a: 1\n---\nb: 2", "f.yaml:2:1: several documents", id="two documents"),
        pytest.param(b"\n%YAML 1.1\n---\na: 1", "f.yaml:2:1: YAML directives are not read", id="directive"),
        pytest.param(b"a: \x00", "f.yaml:1:4: not YAML: unacceptable character", id="NUL"),
        pytest.param("ä: 1\nb: \x07".encode(), "f.yaml:2:4: not YAML: unacceptable character", id="bell"),
        pytest.param(b"a: *x", "f.yaml:1:4: not YAML: found undefined alias", id="alias"),
        pytest.param(b"[" * 1200, "f.yaml:1:1: nested too deeply", id="deep nesting"),
    ],
)
def test_a_file_that_is_no_document_says_why_and_where(content: bytes, expected: str) -> None:
    assert rendered(content)[0].startswith(expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"a: 1\nb: 2\na: 3", "f.yaml:3:1: a: this key is there twice; the first is on line 1", id="twice"),
        pytest.param(b"a: &x 1", "f.yaml:1:4: a: anchors and aliases are not read", id="anchor"),
        pytest.param(b"a: {<<: {b: 1}}", "f.yaml:1:5: a: merge keys are not read", id="merge key"),
        pytest.param(b"1: x", "f.yaml:1:1: a key must be text", id="number as key"),
        pytest.param(b"? [a]\n: x", "f.yaml:1:3: a key must be text", id="list as key"),
        pytest.param(
            b"a: 2024-01-02", 'f.yaml:1:4: a: YAML reads 2024-01-02 as a date; quote it: "2024-01-02"', id="date"
        ),
        pytest.param(b"a: !!python/object:os.system x", "f.yaml:1:4: a: the tag", id="python tag"),
        pytest.param(b"a: !x [1]", "f.yaml:1:4: a: the tag !x is not read", id="tag on a list"),
        pytest.param(b"a: .nan", "f.yaml:1:4: a: .nan is not a number", id="not a number"),
        pytest.param(b"a: " + b"9" * 5000, "f.yaml:1:4: a: 9999", id="huge number"),
    ],
)
def test_what_is_stricter_than_yaml_is_refused(content: bytes, expected: str) -> None:
    assert any(line.startswith(expected) for line in rendered(content)), rendered(content)


def test_every_refusal_of_a_document_is_reported() -> None:
    assert len(rendered(b"a: &x 1\na: 2\n3: 4\nb: 2024-01-02\n")) == 4


def test_an_alias_bomb_is_refused_without_being_expanded() -> None:
    bomb = b"a0: &a0 [x, x, x]\n" + b"".join(
        b"a%d: &a%d [*a%d, *a%d, *a%d]\n" % (n, n, n - 1, n - 1, n - 1) for n in range(1, 40)
    )
    started = time.process_time()
    assert len(rendered(bomb)) == 40
    assert time.process_time() - started < 60


def test_key_paths_read_like_code() -> None:
    assert key_path(("signatures", 2, "pattern")) == "signatures[2].pattern"
    assert key_path((0, "a")) == "[0].a"
