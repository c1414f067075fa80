"""What installed distributions require of each other, and what meets it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from envmedic.compat import couplings
from envmedic.compat.import_names import module_of
from envmedic.compat.installed_requirements import Demand, demands, markers, satisfying
from envmedic.compat.versions import allows, public
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Distribution, Environment, Facts

HUGGING_FACE = frozenset({
    "transformers", "tokenizers", "huggingface-hub", "safetensors", "accelerate", "peft", "diffusers", "datasets",
    "sentence-transformers", "trl", "optimum", "evaluate",
})  # fmt: skip
_FAMILY = frozenset({"torch", "torchvision", "torchaudio"})
_TRITON = frozenset({"triton", "pytorch-triton", "triton-windows"})
_TRANSFORMERS_COMPARES = frozenset({
    "filelock", "huggingface-hub", "numpy", "packaging", "pyyaml", "regex", "requests", "safetensors", "tokenizers", "tqdm",
})  # fmt: skip
"""What transformers compares when it is imported. Source: ``dependency_versions_check.py`` of 4.30 to 4.57."""
_TORCHS_OWN = frozenset({
    "filelock", "fsspec", "jinja2", "mpmath", "networkx", "optree", "setuptools", "sympy", "typing-extensions",
})  # fmt: skip


def derive(facts: Facts) -> Derived:
    """The facts of ``requirements.*`` and of the families of libraries; those of NumPy apart."""
    environment = facts.environment
    if environment is None:
        return {}
    every = (*demands(environment, markers(environment, facts.host)), *_unstated(environment))
    derived = _named("requirements.conflicts", "-pins", _conflicts(every), every)
    derived |= _named("requirements.of-torch", "-pins", _of_torch(every), every)
    missing = _missing(every)
    derived |= _named("requirements.missing", "-pins", missing, every)
    derived["requirements.missing-modules"] = tuple(
        dict.fromkeys(name for item in missing for name in (module_of(item.name), item.name))
    )
    derived |= _hugging_face(every)
    derived |= _named("protobuf.unmet", "-pins", _conflicting(every, "protobuf"), every)
    derived |= _triton(every, environment) | _companions(every, environment)
    return derived


def _unstated(environment: Environment) -> Iterator[Demand]:
    """What the data knows beyond metadata."""
    for row in couplings.UNSTATED:
        by, other = environment.distribution(row.by), environment.distribution(row.name)
        if by is not None and not by.outside_prefix and other is not None and allows(row.versions, by.version):
            yield Demand(by, row.name, row.accepted, other.version)


def _named(name: str, suffix: str, unmet: Sequence[Demand], every: Sequence[Demand]) -> Derived:
    """The sentences of unmet requirements, and what meets them."""
    sentences = tuple(dict.fromkeys(item.unmet().sentence() for item in unmet))
    return {name: sentences, f"{name}{suffix}": pins((item.name for item in unmet), every)}


def pins(names: Iterable[str], every: Sequence[Demand]) -> tuple[str, ...]:
    """For each name the requirement that fulfils all that is asked of it, where there is one."""
    found = (satisfying(name, every) for name in dict.fromkeys(names))
    return tuple(item for item in found if item is not None)


def _conflicts(every: Sequence[Demand]) -> tuple[Demand, ...]:
    """Wrong versions that no other fact is about."""
    return tuple(item for item in every if not item.met and item.found is not None and not _told_elsewhere(item.name))


def _missing(every: Sequence[Demand]) -> tuple[Demand, ...]:
    """What is required and not there at all, and no other fact is about."""
    return tuple(item for item in every if not item.met and item.found is None and not _told_elsewhere(item.name))


def _told_elsewhere(name: str) -> bool:
    return name in _FAMILY | _TRITON | {"numpy"} or name.startswith("nvidia-")


def _of_torch(every: Sequence[Demand]) -> tuple[Demand, ...]:
    return tuple(item for item in every if item.by.name == "torch" and not item.met and item.name in _TORCHS_OWN)


def _hugging_face(every: Sequence[Demand]) -> Derived:
    """What makes an import fail: what transformers compares, and wrong versions of the libraries among themselves.

    Where two libraries exclude each other on a third one, the one that is not met is upgraded.
    """
    unmet = tuple(item for item in every if not item.met and _stops_hugging_face(item))
    derived = _named("huggingface.unmet", "-pins", unmet, every)
    stuck = [item.by for item in unmet if satisfying(item.name, every) is None]
    upgrades = dict.fromkeys(f"{by.name}>{by.version}" for by in stuck)
    met = pins((item.name for item in unmet), every)
    return derived | {"huggingface.unmet-pins": (*met, *upgrades)}


def _stops_hugging_face(item: Demand) -> bool:
    if item.by.name == "transformers":
        return item.name in _TRANSFORMERS_COMPARES
    return item.by.name in HUGGING_FACE and item.name in HUGGING_FACE and item.found is not None


def _conflicting(every: Sequence[Demand], name: str) -> tuple[Demand, ...]:
    return tuple(item for item in every if item.name == name and not item.met and item.found is not None)


def _triton(every: Sequence[Demand], environment: Environment) -> Derived:
    """What torch requires of triton. conda's torch has its triton under other names, and is not judged."""
    torch = environment.distribution("torch")
    asked = [item for item in every if item.by.name == "torch" and item.name in _TRITON]
    derived: Derived = {"triton.required": None, "triton.accepted": None, "triton.unmet-pins": ()}
    if torch is None or torch.owner == "conda" or not asked:
        return derived
    wanted = f"{asked[0].name}{asked[0].specifier}"
    pin = () if asked[0].met else (wanted,)
    return derived | {"triton.required": wanted, "triton.accepted": asked[0].met, "triton.unmet-pins": pin}


