"""``envmedic run``: the command is as it would be without envmedic, and a failure is diagnosed beside it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cli.support import ENVMEDIC, ROOT, Done, Shell
from tests.support.venvs import make_venv

LIMIT_S = 1800.0
SEGFAULT = "import ctypes; ctypes.string_at(0)"


@pytest.fixture
def user(tmp_path: Path) -> Shell:
    """A user without an environment; what is cached of playbooks is shared."""
    return Shell(tmp_path, {"XDG_CACHE_HOME": str(tmp_path.parent / "cache")})


def python(code: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-B", "-c", code)


def run(user: Shell, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    """Exit code and both streams as bytes, without a terminal."""
    done = subprocess.run(
        [*ENVMEDIC, "run", *arguments],
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env=user.environment(),
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def started(user: Shell, argv: Sequence[str], *, stderr: int | None = None) -> subprocess.Popen[bytes]:
    """A command that runs, in a session of its own."""
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT, env=user.environment(), start_new_session=True
    )


@pytest.mark.parametrize("code", [0, 1, 2, 77, 255])
def test_the_exit_code_is_the_commands(user: Shell, code: int) -> None:
    assert run(user, "--", "sh", "-c", f"exit {code}")[0] == code


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_a_signal_is_told_as_shells_do(user: Shell, number: int) -> None:
    code, out, err = run(user, "--", "sh", "-c", f"kill -{number} $$")
    assert (code, out) == (128 + number, b"")
    assert signal.Signals(number).name in err.decode()


def test_a_command_that_works_leaves_no_word_of_envmedics(user: Shell) -> None:
    assert run(user, *python("import sys; print('out'); print('err', file=sys.stderr)")) == (0, b"out\n", b"err\n")


def test_bytes_pass_unchanged_both_ways(user: Shell) -> None:
    data = bytes(range(256)) * 300 + b"\xff\xfe no line end"
    assert run(user, "--", "cat", stdin=data)[:2] == (0, data)


def test_the_end_of_input_is_passed_on(user: Shell) -> None:
    assert run(user, *python("import sys; print(len(sys.stdin.buffer.read()))"), stdin=b"x" * 7)[1] == b"7\n"


def test_output_without_end_costs_no_memory_and_is_whole(user: Shell) -> None:
    code = "import sys\nfor n in range(150): sys.stdout.write('x' * 999_999 + chr(10))\nsys.exit(3)"
    limited = ("sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", *ENVMEDIC, "run", *python(code))
    with started(user, limited, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        total = 0
        while data := process.stdout.read(1 << 20):
            total += len(data)
    assert (process.returncode, total) == (3, 150_000_000)


def test_streams_that_are_one_file_keep_their_order(user: Shell) -> None:
    code = "import os\nfor n in range(200): os.write(1 + n % 2, b'%d\\n' % n)"
    done = subprocess.run(
        [*ENVMEDIC, "run", *python(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=user.environment(),
        check=True,
    )
    assert done.stdout.split() == [b"%d" % n for n in range(200)]


def test_output_comes_at_once(user: Shell) -> None:
    code = "import sys, time; print('now', flush=True); time.sleep(30)"
    with started(user, (*ENVMEDIC, "run", *python(code))) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        assert process.poll() is None
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM


def test_a_reader_that_goes_away_ends_the_command_as_without_envmedic(user: Shell) -> None:
    line = " ".join([*ENVMEDIC, "run", "--", "yes"]) + " | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        capture_output=True,
        cwd=ROOT,
        env=user.environment(),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGPIPE, b"y\n", b"")


def test_what_it_leaves_running_does_not_hold_envmedic(user: Shell) -> None:
    started = time.monotonic()
    code, said = run(user, "--", "sh", "-c", "sleep 600 & echo $!")[:2]
    assert (code, time.monotonic() - started < 300) == (0, True)
    os.kill(int(said), signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(user: Shell, number: int) -> None:
    code = (
        "import os, signal, sys, time\n"
        "def got(number, frame): os.write(1, b'got %d\\n' % number); sys.exit(5)\n"  # print is not reentrant
        f"signal.signal({number}, got)\nprint('ready', flush=True)\ntime.sleep(30)"
    )
    with started(user, (*ENVMEDIC, "run", *python(code)), stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out) == (5, b"got %d\n" % number)
    stopped = number != signal.SIGUSR1
    assert (err == b"") is stopped, "who stops a command asks for no diagnosis"


@pytest.mark.parametrize(("name", "code"), [("no-such-program", 127), ("/no/such/program", 127), ("/", 126)])
def test_what_cannot_be_started_is_said(user: Shell, name: str, code: int) -> None:
    found, out, err = run(user, "--", name)
    assert (found, out) == (code, b"")
    assert name in err.decode()


def test_a_command_is_needed(user: Shell) -> None:
    code, out, err = run(user, "python", "x.py")
    assert (code, out) == (2, b"")
    code, out, err = run(user)
    assert (code, out) == (2, b"")
    assert "after `--`" in err.decode()


# ---- diagnosis


def test_a_crash_is_reported_with_the_lines_of_python(user: Shell, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    code, out, err = run(user, "--report", str(report), *python(SEGFAULT))
    assert (code, out) == (128 + signal.SIGSEGV, b"")
    assert b"Fatal Python error: Segmentation fault" in err, "faulthandler is switched on"
    document = json.loads(report.read_text())
    assert document["schema"] == "envmedic.diagnosis/1"
    assert document["findings"][0]["fault"] == "native-crash"
    assert "SIGSEGV" in document["log"]
    assert "Verdict" not in err.decode()
    assert f"why is in {report}" in err.decode()


def test_the_report_goes_to_stderr_and_never_to_stdout(user: Shell) -> None:
    code, out, err = run(
        user, "--json", *python("print('mine'); raise RuntimeError('operator torchvision::nms does not exist')")
    )
    assert (code, out) == (1, b"mine\n")
    document = json.loads(err[err.index(b"{\n") :])
    assert document["findings"][0]["fault"] == "torchvision-ops"


FIRST_LINES = {
    "env": "#!{python}\n",
    "its own": "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n",  # as pip writes what a first line cannot hold
}


@pytest.mark.parametrize("name", FIRST_LINES)
def test_the_environment_is_that_of_the_commands_python(user: Shell, tmp_path: Path, name: str) -> None:
    prefix, other = make_venv(tmp_path / name), make_venv(tmp_path / "other")
    own = prefix / "bin" / "python"
    script = prefix / "bin" / "tool"
    script.write_text(FIRST_LINES[name].format(python=own) + "import sys\nsys.exit(sys.prefix)\n")
    script.chmod(0o755)
    shell = user.having(VIRTUAL_ENV=str(other))
    for command, expected in (
        ((str(own), "-c", "raise SystemExit(1)"), prefix),
        ((str(script),), prefix),
        (("false",), other),
    ):
        report = tmp_path / "report.json"
        assert run(shell, "--report", str(report), "--", *command)[0] == 1
        assert json.loads(report.read_text())["prefix"] == str(expected)


def test_a_named_environment_is_activated_for_the_command(user: Shell, tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    code = "import os, sys; print(sys.prefix, os.environ['VIRTUAL_ENV'])"
    assert run(user, "-p", str(prefix), "--", "python", "-B", "-c", code)[:2] == (0, f"{prefix} {prefix}\n".encode())


def test_a_report_that_cannot_be_written_leaves_the_exit_code(user: Shell) -> None:
    code, out, err = run(user, "--report", "/no/such/place", "--", "sh", "-c", "exit 9")
    assert (code, out) == (9, b"")
    assert "cannot be written" in err.decode()


# ---- terminals


def on_terminal(
    user: Shell,
    command: Sequence[str],
    talk: Callable[[int], object] | None = None,
    *,
    size: tuple[int, int] = (24, 80),
) -> Done:
    """Run envmedic in a session with a terminal of its own; `talk` gets our end once there is output."""
    pid, ours = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(ENVMEDIC[0], [*ENVMEDIC, "run", *command], user.environment())
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    told, deadline = b"", time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(ours, 4096)
        except OSError:
            break
        told += data
        if talk is not None and b"ready" in told:
            talk(ours)
            talk = None
    _, status = os.waitpid(pid, 0)
    os.close(ours)
    return Done(os.waitstatus_to_exitcode(status), told.decode().replace("\r\n", "\n"), "")


def test_a_terminal_stays_one_for_all_streams(user: Shell) -> None:
    code = "import os; print([os.isatty(n) for n in (0, 1, 2)], tuple(os.get_terminal_size()), os.ttyname(0) == os.ctermid())\nopen('/dev/tty').close()"
    done = on_terminal(user, python(code), size=(31, 97))
    assert "[True, True, True] (97, 31)" in done.out, done.out


def test_keys_reach_the_command(user: Shell) -> None:
    code = "print('ready', flush=True); print('typed', repr(input()))"
    done = on_terminal(user, python(code), lambda ours: os.write(ours, b"abc\r"))
    assert "typed 'abc'" in done.out
    assert done.code == 0


def test_ctrl_c_interrupts_the_command_alone(user: Shell) -> None:
    code = (
        "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(30)\n"
        "except KeyboardInterrupt:\n    print('caught'); raise SystemExit(4)"
    )
    done = on_terminal(user, python(code), lambda ours: os.write(ours, b"\x03"))
    assert (done.code, "caught" in done.out) == (4, True), done.out


def test_ctrl_c_that_nobody_catches_is_no_fault(user: Shell) -> None:
    done = on_terminal(
        user, python("import time; print('ready', flush=True); time.sleep(30)"), lambda ours: os.write(ours, b"\x03")
    )
    assert done.code == 128 + signal.SIGINT
    assert "Verdict" not in done.out


def in_shell(user: Shell, line: str) -> bytes:
    """What a line of shell prints that runs on a terminal of its own."""
    pid, ours = pty.fork()
    if pid == 0:
        os.chdir(user.home)
        os.execve("/bin/sh", ["sh", "-c", line], {**user.environment(), "PYTHONPATH": str(ROOT)})
    told = b"".join(iter(lambda: read_all(ours), b""))
    os.waitpid(pid, 0)
    os.close(ours)
    return told


def read_all(descriptor: int) -> bytes:
    """What is there; nothing at the end."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""


