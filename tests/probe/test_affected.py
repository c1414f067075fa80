"""Imports that a change can affect: what a run of all imports finds broken is never left out."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envmedic.probe.packages import affected
from envmedic.probe.packages.affected import Affected
from tests.support.native import shared_library
from tests.support.wheels import make_wheel

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
GOOD, BAD = "answer = 42\n", "raise RuntimeError('built for another torch')\n"


@dataclass(frozen=True)
class Package:
    name: str
    files: Mapping[str, str | bytes]
    requires: Sequence[str] = ()
    entry_points: str | None = None


def package(name: str, source: str = "", *requires: str, points: str | None = None, **parts: str) -> Package:
    files: dict[str, str | bytes] = {f"{name}/__init__.py": source}
    files |= {f"{name}/{part}.py": text for part, text in parts.items()}
    return Package(name, files, requires, points)


BYSTANDERS = (
    package("bystander", "import json\n"),
    package("reader", "# torchish is the topic of `changed`\n", "bystander"),
)
CHANGED = package("changed", GOOD, part=GOOD)
BROKEN = package("changed", "", part=BAD)
GONE = package("changed", BAD, part=GOOD)
MIDDLE = package("middle", "", part="from changed.part import answer\n")
LAZY = package("middle", "def __getattr__(name):\n    from changed.part import answer\n    return answer\n")
POINT = "[user.plugins]\nmain = changed.part:answer\n"
LOADS = "from importlib.metadata import entry_points\nfor item in entry_points(group='user.plugins'): item.load()\n"
OWN = "[anything]\nmain = changed.part:answer\n"
LOADS_OWN = "from importlib.metadata import distribution\n[item.load() for item in distribution('user').entry_points]\n"

CASES: dict[str, tuple[Package, Package, tuple[Package, ...]]] = {
    "plain": (CHANGED, BROKEN, (package("user", "from changed.part import answer\n"),)),
    "guarded": (CHANGED, BROKEN, (package("user", "try:\n    import changed.part\nexcept ImportError:\n    pass\n"),)),
    "lazy": (CHANGED, BROKEN, (package("user", "def f():\n    import changed.part\nf()\n"),)),
    "named-as-text": (CHANGED, BROKEN, (package("user", "from importlib import import_module as i\ni('changed.part')\n"),)),
    "looked-for": (
        CHANGED, GONE,
        (package("user", "from importlib import util\nn = 'changed'\nif util.find_spec(n): __import__(n)\n"),),
    ),
    "in-a-list": (CHANGED, BROKEN, (package("user", "for n in ('json', 'changed.part'): __import__(n)\n"),)),
    "second-of-a-line": (CHANGED, BROKEN, (package("user", "import json, changed.part as p\n"),)),
    "next-line": (CHANGED, BROKEN, (package("user", "import json, \\\n    changed.part\n"),)),
    "star": (CHANGED, GONE, (package("user", "from changed import *\n"),)),
    "in-a-module-of-its-own": (CHANGED, BROKEN, (package("user", "from . import deep\n", deep="import changed.part\n"),)),
    "entry-point-of-the-changed": (
        package("changed", GOOD, points=POINT, part=GOOD), package("changed", "", points=POINT, part=BAD),
        (package("user", LOADS),),
    ),
    "entry-point-of-its-own": (CHANGED, BROKEN, (package("user", LOADS_OWN, points=OWN),)),
    "required-through-another": (CHANGED, BROKEN, (MIDDLE, package("user", "import middle.part\n", "middle"))),
    "part-of-another-not-required": (
        CHANGED, BROKEN, (MIDDLE, package("user", "try:\n    import middle.part\nexcept ImportError:\n    pass\n")),
    ),
    "attribute-of-another": (CHANGED, BROKEN, (LAZY, package("user", "from middle import answer\n"))),
    "attribute-of-a-required-one": (CHANGED, BROKEN, (LAZY, package("user", "import middle\nmiddle.answer\n", "middle"))),
    "required-alone": (
        CHANGED, BROKEN,
        (package("user", "n = ''.join(['chan', 'ged.part'])\n__import__(n)\n", "changed; extra == 'vision'"),),
    ),
    "namespace": (
        Package("ns-b", {"ns/b/__init__.py": GOOD}), Package("ns-b", {"ns/b/__init__.py": BAD}),
        (package("user", "import ns.b\n"),),
    ),
    "module-alone": (
        Package("changed", {"changed.py": GOOD}), Package("changed", {"changed.py": BAD}), (package("user", "import changed\n"),),
    ),
    "text-of-a-library": (
        Package("changed", {"changed/libcore.so": shared_library("int f(void) { return 1; }", name="libcore.so")}),
        Package("changed", {"changed/libcore.so": b"damaged"}),
        (package("user", "import ctypes, pathlib\nctypes.CDLL(str(pathlib.Path(__file__).parents[1] / 'changed' / 'libcore.so'))\n"),),
    ),
}  # fmt: skip


def library_case() -> tuple[Package, Package, tuple[Package, ...]]:
    """A compiled module that loads a changed library through one that did not change."""
    core = shared_library("int f(void) { return 1; }", name="libcore.so")
    other = shared_library("int g(void) { return 1; }", name="libcore.so")
    source = "extern int f(void); int h(void) { return f(); }"
    between = shared_library(
        source, name="libbetween.so", needs=(("libcore.so", "int f(void) { return 1; }"),), rpath="$ORIGIN/../changed"
    )
    outer = shared_library(
        "extern int h(void); int k(void) { return h(); }", name="libouter.so",
        needs=(("libbetween.so", "int h(void) { return 1; }"),), rpath="$ORIGIN/../between",
    )  # fmt: skip
    load = "import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'lib' + 'outer.so'), os.RTLD_NOW)\n"
    return (
        Package("changed", {"changed/__init__.py": "", "changed/libcore.so": core}),
        Package("changed", {"changed/__init__.py": "", "changed/libcore.so": other}),
        (
            Package("between", {"between/libbetween.so": between}),
            Package("user", {"user/__init__.py": load, "user/libouter.so": outer}),
        ),
    )


def install(tree: Path, wheels: Path, packages: Sequence[Package]) -> Path:
    site = tree / SITE
    site.mkdir(parents=True)
    (tree / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\nversion = {sys.version.split()[0]}\n")
    for item in packages:
        made = make_wheel(
            wheels, item.name, "1.0", files=item.files, requires=item.requires, entry_points=item.entry_points
        )
        with zipfile.ZipFile(made.path) as archive:
            archive.extractall(site)
        made.path.unlink()
    return tree


def files(tree: Path) -> dict[str, bytes]:
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def imports(tree: Path, names: Sequence[str]) -> set[str]:
    """Those of `names` that can be imported, each in a process of its own."""
    begun = {
        name: subprocess.Popen(
            [sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {str(tree / SITE)!r}); import {name}"],
            stderr=subprocess.DEVNULL,
        )
        for name in names
    }
    return {name for name, process in begun.items() if process.wait() == 0}


def left_out(tmp_path: Path, old: Package, new: Package, others: Sequence[Package]) -> tuple[frozenset[str], set[str]]:
    """The names that are left out, and those of a run of all imports that the change breaks."""
    rest = (*others, *BYSTANDERS)
    before = install(tmp_path / "before", tmp_path / "wheels", (old, *rest))
    after = install(tmp_path / "after", tmp_path / "wheels", (new, *rest))
    then, now = files(before), files(after)
    changed = [name for name in then.keys() | now.keys() if then.get(name) != now.get(name)]
    names = [item.name.partition("-")[0] for item in rest]
    broken = imports(before, names) - imports(after, names)
    spared = unaffected(before, after, changed, ())
    found = Affected()
    with found.foresee(before, [old.name]):
        assert found.unaffected(before, after, changed, [old.name]) == spared
    return spared, broken


def unaffected(
    before: Path, after: Path, changed: Collection[str], distributions: Collection[str], *, near: bool = False
) -> frozenset[str]:
    return Affected().unaffected(before, after, changed, distributions, near=near)


@pytest.mark.parametrize("make", [*CASES, "library-through-another"])
def test_what_the_full_run_finds_broken_is_imported(tmp_path: Path, make: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether that is found beside the work before it, as where there are cores, or after it."""
    monkeypatch.setattr(affected, "free_cores", lambda: 4)
    case = library_case() if make == "library-through-another" else CASES[make]
    spared, broken = left_out(tmp_path, *case)
    assert "user" in broken, "the case breaks nothing"
    assert not spared & {*broken, *case[0].files}
    assert spared >= {"bystander", "reader"}


