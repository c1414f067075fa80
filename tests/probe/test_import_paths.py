"""What can shadow an environment's own modules and libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.model.facts import ImportPath, Interpreter
from envmedic.probe import layout
from envmedic.probe.prefix import import_paths
from tests.probe.prefixes import make_prefix, site

PYTHON = Interpreter(path="x", starts=True, version="3.11.4")


def observe(prefix: Path, variables: dict[str, str]) -> list[tuple[str, str, str]]:
    found = import_paths.observe(layout.read_layout(prefix), PYTHON, [site(prefix)], variables)
    return [(item.kind, item.where, item.adds) for item in found]


def test_a_plain_environment_has_none(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "distutils-precedence.pth").write_text(
        "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'\n"
    )
    (site(prefix) / "_virtualenv.pth").write_text("import _virtualenv")
    assert observe(prefix, {}) == []


# as they stand in protobuf 3.20.3, coloredlogs 15.0.1, coverage 7.16.2, pytest-cov 5.0.0 and cuda-bindings 12.9.4
@pytest.mark.parametrize(
    "line",
    [
        "import sys, types, os;has_mfs = sys.version_info > (3, 5);p = os.path.join(sys._getframe(1).f_locals['sitedir'], *('google',));",
        """import os; exec('try: __import__("coloredlogs").auto_install() if os.environ.get("COLOREDLOGS_AUTO_INSTALL") else None')""",
        r"""import sys; exec('import os\n\nif os.getenv("COVERAGE_PROCESS_START"):\n  import coverage')""",
        r"""import os, sys;exec('if \'COV_CORE_SOURCE\' in os.environ:\n try:\n  from pytest_cov.embed import init\n')""",
        "import _cuda_bindings_redirector",
    ],
)
def test_what_libraries_start_with_python_leads_imports_nowhere(line: str, tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "library.pth").write_text(f"# a comment\n\n{line}\n")
    assert observe(prefix, {}) == []
    (site(prefix) / "library.pth").write_text(f"{line}\n/opt/other\n")
    assert [item[2] for item in observe(prefix, {})] == ["/opt/other"]


def test_path_files_variables_scripts_and_customisations_are_listed(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "local.pth").write_text("# comment\n/opt/other\n\nimport hook\n")
    (site(prefix) / "sitecustomize.py").write_text("")
    (prefix / "bin" / "activate").write_text("VIRTUAL_ENV=x\nexport LD_LIBRARY_PATH=/opt/cuda/lib:$LD_LIBRARY_PATH\n")
    (prefix / "etc/conda/activate.d").mkdir(parents=True)
    (prefix / "etc/conda/activate.d/cuda.sh").write_text("  export CUDA_HOME=/usr/local/cuda\n")
    variables = {"PYTHONPATH": "/a::/b", "LD_LIBRARY_PATH": "/c", "LD_PRELOAD": "/d.so /e.so"}
    where = "lib/python3.11/site-packages"
    assert observe(prefix, variables) == [
        ("pth", f"{where}/local.pth", "/opt/other"),
        ("pth", f"{where}/local.pth", "import hook"),
        ("sitecustomize", f"{where}/sitecustomize.py", "code that runs when Python starts"),
        ("PYTHONPATH", "process", "/a"),
        ("PYTHONPATH", "process", "/b"),
        ("LD_LIBRARY_PATH", "process", "/c"),
        ("LD_PRELOAD", "process", "/d.so"),
        ("LD_PRELOAD", "process", "/e.so"),
        ("activation-script", "bin/activate", "LD_LIBRARY_PATH=/opt/cuda/lib:$LD_LIBRARY_PATH"),
        ("activation-script", "etc/conda/activate.d/cuda.sh", "CUDA_HOME=/usr/local/cuda"),
    ]


@pytest.mark.parametrize(
    ("settings", "variables", "seen"),
    [
        ("", {}, False),
        ("include-system-site-packages = true\n", {}, True),
        ("include-system-site-packages = true\n", {"PYTHONNOUSERSITE": "1"}, False),
    ],
)
def test_user_site_is_seen_only_where_python_would_use_it(
    tmp_path: Path, settings: str, variables: dict[str, str], *, seen: bool
) -> None:
    prefix = make_prefix(tmp_path / "env", settings=settings)
    folder = tmp_path / "home/.local/lib/python3.11/site-packages"
    (folder / "torchvision").mkdir(parents=True)
    expected = [("user-site", str(folder), str(folder))] if seen else []
    assert observe(prefix, {"HOME": str(tmp_path / "home"), **variables}) == expected


def test_other_shells_assign_in_their_own_way() -> None:
    assert import_paths.parse_script("set -gx PYTHONPATH /a\nsetenv LD_PRELOAD /b.so\nunset PYTHONPATH\n") == (
        "PYTHONPATH=/a",
        "LD_PRELOAD=/b.so",
    )


def test_kinds_are_those_of_the_model(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "x.pth").write_bytes(b"\xef\xbb\xbf/opt/bom\n\xff\n")
    found = import_paths.observe(layout.read_layout(prefix), PYTHON, [site(prefix)], {})
    assert [type(item) for item in found] == [ImportPath, ImportPath]
    assert found[0].adds == "/opt/bom"


def test_lines_are_listed_without_secrets(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "x.pth").write_text("import os; os.environ.setdefault('PGPASSWORD', 'Xq7Login3f9')\n")
    (prefix / "bin").mkdir(exist_ok=True)
    (prefix / "bin" / "activate.own").write_text("export PYTHONPATH=/opt/lib HF_TOKEN=Xq7Login3f9\n")
    assert [adds for _, _, adds in observe(prefix, {})] == [
        "import os; os.environ.setdefault('PGPASSWORD', ***)",
        "PYTHONPATH=/opt/lib HF_TOKEN=***",
    ]
