"""Preflight: what will be done is found by trying, and every refusal says why and what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envmedic.engine.clone import disk_space
from envmedic.engine.clone.clone import clone, probe_modes
from envmedic.engine.stage.runners import probe_namespace
from envmedic.engine.transaction.preflight import Capabilities, preflight
from envmedic.errors import EnvironmentBusy, EnvmedicError, NotAnEnvironment, PreflightError
from envmedic.model.facts import Host
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions, ProcessUser
from envmedic.tree import fingerprint
from tests.engine_low.support import as_user, needs_seccomp, own_mounts, run_code, write

_CODE = """
from envmedic.engine.transaction.preflight import preflight
from envmedic.errors import EnvmedicError
from envmedic.model.ports import ApplyOptions
from tests.engine_low.test_preflight import a_plan
def attempt(prefix, **options):
    before = sorted(map(str, Path(prefix).parent.rglob("*")))
    try:
        found = preflight(Path(prefix), a_plan(), ApplyOptions(**options), processes=())
        answer = [found.clone, found.staging, found.exchange, list(found.notes)]
    except EnvmedicError as error:
        answer = [type(error).__name__, error.summary, error.cause, error.hint, error.environment]
    assert sorted(map(str, Path(prefix).parent.rglob("*"))) == before
    return answer
