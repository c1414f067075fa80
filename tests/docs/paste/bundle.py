"""``python -m tests.docs.paste.bundle``: the page that diagnoses a text in the browser, in ``build/site/paste``.

Python for the browser (Pyodide) comes from npm's default registry and msgspec for it from pip's default index, each once
and by its hash, into ``build/paste``. Node runs that Python here once, to see what a diagnosis loads.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import msgspec

from envmedic.diagnosis import resemblance
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching import derived, forms
from tests.docs.howto import FOLDER, shipped
from tests.docs.paste.in_browser.pasted import Known

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
FETCHED = ROOT / "build" / "paste"
SITE = ROOT / "build" / "site" / "paste"
PYODIDE = ("pyodide", "314.0.7", "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0")
"""The package of npm, its version, and the SHA-256 of its archive."""
MSGSPEC = (
    "--platform",
    "pyemscripten_2026_0_wasm32",
    "--python-version",
    "3.14",
    "--implementation",
    "cp",
    "--abi",
    "cp314",
)
"""For what the wheel in `PINNED` is: the Python of that Pyodide."""
PINNED = HERE / "fetched.txt"
PACKED = ("pyodide.asm.wasm", "python.zip")
"""Compressed here and unpacked by the page, so that their size does not depend on the server."""
AS_IS = ("pyodide.mjs", "pyodide.asm.mjs")
UNRECOGNISED = b"""Traceback (most recent call last):
  File "run.py", line 3, in <module>
acme.LoadProblem: the shared object of this build of the operators did not load"""
"""A text that no signature knows, so that its words are counted."""
PAGE = ("index.html", "page.css", "page.js", "worker.js")


def texts() -> dict[str, bytes]:
    """Every sample: that of each signature of a shipped playbook, and the logs of the broken environments of the tests."""
    signatures = {
        f"{loaded.playbook.id}#{signature.id}": signature.sample.encode()
        for loaded in shipped()
        for signature in loaded.playbook.signatures
    }
    logs = sorted((ROOT / "tests" / "envs").glob("*/sample_*.log"))
    unrecognised = {"unrecognised": UNRECOGNISED}
    return {**signatures, **unrecognised, **{f"{log.parent.name}/{log.name}": log.read_bytes() for log in logs}}


def known() -> Known:
    """The shipped playbooks and the literals of all patterns. Nothing in it names this machine."""
    playbooks = tuple(
        LoadedPlaybook(playbook=item.playbook, path=f"{item.playbook.id}.yaml", sha256=item.sha256, origin=item.origin)
        for item in shipped()
    )
    patterns = [signature.pattern for item in playbooks for signature in item.playbook.signatures]
    return Known(
        playbooks,
        derived.derive_literals(patterns),
        derived.derive_literals(forms.patterns()),
        resemblance.load_table(),
    )


def wheels() -> Path:
    """Where the wheels are that `PINNED` names; with another content it is another place."""
    return FETCHED / f"wheels-{hashlib.sha256(PINNED.read_bytes()).hexdigest()[:12]}"


def fetch() -> Path:
    """The directory of Pyodide; it and the wheels are fetched once. Raises SystemExit in words."""
    name, version, digest = PYODIDE
    archive = FETCHED / f"{name}-{version}.tgz"
    FETCHED.mkdir(parents=True, exist_ok=True)
    if not archive.is_file():
        _run("npm", "pack", "--silent", f"{name}@{version}", "--pack-destination", str(FETCHED))
    if hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
        archive.unlink()
        sys.exit(f"what npm gave as {name} {version} is not what this page is tested with, and was removed")
    unpacked = FETCHED / "package"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archive) as content:
        content.extractall(FETCHED, filter="data")
    wanted = ("--require-hashes", "-r", str(PINNED), "--dest", str(wheels()))
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    if not [*wheels().glob("*.whl")]:
        _run(*pip, "--only-binary", ":all:", *MSGSPEC, *wanted)
    return unpacked


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is needed to build this page, and is not here")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(command[:3])} ended with {error.returncode}")


def stage(staged: Path) -> None:
    """Lay out in `staged` what `packing.py` finds: modules, texts, and what is known before."""
    shutil.rmtree(staged, ignore_errors=True)
    modules = staged / "modules"
    (staged / "texts").mkdir(parents=True)
    for name in ("envmedic", "packaging"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        shutil.copytree(
            Path(spec.origin).parent, modules / name, ignore=shutil.ignore_patterns("__pycache__", "kernels")
        )
    for wheel in wheels().glob("*.whl"):
        with zipfile.ZipFile(wheel) as content:
            content.extractall(modules)
    for file in ("re2.py", "pasted.py"):
        shutil.copy(HERE / "in_browser" / file, modules / file)
    shutil.copy(HERE / "packing.py", staged)
    (staged / "known.msgpack").write_bytes(msgspec.msgpack.encode(known()))
    for number, text in enumerate(texts().values()):
        (staged / "texts" / f"{number:04d}").write_bytes(text)


def faults() -> dict[str, dict[str, str]]:
    """What a link to a finding is shown as: for each playbook its class, its title, and its page of the site."""
    return {
        item.playbook.id: {
            "fault": item.playbook.fault or "",
            "title": item.playbook.title,
            "page": f"../{FOLDER}/{item.playbook.id}.html",
        }
        for item in shipped()
    }


def build(site: Path = SITE) -> dict[str, int]:
    """Write the page; the bytes of each file, as they are sent."""
    pyodide = fetch()
    staged = FETCHED / "staged"
    stage(staged)
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)
    _run("node", str(HERE / "byte_code.mjs"), str(pyodide), str(staged), str(pyodide / "python.zip"))
    shutil.rmtree(staged)
    parts = {name: _compressed(pyodide / name, site / f"{name}.packed") for name in PACKED}
    for name in AS_IS:
        shutil.copy(pyodide / name, site)
    for name in PAGE:
        shutil.copy(HERE / "page" / name, site)
    lock = json.loads((pyodide / "pyodide-lock.json").read_bytes())
    (site / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}), encoding="utf-8")  # none is fetched
    (site / "faults.json").write_text(json.dumps(faults(), ensure_ascii=False), encoding="utf-8")
    (site / "parts.json").write_text(json.dumps(parts), encoding="utf-8")
    return {file.name: file.stat().st_size for file in sorted(site.iterdir())}


def _compressed(source: Path, target: Path) -> dict[str, int | str]:
    content = gzip.compress(source.read_bytes(), mtime=0)
    target.write_bytes(content)
    return {"size": len(content), "digest": hashlib.sha256(content).hexdigest()[:16]}


if __name__ == "__main__":
    written = build()
    for named, size in written.items():
        sys.stdout.write(f"{size:>10,}  {named}\n")
    sys.stdout.write(f"{sum(written.values()):>10,}  bytes in {os.path.relpath(SITE)}\n")
