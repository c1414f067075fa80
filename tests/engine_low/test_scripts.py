"""Scripts whose first line leads nowhere are told, those that were broken before apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.engine.stage.shebangs import check


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The live tree, the one that it replaced, and the store."""
    live, store = tmp_path / "env", tmp_path / ".envmedic"
    for tree in (live, store / "1" / "env"):
        (tree / "bin").mkdir(parents=True)
        (tree / "bin" / "python").write_bytes(b"\x7fELF")
        (tree / "bin" / "python").chmod(0o755)
        write(tree, "good", f"#!{live}/bin/python\n")
        write(tree, "other", "#!/usr/bin/env python\n")
    return live, store / "1" / "env", store


def write(tree: Path, name: str, head: str) -> None:
    (tree / "bin" / name).write_text(head + "import sys\n")


def test_sound_scripts_pass(trees: tuple[Path, Path, Path]) -> None:
    live, old, store = trees
    (live / "bin" / "link").symlink_to("/nowhere")
    (live / "bin" / "binary").write_bytes(b"\x00\xff#!")
    assert check(live, old, store).status == "pass"


@pytest.mark.parametrize("form", ["#!{}\n", "#! {} -E\n", "#!/bin/sh\n'''exec' \"{}\" \"$0\" \"$@\"\n' '''\n"])
def test_an_interpreter_that_is_not_there_is_told(trees: tuple[Path, Path, Path], form: str) -> None:
    live, old, store = trees
    write(live, "bad", form.format(live / "bin" / "python9"))
    outcome = check(live, old, store)
    assert (outcome.check, outcome.status) == ("scripts", "fail")
    assert outcome.reason == f"bad: its interpreter {live}/bin/python9 does not exist"


def test_a_path_of_the_staging_directory_is_told_even_while_it_exists(trees: tuple[Path, Path, Path]) -> None:
    live, old, store = trees
    write(live, "stale", f"#!{old}/bin/python\n")
    assert check(live, old, store).reason == f"stale: its first line names {old}/bin/python"


def test_what_was_broken_before_does_not_count(trees: tuple[Path, Path, Path]) -> None:
    live, old, store = trees
    for tree in (live, old):
        write(tree, "bad", f"#!{live}/bin/python9\n")
    assert check(live, old, store).status == "pass"
    write(live, "worse", f"#!{live}/bin/python9\n")
    assert check(live, old, store).detail == f"worse: its interpreter {live}/bin/python9 does not exist"