"""


def a_plan(**values: Any) -> Plan:
    """A plan of which preflight reads only the sizes."""
    return Plan(
        envmedic="0", created="", prefix="", real_prefix="", environment_digest="", playbook=None, fault=None,
        host=Host(), steps=(), **values,
    )  # fmt: skip


def _preflight(
    prefix: Path, *, plan: Plan | None = None, processes: tuple[ProcessUser, ...] = (), **options: Any
) -> Capabilities:
    return preflight(prefix, plan or a_plan(), ApplyOptions(**options), processes=processes)


def _refusal(prefix: Path, kind: type[EnvmedicError] = PreflightError, **options: Any) -> EnvmedicError:
    with pytest.raises(kind) as caught:
        _preflight(prefix, **options)
    assert caught.value.environment == "unchanged"
    assert caught.value.hint
    return caught.value


def test_a_good_place_is_found_good_and_left_untouched(prefix: Path, open_tmp: Path) -> None:
    before = fingerprint.manifest(open_tmp)
    found = _preflight(prefix)
    refused = probe_modes(prefix, open_tmp)
    assert found.prefix == prefix
    assert found.clone == ("link" if refused["reflink"] else "reflink")
    assert found.exchange == "exchange"
    assert found.staging == ("namespace" if probe_namespace(prefix, open_tmp).ok else "relocate")
    after = fingerprint.manifest(open_tmp)
    assert before == after
    assert not (open_tmp / ".envmedic").exists()


def test_an_existing_store_stays(prefix: Path, open_tmp: Path) -> None:
    (open_tmp / ".envmedic").mkdir()
    _preflight(prefix)
    assert list((open_tmp / ".envmedic").iterdir()) == []


def test_a_prefix_behind_a_link_is_taken_by_its_real_path(prefix: Path, open_tmp: Path) -> None:
    (open_tmp / "link").symlink_to("env")
    assert _preflight(open_tmp / "link").prefix == prefix


@pytest.mark.parametrize("name", ["none", "file", "loop"])
def test_what_is_no_directory_is_no_environment(open_tmp: Path, name: str) -> None:
    write(open_tmp / "file", "")
    (open_tmp / "loop").symlink_to("loop")
    _refusal(open_tmp / name, NotAnEnvironment)


@pytest.mark.parametrize("prefix", ["/usr", sys.prefix, sys.base_prefix])
def test_the_system_and_envmedics_own_python_are_never_repaired(prefix: str) -> None:
    error = _refusal(Path(prefix), allow=("base", "external", "frozen", "in-use"))
    assert "operating system" in error.summary or "envmedic itself" in error.summary


def _conda_base(prefix: Path) -> None:
    write(prefix / "conda-meta" / "history", "")
    (prefix / "condabin").mkdir()


def _frozen(prefix: Path) -> None:
    write(prefix / "conda-meta" / "history", "")
    write(prefix / "conda-meta" / "frozen", "{}")


def _external(prefix: Path) -> None:
    (prefix / "pyvenv.cfg").unlink()
    write(prefix / "lib" / "python3.11" / "EXTERNALLY-MANAGED", "")


def _installation(prefix: Path) -> None:
    (prefix / "pyvenv.cfg").unlink()


@pytest.mark.parametrize(
    ("protect", "name"), [(_conda_base, "base"), (_frozen, "frozen"), (_external, "external"), (_installation, "base")]
)
def test_a_protected_environment_needs_its_own_override(
    prefix: Path, protect: Callable[[Path], None], name: str
) -> None:
    protect(prefix)
    others = tuple({"base", "frozen", "external", "in-use"} - {name})
    assert f"--allow {name}" in str(_refusal(prefix, allow=others).hint)
    assert _preflight(prefix, allow=(name,)).prefix == prefix


def test_running_processes_are_listed_and_refused(prefix: Path) -> None:
    users = tuple(ProcessUser(pid=100 + n, command=f"python train{n}.py", why="exe") for n in range(30))
    error = _refusal(prefix, EnvironmentBusy, processes=users)
    assert error.details[0] == "100 python train0.py (exe)"
    assert error.details[-1] == "and 10 more"
    assert _preflight(prefix, processes=users, allow=("in-use",)).prefix == prefix


def test_an_unwritable_parent_or_prefix_is_refused_for_an_ordinary_user(prefix: Path, open_tmp: Path) -> None:
    wrap = as_user()
    open_tmp.chmod(0o555)
    kind, summary, _, hint, environment = run_code(_CODE + "result = attempt(sys.argv[1])", prefix, wrap=wrap)
    assert (kind, summary, environment) == ("PreflightError", f"{open_tmp} is not writable", "unchanged")
    assert "owner" in hint
    open_tmp.chmod(0o777)
    prefix.chmod(0o555)
    kind, summary, cause, *_ = run_code(_CODE + "result = attempt(sys.argv[1])", prefix, wrap=wrap)
    prefix.chmod(0o755)
    assert (kind, summary) == ("PreflightError", f"{prefix} is not writable")
    assert "itself" in cause


def test_an_ordinary_user_can_repair_its_own_environment(prefix: Path, open_tmp: Path) -> None:
    wrap = as_user()
    if wrap.command:
        for path in [open_tmp, prefix, *prefix.rglob("*")]:
            os.chown(path, 65534, 65534, follow_symlinks=False)
    found = run_code(_CODE + "result = attempt(sys.argv[1])", prefix, wrap=wrap)
    assert found[0] in {"link", "reflink"}
    assert found[2] == "exchange"


def test_a_read_only_file_system_is_refused(prefix: Path) -> None:
    code = (
        _CODE
        + """
