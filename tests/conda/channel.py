"""Local channels of genuine packages: ``main``, ``pytorch``, ``nvidia`` and ``conda-forge``.

They are made once, in some seconds, and kept for later runs. A test that wants packages of its own adds a channel
with `Channels.extra`.
"""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conda import cache, family
from tests.gallery.repair_gallery.conda.package import PLACEHOLDER, Content, Package, Program, dist_info, write_channel
from tests.gallery.repair_gallery.conda.pythons import bundled, interpreter, python_abi, python_package
from tests.gallery.repair_gallery.room import Untried

NAMES = ("main", "pytorch", "nvidia", "conda-forge")


@dataclass(frozen=True)
class Channels:
    """Directories of channels below one root."""

    root: Path

    def url(self, name: str) -> str:
        """The channel's URL, with the scheme ``file``."""
        return (self.root / name).as_uri()

    @property
    def forge(self) -> str:
        """conda-forge: complete by itself."""
        return self.url("conda-forge")

    @property
    def old(self) -> list[str]:
        """``pytorch`` and ``nvidia`` before ``main``, as PyTorch's own instructions had them."""
        return [self.url(name) for name in ("pytorch", "nvidia", "main")]


def channels(*, newer_python: bool = False) -> Channels:
    """The channels, made now or in an earlier run; with `newer_python`, Python 3.12 is in them as well."""
    minors = ("3.11", "3.12") if newer_python else ("3.11",)
    try:
        interpreters = [interpreter(minor) for minor in minors]
        versions = [subprocess.check_output([found, "--version"], text=True) for found in interpreters]
        name = "newer-channels" if newer_python else "channels"
        return Channels(cache.kept(name, [*versions, *_WRITER], lambda root: _make(root, minors)))
    except Untried as reason:
        pytest.skip(str(reason))


def _sources() -> Iterator[Path]:
    """What decides the packages."""
    here = Path(__file__).parent
    yield from (here / f"{name}.py" for name in ("channel", "family"))
    yield from (here.parent / "gallery" / "repair_gallery" / "conda" / f"{name}.py" for name in ("package", "pythons"))
    yield from (here.parent / "support" / f"{name}.py" for name in ("miniature", "native", "gpu_family"))
    yield from sorted((here.parent / "envs" / "nms_cuda" / "src").rglob("*.py"))


_WRITER = [path.read_text(encoding="utf-8") for path in _sources()]
"""Read with the import, so that packages are never kept under the text of a writer that did not make them."""


def _make(root: Path, minors: tuple[str, ...]) -> None:
    pythons = [package for minor in minors for package in (python_package(minor, root / "stage"), python_abi(minor))]
    wheels = {package.filename: package for minor in minors for package in bundled(minor)}.values()
    base = [*pythons, *wheels, *common()]
    write_channel(root / "main", [*base, dataclasses.replace(openssl("3.0.15"), archive=".tar.bz2")])
    write_channel(root / "pytorch", family.pytorch_channel())
    write_channel(root / "nvidia", family.nvidia_channel())
    forge = [*base, *family.forge_family(), *family.cuda_versions(), openssl("3.0.15"), openssl("3.4.0")]
    write_channel(root / "conda-forge", forge)
    subprocess.run(["rm", "-rf", root / "stage"], check=True)


def noarch(name: str, version: str, *, depends: tuple[str, ...] = (), entry_points: tuple[str, ...] = ()) -> Package:
    """A pure Python package of one module, noarch."""
    module = name.replace("-", "_")
    text = f'"""A miniature."""\n\n__version__ = "{version}"\n\n\ndef main():\n    print("{name}", __version__)\n'
    files: dict[str, Content] = {f"site-packages/{module}/__init__.py": text}
    points = "".join(f"{point}\n" for point in entry_points)
    scripts = [f"../../../bin/{point.partition(' ')[0]}" for point in entry_points]
    requires = [spec.partition(" ")[0] for spec in depends]
    files |= dist_info(name, version, files, folder="site-packages", requires=requires, scripts=scripts,
                       entry_points=f"[console_scripts]\n{points}" if points else "")  # fmt: skip
    return Package(
        name, version, "pyhd8ed1ab_0", files=files, depends=("python >=3.8", *depends), subdir="noarch",
        noarch="python", entry_points=entry_points, license="MIT",
    )  # fmt: skip


