"""Options to give every distribution of a conda prefix one owner: conda, or an installer of wheels. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name

from envmedic.compat.conda_tables import family_packages
from envmedic.model.facts import Distribution, Environment
from envmedic.planner.changes import removal
from envmedic.planner.changes.ownership import Owners, only_wheels, with_single_owners
from envmedic.planner.changes.requirement_checks import applicable, newly_unmet
from envmedic.planner.conda_split.removal_closure import Leaving, depends_on, leaving
from envmedic.planner.family.family_query import FAMILY


@dataclass(frozen=True)
class Side:
    """One assignment of owners to the involved distributions."""

    environment: Environment
    """The environment with these owners."""
    by_conda: bool
    """Whether conda owns the torch family afterwards."""
    purged: tuple[str, ...] = ()
    """Distributions whose wheels are removed, in favour of conda's packages or of other wheels."""
    reinstall: tuple[str, ...] = ()
    """Conda packages whose files a wheel overwrote."""
    leaving: Leaving = field(default_factory=Leaving)
    """Conda packages whose distributions become wheels."""
    moved: frozenset[str] = frozenset()
    """Distributions that become wheels."""
    decided: frozenset[str] = frozenset()
    """Distributions that had two owners."""
    torch_moves: bool = False
    """Whether torch gets another owner, and with it other binaries."""
    notes: tuple[str, ...] = ()


def sides(
    environment: Environment, involved: Collection[str], *, torch: bool, values: Mapping[str, str]
) -> tuple[Side, ...]:
    """Return the options for a plan that changes the `involved` distributions, best first.

    `torch` tells whether the family is involved; all of it then gets one owner. The option with conda as the owner
    comes first where conda alone owns torch. Where a wheel overwrote conda's torch, the owner of most of the family
    comes first, then the smaller change. `values` are the marker variables.
    """
    # one owner for the whole family: a companion of one installer is built against another torch than the other's
    maker = _Maker(Owners(environment), values)
    owners = maker.owners
    scope = tuple(dict.fromkeys((*involved, *(FAMILY if torch else ()))))
    both = tuple(name for name in scope if owners.kind(name) == "both")
    to_conda, to_wheels = maker.decided(name for name in both if name not in FAMILY)
    family = tuple(name for name in FAMILY if torch and owners.package(name) is not None)
    if not family:
        single = tuple(name for name in scope if owners.kind(name) == "conda")
        ways = [maker.side(to_conda, to_wheels, by_conda=False)]
        ways += [maker.side(to_conda, (*to_wheels, *single), by_conda=False)] if single else []
        return tuple(ways)
    doubled = tuple(name for name in family if name in both)
    first = maker.side((*to_conda, *doubled), to_wheels, by_conda=True)
    second = maker.side(to_conda, (*to_wheels, *family), by_conda=False)
    # torch is a wheel and only companions are conda's: a way back to conda would add a second torch
    if "torch" in owners.wheels_by_name and owners.package("torch") is None:
        return (second,)
    if "torch" not in doubled or maker.prefers_conda(first, second):
        return first, second
    return second, first


