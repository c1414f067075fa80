"""Lookup of what a text states of modules, names and releases in the environment's files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envmedic.analysis.text_statements import Asked, asked, asked_by_extras, of_known_name, of_requirement
from envmedic.compat.import_names import FORMER_STANDARD
from envmedic.compat.installed_requirements import parsed
from envmedic.model.checks import Confirmation
from envmedic.model.facts import Distribution, Environment, Facts, TextStatement
from envmedic.model.playbook import LoadedPlaybook, TextMatch
from envmedic.playbook.schema.conditions import mentions
from envmedic.probe.packages.call_source import names, needs, passes, takes
from envmedic.probe.packages.generated_code import generated_modules
from envmedic.probe.packages.import_names import Modules
from envmedic.probe.packages.module_source import ModuleFiles

_HOLDS, _GENERATED = "text.holds", "protobuf.generated"
_CIRCULAR = ("partially initialized", "circular import")
"""Words of messages on names that a module has and has not reached yet."""
_OUTSIDE = frozenset({"pth", "user-site", "PYTHONPATH", "sitecustomize"})
"""What makes imports find packages outside of site-packages."""
_UNSURE = frozenset({"interpreter-version", "pyvenv", "standard-library"})
"""Defects after which the interpreter may not read the environment's site-packages."""


def with_statements(playbooks: Sequence[LoadedPlaybook], facts: Facts, matches: Sequence[TextMatch]) -> Facts:
    """Return `facts` with what the files say to the statements of `matches`, as far as the playbooks ask for it."""
    environment = facts.environment
    matched = {match.playbook for match in matches}
    conditions = {item.playbook.id: item.playbook.when for item in playbooks if item.playbook.id in matched}
    asking = [match for match in matches if mentions(conditions[match.playbook], _HOLDS)]
    plain = [match.groups for match in asking if not any(word in match.line for word in _CIRCULAR)]
    plain = [groups for groups in plain if groups.get("module") not in _ran_here(environment, plain)]
    generated = any(mentions(item, _GENERATED) for item in conditions.values())
    if environment is None or not (plain or generated):
        return facts
    tree = Path(environment.prefix)
    if generated:
        environment = _with_generated(environment, tree)
    return msgspec.structs.replace(facts, environment=environment, statements=_looked_up(facts, tree, plain))


def in_clone(confirmation: Confirmation, facts: Facts, tree: Path) -> Facts:
    """Return the facts of the clone at `tree` with what a confirmation asks of its files."""
    environment = facts.environment
    if environment is None:
        return facts
    if mentions(confirmation.when, _GENERATED):
        environment = _with_generated(environment, tree)
    looked_up = (
        _looked_up(facts, tree, [confirmation.groups], asked_in_vain=True)
        if mentions(confirmation.when, _HOLDS)
        else ()
    )
    return msgspec.structs.replace(facts, environment=environment, statements=looked_up)


def brought_by_nothing(facts: Facts) -> frozenset[str]:
    """The modules that a text misses and no installed distribution has: the program's own, or never installed."""
    environment = facts.environment
    if environment is None or not _reads_its_packages(environment):
        return frozenset()
    # a distribution may have the name of a module that its release does not bring yet: attrs, up to 21.2
    installed = {name for item in environment.distributions for name in item.import_names or (item.name,)}
    missing = {
        item.module for item in facts.statements if item.module and item.name is None and item.holds is not False
    }
    return frozenset(
        module
        for module in missing - {*sys.stdlib_module_names, *FORMER_STANDARD}
        if installed.isdisjoint({module, canonicalize_name(module)})
    )


def _reads_its_packages(environment: Environment) -> bool:
    """Whether the interpreter starts and looks for packages in the environment."""
    return environment.interpreter.starts and not any(defect.kind in _UNSURE for defect in environment.defects)


def _ran_here(environment: Environment | None, texts: Iterable[Mapping[str, str]]) -> set[str | None]:
    """The modules that a file of this environment did not find, whatever it has of them now."""
    prefix = f"{environment.prefix}/" if environment is not None else None
    return {
        groups.get("module") for groups in texts if prefix is not None and groups.get("file", "").startswith(prefix)
    }


def _with_generated(environment: Environment, tree: Path) -> Environment:
    found = generated_modules(_sites(environment, tree), tree, environment.distributions)
    return msgspec.structs.replace(environment, generated=found)


def _sites(environment: Environment, tree: Path) -> list[Path]:
    """The directories of site-packages, in the tree that stands for the environment."""
    prefixes = (environment.prefix, environment.real_prefix)
    pairs = ((Path(site), prefix) for site in environment.site_packages for prefix in prefixes)
    return list(dict.fromkeys(tree / site.relative_to(prefix) for site, prefix in pairs if site.is_relative_to(prefix)))


def _owner(environment: Environment, module: str) -> Distribution | None:
    """The distribution that brings a top-level module."""
    return next((item for item in environment.distributions if module in item.import_names), None)