def _companions(every: Sequence[Demand], environment: Environment) -> Derived:
    torch = environment.distribution("torch")
    if torch is None:
        return {}
    return {
        **_xformers(every, environment, torch),
        **_bitsandbytes(environment),
        **_flash_attention(environment, torch),
        **_made_for_one_torch(every, environment, torch),
    }


def _xformers(every: Sequence[Demand], environment: Environment, torch: Distribution) -> Derived:
    if environment.distribution("xformers") is None:
        return {"xformers.requires-torch": None, "xformers.accepts-torch": None, "xformers.pins": None}
    asked = next((item for item in every if item.by.name == "xformers" and item.name == "torch"), None)
    fitting = couplings.xformers_for(torch.public)
    return {
        "xformers.requires-torch": f"torch{asked.specifier}" if asked else None,
        "xformers.accepts-torch": asked.met if asked else None,
        "xformers.pins": (f"xformers=={fitting}",) if fitting and asked and not asked.met else (),
    }


def _bitsandbytes(environment: Environment) -> Derived:
    installed, build = environment.distribution("bitsandbytes"), environment.torch
    if installed is None or environment.bitsandbytes_cuda is None:
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
    build, version = environment.torch, couplings.flash_attention_for(torch.public)
    python = (environment.interpreter.version or "").split(".")
    if build is None or build.cuda is None or build.cxx11_abi is None or version is None or len(python) < 2:  # noqa: PLR2004
        return None
    return couplings.FLASH_ATTENTION.format(
        version=version.partition(".post")[0],
        cuda=build.cuda.partition(".")[0],
        torch=".".join(torch.public.split(".")[:2]),
        abi=str(build.cxx11_abi).upper(),
        tag=f"cp{python[0]}{python[1]}",
    )


def _made_for_one_torch(every: Sequence[Demand], environment: Environment, torch: Distribution) -> Derived:
    """What states the torch that it needs (torchtext and torchdata), and torchcodec, which does not."""
    stated = [item for item in every if item.by.name in {"torchtext", "torchdata"} and item.name == "torch"]
    unmet = [item.unmet().sentence() for item in stated if not item.met]
    wanted: tuple[str, ...] = ()
    codec = environment.distribution("torchcodec")
    if codec is not None and couplings.torchcodec_fits(public(codec.version), torch.public) is False:
        unmet.append(f"torchcodec {codec.version} belongs to another torch than {torch.version}")
        minor = couplings.torchcodec_for(torch.public)
        wanted = (f"torchcodec=={minor}.*",) if minor else ()
    return {"companions.unmet": tuple(unmet), "companions.pins": wanted}
