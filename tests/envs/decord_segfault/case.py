"""Builds the broken environment of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.wheels import Wheel, make_wheel

DECODER = """
/* a table of decoders, as a bundled copy of FFmpeg has it; none is registered yet */
typedef int (*decoder)(void);
decoder decoder_table[4];
int decord_version(void) { return 600; }
"""
RASTERIZER = """
/* a table of the same name; every entry of it is called when the library is loaded */
typedef int (*decoder)(void);
static int draw(void) { return 1; }
decoder decoder_table[4] = { draw, draw, draw, draw };
int contexts;
__attribute__((constructor)) static void start(void) {
    for (int i = 0; i < 4; i++) contexts += decoder_table[i]();
}
int context_count(void) { return contexts; }
"""
DECORD = '''\
"""A miniature of decord: reads no videos."""

import ctypes
import os

_LIB = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libdecord.so"), mode=ctypes.RTLD_GLOBAL)
__version__ = "0.6.0"
'''
NVDIFFRAST = '''\
"""A miniature of nvdiffrast: draws nothing."""

import ctypes
import os

_plugin = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "_nvdiffrast_plugin.so"))


def contexts():
    return _plugin.context_count()
'''
TRANSFORMERS = '''\
"""A miniature of transformers: it has no models, and reads videos by whatever is installed."""

import importlib.util

if importlib.util.find_spec("decord"):
    import decord as video
else:
    import av as video
reader = video.__name__
'''
PROGRAM = '''\
"""Draws what a model has seen."""

import transformers
import nvdiffrast

print("videos by", transformers.reader, "and", nvdiffrast.contexts(), "contexts")
'''


def build(room: Path, *, requiring: bool = False) -> NativeCase:
    """Build the environment; with `requiring`, another distribution requires decord."""
    wanted = ["decord", "nvdiffrast", "transformers", "tokenizers", *(["video-llm"] if requiring else [])]
    return build_native(room, wheels(room / "wheels"), wanted, PROGRAM)


def wheels(directory: Path) -> list[Wheel]:
    """Every wheel of the case."""
    decoder = shared_library(DECODER, name="libdecord.so")
    plugin = shared_library(RASTERIZER, name="_nvdiffrast_plugin.so")
    return [
        make_wheel(
            directory,
            "decord",
            "0.6.0",
            files={"decord/__init__.py": DECORD, "decord/libdecord.so": decoder},
            tags=PLATFORM_TAGS,
            summary=SUMMARY,
        ),
        make_wheel(
            directory,
            "nvdiffrast",
            "0.3.3",
            files={"nvdiffrast/__init__.py": NVDIFFRAST, "nvdiffrast/_nvdiffrast_plugin.so": plugin},
            tags=PLATFORM_TAGS,
            summary=SUMMARY,
        ),
        make_wheel(
            directory,
            "transformers",
            "4.49.0",
            files={"transformers/__init__.py": TRANSFORMERS},
            requires=["tokenizers>=0.21,<0.22"],
            summary=SUMMARY,
        ),
        make_wheel(directory, "tokenizers", "0.21.1", summary=SUMMARY),
        make_wheel(directory, "av", "14.2.0", files={"av/__init__.py": "__version__ = '14.2.0'\n"}, summary=SUMMARY),
        make_wheel(directory, "video-llm", "1.0", requires=["decord"], summary=SUMMARY),
    ]
