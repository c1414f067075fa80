"""Names count as importable when recorded files, or those on disk, bear them out; held against a real interpreter."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.probe.packages import distributions
from envmedic.probe.packages.import_names import Modules, from_metadata, on_disk, read_top_level
from tests.probe.prefixes import add_distribution, make_prefix, site

HERE = Modules("cpython-311-x86_64-linux-gnu")


def test_names_from_the_record_leave_out_data_and_metadata() -> None:
    paths = (
        "pkg/__init__.py",
        "pkg/sub/x.py",
        "single.py",
        "_ext.cpython-311-x86_64-linux-gnu.so",
        "pkg.libs/libz.so.1",
        "a-1.dist-info/METADATA",
        "../../../bin/tool",
        "data/readme.txt",
        "hook.pth",
    )
    assert from_metadata(None, paths, HERE) == ("_ext", "pkg", "single")


def test_top_level_names_that_no_recorded_file_bears_out_are_left_out() -> None:
    stated = b"botorch\nbuild\ndist\ndocs\nnotebooks\nscripts\ntutorials\n"
    paths = ("botorch/__init__.py", "build/lib/botorch/__init__.py", "notebooks/a.ipynb", "scripts/tool.py")
    assert from_metadata(stated, paths, HERE) == ("botorch", "build", "scripts")
    assert from_metadata(b"_xxhash\nxxhash\n", ("xxhash/__init__.py", "xxhash/_xxhash.abi3.so"), HERE) == ("xxhash",)


def test_nested_names_count_where_they_hold_modules() -> None:
    paths = ("triton/__init__.py", "triton/backends/amd/driver.py", "triton/_C/libtriton.so", "triton/fast.abi3.so")
    stated = b"triton\ntriton/backends/amd\ntriton/_C\ntriton/fast\ntriton/gone\n"
    assert from_metadata(stated, paths, HERE) == ("triton", "triton.backends.amd", "triton.fast")


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("m.cpython-311-x86_64-linux-gnu.so", True),
        ("m.cpython-39-x86_64-linux-gnu.so", False),
        ("m.cpython-311-aarch64-linux-gnu.so", False),
        ("m.abi3.so", True),
        ("m.so", True),
        ("m.pyd", False),
        ("libm.so", False),
        ("m-1.py", False),
    ],
)
def test_extension_modules_count_for_their_interpreter(file: str, counts: bool) -> None:  # noqa: FBT001
    assert from_metadata(None, (file,), HERE) == (("m",) if counts else ())
    assert from_metadata(b"m\n", (file, "other.py"), HERE) == (("m",) if counts else ("other",))


def test_any_interpreter_s_extensions_count_while_the_interpreter_is_unknown() -> None:
    assert from_metadata(None, ("m.cpython-39-x86_64-linux-gnu.so",), Modules()) == ("m",)


def test_names_stay_where_the_code_may_lie_anywhere() -> None:
    assert from_metadata(b"trainer\n", ("__editable__.trainer-1.pth", "a-1.dist-info/RECORD"), HERE) == ("trainer",)


def test_a_recorded_name_whose_files_are_gone_still_counts(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(
        site(prefix), "torchvision", "1", files={"torchvision/__init__.py": ""}, extra={"top_level.txt": "torchvision"}
    )
    (site(prefix) / "torchvision" / "__init__.py").unlink()
    (found,) = distributions.scan(site(prefix), prefix).installed
    assert found.distribution.import_names == ("torchvision",)


def test_without_a_record_the_files_on_disk_decide(tmp_path: Path) -> None:
    for path in ("pkg/__init__.py", "space/inner/x.py", "single.py", "data/x.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    names = ("pkg", "space", "space.inner", "single", "data", "absent")
    assert on_disk(names, tmp_path, HERE) == ("pkg", "space", "space.inner", "single")
    assert on_disk(("absent", "data"), tmp_path, HERE) == ("absent", "data"), "one of them ought to be importable"


@given(st.binary(max_size=200), st.lists(st.text(max_size=40), max_size=5))
def test_any_content_gives_names(top_level: bytes, paths: list[str]) -> None:
    stated = read_top_level(top_level)
    assert all(name in stated or name.isidentifier() for name in from_metadata(top_level, paths, HERE))


def test_real_wheels_of_this_interpreter_give_names_that_it_can_import() -> None:
    """Every name of the distributions beside this test is found by the import system, and none is missed."""
    folder = Path(sysconfig.get_path("purelib"))
    soabi = sysconfig.get_config_var("SOABI")
    scan = distributions.scan(folder, Path(sys.prefix), soabi=soabi)
    names = sorted({name for item in scan.installed for name in item.distribution.import_names})
    assert {"pytest", "hypothesis", "msgspec"} <= set(names)
    code = (
        "import importlib.util as u, sys\n"
        "for name in sys.argv[1:]:\n"
        "    if '.' not in name and u.find_spec(name) is None: print(name)"
    )
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert done.stdout == ""