def _looked_up(
    facts: Facts, tree: Path, texts: Iterable[Mapping[str, str]], *, asked_in_vain: bool = False
) -> tuple[TextStatement, ...]:
    """What the files say to the statements in `texts`; with `asked_in_vain` only to who cannot do without a name."""
    environment = facts.environment
    if environment is None:
        return ()
    files = ModuleFiles(tuple(_sites(environment, tree)), Modules(environment.interpreter.soabi))
    wanted = {item: groups for groups in texts if (item := asked(groups)) is not None}
    found: list[TextStatement] = []
    for item, groups in wanted.items():
        extras = asked_by_extras(environment, facts.host, groups)
        told = tuple(dict.fromkeys(demand.unmet().sentence() for demand in extras if demand.found is None))
        by = groups.get("caller", "")
        caller = _owner(environment, by)
        stated = _statement(environment, files, item, asks=caller is not None)
        if stated.holds and caller is not None and item.name:
            if names(files, by, item.name) is False:
                gone = f"{caller.name} {caller.version} does not ask for {item.name}"
                stated = msgspec.structs.replace(stated, holds=False, told=gone)
            elif asked_in_vain and needs(files, by, item.name) is False:
                # another release of it may do without the name where it is not there
                stated = msgspec.structs.replace(stated, holds=None)
        known = next(iter(of_known_name(environment, groups)), None)
        found.append(msgspec.structs.replace(stated, extras=told, distribution=known))
    return tuple(found)


def _statement(environment: Environment, files: ModuleFiles, item: Asked, *, asks: bool) -> TextStatement:
    """What the files say; `asks` tells that the package which asked is installed here."""
    if item.requirement is not None:
        return of_requirement(environment, item.requirement)
    if item.call is not None:
        return _of_call(environment, files, item.call)
    if item.fails is not None:
        here = _owner(environment, item.fails) is not None
        told = "" if here else f"{item.fails} is not installed here"
        return TextStatement(fails=item.fails, holds=None if here else False, told=told)
    module = item.module or ""
    top = module.partition(".")[0]
    owner = _owner(environment, top)
    package = f"{owner.name} {owner.version}" if owner is not None else top
    holds, told = None, ""
    absent = item.name is not None and files.find(top) is None
    if not _imports_as_found(environment, files, top, owner) or (absent and asks):
        pass  # some compiled modules call themselves by a name under which nothing imports them
    elif absent:
        # what is not installed at all cannot lack a name: the text is of another environment
        holds, told = False, f"{top} is not installed here"
    elif item.name is not None:
        defined = files.defines(module, item.name)
        holds = None if defined is None else not defined
        told = f"{package} {'defines' if defined else 'does not define'} {item.name} in {module}"
    else:
        holds = files.find(module) is None
        told = f"{package} has {'no' if holds else 'the'} module {module}"
        if module == top:
            told = f"no module {top} is installed here" if holds else f"{package} is installed here"
    return TextStatement(module=module, name=item.name, holds=holds, told=told)


def _of_call(environment: Environment, files: ModuleFiles, call: str) -> TextStatement:
    """What the files say of a call that was refused: whether it is made still, and refused by all that it can reach."""
    caller, called, argument = call.split(" ")
    owner = _owner(environment, caller)
    if owner is None or not _imports_as_found(environment, files, caller, owner):
        return TextStatement(call=call, holds=None)
    made = passes(files, caller, argument)
    requirements = filter(None, map(parsed, owner.requires))  # whatever metadata say that is no requirement
    required = {canonicalize_name(item.name) for item in requirements}
    reached = [name for item in environment.distributions if item.name in required for name in item.import_names]
    package = f"{owner.name} {owner.version}"
    if made is False:
        return TextStatement(call=call, holds=False, told=f"{package} passes {argument} to nothing")
    answers = {name: takes(files, name, called, argument) for name in (*reached, caller)} if made else {}
    refuses = next((name for name, taken in answers.items() if taken is False), None)
    if refuses is not None:
        told = f"{package} passes {argument}, which {called} of {refuses} does not take here"
        return TextStatement(call=call, refuses=refuses, holds=True, told=told)
    holds = False if True in answers.values() else None
    return TextStatement(call=call, holds=holds, told="" if holds is None else f"{called} takes {argument} here")


def _imports_as_found(environment: Environment, files: ModuleFiles, top: str, owner: Distribution | None) -> bool:
    """Whether an import in this environment reads what is found, or misses what is not, in its site-packages."""
    if not _reads_its_packages(environment):
        return False
    if any(owner is not None and shadow.name == owner.name for shadow in environment.shadows):
        return False
    if files.find(top) is not None:
        return True
    outside = environment.include_system_site or any(item.kind in _OUTSIDE for item in environment.import_paths)
    editable = any(item.origin.kind == "editable" for item in environment.distributions)
    return not (outside or editable or top in sys.stdlib_module_names or top in FORMER_STANDARD)
