"""Imports run side by side without changing what each of them shows, and say when a failure proves little."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from tests.kernels.driving import STAND_IN, drive, statuses

MEET = """
import os, time
open({mine!r}, "w").close()
deadline = time.monotonic() + 20
while not os.path.exists({other!r}):
    assert time.monotonic() < deadline, "alone"
    time.sleep(0.01)
"""
EXCLUSIVE = """
import fcntl, time
file = open({lock!r}, "w")
fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
time.sleep(0.5)
"""
NOTED = """
import os, time
notes = os.open({notes!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(notes, b"+")
time.sleep(0.2)
os.write(notes, b"-")
"""


def write(directory: Path, **modules: str) -> Path:
    for name, source in modules.items():
        (directory / f"{name}.py").write_text(source)
    return directory


def imports(path: Path, *names: str, workers: int) -> dict[str, str]:
    checks = ",".join(f"import:{name}" for name in names)
    found = statuses(drive("--checks", checks, "--workers", str(workers), path=path))
    return {check.removeprefix("import "): status for (check, _), status in found.items()}


def test_names_are_imported_at_the_same_time(tmp_path: Path) -> None:
    one, other = str(tmp_path / "1"), str(tmp_path / "2")
    write(tmp_path, a=MEET.format(mine=one, other=other), b=MEET.format(mine=other, other=one))
    assert imports(tmp_path, "a", "b", workers=2) == {"a": "pass", "b": "pass"}


def test_no_more_than_so_many_at_a_time(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    names = [f"m{number}" for number in range(9)]
    write(tmp_path, **dict.fromkeys(names, NOTED.format(notes=str(notes))))
    assert set(imports(tmp_path, *names, workers=3).values()) == {"pass"}
    running = most = 0
    for sign in notes.read_text():
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert 1 < most <= 3


def test_what_fails_only_beside_another_passes(tmp_path: Path) -> None:
    source = EXCLUSIVE.format(lock=str(tmp_path / "lock"))
    write(tmp_path, a=source, b=source, c="raise ImportError('always')")
    assert imports(tmp_path, "a", "b", "c", workers=3) == {"a": "pass", "b": "pass", "c": "fail"}


def test_a_hang_holds_up_nothing_else_and_is_waited_for_once(tmp_path: Path) -> None:
    write(tmp_path, hangs="import time; time.sleep(600)", fine="", crash="import os; os.abort()")
    started = time.monotonic()
    found = drive(
        "--checks", "import:hangs,import:fine,import:crash", "--workers", "2", "--timeout", "2", path=tmp_path
    )
    assert {check: outcome["status"] for (check, _), outcome in found.items()} == {
        "import hangs": "timeout", "import fine": "pass", "import crash": "crash",
    }  # fmt: skip
    assert found["import crash", None]["signal"] == "SIGABRT"
    assert time.monotonic() - started < 300


def test_a_child_holds_nothing_of_its_siblings(tmp_path: Path) -> None:
    source = "import os\nopen({!r}, 'w').write(str(len(os.listdir('/proc/self/fd'))))\nimport time; time.sleep(0.3)"
    names = [f"m{number}" for number in range(5)]
    write(tmp_path, **{name: source.format(str(tmp_path / f"{name}.fds")) for name in names})
    imports(tmp_path, *names, workers=5)
    assert len({path.read_text() for path in tmp_path.glob("*.fds")}) == 1


EXCUSED = {
    "plain": "import nowhere_to_be_found",
    "nested": "import nowhere_to_be_found.inner",
    "told": "try:\n    import nowhere_to_be_found\nexcept ImportError as error:\n    raise ImportError('pip install it') from error",
    "handled": "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    raise RuntimeError('needs it')",
}
BROKEN = {
    "loader": "raise ImportError('libfoo.so.1: cannot open shared object file')",
    "own": "import own_package_parts; import own.parts",
    "old": "import json.not_in_this_release",
    "python": "raise ModuleNotFoundError(\"No module named '_bz2'\", name='_bz2')",
    "hidden": "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    raise ValueError('numpy.dtype size changed') from None",
    "nameless": "raise ModuleNotFoundError('something')",
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Outcomes by name."""
    directory = write(tmp_path_factory.mktemp("failing"), **EXCUSED, **BROKEN, leaves="raise SystemExit(2)")
    (directory / "own_package_parts.py").write_text("")
    names = [*EXCUSED, *BROKEN, "leaves"]
    found = drive("--checks", ",".join(f"import:{name}" for name in names), "--workers", "4", path=directory)
    return {check.removeprefix("import "): outcome for (check, _), outcome in found.items()}


@pytest.mark.parametrize("name", EXCUSED)
def test_what_another_package_lacks_is_an_excuse(failing: dict[str, dict[str, object]], name: str) -> None:
    assert (failing[name]["status"], failing[name]["excuse"]) == ("fail", "nowhere_to_be_found is not installed")


@pytest.mark.parametrize("name", BROKEN)
def test_what_ought_to_be_there_is_none(failing: dict[str, dict[str, object]], name: str) -> None:
    assert (failing[name]["status"], failing[name]["excuse"]) == ("fail", "")


def test_a_script_is_no_broken_module(failing: dict[str, dict[str, object]]) -> None:
    assert failing["leaves"]["excuse"] == "it is a script"


COUNTED = "open({notes!r}, 'a').write('{name} ')\n"
WRAPPED = (
    "raise RuntimeError('operator torchvision::nms does not exist')",
    "import m0",
    "try:\n    import m0\nexcept RuntimeError as error:\n    raise ImportError('cannot import m2') from error",
    "try:\n    import m1\nexcept RuntimeError:\n    raise ValueError('during another one')",
)


def counted(directory: Path, **modules: str) -> Path:
    """Modules that note each of their runs."""
    notes = directory / "notes"
    write(directory, **{name: COUNTED.format(notes=str(notes), name=name) + text for name, text in modules.items()})
    return notes


def test_of_failures_with_one_root_error_one_is_tried_again(tmp_path: Path) -> None:
    sources = {f"m{number}": source for number, source in enumerate(WRAPPED)}
    notes = counted(tmp_path, other="raise KeyError('of its own')", **sources)
    found = imports(tmp_path, *sources, "other", workers=2)
    assert set(found.values()) == {"fail"}
    ran = notes.read_text().split()
    assert ran.count("other") == 2
    # each once, and once more the first that failed; m0 is a part of all of them
    assert ran.count("m0") == len(sources) + 1


def test_what_is_tried_again_runs_side_by_side(tmp_path: Path) -> None:
    again = "import os\nif not os.path.exists({mark!r}):\n    open({mark!r}, 'w').close()\n    raise {error}\n" + MEET
    one, other = str(tmp_path / "1"), str(tmp_path / "2")
    write(
        tmp_path,
        a=again.format(mark=str(tmp_path / "a"), error="KeyError('a')", mine=one, other=other),
        b=again.format(mark=str(tmp_path / "b"), error="ValueError('b')", mine=other, other=one),
    )
    assert imports(tmp_path, "a", "b", workers=2) == {"a": "pass", "b": "pass"}


def test_what_the_first_of_its_kind_passes_is_tried_for_each(tmp_path: Path) -> None:
    source = EXCLUSIVE.format(lock=str(tmp_path / "lock"))
    names = ("a", "b", "c", "d")
    write(tmp_path, **dict.fromkeys(names, source))
    assert set(imports(tmp_path, *names, workers=4).values()) == {"pass"}


def once(path: Path, checks: dict[str, tuple[str, ...]], workers: int = 2) -> dict[str, str]:
    """Statuses of a session in which torch is imported once."""
    requests = [
        {"index": index, "name": name, "arguments": arguments, "gpu": False, "timeout_s": 60}
        for index, (name, arguments) in enumerate(checks.items())
    ]
    spec = json.dumps({"requests": requests, "workers": workers, "torch_once": True})
    return {check: status for (check, _), status in statuses(drive("--spec", spec, path=path)).items()}


@pytest.mark.parametrize("checks", [{}, {"torchvision-dispatch": ()}])
def test_in_place_torch_is_imported_once_for_everything(tmp_path: Path, checks: dict[str, tuple[str, ...]]) -> None:
    path, notes = tmp_path / "path", tmp_path / "notes"
    shutil.copytree(STAND_IN, path)
    with (path / "torch" / "__init__.py").open("a") as module:
        module.write(f"open({str(notes)!r}, 'a').write('torch ')\n")
    write(path, functorch="import torch", user="import torch, torchvision", bad="import torch\nraise KeyError('bad')")
    names = ("torch", "torchvision", "functorch", "user", "bad")
    found = once(path, {"import": names, **checks})
    assert {found.pop(f"import {name}") for name in names if name != "bad"} == {"pass"}
    assert found.pop("import bad") == "fail"
    assert set(found.values()) <= {"pass"}
    assert notes.read_text().split() == ["torch"]


def test_without_a_torch_that_imports_the_others_are_imported_alone(tmp_path: Path) -> None:
    write(tmp_path, torch="raise ImportError('broken')", plain="", user="import torch")
    found = once(tmp_path, {"import": ("torch", "plain", "user")})
    assert found == {"import torch": "fail", "import plain": "pass", "import user": "fail"}


@pytest.mark.parametrize("same", [True, False])
def test_before_a_repair_a_companion_that_fails_twice_by_one_error_is_not_tried_a_third_time(
    tmp_path: Path, *, same: bool
) -> None:
    """On top of torch and in a process of its own, side by side; another error there is tried again."""
    path, notes = tmp_path / "path", tmp_path / "notes"
    shutil.copytree(STAND_IN, path)
    words = "'operator torchvision::nms does not exist'" if same else "f'failed in {os.getpid()}'"
    fails = f"import os\nopen({str(notes)!r}, 'a').write('%d\\n' % os.getpid())\nraise RuntimeError({words})\n"
    (path / "torchvision" / "__init__.py").write_text(fails)
    names = {"import": ["torch", "torchvision"], "torchvision-dispatch": []}
    requests = [
        {"index": index, "name": name, "arguments": arguments, "gpu": False, "timeout_s": 60.0}
        for index, (name, arguments) in enumerate(names.items())
    ]
    spec = {"requests": requests, "no_gpu": "none", "workers": 2, "apart": True}
    found = statuses(drive("--spec", json.dumps(spec), path=path))
    assert (found["import torch", None], found["import torchvision", None]) == ("pass", "fail")
    assert len(notes.read_text().split()) == (2 if same else 3)
