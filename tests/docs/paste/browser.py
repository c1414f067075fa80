"""A headless Chromium driven over a pipe, and the server of a site that counts what it sends."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
_START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
"""Chromium takes its pipe from these two numbers."""
_ABOVE = 16


def chromium() -> str | None:
    """A Chromium or Chrome on PATH; none is ever downloaded."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome", "chrome"))
    return next((path for path in found if path), None)


class Refused(Exception):
    """Chromium answered a command with an error, or a script threw one."""


class Page:
    """A page, and what it and its workers asked the network for."""

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._answers = to, answers
        self._number, self._rest = 0, b""
        self._session: str | None = None
        self.asked: list[str] = []
        """The address of every request that Chromium began."""
        self.said: list[str] = []
        """What the page and its workers wrote to the console."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    def call(self, method: str, **parameters: Any) -> Any:
        """The answer to a command. Raises Refused."""
        number = self._send(method, self._session, parameters)
        while True:
            message = self._next()
            if message.get("id") == number:
                if "error" in message:
                    raise Refused(f"{method}: {message['error']}")
                return message["result"]

    def _send(self, method: str, session: str | None, parameters: dict[str, Any]) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        data = json.dumps({**message, "sessionId": session} if session else message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        return self._number

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._answers, 1 << 20)
            if not read:
                raise Refused("Chromium has ended")
            self._rest += read
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, told: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])
        elif event == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(item.get("value", item.get("description"))) for item in told["args"]))
        elif event == "Log.entryAdded":
            self.said.append(told["entry"]["text"])
        elif event == "Target.attachedToTarget":  # a worker waits until its requests are listened to
            for method in ("Network.enable", "Runtime.enable", "Log.enable", "Runtime.runIfWaitingForDebugger"):
                self._send(method, told["sessionId"], {})

    def run(self, script: str) -> Any:
        """The value of a script, awaited. Raises Refused with its error."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise Refused(str(answer["exceptionDetails"].get("exception", answer["exceptionDetails"])))
        return answer["result"].get("value")

    def open(self, url: str) -> None:
        """Go to `url` and wait until its scripts ran."""
        self.call("Page.navigate", url=url)
        self.run("document.readyState === 'complete' || new Promise(done => addEventListener('load', done))")


@contextmanager
def opened(profile: Path) -> Iterator[Page]:
    """A new page of a Chromium without any cache, whose profile is put at `profile`."""
    program = chromium()
    assert program is not None
    theirs, ours = (os.pipe(), os.pipe())
    taken = [fcntl.fcntl(end, fcntl.F_DUPFD, _ABOVE) for end in (theirs[0], ours[1])]
    command = [sys.executable, "-c", _START, *map(str, taken), program, *FLAGS, f"--user-data-dir={profile}"]
    with subprocess.Popen(command, pass_fds=taken, stderr=subprocess.DEVNULL) as process:
        for end in (*taken, theirs[0], ours[1]):
            os.close(end)
        try:
            yield Page(theirs[1], ours[0])
        finally:
            for end in (theirs[1], ours[0]):  # it ends with its pipe
                os.close(end)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


class Served:
    """A site on this machine, and what was sent of it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.sent: dict[str, int] = {}
        """Bytes of content by path."""


@contextmanager
def served(site: Path) -> Iterator[Served]:
    """Serve the files of `site`, without compressing any."""
    found = Served("")

    class Handler(SimpleHTTPRequestHandler):
        extensions_map = {
            **SimpleHTTPRequestHandler.extensions_map,
            ".mjs": "text/javascript",
            ".packed": "application/octet-stream",
        }

        def log_message(self, *_: object) -> None:
            pass

        def copyfile(self, source: Any, outputfile: Any) -> None:
            content = source.read()
            path = self.path.partition("?")[0]
            found.sent[path] = found.sent.get(path, 0) + len(content)
            outputfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
