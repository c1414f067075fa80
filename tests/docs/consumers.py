"""A page for each consumer of NVIDIA's libraries, made from the registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envmedic.compat import consumer_kinds
from envmedic.compat.consumer_kinds import ConsumerKind, GpuBuild

FOLDER = "consumers"
_PLACES = {
    "rpath": "the paths that its own libraries state",
    "wheels": "NVIDIA's wheels in site-packages",
    "LD_LIBRARY_PATH": "LD_LIBRARY_PATH",
    "system": "the directories of the system's loader",
    "toolkit": "a CUDA toolkit (CUDA_PATH, CUDA_HOME, /usr/local/cuda)",
    "torch": "what torch has loaded before it",
}


def pages() -> Mapping[str, str]:
    """Every page by its path below ``docs/``."""
    return {
        f"{FOLDER}/index.md": index(),
        **{f"{FOLDER}/{item.name}.md": page(item) for item in consumer_kinds.consumers()},
    }


def index() -> str:
    """The list of all."""
    rows = [f"- [{item.title}]({item.name}.md): {item.gpu_from}" for item in consumer_kinds.consumers()]
    lead = (
        "What computes on GPUs through NVIDIA's libraries: what each opens, where it looks, and how it goes on without."
    )
    return "\n".join(["# Beside torch", "", lead, "", *rows]) + "\n"


def page(kind: ConsumerKind) -> str:
    """One consumer."""
    parts = [
        f"# {kind.title}",
        f"For the GPU: {kind.gpu_from}." + ("" if kind.repaired else " envmedic names it, and does not repair it."),
        _section("What it opens", _rows(kind)),
        _section("Where it looks, in this order", _listed(_PLACES[place] for place in kind.looks)),
        _section("Its code for GPUs", f"Its code is {kind.code}."),
        _section("What goes together", f"{kind.accepts}."),
        _section("One of these in an environment", _listed(f"`{name}`" for name in kind.exclusive) if len(kind.exclusive) > 1 else ""),
        _section("How it says that it runs on the CPU", _listed(f"`{item.says}` ({item.source})" for item in kind.falls_back)),
        _section("How a repair is proven", f"Check `{kind.check}`: `envmedic verify --check {kind.check}`." if kind.check else ""),
        _section("Sources", _listed(f"<{text}>" if text.startswith("http") else text for text in kind.source)),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _listed(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _rows(kind: ConsumerKind) -> str:
    rows = [row for build in kind.builds for row in _row(build)]
    head = ["| build | CUDA | libraries | when a function needs them |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows]) if rows else ""


def _row(build: GpuBuild) -> list[str]:
    if not (build.opens or build.also or build.files):
        return []
    stated = (
        build.cuda if build.cuda.isdigit() else "as in its name" if build.cuda == "{cuda}" else "as its files state"
    )
    linked = ["those that its libraries link"] if build.files and not build.opens else []
    opened, later = ", ".join([*linked, *build.opens]), ", ".join(build.also)
    return [f"| `{build.distribution}{build.versions}` | {stated} | {opened} | {later or '-'} |"]
