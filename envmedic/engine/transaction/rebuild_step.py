"""Building a distribution again from its source, and putting the wheel in the place of the installed copy.

The build runs in the stage, with the environment's own Python and without isolation, in a workshop beside the
environment that is gone afterwards; the user's source directory is copied first and never written to. The wheel that
comes of it is installed as any other.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name, parse_wheel_filename

from envmedic.engine.fs import trash
from envmedic.engine.fs.safe_paths import replace_file
from envmedic.engine.store.workspace import Workplace, run
from envmedic.engine.transaction.installed_record import remove_or_install
from envmedic.engine.verify.kernel_session import KERNELS
from envmedic.errors import InstallerError
from envmedic.model.plan import Artifact, Install, Rebuild

COMPILER_BYTES = 4 << 30
"""Memory that one compiler of GPU code may take, for the number that runs at a time."""


def carry_out(step: Rebuild, place: Workplace) -> str:
    """Build, install and remember the source; returns what there is to say.

    Raises InstallerError when the build fails or makes no wheel, and what installing raises.
    """
    workshop = Path(step.workshop)
    _clear(workshop, place)
    try:
        _copy_source(step, place)
        run(place.installer.build_command(step, str(place.runner.python)), place, env=_variables(step, place))
        wheel = _wheel(step, workshop)
        remove_or_install(Install(artifacts=(wheel,)), place)
        _remember_source(step, place)
    finally:
        _clear(workshop, place)
    return f"built {wheel.filename}"


def _copy_source(step: Rebuild, place: Workplace) -> None:
    """Copy the source directory, without what earlier builds left in it."""
    if step.source.kind != "directory" or step.source.url is None:
        return
    text = (KERNELS / "source.py").read_text(encoding="utf-8")
    source = unquote(urlsplit(step.source.url).path)
    run((os.fspath(place.runner.python), "-I", "-B", "-c", text, source, step.requirement()), place)


def _variables(step: Rebuild, place: Workplace) -> Mapping[str, str]:
    """The step's own variables, the environment's programs first on PATH, and no more compilers than memory holds."""
    programs = os.fspath(place.runner.python.parent)
    path = os.pathsep.join((programs, os.environ.get("PATH", os.defpath)))
    jobs = {} if "MAX_JOBS" in os.environ else {"MAX_JOBS": str(_jobs())}
    return {"PATH": path, **jobs, **step.variables}


def _jobs() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory // COMPILER_BYTES))


def _wheel(step: Rebuild, workshop: Path) -> Artifact:
    """The wheel that the build left in the installer's private cache."""
    name = step.distribution.name
    found = [path for path in workshop.rglob("*.whl") if parse_wheel_filename(path.name)[0] == name]
    if len(found) != 1:
        raise InstallerError(
            f"The build of {name} left {len(found) or 'no'} wheels",
            cause=", ".join(path.name for path in found) or f"nothing of that name is in {workshop}",
            hint="Build it by hand with `pip wheel --no-build-isolation --no-deps` to see what it makes",
        )
    wheel = found[0]
    content = wheel.read_bytes()
    return Artifact(
        name=name,
        version=str(parse_wheel_filename(wheel.name)[1]),
        filename=wheel.name,
        url=wheel.as_uri(),
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        local_path=os.fspath(wheel),
    )


def _remember_source(step: Rebuild, place: Workplace) -> None:
    """Record where the new copy came from, as the old one's direct_url.json did, so that it can be built again."""
    metadata = _metadata(step, place.tree)
    document = _direct_url(step)
    if metadata is None or document is None:
        return
    content = json.dumps(document).encode()
    replace_file(place.tree, f"{metadata}/direct_url.json", content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record = place.tree / metadata / "RECORD"
    line = f"{metadata.rpartition('/')[2]}/direct_url.json"
    rows = [row for row in csv.reader(io.StringIO(record.read_text(encoding="utf-8"))) if row and row[0] != line]
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([*rows, [line, f"sha256={digest}", str(len(content))]])
    replace_file(place.tree, f"{metadata}/RECORD", written.getvalue().encode())


def _metadata(step: Rebuild, tree: Path) -> str | None:
    """The dist-info of the new copy, relative to the clone."""
    site = Path(step.distribution.metadata_path).parent
    for path in sorted((tree / site).glob("*.dist-info")):
        if canonicalize_name(path.name.partition("-")[0]) == step.distribution.name:
            return f"{site}/{path.name}"
    return None


def _direct_url(step: Rebuild) -> dict[str, object] | None:
    """What direct_url.json says of the source (PEP 610); None for a release of an index."""
    source = step.source
    inside = {"subdirectory": source.subdirectory} if source.subdirectory else {}
    if source.kind == "directory":
        return {"url": source.url, "dir_info": {}}
    if source.kind == "vcs":
        return {"url": source.url, "vcs_info": {"vcs": "git", "commit_id": source.revision or ""}, **inside}
    if source.kind == "archive":
        hashes = {"hashes": {"sha256": source.sha256}} if source.sha256 else {}
        return {"url": source.url, "archive_info": hashes, **inside}
    return None


def _clear(workshop: Path, place: Workplace) -> None:
    if workshop.is_dir():
        trash.discard(workshop, place.trash)
        for folder in (workshop.parent, workshop.parent.parent):
            if not any(folder.iterdir()):
                folder.rmdir()
