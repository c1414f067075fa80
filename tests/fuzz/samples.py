"""What fuzzing begins with: real files, so that mutations get past the first check of a reader."""

from __future__ import annotations

import io
import os
import struct
import sys
import sysconfig
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from envmedic.playbook.schema.loader import shipped_directory
from tests.fuzz.mutation import LARGEST

_TESTS = Path(__file__).parents[1]
_SITE = Path(sysconfig.get_paths()["purelib"])
_MOST = 40


def _read(paths: Iterable[Path], most: int = _MOST) -> list[bytes]:
    """The smallest of these files."""
    found = sorted((path for path in paths if path.is_file()), key=lambda path: (path.stat().st_size, path.name))
    return [path.read_bytes() for path in found[:most] if path.stat().st_size <= LARGEST]


@cache
def logs() -> list[bytes]:
    """What broken programs print."""
    return _read(_TESTS.glob("envs/*/sample_*.log"), 60)


@cache
def playbooks() -> list[bytes]:
    """The shipped playbooks."""
    return _read(shipped_directory().glob("*.yaml"), 60)


@cache
def installed(name: str) -> list[bytes]:
    """The files of that name in metadata directories of this Python's own environment."""
    return _read(_SITE.glob(f"*.dist-info/{name}"))


@cache
def libraries() -> list[bytes]:
    """Small shared libraries: extension modules of this environment, and of Python."""
    places = (_SITE, Path(sysconfig.get_config_var("DESTSHARED") or "/nonexistent"))
    return _read((path for place in places for path in place.rglob("*.so")), 12)


def fat_binaries() -> list[bytes]:
    """GPU code as nvcc writes it, by its headers."""
    return [_fat((2, 75, 0x11), (2, 90, 0x100011)), _fat((1, 120, 0x11)) + bytes(64) + _fat((2, 100, 0x1200011))]


def _fat(*entries: tuple[int, int, int]) -> bytes:
    rows = (
        struct.pack("<HHIQ12xI4x4xQ16x", kind, 0x101, 64, 16, architecture, flags) + b"code" * 4
        for kind, architecture, flags in entries
    )
    body = b"".join(rows)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def wheels() -> list[bytes]:
    """A wheel, and one whose parts are packed."""
    return [_wheel(zipfile.ZIP_STORED), _wheel(zipfile.ZIP_DEFLATED)]


def _wheel(packing: int) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", packing) as archive:
        archive.writestr("demo/__init__.py", "x = 1\n" * 20)
        archive.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        archive.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("demo-1.0.dist-info/RECORD", "demo/__init__.py,,\n")
    return content.getvalue()


CONDA_RECORD = b"""{"build": "py311h1_0", "build_number": 0, "channel": "https://conda.anaconda.org/conda-forge",
 "constrains": [], "depends": ["python >=3.11,<3.12.0a0", "libblas >=3.9"], "files": ["lib/a.py", "bin/a"],
 "fn": "numpy-1.26.4-py311h1_0.conda", "link": {"source": "/pkgs/numpy", "type": 1}, "md5": "aa", "name": "numpy",
 "noarch": "python", "paths_data": {"paths": [{"_path": "site-packages/a.py", "path_type": "hardlink",
 "sha256": "ab", "sha256_in_prefix": "cd", "size_in_bytes": 12}, {"_path": "python-scripts/a", "path_type":
 "unix_python_entry_point", "prefix_placeholder": "/opt/placehold", "file_mode": "text"}], "paths_version": 1},
 "requested_spec": "numpy", "sha256": "ef", "size": 100, "subdir": "linux-64", "timestamp": 1707225342681,
 "url": "https://conda.anaconda.org/t/tok/conda-forge/linux-64/numpy-1.26.4-py311h1_0.conda", "version": "1.26.4"}"""
