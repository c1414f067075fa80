"""What every repair of a package has to prove: found by facts, mended by the playbook, undone to the byte."""

from __future__ import annotations

from pathlib import Path

from envmedic.diagnosis.findings import diagnose
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import Facts, Host
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import NO_TEXT, FactValue
from envmedic.playbook.schema.loader import load_all
from envmedic.probe.environment import observe_environment
from tests.real.manifest import manifest
from tests.support.native_case import SUMMARY, NativeCase, settled
from tests.support.wheels import Wheel, make_wheel

Changes = list[tuple[str, str | None, str | None]]


def pure(directory: Path, name: str, version: str, code: str, *, requires: tuple[str, ...] = ()) -> Wheel:
    """A distribution with one package of its own name in pure Python."""
    module = name.replace("-", "_")
    files = {f"{module}/__init__.py": f'"""{SUMMARY}."""\n\n__version__ = {version!r}\n{code}'}
    return make_wheel(directory, name, version, files=files, requires=requires, summary=SUMMARY)


def torch(directory: Path, version: str = "2.5.1", cuda: str = "12.4", requires: tuple[str, ...] = ()) -> Wheel:
    """A miniature torch without libraries, which says what the real one says of its build."""
    label = "cu" + cuda.replace(".", "")
    files = {
        "torch/__init__.py": f'"""{SUMMARY}."""\n\nfrom torch.version import __version__\n',
        "torch/version.py": f"__version__ = '{version}+{label}'\ndebug = False\ncuda = {cuda!r}\ngit_version = '0'\nhip = None\n",
    }
    return make_wheel(directory, "torch", version, files=files, requires=requires, summary=SUMMARY)


def facts_of(case: NativeCase) -> dict[str, FactValue]:
    """The flat facts of the environment as it is, on a machine without GPU."""
    return dict(derive(Facts(host=Host(), environment=observe_environment(case.prefix))))


def found_by_facts(case: NativeCase) -> Diagnosis:
    """What is found in the environment without a text."""
    facts = Facts(host=Host(), environment=observe_environment(case.prefix))
    found = diagnose(NO_TEXT, facts, load_all(), prefix=str(case.prefix), log=None)
    if found.verdict == "healthy":
        settled(case)
    return found


def prove_repair(case: NativeCase, playbook: str, changes: Changes, prints: str, *, log: bool = True) -> None:
    """The program fails, envmedic changes exactly `changes`, the program prints `prints`, undo brings all back."""
    arguments = ("--log", str(case.log())) if log else ()
    before = manifest(case.prefix)
    done = case.apply(*arguments)
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert plan["playbook"] == playbook
    assert [(item["name"], item["before"], item["after"]) for item in plan["changes"]] == changes
    assert case.run().out == prints
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before
