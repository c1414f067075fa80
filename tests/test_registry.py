"""A name without its row, or a row without its name, is told where the tables are made, with what to write."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

import envmedic
from envmedic.cli.arguments.groups import ALLOW_NAMES, POLICIES
from envmedic.model.playbook import Policy
from envmedic.model.registries.check_kinds import CHECKS
from envmedic.model.registries.faults import FAULT_CLASSES, FAULTS, FaultClass
from envmedic.model.registries.modes import AllowName
from envmedic.model.registries.registry import by_name, complete


def table(*names: str, rows: tuple[str, ...]) -> tuple[str, ...]:
    found = complete(names, dict.fromkeys(rows, 1), stated="`Word` in words.py", add="MODULE.py with NAME")
    return tuple(found)


def test_rows_stand_in_the_order_of_their_names() -> None:
    assert table("b", "a", rows=("a", "b")) == ("b", "a")
    assert tuple(FAULT_CLASSES) == FAULTS


def test_a_missing_row_is_told_with_what_to_write() -> None:
    with pytest.raises(LookupError, match=r"`Word` in words.py has 'a-b'.*: add a_b\.py with a-b"):
        table("a-b", rows=())


def test_a_row_of_an_unknown_name_is_told() -> None:
    with pytest.raises(LookupError, match=r"`Word` in words.py lacks 'c'"):
        table("a", rows=("a", "c"))


def test_two_rows_of_one_name_are_told() -> None:
    one = FAULT_CLASSES["clobbered"]
    other = FaultClass(name="clobbered", title="t", what="w", why="y", proof=())
    with pytest.raises(LookupError, match="Two rows are named 'clobbered'"):
        by_name((one, other))


def test_every_class_of_fault_is_pointed_to_by_a_check_or_says_that_none_does() -> None:
    shown = {fault for row in CHECKS.values() for fault in row.points_to}
    assert {name for name, row in FAULT_CLASSES.items() if not row.shown_by_checks} == set(FAULTS) - shown


def test_the_help_of_plan_lists_the_policies_of_playbooks_and_all_that_can_be_allowed() -> None:
    assert get_args(Policy) == POLICIES  # stated twice: that help starts without typing
    assert get_args(AllowName) == ALLOW_NAMES


def test_every_check_has_its_code_in_the_catalogue_of_kernels_or_runs_without_one() -> None:
    catalogue = ast.parse((Path(envmedic.__file__).parent / "kernels" / "catalogue.py").read_text(encoding="utf-8"))
    coded = {
        key.value
        for node in catalogue.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Dict)
        and ast.unparse(node.targets[0]).startswith("ON_")
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    }
    assert set(CHECKS) - coded == {"import", "import-sequence", "pip-check", "programs", "facts", "command"}
    assert coded <= set(CHECKS)
