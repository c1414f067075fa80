"""What ran out of memory, of descriptors, or was killed for it says nothing of an environment, and is told as what it is."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from envmedic import proc
from envmedic.engine.stage import runners
from envmedic.errors import OutOfFiles, OutOfMemory, RecoveryNeeded, StorageError, exhausted, storage
from envmedic.proc import HelperResult, ask
from envmedic.proc.child import Child
from tests.test_proc import SH

_WITHOUT_DESCRIPTORS = """\
import os, resource, sys
from pathlib import Path
from envmedic.conda_meta import small_files
from envmedic.errors import OutOfFiles
from envmedic.probe import readable
from envmedic.probe.elf import ldcache
from envmedic.probe.elf.dynamic import Elf
from envmedic.probe.packages import contents
from envmedic.probe.prefix import kept_variables
from envmedic import proc
here = Path(sys.argv[1])
readers = {
    "read_bytes": lambda: readable.read_bytes(here / "file"),
    "names": lambda: readable.names(here),
    "digest": lambda: contents.digest(here / "file"),
    "elf": lambda: Elf(here / "file"),
    "cache of the loader": ldcache.system,
    "conda's record": lambda: small_files.read(here / "file"),
    "activation": lambda: kept_variables.observe(here, {}),
    "question": lambda: proc.ask(["/bin/true"], timeout_s=1800),
}
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
for name, read in readers.items():
    try:
        print(name, "returned", read())
    except OutOfFiles as error:
        print(name, error.code)
"""


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_descriptors_that_ran_out_are_known(number: int) -> None:
    assert isinstance(exhausted(OSError(number, os.strerror(number))), OutOfFiles)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        SystemError("error return without exception set"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("/lib/python3/mmap.cpython-311.so: failed to map segment from shared object"),
        ImportError("/lib/libssl.so.3: cannot create shared object descriptor: Cannot allocate memory"),
    ],
)
def test_memory_that_ran_out_is_known(error: BaseException) -> None:
    assert isinstance(exhausted(error), OutOfMemory)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOENT, os.strerror(errno.ENOENT)),
        ImportError("libcudart.so.12: cannot open shared object file: No such file or directory"),
        ImportError("/x.so: failed to map segment from shared object: Operation not permitted"),
        ValueError("x"),
        RuntimeError("x"),
    ],
)
def test_other_errors_are_left_alone(error: BaseException) -> None:
    assert exhausted(error) is None


def test_no_reader_takes_a_file_for_absent_that_it_could_not_open_for_want_of_a_descriptor(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta" / "state").write_text('{"env_vars": {"A": "1"}}')
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_DESCRIPTORS, str(tmp_path)], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 8, done.stderr
    assert [line for line in lines if not line.endswith(" out-of-files")] == []


def test_a_program_that_is_killed_is_asked_once_more(tmp_path: Path) -> None:
    text = "test -e killed || { : > killed; kill -KILL $$; }; echo answer"
    result = ask([SH, "-c", text], timeout_s=1800, cwd=str(tmp_path))
    assert (result.returncode, result.stdout, result.timed_out) == (0, "answer\n", False)


def test_a_program_that_is_killed_each_time_is_asked_twice(tmp_path: Path) -> None:
    result = ask([SH, "-c", "echo >> asked; kill -KILL $$"], timeout_s=1800, cwd=str(tmp_path))
    assert (result.returncode, result.timed_out) == (-signal.SIGKILL, False)
    assert (tmp_path / "asked").read_text() == "\n\n"


def test_a_program_that_was_too_slow_is_not_asked_again(tmp_path: Path) -> None:
    result = ask([SH, "-c", "echo >> asked; exec sleep 1000"], timeout_s=0.2, cwd=str(tmp_path))
    assert result.timed_out
    assert not (tmp_path / "asked").exists() or (tmp_path / "asked").read_text() == "\n"


def test_a_command_that_is_killed_before_it_has_begun_was_ended_by_a_signal() -> None:
    told = bytearray()
    with closing(Child([SH, "-c", "echo told"], prepare=lambda: os.kill(os.getpid(), signal.SIGKILL))) as child:
        child.start()
        stopped = child.listen(told.extend, told.extend)
        assert (child.reap(), stopped, child.killed, bytes(told)) == (-signal.SIGKILL, False, False, b"")


def test_a_helper_that_dies_in_the_middle_of_a_word_has_not_said_it(tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text('import os, sys\nos.write(int(sys.argv[1]), b\'{"ready": true}\\n{"exi\')\n')
    with closing(proc.Helper([str(helper)], b"", timeout_s=1800)) as dying:
        dying.start()
        result = dying.finish()
    assert result.status == (b'{"ready": true}',)


def test_a_helper_tells_of_a_child_that_died_in_the_middle_of_a_word() -> None:
    said = (b'{"ready": true}', b'{"exi', b'{"exit": -9}')
    assert runners._returncode(HelperResult("", "", said, 0, False), "/bin/true") == -signal.SIGKILL


def test_a_helper_that_is_killed_says_nothing_of_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prefix").mkdir()
    (tmp_path / "clone").mkdir()
    known = runners.probe_namespace(tmp_path / "prefix", tmp_path / "clone")
    dying = tmp_path / "helper.py"
    dying.write_text(
        f"import os\nif not os.path.exists({str(tmp_path / 'killed')!r}):\n"
        f"    open({str(tmp_path / 'killed')!r}, 'w').close()\n    os.kill(os.getpid(), 9)\n"
        + runners._HELPER.read_text().replace("from __future__ import annotations\n", "")
    )
    monkeypatch.setattr(runners, "_HELPER", dying)
    assert runners.probe_namespace(tmp_path / "prefix", tmp_path / "clone") == known
    assert (tmp_path / "killed").exists()


@pytest.mark.parametrize("name", ["EROFS", "ENOSPC", "EDQUOT", "EACCES", "EPERM", "EIO"])
def test_a_disk_that_refuses_is_no_bug(name: str) -> None:
    error = OSError(getattr(errno, name), "refused", "a file")
    told, later = storage(error), storage(error, environment="recoverable")
    assert isinstance(told, StorageError)
    assert (told.exit_code, told.environment) == (1, "unchanged")
    assert isinstance(later, RecoveryNeeded)
    assert (later.exit_code, "envmedic recover" in (later.hint or "")) == (6, True)
    assert storage(OSError(errno.ENOENT, "no such file")) is None
    assert storage(ValueError("no call of the system")) is None
