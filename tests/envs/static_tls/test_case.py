"""The loader refuses a library that comes too late; an order that works is found and advised, and nothing is changed."""

from __future__ import annotations

from pathlib import Path

from tests.envs.static_tls.case import build


def test_an_order_that_works_is_found(tmp_path: Path) -> None:
    case = build(tmp_path)
    log = case.log()
    assert "cannot allocate memory in static TLS block" in log.read_text()
    found = case.envmedic("diagnose", str(log), "-p", str(case.prefix), "--json").document
    best = found["findings"][0]
    assert (best["fault"], best["playbook"], best["confirmed"]) == ("mkl-openmp", "static-tls", True)
    crash = found["facts"]["import_crash"]
    assert (crash["sequence"], crash["signal"]) == (["pyarrow", "sklearn"], None)
    assert crash["works"] == ["sklearn", "pyarrow"]
    case.program.write_text("import sklearn\nimport pyarrow\n\nprint('allocator:', pyarrow.allocator)\n")
    assert case.run().out == "allocator: system\n"


def test_it_is_advised_and_not_applied(tmp_path: Path) -> None:
    case = build(tmp_path)
    before = sorted(case.prefix.rglob("*"))
    done = case.apply("--log", str(case.log()))
    assert done.code == 1, done.told()
    assert sorted(case.prefix.rglob("*")) == before
