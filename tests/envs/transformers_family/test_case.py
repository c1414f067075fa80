"""The library that is out of step is brought to a release that all that depend on it accept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.transformers_family.case import SENTENCES, WORKS, build
from tests.support.repairs import Changes, found_by_facts, prove_repair

pytestmark = pytest.mark.long

HUB = "huggingface-hub==0.36.2"


@pytest.mark.parametrize(
    ("installed", "changes"),
    [
        (("tokenizers==0.21.0", HUB), [("tokenizers", "0.21.0", "0.20.3")]),
        (("tokenizers==0.20.3", "huggingface-hub==1.0.1"), [("huggingface-hub", "1.0.1", "0.36.2")]),
        (("tokenizers==0.20.3",), [("huggingface-hub", None, "0.36.2")]),
    ],
)
def test_what_transformers_compares_is_set_right(tmp_path: Path, installed: tuple[str, ...], changes: Changes) -> None:
    prove_repair(build(tmp_path, *installed), "transformers-family", changes, WORKS)


def test_a_limit_that_a_release_does_not_state_is_known(tmp_path: Path) -> None:
    case = build(tmp_path, "tokenizers==0.20.3", HUB, "sentence-transformers", program=SENTENCES)
    assert "cannot import name 'cached_download'" in case.run().err
    prove_repair(case, "transformers-family", [("huggingface-hub", "0.36.2", "0.25.2")], WORKS, log=False)


def test_a_family_in_step_is_healthy(tmp_path: Path) -> None:
    case = build(tmp_path, "tokenizers==0.20.3", HUB)
    assert case.run().out == WORKS
    assert found_by_facts(case).verdict == "healthy"