def starts_with(name: str) -> Callable[[Path], str]:
    def write(tree: Path) -> str:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("import os\n")
        return name

    return write


@pytest.mark.parametrize(
    "name", [f"{SITE}/hook.pth", f"{SITE}/sitecustomize.py", "pyvenv.cfg", f"{SITE.rpartition('/')[0]}/json/decoder.py", "bin/python3.99"]
)  # fmt: skip
def test_what_every_start_reads_concerns_all(tmp_path: Path, name: str) -> None:
    tree = install(tmp_path / "env", tmp_path / "wheels", (CHANGED, *BYSTANDERS))
    assert unaffected(tree, tree, [f"{SITE}/changed/part.py"], ()) == {"bystander", "reader"}
    assert unaffected(tree, tree, [starts_with(name)(tree)], ()) == frozenset()


def test_in_a_conda_prefix_all_is_imported(tmp_path: Path) -> None:
    tree = install(tmp_path / "env", tmp_path / "wheels", (CHANGED, *BYSTANDERS))
    (tree / "conda-meta").mkdir()
    assert unaffected(tree, tree, [f"{SITE}/changed/part.py"], ()) == frozenset()


def test_for_what_is_only_added_those_who_name_it_stand_for_those_behind_them(tmp_path: Path) -> None:
    others = (
        package("user", "try:\n    import changed\nexcept ImportError:\n    pass\n"),
        package("behind", "import user\n", "user"),
    )
    asking = package("asking", "", "changed; extra == 'fast'")
    tree = install(tmp_path / "env", tmp_path / "wheels", (CHANGED, *others, asking, *BYSTANDERS))
    added = [f"{SITE}/changed/__init__.py", f"{SITE}/changed/part.py"]
    assert unaffected(tree, tree, added, ["changed"]) == {"bystander", "reader"}
    assert unaffected(tree, tree, added, ["changed"], near=True) == {"bystander", "reader", "behind"}
    (tree / "conda-meta").mkdir()
    assert unaffected(tree, tree, added, ["changed"], near=True) == {"bystander", "reader", "behind"}
    assert unaffected(tree, tree, [*added, "lib/libstdc++.so.6"], ["changed"], near=True) == frozenset()


