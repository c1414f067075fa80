"""JSON schemas of every document, made from the model; ``envmedic/schemas`` holds them as files.

msgspec gives types, defaults and what is required. Added here: ``$schema`` and ``$id``, constants where
only one value is possible, and the model's attribute docstrings as descriptions.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

import msgspec

from envmedic.model import (
    checks,
    conda,
    consumers,
    events,
    facts,
    findings,
    lock,
    pins,
    plan,
    playbook,
    program,
    record,
)
from envmedic.model.answers import (
    compatibility,
    content,
    data,
    environments,
    explanation,
    fit,
    fleet,
    gpu_health,
    guard,
    playbook_trial,
    report,
    rollout,
    witness,
)
from envmedic.model.base import Model
from envmedic.playbook.schema import library

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 1
MODULES: tuple[ModuleType, ...] = (
    checks,
    compatibility,
    conda,
    consumers,
    content,
    data,
    environments,
    events,
    explanation,
    facts,
    findings,
    fit,
    fleet,
    gpu_health,
    guard,
    report,
    rollout,
    library,
    lock,
    pins,
    plan,
    playbook,
    playbook_trial,
    program,
    record,
    witness,
)

DOCUMENTS: Mapping[str, type[Model]] = MappingProxyType({
    "diagnosis": findings.Diagnosis,
    "diagnoses": findings.Diagnoses,
    "plan": plan.Plan,
    "record": record.Record,
    "verification": checks.Verification,
    "history": record.History,
    "diff": record.Difference,
    "recovery": record.Recovery,
    "facts": facts.Facts,
    "content": content.Content,
    "envs": environments.Environments,
    "check": compatibility.Compatibility,
    "data": data.Data,
    "fits": fit.Fits,
    "guard": guard.Guard,
    "fleet-survey": fleet.Survey,
    "fleet-diagnosis": fleet.FleetDiagnosis,
    "fleet-drift": fleet.Drift,
    "fleet-status": fleet.FleetStatus,
    "fleet-plan": rollout.FleetPlan,
    "fleet-rollout": rollout.Rollout,
    "witness": witness.WitnessReport,
    "question": witness.WitnessQuestion,
    "answer": witness.WitnessAnswer,
    "report": report.Report,
    "lock": lock.Lock,
    "explain": explanation.Explanation,
    "error": record.ErrorDocument,
    "event": events.Event,
    "playbook": playbook.Playbook,
    "playbooks": library.Listing,
    "loaded-playbook": playbook.LoadedPlaybook,
    "validation": playbook.Validation,
    "playbook-test": playbook_trial.PlaybookTest,
})  # fmt: skip
"""Every document by its name."""

UNNAMED = frozenset({"event", "playbook"})
"""Those without a `schema` field: a line of an event stream, and a file that people write."""


def file_name(name: str) -> str:
    """The file of a document's schema in ``envmedic/schemas``."""
    return f"{name}-{VERSION}.json"


def schema(name: str) -> Schema:
    """The JSON schema of the document called `name`."""
    head = {"$schema": DIALECT, "$id": f"urn:envmedic:{name}:{VERSION}"}
    body: Schema = _visited(msgspec.json.schema(DOCUMENTS[name]), _with_constants)
    for title, part in body["$defs"].items():
        _describe(part, _models()[title])
        if "schema" in part["properties"]:
            part["required"] = ["schema", *part.get("required", [])]
    return head | body


def _visited(value: Any, visit: Callable[[Schema], Schema]) -> Any:
    if isinstance(value, dict):
        return visit({key: _visited(item, visit) for key, item in value.items()})
    return [_visited(item, visit) for item in value] if isinstance(value, list) else value


def _with_constants(part: Schema) -> Schema:
    """`part` with ``const`` for a choice of one."""
    choices = part.get("enum")
    if not isinstance(choices, list) or len(choices) != 1:
        return part
    return {"const": choices[0]} | {key: value for key, value in part.items() if key not in {"enum", "default"}}


@functools.cache
def _models() -> dict[str, type[Model]]:
    found = [item for module in MODULES for item in vars(module).values() if isinstance(item, type)]
    return {item.__name__: item for item in found if issubclass(item, Model)}


def _describe(part: Schema, model: type[Model]) -> None:
    """Set the descriptions of a struct and of its fields."""
    part["description"] = _plain(part["description"])
    described = attribute_docstrings(model)
    for field in msgspec.structs.fields(model):
        text = described.get(field.name)
        if text is not None:
            part["properties"][field.encode_name]["description"] = _plain(text)


@functools.cache
def attribute_docstrings(kind: type) -> dict[str, str]:
    """The string that stands below each attribute in the source of the class `kind`."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for before, after in zip(definition.body, definition.body[1:], strict=False):
        name = _assigned(before)
        if name and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[name] = inspect.cleandoc(str(after.value.value))
    return found


def _assigned(statement: ast.stmt) -> str | None:
    """The name that an assignment gives a value, None for other statements."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return next((target.id for target in targets if isinstance(target, ast.Name)), None)


def _plain(text: str) -> str:
    """A docstring on one line, with single backquotes."""
    return " ".join(text.split()).replace("``", "`")
