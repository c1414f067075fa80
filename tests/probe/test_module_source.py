"""Names that modules define, as their text tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.probe.packages.generated_code import accepted, generated_modules
from envmedic.probe.packages.import_names import Modules
from envmedic.probe.packages.module_source import ModuleFiles

FILES = {
    "plain/__init__.py": "from .parts import first, second as renamed\nfrom .more import (\n    third,\n)\nVALUE: int = 3\n",
    "plain/parts.py": "def first():\n    return 1\n\nclass Second:\n    hidden = 1\n\nif first():\n    def sometimes():\n        pass\n",
    "plain/more.py": "third = 3  # fourth was here\n",
    "plain/under/name.py": "",
    "stars/__init__.py": "from .inner import *\nfrom .for_type_checkers_alone import *\n",
    "stars/inner.py": "from stars.deeper import *\n",
    "stars/deeper.py": "def deep():\n    pass\n",
    "outside/__init__.py": "from json import *\n",
    "lazy/__init__.py": "import sys\n_STRUCTURE = {'parts': ['Shown']}\nsys.modules[__name__] = make(_STRUCTURE)\n",
    "lazy/parts.py": "class Elsewhere:\n    pass\n",
    "filled/__init__.py": "for name in dir(_C):\n    globals()[name] = getattr(_C, name)\n",
    "filled/_C.cpython-311-x86_64-linux-gnu.so": "",
    "alone.py": "print = 3\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site-packages")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("module", "name", "defined"),
    [
        ("plain", "first", True),
        ("plain", "third", True),
        ("plain", "VALUE", True),
        ("plain", "parts", True),  # a submodule
        ("plain", "under", True),  # a directory without __init__.py
        ("plain", "second", None),  # imported under another name
        ("plain", "absent", False),
        ("plain.parts", "Second", True),
        ("plain.parts", "hidden", None),
        ("plain.parts", "sometimes", None),  # in a block
        ("plain.more", "fourth", None),  # in a comment
        ("plain.gone", "first", False),
        ("gone", "first", False),
        ("stars", "deep", None),
        ("stars", "absent", False),
        ("outside", "absent", None),  # what everything is imported from is not in the environment
        ("lazy", "Shown", True),
        ("lazy", "Elsewhere", None),
        ("lazy", "Absent", False),
        ("filled", "Absent", None),  # a compiled module may bring it
        ("alone", "print", True),
    ],
)
def test_a_name_is_defined_missing_or_open(site: Path, module: str, name: str, *, defined: bool | None) -> None:
    assert ModuleFiles((site,)).defines(module, name) is defined


def test_nothing_that_is_found_is_run(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nclass ((: match = t'{{x}}'\ndef made(): pass\n"
    )
    files = ModuleFiles((tmp_path,))
    assert (files.defines("broken", "made"), files.defines("broken", "absent")) == (True, False)
    assert files.find("broken") is not None
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("_descriptor.FieldDescriptor(\n  name='x')", "<4"),
        ("_runtime_version.ValidateProtobufRuntimeVersion(\n    _runtime_version.Domain.PUBLIC,\n    5,\n    27,\n    2,", ">=5.27.2,<7"),
        ("from google.protobuf.internal import builder as _builder\n", ">=3.20"),
        ("DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile(b'')\n", None),
    ],
)  # fmt: skip
def test_generated_code_tells_its_runtimes(text: str, versions: str | None) -> None:
    assert accepted(text.encode()) == versions


def test_generated_modules_are_found_with_their_owners(tmp_path: Path) -> None:
    site = tmp_path / "lib"
    (site / "board" / "proto").mkdir(parents=True)
    (site / "board" / "proto" / "graph_pb2.py").write_text("_descriptor.FileDescriptor(name='graph.proto')\n")
    (site / "board" / "proto" / "graph.py").write_text("_descriptor.FileDescriptor(name='graph.proto')\n")
    (found,) = generated_modules([site], tmp_path, ())
    assert (found.path, found.distribution, found.accepts) == ("lib/board/proto/graph_pb2.py", None, "<4")


def test_a_module_compiled_for_another_python_is_none(tmp_path: Path) -> None:
    (tmp_path / "fast.cpython-311-x86_64-linux-gnu.so").touch()
    assert ModuleFiles((tmp_path,), Modules("cpython-311-x86_64-linux-gnu")).find("fast") is not None
    assert ModuleFiles((tmp_path,), Modules("cpython-312-x86_64-linux-gnu")).find("fast") is None
