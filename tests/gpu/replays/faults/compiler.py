"""A run-time compiler (NVRTC) that refuses the GPU and that torch gets in the place of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.gpu.replays.replay import Command, NotHere, Replay
from tests.gpu.replays.room import Room

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *real(const char *name) {
  static void *library;
  if (!library) library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : 0;
}
typedef long (*function)(long, long, long, long, long, long);
#define PASS(name) \
  long name(long a, long b, long c, long d, long e, long f) { return ((function)real(#name))(a, b, c, d, e, f); }
// FUNCTIONS
int nvrtcCompileProgram(void *program, int count, const char *const *options) {
  const char *changed[256];
  FILE *asked = fopen(ASKED, "a");
  for (int i = 0; asked && i < count; ++i) fprintf(asked, "%s ", options[i]);
  if (asked) fclose(asked);
  for (int i = 0; i < count && i < 256; ++i)
    changed[i] = strncmp(options[i], "--gpu-architecture=", 19) ? options[i] : "--gpu-architecture=sm_999";
  return ((int (*)(void *, int, const char *const *))real("nvrtcCompileProgram"))(program, count, changed);
}
"""
BESSEL = """\
import torch
torch.manual_seed(0)
x = torch.rand(64) * 9
try:
    found = torch.special.bessel_j0(x.cuda()).cpu()
finally:
    maps = {line.split()[-1] for line in open('/proc/self/maps') if 'nvrtc' in line}
    print('torch', torch.__version__, torch.version.cuda, 'NVRTC:', *sorted(maps))
assert torch.allclose(found, torch.special.bessel_j0(x), rtol=1e-3, atol=1e-5)
"""
"""A function that torch has no compiled code of for any GPU, and compiles while it runs; and what of NVRTC was loaded.

Of complex numbers it once compiled all functions in this way; with torch 2.11 and CUDA 13.0 ``torch.tan`` does not fail.
"""


def asked(room: Room) -> Path:
    """Where our NVRTC writes which options it was called with."""
    return room.folder / "asked.txt"


def refusing(room: Room, real: Path, target: Path) -> Path:
    """Build at `target` an NVRTC that asks the one at `real` for an architecture that it does not know."""
    listed = subprocess.run(["nm", "-D", "--defined-only", real], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].partition("@")[0] for line in listed.splitlines()}
    names = sorted(name for name in exported if name.startswith("nvrtc") and name != "nvrtcCompileProgram")
    source, versions = room.folder / "nvrtc.c", room.folder / "nvrtc.map"
    source.write_text(SOURCE.replace("// FUNCTIONS", "\n".join(f"PASS({name})" for name in names)), encoding="utf-8")
    versions.write_text(f"{target.name} {{ global: nvrtc*; local: *; }};\n", encoding="utf-8")
    linked = (f"-Wl,-soname,{target.name}", f"-Wl,--version-script={versions}")
    target.parent.mkdir(parents=True, exist_ok=True)
    room.run(
        "gcc",
        "-shared",
        "-fPIC",
        "-w",
        f'-DREAL="{real}"',
        f'-DASKED="{asked(room)}"',
        *linked,
        source,
        "-o",
        target,
        "-ldl",
    ).must()
    return target


def options_seen(room: Room) -> str:
    """With which options our NVRTC was called, if it was."""
    file = asked(room)
    return f"our NVRTC was called with: {file.read_text(encoding='utf-8') if file.exists() else 'nothing, never'}"


def own(room: Room) -> Path:
    """The NVRTC of torch's CUDA major version, in an nvidia wheel; raises NotHere where it lies nowhere there."""
    major = room.python_here("import torch; print((torch.version.cuda or '').partition('.')[0])")
    found = sorted(room.site.glob(f"nvidia/**/libnvrtc.so.{major}*"))
    if not found:
        raise NotHere(f"torch has no libnvrtc.so.{major} in a wheel of its own here")
    room.outside["USE_PYTORCH_KERNEL_CACHE"] = "0"  # what was compiled once would not be compiled again
    return found[0]


def preloaded(room: Room) -> Command:
    """LD_PRELOAD names an NVRTC of another toolkit, as answers on missing CUDA libraries recommend it."""
    real = own(room)
    shadow = refusing(room, real, room.folder / "old-cuda" / "lib64" / real.name)
    room.variable("LD_PRELOAD", f"'{shadow}'")
    return ("python", "-c", BESSEL)


REPLAYS = (
    Replay(
        "nvrtc-preloaded",
        "an NVRTC that refuses the GPU, named by LD_PRELOAD",
        frozenset({"nvrtc-preloaded"}),
        preloaded,
        notes=options_seen,
    ),
)
