"""Files made in a clone, moved to their final path: they run there, and nothing else is touched."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from envmedic.engine.stage.relocate import rewrite
from envmedic.errors import PreflightError
from envmedic.tree import fingerprint
from tests.engine_low.support import make_prefix, write
from tests.support.venvs import install, make_venv
from tests.support.wheels import make_wheel

LONG = "d" * 60 + "/" + "e" * 60
PIP_FORM = "#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n"
UV_FORM = "#!/bin/sh\n'''exec' '{python}' \"$0\" \"$@\"\n' '''\n"
PIP_ARGUMENTS = "#!/bin/sh\n'''exec' {python} -E \"$0\" \"$@\"\n' '''\n"
DISTLIB_FORM = "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"
BODY = "import sys\nprint(sys.executable, sys.flags.ignore_environment, sys.argv[1:])\n"
SITE = Path("lib/python3.11/site-packages")


@pytest.fixture(params=["env", "my env", "é'nv", LONG, 'a "$x" b'])
def place(request: pytest.FixtureRequest, open_tmp: Path) -> tuple[Path, Path]:
    """Staging and final path of a venv that was made at the final path and lies at the staging path."""
    staging, final = open_tmp / ".envmedic" / "tx" / "env", open_tmp / request.param
    final.parent.mkdir(parents=True, exist_ok=True)
    staging.parent.mkdir(parents=True)
    make_venv(final).rename(staging)
    return staging, final


@pytest.fixture
def staged(open_tmp: Path) -> Path:
    """A small tree at a staging path; its final path is ``env`` beside it."""
    return make_prefix(open_tmp / "staged")


def _run(script: Path) -> str:
    done = subprocess.run([script, "a b", "c"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_scripts_of_every_form_run_at_their_final_path(place: tuple[Path, Path]) -> None:
    staging, final = place
    forms = ("#!{python}\n", "#!{python} -E\n", PIP_FORM, PIP_ARGUMENTS, UV_FORM, DISTLIB_FORM)
    for number, form in enumerate(forms):
        text = form.format(python=staging / "bin" / "python") + BODY
        write(staging / "bin" / f"tool{number}", text, mode=0o755)
    assert rewrite(staging, staging, final).rewritten == tuple(f"bin/tool{number}" for number in range(len(forms)))
    staging.rename(final)
    first = (final / "bin" / "tool0").read_bytes().splitlines()[0]
    needs_shell = " " in str(final) or len(os.fsencode(final)) > 110
    assert first == (b"#!/bin/sh" if needs_shell else b"#!" + os.fsencode(final / "bin" / "python"))
    for number, form in enumerate(forms):
        flags = "1" if "-E" in form else "0"
        assert _run(final / "bin" / f"tool{number}") == f"{final}/bin/python {flags} ['a b', 'c']\n"


def test_what_uv_really_writes_runs_at_its_final_path(place: tuple[Path, Path], open_tmp: Path) -> None:
    staging, final = place
    wheel = make_wheel(
        open_tmp / "wheels",
        "hello",
        "1.0",
        files={"hello.py": "import sys\ndef main():\n    print('hello from', sys.prefix)\n"},
        entry_points="[console_scripts]\nhello = hello:main\n",
    )
    install(staging, [wheel])
    (site,) = staging.glob("lib/python*/site-packages")
    changed = rewrite(staging, staging, final).rewritten
    assert {"bin/hello", os.fspath((site / "hello-1.0.dist-info/RECORD").relative_to(staging))} == set(changed)
    staging.rename(final)
    assert _run(final / "bin" / "hello") == f"hello from {final}\n"
    _check_record(final / site.relative_to(staging))


def _check_record(site: Path) -> None:
    """Every file has the hash and size that RECORD states."""
    with (site / "hello-1.0.dist-info" / "RECORD").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row[1]]
    assert any(row[0].endswith("bin/hello") for row in rows)
    for path, digest, size in rows:
        content = (site / path).read_bytes()
        wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={wanted}", str(len(content)))


def test_a_tree_that_does_not_name_the_staging_path_is_left_as_it_is(staged: Path) -> None:
    before = fingerprint.manifest(staged)
    assert rewrite(staged, Path("/none/staging"), Path("/none/env")).rewritten == ()
    assert fingerprint.manifest(staged) == before


def test_modes_stay_and_shared_inodes_are_left(staged: Path, open_tmp: Path) -> None:
    final = open_tmp / "env"
    twin = write(open_tmp / "twin", f"#!{staged}/bin/python\n", mode=0o751)
    os.link(twin, staged / "bin" / "linked")
    rewrite(staged, staged, final)
    assert twin.read_text(encoding="utf-8") == f"#!{staged}/bin/python\n"
    assert (staged / "bin" / "linked").read_text(encoding="utf-8") == f"#!{final}/bin/python\n"
    assert (staged / "bin" / "linked").stat().st_mode & 0o7777 == 0o751


def test_every_kind_of_text_file_is_covered_and_byte_code_is_not(staged: Path) -> None:
    site = staged / SITE
    final = staged.with_name("env é")
    url = f"file://{urllib.parse.quote(str(staged))}/src/x"
    write(staged / "pyvenv.cfg", f"command = python -m venv {staged}\n")
    write(staged / "bin" / "activate", f'VIRTUAL_ENV="{staged}"\n')
    write(staged / "etc" / "deep" / "x.ini", f"[x]\npath = {staged}/lib\n")
    write(staged / "share/jupyter/kernels/python3/kernel.json", json.dumps({"argv": [f"{staged}/bin/python"]}))
    write(site / "editable.pth", f"{staged}/src\n")
    write(site / "x-1.0.dist-info" / "direct_url.json", json.dumps({"url": url}))
    compiled = write(site / "x-1.0.dist-info" / "__pycache__" / "x.cpython-311.pyc", f"{staged}\0")
    rewritten = rewrite(staged, staged, final).rewritten
    assert len(rewritten) == 7
    for relative in rewritten:
        assert str(staged) not in (staged / relative).read_text(encoding="utf-8")
    kernel = json.loads((staged / "share/jupyter/kernels/python3/kernel.json").read_bytes())
    assert kernel == {"argv": [f"{final}/bin/python"]}
    direct = json.loads((site / "x-1.0.dist-info" / "direct_url.json").read_bytes())
    assert urllib.parse.unquote(direct["url"]) == f"file://{final}/src/x"
    assert (site / "editable.pth").read_text(encoding="utf-8") == f"{final}/src\n"
    assert compiled.read_text(encoding="utf-8") == f"{staged}\0"


def test_a_path_that_merely_begins_like_the_staging_path_is_refused_rather_than_rewritten(staged: Path) -> None:
    write(staged / SITE / "other.pth", f"{staged}2/src\n{staged}/src\n")
    with pytest.raises(PreflightError) as caught:
        rewrite(staged, staged, staged.with_name("env"))
    assert caught.value.details == (f"{SITE}/other.pth",)


@pytest.mark.parametrize("name", ["binary", "settings"])
def test_what_cannot_be_rewritten_safely_is_refused_by_name(staged: Path, name: str) -> None:
    content = {"binary": f"\x7fELF\0{staged}/lib\0", "settings": f'path = "{staged}"\n'}[name]
    write(staged / "bin" / name, content)
    final = staged.with_name("env" if name == "binary" else 'e"nv')
    with pytest.raises(PreflightError) as caught:
        rewrite(staged, staged, final)
    assert f"bin/{name}" in caught.value.details
    assert caught.value.environment == "unchanged"
    assert (staged / "bin" / name).read_text(encoding="utf-8") == content
