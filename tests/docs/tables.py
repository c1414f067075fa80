"""The tables of ``docs/`` that repeat what the code says: facts, operators, checks, documents, exit codes, modules."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import envmedic
from envmedic import errors
from envmedic.analysis.build_tools import Toolchain
from envmedic.analysis.build_variables import BuildVariables
from envmedic.analysis.flat import name_of
from envmedic.compat import tables as compatibility_tables
from envmedic.diagnosis import vocabulary as diagnosis_vocabulary
from envmedic.diagnosis.areas import AREAS
from envmedic.locks import formats
from envmedic.locks.formats import LOCK_FORMATS
from envmedic.model import conda, lock
from envmedic.model.registries import installers, modes
from envmedic.model.registries.check_kinds import CHECK_NAMES, GPU_CHECKS, PROFILES, CheckKind
from envmedic.model.registries.faults import FaultClass
from envmedic.model.registries.remedies import FORMER_FACTS, REMEDIES
from envmedic.model.vocabulary import names as vocabulary
from envmedic.model.vocabulary.names import FACTS, PACKAGE_FACTS, PLAYBOOK_CHECKS
from envmedic.playbook.schema.conditions import OPERATORS
from tests.docs.commands import reference
from tests.docs.schemas import DOCUMENTS, UNNAMED, Schema, attribute_docstrings, file_name, schema

PACKAGE = Path(envmedic.__file__).parent


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of GitHub's Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """`text` as code; nothing stays nothing."""
    return f"`{text}`" if text else ""


def facts() -> str:
    """Every fact that a playbook may ask for."""
    rows = ((code(kind.name), kind.type, kind.doc) for kind in (*FACTS.values(), *PACKAGE_FACTS))
    return table(["fact", "type", "meaning"], rows)


def operators() -> str:
    """What each type of fact can be compared by."""
    rows = ((kind, ", ".join(map(code, sorted(words)))) for kind, words in OPERATORS.items())
    return table(["type", "operators"], rows)


def checks() -> str:
    """Every check, what it proves, and who may name it."""
    rows = [
        (
            code(name),
            meaning,
            "yes" if name in GPU_CHECKS else "",
            ", ".join(profile for profile, names in PROFILES.items() if name in names),
            "yes" if name in PLAYBOOK_CHECKS else "",
        )
        for name, meaning in CHECK_NAMES.items()
    ]
    return table(["check", "what it proves", "on GPUs", "profiles", "in playbooks"], rows)


def lock_formats() -> str:
    """Every format of lock files, with what reads it."""
    rows = [(code(form.name), form.holds, form.read_by) for form in LOCK_FORMATS.values()]
    return table(["`--format`", "holds", "is read by"], rows)


SHIPPED: Mapping[str, str] = MappingProxyType({
    "torch_releases": "releases of torch, torchvision, torchaudio and triton: requirements, Pythons, variants, code for GPUs",
    "couplings": "what releases of libraries that are bound to torch need of it, and NumPy",
    "cuda_driver": "CUDA toolkits: the oldest drivers, compilers",
    "gpu_arch": "GPUs: compute capabilities, and which code runs on which",
    "extensions": "what builds of libraries take, and where their wheels are",
    "conda_packages": "builds of torch on conda channels: packages, build strings, selectors",
    "consumers": "what else computes by NVIDIA's libraries, and which of them it opens",
})  # fmt: skip
"""What each shipped compatibility table has."""


def shipped_tables() -> str:
    """The shipped compatibility tables with their days."""
    days = compatibility_tables.shipped_days()
    rows = [(code(name), SHIPPED[name], days[name]) for name in sorted(days, key=[*SHIPPED].index)]
    return table(["table", "what it has", "of"], rows)


def fact_places() -> str:
    """Which module describes the facts of an area, and which ones derive them."""
    own = {vocabulary: [kind for kind in FACTS.values() if not any(kind in item.KINDS for item in _kinds())]}
    described = {**own, **{item: list(item.KINDS) for item in _kinds()}}
    deriving = [diagnosis_vocabulary, *(sys.modules[area.__module__] for area in AREAS)]
    spelled = {item: _texts(Path(inspect.getfile(item))) for item in deriving}
    for area, struct in (("toolchain", Toolchain), ("variables", BuildVariables)):  # named after the fields of a struct
        spelled[sys.modules[struct.__module__]] = {name_of(area, field) for field in struct.__struct_fields__}
    rows = []
    for module, kinds in described.items():
        names = {kind.name for kind in kinds}
        words = ", ".join(code(f"{word}.…") for word in sorted({name.partition(".")[0] for name in names}))
        found = [item for item, texts in spelled.items() if names & texts]
        rows.append((words, code(_place(module)), "<br>".join(code(_place(item)) for item in found)))
    return table(["facts", "described in", "given their value in"], rows)


def _kinds() -> list[ModuleType]:
    """The modules that describe facts, found by what `model.vocabulary` imported."""
    return [
        item
        for _, item in sorted(sys.modules.items())
        if hasattr(item, "KINDS") and item.__name__.startswith("envmedic.model.")
    ]


def _texts(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _place(item: object) -> str:
    """The file of a module, class or function, from the repository's root."""
    return str(Path(inspect.getfile(item)).relative_to(PACKAGE.parent))  # type: ignore[arg-type]  # any of them