@dataclass(frozen=True)
class _Maker:
    """Builds the sides of one environment."""

    owners: Owners
    values: Mapping[str, str]

    def side(self, to_conda: Iterable[str], to_wheels: Iterable[str], *, by_conda: bool) -> Side:
        """Return the side with these owners."""
        owners, condas, wheels = self.owners, tuple(to_conda), tuple(to_wheels)
        packages = [item.name for name in wheels if (item := owners.package(name)) is not None]
        family = bool(set(wheels) & set(FAMILY))
        if family:
            # metapackages such as pytorch-cuda too, whose constraints would otherwise go on to bind the solver
            packages += [item.name for item in owners.conda.packages if _of_family(item.name)]
        gone = leaving(owners.conda, packages, move=family)
        along = tuple(name for item in gone.moved for name in item.distributions)
        wheels = tuple(dict.fromkeys((*wheels, *along)))
        return Side(
            environment=with_single_owners(owners.environment, to_conda=condas, to_wheels=wheels),
            by_conda=by_conda,
            purged=(*self._with_libraries(condas), *(name for name in wheels if owners.wheels(name))),
            reinstall=tuple(dict.fromkeys(item.name for name in condas if (item := owners.package(name)))),
            leaving=gone,
            moved=frozenset(wheels),
            decided=frozenset(name for name in (*condas, *wheels) if owners.kind(name) == "both"),
            torch_moves="torch" in {*condas, *wheels},
            notes=_notes(owners, condas, wheels, gone),
        )

    def _with_libraries(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the removed wheels, with the CUDA wheels that only the torch among them required."""
        if "torch" not in names:
            return names
        unneeded = removal.unneeded(only_wheels(self.owners.environment), (), self.values)
        return tuple(dict.fromkeys((*names, *unneeded)))

    def decided(self, both: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return which of the doubly owned distributions outside the family conda keeps, and which the wheels.

        conda keeps one, unless a distribution requires the wheel's version and no conda package requires conda's.
        """
        condas: list[str] = []
        wheels: list[str] = []
        for name in both:
            package = self.owners.package(name)
            if package is None:
                continue
            bare = with_single_owners(self.owners.environment, to_conda=(), to_wheels=(name,))
            broken = newly_unmet(bare, {name: package.version}, values=self.values)
            held = any(package.name in depends_on(item) for item in self.owners.conda.packages)
            (wheels if broken and not held else condas).append(name)
        return tuple(condas), tuple(wheels)

    def prefers_conda(self, first: Side, second: Side) -> bool:
        """Whether the side of conda comes first where a wheel overwrote conda's torch."""
        condas, wheels = self._votes()
        copies = self.owners.wheels("torch")
        # no installer maintains copies without an INSTALLER of pip or uv: their metadata came by hand or from a build
        if not any(item.owner in {"pip", "uv"} for item in copies):
            return True
        if condas != wheels:
            return condas > wheels
        return _size(first) <= _size(second)

    def _votes(self) -> tuple[int, int]:
        """Count the members of the family, and the distributions that require torch, by owner: conda and wheels.

        A wheel that replaced conda's copy entirely counts as a wheel; a mixture of both counts for neither.
        """
        owners = self.owners
        named = (item.name for item in owners.environment.distributions if self._requires_torch(item))
        kinds = {name: owners.kind(name) for name in (*FAMILY, *named)}
        clean = {name for name, kind in kinds.items() if kind == "both" and owners.replaced(name)}
        found = list(kinds.values())
        return found.count("conda"), found.count("wheel") + len(clean)

    def _requires_torch(self, item: Distribution) -> bool:
        asked = (applicable(text, self.values) for text in item.requires)
        return any(requirement is not None and canonicalize_name(requirement.name) == "torch" for requirement in asked)


def _of_family(name: str) -> bool:
    """Whether a conda package belongs to the torch family, or only chooses its build."""
    # cuda-version also binds CUDA packages that have nothing to do with torch
    return name in family_packages() and name != "cuda-version"


def _size(side: Side) -> int:
    """Number of changes of a side: removals, reinstallations and new wheels."""
    return len({*side.purged}) + len(side.reinstall) + len(side.leaving.packages) + len(side.moved)


def _notes(owners: Owners, condas: Iterable[str], wheels: Iterable[str], gone: Leaving) -> tuple[str, ...]:
    notes = []
    for name in condas:
        copies = owners.wheels(name)
        package = owners.package(name)
        if copies and package is not None:
            notes.append(
                f"{name} is conda's ({package.name} {package.version}) from here on: "
                f"the other copy ({copies[0].version}) goes, and conda's files are put in place again"
            )
    moved = [name for name in wheels if owners.package(name) is not None]
    if moved:
        notes.append(f"{', '.join(moved)}: wheels from here on, no more from conda; do not `conda install` them beside")
    if gone.packages:
        notes.append(f"conda's {', '.join(gone.packages)} go, since nothing else needs them")
    return tuple(notes)
