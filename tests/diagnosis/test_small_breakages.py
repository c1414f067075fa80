"""Small breakages of a small environment: none of them is called healthy, and an intact one is."""

from __future__ import annotations

import marshal
import os
import shutil
import struct
import sys
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest

from envmedic.api.planning.plan_choice import repairable
from envmedic.diagnosis.findings import diagnose
from envmedic.model.facts import Facts, Host
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import NO_TEXT
from envmedic.playbook.schema.loader import load_all
from envmedic.probe.environment import observe_environment
from tests.support.native import shared_library
from tests.support.venvs import editable_project, install, install_editable, make_venv, python_of, site_packages
from tests.support.wheels import make_wheel

Break = Callable[[Path], object]
SOURCE = "def one():\n    return 1\n\n\ndef two(a,\n        b):\n    return 'two'\n"
PROGRAM = b"\x7fELF" + bytes(60)
TAG = f"cpython-{sys.version_info.major}{sys.version_info.minor}"


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The path of the environment, and the copy of it that each test starts from."""
    room = tmp_path_factory.mktemp("small")
    links = room / "wheels"
    library = shared_library("int PyInit__fast(void) { return 0; }\nchar room[9000] = {1};\n", name="_fast.so")
    wheels = [
        make_wheel(links, "alpha", "1.0", files={"alpha/__init__.py": SOURCE}, requires=["beta>=1", "gamma"]),
        make_wheel(links, "beta", "1.5", files={"beta.py": SOURCE}),
        make_wheel(links, "gamma", "2.0", files={"gamma/__init__.py": SOURCE, "gamma/part.py": SOURCE, "gamma/bundle.pem": "A",
                                                 f"gamma/_fast.{TAG}-x86_64-linux-gnu.so": library}),
        make_wheel(links, "delta", "1.0", files={"delta/__init__.py": "def main():\n    pass\n"},
                   entry_points="[console_scripts]\ndelta = delta:main\n", requires=["beta<2"]),
        make_wheel(links, "tool", "1.0", files={"tool/__init__.py": "", "tool/bin/compiler": PROGRAM,
                                                "tool/data/table.json": "{}\n"}),
        make_wheel(links, "sigma", "1.0", files={"sigma/__init__.py": SOURCE}, requires_python=">=3.8"),
    ]  # fmt: skip
    prefix = make_venv(room / "env")
    install(prefix, wheels)
    install_editable(prefix, editable_project(room / "project", "mine"))
    (site_packages(prefix) / "tool/bin/compiler").chmod(0o755)
    shutil.copytree(prefix, room / "kept", symlinks=True)
    return prefix, room / "kept"


@pytest.fixture
def prefix(intact: tuple[Path, Path]) -> Path:
    """The environment as it was made."""
    path, kept = intact
    shutil.rmtree(path)
    shutil.copytree(kept, path, symlinks=True)
    (kept.parent / "project").mkdir(exist_ok=True)
    return path


def found_in(prefix: Path) -> Diagnosis:
    """The diagnosis by facts alone, on a machine without GPU."""
    facts = Facts(host=Host(), environment=observe_environment(prefix, {"PATH": "/usr/bin:/bin"}))
    return diagnose(NO_TEXT, facts, load_all(), prefix=str(prefix), log=None)


def of_site(change: Callable[[Path], object]) -> Break:
    """A change in site-packages."""
    return lambda prefix: change(site_packages(prefix))


def metadata(name: str, old: str, new: str) -> Break:
    """A change of one text in METADATA."""

    def change(site: Path) -> None:
        path = next(site.glob(f"{name}-*.dist-info/METADATA"))
        path.write_text(path.read_text().replace(old, new))

    return of_site(change)


def compiled(module: str, *, source: str | None = None, cut: int | None = None, flags: int = 0) -> Break:
    """Byte code that Python takes for that of the module: of other `source`, or only its first bytes."""

    def change(site: Path) -> None:
        path = site / f"{module}.py"
        status = path.stat()
        stamp = struct.pack("<LLL", flags, int(status.st_mtime), status.st_size)
        code = compile(path.read_text() if source is None else source, str(path), "exec")
        data = (MAGIC_NUMBER + stamp + marshal.dumps(code))[:cut]
        target = path.parent / "__pycache__" / f"{path.stem}.{TAG}.pyc"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)

    return of_site(change)


def replaced(prefix: Path, path: str, old: str, new: str) -> None:
    """Replace a text in a file."""
    file = prefix / path
    file.write_text(file.read_text().replace(old, new))


def library_of(site: Path) -> Path:
    return next(site.glob("gamma/_fast*.so"))


def rewritten(path: Path, start: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[start : start + len(data)] = data
    path.write_bytes(bytes(content))


def to_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def led_to(path: Path, target: str) -> None:
    """Put a dangling link in the place of a file."""
    path.unlink()
    path.symlink_to(target)


def doubled(site: Path) -> None:
    """Record a second release of a distribution."""
    shutil.copytree(site / "beta-1.5.dist-info", site / "beta-1.4.dist-info")
    replaced(site, "beta-1.4.dist-info/METADATA", "1.5", "1.4")


def no_program(prefix: Path) -> None:
    python_of(prefix).unlink()
    python_of(prefix).write_text("python\n")


def other_python(prefix: Path) -> None:
    """The library directory of a Python that does not start here."""
    library = site_packages(prefix).parent
    library.rename(library.with_name("python3.9"))


def base_without(prefix: Path, part: str) -> None:
    """A base Python of links to the real one, without one part of its standard library."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base, real = prefix / "base", Path(sys.base_prefix)
    library = base / "lib" / version
    (library / "lib-dynload").mkdir(parents=True)
    (base / "bin").mkdir()
    shutil.copy2(os.path.realpath(sys.executable), base / "bin" / version)
    for source, target in (
        (real / "lib" / version, library),
        (real / "lib" / version / "lib-dynload", library / "lib-dynload"),
    ):
        for item in source.iterdir():
            if item.name not in {"lib-dynload", "site-packages", "__pycache__"} and item.name.partition(".")[0] != part:
                (target / item.name).symlink_to(item)
    for shared in (real / "lib").glob("libpython*"):
        (base / "lib" / shared.name).symlink_to(shared)
    python = python_of(prefix)
    python.unlink()
    python.symlink_to(base / "bin" / version)
    text = (prefix / "pyvenv.cfg").read_text().splitlines()
    (prefix / "pyvenv.cfg").write_text(
        "\n".join([f"home = {base / 'bin'}", *(line for line in text if not line.startswith("home"))])
    )