def places() -> str:
    """What is one row or one file, and where it stands."""
    faults, kinds, folder = _place(FaultClass), _place(CheckKind), Path(_place(formats)).parent
    catalogue = str((PACKAGE / "kernels" / "catalogue.py").relative_to(PACKAGE.parent))
    rows = [
        ("a class of fault", f"its name in `Fault` and its row in `_ROWS` of `{faults}`"),
        ("a check", f"its row in `_ROWS` of `{kinds}`; one of kernels also its parts in `{catalogue}`"),
        ("a lock format", f"its name in `LockFormatName` of `{_place(lock)}`, and a file with `FORMAT` in `{folder}`"),
        ("a clone mode, staging mode or protection", f"its name and its row in `{_place(modes)}`"),
        (
            "an installer",
            f"its name and its row in `{_place(installers)}`; one of conda packages also its name in `{_place(conda)}`",
        ),
    ]
    return table(["to add", "write"], rows)


def documents() -> str:
    """Every document, its schema file and what it is."""
    rows = []
    for name in DOCUMENTS:
        body = schema(name)
        word = f"`envmedic.{name}/1`" if name not in UNNAMED else ""
        path = f"[{file_name(name)}](../envmedic/schemas/{file_name(name)})"
        rows.append((name, word, _root(body)["description"], path))
    return table(["document", "`schema`", "what it is", "JSON schema"], rows)


def fields() -> str:
    """The fields of the documents that a command prints, one table each."""
    named = (name for name in DOCUMENTS if name not in UNNAMED)
    return "\n\n".join(f"#### {name}\n\n{_fields_table(_root(schema(name)))}" for name in named)


def playbook_keys() -> str:
    """The keys of a playbook, of its signatures and of its conditions."""
    definitions = schema("playbook")["$defs"]
    parts = [(None, "Playbook"), ("In `signatures`", "Signature"), ("In `when`", "Condition")]
    return "\n\n".join((f"{title}:\n\n" if title else "") + _keys_table(definitions[name]) for title, name in parts)


def steps() -> str:
    """Every kind of step with its keys."""
    definitions = schema("playbook")["$defs"]
    rows = []
    for part in definitions.values():
        word = part["properties"].get("step", {}).get("const")
        if word is not None:
            keys = [_key(key, item, part) for key, item in part["properties"].items() if key != "step"]
            rows.append((code(word), part["description"], "<br>".join(keys)))
    return table(["step", "what it does", "keys"], rows)


def remedies() -> str:
    """Every remedy, and what it does."""
    return table(["remedy", "what it does"], ((code(item.name), item.does) for item in REMEDIES.values()))


def former_facts() -> str:
    """The computed facts of version 0.1, with what takes their place."""
    rows = ((code(name), code(item.remedy), code(item.observed)) for name, item in FORMER_FACTS.items())
    return table(["fact of 0.1", "remedy", "to ask for in a condition"], rows)


def _key(key: str, item: Schema, part: Schema) -> str:
    needed = " (required)" if key in part["required"] else ""
    return f"`{key}`{needed}: {item['description']}"


