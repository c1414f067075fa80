"""Facts on requirements between installed distributions, and on the libraries around torch."""

from __future__ import annotations

from collections.abc import Iterable

from envmedic.analysis.packages import lost_sources
from envmedic.analysis.packages.requirement_faults import (
    RequirementFaults,
    foreign_torchcodec,
    refusing_code,
    requirement_faults,
)
from envmedic.compat import couplings
from envmedic.compat.import_names import module_of
from envmedic.compat.installed_requirements import Demand
from envmedic.compat.versions import allows
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Distribution, Environment, Facts


def derive(facts: Facts) -> Derived:
    """The facts of ``requirements.*`` and of the families of libraries, except NumPy's."""
    environment = facts.environment
    if environment is None:
        return {}
    found = requirement_faults(environment, facts.host)
    # both names: a ModuleNotFoundError names the module (yaml), requirements the distribution (pyyaml)
    modules = (name for item in found.missing for name in (module_of(item.name), item.name))
    return {
        "requirements.conflicts": _sentences(found.conflicts),
        "requirements.of-torch": _sentences(found.of_torch),
        "requirements.missing": _sentences(found.missing),
        "requirements.missing-modules": tuple(dict.fromkeys(modules)),
        **_sources(environment),
        "huggingface.unmet": _sentences(found.hugging_face),
        "protobuf.unmet": _sentences(found.protobuf),
        "protobuf.generated": refusing_code(environment),
        # of no text: `analysis.text_statements` has those of a match
        **dict.fromkeys(("text.holds", "text.observed", "text.conflicts", "text.extras", "text.distribution")),
        **_triton(found, environment),
        **_companions(found, environment),
    }


def _sources(environment: Environment) -> Derived:
    lost = lost_sources.lost(environment)
    # where none is lost, nothing speaks against a text: it may be of a manifest whose source was never installed here
    return {
        "sources.lost": lost_sources.modules(environment) or None,
        "sources.folders": tuple(item.names for item in lost if item.names) or None,
        "sources.reasons": tuple(f"{item.distribution}: {item.detail}" for item in lost) or None,
        "sources.advice": lost_sources.advice(environment) or None,
    }


def _sentences(unmet: Iterable[Demand]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.unmet().sentence() for item in unmet))


def _triton(found: RequirementFaults, environment: Environment) -> Derived:
    asked = found.asked_of_triton(environment)
    return {
        "triton.required": f"{asked.name}{asked.specifier}" if asked is not None else None,
        "triton.accepted": asked.met if asked is not None else None,
    }


def _companions(found: RequirementFaults, environment: Environment) -> Derived:
    torch = environment.distribution("torch")
    if torch is None:
        return {}
    asked = found.asked("xformers", "torch") if environment.distribution("xformers") is not None else None
    return {
        "xformers.requires-torch": f"torch{asked.specifier}" if asked is not None else None,
        "xformers.accepts-torch": asked.met if asked is not None else None,
        "companions.unmet": tuple(_made_for_other_torch(found, environment, torch)),
        **_bitsandbytes(environment),
        **_flash_attention(environment, torch),
    }


def _made_for_other_torch(found: RequirementFaults, environment: Environment, torch: Distribution) -> Iterable[str]:
    """Sentences on companions for another torch, by their metadata or, of torchcodec, by its table of releases."""
    for item in found.every:
        if item.by.name in {"torchtext", "torchdata"} and item.name == "torch" and not item.met:
            yield item.unmet().sentence()
    codec = foreign_torchcodec(environment, torch)
    if codec is not None:
        yield f"torchcodec {codec.version} belongs to another torch than {torch.version}"


def _bitsandbytes(environment: Environment) -> Derived:
    installed, build = environment.distribution("bitsandbytes"), environment.torch
    if installed is None or environment.bitsandbytes_cuda is None:
        # None rather than absent: bitsandbytes was looked for
        absent = ("cuda-libraries", "knows-cuda", "misses-triton-ops")
        return {f"bitsandbytes.{name}": None for name in absent}
    triton = environment.distribution("triton")
    calls = allows(couplings.BITSANDBYTES_WITH_TRITON_OPS, installed.version)
    derived: Derived = {
        "bitsandbytes.cuda-libraries": environment.bitsandbytes_cuda,
        "bitsandbytes.misses-triton-ops": (
            calls and triton is not None and allows(f">={couplings.TRITON_WITHOUT_OPS}", triton.version)
        ),
    }
    if build is not None:
        derived["bitsandbytes.knows-cuda"] = build.cuda in environment.bitsandbytes_cuda if build.cuda else None
    return derived


def _flash_attention(environment: Environment, torch: Distribution) -> Derived:
    if environment.distribution("flash-attn") is None:
        return {"flash-attn.undefined": None, "flash-attn.wheel": None}
    own = [item for item in environment.extensions if item.distribution == "flash-attn"]
    symbols = (symbol.demangled or symbol.symbol for item in own for symbol in item.unresolved)
    derived: Derived = {"flash-attn.undefined": tuple(dict.fromkeys(symbols))}
    wheel = _flash_attention_wheel(environment, torch)
    return derived | ({"flash-attn.wheel": wheel} if wheel is not None else {})


def _flash_attention_wheel(environment: Environment, torch: Distribution) -> str | None:
    # the name of the file on the project's release page: it states Python, CUDA, torch and the C++ ABI, and without
    # one of them any guess would be a link to nothing
    build, version = environment.torch, couplings.flash_attention_for(torch.public)
    major, _, rest = (environment.interpreter.version or "").partition(".")
    if build is None or build.cuda is None or build.cxx11_abi is None or version is None or not rest:
        return None
    return couplings.FLASH_ATTENTION.format(
        version=version.partition(".post")[0],
        cuda=build.cuda.partition(".")[0],
        torch=".".join(torch.public.split(".")[:2]),
        abi=str(build.cxx11_abi).upper(),
        tag=f"cp{major}{rest.partition('.')[0]}",
    )
