"""Removal of changed distributions: through their metadata, or by path. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from packaging.utils import canonicalize_name

from envmedic.model.facts import Distribution, Environment
from envmedic.model.plan import Artifact, InstalledReference, Purge
from envmedic.planner.changes.ownership import Owners
from envmedic.planner.changes.requirement_checks import applicable
from envmedic.planner.family.family_query import left_over


def reference(item: Distribution) -> InstalledReference:
    """Return an installed distribution as a step names it."""
    return InstalledReference(
        name=item.name,
        version=item.version,
        owner=item.owner,
        metadata_path=item.metadata_path,
        size_bytes=item.size_bytes,
    )


def copies(environment: Environment, name: str) -> tuple[Distribution, ...]:
    """Return every copy of a distribution inside the prefix."""
    return tuple(item for item in environment.distributions if item.name == name and not item.outside_prefix)


def purge(
    environment: Environment, changed: Iterable[str], cleaned: Iterable[str], *, every_leftover: bool = False
) -> Purge:
    """Return the removal of the `changed` distributions, and of the leftovers of these and of the `cleaned` ones.

    `every_leftover` adds the leftovers of all other distributions.

    A single copy with a sound RECORD is removed through its metadata. Several copies are removed by path, since
    they list each other's files: pip removes one copy at a time, and uv stops at a copy whose RECORD went with
    another. A copy without a RECORD, or with a damaged one, is removed by path too, because an uninstall would
    leave files behind. Files of other distributions stay. Only conda removes conda's copies.
    """
    owners = Owners(environment)
    shared = _names_of_others(environment, frozenset(changed := tuple(dict.fromkeys(changed))))
    soabi = environment.interpreter.soabi
    references: list[InstalledReference] = []
    by_path: list[InstalledReference] = []
    paths: list[str] = []
    for name in changed:
        every = copies(environment, name)
        found = [item for item in every if not owners.is_condas(item)]
        if len(every) == len(found) == 1 and found[0].has_record and found[0].record_error is None:
            references.append(reference(found[0]))
        else:
            by_path += map(reference, found)
            paths += (path for item in found for path in _by_path(item, shared, soabi))
    for name in dict.fromkeys((*changed, *cleaned)):
        paths += (item.path for item in left_over(environment, name))
    paths += (item.path for item in environment.leftovers if every_leftover)
    return Purge(distributions=tuple(references), leftovers=tuple(dict.fromkeys(paths)), by_path=tuple(by_path))


def _names_of_others(environment: Environment, changed: frozenset[str]) -> frozenset[str]:
    """Return the import names of distributions other than `changed`, with the namespaces around them."""
    others = (item for item in environment.distributions if item.name not in changed)
    names = {name for item in others for name in item.import_names}
    return frozenset(names | {name[:end] for name in names for end, sign in enumerate(name) if sign == "."})


def _by_path(item: Distribution, shared: frozenset[str], soabi: str | None) -> Iterator[str]:
    """Return the paths of a copy, relative to the prefix: metadata, packages, modules, bundled libraries."""
    yield item.metadata_path
    # the import names of an editable install lead to the user's source directory
    if item.origin.kind == "editable":
        return
    # without a RECORD the files must be guessed from the names that a wheel can install a module under
    suffixes = ("", ".py", ".abi3.so", *((f".{soabi}.so",) if soabi else ()))
    for name in item.import_names or (item.name.replace("-", "_"),):
        if name not in shared:
            path = f"{item.site}/{name.replace('.', '/')}"
            yield from (path + suffix for suffix in suffixes)
    # auditwheel puts bundled libraries there
    yield f"{item.site}/{item.name.replace('-', '_')}.libs"


def unneeded(environment: Environment, artifacts: Iterable[Artifact], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the CUDA libraries that only the removed torch required.

    Libraries of two CUDA majors share directories (``nvidia/cudnn``), so the old ones must not stay.
    """
    torch = environment.distribution("torch")
    old = _required(torch.requires if torch else (), values)
    requires = {item.name: item.requires for item in environment.distributions if item.name != "torch"}
    # new wheels over installed ones: the result of the plan decides which library still has a user
    requires |= {str(canonicalize_name(item.name)): item.requires for item in artifacts}
    needed = {name for name in requires if not _library(name)} | {canonicalize_name(item.name) for item in artifacts}
    found: set[str] = set()
    # from all that is no CUDA library, along requirements, to everything reachable
    while needed - found:
        found |= needed
        needed = {asked for name in needed for asked in _required(requires.get(name, ()), values)}
    return tuple(name for name in old if _library(name) and name not in found and name in requires)


def _required(requires: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    found = (applicable(text, values) for text in requires)
    return tuple(dict.fromkeys(canonicalize_name(item.name) for item in found if item is not None))


def _library(name: str) -> bool:
    """Whether a distribution is a part of CUDA, or triton, which torch's wheels require."""
    return name.startswith(("nvidia-", "cuda-")) or name == "triton"