HISTORY = b"""==> 2024-05-01 12:00:00 <==
# cmd: /opt/conda/bin/conda create -n a python=3.11 numpy
# conda version: 24.7.1
+conda-forge/linux-64::python-3.11.9-h1_0_cpython
+conda-forge/linux-64::numpy-1.26.4-py311h1_0
# update specs: ['python=3.11', "numpy[version='>=1.20,<2']"]
==> 2024-05-02 12:00:00 <==
# cmd: /opt/conda/bin/conda remove numpy
-conda-forge/linux-64::numpy-1.26.4-py311h1_0
# remove specs: ['numpy']
# neutered specs: ['python']
"""
SPECS = b"""pytorch=2.3
conda-forge::numpy[version='<2', build=py311*]
https://conda.anaconda.org/conda-forge/linux-64/numpy-1.26.4-py311h1_0.conda
pytorch-cuda=12.1|12.4
python>=3.9,<3.12.0a0=*_cpython
cudatoolkit 11.8.* h1_10
"""
DIRECT_URLS = [
    b'{"url": "file:///home/user/src/demo", "dir_info": {"editable": true}}',
    b'{"url": "https://u:p@example.org/demo.git", "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "main"}, "subdirectory": "python"}',
    b'{"url": "https://example.org/demo-1.0-py3-none-any.whl?token=x", "archive_info": {"hash": "sha256=ab", "hashes": {"sha256": "ab"}}}',
]
PYVENV = [
    b"home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.4\nprompt = demo\n",
    b"home = /opt/py/bin\nimplementation = CPython\nuv = 0.9.9\nversion_info = 3.12.1\ninclude-system-site-packages=true\n",
]
PTH = [
    b"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'\n",
    b"/home/user/src/demo\n../elsewhere\nimport demo_finder; demo_finder.install()\n# comment\n",
]
SCRIPTS = [
    b"""deactivate () {\n    unset PATH\n}\nVIRTUAL_ENV='/opt/env'\nexport VIRTUAL_ENV\n_OLD="$PATH"\nPATH="$VIRTUAL_ENV/bin:$PATH"
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-/usr/lib}:$CONDA_PREFIX/lib\nunset PYTHONHOME\nexport PYTHONPATH="a b":'c'; echo $(id)\n""",
    b"# >>> envmedic >>> kept\nexport CUDA_VISIBLE_DEVICES=0\nunset LD_PRELOAD\n# <<< envmedic <<<\nset -gx LD_PRELOAD x\n",
]
PIP_CONF = [
    b"[global]\nindex-url = https://u:p@example.org/simple\nextra-index-url =\n    https://a\n    https://b\n[install]\nfind-links = /w\n"
]
UV_TOML = [
    (
        b'index-url = "https://u:p@example.org/simple"\nno-index = false\nextra-index-url = ["https://a"]\n[[index]]\nname = "t"\n'
        b'url = "https://b"\ndefault = true\n[pip]\nfind-links = ["/w"]\ntorch-backend = "cu124"\n'
    )
]
ANSWER = (
    b"{'version': '3.11.4', 'implementation': 'cpython', 'soabi': 'cpython-311-x86_64-linux-gnu', "
    b"'base_prefix': '/usr', 'platform_tag': 'linux_x86_64', 'free_threaded': False}\n"
)
JOURNAL = (
    b'{"schema": "envmedic.journal/1", "transaction": "20240501T120000000000Z-abcdef", "parent": null, "prefix": '
    b'"/opt/env", "state": "done", "method": "exchange", "clone": "link", "staging": "namespace", "started": '
    b'"2024-05-01T12:00:00Z", "updated": "2024-05-01T12:01:00Z"}\n'
)
FINGERPRINT = b'{"format":1,"entries":{".":["d",0,1,493,0,0,5],"bin/a":["f",10,1700000000000000000,420,0,0,7]}}'
CONDA_STATE = b'{"version": 1, "env_vars": {"LD_LIBRARY_PATH": "/x", "A": "***unset***"}}'
WHEEL_NAMES = b"""torch-2.5.1+cu124-cp311-cp311-manylinux1_x86_64.manylinux_2_17_x86_64.whl
demo-1.0-1-py2.py3-none-any.whl
numpy-1.26.4.tar.gz
"""
INDEX_JSON = (
    b'{"meta": {"api-version": "1.1"}, "name": "demo", "files": [{"filename": "demo-1.0-py3-none-any.whl", "url": '
    b'"../demo-1.0-py3-none-any.whl", "hashes": {"sha256": "ab"}, "requires-python": ">=3.8", "size": 10}]}'
)
INDEX_HTML = (
    b'<!DOCTYPE html><html><body><a href="demo-1.0-py3-none-any.whl#sha256=ab" data-x="1">demo</a></body></html>'
)
REQUIREMENTS = b"""# by envmedic
--index-url https://example.org/simple
demo==1.0 \\
    --hash=sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
other @ https://example.org/other-2.0-py3-none-any.whl --hash=sha256:bb ; python_version >= "3.8"
-e ./src
"""
PYLOCK = b"""lock-version = "1.0"
created-by = "uv"
requires-python = ">=3.11"
[[packages]]
name = "demo"
version = "1.0"
index = "https://example.org/simple"
wheels = [{ url = "https://example.org/demo-1.0-py3-none-any.whl", hashes = { sha256 = "aa" }, size = 10 }]
"""
REPORTS = [b"Python " + sys.version.encode() + os.linesep.encode()]

