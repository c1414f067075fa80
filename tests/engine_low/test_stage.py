"""Runners: what commands see, how they end, and that nothing outlives them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import lru_cache
from pathlib import Path

import pytest

from envmedic.engine.stage import runners
from envmedic.engine.stage.runners import DirectRunner, NamespaceProbe, NamespaceRunner, RelocateRunner, probe_namespace
from envmedic.errors import InternalError, PreflightError
from envmedic.model.ports import Runner
from tests.engine_low.support import ROOT, Wrap, as_user, needs_seccomp, own_mounts, run_code, write
from tests.support.venvs import make_venv

SHELL = "/bin/sh"
_TWO = """
from envmedic.engine.stage import runners
prefix, clone = map(Path, sys.argv[1:3])
def run(*argv, **more):
    return runners.NamespaceRunner(prefix, clone, **more)(argv)
"""


@lru_cache(maxsize=1)
def _namespaces() -> NamespaceProbe:
    """What this host allows."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        return probe_namespace(Path(first), Path(second))


@pytest.fixture
def pair(open_tmp: Path) -> tuple[Path, Path]:
    """A live environment and a clone of it, with a path that needs care."""
    base = open_tmp / "sp ace 'é'\n\\x"
    for path, who in ((base / "env", "live\n"), (base / ".envmedic" / "tx" / "env", "clone\n")):
        write(path / "who", who)
        (path / "bin").mkdir()
    return base / "env", base / ".envmedic" / "tx" / "env"


@pytest.fixture
def runner(pair: tuple[Path, Path]) -> NamespaceRunner:
    """A namespace runner, where namespaces are allowed."""
    probe = _namespaces()
    if not probe.ok:
        pytest.skip(probe.reason)
    return NamespaceRunner(*pair, pid_namespace=probe.pid_namespace)


@pytest.fixture(params=["namespace", "no-pid-namespace", "direct"])
def any_runner(request: pytest.FixtureRequest, open_tmp: Path) -> Runner:
    """Each kind of runner in turn."""
    live, clone = open_tmp / "env", open_tmp / "clone"
    for path in (live, clone):
        write(path / "who", path.name)
    if request.param == "direct":
        return DirectRunner(live)
    probe = _namespaces()
    if not probe.ok or (request.param == "namespace" and not probe.pid_namespace):
        pytest.skip(probe.reason or probe.note)
    return NamespaceRunner(live, clone, pid_namespace=request.param == "namespace")


def _shell(runner: Runner, script: str, **more: float) -> str:
    result = runner([SHELL, "-c", script], timeout_s=more.get("timeout_s", 30.0))
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_a_command_sees_the_clone_at_the_true_path(runner: NamespaceRunner, pair: tuple[Path, Path]) -> None:
    live, clone = pair
    result = runner([SHELL, "-c", 'cat "$1/who"; echo new > "$1/made"', "sh", os.fspath(live)])
    assert (result.returncode, result.stdout) == (0, "clone\n")
    assert (clone / "made").read_text(encoding="utf-8") == "new\n"
    assert not (live / "made").exists()
    assert runner.python == live / "bin" / "python"


def test_the_host_never_sees_the_mount(runner: NamespaceRunner, pair: tuple[Path, Path]) -> None:
    seen: list[str] = []
    runner(
        [SHELL, "-c", "echo ready; sleep 0.3"],
        on_line=lambda _: seen.append((pair[0] / "who").read_text(encoding="utf-8")),
    )
    assert seen == ["live\n"]


def test_an_environment_named_through_a_symbolic_link_is_the_clone_too(
    runner: NamespaceRunner, pair: tuple[Path, Path], open_tmp: Path
) -> None:
    (open_tmp / "link").symlink_to(pair[0].parent)
    assert _shell(runner, f"cat {open_tmp}/link/env/who") == "clone\n"


