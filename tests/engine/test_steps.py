from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic import activation
from envmedic.engine.clone.shared_links import unshare
from envmedic.engine.fs.safe_paths import locate, replace_file
from envmedic.engine.transaction import activation_edits
from envmedic.engine.transaction.steps import CONSTRAINTS
from envmedic.errors import InputError, PreflightError
from envmedic.model.checks import Check
from envmedic.model.events import Notice
from envmedic.model.plan import Advise, Install, InstalledReference, Pin, Purge, SetEnv, UnsetEnv
from envmedic.tree import fingerprint
from tests.engine.world import SITE, World, artifact, make_environment, replacement

VALUES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r\n"))


def test_leftovers_are_deleted_in_the_clone_and_come_back_by_undo(quick: World) -> None:
    (quick.site / "~am").mkdir()
    (quick.site / "~am" / "old.so").write_bytes(b"\x7fELF")
    (quick.site / "other0-3.1.dist-info" / "RECORD").unlink()
    (quick.site / "other1-3.1.dist-info").rename(quick.site / "~ther1-3.1.dist-info")
    old = fingerprint.manifest(quick.prefix)
    leftovers = (f"{SITE}/~am", f"{SITE}/other0", "lib64/" + SITE.removeprefix("lib/") + "/other1/__init__.py", "gone")
    record = quick.apply(quick.plan(*replacement("2.0"), Purge(leftovers=leftovers)))
    assert record.state == "done"
    assert not (quick.site / "~am").exists()
    assert not (quick.site / "other0").exists()
    assert not (quick.site / "other1" / "__init__.py").exists()
    quick.undo()
    assert fingerprint.manifest(quick.prefix) == old


@pytest.mark.parametrize(
    "escape", ["../outside", "lib/../../outside", "/etc/passwd", "", ".", "elsewhere/file", "own/x", "a\0b"]
)
def test_a_leftover_outside_the_clone_is_refused_before_anything_is_deleted(quick: World, escape: str) -> None:
    outside = quick.prefix.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("keep")
    (quick.prefix / "elsewhere").symlink_to(outside)
    (quick.prefix / "own").symlink_to(quick.site / "other0")  # absolute: from the clone it leads to the original
    (quick.site / "other0" / "x").write_text("keep")
    before = fingerprint.manifest(quick.prefix)
    record = quick.apply(quick.plan(*replacement("2.0"), Purge(leftovers=(escape,))))
    assert record.failure is not None
    assert (record.failure.code, record.state) == ("input", "aborted")
    assert fingerprint.manifest(quick.prefix) == before
    assert (outside / "file").read_text() == "keep"


@pytest.mark.parametrize("shared", [SITE, f"{SITE}/fam", "lib"])
@pytest.mark.parametrize("place", ["env/elsewhere", "elsewhere"])
def test_what_clone_and_original_share_by_a_link_is_not_changed(quick: World, shared: str, place: str) -> None:
    elsewhere = quick.prefix.parent / place
    (quick.prefix / SITE / "fam-1.0.dist-info" / "RECORD").write_text("fam/__init__.py,,\n")
    (quick.prefix / shared).rename(elsewhere)
    (quick.prefix / shared).symlink_to(elsewhere)  # absolute: staged elsewhere it leads to the original
    before = fingerprint.manifest(quick.prefix), fingerprint.manifest(elsewhere)
    record = quick.apply()
    assert record.failure is not None
    assert (record.failure.code, record.state) == ("preflight", "aborted")
    assert "lies elsewhere" in record.failure.summary
    assert (fingerprint.manifest(quick.prefix), fingerprint.manifest(elsewhere)) == before


def test_links_that_stay_inside_are_followed(quick: World) -> None:
    (quick.site / "fam").rename(quick.site / "kept")
    (quick.site / "fam").symlink_to("kept")
    assert quick.apply().state == "done"


def test_a_record_that_lists_files_outside_is_not_followed(quick: World) -> None:
    (quick.site / "fam-1.0.dist-info" / "RECORD").write_text("fam/__init__.py,,\n../../../../mine.txt,,\n")
    record = quick.apply()
    assert record.failure is not None
    assert (record.failure.code, record.state) == ("preflight", "aborted")
    assert "outside the environment" in record.failure.summary


def test_a_file_that_a_wheel_writes_over_is_no_longer_the_original_s(tmp_path: Path) -> None:
    site = tmp_path / "clone" / SITE
    (site / "fam").mkdir(parents=True)
    (tmp_path / "original").write_text("orphan")
    (site / "fam" / "_C.so").hardlink_to(tmp_path / "original")
    (site / "fam" / "bystander.so").hardlink_to(tmp_path / "original")
    wheel = tmp_path / "fam-2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("fam-2.0.data/platlib/fam/_C.so", "new")
        file.writestr("fam/__init__.py", "")
    clone = tmp_path / "clone"
    install = Install(artifacts=(msgspec.structs.replace(artifact("fam", "2.0"), local_path=str(wheel)),))
    unshare(install, clone, clone)
    (site / "fam" / "_C.so").write_text("new, in place")
    assert (tmp_path / "original").read_text() == "orphan"
    assert (site / "fam" / "bystander.so").samefile(tmp_path / "original")


