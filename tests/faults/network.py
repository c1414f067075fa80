"""A network that stalls, drops, lies or leads in circles: a loopback index that misbehaves while a repair needs it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.cli.support import Done
from tests.envs.nms_cuda.case import REPAIRED
from tests.faults.cases import Case
from tests.faults.room import Room, told
from tests.support.index import Fault, IndexServer, serve

_WHEEL = rf"torchvision-{REPAIRED}[^/]*\.whl$"
_ZIP_TIME = 10
"""Where the time of the first member stands in a zip archive (PKZIP's application note, 4.3.7)."""
_PAGE = r"/simple/torchvision/$"
_HTML = b"<!DOCTYPE html>\n<html><body>Please sign in to the network of this hotel</body></html>\n"
_FAILING = {
    "the page of a package does not exist": Fault(_PAGE, status=404),
    "the page of a package is forbidden": Fault(_PAGE, status=403),
    "the index is broken": Fault("", status=500),
    "the page leads in circles": Fault(_PAGE, location="/simple/torchvision/"),
    "the page is a sign-in form": Fault(_PAGE, body=_HTML),
    "the page is no text": Fault(_PAGE, body=bytes(range(256)) * 64),
    "the page is empty": Fault(_PAGE, body=b""),
    "the page breaks off": Fault(_PAGE, cut_after=40),
    "the wheel does not exist": Fault(_WHEEL, status=404),
    "the wheel leads in circles": Fault(_WHEEL, location=f"/files/torchvision-{REPAIRED}-py3-none-any.whl"),
    "the wheel leads to a closed port": Fault(_WHEEL, location="http://127.0.0.1:9/wheel.whl"),
    "the wheel is a sign-in form": Fault(_WHEEL, body=_HTML),
    "the wheel has another hash": Fault(_WHEEL, body=b"PK\x03\x04" + bytes(5000)),
    "the wheel is empty": Fault(_WHEEL, body=b""),
    "the wheel breaks off, always": Fault(_WHEEL, cut_after=100),
    "the wheel is refused": Fault(_WHEEL, status=403),
}
"""What a repair cannot live with."""
_RESUMED = "the wheel breaks off once"
_PASSING = {
    _RESUMED: Fault(_WHEEL, cut_after=100, times=1, method="GET"),
    "the server is busy twice": Fault(_WHEEL, status=503, times=2, method="GET"),
}
"""What passes."""
_STALLING = {
    "the wheel stalls once, for the minute that is waited": Fault(_WHEEL, stall_after=100, times=1, method="GET")
}
_ANOTHER = "the wheel is another one of the same name and size"
_SLICE = ("the wheel is a sign-in form", _ANOTHER, _RESUMED)


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every fault of the network during a repair that plans and fetches."""
    room = Room.build(folder / "room")
    with serve(room.case.wheels.parent / "index") as server:
        network = _Network(room, server)
        for name, fault in {**_FAILING, _ANOTHER: Fault(_WHEEL, body=_dated_otherwise(room))}.items():
            if not short or name in _SLICE:
                yield name, partial(network.refused, fault)
        for name, fault in (*_PASSING.items(), *_STALLING.items()):
            if not short or name in _SLICE:
                yield name, partial(network.passes, fault)
    if not short:
        yield "nobody listens", partial(network.refused, Fault(""))


def _dated_otherwise(room: Room) -> bytes:
    """The wheel with another time at its first member: it installs as well, and nothing but its hash tells."""
    content = bytearray(next(room.case.wheels.glob(f"torchvision-{REPAIRED}-*.whl")).read_bytes())
    content[_ZIP_TIME] ^= 1
    return bytes(content)


class _Network:
    def __init__(self, room: Room, server: IndexServer) -> None:
        self._room = room
        self._server = server
        self._count = 0

    def refused(self, fault: Fault) -> tuple[str, str]:
        """The repair fails and says why; the environment is as it was."""
        done = self._repair(fault)
        said = told(done, 1)
        side = self._room.settled()
        assert side == "old"
        self._room.forget()
        return side, said

    def passes(self, fault: Fault) -> tuple[str, str]:
        """The repair comes to a good end."""
        done = self._repair(fault)
        assert done.code == 0, done.told()
        self._room.new = self._room.now()  # uv notes where a wheel came from
        side = self._room.settled()
        assert side == "new"
        self._room.take_back()
        return side, "repaired all the same"

    def _repair(self, fault: Fault) -> Done:
        self._server.faults[:] = [fault] if fault != Fault("") else []
        self._count += 1
        cache = self._room.user.home / f"cache{self._count}"  # nothing was fetched before
        index = {
            "PIP_INDEX_URL": self._server.url,
            "ENVMEDIC_TORCH_INDEX": f"{self._server.host}/whl/{{variant}}",
            "XDG_CACHE_HOME": str(cache),
            "UV_HTTP_RETRIES": "1",
        }
        arguments = ("apply", "--playbook", "nms-cuda", "--yes", "--no-gpu", "--json", "-p", str(self._room.prefix))
        return self._room.user.having(**index).envmedic(*arguments)
