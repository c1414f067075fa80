"""``python -m tests.docs.paste.looks``: pictures of the built page in ``build/looks-paste``, and how long its first answer took."""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from pathlib import Path

from tests.docs.paste import browser, bundle

SIZES = {"phone": (390, 844, True), "laptop": (1280, 800, False), "wide": (2200, 1200, False)}
STATES = {
    "empty": "",
    "answer": "diagnose(EXAMPLE)",
    "unknown": "diagnose('everything is lost: Error 77 of the frobnicator')",
    "other": "diagnose('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.')",
}
_FILLED = "document.getElementById('text').value = EXAMPLE"


def main() -> None:
    """Take every picture; the time is from the request of the page to the first answer, in a browser that has no cache."""
    out = bundle.ROOT / "build" / "looks-paste"
    out.mkdir(parents=True, exist_ok=True)
    with (
        browser.served(bundle.SITE.parent) as server,
        tempfile.TemporaryDirectory() as profile,
        browser.opened(Path(profile)) as page,
    ):
        address = f"{server.address}/paste/index.html"
        begun = time.monotonic()
        page.open(address)
        page.run("ask(EXAMPLE)")
        sys.stdout.write(f"first answer after {time.monotonic() - begun:.1f} s\n")
        for state, script in STATES.items():
            page.run(f"{_FILLED if script else ''}; {script}")
            _take(page, out, state)
        page.run(f"location.href = '{address}#playbook=nms-cuda&class=torchvision-ops'")
        page.run("location.reload()")
        page.open(address + "#playbook=nms-cuda&class=torchvision-ops")
        page.run("showLinked()")
        _take(page, out, "linked")


def _take(page: browser.Page, out: Path, state: str) -> None:
    for size, (width, height, mobile) in SIZES.items():
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        for scheme in ("light", "dark"):
            page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            page.run("new Promise(done => setTimeout(done, 300))")
            shot = page.call("Page.captureScreenshot", captureBeyondViewport=True)
            (out / f"{state}-{size}-{scheme}.png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
