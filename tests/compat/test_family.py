"""Well-known hosts and environments, and the sets they must get."""

from __future__ import annotations

import pytest

from envmedic.compat.torch_family import family
from envmedic.model.answers.family import FamilyAnswer, FamilyQuery, Member
from envmedic.model.playbook import Policy

EVERY: tuple[Member, ...] = ("torch", "torchvision", "torchaudio", "triton")


def ask(
    torch: str | None = "2.5.1",
    *,
    variant: str | None = "cu124",
    python: str = "3.11",
    driver: str | None = "580.95.05",
    gpus: tuple[str, ...] = ("8.6",),
    members: tuple[Member, ...] = ("torch", "torchvision"),
    policies: tuple[Policy, ...] = ("keep-torch", "keep-cuda-variant", "newest"),
    installed: dict[str, str] | None = None,
    **more: object,
) -> FamilyAnswer:
    have = ({"torch": torch} if torch else {}) | (installed or {})
    query = {"python": python, "driver": driver, "capabilities": gpus, "variant": variant} | more
    return family.answer(FamilyQuery(installed=have, members=members, policies=policies, **query))  # type: ignore[arg-type]


def why(answer: FamilyAnswer, policy: Policy) -> dict[str, str]:
    """Rule → reason of what one policy rejected."""
    return {item.rule: item.reason for item in answer.rejected if item.title.startswith(f"{policy}:")}


@pytest.mark.parametrize(
    ("torch", "variant", "torchvision", "torchaudio", "python"),
    [
        ("2.5.1", "cu124", "0.20.1", "2.5.1", "3.11"),
        ("2.5.1+cu121", "cu121", "0.20.1", "2.5.1", "3.12"),
        ("2.11.0+cu130", "cu130", "0.26.0", "2.11.0", "3.12"),
        ("2.4.1", "cu121", "0.19.1", "2.4.1", "3.9"),
        ("1.13.1+cu117", "cu117", "0.14.1", "0.13.1", "3.10"),
        ("2.0.0", "cu117", "0.15.1", "2.0.1", "3.10"),
        ("1.10.0+cu113", "cu113", "0.11.1", "0.10.0", "3.9"),
        ("2.14.0", "cu130", "0.29.0", "2.11.0", "3.13"),
        ("2.15.0", "cu132", "0.29.2", "2.11.0", "3.13"),
    ],
)
def test_the_companions_of_an_installed_torch(
    torch: str, variant: str, torchvision: str, torchaudio: str, python: str
) -> None:
    best = ask(torch, variant=variant, python=python, members=("torch", "torchvision", "torchaudio")).sets[0]
    assert best.policy == "keep-torch"
    assert best.variant == variant
    assert best.versions == {"torch": torch.partition("+")[0], "torchvision": torchvision, "torchaudio": torchaudio}


def test_a_torchvision_that_fits_is_kept_though_another_is_recommended() -> None:
    best = ask("2.14.1", variant="cu130", installed={"torchvision": "0.29.2"}).sets[0]
    assert best.versions["torchvision"] == "0.29.2"


def test_a_withdrawn_torchvision_is_not_kept() -> None:
    best = ask("2.0.0", variant="cu117", python="3.10", installed={"torchvision": "0.15.0"}).sets[0]
    assert best.versions["torchvision"] == "0.15.1"


def test_a_gpu_newer_than_the_installed_torch_needs_another_torch() -> None:
    answer = ask(gpus=("12.0",), driver="570.124.06")
    assert set(why(answer, "keep-torch")) == {"gpu-coverage", "nvrtc-coverage"}
    assert "12.0" in why(answer, "keep-torch")["gpu-coverage"]
    assert answer.sets[0].policy == "newest"
    assert answer.sets[0].variant in {"cu128", "cu129"}
    assert why(answer, "newest")["driver-minimum"].startswith("CUDA 13")


def test_driver_470_gets_cuda_11_only() -> None:
    answer = ask(driver="470.82.01", python="3.10")
    assert answer.sets
    assert all(found.variant.startswith("cu11") for found in answer.sets)
    assert "525.60.13" in why(answer, "keep-torch")["driver-minimum"]


def test_gpus_that_no_build_serves_together_get_the_reasons() -> None:
    answer = ask(gpus=("6.1", "12.0"))
    assert answer.sets == ()
    reasons = [item.reason for item in answer.rejected if item.rule == "gpu-coverage"]
    assert any("no code for compute capability 12.0" in text for text in reasons)
    assert any("no code for compute capability 6.1" in text for text in reasons)


def test_an_rtx_4090_runs_what_torch_2_0_has_for_8_6() -> None:
    best = ask("2.0.1", variant="cu117", python="3.10", gpus=("8.9",)).sets[0]
    assert (best.policy, best.versions["torchvision"]) == ("keep-torch", "0.15.2")


def test_clamped_run_time_kernels_need_a_driver_that_compiles_their_ptx() -> None:
    answer = ask("2.0.1", variant="cu117", python="3.10", gpus=("8.9",), driver="510.47.03")
    assert set(why(answer, "keep-torch")) == {"nvrtc-coverage"}


