"""The benchmark measures what it says, on an environment small enough for a test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envmedic.playbook.matching.log_stream import read_lines
from envmedic.playbook.matching.match import scan
from envmedic.playbook.matching.prefilter import Prefilter
from envmedic.playbook.schema.loader import load_all
from tests.bench import frames, report
from tests.bench.environment import environment
from tests.bench.measures import Overhead, SkippedError, Trees, cloning, compile_loop, real_environment
from tests.bench.one_apply import OTHERS
from tests.bench.place import Place, filesystem
from tests.bench.sampling import Ratio, ratio, rounds
from tests.bench.text import WORDS, flooded, floods, large_log, reading

pytestmark = pytest.mark.long

FILES = 400


def listed(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Trees:
    root = tmp_path_factory.mktemp("bench")
    (root / "samples").mkdir()
    try:
        loop = compile_loop(root)
    except SkippedError as error:
        pytest.skip(str(error))
    return Trees(Place(root, "a test"), environment(root / "env", FILES), loop)


def test_the_environment_has_the_files_it_should_and_is_made_once(trees: Trees) -> None:
    made = trees.environment.stat().st_ino
    files = [path for path in trees.environment.rglob("*") if path.is_file()]
    assert len(files) >= FILES
    kinds = [sum(path.suffix == suffix for path in files) for suffix in (".py", ".pyc", ".h", ".so")]
    assert all(count >= 2 for count in kinds)
    assert environment(trees.environment, FILES).stat().st_ino == made
    assert environment(trees.environment.with_name("other"), FILES - 100).is_dir()


def test_every_way_of_cloning_makes_the_same_tree(trees: Trees) -> None:
    samples = cloning(trees, 1)
    made = [trees.place.root / "samples" / f"{name}-1" / "env" for name in ("loop", "clone", "links", "copy")]
    assert [listed(tree) for tree in made] == [listed(trees.environment)] * 4
    assert {name: len(taken) for name, taken in samples.items()} == {"loop": 1, "clone": 1, "cp -al": 1, "cp -a": 1}
    module = next(trees.environment.rglob("module_1.py")).relative_to(trees.environment)
    inodes = [(tree / module).stat().st_ino for tree in (trees.environment, *made)]
    assert inodes[0] == inodes[1] == inodes[2] == inodes[3] != inodes[4]


def test_overhead_is_what_a_real_repair_took_without_installer_and_checks(trees: Trees) -> None:
    overhead = Overhead(trees)
    samples = overhead.samples(1)
    (stages,) = overhead.stages
    own = stages.pop("own")
    assert samples["overhead"] == (own,)
    assert set(OTHERS) <= set(stages)
    assert sum(stages[name] for name in ("preflight", "fingerprint", "clone")) < own < 30
    assert [*(trees.place.root / "samples" / "repaired-1" / "env").glob("lib/python3.*/site-packages/tiny.py")]


def test_no_environment_with_torch_is_a_reason_to_skip(trees: Trees, tmp_path: Path) -> None:
    with pytest.raises(SkippedError, match="ENVMEDIC_BENCH_PREFIX"):
        real_environment([])
    with pytest.raises(SkippedError, match=r"no environment.*byte code is not cached"):
        real_environment([tmp_path, trees.environment])


def test_the_first_round_is_left_out_and_the_others_take_turns() -> None:
    calls: list[str] = []

    def measure(name: str, number: int) -> float:
        calls.append(f"{name}{number}")
        return float(number)

    samples = rounds({"a": lambda number: measure("a", number), "b": lambda number: measure("b", number)}, 2)
    assert calls == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert samples == {"a": (1.0, 2.0), "b": (1.0, 2.0)}


def test_a_ratio_is_of_medians_with_the_spread_of_the_rounds() -> None:
    assert ratio({"a": (2.0, 6.0, 4.0), "b": (1.0, 2.0, 4.0)}, "a", "b") == Ratio(2.0, 1.0, 3.0)


def test_aims_are_judged() -> None:
    assert report.Aim(1.3).verdict(1.3) == "aim ≤ 1.3 x: met"
    assert report.Aim(1.3).verdict(1.31) == "aim ≤ 1.3 x: NOT met"
    assert report.Aim(8, at_least=True).verdict(7.9) == "aim ≥ 8 x: NOT met"


def test_a_missed_aim_is_told_and_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    report.Report().compare({"a": (9.0,), "b": (1.0,)}, "a", "b", "a / b", report.Aim(4))
    assert capsys.readouterr().out.split() == [
        "a",
        "/",
        "b",
        "9.00",
        "x",
        "[9.00",
        "to",
        "9.00]",
        "aim",
        "≤",
        "4",
        "x:",
        "NOT",
        "met",
    ]


def test_a_busy_machine_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (100.0, 0.0, 0.0))
    assert "WARNING" in report.load()
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert "WARNING" not in report.load()


def test_the_file_system_is_named() -> None:
    assert filesystem(Path("/proc")) == "proc"


def test_the_large_log_has_no_fault_and_is_made_once(tmp_path: Path) -> None:
    log = large_log(tmp_path / "large.log", 1)
    assert 1_000_000 <= log.stat().st_size < 2_000_000
    made = log.stat().st_ino
    assert large_log(log, 1).stat().st_ino == made
    assert scan(read_lines(log), load_all()) == ()
    patterns = [item.pattern for loaded in load_all() for item in loaded.playbook.signatures]
    assert not Prefilter(patterns).may_match(log.read_bytes()), "no word that some signature needs is that common"
    samples = reading(log, 1)
    assert {name: len(taken) for name, taken in samples.items()} == {**dict.fromkeys(WORDS, 1), "scan": 1, "command": 1}


def test_the_mixed_log_has_failures_long_lines_and_both_line_ends(tmp_path: Path) -> None:
    log = large_log(tmp_path / "mixed.log", 2, mixed=True)
    content = log.read_bytes()
    assert content.count(b"\r\n") > 1000 < content.count(b"\n") - content.count(b"\r\n")
    assert not content.endswith(b"\n")
    assert max(map(len, content.split(b"\n"))) > 100_000
    (found,) = {match.playbook: match for match in scan(read_lines(log), load_all())}.values()
    assert found.count == content.count(b"torchvision::nms") > 1


def test_first_frames_are_drawn_in_a_terminal_and_failures_are_told(tmp_path: Path) -> None:
    assert 0 < frames.frame("print('drawn')", str(tmp_path)) < 60
    assert 0 < frames.frame(frames.ENVMEDIC, str(tmp_path)) < 60
    with pytest.raises(RuntimeError, match=r"(?s)ended with 1: .*ZeroDivisionError"):
        frames.frame("1 // 0", str(tmp_path))


def test_keys_are_measured_while_the_log_pours_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # brought back afterwards
    found = frames.key_presses(1, tmp_path / "cache")
    assert set(found) == {"idle", "pouring"}
    assert all(0 < seconds < 10 for samples in found.values() for seconds in samples)


def test_every_line_of_a_flood_or_every_traceback_is_counted(tmp_path: Path) -> None:
    logs = floods(tmp_path, 300_000)
    counted = [max(item.count for item in scan(read_lines(log), load_all())) for log in logs.values()]
    lines = [log.read_bytes().count(b"\n") for log in logs.values()]
    assert counted == [lines[0], lines[1], lines[2] // 5]
    assert min(counted) > 100
    (taken,) = flooded(logs["a warning with pointers"], 1)
    assert min(taken) > 0