_SITE_NAME = "lib/python3.11/site-packages"
PREFIX: dict[str, bytes] = {
    "pyvenv.cfg": PYVENV[0],
    "pip.conf": PIP_CONF[0],
    "bin/activate": SCRIPTS[0],
    "etc/conda/activate.d/a.sh": SCRIPTS[1],
    "conda-meta/numpy-1.26.4-py311h1_0.json": CONDA_RECORD,
    "conda-meta/history": HISTORY,
    "conda-meta/pinned": SPECS,
    "conda-meta/state": CONDA_STATE,
    "conda-meta/frozen": b'{"message": "no"}',
    f"{_SITE_NAME}/demo-1.0.dist-info/direct_url.json": DIRECT_URLS[0],
    f"{_SITE_NAME}/demo-1.0.dist-info/top_level.txt": b"demo\n_demo\n",
    f"{_SITE_NAME}/demo-1.0.dist-info/INSTALLER": b"pip\n",
    f"{_SITE_NAME}/torch-2.5.1.dist-info/METADATA": b"Name: torch\nVersion: 2.5.1+cu124\nRequires-Dist: numpy (>1)\n",
    f"{_SITE_NAME}/torch-2.5.1.dist-info/RECORD": b"torch/version.py,sha256=x,9\ntorch/_C.so,,9\n../../../bin/a,,\n",
    f"{_SITE_NAME}/torch/version.py": b"__version__ = '2.5.1+cu124'\ndebug = False\ncuda = '12.4'\ngit_version = 'a'\nhip = None\n",
    f"{_SITE_NAME}/torch/__init__.py": b"from .version import __version__\n",
    f"{_SITE_NAME}/torch/utils/cpp_extension.py": b"SUPPORTED = ['5.0', '9.0a']\n",
    f"{_SITE_NAME}/torchvision-0.20.1.egg-info/PKG-INFO": b"Name: torchvision\nVersion: 0.20.1\n",
    f"{_SITE_NAME}/torchvision-0.20.1.egg-info/requires.txt": b"torch==2.5.1\n[x]\nscipy\n",
    f"{_SITE_NAME}/torchvision-0.20.1.egg-info/installed-files.txt": b"../torchvision/__init__.py\nPKG-INFO\n",
    f"{_SITE_NAME}/old.egg-link": b"/home/user/src/old\n.",
    f"{_SITE_NAME}/~orch-2.4.0.dist-info/METADATA": b"Name: torch\nVersion: 2.4.0\n",
    f"{_SITE_NAME}/a.pth": PTH[1],
    f"{_SITE_NAME}/__editable__.demo-1.0.pth": b"/home/user/src/demo\n",
    f"{_SITE_NAME}/pyproject.toml": b"[build-system]\nrequires = ['setuptools']\n",
}
"""An environment, by what stands in its files."""
