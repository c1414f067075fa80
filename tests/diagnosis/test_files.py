"""What is told of damaged, doubled and overwritten files."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.diagnosis.areas.file_damage import derive
from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.findings import diagnose
from envmedic.model.facts import (
    Distribution,
    DistributionFiles,
    Environment,
    Facts,
    Host,
    Interpreter,
    Origin,
)
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all
from envmedic.render.documents.diagnosis import sureness
from tests.diagnosis.helpers import SITE, distribution


def derived(*installed: Distribution, **more: object) -> Derived:
    """The facts of an environment in which `installed` are."""
    return derive(Facts(host=Host(), environment=environment(*installed, **more)))


def environment(*installed: Distribution, **more: object) -> Environment:
    """An environment in which `installed` are."""
    names = [item.name for item in installed]
    found = Environment(
        prefix="/env",
        real_prefix="/env",
        kind="venv",
        interpreter=Interpreter(path="/env/bin/python", starts=True, version="3.11.7"),
        distributions=installed,
        duplicates=tuple(sorted({name for name in names if names.count(name) > 1})),
        files=(),
    )
    return msgspec.structs.replace(found, **more)


def report(item: Distribution, matching: int, *, missing: int = 0) -> DistributionFiles:
    """Ten files are recorded of `item`."""
    return DistributionFiles(
        distribution=item.name,
        version=item.version,
        metadata_path=item.metadata_path,
        recorded=10,
        matching=matching,
        missing=tuple(f"{SITE}/{item.name}/m{number}.py" for number in range(missing)),
        missing_count=missing,
    )


OLD, NEW = distribution("numpy", "1.26.4"), distribution("numpy", "2.1.0")


def test_copies_are_not_damaged_files() -> None:
    reports = (report(OLD, 2), report(NEW, 10))
    found = derived(OLD, NEW, distribution("app", "1", "numpy<2"), files=reports)
    assert found["files.damaged"] == ()
    assert "1.26.4 is what other distributions ask for" in str(found["duplicates.reasons"])


def test_damage_is_told_in_a_sentence_and_by_what_can_mend_it() -> None:
    source = msgspec.structs.replace(distribution("mine", "0.1"), origin=Origin(kind="directory", url="file:///src"))
    found = derived(OLD, source, files=(report(OLD, 8, missing=2), report(source, 9, missing=1)))
    assert (found["files.damaged"], found["files.beyond-index"]) == (("numpy==1.26.4",), ("mine",))
    assert found["files.problems"] == (
        f"numpy 1.26.4: 2 of 10 files missing, such as {SITE}/numpy/m0.py",
        f"mine 0.1: 1 of 10 files missing: {SITE}/mine/m0.py",
    )
    assert (found["files.missing-count"], found["files.first-missing"]) == (3, f"{SITE}/numpy/m0.py")


def test_what_was_not_looked_at_is_unknown() -> None:
    assert "files.damaged" not in derived(OLD, files=None)


def test_a_list_of_files_that_installers_always_write_is_missed() -> None:
    without = msgspec.structs.replace(OLD, has_record=False)
    assert derived(without)["files.unrecorded"] == ("numpy==1.26.4",)
    assert derived(msgspec.structs.replace(without, owner="other"))["files.unrecorded"] == ()


@pytest.mark.parametrize(
    ("file", "owner", "first"),
    [
        ("core", "pip", "`uv pip install --reinstall --no-deps idna==3.20`"),
        ("core", "conda", "install idna==3.20 again with conda"),
        ("other", "pip", None),
    ],
)
def test_a_changed_module_that_the_error_names_goes_first(file: str, owner: str, first: str | None) -> None:
    """Of the right size, with other bytes: what a text says of a name is no fault of releases then."""
    item = msgspec.structs.replace(distribution("idna", "3.20"), owner=owner)
    changed = msgspec.structs.replace(report(item, 9), changed=(f"{SITE}/idna/{file}.py",), changed_count=1)
    text = f"""Traceback (most recent call last):
  File "/env/{SITE}/idna/__init__.py", line 1, in <module>
    from .core import encode
ImportError: cannot import name 'encode' from 'idna.core' (/env/{SITE}/idna/core.py)"""
    facts = Facts(host=Host(), environment=environment(item, files=(changed,)))
    found = diagnose(
        read_text(text.encode().splitlines(), load_all()), facts, load_all(), prefix="/env", log="log", here=True
    )
    best = found.findings[0]
    assert found.verdict == "env"
    assert (best.latent, best.fault == "half-installed") == (first is not None,) * 2
    assert first is None or best.advice == (f"Unless the change was meant: {first}",)
    told = {item.latent: sureness(item).rpartition("; ")[2] for item in found.findings}
    assert told.get(True) == ("the text names it" if first is not None else "nothing is known to fail by it")