def test_a_distribution_that_is_named_counts_without_a_changed_file(tmp_path: Path) -> None:
    tree = install(tmp_path / "env", tmp_path / "wheels", (CHANGED, package("user", "import changed\n"), *BYSTANDERS))
    assert unaffected(tree, tree, [], ["Changed"]) == {"bystander", "reader"}


def test_what_merely_requires_an_affected_one_and_never_names_it_is_left_out(tmp_path: Path) -> None:
    """As `idna`, whose extra `all` leads to pytest and from there, by further extras, to most of what there is."""
    user = package("user", "import changed\n")
    extra = package("extra", "answer = 'of user'\n", "user; extra == 'all'")
    naming = package("naming", "import user\n", "user; extra == 'all'")
    tree = install(tmp_path / "env", tmp_path / "wheels", (CHANGED, user, extra, naming, *BYSTANDERS))
    assert unaffected(tree, tree, [f"{SITE}/changed/part.py"], ()) == {"bystander", "reader", "extra"}


def test_the_name_of_a_library_is_a_whole_word(tmp_path: Path) -> None:
    """``image.so`` is no part of ``image.sort``, nor ``_C.so`` of ``x_C.so``."""
    changed = Package("changed", {"changed/image.so": shared_library("int f(void) { return 1; }", name="image.so")})
    named = package("named", "library = 'image.so'\n")
    sorts = package("sorts", "class image: sort = sorted\nimage.sort([])\n")
    tree = install(tmp_path / "env", tmp_path / "wheels", (changed, named, sorts, *BYSTANDERS))
    assert unaffected(tree, tree, [f"{SITE}/changed/image.so"], ()) == {"bystander", "reader", "sorts"}


def test_what_was_foreseen_holds_only_for_what_touches_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affected, "free_cores", lambda: 4)
    others = (
        package("user", "import changed\n"),
        package("other", GOOD),
        package("ours", "import other\n"),
        *BYSTANDERS,
    )
    tree = install(tmp_path / "env", tmp_path / "wheels", (CHANGED, *others))
    found = Affected()
    asked: list[frozenset[str]] = []
    read = affected._spared

    def noted(now: Sequence[Any], touched: Any, loading: set[str], *, near: bool) -> frozenset[str]:
        asked.append(touched.names)
        return read(now, touched, loading, near=near)

    with found.foresee(tree, ["changed"]):
        monkeypatch.setattr(affected, "_spared", noted)
        one = [f"{SITE}/changed/part.py"]
        for _ in range(3):
            assert found.unaffected(tree, tree, one, ["changed"]) == {"bystander", "reader", "other", "ours"}
        assert len(asked) <= 1, "read once, here where there is no other process"
        more = [*one, f"{SITE}/other/__init__.py"]
        assert found.unaffected(tree, tree, more, ["changed"]) == {"bystander", "reader"}
        assert asked[-1] == {"changed", "other"}
