"""Observation of the interpreter of an environment, partly by starting it."""

from __future__ import annotations

import ast
import os
import re
import signal
from pathlib import Path

import msgspec

from envmedic.errors import require_spare
from envmedic.model.facts import Interpreter
from envmedic.model.ports import CommandResult
from envmedic.owner import owner
from envmedic.probe.layout import Layout
from envmedic.probe.prefix import base_pythons, unnamed
from envmedic.probe.readable import is_file
from envmedic.proc import ask, without_others

TIMEOUT_S = 20.0
_STANDARD = (
    "_ctypes _posixsubprocess _socket _ssl _struct abc argparse array ast asyncio base64 bisect bz2 calendar codecs "
    "collections concurrent contextlib copy copyreg csv ctypes dataclasses datetime decimal email encodings enum fractions "
    "functools glob gzip hashlib heapq html http importlib inspect io ipaddress json keyword linecache locale logging lzma math "
    "mimetypes multiprocessing numbers operator os pathlib pickle pkgutil platform posixpath queue random re reprlib select "
    "selectors shlex shutil signal site socket sqlite3 ssl stat string struct subprocess sysconfig tarfile tempfile textwrap "
    "threading tokenize traceback types typing unittest urllib uuid warnings weakref xml zipfile zlib"
)
"""What programs take for granted of Python's standard library; other parts are packages of their own on some systems."""
_QUESTION = (
    f"""\
WANTED = "{_STANDARD}".split()
"""
    """\
import sys
name = sys.implementation.name
if name == "cpython" and sys.platform == "linux":
    import _imp, posix
    soabi = _imp.extension_suffixes()[0][1:-3] if _imp.extension_suffixes() else None
    platform, free_threaded = "linux_" + posix.uname()[4], "t" in getattr(sys, "abiflags", "")
else:
    import sysconfig
    soabi, platform = sysconfig.get_config_var("SOABI"), sysconfig.get_platform()
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
lacks = []
if name == "cpython" and sys.platform == "linux":
    here, zipped = set(sys.builtin_module_names), False
    for path in sys.path:
        try:
            here.update(entry.partition(".")[0] for entry in posix.listdir(path))
        except OSError:
            pass  # mostly the archive that could hold all of it
        if path.endswith(".zip"):
            folder, _, archive = path.rpartition("/")
            zipped = archive in posix.listdir(folder)
    lacks = [] if zipped else [wanted for wanted in WANTED if wanted not in here]
print(ascii({
    "lacks": lacks,
    "version": sys.version.split()[0],
    "implementation": name,
    "soabi": soabi or None,
    "base_prefix": getattr(sys, "base_prefix", sys.prefix),
    "platform_tag": platform.replace("-", "_").replace(".", "_"),
    "free_threaded": free_threaded,
}))
"""
)
"""Asks the sources of sysconfig on CPython for Linux: sysconfig and json take as long to load as Python to start."""
_LONGEST_ANSWER = 16 << 10
_VERSION = re.compile(r"\d{1,2}\.\d{1,2}(?:\.\d{1,3})?(?:[A-Za-z.+][A-Za-z0-9.+]{0,31})?", re.ASCII)
"""``3.14.0rc1+`` too."""


def observe(layout: Layout, *, named: bool = True) -> Interpreter:
    """Start the interpreter of an environment and return its answer.

    It runs in isolated mode, without its site-packages and without writing byte code. One that does not start is a
    fact with its error; its version then comes from the files. For an environment that was not `named`, the Python
    that it leads to is started in its place, or none.
    """
    if not named:
        return _unnamed(layout)
    found = _observed(layout)
    series = ".".join((found.version or "").split(".")[:2])
    if found.starts and layout.libraries in {(), (f"python{series}",), (f"python{series}t",)}:
        return found
    return msgspec.structs.replace(found, replacement=base_pythons.replacement(layout))


def _unnamed(layout: Layout) -> Interpreter:
    """What is known without running anything of the environment: its pyvenv.cfg may lead Python to any library."""
    hopeless = why_absent(layout.python) or why_no_program(layout.python)
    if hopeless is not None:
        found = msgspec.structs.replace(_dead(layout, hopeless), named=False)
        return msgspec.structs.replace(found, replacement=base_pythons.replacement(layout, by_itself=False))
    program = unnamed.outside_python(layout.python, layout.prefix)
    if program is not None:
        found = _observed(layout, program)
        if found.starts:
            return msgspec.structs.replace(found, named=False, answers=str(program))
    return _by_files(layout)


def _by_files(layout: Layout) -> Interpreter:
    """The interpreter as its files tell, taken for one that starts."""
    threads = "t" if layout.libraries and layout.libraries[-1].endswith("t") else ""
    series = "".join((layout.version or "").split(".")[:2])
    cpython = layout.settings.get("implementation", "CPython").lower() == "cpython" and bool(series)
    machine = os.uname().machine
    return Interpreter(
        path=str(layout.python),
        starts=True,
        version=layout.version,
        implementation="cpython" if cpython else None,
        soabi=f"cpython-{series}{threads}-{machine}-linux-gnu" if cpython else None,
        base_prefix=_base_by_files(layout),
        platform_tag=f"linux_{machine}",
        free_threaded=bool(threads),
        named=False,
    )