def test_commands_have_process_ids_of_their_own_with_a_matching_proc(runner: NamespaceRunner) -> None:
    if not runner._pid_namespace:
        pytest.skip("no PID namespace here")
    assert (
        _shell(runner, "echo $$; cat /proc/self/comm; cat /proc/1/comm; ls /proc | grep -c '^[0-9]'").split()[0] == "2"
    )
    assert os.fspath(Path("/proc/self")) == "/proc/self"
    assert int(_shell(runner, "ls /proc | grep -c '^[0-9]'")) < 8


def test_devices_and_the_rest_of_the_system_are_as_outside(runner: NamespaceRunner) -> None:
    for directory in ("/dev", "/sys/devices/system", "/etc"):
        inside = set(_shell(runner, f"ls -A {directory}").split("\n")) - {""}
        assert inside == {path.name for path in Path(directory).iterdir()}


def test_an_ordinary_user_keeps_its_ids_and_sees_the_clone(pair: tuple[Path, Path]) -> None:
    code = (
        _TWO
        + """
probe = runners.probe_namespace(prefix, clone)
if probe.ok:
    got = run("/bin/sh", "-c", 'cat "$1/who"; id -u', "sh", str(prefix), pid_namespace=probe.pid_namespace)
    result = [got.returncode, got.stdout, os.getuid()]
else:
    result = probe.reason
"""
    )
    found = run_code(code, *pair, wrap=as_user())
    if isinstance(found, str):
        pytest.skip(found)
    assert found == [0, f"clone\n{found[2]}\n", found[2]]


def test_streams_are_kept_apart_and_lines_passed_on_as_they_come(any_runner: Runner) -> None:
    lines: list[tuple[str, float]] = []
    result = any_runner(
        [SHELL, "-c", "echo one; echo two >&2; sleep 0.3; printf three"],
        on_line=lambda line: lines.append((line, time.monotonic())),
    )
    assert (result.stdout, result.stderr) == ("one\nthree", "two\n") or result.stdout == "one\nthree\n"
    assert sorted(line for line, _ in lines) == ["one", "three", "two"]
    assert lines[-1][1] - lines[0][1] > 0.2
    assert result.seconds > 0.3


def test_a_lot_of_output_keeps_its_end_only(any_runner: Runner) -> None:
    result = any_runner([SHELL, "-c", "yes 0123456789 | head -n 200000; printf last"])
    assert len(result.stdout) <= 256 * 1024
    assert result.stdout.rstrip().endswith("last")


@pytest.mark.parametrize(
    ("script", "code"), [("exit 7", 7), ("kill -SEGV $$", -11), ("kill -ABRT $$", -6), ("true", 0)]
)
def test_the_way_a_command_ends_is_reported(any_runner: Runner, script: str, code: int) -> None:
    result = any_runner([SHELL, "-c", script])
    assert result.returncode == code
    assert result.signal == (-code if code < 0 else None)
    assert not result.timed_out


def test_abort_is_a_signal_even_for_the_first_process_of_a_namespace(any_runner: Runner) -> None:
    assert any_runner([sys.executable, "-c", "import os; os.abort()"]).returncode == -signal.SIGABRT


def test_a_missing_program_is_an_oserror(any_runner: Runner) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        any_runner(["/none/at/all"])
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(PermissionError):
        any_runner([os.fspath(Path(__file__))])


def test_commands_get_no_input_and_default_signals(any_runner: Runner) -> None:
    script = "import sys, signal; print(repr(sys.stdin.read()), open('/proc/self/status').read())"
    result = any_runner([sys.executable, "-c", script])
    assert result.stdout.startswith("''")
    ignored = next(line for line in result.stdout.splitlines() if line.startswith("SigIgn"))
    # Python ignores these two itself; the C library's own signals are no valid ones, and make leaves them ignored
    ours = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
    assert [number for number in ours if int(ignored.split()[1], 16) >> (number - 1) & 1] == []
    blocked = next(line for line in result.stdout.splitlines() if line.startswith("SigBlk"))
    assert int(blocked.split()[1], 16) == 0