import subprocess
parent = str(Path(sys.argv[1]).parent)
subprocess.run(["mount", "--bind", parent, parent], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", parent], check=True)
os.chdir("/")
result = attempt(sys.argv[1])
"""
    )
    kind, summary, *_ = run_code(code, prefix, wrap=own_mounts())
    assert kind == "PreflightError"
    assert "read-only" in summary


def test_mounts_at_and_inside_the_prefix_are_refused(prefix: Path) -> None:
    code = (
        _CODE
        + """
import subprocess
prefix = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", prefix + "/etc"], check=True)
inside = attempt(prefix)
subprocess.run(["umount", prefix + "/etc"], check=True)
subprocess.run(["mount", "--bind", prefix, prefix], check=True)
result = [inside, attempt(prefix)]
"""
    )
    inside, at = run_code(code, prefix, wrap=own_mounts())
    assert inside[:2] == ["PreflightError", f"Something is mounted inside {prefix}"]
    assert at[0] == "PreflightError"
    assert "mount point" in at[2]


def test_a_full_disk_and_too_few_inodes_are_refused_with_both_figures(open_tmp: Path) -> None:
    code = (
        _CODE
        + """
import subprocess
from tests.engine_low.support import make_prefix
base = Path(sys.argv[1])
def place(name, options):
    (base / name).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", base / name], check=True)
    return make_prefix(base / name / "env")
result = [attempt(place("small", "size=4m"), clone="copy"), attempt(place("few", "nr_inodes=500"))]
"""
    )
    small, few = run_code(code, open_tmp, wrap=own_mounts())
    assert small[0] == few[0] == "PreflightError"
    assert "free space" in small[1]
    assert "MB" in small[1]
    assert "(copy)" in small[2]
    assert "inodes" in few[1]
    assert "prune" in small[3]


def test_what_the_plan_needs_counts_too(prefix: Path) -> None:
    free, _ = disk_space.free(prefix)
    error = _refusal(prefix, plan=a_plan(disk_bytes=2 * free))  # others free some meanwhile
    assert "free space" in error.summary


def test_a_way_to_clone_that_does_not_work_is_an_error_with_its_reason(prefix: Path, open_tmp: Path) -> None:
    refused = probe_modes(prefix, open_tmp)
    if not refused["reflink"]:
        pytest.skip("reflinks work on this file system")
    error = _refusal(prefix, clone="reflink")
    assert error.cause == refused["reflink"]
    assert "--clone link" in str(error.hint)
    assert _preflight(prefix, clone="copy").clone == "copy"


def test_a_full_copy_is_said_beforehand(prefix: Path) -> None:
    needs_seccomp()
    code = (
        _CODE
        + 'seccomp.deny("linkat", errno.EPERM)\nresult = [attempt(sys.argv[1]), attempt(sys.argv[1], clone="link")]'
    )
    found, explicit = run_code(code, prefix)
    if found[0] == "reflink":
        pytest.skip("reflinks work on this file system")
    assert found[0] == "copy"
    assert "EPERM" in found[3][0]
    assert explicit[0] == "PreflightError"
    assert "EPERM" in explicit[2]


def test_denied_namespaces_lead_to_relocation_and_it_is_said(prefix: Path) -> None:
    needs_seccomp()
    code = (
        _CODE
        + """
seccomp.deny("unshare", errno.EPERM)
result = [attempt(sys.argv[1]), attempt(sys.argv[1], staging="namespace"), attempt(sys.argv[1], staging="relocate")]
"""
    )
    auto, namespace, relocate = run_code(code, prefix)
    assert auto[1] == "relocate"
    assert "EPERM at unshare" in auto[3][0]
    assert namespace[0] == "PreflightError"
    assert "EPERM at unshare" in namespace[2]
    assert "relocate" in namespace[3]
    assert (relocate[1], relocate[3]) == ("relocate", [])


def test_a_file_system_without_exchange_gets_two_renames_said_beforehand(prefix: Path) -> None:
    needs_seccomp()
    code = _CODE + 'seccomp.deny("renameat2", errno.EINVAL, argument=4, bits=2)\nresult = attempt(sys.argv[1])'
    found = run_code(code, prefix)
    assert found[2] == "two-renames"
    assert "will not exist" in found[3][0]


@pytest.mark.parametrize("mode", ["link", "copy"])
def test_the_estimate_of_a_clone_is_not_less_than_the_clone(prefix: Path, open_tmp: Path, mode: Any) -> None:
    write(prefix / "bin" / "large", "x" * 300_000)
    os.link(prefix / "bin" / "large", prefix / "bin" / "large2")
    size = disk_space.measure(prefix, mode)
    report = clone(prefix, open_tmp / "clone", mode)
    inodes = {path.lstat().st_ino for path in (open_tmp / "clone").rglob("*")}
    originals = {path.lstat().st_ino for path in prefix.rglob("*")}
    fresh = [path for path in (open_tmp / "clone").rglob("*") if path.lstat().st_ino not in originals]
    blocks = {path.lstat().st_ino: path.lstat().st_blocks * 512 for path in fresh}
    assert (size.files, size.directories) == (report.files, report.directories)
    assert sum(blocks.values()) <= size.clone_bytes
    assert len(blocks) <= size.clone_inodes <= len(inodes) + 1
