"""A page for each shipped playbook: what its fault is, how it shows, and what to type. Made from the playbooks."""

from __future__ import annotations

import functools
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping

from envmedic.explain import explain
from envmedic.model.answers.explanation import Explanation
from envmedic.model.playbook import AdviseStep, LoadedPlaybook
from envmedic.model.registries.faults import FAULT_CLASSES
from envmedic.playbook.schema import loader

FOLDER = "faults-by-name"
_OTHER = "Not the environment"


@functools.cache
def shipped() -> tuple[LoadedPlaybook, ...]:
    """The playbooks of this checkout."""
    files = sorted(loader.shipped_directory().glob("*.yaml"))
    return tuple(loader.load_file(path, "shipped") for path in files)


def pages() -> Mapping[str, str]:
    """Every page by its path below ``docs/``."""
    found = {f"{FOLDER}/{item.playbook.id}.md": page(item) for item in shipped()}
    return {f"{FOLDER}/index.md": index(), **found}


def index() -> str:
    """The list of all, by class of fault."""
    classes: dict[str, list[LoadedPlaybook]] = defaultdict(list)
    for item in shipped():
        classes[item.playbook.fault or _OTHER].append(item)
    lines = [
        "# Faults and their repairs",
        "",
        "One page for each playbook that is shipped: how its fault shows, what confirms it, what to type. Give envmedic the",
        "error text, and it finds the page by itself: `envmedic diagnose error.log`, then `envmedic explain` with its name.",
        "Without envmedic at hand, [paste the text into a page](../paste-a-log.md).",
    ]
    told = {str(name): page.what for name, page in FAULT_CLASSES.items()}
    for name in sorted(classes, key=lambda name: (name == _OTHER, name)):
        lines += ["", f"## {name}", ""]
        lines += [_escaped(told[name]), ""] if name in told else []
        lines += [
            f"- [{item.playbook.id}]({item.playbook.id}.md): {_escaped(item.playbook.title)}" for item in classes[name]
        ]
    return "\n".join(lines) + "\n"


_ELSE = "Something like it, or something else? [Paste the text into a page](../paste-a-log.md) that reads it in your browser."


def page(loaded: LoadedPlaybook) -> str:
    """What to do about one fault."""
    found = explain(loaded.playbook.id, shipped())
    parts = [
        f"# {_escaped(loaded.playbook.title)}",
        f"Playbook `{loaded.playbook.id}`" + (f", class `{loaded.playbook.fault}`" if loaded.playbook.fault else ""),
        _section("You see", f"{_signs(found)}\n\n{_ELSE}"),
        _section("What to type", _commands(loaded)),
        _section("What it is", _escaped(found.what)),
        _section("Why it happens", _escaped(found.why) if found.why != found.what else ""),
        _section("What confirms it", _fenced(found.confirmed_by)),
        _section("What the repair does, in a copy of the environment", _numbered(found.repair)),
        _section("How it is proven", _listed(found.proof)),
        _section("Other ways", _listed(found.alternatives)),
        _section("Words", _listed(f"**{item.term}**: {item.meaning}" for item in found.terms)),
        _section("References", "\n".join(f"- <{url}>" for url in found.references)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _signs(found: Explanation) -> str:
    told = [f"{_fenced(sign.message.splitlines())}\n\n{_escaped(sign.meaning)}" for sign in found.signs]
    return "\n\n".join(told) or "No error text of its own: the facts of the environment show it."


def _commands(loaded: LoadedPlaybook) -> str:
    name = shlex.quote(loaded.playbook.id)
    lines = [f"$ envmedic explain {name}", "$ envmedic diagnose error.log"]
    if all(isinstance(step, AdviseStep) for step in loaded.playbook.steps):
        told = "No repair of an environment helps here; what to do is said by `diagnose`, and below."
        return _console(lines) + f"\n\n{told}"
    lines += ["$ envmedic plan --log error.log", "$ envmedic apply --log error.log", "$ envmedic undo"]
    told = (
        f"Without an error text, `envmedic plan --playbook {name}` takes this repair where the facts confirm the fault."
    )
    return _console(lines) + f"\n\n{told}"


def _console(lines: Iterable[str]) -> str:
    return "\n".join(["```console", *lines, "```"])


def _fenced(lines: Iterable[str]) -> str:
    kept = list(lines)
    return "\n".join(["```text", *kept, "```"]) if kept else ""


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_escaped(text)}" for text in texts)


def _numbered(texts: Iterable[str]) -> str:
    return "\n".join(f"{number}. {_escaped(text)}" for number, text in enumerate(texts, 1))


_CODE = re.compile(r"(`[^`]*`)")


def _escaped(text: str) -> str:
    """`text` with what Markdown would read as emphasis, links or tags taken literally, outside of code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if part.startswith("`") and len(part) > 1 else _literal(part) for part in parts)


def _literal(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>#|])", r"\\\1", text).replace("\\*\\*", "**")
