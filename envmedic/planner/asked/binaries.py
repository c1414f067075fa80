"""Whether the binaries of what would be installed run here and fit each other, which versions alone do not say. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envmedic.compat import tables, versions
from envmedic.compat.table_rows import Coupling
from envmedic.compat.torch_family import common_set, newer_torch
from envmedic.compat.torch_family.rules import Build, check_torch
from envmedic.compat.torch_family.target import target_of
from envmedic.model.answers.compatibility import Consideration
from envmedic.model.facts import Environment, Facts
from envmedic.planner.family import family_query


def refusals(facts: Facts, environment: Environment, new: Mapping[str, str]) -> tuple[Consideration, ...]:
    """Return why the torch that would come does not run on the driver and GPUs here; `new` is version by name.

    A resolver takes the build of the default index, whatever driver it needs. Without a driver and a GPU nothing is judged.
    """
    query = family_query.query(facts, environment, ("torch",), ("newest",))
    target = target_of(query)
    release = versions.public(new.get("torch", ""))
    if not (target.driver or target.has_gpus) or release not in tables.releases():
        return ()
    variant = _variant(facts, environment, new)
    if variant is None:
        return ()
    wrong = (ruling for ruling in check_torch(Build(release, variant), target) if not ruling.ok)
    return tuple(
        Consideration(
            speaks="against", text=f"torch {release} ({variant}) would come: {item.reason}", source=item.source
        )
        for item in wrong
        if item.rule in {"driver-minimum", "gpu-coverage"}
    )


def doubts(facts: Facts, environment: Environment, new: Mapping[str, str]) -> tuple[Consideration, ...]:
    """Return what speaks against the libraries of what would come, beside the torch that it would meet."""
    torch = environment.torch
    release = versions.public(new.get("torch") or (torch.version if torch is not None else ""))
    variant = _variant(facts, environment, new)
    found = [row for row in tables.coupling_tables().releases if new.get(row.name) == row.version]
    unused = _unused_gpus(facts, release) if "torch" in new and variant == "cpu" else ()
    return (*_less_certain(release), *unused, *(item for row in found for item in _of(row, release, variant)))


def _less_certain(release: str) -> tuple[Consideration, ...]:
    if not tables.is_learned(release):
        return ()
    return (
        Consideration(
            speaks="note", text=newer_torch.doubt(release), source="; ".join(tables.releases()[release].source)
        ),
    )


def _unused_gpus(facts: Facts, release: str) -> tuple[Consideration, ...]:
    row = tables.default_wheels().get(release)
    if row is None or not facts.host.visible_gpus():
        return ()
    text = f"torch {release} on the default index is a build for the CPU on {facts.host.machine}: GPUs stay unused"
    return (Consideration(speaks="against", text=text, source="; ".join(row.source)),)


def _of(row: Coupling, release: str, variant: str | None) -> Iterator[Consideration]:
    name, source = f"{row.name} {row.version}", "; ".join(row.source)
    fitting = common_set.torch_of(row)
    if row.interface == "torch" and release in tables.releases() and release not in fitting:
        known = ", ".join(item for item in tables.releases() if item in fitting) or "another one"
        text = f"the libraries of {name} are compiled for one torch, {known} by what is known, and this is {release}"
        yield Consideration(speaks="against", text=text, source=source)
    cuda = versions.variant_cuda(variant or "")
    majors = {item.partition(".")[0] for item in row.cuda}
    if cuda is not None and majors and cuda.partition(".")[0] not in majors:
        text = f"the libraries of {name} load the runtime of CUDA {', '.join(sorted(majors))}, and torch {release} is built for CUDA {cuda}"
        yield Consideration(speaks="against", text=text, source=source)


def _variant(facts: Facts, environment: Environment, new: Mapping[str, str]) -> str | None:
    """Return the variant of torch afterwards: of the version's label, else of the default index."""
    if "torch" not in new:
        return environment.torch.variant if environment.torch is not None else None
    label = versions.local(new["torch"])
    if label is not None:
        return label if versions.official_label(label) else None
    row = tables.default_wheels().get(new["torch"])
    return row.variants.get(f"{facts.host.system}_{facts.host.machine}") if row is not None else None
