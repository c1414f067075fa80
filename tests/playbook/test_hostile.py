"""Playbooks of strangers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from envmedic.errors import InvalidPlaybook
from envmedic.playbook.matching.atoms import needs
from envmedic.playbook.matching.patterns import compiled
from envmedic.playbook.schema import loader
from envmedic.playbook.schema.template import fill, placeholders

HUGE = "0x" + "f" * 6000


def mistakes(text: str) -> str:
    with pytest.raises(InvalidPlaybook) as caught:
        loader.parse(text.encode(), "x.yaml")
    return "\n".join(caught.value.details)


@pytest.mark.parametrize(
    "text", [f"id: {HUGE}", f"steps: [{HUGE}]", f"title: -{HUGE}", f"when: {{fact: a, value: {HUGE}}}"]
)
def test_numbers_with_more_digits_than_can_be_written(text: str) -> None:
    assert "is not a number that can be used here" in mistakes(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 40_000,
        "{a: " * 45_000,
        "- " * 90_000,
        "? " * 90_000,
        "a:\n" + "".join(" " * i + "a:\n" for i in range(1, 600)),
    ],
)
def test_nesting_without_end(text: str) -> None:
    assert "nested too deeply" in mistakes(text)


@pytest.mark.parametrize("part", ["[", "{a: ", '["]",', "{"])
def test_open_brackets_are_refused_at_once(part: str) -> None:
    begun = time.process_time()
    assert "nested too deeply" in mistakes(part * (199_000 // len(part)))
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("id: !!python/object/apply:os.system ['true']", "tag"),
        ("id: !!python/name:os.system", "tag"),
        ("!!set {a}", "tag"),
        ("a: &a [x]\nb: [*a, *a]", "anchors"),
        ("a: &a {b: c}\nd:\n  <<: *a", "merge"),
        ("%YAML 1.1\n---\nid: a", "directives"),
        ("id: a\n---\nid: b", "several documents"),
        ("id: !!binary aGVsbG8=", "binary data"),
        ('id: "\\0\\x1b[31m"', "identifier"),
    ],
)  # fmt: skip
def test_what_yaml_can_do_besides_holding_data_is_refused(text: str, word: str) -> None:
    assert word in mistakes(text)


@pytest.mark.parametrize(
    "text", ["signatures: '{x}'", "signatures: {a: '{x}'}", "signatures: ['{x}']", "steps: '{x}'", "vars: '{x}'"]
)
def test_placeholders_where_no_text_belongs(text: str) -> None:
    assert "neither a group" in mistakes(text)


def test_a_file_larger_than_any_playbook_is_not_even_parsed(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    with file.open("wb") as out:
        out.truncate(1 << 40)
    with pytest.raises(InvalidPlaybook, match="mistake"):
        loader.load_file(file)


TEMPLATES = ("{0}", "{0.__class__}", "{x.__init__.__globals__}", "{x[0]}", "{x!r}", "{x:>9999999999}", "{{{x}}}", "%(x)s", "$x", "${x}",
             "{{ config }}", "{% for a in b %}")  # fmt: skip


@pytest.mark.parametrize("text", TEMPLATES)
def test_templates_reach_nothing_but_values(text: str) -> None:
    """There is no expression language: what stands between braces is a name and nothing else."""
    filled = fill(text, {"x": "value", "0": "zero"})
    assert "class" not in filled.replace("__class__", "")
    assert len(filled) < 100
    assert all(name in text for name in placeholders(text))


def test_what_is_filled_in_is_not_filled_again() -> None:
    assert fill("{x}", {"x": "{y}{{", "y": "secret"}) == "{y}{{"


def test_groups_in_each_other_as_deep_as_re2_reads_them() -> None:
    pattern = "(?:" * 900 + "undefined symbol" + ")" * 900
    assert compiled(pattern).search(b"undefined symbol")
    assert needs(pattern) is None


def test_a_mistake_shows_no_control_characters_to_a_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from envmedic.cli.main import main

    file = tmp_path / "x.yaml"
    file.write_text('id: "\\e[2J\\e]0;owned\\a"\nfault: "\\u202e"\n"\\e[31mkey": 1\n')
    assert main(["playbooks", "validate", str(file)]) == 2
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert main(["playbooks", "validate", "--json", str(file)]) == 2
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert "\u202e" not in told.out
