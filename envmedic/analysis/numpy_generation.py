"""NumPy's generation of the binary interface (1 or 2), and modules compiled for generation 1 only."""

from __future__ import annotations

from envmedic.compat import tables
from envmedic.compat.installed_requirements import Demand, demands, markers
from envmedic.compat.versions import allows
from envmedic.model.facts import Environment, Host


def asked_of_numpy(environment: Environment, host: Host) -> list[Demand]:
    """Return what installed distributions ask of NumPy."""
    return [item for item in demands(environment, markers(environment, host)) if item.name == "numpy"]


def modules_for_one(environment: Environment) -> dict[str, str] | None:
    """Return distributions for NumPy 1 only, as ``name version``, each with the file that shows it.

    None where modules were not examined.
    """
    numpy = environment.distribution("numpy")
    if numpy is not None and allows("<2", numpy.version):
        return {}  # with NumPy 1 such modules are no fault
    if environment.numpy_one is None:
        return None
    found = {f"{item.distribution} {item.version}": item.path for item in environment.numpy_one}
    # of torch itself, a table of its releases tells
    torch = environment.distribution("torch")
    if torch is not None and tables.numpy_generations().get(torch.public) == 1:
        found[f"torch {torch.version}"] = f"{torch.site}/torch/lib/libtorch_python.so"
    return found
