"""Rules for pairs of torch with torchvision, torchaudio and triton."""

from __future__ import annotations

import msgspec

from envmedic.compat import tables, versions
from envmedic.compat.table_rows import Companion
from envmedic.compat.torch_family.rules import Build
from envmedic.compat.torch_family.ruling import Ruling, broken, passed
from envmedic.compat.torch_family.target import FamilyTarget
from envmedic.model.answers.family import Member

ANY_PYTHON = "py3"


class Choice(msgspec.Struct, frozen=True):
    """The version chosen for a member (None: the member is not needed), or the rules that forbid all."""

    member: Member
    version: str | None
    rulings: tuple[Ruling, ...]

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
        return all(ruling.ok for ruling in self.rulings)


def accepts(row: Companion, torch: str) -> bool:
    """Whether a companion fits a torch: by the table, or by its requirement for a torch that is not in the table."""
    if torch in tables.releases():
        return torch in row.torch
    # a torch newer than the data: the companion's own metadata still tell, as far as they have a pin
    return row.spec is not None and versions.allows(row.spec, torch)


def has_wheel(row: Companion, target: FamilyTarget) -> bool:
    """Whether a companion has a wheel for the interpreter and the platform, and accepts its Python."""
    tags = row.python.get(target.platform, ())
    if target.tag not in tags and ANY_PYTHON not in tags:
        return False
    return row.requires_python is None or versions.allows(row.requires_python, target.full_python)


def stable_abi(row: Companion) -> bool:
    """Whether the binaries fit several torch releases."""
    return len(row.torch) > 1


def companion(build: Build, target: FamilyTarget, member: Member) -> Choice:
    """Choose the release of torchvision or torchaudio for a torch build.

    The installed one where torch stays and it fits, else the recommended one, else the newest.
    """
    rule = f"{member}-pair"
    rows = [row for row in tables.companions(member).values() if accepts(row, build.torch)]
    if not rows:
        return _own_metadata(build, target, member, rule)
    offered = [row for row in rows if not row.yanked]
    if not offered:
        return Choice(member, None, (broken("yanked", f"{member} {rows[0].version} is withdrawn", rows[0].source),))
    fitting = [row for row in offered if has_wheel(row, target)]
    if not fitting:
        names = ", ".join(row.version for row in offered)
        reason = f"{member} {names} (for torch {build.torch}) has no wheel for Python {target.tag} on {target.platform}"
        return Choice(member, None, (broken("python-wheel", reason, offered[0].source, cause=member),))
    chosen = _preferred(fitting, build, target, member)
    return Choice(member, chosen.version, (_pair(chosen, build, rule), _variant(chosen, build, target)))


def _preferred(rows: list[Companion], build: Build, target: FamilyTarget, member: Member) -> Companion:
    installed = target.installed(member)
    return max(
        rows,
        key=lambda row: (
            # beside a new torch every companion is reinstalled, so there the installed version has no advantage
            build.kept and row.version == installed,
            build.torch in row.recommended_for,
            versions.version(row.version) or versions.version("0"),
        ),
    )


def _pair(row: Companion, build: Build, rule: str) -> Ruling:
    how = f"requires torch{row.spec}" if row.spec and row.declared else f"is paired with torch {build.torch}"
    return passed(rule, f"{row.name} {row.version} {how}", row.source)


def _variant(row: Companion, build: Build, target: FamilyTarget) -> Ruling:
    default = default_variant(row, build, target)
    if default is not None and default == build.variant:
        return passed("companion-variant", f"{row.name} {row.version} on the default index is {default}", row.source)
    # no error: the tables do not list companions on the indexes of variants
    reason = f"{row.name} {row.version} comes from the index of {build.variant}; the resolver confirms it"
    return passed("companion-variant", reason, row.source)


def _own_metadata(build: Build, target: FamilyTarget, member: Member, rule: str) -> Choice:
    """Choose for a torch without a companion in the data: an installed one stays if its metadata accept this torch."""
    installed, requirement = target.installed(member), target.query.requires_torch.get(member)
    spec = requirement.partition("torch")[2].strip() if requirement else ""
    if build.kept and installed and spec and versions.allows(spec, target.torch or build.torch):
        reason = f"the installed {member} {installed} itself requires {requirement}"
        return Choice(member, installed, (passed(rule, reason, f"metadata of {member}"),))
    reason = f"no {member} is known for torch {build.torch}"
    return Choice(member, None, (broken(rule, reason, "index metadata", cause=build.torch),))


def default_variant(row: Companion, build: Build, target: FamilyTarget) -> str | None:
    """Return the variant of a companion on the default index, or None when it is not known.

    Companions with an exact pin on torch follow the default build of that torch.
    """
    known = known_variant(row.name, row.version, target.platform)
    if known is not None:
        return known
    # it has no pin on one torch, so the default variant of a torch says nothing about it
    if stable_abi(row):
        return None
    return default_torch_variant(build.torch, target.platform)


def known_variant(name: str, version: str, platform: str) -> str | None:
    """Return the variant of a companion on the default index where the data name it."""
    for span in tables.torch_tables().companion_variants:
        if span.name == name and span.platform == platform and _within(version, span.first, span.last):
            return span.variant
    return None


def _within(text: str, first: str, last: str) -> bool:
    """Whether a version is within a span, compared by as many components as each end has."""
    value, low, high = (versions.dotted(item) for item in (text, first, last))
    return low <= value[: len(low)] and value[: len(high)] <= high


def default_torch_variant(torch: str, platform: str) -> str | None:
    """Return the variant of torch on the default index for a platform."""
    row = tables.default_wheels().get(torch)
    return row.variants.get(platform) if row else None


def triton(build: Build, target: FamilyTarget) -> Choice:
    """Choose the triton that the torch build asks for; none for CPU builds and where a marker excludes it."""
    release = tables.releases().get(build.torch)
    if release is None:
        ruling = passed("triton-requirement", f"not checked: torch {build.torch} is not in the data")
        return Choice("triton", None, (ruling,))
    if build.cuda is None or release.triton is None or not target.marker(release.triton_marker):
        return Choice("triton", None, (passed("triton-requirement", "torch does not ask for it here", release.source),))
    spec = release.triton.removeprefix("triton")
    fitting = [
        row.version
        for row in tables.torch_tables().triton
        if versions.allows(spec, row.version) and target.tag in row.python.get(target.platform, ())
    ]
    if not fitting:
        reason = f"{release.triton} (asked for by torch {build.torch}) has no wheel for Python {target.tag} here"
        return Choice("triton", None, (broken("triton-requirement", reason, release.source, cause="triton"),))
    installed = target.installed("triton")
    # the rows are in ascending order, so the last is the newest
    chosen = installed if installed in fitting else fitting[-1]
    ruling = passed("triton-requirement", f"torch {build.torch} requires {release.triton}", release.source)
    return Choice("triton", chosen, (ruling,))


def choose(build: Build, target: FamilyTarget, member: Member) -> Choice:
    """Choose the version of one member beside a torch build."""
    return triton(build, target) if member == "triton" else companion(build, target, member)


def on_default_index(build: Build, target: FamilyTarget) -> bool:
    """Whether the default index has every companion that is asked for in a build that fits a torch build."""
    for member in ("torchvision", "torchaudio"):
        if member in target.query.members:
            row = tables.companions(member).get(companion(build, target, member).version or "")
            if row is None or not serves(row, build, target):
                return False
    return True


def serves(row: Companion, build: Build, target: FamilyTarget) -> bool:
    """Whether the build of a companion on the default index fits a torch build."""
    return default_variant(row, build, target) == build.variant
