"""envmedic's core in an environment of its own: the wheel and its dependencies without any extra.

``python -m tests.install.core`` prints its size by distribution. The dependencies are copies of the distributions beside
the tests, so that no index is needed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

from tests.install.packages import build
from tests.support.venvs import install_file, make_venv, python_of, site_packages

LIMIT_BYTES = 20_000_000
"""Of everything in site-packages with byte code, as pip and pipx leave it; pip is not among it."""


def make_core(prefix: Path, wheel: Path) -> Path:
    """Make a virtual environment with `wheel`, its dependencies and their byte code; return its prefix."""
    make_venv(prefix)
    install_file(prefix, wheel)
    site = site_packages(prefix)
    for distribution in _dependencies(site):
        for file in distribution.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), site / file)
    subprocess.run([python_of(prefix), "-m", "compileall", "-q", str(site)], check=True)
    return prefix


def _dependencies(site: Path) -> Iterator[metadata.Distribution]:
    """What envmedic in `site` requires without any extra, directly or not, as it is installed beside the tests."""
    (envmedic,) = metadata.distributions(name="envmedic", path=[str(site)])
    open_requirements, found = list(envmedic.requires or ()), set()
    while open_requirements:
        requirement = Requirement(open_requirements.pop())
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if applies and requirement.name not in found:
            found.add(requirement.name)
            distribution = metadata.distribution(requirement.name)
            open_requirements += distribution.requires or ()
            yield distribution


def sizes(prefix: Path) -> dict[str, int]:
    """Bytes of each distribution with its byte code, the largest first."""
    found = metadata.distributions(path=[str(site_packages(prefix))])
    by_name = {item.metadata["Name"]: sum(map(_bytes, item.files or ())) for item in found}
    return dict(sorted(by_name.items(), key=lambda item: item[1], reverse=True))


def _bytes(file: metadata.PackagePath) -> int:
    path = Path(str(file.locate()))
    if path.suffix == ".pyc" or not path.is_file():  # counted with its source; a script that was not copied
        return 0
    compiled = Path(cache_from_source(str(path)))
    return path.stat().st_size + (compiled.stat().st_size if path.suffix == ".py" and compiled.is_file() else 0)


def table(prefix: Path) -> str:
    """The sizes as lines of text, in MB, with their sum."""
    found = sizes(prefix)
    rows = [*found.items(), ("together", sum(found.values()))]
    return "".join(f"{size / 1e6:6.2f} MB  {name}\n" for name, size in rows)


def main() -> int:
    """Build the wheel, install the core, and print its size; 1 where it is over the limit."""
    with tempfile.TemporaryDirectory(prefix="envmedic-core-") as folder:
        wheel = next(item for item in build(Path(folder) / "dist", alone=True) if item.suffix == ".whl")
        prefix = make_core(Path(folder) / "core", wheel)
        sys.stdout.write(table(prefix))
        return int(sum(sizes(prefix).values()) > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())
