"""The model of the run-time loader, against the loader itself where that is possible."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from envmedic.probe.elf import ldcache
from envmedic.probe.elf.demangle import demangle
from envmedic.probe.elf.dynamic import ElfError
from envmedic.probe.elf.loader import LoadCheck, Process, Search
from tests.probe.prefixes import build_library

NOWHERE = Search(defaults=())


def check(path: Path, *, opened: tuple[Path, ...] = (), everywhere: tuple[Path, ...] = (), search: Search = NOWHERE,
          siblings: dict[str, Path] | None = None) -> LoadCheck:  # fmt: skip
    with closing(Process(search)) as process:
        for item in everywhere:
            process.open(item, everywhere=True)
        for item in opened:
            process.open(item)
        child = process.fork()
        child.siblings = siblings or {}
        return child.check(path)


def provider(folder: Path, name: str, *symbols: str, needs: tuple[Path, ...] = (), extra: tuple[str, ...] = ()) -> Path:
    """A library that defines `symbols`, links `needs`, and has its own name as soname."""
    source = "".join(f"int {symbol}(void) {{ return 1; }}\n" for symbol in symbols) or "static int nothing;\n"
    arguments = ["-nostdlib", f"-Wl,-soname,{name}", "-Wl,--no-as-needed", *map(str, needs), *extra]
    return build_library(folder / name, source, *arguments)


def user(folder: Path, name: str, *symbols: str, needs: tuple[Path, ...] = (), extra: tuple[str, ...] = ()) -> Path:
    """A library that calls `symbols`."""
    source = "".join(
        f"extern int {symbol}(void);\nint use_{symbol}(void) {{ return {symbol}(); }}\n" for symbol in symbols
    )
    arguments = ["-nostdlib", f"-Wl,-soname,{name}", "-Wl,--no-as-needed", *map(str, needs), *extra]
    return build_library(folder / name, source, *arguments)


def test_symbol_of_a_needed_library_is_found_by_runpath_from_origin(tmp_path: Path) -> None:
    needed = provider(tmp_path / "libs", "libp.so", "there")
    path = user(tmp_path, "u.so", "there", needs=(needed,), extra=("-Wl,-rpath,$ORIGIN/libs",))
    assert check(path) == LoadCheck()


def test_a_preloaded_library_stands_for_the_needed_one_of_its_soname(tmp_path: Path) -> None:
    needed = provider(tmp_path / "libs", "libp.so", "there", "newer")
    older = provider(tmp_path / "preloaded", "libp.so", "there")
    path = user(tmp_path, "u.so", "there", "newer", needs=(needed,), extra=("-Wl,-rpath,$ORIGIN/libs",))
    with closing(Process(Search(preload=(str(older),)))) as process:
        process.start(Path(sys.executable).resolve())
        assert process.fork().check(path).unresolved == (b"newer",)
    # the loader itself agrees
    program = [sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], os.RTLD_NOW)", str(path)]
    assert subprocess.run(program, check=False, capture_output=True).returncode == 0
    done = subprocess.run(program, env={**os.environ, "LD_PRELOAD": str(older)}, check=False, capture_output=True)
    assert b"undefined symbol: newer" in done.stderr


def test_missing_library_and_missing_symbol_are_named(tmp_path: Path) -> None:
    needed = provider(tmp_path / "libs", "libp.so", "there")
    path = user(tmp_path, "u.so", "there", "absent", needs=(needed,))
    assert check(path) == LoadCheck(missing=("libp.so",), unresolved=(b"there", b"absent"))


def test_a_library_that_is_open_already_is_found_by_name_without_any_path(tmp_path: Path) -> None:
    needed = provider(tmp_path / "far", "libp.so", "there")
    path = user(tmp_path, "u.so", "there", needs=(needed,))
    assert check(path, opened=(needed,)) == LoadCheck()


def test_symbols_of_an_open_library_that_is_not_needed_are_out_of_scope_unless_global(tmp_path: Path) -> None:
    other = provider(tmp_path / "far", "libp.so", "there")
    path = user(tmp_path, "u.so", "there")
    assert check(path, opened=(other,)).unresolved == (b"there",)
    assert check(path, everywhere=(other,)) == LoadCheck()


def test_failure_of_a_sibling_propagates(tmp_path: Path) -> None:
    sibling = user(tmp_path / "lib", "libs.so", "absent")
    path = user(tmp_path, "u.so", "use_absent", needs=(sibling,))
    assert check(path, siblings={"libs.so": sibling}).unresolved == (b"absent",)


def test_rpath_reaches_the_needs_of_needs_but_runpath_does_not(tmp_path: Path) -> None:
    deep = provider(tmp_path / "deep", "libd.so", "deep")
    middle = user(tmp_path / "libs", "libm2.so", "deep", needs=(deep,))
    for flag, missing in (("--disable-new-dtags", ()), ("--enable-new-dtags", ("libd.so",))):
        paths = f"-Wl,{flag},-rpath,$ORIGIN/libs:$ORIGIN/deep"
        extra = (paths, "-Wl,--unresolved-symbols=ignore-all")
        path = user(tmp_path, f"u{flag}.so", "use_deep", needs=(middle,), extra=extra)
        assert check(path).missing == missing


def test_order_is_rpath_then_library_path_then_runpath(tmp_path: Path) -> None:
    provider(tmp_path / "a", "libp.so", "there")
    empty = provider(tmp_path / "b", "libp.so")
    search = Search(library_path=(str(empty.parent),), defaults=())
    for flag, unresolved in (("--disable-new-dtags", ()), ("--enable-new-dtags", (b"there",))):
        extra = (f"-Wl,{flag},-rpath,$ORIGIN/a", "-Wl,--unresolved-symbols=ignore-all")
        path = user(tmp_path, f"u{flag}.so", "there", needs=(empty,), extra=extra)
        assert check(path, search=search).unresolved == unresolved


def test_a_damaged_candidate_is_passed_over_as_the_loader_does(tmp_path: Path) -> None:
    needed = provider(tmp_path / "good", "libp.so", "there")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "libp.so").write_text("no ELF file")
    path = user(tmp_path, "u.so", "there", needs=(needed,), extra=("-Wl,-rpath,$ORIGIN/bad:$ORIGIN/good",))
    assert check(path) == LoadCheck()


def test_needs_in_a_circle_end(tmp_path: Path) -> None:
    first = provider(tmp_path, "libone.so", "one")
    second = provider(tmp_path, "libtwo.so", "two", needs=(first,), extra=("-Wl,-rpath,$ORIGIN",))
    provider(tmp_path, "libone.so", "one", needs=(second,), extra=("-Wl,-rpath,$ORIGIN",))
    assert check(second) == LoadCheck()


def test_python_symbols_are_not_asked_for_when_the_program_is_unknown(tmp_path: Path) -> None:
    path = user(tmp_path, "u.so", "PyLong_FromLong", "_PyErr_Something", "Pyramid")
    assert check(path).unresolved == (b"Pyramid",)


def test_python_symbols_come_from_the_program(tmp_path: Path) -> None:
    path = user(tmp_path, "u.so", "PyLong_FromLong", "PyNo_SuchThing")
    with closing(Process(Search.here())) as process:
        process.start(Path(sys.executable).resolve())
        assert process.check(path).unresolved == (b"PyNo_SuchThing",)


def test_fork_shows_what_was_loaded_and_hides_what_comes_later(tmp_path: Path) -> None:
    needed = provider(tmp_path / "far", "libp.so", "there")
    path = user(tmp_path, "u.so", "there", needs=(needed,))
    with closing(Process(NOWHERE)) as process:
        process.fork().open(needed)
        assert process.fork().check(path).missing == ("libp.so",)
        process.open(needed)
        assert process.fork().check(path) == LoadCheck()


def test_a_file_that_is_no_library_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(b"\x7fELF")
    with pytest.raises(ElfError):
        check(path)


@pytest.mark.parametrize("symbols", [("there",), ("there", "absent")])
@pytest.mark.parametrize("reachable", [True, False])
def test_verdict_is_that_of_the_real_loader(tmp_path: Path, symbols: tuple[str, ...], *, reachable: bool) -> None:
    needed = provider(tmp_path / "libs", "libp.so", "there")
    extra = ("-Wl,-rpath,$ORIGIN/libs",) if reachable else ()
    path = user(tmp_path, "u.so", *symbols, needs=(needed,), extra=extra)
    verdict = check(path, search=Search.here())
    code = f"import ctypes; ctypes.CDLL({str(path)!r})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (verdict == LoadCheck()) == (result.returncode == 0)
    if result.returncode:
        assert any(name in result.stderr for name in (*verdict.missing, *map(os.fsdecode, verdict.unresolved)))


def test_every_library_of_this_python_would_load() -> None:
    modules = sorted(Path(ctypes.__file__).parent.parent.glob("lib-dynload/*.so"))
    with closing(Process(Search.here())) as process:
        process.start(Path(sys.executable).resolve())
        verdicts = {path.name: process.fork().check(path) for path in modules}
    loaded = {path.name for path in modules if _loads(path)}
    assert {name for name, verdict in verdicts.items() if verdict == LoadCheck()} == loaded


def _loads(path: Path) -> bool:
    try:
        ctypes.PyDLL(str(path))
    except OSError:
        return False
    return True


def cache(*pairs: tuple[str, str]) -> bytes:
    """A cache as ldconfig writes it."""
    strings, entries = b"", b""
    start = 48 + 24 * len(pairs)
    for name, path in pairs:
        key = start + len(strings)
        strings += name.encode() + b"\0"
        entries += struct.pack("<iIIIQ", 0x0303, key, start + len(strings), 0, 0)
        strings += path.encode() + b"\0"
    return ldcache.MAGIC + struct.pack("<II", len(pairs), len(strings)) + bytes(20) + entries + strings


def test_cache_lists_the_paths_of_a_soname_in_order() -> None:
    data = cache(("libz.so.1", "/new/libz.so.1"), ("libz.so.1", "/old/libz.so.1"), ("libm.so.6", "/lib/libm.so.6"))
    expected = {"libz.so.1": ("/new/libz.so.1", "/old/libz.so.1"), "libm.so.6": ("/lib/libm.so.6",)}
    assert ldcache.parse(data) == expected
    assert ldcache.parse(data[: 48 + 24]) != expected


def test_other_files_are_an_empty_cache() -> None:
    assert ldcache.parse(b"ld.so-1.7.0" + bytes(100)) == {}
    assert ldcache.parse(b"") == {}


def test_the_cache_leads_to_a_library_and_is_asked_after_the_paths(tmp_path: Path) -> None:
    needed = provider(tmp_path / "system", "libp.so", "there")
    path = user(tmp_path, "u.so", "there", needs=(needed,))
    assert check(path, search=Search(cache={"libp.so": (str(needed),)}, defaults=())) == LoadCheck()


def test_names_are_demangled() -> None:
    mangled = "_ZN5torch3jit17parseSchemaOrNameERKSs"
    readable = demangle([mangled, "ncclCommInitRank", "_Znonsense"])
    if readable[mangled] is None:
        pytest.skip("no libstdc++ on this machine")
    assert readable == {
        mangled: "torch::jit::parseSchemaOrName(std::string const&)",
        "ncclCommInitRank": None,
        "_Znonsense": None,
    }
