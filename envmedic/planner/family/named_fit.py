"""Would the packages that a file names work on a machine: by the compatibility rules, before anything is installed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from envmedic.compat import guides, tables, versions
from envmedic.compat.torch_family import conda_families
from envmedic.compat.torch_family.problems import problems
from envmedic.compat.torch_family.rules import Build, check_torch
from envmedic.compat.torch_family.target import FamilyTarget, target_of
from envmedic.model.answers.family import FamilyQuery
from envmedic.model.answers.fit import Fit, FitVerdict, NamedPackage, NamedPackages, Objection
from envmedic.model.conda import CondaPackage
from envmedic.model.facts import Distribution, Environment, Host, Interpreter, Origin, TorchBuild

_NOT_SHOWN = frozenset({"variant-published"})
"""Rules whose breach says that something is not known, rather than wrong."""
_OF_CONDA = {"pytorch": "torch", "pytorch-gpu": "torch", "libtorch": "torch"}
"""Conda packages that bring torch, by name."""
_OLDEST_GLIBC, _NEWEST_GLIBC = 5, 28


def environment_of(named: NamedPackages, host: Host, python: str) -> Environment:
    """The environment that installing the packages would make, as far as their names tell."""
    torch = _torch(named.packages)
    return Environment(
        prefix="",
        real_prefix="",
        kind="unknown",
        interpreter=Interpreter(path="", starts=True, version=python, implementation="cpython"),
        distributions=tuple(
            Distribution(
                name=_OF_CONDA.get(item.name, item.name),
                version=item.version,
                metadata_path="",
                site="",
                origin=Origin(kind="conda" if item.manager == "conda" else "index"),
            )
            for item in named.packages
        ),
        torch=None if torch is None else _build_of(torch, host),
    )


def _platform(host: Host) -> str:
    return f"{host.system}_{host.machine}"


def _torch(packages: Iterable[NamedPackage]) -> NamedPackage | None:
    return next((item for item in packages if _OF_CONDA.get(item.name, item.name) == "torch"), None)


def _build_of(torch: NamedPackage, host: Host) -> TorchBuild | None:
    variant = _variant(torch, host)
    if variant is None:
        return None
    cuda = versions.variant_cuda(variant)
    return TorchBuild(version=torch.version, cuda=cuda, variant=variant)


def _variant(torch: NamedPackage, host: Host) -> str | None:
    """The CUDA variant by the version's label, the index, the build string, or what the default index has."""
    label = versions.local(torch.version)
    if label is not None:
        return label
    if torch.manager == "conda":
        return conda_families.variant_of(_conda(torch)) if torch.build else None
    parts = (torch.index or "").rstrip("/").split("/")
    known = next((part for part in reversed(parts) if part == "cpu" or versions.variant_cuda(part)), None)
    if known is not None:
        return known
    public = versions.public(torch.version)
    return next(
        (
            row.variant
            for (name, _), row in tables.variants().items()
            if name == public and _platform(host) in row.default_on
        ),
        None,
    )


def _conda(package: NamedPackage) -> CondaPackage:
    return CondaPackage(
        name=package.name,
        version=package.version,
        build=package.build or "",
        channel=(package.index or "").rpartition("/")[0].rpartition("/")[0],
        subdir="",
    )


def judge(file: str, text: str, named: NamedPackages, host: Host, python: str) -> Fit:
    """Return whether what `file`, with this `text`, names would work on `host` with `python` (``major.minor``)."""
    environment = environment_of(named, host, python)
    by_name = {_OF_CONDA.get(item.name, item.name): item for item in named.packages}
    found = [
        *_torch_misfits(named, host, python),
        *_companions(environment, host),
        *_low_gpus(named.packages, host),
        *(item for package in named.packages for item in _wheels(package, host, python)),
    ]
    misfits = tuple(_placed(item, by_name.get(item.package), text) for item in dict.fromkeys(found))
    errors = [item for item in misfits if item.severity == "error"]
    unjudged = (*(f"{text}: it names no exact version" for text in named.loose), *_unknown(named, host))
    decides = any(item.severity == "warning" for item in misfits) or bool(unjudged)
    verdict: FitVerdict = "does-not-fit" if errors else "unknown" if decides else "fits"
    return Fit(
        file=file,
        verdict=verdict,
        summary=_summary(verdict, errors, len(named.packages)),
        python=python,
        driver=host.driver_version,
        capabilities=capabilities(host),
        packages=len(named.packages),
        misfits=(*errors, *(item for item in misfits if item.severity == "warning")),
        unjudged=unjudged,
    )


def capabilities(host: Host) -> tuple[str, ...]:
    """The known compute capability of each visible GPU."""
    return tuple(item.compute_capability for item in host.visible_gpus() if item.compute_capability)


def _summary(verdict: FitVerdict, errors: list[Objection], count: int) -> str:
    if errors:
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        return f"{errors[0].text}{more}"
    known = f"nothing speaks against its {count} package{'s' * (count != 1)}"
    return known if verdict == "fits" else f"{known}, and not all of them could be judged"