def test_the_users_terminal_is_as_it_was(user: Shell) -> None:
    line = f"stty -a > before; {' '.join(ENVMEDIC)} run -- true; stty -a > after; cmp before after && echo same"
    assert b"same" in in_shell(user, line)


def test_with_output_to_a_file_input_stays_the_terminal(user: Shell) -> None:
    command = "'test -t 0 && test -t 2 && test ! -t 1 && echo yes'"
    told = in_shell(user, f"{' '.join(ENVMEDIC)} run -- sh -c {command} > out")
    assert (user.home / "out").read_text() == "yes\n", told


def test_ctrl_z_suspends_and_fg_goes_on(user: Shell) -> None:
    code = "print('ready', flush=True); import time; time.sleep(1); print('do' + 'ne')"
    pid, ours = pty.fork()
    if pid == 0:
        os.chdir(user.home)
        os.execve(
            "/bin/bash", ["bash", "--norc", "-i"], {**user.environment(), "PYTHONPATH": str(ROOT), "PS1": "prompt"}
        )
    told = talked(ours, b"", f'{" ".join(ENVMEDIC)} run -- {sys.executable} -B -c "{code}"\n', b"ready\r")
    told = talked(ours, told, "\x1a", b"Stopped")
    # What is typed before the prompt is back belongs to the command, which takes it with it.
    told = talked(ours, told, "fg\n", b"done\r\nprompt")
    talked(ours, told, "exit\n", b"exit")
    os.close(ours)
    os.waitpid(pid, 0)


def talked(ours: int, told: bytes, keys: str, until: bytes) -> bytes:
    """Type `keys` and wait until `until` appears after what was told before; returns all that was told."""
    os.write(ours, keys.encode())
    deadline, start = time.monotonic() + LIMIT_S, len(told)
    while until not in told[start:]:
        assert time.monotonic() < deadline, told
        if select.select([ours], [], [], 0.1)[0]:
            told += os.read(ours, 4096)
    return told
