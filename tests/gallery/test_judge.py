"""The judge of the gallery sees what a repair must not do, and stacks hold what can be combined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.gallery.repair_gallery.judge import Digests, State, harm, ill_told, listing
from tests.gallery.repair_gallery.stacks import draw

SITE = "lib/python3.11/site-packages"
BEFORE = State(
    files={
        f"{SITE}/a/__init__.py": (0o644, "1", 1), f"{SITE}/b/__init__.py": (0o644, "1", 1),
        f"{SITE}/b/__pycache__/__init__.cpython-311.pyc": (0o644, "1", 1), "bin/b": (0o755, "1", 1),
        f"{SITE}/b-1.dist-info/RECORD": (0o644, "1", 1),
    },
    works={"a": True, "b": False},
    unmet=frozenset(),
    damaged=frozenset(),
    versions={"a": ("1.0",), "b": ("1.0",)},
    owners={
        f"{SITE}/a/__init__.py": frozenset({"a"}), f"{SITE}/b/__init__.py": frozenset({"b"}), "bin/b": frozenset({"b"}),
        f"{SITE}/b-1.dist-info/RECORD": frozenset({"b"}),
    },
)  # fmt: skip
OF_B = {"plan": {"changes": [{"name": "B"}], "steps": []}}
OF_SCRIPT = {"plan": {"changes": [], "steps": [{"type": "make_executable", "programs": ["bin/b"]}]}}


def changed(*paths: str, **other: object) -> State:
    """`BEFORE` with other content at `paths`."""
    return replace(BEFORE, files=BEFORE.files | dict.fromkeys(paths, (0o644, "2", 2)), **other)  # type: ignore[arg-type]


def test_what_a_plan_names_may_change_and_nothing_else() -> None:
    own = (f"{SITE}/b/__init__.py", f"{SITE}/b/__pycache__/__init__.cpython-311.pyc", f"{SITE}/b/new.py")
    assert harm(BEFORE, changed(*own), OF_B, ()) == []
    assert harm(BEFORE, changed(f"{SITE}/a/__init__.py"), OF_B, ()) == [f"moved, not named: {SITE}/a/__init__.py"]
    records = (f"{SITE}/b-1.dist-info/RECORD", f"{SITE}/b-0.dist-info/RECORD")
    assert harm(BEFORE, changed("bin/b", *records), OF_SCRIPT, ()) == []
    assert harm(BEFORE, changed(f"{SITE}/b/__init__.py"), OF_SCRIPT, ()) == [f"moved, not named: {SITE}/b/__init__.py"]


def test_the_same_bytes_with_another_time_have_not_moved() -> None:
    later = {path: (mode, digest, time + 1) for path, (mode, digest, time) in BEFORE.files.items()}
    assert harm(BEFORE, replace(BEFORE, files=later), {}, ()) == []


def test_programs_requirements_files_and_limits_are_kept() -> None:
    worse = changed(
        works={"a": False},
        unmet=frozenset({"a needs b<1, there is 1.0"}),
        damaged=frozenset({"x"}),
        versions={"a": ("2",)},
    )
    assert harm(BEFORE, worse, {}, ("a==1.0", "b==3")) == [
        "a worked", "unmet now: a needs b<1, there is 1.0", "missing now: x", "pin not kept: a==1.0",
    ]  # fmt: skip


def test_a_refusal_has_words_and_no_placeholder() -> None:
    assert ill_told({})
    assert ill_told({"failure": {"summary": "No plan for {package}"}})
    assert not ill_told({"failure": {"summary": "No plan for numpy", "cause": None}})


def test_a_listing_sees_content_modes_links_and_directories(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "d").mkdir()
    before = listing(tmp_path, Digests())
    (tmp_path / "d" / "link").symlink_to("nowhere")
    (tmp_path / "a").chmod(0o600)
    after = listing(tmp_path, Digests())
    assert [path for path in sorted(after) if before.get(path) != after[path]] == ["a", "d/link"]


def test_stacks_are_drawn_by_their_seed_and_touch_different_things() -> None:
    cases = draw(64, 18)
    assert [case.name for case in cases] == [case.name for case in draw(64, 18)]
    assert len({frozenset(case.faults) for case in cases}) == 64
    for case in cases:
        touched = [name for fault in case.faults for name in fault.touches]
        assert len(set(touched)) == len(touched)
        assert len({fault.base for fault in case.faults}) == 1
