"""Files that a text concerns are hashed by themselves, wherever their size is the recorded one."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from envmedic.api.context.settings import Settings
from envmedic.api.diagnosis import diagnose_output
from envmedic.model.events import EventStream
from envmedic.model.facts import DistributionFiles, Facts, Host
from envmedic.model.findings import Diagnosis
from envmedic.playbook.schema.loader import load_all
from envmedic.probe.environment import observe_environment
from tests.conda_meta.support import paths, record, write
from tests.probe.prefixes import add_distribution, build_library, make_prefix, site

GOOD, WRONG = b"\x7fELF of the right size", b"\0" * 22
FRAMES = """Traceback (most recent call last):
  File "/home/user/train.py", line 1, in <module>
    import boxes
  File "{path}", line 3, in <module>
    from boxes.areas import area
"""


def prefix_of(root: Path, content: bytes, module: str) -> Path:
    """A venv with boxes, of a library and modules whose hashes RECORD has, then changed to these contents."""
    prefix = make_prefix(root)
    folder = site(prefix)
    info = add_distribution(
        folder, "boxes", "1.0", extra={"WHEEL": "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n"}
    )
    before = {"boxes/__init__.py": b"", "boxes/_C.so": GOOD, "boxes/areas.py": b"def area(): pass\n"}
    (folder / "boxes").mkdir()
    rows = []
    for path, data in before.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
        (folder / path).write_bytes(data)
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,"]))
    (folder / "boxes/_C.so").write_bytes(content)
    (folder / "boxes/areas.py").write_text(module)
    return prefix


def conda_prefix(root: Path, content: bytes) -> Path:
    """A conda environment with NVIDIA's cuBLAS, whose library has that content."""
    prefix = make_prefix(root)
    (prefix / "lib/libcublas.so.12.4.5").write_bytes(content)
    (prefix / "lib/libcublas.so.12").symlink_to("libcublas.so.12.4.5")
    entry = {
        "_path": "lib/libcublas.so.12.4.5", "path_type": "hardlink", "size_in_bytes": len(GOOD),
        "sha256": hashlib.sha256(GOOD).hexdigest(), "sha256_in_prefix": hashlib.sha256(GOOD).hexdigest(),
    }  # fmt: skip
    link = {"_path": "lib/libcublas.so.12", "path_type": "softlink", "size_in_bytes": len(GOOD)}
    write(prefix, [record("libcublas", paths_data=paths(entry, link))])
    return prefix


def told(prefix: Path, text: str) -> Diagnosis:
    facts = Facts(host=Host(), environment=observe_environment(prefix))
    assert facts.environment is not None
    assert not any(item.cut_off or item.changed for item in facts.environment.files or ()), "sizes tell nothing"
    settings = Settings(stream=EventStream([]))
    return diagnose_output(settings, load_all(), facts, text.encode().splitlines(), prefix=prefix, name="log")


def report(found: Diagnosis) -> DistributionFiles | None:
    assert found.facts is not None
    assert found.facts.environment is not None
    return next((item for item in found.facts.environment.files or () if item.cut_off or item.changed), None)


@pytest.mark.parametrize(("content", "damaged"), [(WRONG, True), (GOOD, False)], ids=["wrong", "good"])
@pytest.mark.parametrize(
    "line", ["ImportError: {lib}/libcublas.so.12: invalid ELF header", "Segmentation fault (core dumped)"]
)
def test_a_library_of_conda_is_hashed(tmp_path: Path, content: bytes, line: str, *, damaged: bool) -> None:
    prefix = conda_prefix(tmp_path / "env", content)
    found = report(told(prefix, line.format(lib=prefix / "lib")))
    assert (found.cut_off if found else ()) == (("lib/libcublas.so.12.4.5",) if damaged else ())


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("def area(): pas(\n", "SyntaxError: '(' was never closed"),
        ("def arex(): pass\n", "ImportError: cannot import name 'area' from 'boxes.areas' ({path})"),
    ],
)
def test_a_module_that_the_last_error_names_is_hashed(tmp_path: Path, module: str, error: str) -> None:
    prefix = prefix_of(tmp_path / "env", GOOD, module)
    path = str(site(prefix) / "boxes/areas.py")
    found = report(told(prefix, FRAMES.format(path=path) + error.format(path=path)))
    assert found is not None
    assert found.changed == ("lib/python3.11/site-packages/boxes/areas.py",)


