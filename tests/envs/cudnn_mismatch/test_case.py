"""Another cuDNN is loaded without a word, found by torch's metadata and the list of files, and put right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.cudnn_mismatch.case import NEWER, OVERWRITTEN, build

pytestmark = pytest.mark.long

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize(("pin", "by"), [(NEWER, "log"), (OVERWRITTEN, "facts")])
def test_the_cudnn_that_torch_states_is_put_back(pin: str, by: str, tmp_path: Path) -> None:
    case = build(tmp_path / "room", pin)
    assert case.run().out == "cuDNN 90501\n", "it imports and runs: only what is stated tells"
    known = case.envmedic("diagnose", "-p", str(case.prefix), "--json")
    assert [item["confirmed"] for item in known.found_by("cudnn-mismatch")] == [True], known.told()
    done = case.apply(*(["--log", str(HERE / "sample_compiled_against.log")] if by == "log" else []))
    assert done.code == 0, done.told()
    assert ("nvidia-cudnn-cu12", "9.1.0.70") in [
        (item["name"], item["after"]) for item in done.document["plan"]["changes"]
    ]
    assert case.run().out == "cuDNN 90100\n"
    undone = case.envmedic("undo", "-p", str(case.prefix), "--yes", "--json")
    assert undone.code == 0, undone.told()
    assert case.run().out == "cuDNN 90501\n"