def test_an_nvrtc_that_does_not_know_the_gpu_is_held_against_a_build_whose_code_runs_on_it() -> None:
    answer = ask("2.7.1", variant="cu128", gpus=("10.3",))
    assert set(why(answer, "keep-torch")) == {"nvrtc-coverage"}
    assert all(found.variant in {"cu129", "cu130", "cu132"} for found in answer.sets)


def test_ptx_serves_a_newer_gpu_only_with_a_driver_as_new_as_the_toolkit() -> None:
    observed = {"sass": ("8.0",), "ptx": ("8.0",)}
    assert ask(gpus=("9.0",), driver="550.54.14", **observed).sets[0].policy == "keep-torch"  # type: ignore[arg-type]
    refused = ask(gpus=("9.0",), driver="535.54.03", **observed)  # type: ignore[arg-type]
    assert "gpu-coverage" in why(refused, "keep-torch")


def test_the_code_observed_in_the_installed_library_goes_before_the_data() -> None:
    answer = ask(gpus=("8.6",), sass=("7.0",), policies=("keep-torch",))
    assert why(answer, "keep-torch")["gpu-coverage"].endswith("(it has 7.0)")


def test_a_cpu_host_keeps_the_installed_kind_of_build() -> None:
    for variant in ("cu124", "cpu"):
        answer = ask(variant=variant, driver=None, gpus=())
        assert answer.sets[0].policy == "keep-torch"
        assert {found.variant == "cpu" for found in answer.sets} == {variant == "cpu"}


def test_a_cpu_build_is_no_answer_where_gpus_are_required() -> None:
    answer = ask(variant="cpu", gpu_required=True)
    assert all(found.variant != "cpu" for found in answer.sets)
    assert "gpu-required" in why(answer, "keep-torch")


def test_an_unknown_driver_lets_only_the_installed_variant_stay() -> None:
    answer = ask(driver=None)
    assert {found.variant for found in answer.sets} == {"cu124"}
    assert any("not checked" in text for text in answer.sets[0].reasons)


def test_an_unknown_capability_lets_only_torch_stay() -> None:
    answer = ask(gpus=(), unknown_capabilities=1)
    assert [found.policy for found in answer.sets] == ["keep-torch"]
    assert "not known" in why(answer, "newest")["gpu-coverage"]


def test_a_python_without_wheels_is_named() -> None:
    answer = ask("2.15.0", variant="cu132", python="3.9", policies=("keep-torch",))
    assert answer.sets == ()
    assert "no wheel for Python 3.9" in why(answer, "keep-torch")["python-wheel"]


@pytest.mark.parametrize("python", ["unknown", "pypy 3.10.14", "3.15.0b1", ""])
def test_an_interpreter_that_no_wheel_fits_is_named_and_is_no_crash(python: str) -> None:
    answer = ask(python=python, members=EVERY)
    assert answer.sets == () or python == "3.15.0b1"
    assert "python-wheel" in why(answer, "keep-torch")


def test_a_companion_without_a_wheel_for_this_python_is_named() -> None:
    answer = ask(python="3.13", policies=("keep-torch",))
    assert "torchvision 0.20.1" in why(answer, "keep-torch")["python-wheel"]


def test_an_excluded_patch_release_of_python_is_respected() -> None:
    assert ask("2.14.1", variant="cu130", python="3.14.0", policies=("keep-torch",)).sets
    assert not ask("2.14.1", variant="cu130", python="3.14.1", policies=("keep-torch",)).sets


def test_free_threaded_interpreters_get_free_threaded_wheels_only() -> None:
    assert ask("2.15.0", variant="cu132", python="3.14", free_threaded=True, policies=("keep-torch",)).sets
    refused = ask("2.5.1", python="3.13", free_threaded=True, policies=("keep-torch",))
    assert "3.13t" in why(refused, "keep-torch")["python-wheel"]


def test_triton_follows_the_requirement_of_torch_and_its_marker() -> None:
    assert ask(members=EVERY).sets[0].versions["triton"] == "3.1.0"
    assert "triton" not in ask(variant="cpu", members=("torch", "triton"), gpus=(), driver=None).sets[0].versions
    assert "triton" not in ask(python="3.13", members=("torch", "triton")).sets[0].versions
    assert ask("2.14.1", variant="cu130", members=("torch", "triton")).sets[0].versions["triton"] == "3.8.0"


@pytest.mark.parametrize(
    ("torch", "variant", "default"),
    [("2.5.1", "cu124", True), ("2.5.1+cu121", "cu121", False), ("2.15.0", "cu132", True), ("2.14.1", "cu130", True)],
)
def test_which_sets_the_default_index_carries(torch: str, variant: str, default: bool) -> None:  # noqa: FBT001
    assert ask(torch, variant=variant, members=("torch", "torchvision")).sets[0].default_index is default


