"""Lines on a narrow terminal: whole words, hanging indents, and commands that run as they are pasted."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.render.style import Style
from envmedic.render.text import TextPart, bare, joined, line, part
from envmedic.render.wrapping import drawn, wrapped


def rows(text: str, cells: int) -> list[str]:
    return [bare(row) for row in wrapped(line(text), cells)]


def test_later_rows_hang_below_the_last_column_that_leaves_room() -> None:
    words = "one two three four five six seven eight nine ten eleven"
    assert rows(f"Checks  {words}", 56) == [
        "Checks  one two three four five six seven eight nine ten",
        "        eleven",
    ]
    # of a narrow row the words need more
    assert rows("Checks  one two three four five", 20) == ["Checks  one two", "three four five"]
    assert rows("  - one two three", 16) == ["  - one two", "    three"]
    # a column so far to the right that no words fit beside it
    assert rows("name            value of some words", 22) == ["name            value", "of some words"]
    assert rows("27 of them fail", 10) == ["27 of them", "fail"]


def test_wide_and_combining_characters_are_measured_as_they_are_drawn() -> None:
    assert (drawn("日本"), drawn("e\u0301"), drawn("abc")) == (4, 1, 3)
    assert rows("日本 日本 日本", 9) == ["日本 日本", "日本"]


@pytest.mark.parametrize("cells", [20, 40, 60, 80])
def test_a_command_that_is_broken_runs_as_it_is_pasted(cells: int) -> None:
    words = ["printf", "%s|", "--log", "my error.log", "-p", "/home/me/env with spaces", "it's", "a" * 70, "--", "x"]
    shown = wrapped(joined(part("Next: ", "bold"), part(shlex.join(words), "command")), cells)
    pasted = "\n".join(bare(row) for row in shown).removeprefix("Next: ")
    done = subprocess.run(["/bin/sh", "-c", pasted], capture_output=True, text=True, check=True)
    assert done.stdout.split("|")[:-1] == words[2:]
    assert len(shown) > 1


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60), st.integers(2, 30))
def test_nothing_but_spaces_is_lost(text: str, cells: int) -> None:
    found = wrapped((TextPart(text.replace("\n", " ")),), cells)
    kept = "".join(bare(row) for row in found)
    assert [char for char in kept if not char.isspace()] == [char for char in text if not char.isspace()]


def test_only_a_terminal_has_a_width() -> None:
    text = line("word " * 50)
    assert len(Style(colour=False).text([text])) == 1
    assert all(len(row) <= 40 for row in Style(colour=False, width=lambda: 40).text([text]))
