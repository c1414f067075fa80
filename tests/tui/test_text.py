from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from envmedic.render.cells import end, marked, middle, width, wrapped
from envmedic.render.text import TextPart, bare, line, visible

NASTY = "a\x1b[31mred\x1b[0m\x07\x9b2J\u202eevil\u2066\x7f[bold]no[/bold]"


def test_controls_are_shown_and_markup_is_text() -> None:
    shown = visible(NASTY)
    assert shown.isprintable()
    assert shown == "a␛[31mred␛[0m␇<U+009B>2J<U+202E>evil<U+2066>␡[bold]no[/bold]"


@given(st.text())
def test_whatever_is_shown_acts_on_no_terminal(text: str) -> None:
    assert visible(text).isprintable()


def test_tabs_go_to_the_next_stop() -> None:
    assert visible("ab\tc\t|") == "ab  c   |"


@given(st.text(alphabet="ab/é日本e\u0301\u200d👩", max_size=60), st.integers(0, 40))
def test_cut_text_fits_in_its_cells(text: str, cells: int) -> None:
    for cut in (end(text, cells), middle(text, cells)):
        assert width(cut) <= cells
        assert cut == text or width(text) > cells


def test_both_ends_of_a_path_stay() -> None:
    assert middle("/home/user/very/long/way/to/envs/torch", 20) == "/home/…to/envs/torch"
    assert middle("/家/日本語日本語日本語/torch", 14) == "/家/…語/torch"
    assert end("e\u0301e\u0301e\u0301abc", 4) == "e\u0301e\u0301e\u0301…"


@given(st.text(alphabet=" abc日-1.", max_size=80), st.integers(4, 30))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text: str, cells: int) -> None:
    rows = wrapped((TextPart(text[: len(text) // 2], "bad"), TextPart(text[len(text) // 2 :])), cells)
    assert all(cell_len(bare(row).rstrip()) <= cells for row in rows)
    assert "".join(bare(row) for row in rows).replace(" ", "") == text.replace(" ", "")


def test_items_are_wrapped_below_their_text() -> None:
    rows = wrapped(line("  - one two three four"), 16)
    assert [bare(row) for row in rows] == ["  - one two", "    three four"]


@pytest.mark.parametrize(("needle", "count"), [("foo", 2), ("FOO", 2), ("", 0), ("bar", 0)])
def test_matches_are_marked_in_any_case(needle: str, count: int) -> None:
    shown = marked((TextPart("a fo"), TextPart("o Foo", "bad")), needle)
    assert bare(shown) == "a foo Foo"
    found = [part for part in shown if part.tone == "match"]
    assert "".join(part.text for part in found).lower() == needle.lower() * count
