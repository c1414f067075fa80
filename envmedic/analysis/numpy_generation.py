"""NumPy and what is compiled for it: whether both are of one generation of its binary interface."""

from __future__ import annotations

from envmedic.compat import tables
from envmedic.compat.installed_requirements import Demand, demands, markers
from envmedic.compat.versions import allows
from envmedic.model.facts import Environment, Host


def asked_of_numpy(environment: Environment, host: Host) -> list[Demand]:
    """Return what installed distributions ask of NumPy."""
    return [item for item in demands(environment, markers(environment, host)) if item.name == "numpy"]


def modules_for_one(environment: Environment) -> dict[str, str] | None:
    """Return what knows NumPy 1 only, as ``name version``, and the file that shows it; None where it was not looked for."""
    numpy = environment.distribution("numpy")
    if numpy is not None and allows("<2", numpy.version):
        return {}
    if environment.numpy_one is None:
        return None
    found = {f"{item.distribution} {item.version}": item.path for item in environment.numpy_one}
    torch = environment.distribution("torch")
    if torch is not None and tables.numpy_generations().get(torch.public) == 1:
        found[f"torch {torch.version}"] = f"{torch.site}/torch/lib/libtorch_python.so"
    return found
