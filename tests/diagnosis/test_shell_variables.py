"""Variables of the shell: the verdict names them, with the exact line that mends them."""

from __future__ import annotations

import pytest

from envmedic.diagnosis.areas.shell_variables import derive
from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.findings import diagnose
from envmedic.model.facts import Environment, Facts, Gpu, Host, KeptVariable, Variable
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import NO_TEXT
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all
from tests.diagnosis.helpers import environment

GPUS = (Gpu(index=0, name="NVIDIA H200", compute_capability="9.0"), Gpu(index=1, name="NVIDIA H200", visible=False))
STUBS = "/usr/local/cuda/lib64/stubs"


def host(*gpus: Gpu, **variables: str) -> Host:
    return Host(
        driver_version="580.95.05",
        driver_source="nvml",
        gpus=gpus,
        variables=tuple(Variable(name=name, value=value) for name, value in variables.items()),
        network_interfaces=("eth0", "lo"),
        stub_drivers=(STUBS,),
    )


def derived(*gpus: Gpu, observed: Environment | None = None, **variables: str) -> Derived:
    return derive(Facts(host=host(*gpus, **variables), environment=observed))


def told(text: str, *gpus: Gpu, **variables: str) -> Diagnosis:
    facts = Facts(host=host(*gpus, **variables), environment=environment())
    return diagnose(read_text([text.encode()], load_all()), facts, load_all(), prefix="/env", log="log")


def test_the_stand_in_is_taken_out_of_the_library_path() -> None:
    found = derived(LD_LIBRARY_PATH=f"/opt/a b:{STUBS}:/opt/c")
    assert (found["shell.stubs"], found["shell.stubs-line"]) == ((STUBS,), "export LD_LIBRARY_PATH='/opt/a b:/opt/c'")
    assert derived(LD_LIBRARY_PATH=STUBS)["shell.stubs-line"] == "unset LD_LIBRARY_PATH"
    assert derived(LD_LIBRARY_PATH="/opt/c")["shell.stubs-line"] is None


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("eth", False),
        ("=eth0", False),
        ("=eth", True),
        ("nope0", True),
        ("^lo", False),
        ("^eth,lo", True),
        ("eth0:5000", False),
    ],
)
def test_an_interface_is_read_as_nccl_reads_it(value: str, wrong: bool) -> None:  # noqa: FBT001  # a row of a table
    found = derived(NCCL_SOCKET_IFNAME=value)
    assert (found["shell.interface-line"] == "unset NCCL_SOCKET_IFNAME") is wrong


def test_variables_of_the_environment_are_not_those_of_the_shell() -> None:
    from msgspec.structs import replace

    own = replace(
        environment(), variables=(KeptVariable(name="NCCL_SOCKET_IFNAME", value="nope0", source="activate.d"),)
    )
    assert derived(observed=own, NCCL_SOCKET_IFNAME="nope0")["shell.interface-line"] is None


@pytest.mark.parametrize(
    ("value", "gpus", "sentence"),
    [
        ("7", GPUS[1:], "CUDA_VISIBLE_DEVICES=7 names no GPU: there is only 1"),
        ("0,9", GPUS, "CUDA_VISIBLE_DEVICES=0,9 names 1 of 2 GPUs: there are 0, 1"),
        ("0", GPUS, None),
    ],
)
def test_entries_that_name_no_gpu_are_told(value: str, gpus: tuple[Gpu, ...], sentence: str | None) -> None:
    assert derived(*gpus, CUDA_VISIBLE_DEVICES=value)["shell.gpus-hidden"] == sentence


def test_a_variable_that_hides_the_gpus_is_no_fault_of_the_host() -> None:
    found = told("RuntimeError: No CUDA GPUs are available", GPUS[1], CUDA_VISIBLE_DEVICES="7")
    assert (found.verdict, found.findings[0].fault) == ("shell", "gpu-host-fault")
    assert found.reason == "CUDA_VISIBLE_DEVICES=7 names no GPU: there is only 1"
    assert found.advice == ("In the shell that starts the program: unset CUDA_VISIBLE_DEVICES",)


@pytest.mark.parametrize(
    ("text", "playbook", "variables", "line"),
    [
        (
            "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu. Error 34: CUDA driver is a stub library",
            "shell-driver-stub",
            {"LD_LIBRARY_PATH": STUBS},
            "unset LD_LIBRARY_PATH",
        ),
        (
            "node1:4242:4242 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
            "shell-network-interface",
            {"NCCL_SOCKET_IFNAME": "nope0"},
            "unset NCCL_SOCKET_IFNAME",
        ),
        (
            "RuntimeError: CachingAllocator option max_split_size_mb too small, must be > 20",
            "shell-allocator",
            {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:4"},
            "unset PYTORCH_CUDA_ALLOC_CONF",
        ),
    ],
)
def test_the_exact_line_is_given(text: str, playbook: str, variables: dict[str, str], line: str) -> None:
    found = told(text, GPUS[0], **variables)
    first = found.findings[0]
    assert (found.verdict, first.playbook, first.confirmed) == ("shell", playbook, True)
    assert found.advice[0].endswith(line)


def test_facts_alone_tell_of_a_stand_in() -> None:
    facts = Facts(host=host(GPUS[0], LD_LIBRARY_PATH=STUBS), environment=environment())
    assert diagnose(NO_TEXT, facts, load_all(), prefix="/env", log=None).verdict == "shell"