def test_torchaudio_needs_a_torch_of_the_same_release_of_cuda() -> None:
    # its build on the default index is for CUDA 13.0, and `import torchaudio` raises RuntimeError beside another one
    found = ask("2.15.0", variant="cu132", members=("torch", "torchvision", "torchaudio")).sets[0]
    assert found.versions["torchaudio"] == "2.11.0"
    assert not found.default_index
    assert ask("2.14.1", variant="cu130", members=("torch", "torchaudio")).sets[0].default_index


def test_old_glibc_excludes_newer_wheels() -> None:
    answer = ask(glibc="2.17", python="3.11")
    newest = [found for found in answer.sets if found.policy == "newest"]
    assert newest
    assert all(found.versions["torch"] < "2.7" for found in newest)
    assert "glibc 2.28" in why(answer, "newest")["wheel-tag"]


@pytest.mark.parametrize("torch", ["2.5.1a0+gitabc", "2.5.1+gitabc"])
def test_a_custom_build_is_not_mistaken_for_the_release(torch: str) -> None:
    answer = ask(torch)
    assert "custom build" in why(answer, "keep-torch")["torch-known"]
    assert all(found.policy != "keep-torch" for found in answer.sets)


def test_a_torch_newer_than_the_data_gets_a_companion_by_metadata() -> None:
    best = ask("2.16.0", variant="cu132", python="3.12").sets[0]
    assert (best.policy, best.versions) == ("keep-torch", {"torch": "2.16.0", "torchvision": "0.29.2"})
    own = ask(
        "2.16.0",
        variant="cu132",
        python="3.12",
        installed={"torchvision": "0.31.0"},
        requires_torch={"torchvision": "torch==2.16.0"},
    ).sets[0]
    assert own.versions["torchvision"] in {"0.31.0", "0.29.2"}


def test_a_torch_older_than_the_data_is_named() -> None:
    answer = ask("1.6.0", variant="cu102", python="3.8", policies=("keep-torch",))
    assert "no torchvision is known for torch 1.6.0" in why(answer, "keep-torch")["torchvision-pair"]


def test_a_build_whose_publication_is_not_verified_is_not_proposed() -> None:
    answer = ask("2.14.1", variant="cu126", python="3.12", policies=("keep-cuda-variant",))
    assert {found.versions["torch"] for found in answer.sets} & {"2.14.0", "2.13.0"}
    assert "2.15.0" not in {found.versions["torch"] for found in answer.sets}
    assert "torch 2.15.0 (cu126)" in why(answer, "keep-cuda-variant")["variant-published"]


def test_a_variant_without_wheels_for_the_machine_is_named() -> None:
    answer = ask("2.5.1", variant="cu118", machine="aarch64", policies=("keep-cuda-variant",))
    assert "has no wheels for linux_aarch64" in why(answer, "keep-cuda-variant")["variant-published"]


def test_rocm_is_never_exchanged_for_cuda() -> None:
    answer = ask("2.5.1+rocm6.2", variant="rocm6.2", driver=None, gpus=())
    assert answer.sets == ()
    assert {item.rule for item in answer.rejected} == {"backend"}


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "ppc64le")])
def test_other_platforms_are_refused_by_name(system: str, machine: str) -> None:
    answer = ask(system=system, machine=machine)
    assert answer.sets == ()
    assert {item.rule for item in answer.rejected} == {"platform"}


def test_aarch64_has_its_own_wheels_and_architectures() -> None:
    answer = ask("2.14.1", variant="cu130", python="3.12", machine="aarch64", gpus=("9.0",))
    assert answer.sets[0].versions == {"torch": "2.14.1", "torchvision": "0.29.1"}
    assert "gpu-coverage" in why(ask("2.14.1", variant="cu130", machine="aarch64", gpus=("8.9", "7.5")), "keep-torch")


def test_every_set_cites_its_rules_and_sources() -> None:
    for found in ask(members=EVERY).sets:
        rules = {text.partition(":")[0] for text in found.reasons}
        assert {"python-wheel", "driver-minimum", "gpu-coverage", "torchvision-pair", "triton-requirement"} <= rules
        assert any("[" in text for text in found.reasons)


def test_rejections_are_distinct_causes() -> None:
    for answer in (ask(python="3.7"), ask(gpus=("6.1", "12.0")), ask(driver="390.157")):
        assert len(answer.rejected) <= 12


@pytest.mark.parametrize(
    ("torch", "variant", "driver", "found"),
    [
        ("2.5.1+cpu", "cpu", "550.54.15", "cu124"),
        ("2.5.1+cpu", "cpu", "470.82.01", "cu118"),
        ("2.11.0", "cu130", "550.54.15", "cu129"),
    ],
)
def test_the_same_release_in_another_variant(torch: str, variant: str, driver: str, found: str) -> None:
    best = ask(torch, variant=variant, driver=driver, policies=("keep-release", "newest")).sets[0]
    assert (best.policy, best.versions["torch"], best.variant) == ("keep-release", torch.partition("+")[0], found)


def test_a_driver_that_no_variant_of_the_release_is_for() -> None:
    answer = ask("2.13.0", variant="cu130", driver="470.82.01", policies=("keep-release",))
    assert answer.sets == ()
    assert "the host has 470.82.01" in why(answer, "keep-release")["driver-minimum"]
