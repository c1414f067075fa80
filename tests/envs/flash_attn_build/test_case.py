"""flash-attn for another torch is found by its symbols; the wheel that fits is named, since no index has it."""

from __future__ import annotations

from pathlib import Path

from tests.envs.flash_attn_build.case import build
from tests.real.manifest import manifest
from tests.support.repairs import facts_of, found_by_facts


def test_its_symbols_tell_and_nothing_is_changed(tmp_path: Path) -> None:
    case = build(tmp_path)
    log = case.log()
    assert "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs" in log.read_text()
    before = manifest(case.prefix)
    assert facts_of(case)["flash-attn.undefined"] == ("c10::Error::Error(c10::SourceLocation, std::string)",)
    assert "flash-attn-build" in {item.playbook for item in found_by_facts(case).findings}
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", str(log)).document["findings"][0]
    assert (found["fault"], found["playbook"], found["confirmed"]) == ("companion-version", "flash-attn-build", True)
    assert case.apply("--log", str(log)).code == 1
    assert manifest(case.prefix) == before
