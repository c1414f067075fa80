"""Facts: the host, then the environment."""

from __future__ import annotations

from collections.abc import Iterator

from envmedic.model.answers.content import Content, DistributionContent
from envmedic.model.conda import CondaEnvironment
from envmedic.model.facts import Distribution, Environment, Facts, Gpu, Host, Library, TorchBuild
from envmedic.render.documents.gpu_health import gpu_health_lines
from envmedic.render.style import size
from envmedic.render.text import Line, line, shortened, table

_SHORT = 12
"""Digits of a digest that tell it apart."""


def facts_lines(facts: Facts) -> list[Line]:
    """Host first, then the environment."""
    lines = [line("Host", "bold"), *table(host_rows(facts.host))]
    if facts.gpu_health is not None:
        lines += [line(""), *gpu_health_lines(facts.gpu_health)]
    if facts.environment is not None:
        lines += [line(""), line("Environment", "bold"), *_environment(facts.environment), *_project(facts)]
    if facts.content is not None:
        lines += table([("content", facts.content.digest)])
    if facts.tables:
        days = [(name.replace("_", " "), f"of {day}") for name, day in facts.tables.items()]
        lines += [line(""), line(f"Compatibility tables {facts.data}", "bold"), *table(days)]
    return lines


def content_lines(content: Content) -> list[Line]:
    """The digest, then each part of it with its own."""
    named = [(f"{item.name} {item.version}", item.files[:_SHORT], _altered(item)) for item in content.distributions]
    free = [(place, digest[:_SHORT], "of no distribution") for place, digest in content.untracked.items()]
    kept = [(name, value or "unset", "set by activation") for name, value in content.variables.items()]
    return [line(content.digest, "bold"), *table([*named, *free, *kept])]


def _altered(item: DistributionContent) -> str:
    """The files that are not as listed, in a few words."""
    if not item.altered_count:
        return item.variant or ""
    return f"{item.altered_count} files not as listed: {shortened(', '.join(item.altered))}"


def host_rows(host: Host) -> list[tuple[str, str]]:
    """The system, and everything that matters for GPUs and for building."""
    rows = [
        ("system", _system(host)),
        ("driver", _driver(host)),
    ]
    rows += [("gpu", _gpu(gpu)) for gpu in host.gpus]
    rows += [("toolkit", f"{kit.version or '?'} at {kit.path} ({kit.found_by})") for kit in host.toolkits]
    rows += [("compiler", f"{item.name} {item.version or '?'} at {item.path}") for item in host.compilers]
    # LD_LIBRARY_PATH and its like can be longer than a screen
    return rows + [("variable", shortened(f"{item.name}={item.value}")) for item in host.variables]


def _system(host: Host) -> str:
    parts = (("kernel", host.kernel), ("glibc", host.glibc))
    known = (f"{name} {value}" for name, value in parts if value)
    return ", ".join([host.distribution or host.system, host.machine, *known])


def _gpu(gpu: Gpu) -> str:
    memory = f", {size(gpu.memory_bytes)}" if gpu.memory_bytes else ""
    hidden = "" if gpu.visible else " (hidden by CUDA_VISIBLE_DEVICES)"
    return f"{gpu.index}: {gpu.name}, {gpu.compute_capability or '?'}{memory}{hidden}"


def _driver(host: Host) -> str:
    if host.driver_version is None:
        return f"none ({host.nvml_error})" if host.nvml_error else "none"
    newest = f", runs CUDA up to {host.driver_cuda}" if host.driver_cuda else ""
    return f"{host.driver_version}{newest} ({host.driver_source})"


def _environment(environment: Environment) -> list[Line]:
    python = environment.interpreter
    state = python.version or "?" if python.starts else f"does not start: {python.error}"
    rows = [
        ("prefix", environment.prefix),
        ("kind", environment.kind),
        ("python", state),
        ("distributions", str(len(environment.distributions))),
        *(_conda(environment.conda) if environment.conda is not None else ()),
    ]
    rows += [(item.name, _family_member(environment, item.name, item.version)) for item in family(environment)]
    rows += [("duplicate", name) for name in environment.duplicates]
    rows += [("leftover", f"{item.path} ({item.kind})") for item in environment.leftovers]
    rows += [
        ("library", _library(item)) for item in environment.libraries if item.unresolved or item.missing or item.error
    ]
    rows += [("path", shortened(f"{item.kind}: {item.where}: {item.adds}")) for item in environment.import_paths]
    rows += [("setting", f"{item.tool} {item.key} = {item.value} ({item.source})") for item in environment.settings]
    return table(rows)


def _project(facts: Facts) -> list[Line]:
    """The project of the environment, and where they disagree."""
    environment = facts.environment
    if environment is None or environment.project is None:
        return []
    # late: the first frame of the terminal UI needs no planner
    from envmedic.planner import markers  # noqa: PLC0415
    from envmedic.planner.project_sync import disagreements  # noqa: PLC0415

    found = environment.project
    rows = [("tool", found.tool), ("folder", found.folder)]
    rows += [(word, value) for word, value in (("manifest", found.manifest), ("lock", found.lock)) if value]
    rows += [("groups", shortened(", ".join(found.groups)))] if found.groups else []
    rows += [("source", shortened(f"{item.name}: {item.kind} {item.value}".rstrip())) for item in found.sources]
    rows += [("index", f"{item.name} {item.url}{' (explicit)' if item.explicit else ''}") for item in found.indexes]
    limits = [item for item in environment.pins if item.kind == "constraint"]
    rows += [("constraint", shortened(f"{item.requirement} ({item.source})")) for item in limits]
    told = disagreements(environment, markers(environment, facts.host))
    return [line(""), line("Project", "bold"), *table(rows), *(line(f"  differs: {text}", "warn") for text in told)]


def _conda(conda: CondaEnvironment) -> Iterator[tuple[str, str]]:
    tool = "an unknown tool" if conda.made_by == "unknown" else conda.made_by
    yield "conda packages", f"{len(conda.packages)}, made by {tool}, history {conda.history}"
    if conda.requested:
        yield "requested", shortened(", ".join(conda.requested))
    yield from (("pinned", shortened(spec)) for spec in conda.pinned)
    yield from (("damaged record", path) for path in conda.damaged)
    for item in conda.overlaid:
        yield "over conda", f"{item.distribution} {item.version} lies over conda's {item.package}"
    if conda.unowned:
        yield "unowned files", str(conda.unowned)


def family(environment: Environment) -> list[Distribution]:
    """The installed distributions of the torch family."""
    wanted = ("torch", "torchvision", "torchaudio", "triton")
    return [item for item in environment.distributions if item.name in wanted]


def _family_member(environment: Environment, name: str, version: str) -> str:
    if name == "torch" and environment.torch is not None:
        return f"{version}, {_build(environment.torch)}"
    companion = environment.companion(name)
    needs = f", needs {companion.requires_torch}" if companion and companion.requires_torch else ""
    return f"{version}{needs}"


def _build(torch: TorchBuild) -> str:
    if torch.cuda is None and torch.hip is None:
        return "built for CPUs"
    architectures = f"GPU code for {', '.join(torch.arch_list)}" if torch.arch_list else "GPU code unknown"
    return f"built for {torch.variant or 'GPUs'}, {architectures}"


def _library(library: Library) -> str:
    if library.error:
        return f"{library.path}: {library.error}"
    if library.missing:
        return f"{library.path}: needs {', '.join(library.missing)}"
    first = library.unresolved[0]
    return f"{library.path}: {library.unresolved_count} unresolved, first {first.demangled or first.symbol}"