def _placed(item: Objection, package: NamedPackage | None, text: str) -> Objection:
    if package is None:
        return item
    return msgspec.structs.replace(item, line=package.line or _line_of(text, package))


def _line_of(text: str, package: NamedPackage) -> int:
    """The first line that names the package and, there or in the two lines below, its version."""
    words = re.compile(rf"(?<![\w.-]){re.escape(package.name)}(?![\w-])", re.IGNORECASE)
    rows = text.splitlines()
    naming = [number for number, row in enumerate(rows, 1) if words.search(row)]
    near = (number for number in naming if package.version in "\n".join(rows[number - 1 : number + 2]))
    return next(near, naming[0] if naming else 1)


def _unknown(named: NamedPackages, host: Host) -> Iterator[str]:
    torch = _torch(named.packages)
    if torch is not None and _variant(torch, host) is None:
        yield f"torch {torch.version}: the file does not tell for which CUDA it is built"
    if torch is not None and host.driver_version is None and host.visible_gpus():
        yield "the driver: none was named (--driver) or found"


def _torch_misfits(named: NamedPackages, host: Host, python: str) -> Iterator[Objection]:
    torch = _torch(named.packages)
    variant = _variant(torch, host) if torch is not None else None
    if torch is None or variant is None:
        return
    build = Build(torch=versions.public(torch.version), variant=variant)
    for ruling in check_torch(build, _target(torch, variant, host, python)):
        # without a driver nothing is said of it; conda's builds have channels of their own
        silent = (ruling.rule == "driver-minimum" and host.driver_version is None) or (
            torch.manager == "conda" and ruling.rule in {"python-wheel", "variant-published", "wheel-tag"}
        )
        if not ruling.ok and not silent:
            weak = ruling.rule in _NOT_SHOWN or ruling.cause == "unknown"
            yield Objection(
                rule=ruling.rule,
                package="torch",
                severity="warning" if weak else "error",
                text=ruling.reason,
                source=ruling.source,
            )


def _target(torch: NamedPackage, variant: str, host: Host, python: str) -> FamilyTarget:
    gpus = host.visible_gpus()
    return target_of(
        FamilyQuery(
            python=python,
            system=host.system,
            machine=host.machine,
            driver=host.driver_version,
            capabilities=capabilities(host),
            glibc=host.glibc,
            installed={"torch": torch.version},
            variant=variant,
            gpu_required=bool(gpus) and host.driver_version is not None,
        )
    )


def _companions(environment: Environment, host: Host) -> Iterator[Objection]:
    for item in problems(environment, host):
        # the rules on torch itself were applied to the build that is named
        if item.member != "torch" and item.rule != "torch-missing":
            yield Objection(
                rule=item.rule, package=item.member, severity="error", text=_as_named(item.summary), source=item.source
            )


def _as_named(summary: str) -> str:
    # the rules are worded for what is installed
    return summary.replace(" is installed", " is named beside it")


def _low_gpus(packages: Iterable[NamedPackage], host: Host) -> Iterator[Objection]:
    known = guides.guides()
    for package in packages:
        guide = known.get(package.name)
        need = versions.capability(guide.capability_min or "") if guide is not None else None
        for gpu in host.visible_gpus():
            have = versions.capability(gpu.compute_capability or "")
            if guide is not None and need is not None and have is not None and have[:2] < need[:2]:
                text = f"{package.name} needs compute capability {guide.capability_min}, the GPU has {gpu.compute_capability}"
                yield Objection(
                    rule="gpu-minimum", package=package.name, severity="error", text=text, source=guide.source
                )


def _wheels(package: NamedPackage, host: Host, python: str) -> Iterator[Objection]:
    """None of the wheels that the file names can be installed there."""
    named = [tags for file in package.files if (tags := _tags(file)) is not None]
    if not named:
        return
    fitting = set(_supported(host, python))
    if not any(tags & fitting for tags in named):
        text = (
            f"{package.name} {package.version} has no wheel in the file for Python {python} on {host.system} "
            f"{host.machine}" + (f" with glibc {host.glibc}" if host.glibc else "")
        )
        yield Objection(
            rule="wheel-tag", package=package.name, severity="error", text=text, source="names of the wheels"
        )


def _tags(file: str) -> frozenset[Tag] | None:
    try:
        return parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        return None


def _supported(host: Host, python: str) -> Iterator[Tag]:
    """Wheel tags that an installer takes there; source: PEP 425, 600 and `packaging.tags`."""
    parts = tuple(map(int, python.split(".")[:2]))
    newest = versions.dotted(host.glibc)[1] if host.glibc and len(versions.dotted(host.glibc)) > 1 else _NEWEST_GLIBC
    old = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}
    platforms = [f"linux_{host.machine}"]
    for minor in range(newest, _OLDEST_GLIBC - 1, -1):
        platforms += [f"manylinux_2_{minor}_{host.machine}"]
        platforms += [f"{old[minor]}_{host.machine}"] if minor in old else []
    yield from cpython_tags(parts, platforms=platforms)
    yield from compatible_tags(parts, f"cp{parts[0]}{parts[1]}", platforms)
