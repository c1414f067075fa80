"""Fuzzing of what a host says of itself and of its processes, and of files of an environment that a repair rewrites."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from envmedic.engine.clone import listed_files
from envmedic.engine.stage import relocate
from envmedic.engine.transaction import activation_edits
from envmedic.errors import EnvmedicError
from envmedic.model.base import to_json
from envmedic.probe.elf import demangle, ldcache
from envmedic.probe.machine import driver, host, toolchain
from envmedic.probe.prefix import processes
from tests.fuzz import samples
from tests.fuzz.target import JSON, META, SHELL, Reader, Target

SMI = b"""0, NVIDIA H100 80GB HBM3, GPU-aaaa, 9.0, 81559, 00000000:19:00.0, 550.54.15
1, NVIDIA A100, [N/A], [N/A], [N/A], 00000000:3B:00.0, 550.54.15
"""
INFORMATION = b"Model: \t\t NVIDIA H100\nIRQ:   \t\t 16\nGPU UUID: \t GPU-????\nBus Location: \t 0000:19:00.0\nDevice Minor: \t 0\n"
OS_RELEASE = b'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\n'
NVCC = b"nvcc: NVIDIA (R) Cuda compiler driver\nBuilt on Tue_Feb_27\nCuda compilation tools, release 12.4, V12.4.99\n"
VERSION_JSON = (
    b'{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, "cuda_nvcc": {"name": "nvcc", "version": "12.4.131"}}'
)
CGROUP = b"0::/kubepods.slice/pod1/cri-containerd-aa.scope\n12:memory:/docker/abc\n"
LD_CACHE = (b"glibc-ld.so.cache1.1" + b"\x02\0\0\0" + b"\x20\0\0\0" + bytes(20)
            + b"\x03\0\0\0\x60\0\0\0\x6b\0\0\0" + bytes(12) + b"\x03\0\0\0\x60\0\0\0\x6b\0\0\0" + bytes(12)
            + b"libcuda.so\0/usr/lib/libcuda.so\0")  # fmt: skip
SYMBOLS = b"""_ZN2at4_ops6matmul4callERKNS_6TensorES4_
_ZNSt6vectorIN3c1010IValueESaIS1_EE12emplace_backIJNS0_6TensorEEEERS1_DpOT_
_ZN3c1021throwNullDataPtrErrorEv
memcpy
"""
PROCESS = b"/opt/env/bin/python\0train.py\0--token\0abc\0\n1 (a) b) S 0 1\n7f-8f r-xp 0 08:01 1 /opt/env/lib/a b.so (deleted)\nPATH=/opt/env/bin:/bin\0A=b\0"


def _said(scratch: Path) -> Reader:
    """Each text is read as each kind: none is told by its content."""
    folder = scratch / "toolkit"
    folder.mkdir()
    (scratch / "proc" / "1").mkdir(parents=True)

    def read(data: bytes) -> object:
        text = data.decode("utf-8", "replace")
        (folder / "version.json").write_bytes(data)
        (scratch / "proc" / "1" / "cgroup").write_bytes(data)
        to_json([driver.parse_smi(text), driver.parse_information(0, text)])
        return (host.distribution(text), toolchain.nvcc_version(text), toolchain._stated_version(folder), ldcache.parse(data),
                host.container(scratch, {}))  # fmt: skip

    return read


def _symbols(_: Path) -> Reader:
    def read(data: bytes) -> object:
        names = data.decode("utf-8", "replace").split("\n")[:64]
        return to_json(demangle.demangle([name for name in names if "\0" not in name]))

    return read


def _processes(scratch: Path) -> Reader:
    """Processes of strangers call themselves what they like."""
    folder = scratch / "123"
    folder.mkdir()
    (scratch / "opt" / "env").mkdir(parents=True)
    processes.PROC = scratch

    def read(data: bytes) -> object:
        parts = [*data.split(b"\n"), b"", b"", b"", b""]
        for name, part in zip(("cmdline", "maps", "environ", "comm"), (*parts[:3], data), strict=True):
            (folder / name).write_bytes(part)
        (folder / "stat").write_bytes(
            b"123 (" + data[:15].replace(b"\0", b"") + b") S 0 1\n"
        )  # the rest is the kernel's
        return to_json(processes.users(scratch / "opt" / "env")), to_json(processes.users(Path("/opt/env")))

    return read


def _rewritten(scratch: Path) -> Reader:
    """RECORD, a script and an editable's path, in a clone that moves to its place; then kept variables are written."""
    clone, staging, final = scratch / "clone", Path("/opt/.envmedic/x/clone"), Path("/opt/my env")
    site = clone / "lib" / "python3.11" / "site-packages"
    info = site / "demo-1.0.dist-info"
    places = (info / "RECORD", clone / "bin" / "activate", site / "demo.pth", info / "direct_url.json", clone / "pyvenv.cfg",
              clone / "bin" / "demo", clone / "conda-meta" / "demo.json")  # fmt: skip

    def read(data: bytes) -> object:
        for place in places[:-1]:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data.replace(b"/STAGED", os.fsencode(staging)))
        shutil.rmtree(places[-1].parent, ignore_errors=True)
        if len(data) % 2:
            places[-1].parent.mkdir()
            places[-1].write_bytes(data)
        listed_files.listed_files(clone, ())
        listed_files.own_files(clone, str(info.relative_to(clone)))
        return relocate.rewrite(clone, staging, final), activation_edits.keep(clone, {"LD_PRELOAD": "a'b"})

    return read


_STAGED = [
    b"#!/STAGED/bin/python\nimport sys\n",
    b"#!/bin/sh\n'''exec' '/STAGED/bin/python' \"$0\" \"$@\"\n' '''\nimport sys\n",
    b'demo/__init__.py,sha256=x,9\n../../../bin/demo,sha256=aa,10\n"a,b",,\ndemo.pth,sha256=bb,1\n/STAGED/x,,\n',
    b'{"url": "file:///STAGED/src", "dir_info": {"editable": true}, "files": ["lib/a", "../../b"]}',
    b"home = /usr/bin\ncommand = /usr/bin/python -m venv /STAGED\n",
]
TARGETS: tuple[Target, ...] = (
    Target(name="host-texts", reader=_said, samples=lambda: [SMI, INFORMATION, OS_RELEASE, NVCC, VERSION_JSON, CGROUP, LD_CACHE],
           words=(*JSON, b", ", b"[N/A]", b"release 12.", b'"cuda":', b"PRETTY_NAME=")),
    Target(name="symbols", reader=_symbols, samples=lambda: [SYMBOLS],
           words=(b"_Z", b"N", b"E", b"S_", b"IT_", b"Dp", b"XX", b"LZ", b"K", b"_ZN" + b"1a" * 200 + b"Ev", b"_Z1aI" + b"S_" * 200, b"P" * 4000)),
    Target(name="processes", reader=_processes, samples=lambda: [PROCESS], words=(b"\0", b")", b" ", b"\n", b"PATH=:", b"/opt/env/bin/")),
    Target(name="rewritten", reader=_rewritten, free=True, promised=(EnvmedicError, ValueError), words=(b"/STAGED", b"'", b"#!", b'"', *META, *SHELL),
           samples=lambda: [*_STAGED, *samples.SCRIPTS, *samples.installed("RECORD")[:3]]),
)  # fmt: skip
