"""Two packages at odds without a word in their metadata: which one moves is found by trying, in the clone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure
from tests.support.venvs import site_packages

pytestmark = pytest.mark.long

CALLS = "from transport import Client\n\ndef fetch():\n    return Client({0})\n"
OLD, NEW = (
    "class Client:\n    def __init__(self, proxies=None): pass\n",
    "class Client:\n    def __init__(self): pass\n",
)


def build(room: Path, reader: dict[str, str], transport: dict[str, str], program: str) -> NativeCase:
    """An environment with the first of these releases of the reader, and the last one of transport."""
    wheels = [pure(room / "wheels", "transport", version, text) for version, text in transport.items()]
    wheels += [
        pure(room / "wheels", "reader", version, text, requires=("transport",)) for version, text in reader.items()
    ]
    return build_native(room, wheels, [f"reader=={next(iter(reader))}", f"transport=={list(transport)[-1]}"], program)


def moved(case: NativeCase, *arguments: str) -> list[tuple[str, str, str]]:
    """What a repair moves that proved itself; undo brings every byte back."""
    before = manifest(case.prefix)
    done = case.apply(*arguments)
    assert (done.code, case.run().code) == (0, 0), done.told()
    plans = (done.document["plan"], *done.document["extensions"])
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before
    return [(item["name"], item["before"], item["after"]) for plan in plans for item in plan["changes"]]


def test_a_call_that_is_refused_moves_the_caller_to_a_newer_release(tmp_path: Path) -> None:
    reader = {"1.0": CALLS.format("proxies=1"), "1.1": CALLS.format(""), "2.0": CALLS.format("")}
    case = build(tmp_path, reader, {"1.0": OLD, "2.0": NEW}, "import reader\nreader.fetch()\n")
    # no import fails: the files of both tell that the call is made and refused, and is made no more
    assert moved(case, "--log", str(case.log())) == [("reader", "1.0", "1.1")]


def test_where_the_caller_calls_still_what_refuses_goes_back(tmp_path: Path) -> None:
    calls = CALLS.format("proxies=1")
    case = build(tmp_path, {"1.0": calls, "1.1": calls}, {"1.0": OLD, "2.0": NEW}, "import reader\nreader.fetch()\n")
    assert moved(case, "--log", str(case.log())) == [("transport", "2.0", "1.0")]


def test_the_other_ways_stand_in_the_plan_and_can_be_asked_for(tmp_path: Path) -> None:
    asks, has = "from transport import Pool\n", "class Pool: pass\n"
    case = build(tmp_path, {"1.0": asks, "1.1": ""}, {"1.9": has, "2.0": "class Other: pass\n"}, "import reader\n")
    plan = case.envmedic("plan", "-p", str(case.prefix), "--json", "--log", str(case.log()))
    others = [item["title"] for item in plan.document["alternatives"] if item["feasible"]]
    assert others == ["transport<2,>=1"]
    way = ("--way", "transport<2,>=1", "--log", str(case.log()))
    assert moved(case, *way) == [("transport", "2.0", "1.9")]
    none = case.envmedic("plan", "-p", str(case.prefix), "--way", "magic", "--log", str(case.log()))
    assert (none.code, "transport<2,>=1" in none.err) == (2, True), none.told()


def test_where_no_caller_fits_the_other_goes_back(tmp_path: Path) -> None:
    asks = "from transport import Pool\n"
    has, lacks = "class Pool: pass\n", "class Other: pass\n"
    case = build(tmp_path, {"1.0": asks, "1.1": asks}, {"1.9": has, "2.0": lacks}, "import reader\n")
    assert moved(case, "--log", str(case.log())) == [("transport", "2.0", "1.9")]


def test_a_release_that_does_not_state_its_limit_yet_is_no_way_out(tmp_path: Path) -> None:
    """As flask 1.1.2 beside jinja2 3: it moves least, and asks for the same."""
    asks = "from transport import Pool\nimport tool\n"
    wheels = [
        pure(tmp_path / "wheels", "reader", "1.0", asks, requires=("transport", "tool")),
        pure(tmp_path / "wheels", "reader", "1.1", asks, requires=("transport<2,>=1", "tool<2")),
        pure(tmp_path / "wheels", "transport", "1.9", "class Pool: pass\n"),
        pure(tmp_path / "wheels", "transport", "2.0", "class Other: pass\n"),
        pure(tmp_path / "wheels", "tool", "1.0", ""),
        pure(tmp_path / "wheels", "tool", "2.0", ""),
    ]
    case = build_native(tmp_path, wheels, ["reader==1.1", "transport==2.0", "tool==2.0"], "import reader\n")
    log = tmp_path / "last-line.log"
    log.write_text("ImportError: cannot import name 'Pool' from 'transport'\n")
    done = case.apply("--log", str(log))
    assert (done.code, case.run().code) == (0, 0), done.told()
    assert len(done.document["rounds"]) == 1
    changes = [(item["name"], item["before"], item["after"]) for item in done.document["plan"]["changes"]]
    assert sorted(changes) == [("tool", "2.0", "1.0"), ("transport", "2.0", "1.9")]


def test_what_fails_behind_the_repaired_failure_is_repaired_with_it(tmp_path: Path) -> None:
    """As flask 1.1.4, jinja2 2 and markupsafe 2.1: the older release that is needed was made for an older one itself."""
    room = tmp_path / "wheels"
    wheels = [
        pure(room, "reader", "1.0", "from transport import Pool\n", requires=("transport<2",)),
        pure(room, "transport", "1.9", "from ink import soft\nclass Pool: pass\n", requires=("ink",)),
        pure(room, "transport", "2.0", "class Other: pass\n", requires=("ink",)),
        pure(room, "ink", "1.0", "soft = 1\n"),
        pure(room, "ink", "2.0", "hard = 1\n"),
    ]
    case = build_native(tmp_path, wheels, ["reader==1.0", "transport==2.0", "ink==2.0"], "import reader\n")
    assert moved(case, "--log", str(case.log())) == [("transport", "2.0", "1.9"), ("ink", "2.0", "1.0")]


def test_another_way_for_a_failure_behind_the_repaired_one_is_tried_too(tmp_path: Path) -> None:
    """Where the files do not tell that the name is lacking: the failure before it was repaired does."""
    asks, room = "import tool\nfrom transport import Pool\n", tmp_path / "wheels"
    wheels = [pure(room, "reader", version, asks, requires=("transport", "tool")) for version in ("1.0", "1.1")]
    wheels.append(pure(room, "transport", "1.9", "class Pool: pass\n"))
    lacks = "# Pool is gone\nclass Other: pass\n"
    wheels += [pure(room, "transport", version, lacks) for version in ("2.0", "2.1")]
    wheels.append(pure(room, "tool", "1.0", ""))
    case = build_native(tmp_path, wheels, ["reader==1.0", "transport==2.0", "tool"], "import reader\n")
    for path in site_packages(case.prefix).glob("tool*"):
        shutil.rmtree(path)
    assert moved(case, "--log", str(case.log())) == [("tool", None, "1.0"), ("transport", "2.0", "1.9")]
