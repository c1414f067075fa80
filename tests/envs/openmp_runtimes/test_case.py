"""Two OpenMP runtimes end the program as the real ones do, and without the needless one it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.openmp_runtimes.case import build
from tests.support.native_case import NativeCase

pytestmark = pytest.mark.long


@pytest.fixture
def broken(tmp_path: Path) -> NativeCase:
    """The environment, for a test that may change it."""
    return build(tmp_path)


def test_the_second_runtime_ends_the_program(broken: NativeCase) -> None:
    done = broken.run()
    assert done.code == -6
    assert done.err.startswith("OMP: Error #15: Initializing libiomp5.so, but found libiomp5.so already initialized.")


def test_facts_alone_blame_nobody(broken: NativeCase) -> None:
    done = broken.envmedic("diagnose", "-p", str(broken.prefix), "--json")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.told()
    found = {
        item["path"]: (item["kind"], item["distribution"]) for item in done.document["facts"]["environment"]["openmp"]
    }
    site = next(path.partition("ctranslate2.libs")[0] for path in found if "ctranslate2.libs" in path)
    assert found == {
        "lib/libiomp5.so": ("libiomp5", "intel-openmp"),
        f"{site}ctranslate2.libs/libiomp5-1a2b3c4d.so": ("libiomp5", "ctranslate2"),
        f"{site}scipy.libs/libgomp-a34b3233.so.1.0.0": ("libgomp", "scipy"),
    }


def test_the_runtime_that_nothing_requires_is_removed(broken: NativeCase) -> None:
    done = broken.apply("--log", str(broken.log()))
    assert done.code == 0, done.told()
    assert [(item["kind"], item["name"]) for item in done.document["plan"]["changes"]] == [("remove", "intel-openmp")]
    proof = next(item for item in done.document["checks_before"] if item["check"].startswith("import-sequence "))
    assert (proof["status"], proof["signal"]) == ("crash", "SIGABRT")
    assert broken.run().out == "threads: 1 2\n"


def test_one_that_is_required_stays_and_the_hint_is_no_variable(tmp_path: Path) -> None:
    case = build(tmp_path, requiring=True)
    done = case.apply("--log", str(case.log()))
    assert done.code == 1, done.told()
    assert (case.prefix / "lib" / "libiomp5.so").exists()
    assert case.run().code == -6
