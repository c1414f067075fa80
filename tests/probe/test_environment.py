"""The whole observation: kinds, interpreters that work and do not, hostile trees, and that nothing is written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import NoReturn

import pytest

from envmedic.errors import NotAnEnvironment, StorageError
from envmedic.model.base import from_json, to_json
from envmedic.model.facts import Environment, Facts, Host
from envmedic.probe import environment, layout
from envmedic.probe.environment import observe_environment
from envmedic.probe.prefix import interpreter
from envmedic.tree import fingerprint
from tests.probe.prefixes import add_distribution, build_library, make_prefix, site
from tests.support.venvs import install_file, make_venv, site_packages
from tests.support.wheels import make_wheel

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real venv with a distribution."""
    prefix = tmp_path_factory.mktemp("venvs") / "real é env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    add_distribution(site(prefix, VERSION), "sample", "1.0", files={"sample/__init__.py": ""})
    return prefix


def test_real_venv(venv: Path) -> None:
    found = observe_environment(venv)
    assert found.kind == "venv"
    assert found.interpreter.starts
    assert found.interpreter.version == sys.version.split()[0]
    assert found.interpreter.base_prefix == sys.base_prefix
    assert found.interpreter.soabi is not None
    assert found.interpreter.platform_tag is not None
    assert "-" not in found.interpreter.platform_tag
    assert found.site_packages == (str(site(venv, VERSION)),)
    assert [item.name for item in found.distributions] == ["sample"]
    assert (found.torch, found.companions, found.libraries) == (None, (), ())
    assert not found.externally_managed


def test_nothing_is_written_into_the_prefix(venv: Path) -> None:
    before = fingerprint.manifest(venv)
    observe_environment(venv)
    assert fingerprint.manifest(venv) == before


def test_prefix_keeps_its_spelling_and_has_its_real_path(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(venv)
    found = observe_environment(tmp_path / "link")
    assert found.prefix == str(tmp_path / "link")
    assert found.real_prefix == os.path.realpath(venv)
    assert found.interpreter.starts
    assert len(found.site_packages) == 1


def test_it_is_the_same_by_two_processes_and_by_one(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_two = observe_environment(venv)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert observe_environment(venv) == by_two


def test_facts_survive_json(venv: Path) -> None:
    facts = Facts(host=Host(), environment=observe_environment(venv))
    assert from_json(to_json(facts), Facts, source="test") == facts


def test_digest_follows_the_files(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    before = observe_environment(prefix).digest
    assert observe_environment(prefix).digest == before
    add_distribution(site(prefix), "new", "1")
    assert observe_environment(prefix).digest != before


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ("home = /usr/bin\n", "venv"),
        ("home = /usr/bin\nuv = 0.9.9\n", "uv"),
        ("home = /usr/bin\nvirtualenv = 20.26\n", "virtualenv"),
    ],
)
def test_kinds_of_virtual_environments(tmp_path: Path, settings: str, kind: str) -> None:
    assert observe_environment(make_prefix(tmp_path / "env", settings=settings)).kind == kind


def test_conda_prefix_is_recognised_and_frozen_ones_are_said_to_be(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    site(prefix).mkdir(parents=True)
    (prefix / "conda-meta").mkdir()
    assert (observe_environment(prefix).kind, observe_environment(prefix).frozen) == ("conda", False)
    (prefix / "conda-meta" / "frozen").write_text("")
    assert observe_environment(prefix).frozen


def test_system_python_and_its_external_management(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (prefix / "pyvenv.cfg").unlink()
    assert (observe_environment(prefix).kind, observe_environment(prefix).externally_managed) == ("system", False)
    (prefix / "lib" / "python3.11" / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    assert observe_environment(prefix).externally_managed


def test_virtual_environment_is_not_bound_by_its_base(venv: Path) -> None:
    marker = venv / "lib" / f"python{VERSION}" / "EXTERNALLY-MANAGED"
    marker.write_text("")
    try:
        assert not observe_environment(venv).externally_managed
    finally:
        marker.unlink()


def test_plain_directory_is_not_an_environment(tmp_path: Path) -> None:
    with pytest.raises(NotAnEnvironment, match="holds no Python environment"):
        observe_environment(tmp_path)


def with_program(prefix: Path, script: str) -> Path:
    python = prefix / "bin" / "python"
    python.unlink()
    python.write_text(script)
    python.chmod(0o755)
    return prefix


def test_the_interpreter_gets_no_variables_but_those_it_starts_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "MY_NOTES", "PYTHONPATH"):
        monkeypatch.setenv(name, "told")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/lib/mine")
    monkeypatch.setenv("LANG", "C.UTF-8")
    seen = tmp_path / "seen"
    observe_environment(with_program(make_prefix(tmp_path / "env"), f"#!/bin/sh\n/usr/bin/env > {seen}\nexit 1\n"))
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert {"LD_LIBRARY_PATH", "LANG", "PATH", "LC_ALL"} <= names
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} <= {"LD_LIBRARY_PATH", "LANG", "PATH"} | {
        name for name in names if name.startswith("LC_")
    }


def test_dangling_interpreter_is_a_fact_and_the_rest_is_still_read(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "torch", "2.5.1", files={"torch/version.py": "__version__ = '2.5.1+cu124'\n"})
    found = observe_environment(prefix)
    assert not found.interpreter.starts
    assert found.interpreter.error == "dangling symbolic link to /nonexistent/python"
    assert (found.interpreter.version, found.interpreter.base_prefix) == ("3.11.4", "/opt/base")
    assert found.torch is not None
    assert found.torch.variant == "cu124"


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("#!/bin/sh\necho broken >&2\nexit 3\n", "exit status 3: broken"),
        ("#!/bin/sh\nkill -SEGV $$\n", "ended by SIGSEGV"),
        ("#!/bin/sh\necho no json\n", "exit status 0"),
        ("#!/nonexistent/interpreter\n", "it cannot be started: No such file or directory"),
        ("", "it is no program"),
        ("echo a shell would run this\n", "it is no program"),
    ],
)
def test_interpreter_that_fails_says_how(tmp_path: Path, script: str, error: str) -> None:
    found = observe_environment(with_program(make_prefix(tmp_path / "env"), script)).interpreter
    assert not found.starts
    assert found.error == error
    assert found.version == "3.11.4"


