"""What goes of OpenMP's runtimes, what comes of MKL, and which entries of search paths are left."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.errors import NoSolution
from envmedic.model.facts import CxxRuntime, Host, Library, Variable
from tests.diagnosis import test_extensions as compiled
from tests.diagnosis.helpers import SITE, distribution, library
from tests.diagnosis.test_extensions import SIMULATOR, SYSTEM, unmet
from tests.diagnosis.test_native import BUNDLED, INTEL, environment, runtime
from tests.planner.remedies.helpers import decided


def test_copies_of_the_gnu_runtime_stay() -> None:
    copies = [runtime(f"{SITE}/{name}.libs/libgomp-a34b.so.1", "libgomp", name) for name in ("numpy", "scipy", "torch")]
    assert decided("openmp-runtimes", environment(openmp=copies)).purge == ()


def test_a_runtime_that_nothing_requires_can_go_where_another_stays() -> None:
    installed = [distribution("intel-openmp", "2024.2.1"), distribution("ctranslate2", "4.5.0", "numpy")]
    found = decided("openmp-runtimes", environment(distributions=installed, openmp=[INTEL, BUNDLED]))
    assert (found.purge, found.leftovers) == (("intel-openmp",), False)


def test_what_is_required_or_alone_or_not_a_wheel_stays() -> None:
    intel, other = distribution("intel-openmp", "2024.2.1"), distribution("ctranslate2", "4.5.0")
    mkl = distribution("mkl", "2024.2.1", "Intel_OpenMP==2024.*", "tbb==2021.*")
    by_conda = msgspec.structs.replace(intel, owner="conda")
    for observed in (
        environment(distributions=[intel, other, mkl], openmp=[INTEL, BUNDLED]),
        environment(distributions=[intel], openmp=[INTEL]),
        environment(distributions=[by_conda, other], openmp=[INTEL, BUNDLED]),
    ):
        assert decided("openmp-runtimes", observed).purge == ()


def test_the_installed_mkl_is_installed_again() -> None:
    own = library("torch", "_C.so", missing=("libmkl_intel_lp64.so.2", "libcudart.so.12", "libiomp5.so"))
    found = decided("mkl-libraries", environment(libraries=[own], distributions=[distribution("mkl", "2024.0.0")]))
    assert (found.purge, found.install) == (("mkl",), ("mkl==2024.0.0",))


def test_where_no_mkl_is_installed_torch_says_which_it_needs() -> None:
    torch = distribution("torch", "2.0.1", "filelock", 'mkl<=2021.4.0,>=2021.1.1; platform_system == "Windows"')
    found = decided("mkl-libraries", environment(distributions=[torch]))
    assert found.install == ('mkl<=2021.4.0,>=2021.1.1; platform_system == "Windows"',)


def path_left(*libraries: Library, copies: tuple[CxxRuntime, ...] = (), path: str = "") -> str | None:
    """LD_LIBRARY_PATH as the remedy sets it, None where it refuses."""
    host = Host(variables=(Variable(name="LD_LIBRARY_PATH", value=path),) if path else ())
    observed = compiled.environment(*libraries, runtimes=copies)
    try:
        return decided("libstdcxx-library-path", observed, host).variables["LD_LIBRARY_PATH"]
    except NoSolution:
        return None


def test_an_entry_that_leads_to_an_old_copy_is_taken_out_of_the_path() -> None:
    left = path_left(unmet("GLIBCXX_3.4.29"), copies=(SIMULATOR, SYSTEM), path="/opt/sim:/opt/cuda/lib64")
    assert left == "/opt/cuda/lib64"


@pytest.mark.parametrize(
    ("libraries", "copies", "path"),
    [
        ((unmet("GLIBCXX_3.4.32"),), (SIMULATOR, SYSTEM), "/opt/sim"),
        ((unmet("GLIBCXX_3.4.29", found="/env/lib/libstdc++.so.6"),), (SIMULATOR, SYSTEM), "/opt/sim"),
        ((), (SYSTEM,), ""),
    ],
)
def test_the_path_stays_where_that_would_not_help(
    libraries: tuple[Library, ...], copies: tuple[CxxRuntime, ...], path: str
) -> None:
    assert path_left(*libraries, copies=copies, path=path) is None