def test_a_module_full_of_zeros_is_damaged(tmp_path: Path) -> None:
    prefix = prefix_of(tmp_path / "env", GOOD, "\0" * 17)
    text = FRAMES.format(path="/old/place/lib/python3.11/site-packages/boxes/areas.py")
    found = told(prefix, text + "SyntaxError: source code cannot contain null bytes")
    first = found.findings[0]
    assert (found.verdict, first.fault, first.confirmed) == ("env", "half-installed", True)
    assert "boxes/areas.py" in str(first.evidence)


def test_an_error_of_another_kind_hashes_no_module(tmp_path: Path) -> None:
    prefix = prefix_of(tmp_path / "env", GOOD, "def area(): pas(\n")
    text = FRAMES.format(path=site(prefix) / "boxes/areas.py") + "ValueError: 17"
    assert report(told(prefix, text)) is None


def test_a_library_of_another_size_counts_where_its_package_raised_the_error(tmp_path: Path) -> None:
    """A library that another release left behind; where nothing speaks of it, it is told and left alone."""
    other = build_library(tmp_path / "other.so", "int release(void) { return 2; }").read_bytes()
    prefix = prefix_of(tmp_path / "env", other, "def area(): pass\n")
    raised = FRAMES.format(path=f"{site(prefix)}/boxes/__init__.py") + "Exception: Version mismatch: 1.0 and 1.1\n"
    settings = Settings(stream=EventStream([]))

    def damaged(text: str) -> bool:
        facts = Facts(host=Host(), environment=observe_environment(prefix))
        found = diagnose_output(settings, load_all(), facts, text.encode().splitlines(), prefix=prefix, name="log")
        return any(item.playbook == "half-installed" and item.confirmed for item in found.every)

    assert damaged(raised)
    assert not damaged(raised.replace("boxes", "others"))


@pytest.mark.parametrize(
    ("statement", "program"),
    [
        ("from boxes.areas import area", False),
        ("from .areas import area", False),
        ("from . import areas, lids as others", False),
        ("import boxes.areas", True),
    ],
)
def test_a_module_of_zeros_is_found_by_the_import_that_python_shows(
    tmp_path: Path, statement: str, *, program: bool
) -> None:
    module = "def area(): pass\n"
    prefix = prefix_of(tmp_path / "env", GOOD, "\0" * len(module))
    frames = FRAMES.format(path=site(prefix) / "boxes/__init__.py").splitlines()
    shown = [*(frames[:2] if program else frames[:-1]), f"    {statement}"]
    found = report(told(prefix, "\n".join([*shown, "SyntaxError: source code string cannot contain null bytes"])))
    assert found is not None
    assert found.cut_off == ("lib/python3.11/site-packages/boxes/areas.py",)


@pytest.mark.parametrize(
    ("content", "damaged"),
    [(b"\xff" * 17, True), (b"def area(): '\xe4' \n", False), (b"# coding: rot13\n\n", False)],
    ids=["an erased block", "another encoding", "no encoding of texts"],
)
def test_what_an_editor_may_have_written_is_no_damage(tmp_path: Path, content: bytes, *, damaged: bool) -> None:
    prefix = prefix_of(tmp_path / "env", GOOD, "def area(): pass\n")
    path = site(prefix) / "boxes/areas.py"
    path.write_bytes(content)
    error = "SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
    found = report(told(prefix, f'Traceback (most recent call last):\n  File "{path}", line 1\n{error}'))
    assert found is not None
    place = ("lib/python3.11/site-packages/boxes/areas.py",)
    assert (found.cut_off, found.changed) == ((place, ()) if damaged else ((), place))
