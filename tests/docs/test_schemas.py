"""The shipped JSON schemas are those of the model, and what envmedic really prints is valid by them."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from envmedic.errors import InputError
from envmedic.model.base import from_json
from envmedic.model.facts import Facts, Host
from envmedic.model.playbook import Playbook
from tests.docs import generated
from tests.docs.schemas import DIALECT, DOCUMENTS, MODULES, UNNAMED, Schema, file_name
from tests.envs.nms_cuda.case import Case, build
from tests.support.forking import run_envmedic

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "envmedic" / "schemas"


def shipped(name: str) -> Schema:
    """A schema as its file has it."""
    return cast("Schema", json.loads((SHIPPED / file_name(name)).read_text(encoding="utf-8")))


def closed(name: str) -> Schema:
    """The shipped schema with every key that it does not name forbidden, and every one that it names required."""
    body = copy.deepcopy(shipped(name))
    for part in body["$defs"].values():
        part["additionalProperties"] = False
        part["required"] = list(part["properties"])
    return body


def mistakes(name: str, document: object) -> list[str]:
    """What is wrong with a document that envmedic printed."""
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(closed(name)).iter_errors(document)]


def test_files_made_from_the_code_are_up_to_date() -> None:
    stale = [str(path.relative_to(ROOT)) for path in generated.outdated(ROOT)]
    assert not stale, f"out of date: {stale}; run `python -m tests.docs`"


def test_a_changed_missing_or_superfluous_file_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    page = "# Title\n\n<!-- table: exit-codes -->\nold\n<!-- end -->\nrest\n"
    (tmp_path / "docs" / "page.md").write_text(page, encoding="utf-8")
    folder = tmp_path / "envmedic" / "schemas"
    folder.mkdir(parents=True)
    (folder / "error-1.json").write_text("{}\n", encoding="utf-8")
    (folder / "gone-1.json").write_text("{}\n", encoding="utf-8")
    found = generated.outdated(tmp_path)
    assert found[folder / "gone-1.json"] is None
    assert found[folder / "error-1.json"] == generated.schema_text("error")
    assert folder / "plan-1.json" in found
    text = found[tmp_path / "docs" / "page.md"]
    assert text is not None
    assert "| 130 | Interrupted" in text
    assert text.startswith("# Title\n")
    assert text.endswith("<!-- end -->\nrest\n")


def test_an_unknown_table_is_an_error() -> None:
    with pytest.raises(KeyError, match="nothing"):
        generated.filled("<!-- table: nothing -->\n\n<!-- end -->")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schemas_are_schemas(name: str) -> None:
    body = shipped(name)
    Draft202012Validator.check_schema(body)
    assert (body["$schema"], body["$id"]) == (DIALECT, f"urn:envmedic:{name}:1")


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name not in UNNAMED])
def test_documents_are_required_to_say_their_schema(name: str) -> None:
    body = shipped(name)
    part = body["$defs"][body["$ref"].rpartition("/")[2]]
    assert part["properties"]["schema"]["const"] == f"envmedic.{name}/1"
    assert "schema" in part["required"]


def test_every_schema_constant_of_the_model_has_a_schema_file() -> None:
    constants = {value for module in MODULES for name, value in vars(module).items() if name.endswith("_SCHEMA")}
    assert constants == {f"envmedic.{name}/1" for name in DOCUMENTS if name not in UNNAMED}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_field_of_a_document_is_described(name: str) -> None:
    body = shipped(name)
    top = body["$ref"].rpartition("/")[2]
    parts = {title: part for title, part in body["$defs"].items() if title == top or name in {"playbook", "event"}}
    missing = [
        f"{title}.{key}"
        for title, part in parts.items()
        for key, item in part["properties"].items()
        if "description" not in item and "const" not in item and title != "Outcome"
    ]
    assert missing == []


def test_the_first_version_stays_readable_when_fields_are_added() -> None:
    """Additive evolution: a reader of version 1 accepts a document with fields that it does not know."""
    later = {"schema": "envmedic.facts/1", "host": {"system": "linux", "quantum": True}, "moon": "full"}
    Draft202012Validator(shipped("facts")).validate(later)
    assert from_json(json.dumps(later), Facts, source="later").host == Host(system="linux")


@pytest.mark.parametrize("word", ["envmedic.facts/2", "envmedic.plan/1"])
def test_another_version_or_document_is_refused(word: str) -> None:
    document = {"schema": word, "host": {}}
    assert list(Draft202012Validator(shipped("facts")).iter_errors(document))
    with pytest.raises(InputError, match="not a valid Facts document") as caught:
        from_json(json.dumps(document), Facts, source="x.json")
    assert f"Invalid enum value '{word}'" in str(caught.value.cause)


@dataclass(frozen=True)
class Shell:
    """Runs the real command line on the miniature case."""

    case: Case
    variables: dict[str, str]

    def run(self, *arguments: str, code: int) -> Any:
        """The document that ``envmedic … --json`` prints."""
        command, *rest = arguments
        ended, out, err = run_envmedic([command, *rest, "--json"], self.variables, self.case.prefix.parent)
        assert ended == code, f"exit {ended}\n{out.decode()}\n{err.decode()}"
        return json.loads(out)

    def on_case(self, command: str, *arguments: str, code: int = 0) -> Any:
        """The document of a command on the case's environment."""
        return self.run(command, "-p", str(self.case.prefix), *arguments, code=code)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The case, broken, with a configuration and a cache of its own."""
    folder = tmp_path_factory.mktemp("documents")
    case = build(folder)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "ENVMEDIC_", "PYTHON"))
    }
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder / "config")}
    return Shell(case, {**kept, **case.index_variables(), **own, "PYTHONDONTWRITEBYTECODE": "1"})


LOG = "RuntimeError: operator torchvision::nms does not exist\n"


def test_what_looks_and_changes_nothing_prints_valid_documents(shell: Shell) -> None:
    log = shell.case.prefix.parent / "error.log"
    log.write_text(LOG, encoding="utf-8")
    assert mistakes("facts", shell.run("facts", "--host-only", code=0)) == []
    assert mistakes("facts", shell.on_case("facts")) == []
    one = shell.run("diagnose", "--log-only", str(log), code=1)
    assert one["verdict"] == "env"
    assert mistakes("diagnosis", one) == []
    several = shell.run("diagnose", "--log-only", str(log), str(log), code=1)
    assert len(several["diagnoses"]) == 2
    assert mistakes("diagnoses", several) == []
    assert mistakes("diagnosis", shell.on_case("diagnose", str(log), code=1)) == []
    for arguments in (("list",), ("show", "nms-cuda"), ("validate", str(ROOT / "playbooks" / "nms-cuda.yaml"))):
        document = shell.run("playbooks", *arguments, code=0)
        assert mistakes(document["schema"].partition("/")[0].removeprefix("envmedic."), document) == []


def test_errors_print_valid_documents(shell: Shell) -> None:
    missing = shell.run("facts", "-p", "/nowhere/env", code=2)
    assert (missing["schema"], missing["exit_code"]) == ("envmedic.error/1", 2)
    assert mistakes("error", missing) == []
    assert mistakes("error", shell.run("facts", "--no-such-option", code=2)) == []
    assert mistakes("error", shell.on_case("apply", code=3)) == []


def test_a_repair_prints_valid_documents(shell: Shell) -> None:
    events = shell.case.prefix.parent / "events.jsonl"
    wish = ("--playbook", "nms-cuda", "--no-gpu")
    plan = shell.on_case("plan", *wish)
    assert [step["type"] for step in plan["steps"]] == ["purge", "install"]
    assert mistakes("plan", plan) == []
    assert mistakes("verification", shell.on_case("verify", "--no-gpu", code=1)) == []
    record = shell.on_case("apply", *wish, "--yes", "--events", str(events))
    assert (record["state"], record["environment"]) == ("done", "repaired")
    assert mistakes("record", record) == []
    assert mistakes("history", shell.on_case("history")) == []
    assert mistakes("diff", shell.on_case("diff")) == []
    assert mistakes("verification", shell.on_case("verify", "--no-gpu")) == []
    assert mistakes("record", shell.on_case("undo", "--yes")) == []
    assert mistakes("recovery", shell.on_case("recover")) == []
    assert mistakes("history", shell.on_case("prune", "--yes")) == []
    lines = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    assert {"transaction-started", "step-finished", "check-finished"} <= {line["data"]["type"] for line in lines}
    assert [problem for line in lines for problem in mistakes("event", line)] == []
    assert [line["sequence"] for line in lines] == list(range(len(lines)))


def test_a_damaged_document_is_not_valid(shell: Shell) -> None:
    facts = shell.run("facts", "--host-only", code=0)
    assert mistakes("facts", facts | {"more": 1})
    assert mistakes("facts", {key: value for key, value in facts.items() if key != "schema"})
    assert mistakes("facts", facts | {"host": facts["host"] | {"glibc": 2.35}})


def test_the_command_prints_the_shipped_schema_of_playbooks(shell: Shell) -> None:
    assert shell.run("playbooks", "schema", code=0) == shipped("playbook")


@pytest.mark.parametrize("path", sorted((ROOT / "playbooks").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_playbooks_are_valid_by_the_schema(path: Path) -> None:
    document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    validator = Draft202012Validator(shipped("playbook"))
    assert [error.message for error in validator.iter_errors(document)] == []
    assert list(validator.iter_errors(document | {"stps": []}))
    assert list(validator.iter_errors(document | {"steps": [{"step": "purge", "leftover": True}]}))
    assert isinstance(msgspec.convert(document, Playbook), Playbook)
