"""A virtual machine with Debian's kernel, and a disk of which qemu records every write and flush.

It sees the files of this machine, read-only, and runs one command of theirs on a file system of its own. The processor is
emulated, so that no right to use the real one's extensions is needed.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.room import Skipped

KERNEL = "ENVMEDIC_TEST_KERNEL"
"""The variable that names a directory with the unpacked files of Debian's package of a kernel."""
_QEMU, _SHARING, _SHELL = "qemu-system-x86_64", Path("/usr/lib/qemu/virtiofsd"), Path("/bin/busybox")
_MODULES = ("virtio_pci", "virtio_blk", "virtiofs")
_MEMORY = "1024M"
_LIMIT_S = 1800.0
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_TOLD = "the command ended with "
_BEGINNING = """\
#!/busybox sh
/busybox mount -t devtmpfs none /dev
for module in /modules/*; do /busybox insmod $module; done
/busybox mount -t virtiofs -o ro host /host
for name in proc sysfs:sys devtmpfs:dev tmpfs:run; do
    /busybox mount -t ${name%%:*} none /host/${name##*:}
done
/busybox mount -t KIND /dev/vda /host/PLACE
/busybox chroot /host COMMAND
code=$?
/busybox umount /host/PLACE
echo TOLD$code
/busybox poweroff -f
"""

_SUPER, _ENTRY = struct.Struct("<QQQI"), struct.Struct("<QQQQ")
_MAGIC = 0x6A736677736872
_SECTOR = 512
_FLUSH, _FUA, _DISCARD = 1, 2, 4


@dataclass(frozen=True)
class Write:
    """What qemu recorded: bytes for the disk, a flush of what came before, or both."""

    offset: int
    data: bytes
    flush: bool


def recorded(image: Path, kind: str, place: Path, argv: Sequence[str], variables: Mapping[str, str]) -> list[Write]:
    """Run a command in a machine that has the file system in `image` at `place`; returns what reached the disk.

    The machine takes the file system out before it ends, so that `image` is in order then. Raises Skipped without qemu
    or a kernel, and AssertionError where the command fails, with the messages of the machine.
    """
    kernel = _kernel()
    with tempfile.TemporaryDirectory(prefix="envmedic-machine-") as folder:
        first, log, socket = (Path(folder) / name for name in ("initrd", "log", "socket"))
        words = (f"{name}={value}" for name, value in variables.items())
        first.write_bytes(_archive(_first_files(kernel, kind, place, ("/usr/bin/env", "-i", *words, *argv))))
        log.touch()
        with _shared(socket):
            said = subprocess.run(
                [*_machine(kernel, first, socket), *_disk(image, log)],
                capture_output=True, text=True, errors="replace", check=False, timeout=_LIMIT_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        assert f"{_TOLD}0" in said.stdout, f"{said.stderr}{said.stdout[-4000:]}"
        return list(_read(log))


def _kernel() -> Path:
    for program in (_QEMU, _SHARING, _SHELL):
        if shutil.which(program) is None:
            raise Skipped(f"there is no {program}")
    if KERNEL not in os.environ:
        raise Skipped(f"{KERNEL} names no kernel")
    return Path(os.environ[KERNEL])


def _machine(kernel: Path, first: Path, socket: Path) -> list[str]:
    """The words that start a machine, without its disk."""
    (image,) = (kernel / "boot").glob("vmlinuz-*")
    return [
        _QEMU, "-accel", "tcg", "-cpu", "max", "-m", _MEMORY, "-nodefaults", "-no-user-config", "-display", "none",
        "-no-reboot", "-serial", "stdio", "-kernel", str(image), "-initrd", str(first),
        "-append", "console=ttyS0 quiet panic=-1 no_timer_check",
        "-object", f"memory-backend-memfd,id=memory,size={_MEMORY},share=on", "-numa", "node,memdev=memory",
        "-chardev", f"socket,id=host,path={socket}", "-device", "vhost-user-fs-pci,chardev=host,tag=host",
    ]  # fmt: skip


def _disk(image: Path, log: Path) -> list[str]:
    nodes = (
        f"driver=file,filename={image},node-name=file",
        "driver=raw,file=file,node-name=image",
        f"driver=file,filename={log},node-name=log",
        f"driver=blklogwrites,file=image,log=log,log-sector-size={_SECTOR},log-super-update-interval=1,node-name=disk",
    )
    return [*(word for node in nodes for word in ("-blockdev", node)), "-device", "virtio-blk-pci,drive=disk"]


@contextmanager
def _shared(socket: Path) -> Iterator[None]:
    """Let a machine see the files of this one."""
    command = [str(_SHARING), f"--socket-path={socket}", "-o", "source=/,cache=auto,sandbox=chroot"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while not socket.exists():
                assert server.poll() is None, "the files of this machine cannot be shared"
            yield
        finally:
            server.kill()


def _first_files(kernel: Path, kind: str, place: Path, argv: Sequence[str]) -> Iterator[tuple[str, int, bytes]]:
    """Path, mode and content of the files with which the machine starts."""
    values = {"KIND": kind, "PLACE": str(place), "COMMAND": " ".join(map(_quoted, argv)), "TOLD": _TOLD}
    beginning = re.sub("|".join(values), lambda found: values[found[0]], _BEGINNING)
    for name in ("dev", "host", "modules"):
        yield name, 0o40755, b""
    yield "busybox", 0o100755, _SHELL.read_bytes()
    yield "init", 0o100755, beginning.encode()
    for number, path in enumerate(_needed(kernel, (*_MODULES, kind))):
        yield f"modules/{number:02}-{path.name}", 0o100644, path.read_bytes()


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _needed(kernel: Path, names: Sequence[str]) -> Iterator[Path]:
    """These modules and those that they depend on, which come first; what is part of the kernel is left out."""
    there = {path.stem.replace("-", "_"): path for path in (kernel / "lib" / "modules").rglob("*.ko")}
    done: set[str] = set()

    def load(name: str) -> Iterator[Path]:
        if name in done or name not in there:
            return
        done.add(name)
        found = _DEPENDS.search(there[name].read_bytes())
        for other in found[1].decode().split(",") if found else ():
            yield from load(other.replace("-", "_"))
        yield there[name]

    for name in names:
        yield from load(name)


def _archive(files: Iterator[tuple[str, int, bytes]]) -> bytes:
    """An archive in the format of cpio that the kernel reads."""
    parts = []
    for number, (name, mode, content) in enumerate((*files, ("TRAILER!!!", 0, b"")), start=1):
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        parts += [head, bytes(-len(head) % 4), content, bytes(-len(content) % 4)]
    return b"".join(parts)


def _read(log: Path) -> Iterator[Write]:
    """The entries of a log in the format of Linux's dm-log-writes, in the order in which they were completed."""
    with log.open("rb") as file:
        magic, version, count, sector = _SUPER.unpack(file.read(_SUPER.size))
        assert (magic, version, sector) == (_MAGIC, 1, _SECTOR), "no log of writes"
        place = _SECTOR
        for _ in range(count):
            file.seek(place)
            offset, sectors, flags, _ = _ENTRY.unpack(file.read(_ENTRY.size))
            file.seek(place + _SECTOR)
            size = 0 if flags & _DISCARD else sectors * _SECTOR
            place += _SECTOR + size
            assert not flags & _FUA, "the disk has a cache that is flushed, and no other way"
            yield Write(offset * _SECTOR, file.read(size), bool(flags & _FLUSH))