def events() -> str:
    """Every kind of event with its data."""
    definitions = schema("event")["$defs"]
    rows = []
    for part in definitions.values():
        word = part["properties"].get("type", {}).get("const")
        if word is not None:
            keys = [f"`{key}`: {item['description']}" for key, item in part["properties"].items() if key != "type"]
            rows.append((code(word), part["description"], "<br>".join(keys)))
    return table(["`data.type`", "when", "further keys of `data`"], rows)


def exit_codes() -> str:
    """Every exit code and its meaning."""
    meanings = attribute_docstrings(errors.ExitCode)
    return table(["code", "meaning"], ((str(int(item)), meanings[item.name]) for item in errors.ExitCode))


def error_codes() -> str:
    """Every ``code`` of an error document with its exit code."""
    kinds = sorted(_subclasses(errors.EnvmedicError), key=lambda kind: (kind.exit_code, kind.code))
    rows = [(code(kind.code), str(int(kind.exit_code)), _first_line(kind)) for kind in kinds]
    return table(["`code`", "exit code", "meaning"], rows)


def _subclasses(kind: type[errors.EnvmedicError]) -> list[type[errors.EnvmedicError]]:
    return [item for child in kind.__subclasses__() if child.__module__ == errors.__name__
            for item in (child, *_subclasses(child))]  # fmt: skip


def _first_line(item: object) -> str:
    return (inspect.getdoc(item) or "").partition("\n")[0].replace("``", "`")


def modules() -> str:
    """Every package and top-level module with the first line of its docstring."""
    paths = sorted(path for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file())
    rows = []
    for path in paths:
        source = path if path.is_file() else path / "__init__.py"
        text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
        name = path.name if path.is_file() else f"{path.name}/"
        if name not in {"__init__.py", "__main__.py"}:
            rows.append((code(name), text.partition("\n\n")[0].replace("\n", " ").replace("``", "`")))
    return table(["in `envmedic/`", "what it is"], rows)


def _root(body: Schema) -> Schema:
    found: Schema = body["$defs"][body["$ref"].rpartition("/")[2]]
    return found


def _fields_table(part: Schema) -> str:
    rows = [(code(name), code(kind_of(item)), item.get("description", "")) for name, item in part["properties"].items()]
    return table(["field", "type", "meaning"], rows)


def _keys_table(part: Schema) -> str:
    rows = [
        (code(name), code(kind_of(item)), _need(name, item, part), item["description"])
        for name, item in part["properties"].items()
    ]
    return table(["key", "type", "default", "meaning"], rows)


def _need(name: str, item: Schema, part: Schema) -> str:
    if name in part.get("required", ()):
        return "required"
    default = item.get("default")
    if isinstance(default, list | tuple):
        return ", ".join(code(str(word)) for word in default)
    return code(str(default)) if default else ""


def kind_of(item: Schema) -> str:
    """The type of a value in a few words."""
    if "const" in item:
        return str(item["const"])
    if "$ref" in item:
        return str(item["$ref"]).rpartition("/")[2].removesuffix("Document")
    if "anyOf" in item:
        kinds = dict.fromkeys(kind_of(option) for option in item["anyOf"])
        return "step" if "discriminator" in item else " | ".join(kinds)
    return _named(item)


def _named(item: Schema) -> str:
    if "enum" in item:
        choices: list[Any] = item["enum"]
        return " | ".join(map(str, choices)) if len(choices) <= _MOST_CHOICES else "one of a list, see the schema"
    if item["type"] == "array":
        return f"list of {kind_of(item['items'])}"
    if item["type"] == "object":
        return f"{kind_of(item['additionalProperties'])} by name"
    return {"string": "text", "integer": "int", "boolean": "bool"}.get(item["type"], str(item["type"]))


_MOST_CHOICES = 9

TABLES: Mapping[str, Callable[[], str]] = MappingProxyType({
    "facts": facts,
    "operators": operators,
    "checks": checks,
    "lock-formats": lock_formats,
    "fact-places": fact_places,
    "places": places,
    "documents": documents,
    "fields": fields,
    "playbook-keys": playbook_keys,
    "steps": steps,
    "remedies": remedies,
    "former-facts": former_facts,
    "events": events,
    "exit-codes": exit_codes,
    "error-codes": error_codes,
    "modules": modules,
    "commands": reference,
    "compatibility-tables": shipped_tables,
})  # fmt: skip
"""Every table by the name that its markers carry."""
