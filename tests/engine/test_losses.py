"""What an undo would lose is told the same, whether it was begun before the rest of envmedic was loaded or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from envmedic.ahead import Ahead
from envmedic.api import undoing
from envmedic.cli.main import _ahead
from envmedic.cli.parser import build_parser
from envmedic.engine.generations import undo_losses
from envmedic.engine.store.layout import Store
from envmedic.errors import PreflightError
from envmedic.model.ports import ApplyOptions
from envmedic.tree import fingerprint
from tests.engine.world import SITE, World, replacement


@pytest.fixture
def ahead() -> Iterator[Ahead]:
    with closing(Ahead()) as begun:
        yield begun


def test_what_was_begun_ahead_is_told_and_the_live_tree_not_asked_again(
    quick: World, ahead: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick.options = ApplyOptions(staging="relocate", clone="link")
    quick.apply()
    with (quick.site / "other3" / "__init__.py").open("a") as shared:
        shared.write("# edited in place in both trees\n")
    (quick.site / "mine.py").write_text("")
    undo_losses.begin(ahead, quick.prefix)
    monkeypatch.setattr(undo_losses, "_changed", lambda *_: pytest.fail("compared once more"))
    with pytest.raises(PreflightError, match="has changed since") as caught:
        quick.undo(ahead=ahead)
    edited = f"{SITE}/other3/__init__.py"
    assert sorted(caught.value.details) == [f"{SITE}/mine.py", edited, edited]


def test_what_was_begun_of_another_generation_is_not_taken(quick: World, ahead: Ahead) -> None:
    quick.options = ApplyOptions(staging="relocate", keep=2)
    quick.apply()
    undo_losses.begin(ahead, quick.prefix)
    quick.apply(quick.plan(*replacement("3.0", before="2.0"), version="3.0"))
    (quick.site / "mine.py").write_text("")
    with pytest.raises(PreflightError) as caught:
        quick.undo(ahead=ahead)
    assert caught.value.details == (f"{SITE}/mine.py",)
    assert len(ahead._begun) == 2, "neither was taken"


def test_what_was_begun_before_an_exchange_is_not_taken(quick: World, ahead: Ahead) -> None:
    """The tree under the name is another one, though marker and fingerprints have the same names again."""
    record = quick.apply()
    undo_losses.begin(ahead, quick.prefix)
    directory = next(item for item in Store.of(quick.prefix).transactions() if item.transaction == record.transaction)
    other = quick.prefix.with_name("other")
    quick.prefix.rename(other)
    directory.tree.rename(quick.prefix)
    other.rename(directory.tree)
    found = undo_losses.of_undo(directory, quick.prefix, ahead)
    assert f"{SITE}/fam/__init__.py" in found.changed
    assert f"{SITE}/fam/__init__.py" in found.damaged
    assert len(ahead._begun) == 2, "neither was taken"


@pytest.mark.parametrize("name", ["../../elsewhere", "", "20990101T000000000000Z-000000", "\udcff"])
def test_a_marker_that_names_no_transaction_begins_nothing(quick: World, ahead: Ahead, name: str) -> None:
    quick.apply()
    (quick.prefix / fingerprint.MARKER).write_text(name, encoding="utf-8", errors="surrogateescape")
    undoing.begin(ahead, str(quick.prefix))
    assert not ahead._begun


def test_where_nothing_is_there_nothing_is_begun(tmp_path: Path, ahead: Ahead) -> None:
    undoing.begin(ahead, str(tmp_path / "gone"))
    (tmp_path / "file").touch()
    undoing.begin(ahead, str(tmp_path / "file"))
    assert not ahead._begun


@pytest.mark.parametrize(("words", "count"), [(["--yes"], 2), ([], 0), (["--yes", "-n", "env"], 0)])
def test_an_undo_that_asks_first_compares_after_the_answer(quick: World, words: list[str], count: int) -> None:
    """Much may change while a question stands."""
    quick.apply()
    prefix = [] if "-n" in words else ["-p", str(quick.prefix)]
    with closing(_ahead(build_parser().parse_args(["undo", *prefix, *words]))) as begun:
        assert len(begun._begun) == count
