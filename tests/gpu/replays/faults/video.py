"""decord beside av: a reader of videos whose library takes the place of another one's functions."""

from __future__ import annotations

from pathlib import Path

from tests.gpu.replays.packing import pack
from tests.gpu.replays.replay import Command, Replay
from tests.gpu.replays.room import Room

TABLE = r"""
typedef int (*decoder)(void);
VISIBLE decoder decoder_table[4];
int decord_version(void) { return 600; }
"""
"""A table of decoders, as a bundled copy of FFmpeg has it; none is registered yet."""
DRAWING = r"""
typedef int (*decoder)(void);
static int draw(void) { return 1; }
decoder decoder_table[4] = { draw, draw, draw, draw };
int contexts;
__attribute__((constructor)) static void start(void) { for (int i = 0; i < 4; i++) contexts += decoder_table[i](); }
int context_count(void) { return contexts; }
"""
"""A table of the same name; every entry of it is called when the library is loaded."""
LOAD = """\
import ctypes, glob, os

_LIB = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(__file__), "_lib*.so"))[0], mode=ctypes.MODE)
"""
READER = """\
import importlib.util

if importlib.util.find_spec("decord"):
    import decord as video
else:
    import av as video
import pyrender
"""
"""What transformers does: it reads videos by decord where that is installed, and else by av."""
SETUP = """\
from setuptools import Extension, setup

setup(name={name!r}, version={version!r}, packages=[{name!r}], ext_modules=[{modules}])
"""
HIDDEN = '#define VISIBLE __attribute__((visibility("hidden")))'
FROM_SOURCE = """\
id: decord-from-source
fault: native-crash
title: decord's library disturbs another one, and its newer source keeps its names to itself
fix_kind: rebuild-extension
explain: decord is built again from the source directory that it was installed from.
signatures:
  - id: crash
    pattern: "Fatal Python error: Segmentation fault"
    sample: "Fatal Python error: Segmentation fault"
    confidence: 0.8
when:
  all:
    - {fact: package.decord.version, operator: exists}
    - {fact: crash.sequence, operator: contains, value: decord}
steps:
  - step: rebuild
    distribution: decord
checks: [import-sequence]
"""

SLOW = (
    *("accelerate", "botorch", "e3nn", "gpytorch", "lightning", "linear-operator", "opt-einsum-fx", "peft", "timm"),
    *("pytorch-lightning", "sentence-transformers", "torch-geometric", "torchdiffeq", "torchmetrics"),
)
"""Each imports torch once more, as the checks of a repair do with every package, and as the search for a crash may."""


def package(room: Room, name: str, version: str, init: str, source: str = "") -> Path:
    """Write the source directory of a package with one library of C."""
    folder = room.folder / "sources" / name
    (folder / name).mkdir(parents=True, exist_ok=True)
    modules = f"Extension({name + '._lib'!r}, ['lib.c'])" if source else ""
    (folder / "setup.py").write_text(SETUP.format(name=name, version=version, modules=modules), encoding="utf-8")
    (folder / "lib.c").write_text(source, encoding="utf-8")
    (folder / name / "__init__.py").write_text(init, encoding="utf-8")
    return folder


def decord(room: Room, version: str, visible: str) -> Path:
    """The source of our decord, whose table other libraries see, or do not."""
    init = LOAD.replace("MODE", "RTLD_GLOBAL") + f"__version__ = {version!r}\n"
    return package(room, "decord", version, init, f"{visible}\n{TABLE}")


def crashing(room: Room) -> Command:
    """A program that reads videos and draws, beside decord."""
    room.without(*SLOW)
    room.install(decord(room, "0.6.0", "#define VISIBLE"))
    room.install(package(room, "pyrender", "1.0", LOAD.replace("MODE", "RTLD_LOCAL"), DRAWING))
    room.install(package(room, "replay_reader", "1.0", READER))
    return ("python", "-X", "faulthandler", "-c", "import replay_reader; print(replay_reader.video.__name__)")


def stand_in(room: Room) -> Path:
    """The source of an av that says which codecs it has, as its check asks, and reads no video."""
    folder = package(room, "av", "14.2.0", "from av import codec\n\n__version__ = '14.2.0'\n")
    (folder / "av" / "codec.py").write_text("codecs_available = {'rawvideo'}\n", encoding="utf-8")
    return folder


def beside_av(room: Room) -> Command:
    """av is there too, and nobody uses it as long as decord is. It is the real one where --wheels has it."""
    if not list(room.site.glob("av-*.dist-info")):
        wheels = sorted(room.wheels.glob("av-*.whl"))
        room.install(wheels[-1] if wheels else stand_in(room))
    pack(room.site, "av", room.links)
    return crashing(room)


def newer_source(room: Room) -> Command:
    """The source that decord was installed from has been brought up to date since."""
    command = crashing(room)
    decord(room, "0.7.0", HIDDEN)
    return command


REPLAYS = (
    Replay("decord-beside-av", "decord beside av", frozenset({"decord-segfault"}), beside_av, facts=False),
    Replay(
        "decord-from-source",
        "decord, built again from its newer source by a playbook of one's own",
        frozenset({"decord-segfault", "import-order-crash"}),
        newer_source,
        facts=False,
        playbook=FROM_SOURCE,
    ),
)