def compiled(name: str, version: str, *, module: str = "", distribution: str = "") -> Package:
    """A package for Python 3.11 alone, with its files where they go."""
    site = "lib/python3.11/site-packages"
    module = module or name
    files: dict[str, Content] = {f"{site}/{module}/__init__.py": f'"""A miniature."""\n\n__version__ = "{version}"\n'}
    files |= dist_info(distribution or name, version, files, folder=site)
    return Package(name, version, "py311h0f1e2d3_0", files=files, depends=("python >=3.11,<3.12.0a0",))


def openssl(version: str) -> Package:
    """openssl with a script that activation runs, and the prefix in a text file."""
    files: dict[str, Content] = {
        "etc/conda/activate.d/openssl_activate.sh": 'export SSL_CERT_DIR_MINIATURE="$CONDA_PREFIX/ssl"\n',
        "etc/conda/deactivate.d/openssl_deactivate.sh": "unset SSL_CERT_DIR_MINIATURE\n",
        "ssl/openssl.cnf": f"# A miniature\ndir = {PLACEHOLDER}/ssl\n",
        "ssl/version": f"{version}\n",
    }
    return Package("openssl", version, "h7b32b05_0", files=files)


def common() -> Iterator[Package]:
    """What stands beside torch in both ``main`` and ``conda-forge``."""
    yield Package("tzdata", "2024b", "hc8b5060_0", files={"share/zoneinfo/UTC": b"TZif2"}, subdir="noarch",
                  noarch="generic")  # fmt: skip
    yield Package("mkl", "2023.1.0", "h213fc3f_46344", build_number=46344, files={"share/mkl/version": "2023.1.0\n"})
    yield Package("mkl", "2024.0.0", "ha957f24_49657", build_number=49657, files={"share/mkl/version": "2024.0.0\n"})
    for version in ("3.15.4", "3.16.1"):
        yield noarch("filelock", version)
    yield noarch("mpmath", "1.3.0")
    yield noarch("sympy", "1.13.3", depends=("mpmath >=0.19",), entry_points=("isympy = sympy:main",))
    yield noarch("markupsafe", "2.1.5")
    yield noarch("jinja2", "3.1.4", depends=("markupsafe >=2.0",))
    yield _typing_extensions()
    yield noarch("packaging", "24.1")
    yield noarch("tqdm", "4.66.5", entry_points=("tqdm = tqdm:main",))
    for version in ("1.26.4", "2.1.3"):
        yield compiled("numpy", version)
    yield compiled("pillow", "10.4.0", module="PIL")
    yield _linked()


def _typing_extensions() -> Package:
    text = '"""A miniature."""\n'
    files: dict[str, Content] = {"site-packages/typing_extensions.py": text}
    files |= dist_info("typing_extensions", "4.12.2", files, folder="site-packages")
    return Package("typing_extensions", "4.12.2", "pyha770c72_0", files=files, depends=("python >=3.8",),
                   subdir="noarch", noarch="python")  # fmt: skip


def _linked() -> Package:
    """A package with a script that runs after it is linked: what it writes shows whether it ran."""
    script = '#!/bin/sh\necho "linked into $PREFIX" > "$PREFIX/linked-tool-was-here"\n'
    files: dict[str, Content] = {"bin/.linked-tool-post-link.sh": Program(script.encode()), "share/linked-tool": "1\n"}
    return Package("linked-tool", "1.0", "0", files=files)
