"""Byte code of what a step installed, as the environment had it before: checks and programs need not compile it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from envmedic.engine.clone.listed_files import own_files, site_packages
from envmedic.engine.fs.durable import make_directory
from envmedic.engine.store.workspace import Workplace
from envmedic.engine.verify import concurrency
from envmedic.engine.verify.kernel_session import KERNELS
from envmedic.model.events import Notice
from envmedic.model.plan import Install, Rebuild, Step

_LIST = "modules.json"
_SUFFIX = ".dist-info"


def compile_as_before(step: Step, place: Workplace, original: Path) -> None:
    """Write byte code for what `step` installed in the clone, of modules that have some in the tree `original`.

    A module that is new gets it where its directory has byte code there. What cannot be written is told, and no
    failure: Python compiles then as it imports. Raises OSError.
    """
    names = [item.name for item in step.artifacts] if isinstance(step, Install) else []
    names += [step.distribution.name] if isinstance(step, Rebuild) else []
    tree = Path(os.path.realpath(place.tree))
    wanted = [name for name in _modules(names, tree) if _had_byte_code(name, original)]
    if not wanted:
        return
    python, seen = place.runner.python, place.runner.python.parent.parent
    if not place.trash.is_dir():
        make_directory(place.trash)
    listed = place.trash / _LIST  # no argument is long enough for the modules of torch
    listed.write_text(json.dumps([os.fspath(seen / name) for name in wanted]), encoding="utf-8")
    text = (KERNELS / "byte_code.py").read_text(encoding="utf-8")
    words = (os.fspath(listed), os.fspath(seen), os.fspath(original), str(concurrency.at_once()))
    try:
        result = place.runner((os.fspath(python), "-I", "-S", "-c", text, *words), timeout_s=place.timeout_s)
        failed = result.stderr.strip().rpartition("\n")[2] if result.returncode else ""
    except OSError as error:
        failed = f"{python} cannot be started: {error.strerror}"
    if failed:
        told = f"Byte code of {', '.join(names)} could not be written: {failed}"
        place.emit(Notice(code="no-byte-code", message=told, level="warning"))


def _modules(names: Iterable[str], tree: Path) -> Iterator[str]:
    """The modules that the distributions `names` list as theirs, relative to `tree`."""
    wanted = set(map(canonicalize_name, names))
    for site in map(Path, site_packages(tree)) if wanted else ():
        for info in site.glob(f"*{_SUFFIX}"):
            if canonicalize_name(info.name.removesuffix(_SUFFIX).partition("-")[0]) in wanted:
                files = own_files(tree, os.fspath(info.relative_to(tree)))
                yield from (os.path.relpath(file, tree) for file in files if file.suffix == ".py" and file.is_file())


def _had_byte_code(name: str, original: Path) -> bool:
    module = original / name
    stem = module.name.removesuffix(".py") if module.is_file() else "*"
    return any(module.parent.glob(f"__pycache__/{stem}.*.pyc"))
