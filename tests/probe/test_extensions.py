"""Which compiled files of an environment are looked at, and what is found in them without loading."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from envmedic.model.facts import Library
from envmedic.probe.binaries import extensions
from envmedic.probe.binaries.extensions import Extensions
from envmedic.probe.elf import symbol_versions
from envmedic.probe.elf.dynamic import Elf
from envmedic.probe.elf.loader import Process, Search
from envmedic.probe.packages import distributions
from envmedic.probe.packages.import_names import Modules
from tests.probe.prefixes import add_distribution, build_library, compiler, make_prefix, site
from tests.support.cxx_runtime import SONAME, WANTED, module, runtime
from tests.support.gpu_family import gpu_source

TAG = "cpython-311-x86_64-linux-gnu"
EMPTY = "int nothing;"


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    compiler()
    return make_prefix(tmp_path / "env")


def build(prefix: Path, name: str, files: dict[str, str], *arguments: str, record: bool = True) -> None:
    """A distribution whose files are compiled from C."""
    info = add_distribution(site(prefix), name, "1.0")
    for path, source in files.items():
        build_library(site(prefix) / path, source, "-nostdlib", *arguments)
    rows = [f"{path},sha256=x,1" for path in files] if record else []
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n")
    if not record:
        (info / "RECORD").unlink()
        (info / "top_level.txt").write_text(f"{name}\n")


def observe(prefix: Path, search: Search | None = None) -> Extensions:
    scan = distributions.scan(site(prefix), prefix, soabi=TAG)
    with closing(Process(search or Search(defaults=()))) as process:
        return extensions.observe(prefix, [scan], process, TAG)


def looked_at(prefix: Path) -> dict[str | None, list[str]]:
    """Names of the modules that are looked at, by owner."""
    scan = distributions.scan(site(prefix), prefix, soabi=TAG)
    found = list(extensions.groups(scan, Modules(TAG)))
    return {group.owner.name if group.owner else None: sorted(path.name for path in group.modules) for group in found}


def test_modules_of_this_interpreter_are_looked_at_and_mere_libraries_are_not(prefix: Path) -> None:
    build(prefix, "app", {
        f"app/_a.{TAG}.so": EMPTY,
        "app/_b.abi3.so": EMPTY,
        "app/_c.so": "void *PyInit__c(void) { return 0; }",
        "app/_d.cpython-39-x86_64-linux-gnu.so": EMPTY,
        "app/plugin.so": EMPTY,
        "app/libhelper.so": EMPTY,
    })  # fmt: skip
    assert looked_at(prefix) == {"app": [f"_a.{TAG}.so", "_b.abi3.so", "_c.so"]}


def test_a_library_of_operators_is_looked_at_though_it_is_no_module(prefix: Path, tmp_path: Path) -> None:
    torch = build_library(tmp_path / "libc10.so", EMPTY, "-nostdlib", "-Wl,-soname,libc10.so")
    build(prefix, "ops", {"ops/_version_cuda.so": EMPTY}, "-Wl,--no-as-needed", str(torch))
    build(prefix, "many", {"many/libbuilt_for_torch_2.4.so": EMPTY}, "-Wl,--no-as-needed", str(torch))
    assert looked_at(prefix) == {"ops": ["_version_cuda.so"]}


def test_the_torch_family_is_left_to_its_own_reader(prefix: Path) -> None:
    build(prefix, "torchvision", {f"torchvision/_C.{TAG}.so": EMPTY})
    assert looked_at(prefix) == {}


def test_files_that_no_record_lists_are_found(prefix: Path) -> None:
    build(prefix, "old", {f"old/_a.{TAG}.so": EMPTY}, record=False)
    build_library(site(prefix) / f"stray.{TAG}.so", EMPTY, "-nostdlib")
    build_library(site(prefix) / "boxes-1.0.egg" / "boxes" / f"_b.{TAG}.so", EMPTY, "-nostdlib")
    assert looked_at(prefix) == {"old": [f"_a.{TAG}.so"], None: [f"_b.{TAG}.so"]}
    scan = distributions.scan(site(prefix), prefix, soabi=TAG)
    names = [path.name for group in extensions.groups(scan, Modules(TAG)) for path in group.modules]
    assert f"stray.{TAG}.so" in names


def test_what_loads_and_concerns_neither_torch_nor_gpus_is_counted_only(prefix: Path) -> None:
    build(prefix, "plain", {f"plain/_a.{TAG}.so": EMPTY})
    assert observe(prefix) == Extensions((), 1)


def only(prefix: Path) -> Library:
    (found,) = observe(prefix).libraries
    return found


def test_an_undefined_symbol_is_named_with_its_owner(prefix: Path) -> None:
    build(prefix, "app", {f"app/_a.{TAG}.so": "int _Z4areaii(int, int); int f(void) { return _Z4areaii(1, 2); }"})
    found = only(prefix)
    assert (found.distribution, found.unresolved_count, found.missing) == ("app", 1, ())
    assert (found.unresolved[0].symbol, found.unresolved[0].demangled) == ("_Z4areaii", "area(int, int)")


def test_what_another_library_of_the_distribution_defines_may_be_opened_by_it(prefix: Path) -> None:
    build(prefix, "app", {
        f"app/_a.{TAG}.so": "int helper(void); int f(void) { return helper(); }",
        "app/libhelper.so": "int helper(void) { return 1; }",
    })  # fmt: skip
    assert observe(prefix) == Extensions((), 1)


def test_a_library_that_another_distribution_brings_may_be_opened_before(prefix: Path, tmp_path: Path) -> None:
    needed = build_library(
        tmp_path / "libshared.so.1", "int there(void) { return 1; }", "-nostdlib", "-Wl,-soname,libshared.so.1"
    )
    build(prefix, "brings", {f"brings/_b.{TAG}.so": EMPTY, "brings/libshared.so.1": "int there(void) { return 1; }"})
    build(
        prefix, "needs", {f"needs/_n.{TAG}.so": "int there(void); int f(void) { return there(); }"},
        "-Wl,--no-as-needed", str(needed),
    )  # fmt: skip
    assert observe(prefix) == Extensions((), 2)


def test_a_missing_library_and_a_damaged_file_are_told(prefix: Path, tmp_path: Path) -> None:
    needed = build_library(tmp_path / "libgone.so.3", EMPTY, "-nostdlib", "-Wl,-soname,libgone.so.3")
    build(prefix, "app", {f"app/_a.{TAG}.so": EMPTY}, "-Wl,--no-as-needed", str(needed))
    assert only(prefix).missing == ("libgone.so.3",)
    path = site(prefix) / "app" / f"_a.{TAG}.so"
    path.write_bytes(path.read_bytes()[:300])
    assert "truncated" in str(only(prefix).error)


def test_gpu_code_of_every_fat_binary_counts(prefix: Path) -> None:
    both = gpu_source(["8.0"], []) + gpu_source(["9.0"], ["9.0"]).replace("code[]", "more[]")
    build(prefix, "kernels", {f"kernels/_k.{TAG}.so": both})
    found = only(prefix)
    assert (found.gpu_code, found.sass, found.ptx) == (True, ("8.0", "9.0"), ("9.0",))


def test_versions_of_symbols_are_held_against_the_library_that_is_found(prefix: Path, tmp_path: Path) -> None:
    build(prefix, "boxes", {f"boxes/_b.{TAG}.so": EMPTY})
    path = site(prefix) / "boxes" / f"_b.{TAG}.so"
    path.write_bytes(module(""))
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "old" / SONAME).write_bytes(runtime(new=False))
    (tmp_path / "new" / SONAME).write_bytes(runtime(new=True))
    system = ("/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu")
    sound = observe(prefix, Search(library_path=(str(tmp_path / "new"),), defaults=system))
    assert (sound.libraries, sound.cxx_runtime) == ((), tmp_path / "new" / SONAME)
    (broken,) = observe(prefix, Search(library_path=(str(tmp_path / "old"),), defaults=system)).libraries
    (unmet,) = broken.unmet_versions
    assert (unmet.version, unmet.found) == (WANTED, str(tmp_path / "old" / SONAME))
    assert unmet.needed_by.endswith(path.name)


def test_version_tables_are_read_as_readelf_reads_them(tmp_path: Path) -> None:
    compiler()
    (tmp_path / SONAME).write_bytes(runtime(new=True))
    (tmp_path / "module.so").write_bytes(module(""))
    with closing(Elf(tmp_path / SONAME)) as elf:
        assert symbol_versions.definitions(elf) == (SONAME, "GLIBCXX_3.4", "GLIBCXX_3.4.19", WANTED)
    with closing(Elf(tmp_path / "module.so")) as elf:
        wanted = {(need.soname, need.version) for need in symbol_versions.needs(elf)}
        assert (SONAME, WANTED) in wanted
        indexes = symbol_versions.run_time_indexes(symbol_versions.needs(elf))
        assert b"cxx_99" in elf.undefined()
        assert b"cxx_99" not in elf.undefined(indexes)


@pytest.mark.parametrize("cores", [1, 2, 4, 6, 64])
def test_with_more_cores_the_same_is_found_in_the_same_order(
    prefix: Path, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    for number in range(7):
        broken = {f"app{number}/_{letter}.{TAG}.so": f"void lost_{letter}(void); void *f = lost_{letter};"
                  for letter in "abcdefg"[: 1 + number % 3]}  # fmt: skip
        build(prefix, f"app{number}", broken)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    found = observe(prefix)
    assert [Path(item.path).name for item in found.libraries] == [
        f"_{letter}.{TAG}.so" for number in range(7) for letter in "abcdefg"[: 1 + number % 3]
    ]
    assert all(item.unresolved_count == 1 for item in found.libraries)
    assert found.count == 13