def _observed(layout: Layout, program: Path | None = None) -> Interpreter:
    """Ask the interpreter, or `program` in its place."""
    program = program or layout.python
    # before any start: the kernel answers ENOEXEC or ENOENT for several causes that need different repairs
    hopeless = why_absent(program) or why_no_program(program)
    if hopeless is not None:
        return _dead(layout, hopeless)
    try:
        user = owner(program)  # root runs programs of another user as that user
        # -S: a broken .pth file or sitecustomize must not decide whether the interpreter counts as working
        argv = [str(program), "-I", "-S", "-B", "-c", _QUESTION]
        result = ask(argv, env={**without_others(), "LC_ALL": "C"}, cwd="/", timeout_s=TIMEOUT_S, user=user)
    except OSError as error:
        return _dead(layout, f"it cannot be started: {error.strerror}")
    answer = parse_answer(result.stdout) if result.returncode == 0 else None
    return _dead(layout, failure(result)) if answer is None else _living(layout, answer)


def _living(layout: Layout, answer: dict[str, object]) -> Interpreter:
    return Interpreter(
        path=str(layout.python),
        starts=True,
        version=_text(answer, "version"),
        implementation=_text(answer, "implementation"),
        soabi=_text(answer, "soabi"),
        base_prefix=_text(answer, "base_prefix"),
        platform_tag=_text(answer, "platform_tag"),
        free_threaded=answer.get("free_threaded") is True,
        lacks=_texts(answer.get("lacks")),
    )


def _dead(layout: Layout, error: str) -> Interpreter:
    return Interpreter(
        path=str(layout.python),
        starts=False,
        error=error,
        version=layout.version,
        base_prefix=_base_by_files(layout),
        free_threaded=bool(layout.libraries) and layout.libraries[-1].endswith("t"),
    )


def _base_by_files(layout: Layout) -> str | None:
    """``home`` of pyvenv.cfg is the directory of the base interpreter."""
    home = layout.settings.get("home")
    return str(Path(home).parent) if home else None


def why_absent(python: Path) -> str | None:
    """Reason why there is no file to start; None when there is one."""
    if not os.path.lexists(python):
        return "there is no bin/python"
    try:
        python.stat()
    except PermissionError:
        return f"it leads to {_target(python)}, which this user may not reach"
    except OSError:
        return f"dangling symbolic link to {_target(python)}"
    return None


def why_no_program(python: Path) -> str | None:
    """Reason why the file is no program for this machine; None when it is one. The kernel reports ENOEXEC for all."""
    if not is_file(python):
        return "it is no file"
    head = _head(python)
    if head is None or head.startswith(b"#!"):
        return None
    if not head.startswith(b"\x7fELF"):
        return "it is no program"
    mine = _head(Path("/proc/self/exe"))
    return None if mine is None or _machine(head) == _machine(mine) else "it is made for another processor"


def _head(path: Path) -> bytes | None:
    """The first bytes; None for a program that is executable and not readable."""
    try:
        with path.open("rb") as file:
            return file.read(20)
    except OSError as error:
        require_spare(error)
        return None


def _machine(head: bytes) -> bytes:
    """Word size, byte order and processor of an ELF header."""
    return head[4:6] + head[18:20]


def _target(link: Path) -> str:
    """The first target in the chain of links that does not exist, or the link's own for a cycle."""
    seen: set[Path] = set()
    current = link
    while os.path.islink(current) and current not in seen:  # noqa: PTH114  # unlike Path.is_symlink it never raises
        seen.add(current)
        current = Path(os.path.normpath(current.parent / current.readlink()))
    return str(link.readlink() if current in seen else current)


def parse_answer(output: str) -> dict[str, object] | None:
    """The dictionary on the last line of the interpreter's output."""
    lines = output.strip().splitlines()
    if not lines or len(lines[-1]) > _LONGEST_ANSWER:
        return None
    try:
        # the question prints a repr, not JSON, to spare the interpreter the import of json
        answer: object = ast.literal_eval(lines[-1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return answer if isinstance(answer, dict) and _has_version(answer) else None


def _has_version(answer: dict[str, object]) -> bool:
    """Whether the answer states a version of Python; without one it comes from another program."""
    version = answer.get("version")
    return isinstance(version, str) and _VERSION.fullmatch(version) is not None


def failure(result: CommandResult) -> str:
    """Why an interpreter that was started gave no answer, in one line."""
    if result.timed_out:
        return f"no answer within {TIMEOUT_S:.0f} s"
    said = [line.strip() for line in result.stderr.strip().splitlines() if line.strip()]
    last = f": {said[-1][:300]}" if said else ""
    if result.signal is not None:
        return f"ended by {_signal_name(result.signal)}{last}"
    return f"exit status {result.returncode}{last}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _text(answer: dict[str, object], key: str) -> str | None:
    value = answer.get(key)
    return value if isinstance(value, str) else None
