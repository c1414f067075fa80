"""What a text states of a module or a release, by the groups of its match: the question to the environment's files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic import limits
from envmedic.compat.import_names import BACKPORTS, FORMER_STANDARD, IMPORTED_AS, NAMED_ALIKE
from envmedic.compat.installed_requirements import Demand, markers, of_extras
from envmedic.compat.versions import allows, version
from envmedic.model.facts import Environment, Host, TextStatement
from envmedic.model.playbook import FactValue

_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_FACTS = ("text.holds", "text.observed", "text.conflicts", "text.extras", "text.distribution")
_OF_GPUS = ("torch.gpu-code-missing", "torch.nvrtc-unknown", "extensions.without-gpu-code")
"""Facts on code for the GPUs of this host."""
_CAPABILITY = re.compile(r"(?:sm_|compute_)?(?P<major>\d{1,2})\.?(?P<minor>\d)[af]?")
_NAME = re.compile(r"[A-Za-z][\w-]*")
_ALIASES = {"pytorch": "torch", "protobuf-python": "protobuf"}
"""Names in messages that differ from those of the distributions."""


class Asked(NamedTuple):
    """A module, a name that a module lacks, a requirement, a call, or an import that fails."""

    module: str | None = None
    name: str | None = None
    """Name that the module lacks; None where the module itself is missing."""
    requirement: str | None = None
    """A release that is required, as a requirement without marker."""
    call: str | None = None
    """A call that is refused, as ``CALLER FUNCTION ARGUMENT``: the package that makes it, and the argument by name."""
    fails: str | None = None
    """An installed package that fails as it is imported."""


def asked(groups: Mapping[str, str]) -> Asked | None:
    """Return the statement in the groups of a match, None where files could say nothing about it."""
    requirement = _requirement(groups)
    if requirement is not None:
        return Asked(requirement=requirement)
    if {"caller", "callee", "argument"} <= groups.keys():
        return Asked(call=" ".join(groups[key] for key in ("caller", "callee", "argument")))
    if {"caller", "said"} <= groups.keys():
        return Asked(fails=groups["caller"])
    module = ".".join(groups[key] for key in ("module", "part") if key in groups)
    return Asked(module, groups.get("name")) if _MODULE.fullmatch(module) else None


def subject(item: TextStatement) -> Asked:
    """Return what a statement is about, as `asked` has it."""
    return Asked(item.module, item.name, item.requirement, item.call, item.fails)


def _requirement(groups: Mapping[str, str]) -> str | None:
    """The requirement that `requirement`, or `package` with `needed`, states, in one form."""
    text = groups.get("requirement")
    if text is None and "package" in groups and "needed" in groups:
        needed = groups["needed"]
        text = groups["package"] + (f">={needed}" if needed[:1].isdigit() else needed)
    try:
        found = limits.parsed(text) if text is not None else None
    except InvalidRequirement:
        return None
    return None if found is None or found.url is not None else f"{_distribution(found.name)}{found.specifier}"


def _distribution(name: str) -> str:
    plain = canonicalize_name(IMPORTED_AS.get(name, name))
    return _ALIASES.get(plain, plain)


def of_requirement(environment: Environment, requirement: str) -> TextStatement:
    """Return whether a requirement is unmet in the environment, by the versions that are loaded there."""
    wanted = Requirement(requirement)
    found = loaded_version(environment, wanted.name)
    if found is None:
        return TextStatement(requirement=requirement, holds=True, told=f"{wanted.name} is not installed")
    specifier = str(wanted.specifier)
    accepted = not specifier or allows(specifier, found)
    told = f"{wanted.name} {found} is installed, which {requirement} {'accepts' if accepted else 'refuses'}"
    return TextStatement(requirement=requirement, holds=not accepted, told=told)


def asked_by_extras(environment: Environment, host: Host, groups: Mapping[str, str]) -> tuple[Demand, ...]:
    """Return what extras of installed distributions require of the distribution that brings a missing module."""
    wanted = asked(groups)
    if wanted is None or wanted.module is None or "." in wanted.module or wanted.name is not None:
        return ()
    return of_extras(environment, markers(environment, host), {_distribution(wanted.module)})


def of_former_standard(environment: Environment, groups: Mapping[str, str]) -> tuple[str, ...]:
    """Return the distribution that continues a missing module which the environment's Python has no more."""
    wanted = asked(groups)
    top = ((wanted.module if wanted is not None else None) or "").partition(".")[0]
    found = version(environment.interpreter.version or "")
    gone = top in BACKPORTS and found is not None and found.release[:2] >= FORMER_STANDARD[top]
    absent = gone and environment.distribution(BACKPORTS[top]) is None
    return (BACKPORTS[top],) if absent else ()


