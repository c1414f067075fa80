"""Variables of the shell: the verdict names them, with the exact line that mends them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from envmedic.diagnosis.areas.shell_variables import derive
from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.findings import diagnose
from envmedic.model.facts import CudaLibrary, Environment, Facts, Gpu, Host, KeptVariable, Variable
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import NO_TEXT
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema.loader import load_all
from tests.diagnosis.helpers import environment

GPUS = (Gpu(index=0, name="NVIDIA H200", compute_capability="9.0"), Gpu(index=1, name="NVIDIA H200", visible=False))
STUBS = "/usr/local/cuda/lib64/stubs"


def host(*gpus: Gpu, **variables: str) -> Host:
    """A host with these variables, on which LD_PRELOAD leads to files in /opt alone."""
    return Host(
        driver_version="580.95.05",
        driver_source="nvml",
        gpus=gpus,
        variables=tuple(Variable(name=name, value=value) for name, value in variables.items()),
        network_interfaces=("eth0", "lo"),
        stub_drivers=(STUBS,),
        lost_preloads=tuple(
            item for item in variables.get("LD_PRELOAD", "").split(":") if item and not item.startswith("/opt")
        ),
    )


def derived(*gpus: Gpu, observed: Environment | None = None, **variables: str) -> Derived:
    return derive(Facts(host=host(*gpus, **variables), environment=observed))


def told(text: str, *gpus: Gpu, **variables: str) -> Diagnosis:
    return told_of(environment(), text, *gpus, **variables)


def told_of(observed: Environment, text: str, *gpus: Gpu, **variables: str) -> Diagnosis:
    facts = Facts(host=host(*gpus, **variables), environment=observed)
    return diagnose(read_text(text.encode().splitlines(), load_all()), facts, load_all(), prefix="/env", log="log")


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


OTHER_LT = CudaLibrary(
    soname="libcublasLt.so.12",
    path="/usr/local/cuda-12.1/lib64/libcublasLt.so.12",
    instead_of="lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
)
STATUS = "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle, opa, opb, m, n, k)`"


def with_libraries(*libraries: CudaLibrary) -> Environment:
    return replace(environment(), cuda_libraries=libraries)


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        (
            {"LD_LIBRARY_PATH": "/opt/a b:/usr/local/cuda-12.1/lib64/:/opt/c"},
            "export LD_LIBRARY_PATH='/opt/a b:/opt/c'",
        ),
        ({"LD_LIBRARY_PATH": "/usr/local/cuda-12.1/lib64"}, "unset LD_LIBRARY_PATH"),
        (
            {"LD_PRELOAD": "/opt/tcmalloc.so:/usr/local/cuda-12.1/lib64/libcublasLt.so.12"},
            "export LD_PRELOAD=/opt/tcmalloc.so",
        ),
        ({"LD_PRELOAD": "libcublasLt.so.12", "LD_LIBRARY_PATH": "/usr/local/cuda-12.1/lib64"}, "unset LD_PRELOAD"),
        ({"LD_LIBRARY_PATH": "/opt/c"}, None),
    ],
)
def test_what_hides_a_library_of_torch_is_taken_out(variables: dict[str, str], line: str | None) -> None:
    assert derived(observed=with_libraries(OTHER_LT), **variables)["shell.cuda-line"] == line


def test_a_library_path_that_the_environment_sets_itself_is_no_fault_of_the_shell() -> None:
    value = "/usr/local/cuda-12.1/lib64"
    kept = KeptVariable(name="LD_LIBRARY_PATH", value=value, source="activate.d")
    observed = replace(with_libraries(OTHER_LT), variables=(kept,))
    found = told_of(observed, STATUS, GPUS[0], LD_LIBRARY_PATH=value)
    assert (found.verdict, found.findings[0].playbook) == ("env", "nvidia-shadowed")


def test_another_cuda_before_torchs_own_wheels_is_a_variable_of_the_shell() -> None:
    variables = {"LD_LIBRARY_PATH": "/usr/local/cuda-12.1/lib64:/opt/c"}
    found = told_of(with_libraries(OTHER_LT), STATUS, GPUS[0], **variables)
    first = found.findings[0]
    assert (found.verdict, first.fault, first.confirmed) == ("shell", "nvidia-wheel-conflict", True)
    assert found.advice[0].endswith(": export LD_LIBRARY_PATH=/opt/c")
    assert any("libcublasLt.so.12 from /usr/local/cuda-12.1/lib64/" in item.what for item in first.evidence)


def test_a_library_that_hides_one_of_torch_is_no_fault_without_an_error() -> None:
    facts = Facts(
        host=host(GPUS[0], LD_LIBRARY_PATH="/usr/local/cuda-12.1/lib64"), environment=with_libraries(OTHER_LT)
    )
    assert diagnose(NO_TEXT, facts, load_all(), prefix="/env", log=None).verdict == "healthy"


def test_a_status_of_cublas_is_not_that_of_another_library() -> None:
    linker = replace(OTHER_LT, soname="libnvJitLink.so.12", path="/usr/local/cuda-12.1/lib64/libnvJitLink.so.12")
    observed = with_libraries(linker)
    assert told_of(observed, STATUS, GPUS[0], LD_LIBRARY_PATH="/usr/local/cuda-12.1/lib64").verdict == "unknown"


def test_the_same_error_without_another_cuda_is_not_blamed_on_the_shell() -> None:
    assert told(STATUS, GPUS[0], LD_LIBRARY_PATH="/opt/c").verdict == "unknown"


LOST = "ERROR: ld.so: object '/gone/libiomp5.so' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored."


def test_a_preloaded_library_that_is_gone_is_taken_out() -> None:
    found = told(LOST, GPUS[0], LD_PRELOAD="/gone/libiomp5.so:/opt/tcmalloc.so")
    assert (found.verdict, found.findings[0].playbook, found.findings[0].confirmed) == ("shell", "shell-preload", True)
    assert found.advice[0].endswith(": export LD_PRELOAD=/opt/tcmalloc.so")


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ("RuntimeError: Ninja is required to load C++ extensions", "env"),
        ("ValueError: an error of the program that nobody knows", "unknown"),
    ],
)
def test_what_the_loader_leaves_out_explains_no_error_behind_it(error: str, verdict: str) -> None:
    text = f'{LOST}\nTraceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\n{error}'
    found = told(text, GPUS[0], LD_PRELOAD="/gone/libiomp5.so")
    assert found.verdict == verdict
    assert verdict == "unknown" or found.findings[0].playbook != "shell-preload"


def test_a_process_that_was_killed_did_not_end_for_want_of_a_preloaded_library() -> None:
    assert told(f"{LOST}\nKilled", GPUS[0], LD_PRELOAD="/gone/libiomp5.so").verdict == "not-an-env-problem"


ORDINAL = "RuntimeError: CUDA error: invalid device ordinal"
UUIDS = (replace(GPUS[0], uuid="GPU-8f2a"), replace(GPUS[1], uuid="GPU-91bc", visible=True))


@pytest.mark.parametrize(
    ("setting", "unknown"),
    [
        ("0,9", "9"),
        ("9", "9"),
        ("GPU-77", "GPU-77"),
        ("GPU-8f,GPU-77", "GPU-77"),
        ("all", "all"),
        ("0,1", None),
        ("GPU-91bc,0", None),
        ("", None),
        ("-1", None),
        ("1,-1,7", None),
        ("NoDevFiles", None),
        ("MIG-1234", None),
    ],
)
def test_devices_that_do_not_exist_are_named(setting: str, unknown: str | None) -> None:
    found = derived(*UUIDS, CUDA_VISIBLE_DEVICES=setting)["shell.devices-unknown"]
    expected = f"CUDA_VISIBLE_DEVICES={setting} names {unknown}, which no GPU of this host is: there are 0, 1"
    assert found == (expected if unknown else None)


def test_an_invalid_ordinal_is_the_shells_where_the_variable_names_what_is_not_there() -> None:
    found = told(ORDINAL, GPUS[0], CUDA_VISIBLE_DEVICES="0,9")
    assert (found.verdict, found.findings[0].playbook) == ("shell", "shell-visible-devices")
    assert found.advice[0].endswith(": unset CUDA_VISIBLE_DEVICES")
    assert told(ORDINAL, GPUS[0], CUDA_VISIBLE_DEVICES="0").verdict == "not-an-env-problem"


CACHE = "/home/user/.cache/torch_extensions/py311_cu124"


@pytest.mark.parametrize(
    ("text", "fault", "line"),
    [
        (
            f"ImportError: {CACHE}/boxes/boxes.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs",
            "extension-undefined-symbol",
            f"rm -r {CACHE}/boxes",
        ),
        (
            f"ImportError: {CACHE}/cpu_adam/cpu_adam.so: undefined symbol: curandCreateGenerator",
            "extension-undefined-symbol",
            f"rm -r {CACHE}/cpu_adam",
        ),
        (
            "ImportError: /scratch/my ext/boxes/boxes.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs",
            "extension-undefined-symbol",
            None,
        ),
        (
            "ImportError: /scratch/ext/boxes/boxes.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs",
            "extension-undefined-symbol",
            "rm -r /scratch/ext/boxes",
        ),
        (
            f"ImportError: {CACHE}/utils/utils.so: file too short",
            "shell-variable",
            f"rm -r {CACHE}/utils",
        ),
        (
            "PermissionError: [Errno 13] Permission denied: '/app/engine/.triton'",
            "shell-variable",
            'export TRITON_CACHE_DIR="$(mktemp -d)"',
        ),
        (
            "OSError: [Errno 28] No space left on device: '/tmp/torchinductor_user/ab/cab.py'",
            "shell-variable",
            "rm -r /tmp/torchinductor_user",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/root/.triton/cache/5a9f/kernel.cubin.tmp.pid_7_11'",
            "shell-variable",
            'export TRITON_CACHE_DIR="$(mktemp -d)"',
        ),
        (
            "ImportError: /scratch/ext/boxes/boxes.so: file too short",
            "half-installed",
            "rm -r /scratch/ext/boxes",
        ),
    ],
)
def test_a_file_of_a_cache_gives_the_line_for_that_cache(text: str, fault: str, line: str | None) -> None:
    found = told(text, GPUS[0], TORCH_EXTENSIONS_DIR="/scratch/ext")
    assert (found.verdict == "shell", found.findings[0].fault) == (line is not None, fault)
    assert line is None or found.advice[0] == f"In the shell that starts the program: {line}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'NotImplementedError: Using RTX 4000 series doesn\'t support faster communication broadband via P2P or IB. Please set `NCCL_P2P_DISABLE="1"` and `NCCL_IB_DISABLE="1"`',
            "export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1",
        ),
        (
            "node:9608:10337 [0] transport/p2p.cc:238 NCCL WARN failed to open CUDA IPC handle : 217 peer access is not supported between these two devices",
            "export NCCL_P2P_DISABLE=1",
        ),
        (
            "node:1:2 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument",
            "export NCCL_IB_DISABLE=1",
        ),
        ("RuntimeError: cannot map buffers, please set NCCL_CUMEM_ENABLE=0", "export NCCL_CUMEM_ENABLE=0"),
    ],
)
def test_a_way_between_gpus_that_fails_is_left_out(text: str, line: str) -> None:
    found = told(text, GPUS[0])
    assert (found.verdict, found.findings[0].playbook) == ("shell", "shell-nccl")
    assert found.advice[0] == f"In the shell that starts the program: {line}"


def test_a_peer_that_is_not_reached_points_to_the_interface() -> None:
    text = "Last error:\nsocketStartConnect: Connect to 10.0.0.2<45763> failed : Software caused connection abort"
    assert told(text, GPUS[0]).verdict == "shell"
    found = told(text, GPUS[0], NCCL_SOCKET_IFNAME="nope0")
    assert (found.findings[0].confirmed, found.advice[0][-24:]) == (True, "unset NCCL_SOCKET_IFNAME")


def test_an_override_of_the_precision_explains_results_that_differ() -> None:
    found = told("AssertionError: Tensor-likes are not close!", GPUS[0], NVIDIA_TF32_OVERRIDE="1")
    assert (found.verdict, found.advice[0][-26:]) == ("shell", "unset NVIDIA_TF32_OVERRIDE")
    assert told("AssertionError: Tensor-likes are not close!", GPUS[0], NVIDIA_TF32_OVERRIDE="0").verdict == "unknown"