def test_a_broken_pipe_ends_a_pipeline_quietly(any_runner: Runner) -> None:
    result = any_runner([SHELL, "-c", "yes | head -n 1"])
    assert (result.stdout, result.stderr) == ("y\n", "")


def _wait_until_still(path: Path) -> bool:
    """Whether the file at `path` stops growing within two seconds."""
    for _ in range(20):
        size = path.stat().st_size
        time.sleep(0.1)
        if path.stat().st_size == size:
            return True
    return False


def _busy(ticks: Path) -> str:
    """A command whose grandchild in a session of its own writes for ever."""
    inner = f"while :; do echo x >> {ticks}; sleep 0.01; done"
    return f"setsid {SHELL} -c '{inner}' & echo started; sleep 600"


def test_a_timeout_kills_all_descendants(any_runner: Runner, open_tmp: Path) -> None:
    ticks = write(open_tmp / "ticks", "")
    result = any_runner([SHELL, "-c", _busy(ticks)], timeout_s=0.5)
    assert result.timed_out
    assert result.returncode == -signal.SIGKILL
    assert result.stdout == "started\n"
    assert result.seconds < 5
    assert ticks.stat().st_size > 0
    assert _wait_until_still(ticks)


def test_descendants_do_not_outlive_their_command(any_runner: Runner, open_tmp: Path) -> None:
    ticks = write(open_tmp / "ticks", "")
    result = any_runner([SHELL, "-c", _busy(ticks).replace("sleep 600", "sleep 0.2")])
    assert result.returncode == 0
    assert _wait_until_still(ticks)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_while_waiting_kills_all_and_surfaces(
    any_runner: Runner, open_tmp: Path, error: type[BaseException]
) -> None:
    ticks = write(open_tmp / "ticks", "")

    def stop(_: str) -> None:
        raise error

    with pytest.raises(error):
        any_runner([SHELL, "-c", _busy(ticks)], on_line=stop)
    assert _wait_until_still(ticks)