def test_a_wheel_is_not_unpacked_through_a_link_out_of_the_clone(quick: World, tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (quick.prefix / "share").symlink_to(tmp_path / "share")
    wheel = tmp_path / "new-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("new/__init__.py", "")
        file.writestr("new-1.0.data/data/share/new.txt", "new")
    install = Install(artifacts=(msgspec.structs.replace(artifact("new", "1.0"), local_path=str(wheel)),))
    record = quick.apply(quick.plan(install))
    assert record.failure is not None
    assert record.failure.summary.startswith("share of the environment lies elsewhere")


@given(parts=st.lists(st.sampled_from(["..", ".", "a", "loop", "up", "away", "/", "b"]), min_size=1, max_size=6))
def test_whatever_a_plan_names_lies_in_the_tree_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp() / "guarded" / "tree"
    if not root.exists():
        (root / "a" / "b").mkdir(parents=True)
        (root / "up").symlink_to("..")
        (root / "a" / "away").symlink_to("/")
        (root / "loop").symlink_to("a")
    try:
        found = locate(root, "/".join(parts))
    except InputError:
        return
    assert found != root
    assert Path(os.path.realpath(found.parent)).is_relative_to(root)


def test_a_file_replaced_in_a_clone_keeps_its_mode_and_leaves_its_twin_alone(tmp_path: Path) -> None:
    original, clone = tmp_path / "original", tmp_path / "clone"
    for directory in (original, clone):
        directory.mkdir()
    (original / "script").write_text("old")
    (original / "script").chmod(0o750)
    os.link(original / "script", clone / "script")
    replace_file(clone, "script", b"new")
    assert ((original / "script").read_text(), (clone / "script").read_text()) == ("old", "new")
    assert (clone / "script").stat().st_mode & 0o7777 == 0o750


def activated(prefix: Path, shell: str = "/bin/sh", script: str = "activate", **env: str) -> dict[str, str]:
    command = f"{'source' if script != 'activate' else '.'} {prefix}/bin/{script} && env -0"
    ran = subprocess.run([shell, "-c", command], capture_output=True, check=True, env={"PATH": os.defpath, **env})
    return dict(line.split("=", 1) for line in ran.stdout.decode().split("\0") if line)


def test_variables_are_kept_for_activated_shells_and_seen_by_the_checks(world: World) -> None:
    old = fingerprint.manifest(world.prefix)
    code = "import fam, os; assert os.environ['TORCH_CUDA_ARCH_LIST'] == '8.6;8.9+PTX' and 'LIBRARY_PATH' not in os.environ"
    os.environ["LIBRARY_PATH"] = "/stubs"
    try:
        record = world.apply(
            world.plan(
                *replacement("2.0"),
                SetEnv(variables={"TORCH_CUDA_ARCH_LIST": "8.6;8.9+PTX"}),
                UnsetEnv(names=("LIBRARY_PATH",)),
                checks=(Check(name="variables", role="playbook", arguments=(code,)),),
            )
        )
    finally:
        del os.environ["LIBRARY_PATH"]
    assert record.state == "done", record.failure
    assert {item.status for item in record.smoke} == {"pass"}
    seen = activated(world.prefix, LIBRARY_PATH="/stubs")
    assert seen["TORCH_CUDA_ARCH_LIST"] == "8.6;8.9+PTX"
    assert "LIBRARY_PATH" not in seen
    world.undo()
    assert fingerprint.manifest(world.prefix) == old


@given(value=VALUES)
def test_a_kept_value_reaches_the_shell_as_it_is(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    prefix = tmp_path_factory.mktemp("shell")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "activate").write_text("# without a line end")
    activation_edits.keep(prefix, {"KEPT": value, "GONE": None})
    assert activation.variables(prefix) == {"KEPT": value, "GONE": None}
    seen = activated(prefix, GONE="yes")
    assert seen.get("KEPT") == value
    assert "GONE" not in seen


@pytest.mark.parametrize(
    ("shell", "script"), [("csh", "activate.csh"), ("tcsh", "activate.csh"), ("fish", "activate.fish")]
)
def test_other_shells_see_kept_variables(tmp_path: Path, shell: str, script: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    prefix = make_environment(tmp_path / "env")
    activation_edits.keep(prefix, {"KEPT": "it's 8.6;8.9 \\ $HOME!", "GONE": None})
    seen = activated(prefix, program, script, GONE="yes")
    assert seen["KEPT"] == "it's 8.6;8.9 \\ $HOME!"
    assert "GONE" not in seen


def test_python_scripts_see_kept_variables(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    (prefix / "bin" / "activate_this.py").write_text("import os\n")
    activation_edits.keep(prefix, {"KEPT": 'it\'s \\ "8.6"', "GONE": None})
    code = f"exec(open({str(prefix / 'bin' / 'activate_this.py')!r}).read()); print(os.environ['KEPT'], 'GONE' in os.environ)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"GONE": "1"})
    assert ran.stdout == 'it\'s \\ "8.6" False\n'


def test_keeping_variables_again_replaces_the_block(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    activation_edits.keep(prefix, {"ONE": "1", "TWO": "2"})
    activation_edits.keep(prefix, {"TWO": None, "THREE": "3"})
    assert activation.variables(prefix) == {"ONE": "1", "TWO": None, "THREE": "3"}
    text = (prefix / "bin" / "activate").read_text()
    assert text.count(activation.BEGIN) == text.count(activation.END) == 1


def test_conda_variables_are_kept_where_conda_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / activation.CONDA_STATE).write_text(json.dumps({"version": 1, "env_vars": {"OLD": "1"}}))
    activation_edits.keep(tmp_path, {"NEW": "2", "GONE": None})
    state = json.loads((tmp_path / activation.CONDA_STATE).read_text())
    assert state == {"version": 1, "env_vars": {"OLD": "1", "NEW": "2", "GONE": "***unset***"}}
    assert activation.variables(tmp_path) == {"OLD": "1", "NEW": "2", "GONE": None}


@pytest.mark.parametrize("changes", [{"A B": "1"}, {"1A": "1"}, {"A": "line\nline"}, {"": "1"}, {"A": "\0"}])
def test_what_no_shell_can_hold_is_refused(tmp_path: Path, changes: dict[str, str]) -> None:
    with pytest.raises(InputError):
        activation_edits.keep(make_environment(tmp_path / "env"), changes)


def test_an_environment_without_activate_script_cannot_keep_variables(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="no activate script"):
        activation_edits.keep(tmp_path, {"A": "1"})


def test_files_that_other_distributions_list_are_not_deleted(quick: World) -> None:
    shared = quick.site / "shared"
    (shared / "mine").mkdir(parents=True)
    (shared / "theirs").mkdir()
    for name in ("mine/a.py", "theirs/b.py", "theirs/c.py"):
        (shared / name).write_text("")
    with (quick.site / "other1-3.1.dist-info" / "RECORD").open("a") as record:
        record.write('"shared/theirs/b.py",,\nbad"\0line,x\n')
    quick.apply(
        quick.plan(*replacement("2.0"), Purge(leftovers=(f"{SITE}/shared", f"{SITE}/other1", f"{SITE}/mine.py")))
    )
    assert sorted(path.name for path in (quick.site / "shared").rglob("*")) == ["b.py", "theirs"]
    assert (quick.site / "other1" / "__init__.py").is_file()
    assert not (quick.site / "other1" / "data").exists()


def test_copies_that_list_each_others_files_go_by_path(quick: World) -> None:
    """With an installer, the second one's list would go with the first."""
    copy = quick.site / "other1-2.0.dist-info"
    shutil.copytree(quick.site / "other1-3.1.dist-info", copy)
    for name, version in (("other1-3.1", "3.1"), ("other1-2.0", "2.0")):
        record = quick.site / f"{name}.dist-info" / "RECORD"
        lines = f"other1-3.1.dist-info/METADATA,,\n../../../bin/other1-{version},,\n../../../../outside.txt,,\n"
        record.write_text(record.read_text() + lines)
        (quick.prefix / "bin" / f"other1-{version}").write_text("")
    outside = quick.prefix.parent / "outside.txt"
    outside.write_text("mine")
    metadata = [f"{SITE}/other1-{version}.dist-info" for version in ("3.1", "2.0")]
    copies = tuple(
        InstalledReference(name="other1", version=path[-13:-10], owner="pip", metadata_path=path) for path in metadata
    )
    quick.apply(quick.plan(*replacement("2.0"), Purge(leftovers=(*metadata, f"{SITE}/other1"), by_path=copies)))
    assert list(quick.prefix.rglob("*other1*")) == []
    assert outside.read_text() == "mine"
    assert (quick.site / "other2" / "__init__.py").is_file()


def test_files_of_conda_packages_are_not_deleted(quick: World) -> None:
    (quick.prefix / "conda-meta").mkdir()
    (quick.prefix / "conda-meta" / "shared-1.0-0.json").write_text(json.dumps({"files": [f"{SITE}/shared/a.py"]}))
    (quick.prefix / "conda-meta" / "damaged-1.0-0.json").write_text("{")
    (quick.site / "shared").mkdir()
    for name in ("a.py", "b.py"):
        (quick.site / "shared" / name).write_text("")
    quick.apply(quick.plan(*replacement("2.0"), Purge(leftovers=(f"{SITE}/shared",))))
    assert [path.name for path in (quick.site / "shared").iterdir()] == ["a.py"]


def test_pins_are_merged_by_distribution_and_advice_is_told(quick: World) -> None:
    first = Pin(constraints=("torchvision==0.20.1", "numpy<2"))
    second = Pin(constraints=("TorchVision==0.21.0", "torch_audio==2.6"))
    quick.apply(quick.plan(*replacement("2.0"), first, second, Advise(text="import torch first")))
    lines = (quick.prefix / CONSTRAINTS).read_text().splitlines()
    assert lines == ["TorchVision==0.21.0", "numpy<2", "torch_audio==2.6"]
    assert [event.message for event in quick.events if isinstance(event, Notice)] == ["import torch first"]