def test_interpreter_that_is_missing_or_not_executable_says_so(tmp_path: Path) -> None:
    prefix = with_program(make_prefix(tmp_path / "env"), "#!/bin/sh\n")
    (prefix / "bin" / "python").chmod(0o644)
    assert observe_environment(prefix).interpreter.error == "it cannot be started: Permission denied"
    (prefix / "bin" / "python").unlink()
    assert observe_environment(prefix).interpreter.error == "there is no bin/python"


def test_pipe_in_the_place_of_the_interpreter(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (prefix / "bin" / "python").unlink()
    os.mkfifo(prefix / "bin" / "python")
    assert observe_environment(prefix).interpreter.error == "it is no file"


def test_interpreter_of_another_processor(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    head = bytearray(Path(sys.executable).read_bytes()[:64])
    head[18:20] = b"\xf3\x00" if head[18:20] != b"\xf3\x00" else b"\x3e\x00"
    (prefix / "bin" / "python").unlink()
    (prefix / "bin" / "python").write_bytes(head)
    (prefix / "bin" / "python").chmod(0o755)
    assert observe_environment(prefix).interpreter.error == "it is made for another processor"


def test_interpreter_links_in_a_circle(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (prefix / "bin" / "python").unlink()
    (prefix / "bin" / "python").symlink_to("python3")
    (prefix / "bin" / "python3").symlink_to("python")
    found = observe_environment(prefix).interpreter
    assert found.error == "dangling symbolic link to python3"


def test_interpreter_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "TIMEOUT_S", 0.5)
    prefix = with_program(make_prefix(tmp_path / "env"), "#!/bin/sh\nexec sleep 600\n")
    started = time.monotonic()
    found = interpreter.observe(layout.read_layout(prefix))
    assert found.error == "no answer within 0 s"
    assert time.monotonic() - started < 300


def test_system_site_packages_are_listed_as_outside(tmp_path: Path) -> None:
    base = tmp_path / "base"
    add_distribution(site(base), "numpy", "1.26.4")
    settings = f"home = {base}/bin\ninclude-system-site-packages = true\n"
    prefix = make_prefix(tmp_path / "env", settings=settings)
    add_distribution(site(prefix), "numpy", "2.0.0")
    found = observe_environment(prefix)
    assert found.include_system_site
    assert [(item.version, item.outside_prefix) for item in found.distributions] == [("2.0.0", False), ("1.26.4", True)]
    assert found.distribution("numpy") == found.distributions[0]
    assert found.duplicates == ()


def test_newest_library_directory_serves_when_nothing_tells_the_version(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    for python in ("3.9", "3.13t", "3.10"):
        site(prefix, python).mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("home = /nowhere\n")
    found = observe_environment(prefix)
    assert found.interpreter.version == "3.13"
    assert found.interpreter.free_threaded
    assert found.site_packages == (str(site(prefix, "3.13t")),)


def test_lib64_link_is_no_second_directory(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (prefix / "lib64").symlink_to("lib")
    add_distribution(site(prefix), "a", "1")
    found = observe_environment(prefix)
    assert len(found.site_packages) == 1
    assert found.duplicates == ()


def hostile(root: Path) -> Path:
    """A prefix with everything that a damaged or malicious tree may hold."""
    prefix = make_prefix(root)
    folder = site(prefix)
    add_distribution(folder, "torch", "2.5.1", files={"torch/version.py": "\0" * 500 + "__version__ = '2.5.1'\n"})
    (folder / "torch" / "_C.cpython-311-x86_64-linux-gnu.so").write_bytes(os.urandom(5000))
    (folder / "torch" / "lib").symlink_to("lib")
    info = add_distribution(folder, "torchvision", "0.18.1", files={"torchvision/__init__.py": ""})
    (info / "direct_url.json").write_bytes(b"\xff\xfe{")
    (info / "RECORD").write_bytes(os.urandom(3000))
    (folder / "torchvision" / "_C.so").symlink_to("/dev/zero")
    os.mkfifo(folder / "torchvision" / "image.so")
    os.mkfifo(folder / "pipe.pth")
    (folder / b"\xff\xfe.dist-info".decode("utf-8", "surrogateescape")).mkdir()
    (folder / "up").symlink_to("..")
    (folder / "__editable__").mkdir()
    (folder / "~").mkdir()
    (folder / "~.dist-info").write_text("")
    (prefix / "pip.conf").write_bytes(b"[global\n\xff")
    (prefix / "etc" / "conda").mkdir(parents=True)
    (prefix / "etc" / "conda" / "activate.d").symlink_to("activate.d")
    return prefix


def test_hostile_tree_becomes_facts(tmp_path: Path) -> None:
    found = observe_environment(hostile(tmp_path / "env"))
    assert [item.name for item in found.distributions] == ["torch", "torchvision"]
    assert found.torch is not None
    assert found.torch.version == "2.5.1"
    assert all(item.error for item in found.libraries)
    assert len(found.libraries) == 3
    assert [item.key for item in found.settings if item.source.startswith(str(tmp_path))] == ["unreadable"]
    assert from_json(to_json(found), Environment, source="test") == found


def test_truncated_extension_is_an_error_of_that_library_alone(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "torchvision", "0.18.1", files={"torchvision/__init__.py": ""})
    whole = build_library(site(prefix) / "torchvision" / "image.so", "int x;", "-nostdlib")
    data = whole.read_bytes()
    (site(prefix) / "torchvision" / "_C.so").write_bytes(data[: len(data) // 3])
    cut, image = observe_environment(prefix).libraries
    assert cut.error is not None
    assert image.error is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_facts(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    info = add_distribution(site(prefix), "a", "1")
    (info / "METADATA").chmod(0)
    found = observe_environment(prefix)
    assert [item.kind for item in found.leftovers] == ["empty-dist-info"]


def test_what_the_interpreter_says_is_what_sysconfig_says(venv: Path) -> None:
    found = observe_environment(venv).interpreter
    assert found.soabi == sysconfig.get_config_var("SOABI")
    assert found.platform_tag == sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert found.free_threaded == bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert found.base_prefix == sys.base_prefix


def test_directories_of_byte_code_in_a_record_are_nothing_that_is_missing(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    wheel = make_wheel(tmp_path, "seeded", "1", files={"seeded/__init__.py": ""})
    install_file(prefix, wheel.path)
    (record,) = site_packages(prefix).glob("seeded-1.dist-info/RECORD")
    text = record.read_text(encoding="utf-8")
    record.write_text(
        f"{text}seeded/__pycache__,,\nseeded/sub/__pycache__/,,\n", encoding="utf-8"
    )  # as virtualenv has it
    assert observe_environment(prefix).files == ()
    record.write_text(f"{text}seeded/gone.py,,\n", encoding="utf-8")
    (found,) = observe_environment(prefix).files or ()
    assert found.missing_count == 1


def test_a_directory_that_cannot_be_read_is_named_with_the_way_to_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = make_prefix(tmp_path / "env")
    folder = site(prefix) / "closed"
    folder.mkdir(mode=0)
    if os.geteuid() == 0:  # whom no mode keeps out

        def refused(_: Path) -> NoReturn:
            raise PermissionError(errno.EACCES, "Permission denied", f"{folder}/")

        monkeypatch.setattr(environment, "survey", refused)
    with pytest.raises(StorageError, match="Parts of the environment cannot be read") as told:
        observe_environment(prefix)
    assert f"{folder} belongs to " in (told.value.cause or "")
    assert f"`chmod -R u+rX {prefix}`" in (told.value.hint or "")
