"""A second, plain reading of the data, against which proposed sets are held.

Shares no code with the rules: raw JSON, one function per sentence of the rules.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from envmedic.model.answers.family import FamilyQuery, FamilySet

DATA = Path(__file__).parents[2] / "envmedic" / "compat" / "data"
Row = dict[str, Any]


@cache
def rows(file: str, table: str) -> list[Row]:
    loaded: list[Row] = json.loads((DATA / f"{file}.json").read_text(encoding="utf-8"))[table]
    return loaded


def pick(file: str, table: str, **wanted: str) -> Row | None:
    return next((row for row in rows(file, table) if all(row[key] == value for key, value in wanted.items())), None)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


def tag(query: FamilyQuery) -> str:
    return ".".join(query.python.split(".")[:2]) + ("t" if query.free_threaded else "")


def violations(found: FamilySet, query: FamilyQuery) -> list[str]:
    """Every rule that a proposed set breaks."""
    installed = query.installed.get("torch", "").partition("+")[0]
    kept = found.versions["torch"] == installed and found.variant == installed_variant(query)
    wrong = [*python_and_index(found, query, kept=kept), *companions(found, query), *triton(found, query)]
    wrong += driver(found, query, kept=kept)
    wrong += gpus(found, query, kept=kept)
    if query.gpu_required and found.variant == "cpu":
        wrong.append("a CPU build where GPUs are required")
    if query.glibc and query.machine == "x86_64":
        default = pick("torch_releases", "default_wheels", torch=found.versions["torch"])
        modern = default is not None and "manylinux_2_28_x86_64" in default["file_tags"]
        if modern and numbers(query.glibc) < [2, 28]:
            wrong.append("glibc is too old")
    return wrong


def installed_variant(query: FamilyQuery) -> str | None:
    if query.variant or "torch" not in query.installed:
        return query.variant
    public, _, label = query.installed["torch"].partition("+")
    default = pick("torch_releases", "default_wheels", torch=public)
    return label or (default["variants"].get(f"{query.system}_{query.machine}") if default else None)


def python_and_index(found: FamilySet, query: FamilyQuery, *, kept: bool) -> list[str]:
    torch, platform = found.versions["torch"], f"{query.system}_{query.machine}"
    if platform not in {"linux_x86_64", "linux_aarch64"}:
        return ["not a platform of torch's CUDA wheels"]
    release = pick("torch_releases", "releases", version=torch)
    if release is None:
        return [] if kept else [f"torch {torch} is unknown"]
    build = pick("torch_releases", "variants", torch=torch, variant=found.variant)
    if not kept and (build is None or not build["published"]):
        return [f"{torch} {found.variant} is not published"]
    tags: set[str] = set()
    offered = pick("torch_releases", "python_wheels", torch=torch, platform=platform)
    if build is not None:
        tags |= set(build["python"] or ())
    if offered is not None:
        tags |= set(offered["python"])
    return [] if tag(query) in tags else [f"torch {torch} has no wheel for {tag(query)}"]


def companions(found: FamilySet, query: FamilyQuery) -> list[str]:
    wrong, torch = [], found.versions["torch"]
    known = pick("torch_releases", "releases", version=torch) is not None
    for name in ("torchvision", "torchaudio"):
        if (name in query.members) != (name in found.versions):
            wrong.append(f"{name} asked for: {name in query.members}, given: {name in found.versions}")
        if name not in found.versions:
            continue
        row = pick("torch_releases", "companions", name=name, version=found.versions[name])
        if row is None:
            own = query.requires_torch.get(name, "").removeprefix("torch")
            if known or not own or not SpecifierSet(own).contains(query.installed["torch"], prereleases=True):
                wrong.append(f"{name} {found.versions[name]} is unknown")
            continue
        if row["yanked"]:
            wrong.append(f"{name} {row['version']} is withdrawn")
        if row["spec"] and not SpecifierSet(row["spec"]).contains(torch, prereleases=True):
            wrong.append(f"{name} {row['version']} requires torch{row['spec']}, not {torch}")
        if known and torch not in row["torch"]:
            wrong.append(f"{name} {row['version']} is not listed for torch {torch}")
        here = row["python"].get(f"{query.system}_{query.machine}", [])
        if tag(query) not in here and "py3" not in here:
            wrong.append(f"{name} {row['version']} has no wheel for {tag(query)}")
    return wrong


def triton(found: FamilySet, query: FamilyQuery) -> list[str]:
    release = pick("torch_releases", "releases", version=found.versions["torch"])
    if "triton" not in found.versions:
        needed = release is not None and release["triton"] and found.variant != "cpu" and "triton" in query.members
        return ["triton is missing"] if needed and release and marker_holds(release["triton_marker"], query) else []
    if release is None or release["triton"] is None or found.variant == "cpu" or "triton" not in query.members:
        return ["triton was not asked for"]
    wrong = []
    spec = release["triton"].removeprefix("triton")
    if not SpecifierSet(spec).contains(found.versions["triton"]):
        wrong.append(f"triton {found.versions['triton']} is not {spec}")
    row = pick("torch_releases", "triton", version=found.versions["triton"])
    if row is None or tag(query) not in row["python"].get(f"{query.system}_{query.machine}", []):
        wrong.append(f"triton {found.versions['triton']} has no wheel for {tag(query)}")
    return wrong


def marker_holds(text: str | None, query: FamilyQuery) -> bool:
    if not text:
        return True
    values = {
        "platform_system": "Linux",
        "platform_machine": query.machine,
        "python_version": ".".join(query.python.split(".")[:2]),
    }
    return Marker(text).evaluate(values)


def cuda_of(variant: str) -> str | None:
    return None if variant == "cpu" else f"{variant[2:-1]}.{variant[-1]}"


def driver(found: FamilySet, query: FamilyQuery, *, kept: bool) -> list[str]:
    cuda = cuda_of(found.variant)
    if cuda is None:
        return []
    toolkit = pick("cuda_driver", "toolkits", cuda=cuda)
    if toolkit is None:
        return [f"CUDA {cuda} is unknown"]
    if query.driver is None:
        no_use = bool(query.capabilities or query.unknown_capabilities) or query.variant == "cpu"
        blind = no_use and not kept and found.variant != query.variant
        return [f"{found.variant} with GPUs and an unknown driver"] if blind or query.gpu_required else []
    enough = [toolkit[key] for key in ("minor_compatibility_linux", "driver_linux") if toolkit[key]]
    if not any(numbers(query.driver) >= numbers(need) for need in enough):
        return [f"driver {query.driver} is older than {enough}"]
    return []


def gpus(found: FamilySet, query: FamilyQuery, *, kept: bool) -> list[str]:
    cuda = cuda_of(found.variant)
    seen = bool(query.capabilities) or query.unknown_capabilities > 0
    if cuda is None:
        used = (query.variant or "").startswith("cu")
        return ["a CPU build would replace a CUDA build"] if used else []
    if not seen:
        return []
    build = pick("torch_releases", "variants", torch=found.versions["torch"], variant=found.variant)
    key = f"arch_{query.system}_{query.machine}"
    sass, ptx = (build or {}).get(key), []
    if sass and (build or {}).get("ptx_linux_x86_64") and query.machine == "x86_64":
        ptx = [sass[-1]]
    if kept and query.sass:
        sass, ptx = list(query.sass), list(query.ptx)
    toolkit = pick("cuda_driver", "toolkits", cuda=cuda)
    jit = bool(query.driver and toolkit and toolkit["driver_linux"]) and numbers(query.driver or "0") >= numbers(
        (toolkit or {})["driver_linux"] or "0"
    )
    if (sass is None or query.unknown_capabilities) and not kept:
        return ["GPU code or capability is unknown"]
    wrong = []
    for gpu in query.capabilities:
        if sass is not None and not runs(sass, ptx if jit else [], gpu, cuda):
            wrong.append(f"nothing in {sass} and {ptx} runs on {gpu}")
        if toolkit is not None and not compiles(toolkit, gpu, jit=jit or query.driver is None):
            wrong.append(f"NVRTC {cuda} does not know {gpu}")
    return wrong


def runs(sass: list[str], ptx: list[str], gpu: str, cuda: str) -> bool:
    for code in sass:
        base = code.rstrip("af")
        if code.endswith("a"):
            fits = base == gpu
        elif code.endswith("f"):
            fits = same_major(base, gpu)
        else:
            row = pick("gpu_arch", "sass_compatibility", code=code)
            fits = same_major(base, gpu)
            if row and row["devices_only"]:
                fits = gpu in row["devices_only"]
            elif row and gpu in row["exclude"]:
                until = row.get("exclude_until_cuda")
                fits = fits and until is not None and numbers(cuda) > numbers(until)
        if fits:
            return True
    return any(numbers(code.rstrip("af")) <= numbers(gpu) for code in ptx if not code.endswith(("a", "f")))


def same_major(code: str, gpu: str) -> bool:
    return numbers(code)[0] == numbers(gpu)[0] and numbers(code)[1] <= numbers(gpu)[1]


def compiles(toolkit: Row, gpu: str, *, jit: bool) -> bool:
    if toolkit["nvrtc"] is not None and gpu in toolkit["nvrtc"]:
        return True
    if toolkit["nvrtc"] is None and numbers(toolkit["nvcc_min"]) <= numbers(gpu) <= numbers(toolkit["nvcc_max"]):
        return True
    for row in rows("cuda_driver", "nvrtc_clamps"):
        inside = numbers(row["first"]) <= numbers(toolkit["cuda"]) <= numbers(row["last"])
        if inside and numbers(gpu) > numbers(row["clamp"]) and jit:
            return True
    return False