BREAKAGES: dict[str, Break] = {
    # requirements
    "a required distribution was never installed": metadata("alpha", "Requires-Dist: gamma", "Requires-Dist: omega"),
    "a required distribution is too old": metadata("alpha", "beta>=1", "beta>=2"),
    "a required distribution is too new": metadata("delta", "beta<2", "beta<1"),
    "a distribution refuses this Python": metadata("sigma", ">=3.8", "<3.8"),
    "an exact pin is not met": metadata("alpha", "beta>=1", "beta==1.4"),
    "the metadata of a required distribution are gone": of_site(lambda site: shutil.rmtree(site / "beta-1.5.dist-info")),
    "METADATA is empty": of_site(lambda site: (site / "alpha-1.0.dist-info/METADATA").write_text("")),
    # files
    "a module is gone": of_site(lambda site: (site / "gamma/part.py").unlink()),
    "a package is gone": of_site(lambda site: shutil.rmtree(site / "alpha")),
    "__init__.py is gone": of_site(lambda site: (site / "gamma/__init__.py").unlink()),
    "__init__.py is empty": of_site(lambda site: (site / "gamma/__init__.py").write_text("")),
    "a module is empty": of_site(lambda site: (site / "beta.py").write_text("")),
    "a module ends in the middle of a statement": of_site(lambda site: (site / "beta.py").write_text(SOURCE[:40])),
    "a module ends at the end of a line": of_site(lambda site: (site / "beta.py").write_text(SOURCE[:23])),
    "a module is full of zeros": of_site(lambda site: (site / "beta.py").write_bytes(bytes(30))),
    "a module was edited": of_site(lambda site: (site / "gamma/part.py").write_text(SOURCE + "\n\nx = 1\n")),
    "a data file is gone": of_site(lambda site: (site / "tool/data/table.json").unlink()),
    "a data file is empty": of_site(lambda site: (site / "tool/data/table.json").write_text("")),
    "a directory lies in the place of a module": of_site(lambda site: to_directory(site / "beta.py")),
    "a dangling link lies in the place of a module": of_site(lambda site: led_to(site / "beta.py", "/nonexistent/beta.py")),
    "the first imported module holds other code of its size": of_site(
        lambda site: (site / "alpha/__init__.py").write_text(SOURCE.replace("return 1", "return 2"))
    ),
    "a library is gone": of_site(lambda site: library_of(site).unlink()),
    "a library is empty": of_site(lambda site: library_of(site).write_bytes(b"")),
    "a library is cut in half": of_site(lambda site: os.truncate(library_of(site), library_of(site).stat().st_size // 2)),
    "a library is of another machine": of_site(lambda site: rewritten(library_of(site), 18, b"\xb7\0")),
    "a library is of 32 bits": of_site(lambda site: rewritten(library_of(site), 4, b"\1")),
    "a library is no ELF file": of_site(lambda site: rewritten(library_of(site), 0, b"\0\0\0\0")),
    "a library is of another Python": of_site(
        lambda site: library_of(site).rename(site / "gamma/_fast.cpython-36m-x86_64-linux-gnu.so")
    ),
    "RECORD is gone": of_site(lambda site: (site / "alpha-1.0.dist-info/RECORD").unlink()),
    "RECORD is no list": of_site(lambda site: (site / "alpha-1.0.dist-info/RECORD").write_text("no list\n" * 3)),
    "two releases are recorded": of_site(doubled),
    "an uninstall was interrupted": of_site(lambda site: (site / "beta-1.5.dist-info").rename(site / "~eta-1.5.dist-info")),
    # byte code
    "byte code is cut off": compiled("alpha/__init__", cut=30),
    "byte code is empty": compiled("alpha/__init__", cut=0),
    "byte code has a header only": compiled("beta", cut=16),
    "byte code is of other source": compiled("beta", source="def one():\n    return 3\n"),
    "unchecked byte code is of other source": compiled("beta", source="def one():\n    return 3\n", flags=1),
    # interpreter and virtual environment
    "the interpreter is gone": lambda prefix: python_of(prefix).unlink(),
    "the interpreter leads nowhere": lambda prefix: led_to(python_of(prefix), "/nonexistent/python"),
    "the interpreter is no program": no_program,
    "the packages are of another Python": other_python,
    "the base Python lacks json": lambda prefix: base_without(prefix, "json"),
    "the base Python lacks _ctypes": lambda prefix: base_without(prefix, "ctypes"),
    "pyvenv.cfg is gone": lambda prefix: (prefix / "pyvenv.cfg").unlink(),
    "pyvenv.cfg is empty": lambda prefix: (prefix / "pyvenv.cfg").write_text(""),
    "the home of pyvenv.cfg is gone": lambda prefix: replaced(prefix, "pyvenv.cfg", "home = ", "home = /nonexistent"),
    "it was moved": lambda prefix: replaced(prefix, "bin/activate", str(prefix), "/former/env"),
    # programs and hooks
    "a script is gone": lambda prefix: (prefix / "bin/delta").unlink(),
    "a script is not executable": lambda prefix: (prefix / "bin/delta").chmod(0o644),
    "a script is run by a Python that is gone": lambda prefix: replaced(prefix, "bin/delta", str(prefix), "/former/env"),
    "a program of a package is not executable": of_site(lambda site: (site / "tool/bin/compiler").chmod(0o644)),
    "sitecustomize ends Python": of_site(lambda site: (site / "sitecustomize.py").write_text("import sys\nsys.exit(0)\n")),
    "sitecustomize is no Python": of_site(lambda site: (site / "sitecustomize.py").write_text("def :\n")),
    "sitecustomize hides a package": of_site(
        lambda site: (site / "sitecustomize.py").write_text("import sys\nsys.modules['gamma'] = None\n")
    ),
    "a path file ends Python": of_site(lambda site: (site / "start.pth").write_text("import os; os._exit(0)\n")),
    "a path file raises an error": of_site(lambda site: (site / "start.pth").write_text("import os; raise ValueError\n")),
    "a path file imports what is gone": of_site(lambda site: (site / "start.pth").write_text("import omega\n")),
    "the source of an editable install is gone": lambda prefix: shutil.rmtree(prefix.parent / "project"),
}  # fmt: skip


def test_the_intact_environment_is_healthy_and_says_what_was_looked_at(prefix: Path) -> None:
    found = found_in(prefix)
    assert (found.verdict, found.findings) == ("healthy", ())
    assert any("7 distributions" in text for text in found.examined)
    assert any("envmedic verify" in text for text in found.unexamined)


@pytest.mark.parametrize(("version", "told"), [("2.15.0", 0), ("2.15.0+cu126", 0), ("2.99.0", 1)])
def test_a_torch_newer_than_the_tables_is_told(prefix: Path, tmp_path: Path, version: str, told: int) -> None:
    install(prefix, [make_wheel(tmp_path, "torch", version)])
    lines = [text for text in found_in(prefix).unexamined if f"go with torch {version}: the tables are of 20" in text]
    assert len(lines) == told


def test_certificates_of_a_company_are_told_and_no_fault(prefix: Path) -> None:
    (site_packages(prefix) / "gamma" / "bundle.pem").write_text("AB")
    found = found_in(prefix)
    assert found.verdict == "healthy"
    assert "bundle.pem" in found.findings[0].summary


@pytest.mark.parametrize("change", BREAKAGES.values(), ids=BREAKAGES.keys())
def test_a_broken_one_is_not_called_healthy(prefix: Path, change: Break) -> None:
    change(prefix)
    found = found_in(prefix)
    assert found.verdict == "env", found.reason
    assert found.findings[0].confirmed is True


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in BREAKAGES
        if name.startswith(("a required", "an exact", "a module was edited", "a distribution refuses"))
    ],
)
def test_what_no_program_has_missed_is_repaired_by_name_only(prefix: Path, name: str) -> None:
    BREAKAGES[name](prefix)
    found = found_in(prefix)
    assert repairable(found) == ()
    assert found.findings[0].advice