_PARENT = """
import sys
from pathlib import Path
from envmedic.engine.stage import runners
kind, prefix, clone, command = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
make = {
    "namespace": lambda: runners.NamespaceRunner(prefix, clone),
    "no-pid-namespace": lambda: runners.NamespaceRunner(prefix, clone, pid_namespace=False),
    "relocate": lambda: runners.RelocateRunner(clone),
}
try:
    make[kind]()(["/bin/sh", "-c", command], on_line=lambda line: print(line, flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("kind", ["namespace", "no-pid-namespace", "relocate"])
def test_nothing_outlives_envmedic_however_it_ends(open_tmp: Path, kind: str, number: signal.Signals) -> None:
    live, clone, ticks = open_tmp / "env", open_tmp / "clone", write(open_tmp / "ticks", "")
    live.mkdir()
    clone.mkdir()
    probe = _namespaces()
    if kind != "relocate" and (not probe.ok or (kind == "namespace" and not probe.pid_namespace)):
        pytest.skip(probe.reason or probe.note)
    argv = [sys.executable, "-c", _PARENT, kind, os.fspath(live), os.fspath(clone), _busy(ticks)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        while ticks.stat().st_size == 0:
            time.sleep(0.01)
        os.killpg(parent.pid, number)
        left = parent.stdout.read()
    assert left == ("interrupted\n" if number == signal.SIGINT else "")
    assert _wait_until_still(ticks)


def _children() -> list[int]:
    return [
        int(pid) for pid in Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text("ascii").split()
    ]


def test_a_killed_helper_takes_its_command_with_it_and_is_told(any_runner: Runner, open_tmp: Path) -> None:
    ticks = write(open_tmp / "ticks", "")
    assert isinstance(any_runner, NamespaceRunner | DirectRunner)
    if not any_runner._pid_namespace:
        command = f"echo started; while :; do echo x >> {ticks}; sleep 0.01; done"  # a grandchild would outlive it
    else:
        command = _busy(ticks)

    def kill_helper(_: str) -> None:
        os.kill(_children()[-1], signal.SIGKILL)

    with pytest.raises(PreflightError, match="cut off") as caught:
        any_runner([SHELL, "-c", command], on_line=kill_helper)
    assert "signal 9" in str(caught.value.cause)
    assert _wait_until_still(ticks)


def test_a_runner_works_from_any_thread_of_a_busy_program(any_runner: Runner) -> None:
    stop = threading.Event()
    others = [threading.Thread(target=stop.wait) for _ in range(3)]
    outputs: list[str] = []
    workers = [threading.Thread(target=lambda: outputs.append(_shell(any_runner, "echo ok"))) for _ in range(4)]
    for thread in (*others, *workers):
        thread.start()
    for worker in workers:
        worker.join()
    stop.set()
    for other in others:
        other.join()
    assert outputs == ["ok\n"] * 4


def test_commands_inherit_the_descriptors_asked_for_and_no_others(open_tmp: Path) -> None:
    with (open_tmp / "lock").open("w") as lock, (open_tmp / "other").open("w") as other:
        os.set_inheritable(other.fileno(), True)
        script = "ls -l /proc/self/fd"
        seen = _shell(DirectRunner(open_tmp, inherit=[lock.fileno()]), script)
    assert f"{open_tmp}/lock" in seen
    assert f"{open_tmp}/other" not in seen


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptors_are_left_open(any_runner: Runner) -> None:
    _shell(any_runner, "true")
    before = _descriptors()
    for _ in range(3):
        _shell(any_runner, "true")
        any_runner([SHELL, "-c", "sleep 60"], timeout_s=0.05)
    assert _descriptors() == before


_DENIED = [
    ('seccomp.deny("unshare", errno.EPERM)', "EPERM at unshare"),
    ('seccomp.deny("mount", errno.EACCES)', "EACCES at mount"),
    ('seccomp.deny("unshare", errno.ENOSPC)', "ENOSPC at unshare"),
    ('seccomp.deny("mount", errno.EROFS, argument=3, bits=4096)', "EROFS at bind"),
]


@pytest.mark.parametrize(("deny", "reason"), _DENIED)
def test_each_refusal_has_its_reason_and_running_anyway_is_a_clear_error(
    pair: tuple[Path, Path], deny: str, reason: str
) -> None:
    needs_seccomp()
    code = f"""{_TWO}
from envmedic.errors import PreflightError
{deny}
probe = runners.probe_namespace(prefix, clone)
try:
    run("/bin/sh", "-c", 'touch "$1/made"', "sh", str(prefix))
except PreflightError as error:
    result = [probe.ok, probe.reason, error.cause, error.hint]
"""
    ok, told, cause, hint = run_code(code, *pair)
    assert (ok, told) == (False, cause)
    assert reason in told
    assert "relocate" in hint
    assert not (pair[0] / "made").exists()


def test_the_limit_of_user_namespaces_has_its_own_reason(pair: tuple[Path, Path]) -> None:
    user = as_user()
    limited = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    inside = ["unshare", "--user", "--map-current-user", "--keep-caps", SHELL, "-c", limited, "sh"]
    wrap = Wrap([*user.command, *inside], user.python)
    if subprocess.run([*wrap.command, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("the limit cannot be set in a user namespace here")
    code = _TWO + "result = runners.probe_namespace(prefix, clone).reason"
    assert "ENOSPC" in run_code(code, *pair, wrap=wrap)


@pytest.mark.parametrize(
    "deny",
    [
        'seccomp.deny("unshare", errno.EPERM, argument=0, bits=0x20000000)',
        'seccomp.deny("mount", errno.EPERM, argument=3, bits=8)',
    ],
)
def test_without_a_pid_namespace_the_clone_is_still_shown_and_it_is_said(pair: tuple[Path, Path], deny: str) -> None:
    needs_seccomp()
    code = f"""{_TWO}
{deny}
probe = runners.probe_namespace(prefix, clone)
got = run("/bin/sh", "-c", 'cat "$1/who"', "sh", str(prefix), pid_namespace=probe.pid_namespace) if probe.ok else None
result = [probe.ok, probe.reason, probe.pid_namespace, probe.note, got and got.stdout]
"""
    ok, reason, pid_namespace, note, seen = run_code(code, *pair)
    if not ok:
        pytest.skip(reason)
    assert (pid_namespace, seen) == (False, "clone\n")
    assert "no PID namespace" in note
    assert "EPERM" in note


def test_mounts_inside_proc_stay_visible(pair: tuple[Path, Path]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount inside /proc")
    code = (
        _TWO
        + """
