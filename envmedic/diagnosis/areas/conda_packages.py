"""Facts on conda packages: damage, and files of other installers over them."""

from __future__ import annotations

from collections.abc import Iterator

from envmedic.analysis import unstartable_programs
from envmedic.compat.torch_family.conda_families import distribution_of, package_of
from envmedic.conda_meta import specs
from envmedic.diagnosis.derived import Derived
from envmedic.model.conda import CondaEnvironment, CondaOverlay, CondaPackage
from envmedic.model.facts import Environment, Facts, FileConflict


def derive(facts: Facts) -> Derived:
    """The facts of `model.kinds_conda`; none where no environment was observed, None or empty outside of conda."""
    environment = facts.environment
    if environment is None:
        return {}
    conda = environment.conda or CondaEnvironment()
    doubled = {item.name: text for item, text in _doubled(environment, conda)}
    overlaid = {item.package: _overlay(item) for item in conda.overlaid if item.same}
    foreign = {item.distributions[0]: _conflict(item) for item in environment.conflicts if item.conda}
    # where both name a package, the overlay's text is the more exact one
    clobbered = {name: text for name, text in (foreign | overlaid).items() if name in _clobbered(environment, conda)}
    derived: Derived = {
        "conda.packages": tuple(item.name for item in conda.packages),
        "conda.made-by": conda.made_by if environment.conda is not None else None,
        "conda.damaged-records": conda.damaged,
        "conda.clobbered": tuple(clobbered),
        "conda.overlaid": tuple(overlaid),
        "conda.doubled": tuple(doubled),
        "conda.lacking": tuple(dict.fromkeys(lacking(conda))),
        "conda.unmet": tuple(dict.fromkeys(text for text, _ in unmet(environment, conda))),
        "conda.unmet-reasons": tuple(reason for _, reason in unmet(environment, conda)),
        "conda.unrecorded": tuple(dict.fromkeys(unrecorded(environment, conda))),
        "conda.of-former-path": _of_former_path(environment, conda),
        "conda.reasons": (*(overlaid | clobbered).values(), *doubled.values()),
    }
    return derived | _damage(environment, conda)


def _damage(environment: Environment, conda: CondaEnvironment) -> Derived:
    """Damaged packages; nothing where no files were examined."""
    if environment.files is None:
        return {}
    damaged = {item.metadata_path for item in environment.files if item.missing_count or item.cut_off}
    return {"conda.damaged": tuple(item.name for item in conda.packages if item.record in damaged)}


def unrecorded(environment: Environment, conda: CondaEnvironment) -> Iterator[str]:
    """Packages without a record, the version as their metadata state it; not those that pip or uv brought instead."""
    if not conda.packages or conda.damaged:  # without any record conda no longer manages it
        return
    own = [item for item in environment.distributions if not item.outside_prefix]
    for item in own:
        if item.owner == "conda" and conda.owner_of(item.name) is None:
            yield f"{package_of(item.name)} =={item.public}"
    there = {item.name for item in own}
    yield from (text for text in lacking(conda) if distribution_of(specs.name_of(text)) not in there)


def _of_former_path(environment: Environment, conda: CondaEnvironment) -> tuple[str, ...]:
    """Packages that name the former path of a moved environment: only their installer can write into compiled files."""
    if unstartable_programs.moved(environment) is None:
        return ()
    return tuple(item.name for item in conda.packages if item.prefixed)


def lacking(conda: CondaEnvironment) -> Iterator[str]:
    """Dependencies without an installed package of that name, except virtual packages."""
    there = {item.name for item in conda.packages}
    if conda.damaged:  # an unreadable record may be that of the dependency
        return
    for item in conda.packages:
        for text in item.depends:
            try:
                name = specs.name_of(text)
            except ValueError:  # a form that only a solver knows
                continue
            # conda adds pip to what python depends on (`add_pip_as_python_dependency`), also where pip was left out
            if name not in there and not name.startswith("__") and (item.name, name) != ("python", "pip"):
                yield text


def unmet(environment: Environment, conda: CondaEnvironment) -> Iterator[tuple[str, str]]:
    """Dependencies of packages with a module that misses something, where the installed release is none of those."""
    there = {item.name: item for item in conda.packages}
    for module in environment.extensions:
        owner = there.get(module.package or "")
        for text in owner.depends if owner is not None else ():
            try:
                found = there.get(specs.name_of(text))
            except ValueError:  # as above
                continue
            if owner is not None and found is not None and specs.admits(text, found.version) is False:
                needs = f"conda's {owner.name} {owner.version} needs {text}"
                yield text, f"{needs}, and {found.name} {found.version} is installed ({module.path} misses something)"


def _clobbered(environment: Environment, conda: CondaEnvironment) -> set[str]:
    """Packages whose imported files may be of two versions; a copy that replaced conda's entirely is not one."""
    return {
        item.package
        for item in conda.overlaid
        if not item.same or item.mixed or item.distribution in environment.duplicates
    }


def _doubled(environment: Environment, conda: CondaEnvironment) -> Iterator[tuple[CondaPackage, str]]:
    """Packages with two metadata directories, both from conda."""
    over = {item.distribution for item in conda.overlaid}
    for name in environment.duplicates:
        package = conda.owner_of(name)
        if package is not None and name not in over:
            copies = [item for item in environment.distributions if item.name == name and not item.outside_prefix]
            places = " and ".join(item.metadata_path for item in copies)
            yield package, f"conda's {package.name} {package.version}: {places}"


def _overlay(item: CondaOverlay) -> str:
    mixed = f", and {item.left + item.condas} files of conda's lie among its own" if item.mixed else ""
    return f"conda's {item.package} and {item.distribution} {item.version} ({item.metadata_path}){mixed}"


def _conflict(item: FileConflict) -> str:
    package, distribution = item.distributions
    of_conda, of_other = item.content_of
    whose = f"{of_conda} of them hold what conda brought and {of_other} what {distribution} does"
    return f"conda's {package} and {distribution} both bring {item.count} files, such as {item.paths[0]}; {whose}"