def of_known_name(environment: Environment, groups: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is known to bring a missing module, which nothing installed needs to ask for, as a requirement.

    Where an older release is installed that never had the module, that is a newer one.
    """
    wanted = asked(groups)
    module = (wanted.module if wanted is not None and wanted.name is None else None) or ""
    # setuptools has it up to a release only, and those who use it ask for setuptools
    known = module != "pkg_resources" and (module in IMPORTED_AS or module in NAMED_ALIKE)
    name = _distribution(module)
    installed = environment.distribution(name)
    if not known or installed is None:
        return (name,) if known else ()
    # the files of one without import names, such as an editable install, are not known; a file that is gone is another fault
    older = installed.import_names and module not in installed.import_names
    return (f"{name}>{installed.public}",) if older else ()


def loaded_version(environment: Environment, name: str) -> str | None:
    """Return the version that an import of a distribution loads, by metadata where its files state none."""
    # torch/version.py is what programs compare; a half-finished installation leaves metadata of another release
    build = environment.torch if name == "torch" else environment.companion(name)
    installed = environment.distribution(name)
    if build is not None:
        return build.version
    return installed.version if installed is not None else None


def with_text(
    groups: Mapping[str, str], statements: Iterable[TextStatement], facts: Mapping[str, FactValue]
) -> dict[str, FactValue]:
    """Return `facts` with those on the text, ``text.…``, of one match; None for each without a match.

    Those on its statement are None where it makes none, and left out where the files do not tell.
    """
    found: dict[str, FactValue] = dict.fromkeys(_FACTS)
    if groups:
        found["text.conflicts"] = _conflicts(groups, facts.get("requirements.conflicts"))
    wanted = asked(groups)
    if wanted is not None:
        del found["text.holds"], found["text.observed"]
    for item in statements:
        if subject(item) == wanted and item.holds is not None:
            found |= {
                "text.holds": item.holds,
                "text.observed": item.told,
                "text.extras": item.extras,
                "text.distribution": item.distribution,
            }
    left_out = {*_FACTS, *(_OF_GPUS if _of_other_gpu(groups, facts.get("gpu.capabilities")) else ())}
    return {name: value for name, value in facts.items() if name not in left_out} | found


def _of_other_gpu(groups: Mapping[str, str], capabilities: FactValue) -> bool:
    """Whether the match names a GPU that is none of this host: the text is of another one."""
    found = _CAPABILITY.fullmatch(groups.get("arch") or groups.get("capability") or "")
    named = f"{found['major']}.{found['minor']}" if found is not None else None
    return named is not None and isinstance(capabilities, tuple) and named not in capabilities


def _conflicts(groups: Mapping[str, str], every: FactValue) -> FactValue:
    """Of the sentences on conflicts those with a distribution that the match names; all where it names none."""
    texts = [groups[key].partition(".")[0] for key in ("module", "package", "requirement", "found") if key in groups]
    found = (_NAME.match(text) for text in texts)
    names = {_distribution(match[0]) for match in found if match is not None}
    if not isinstance(every, tuple) or not names:
        return every
    return tuple(sentence for sentence in every if names.intersection(_NAME.findall(sentence)))