import subprocess
(clone / "mine").write_text("mine")
subprocess.run(["mount", "--bind", clone / "mine", "/proc/version"], check=True)
probe = runners.probe_namespace(prefix, clone)
result = [probe.pid_namespace, run("/bin/cat", "/proc/version").stdout]
"""
    )
    assert run_code(code, *pair, wrap=own_mounts()) == [True, "mine\n"]


def test_a_script_of_a_relocated_clone_never_runs(open_tmp: Path) -> None:
    write(open_tmp / "clone" / "bin" / "pip", f"#!{SHELL}\n", mode=0o755)
    with pytest.raises(InternalError):
        RelocateRunner(open_tmp / "clone")([os.fspath(open_tmp / "clone" / "bin" / "pip")])


def test_a_relocated_interpreter_is_checked(open_tmp: Path) -> None:
    venv = make_venv(open_tmp / "env")
    RelocateRunner(venv).check_interpreter()
    (venv / "pyvenv.cfg").unlink()
    runner = RelocateRunner(venv)
    with pytest.raises(PreflightError, match="does not work"):
        runner([os.fspath(runner.python), "-c", "open('made', 'w')"])
    assert not (venv.parent / "made").exists()
    (venv / "bin" / "python").unlink()
    with pytest.raises((PreflightError, FileNotFoundError)):
        RelocateRunner(venv).check_interpreter()


def test_a_venv_runs_at_its_true_path_from_a_clone(open_tmp: Path) -> None:
    from envmedic.engine.clone.clone import clone

    venv = make_venv(open_tmp / "a b" / "env é")
    clone(venv, open_tmp / "clone", "link")
    probe = probe_namespace(venv, open_tmp / "clone")
    if not probe.ok:
        pytest.skip(probe.reason)
    runner = NamespaceRunner(venv, open_tmp / "clone", pid_namespace=probe.pid_namespace)
    script = "import sys, pathlib; print(sys.prefix); pathlib.Path(sys.prefix, 'made').touch()"
    result = runner([os.fspath(runner.python), "-c", script])
    assert (result.stdout, result.stderr) == (f"{venv}\n", "")
    assert (open_tmp / "clone" / "made").exists()
    assert not (venv / "made").exists()


def test_direct_commands_write_no_byte_code(open_tmp: Path) -> None:
    venv = make_venv(open_tmp / "env")
    (site,) = venv.glob("lib/python*/site-packages")
    write(site / "module.py", "value = 1\n")
    runner = DirectRunner(venv)
    assert runner([os.fspath(runner.python), "-c", "import module"]).returncode == 0
    assert not (site / "__pycache__").exists()


def test_a_helper_that_dies_is_told(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, open_tmp: Path) -> None:
    monkeypatch.setattr(runners, "_HELPER", write(open_tmp / "helper.py", "raise SystemExit('no')\n"))
    with pytest.raises(PreflightError) as caught:
        DirectRunner(pair[0])([SHELL, "-c", "true"])
    assert str(caught.value.cause).endswith("unexpectedly (exit 1): no")
