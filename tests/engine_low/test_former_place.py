"""A moved environment: its former path is replaced in every file that names it, and no other path is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from envmedic.engine.stage.relocate import rewrite_former, with_interpreter
from tests.engine_low.support import make_prefix, own_mounts, run_code, write
from tests.support.venvs import make_venv


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree."""
    return make_prefix(tmp_path / "app" / "venv")


def test_scripts_and_activation_of_a_renamed_environment_work(tmp_path: Path) -> None:
    former, present = tmp_path / "old", tmp_path / "new name"
    make_venv(former).rename(present)
    write(present / "bin" / "tool", f"#!{former}/bin/python\nimport sys\nprint(sys.prefix)\n", mode=0o755)
    done, left = rewrite_former(present, former, present, {})
    assert left == []
    assert {"bin/tool", "bin/activate", "bin/activate.fish"} <= set(done.rewritten)
    ran = subprocess.run([present / "bin" / "tool"], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(present)
    shell = f'. "{present}/bin/activate"; command -v tool'
    assert subprocess.check_output(["sh", "-c", shell], text=True).strip() == str(present / "bin" / "tool")


@pytest.mark.parametrize(
    "text",
    [
        "{present}/bin/python",  # written after the move, and ends like the former path
        "/venv2/bin",
        "/srv/venv/bin",
        "a-/venv/bin",
    ],
)
def test_other_paths_that_hold_the_former_one_stay(tree: Path, text: str) -> None:
    content = f"#!/bin/sh\n{text.format(present=tree)}\n"
    write(tree / "bin" / "tool", content, mode=0o755)
    assert rewrite_former(tree, Path("/venv"), tree, {})[0].rewritten == ()
    assert (tree / "bin" / "tool").read_text() == content


def test_an_environment_that_moved_below_its_former_path(tree: Path) -> None:
    former = tree.parent
    write(tree / "bin" / "tool", f"#!{tree}/bin/python\n{former}/bin\n", mode=0o755)
    assert rewrite_former(tree, former, tree, {})[0].rewritten == ("bin/tool",)
    assert (tree / "bin" / "tool").read_text() == f"#!{tree}/bin/python\n{tree}/bin\n"


def test_sources_are_replaced_in_files_of_editable_installs_only(tree: Path) -> None:
    site = next(tree.glob("lib/python3*/site-packages"))
    write(site / "__editable__.mine.pth", "/old/project/src\n")
    write(site / "__editable___mine_finder.py", "MAPPING = {'mine': '/old/project/src/mine'}\n")
    write(tree / "etc" / "settings", "/old/project/data\n")
    rewrite_former(tree, Path("/old/project/env"), tree, {"/old/project": "/new/project"})
    assert (site / "__editable__.mine.pth").read_text() == "/new/project/src\n"
    assert "'/new/project/src/mine'" in (site / "__editable___mine_finder.py").read_text()
    assert (tree / "etc" / "settings").read_text() == "/old/project/data\n"


def test_a_file_that_cannot_be_rewritten_is_named_and_left(tree: Path) -> None:
    write(tree / "bin" / "tool", "\0/old/env/lib", mode=0o755)
    assert rewrite_former(tree, Path("/old/env"), tree, {})[1] == ["bin/tool"]


@pytest.mark.parametrize("line", ["#!/gone/bin/python", "#!/bin/sh\n'''exec' '/gone/bin/python' \"$0\" \"$@\"\n' '''"])
def test_the_first_line_is_made_again(line: str) -> None:
    assert with_interpreter(f"{line}\nbody\n".encode(), Path("/env/bin/python")) == b"#!/env/bin/python\nbody\n"


def test_an_environment_seen_through_a_bind_mount_was_not_moved(open_tmp: Path) -> None:
    """As in a container: its scripts are right where it was made, and rewriting them would break them there."""
    made, seen = open_tmp / "home" / "env", open_tmp / "work"
    make_venv(made)
    write(made / "bin" / "tool", f"#!{made}/bin/python\n", mode=0o755)
    seen.mkdir()
    code = """
import subprocess
from envmedic.probe.environment import observe_environment
home, seen = map(Path, sys.argv[1:])
subprocess.run(["mount", "--bind", str(home), str(seen)], check=True)
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(home)], check=True)
through = [item.kind for item in observe_environment(seen / "env").defects]
subprocess.run(["cp", "-a", str(seen / "env"), str(home / "moved")], check=True)
result = [through, [item.kind for item in observe_environment(home / "moved").defects]]
"""
    through, moved = run_code(code, made.parent, seen, wrap=own_mounts())
    assert "moved" not in through
    assert "moved" in moved
