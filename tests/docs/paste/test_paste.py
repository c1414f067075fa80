"""The page that diagnoses a pasted text, in a real browser: its answers, its size, and that nothing leaves it."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envmedic.api import diagnosis
from envmedic.api.context.settings import Settings
from envmedic.model.events import EventStream
from tests.docs.howto import shipped
from tests.docs.paste import browser, bundle

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(browser.chromium() is None, reason="no Chromium or Chrome on PATH"),
]
MOST_BYTES = 8_000_000
SITE = bundle.SITE.parent


@pytest.fixture(scope="module")
def site() -> Path:
    """The site with the page, as `make site` built it."""
    if not (bundle.SITE / "parts.json").is_file():
        pytest.skip("the page is not built: make site")
    return SITE


@pytest.fixture(scope="module")
def first(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[browser.Page, browser.Served]]:
    """The page in a browser that has never seen it, with its first answer."""
    with browser.served(site) as server, browser.opened(tmp_path_factory.mktemp("profile")) as page:
        page.open(f"{server.address}/paste/index.html")
        page.run("diagnose(EXAMPLE)")
        yield page, server


@pytest.fixture
def page(first: tuple[browser.Page, browser.Served]) -> browser.Page:
    return first[0]


def test_all_of_it_is_within_eight_megabytes(first: tuple[browser.Page, browser.Served]) -> None:
    sent = first[1].sent
    assert {f"/paste/{name}" for name in ("pyodide.asm.wasm.packed", "python.zip.packed")} <= sent.keys()
    assert sum(sent.values()) < MOST_BYTES, sent


def test_the_first_answer_is_that_of_the_command_line(page: browser.Page) -> None:
    text = page.run("EXAMPLE")
    command = [sys.executable, "-m", "envmedic", "diagnose", "--log-only", "--json", "-"]
    told = subprocess.run(command, input=text.encode(), capture_output=True, check=False).stdout
    assert json.loads(page.run("ask(EXAMPLE).then(shown => JSON.stringify(shown.diagnosis))")) == json.loads(told)
    assert page.run("document.querySelector('#answer h2').textContent").startswith("torchvision::nms is not registered")
    assert page.run("document.querySelector('#answer mark').textContent") == "torchvision::nms"


@pytest.mark.parametrize("part", range(8))
def test_every_sample_has_the_diagnosis_of_the_command_line(page: browser.Page, tmp_path: Path, part: int) -> None:
    samples = dict([*bundle.texts().items()][part::8])
    file = tmp_path / "text"
    found = _in_browser(page, [*samples.values()], str(file))
    assert len(found) == len(samples) > 50
    differing = {}
    for (name, text), told in zip(samples.items(), found, strict=True):
        file.write_bytes(text)
        expected = _by_command_line(file)
        if told != expected:
            differing[name] = (told, expected)
    assert differing == {}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"all went well\n",
        b"\x7fELF" + bytes(600),
        "\ufeffRuntimeError: operator torchvision::nms does not exist".encode("utf-16-le"),
    ],
    ids=["empty", "no failure", "binary", "UTF-16"],
)
def test_odd_texts_have_the_diagnosis_of_the_command_line(page: browser.Page, tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "text"
    file.write_bytes(text)
    assert _in_browser(page, [text], str(file)) == [_by_command_line(file)]


def _in_browser(page: browser.Page, texts: Sequence[bytes], name: str) -> list[Any]:
    """The documents that the page makes of files of this name."""
    given = [base64.b64encode(text).decode() for text in texts]
    told = page.run(
        f"Promise.all({json.dumps(given)}.map(text => ask(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer, {json.dumps(name)})))"
        ".then(all => all.map(shown => JSON.stringify(shown.diagnosis)))"
    )
    return [json.loads(item) for item in told]


def _by_command_line(file: Path) -> Any:
    """The document of ``envmedic diagnose --log-only --json FILE``."""
    found = diagnosis.diagnose_text(Settings(stream=EventStream([])), shipped(), None, str(file), None)
    return json.loads(msgspec.json.encode(found))


def test_nothing_is_asked_of_anybody_else(first: tuple[browser.Page, browser.Served]) -> None:
    page, server = first
    assert len(page.asked) > 8
    assert [url for url in page.asked if not url.startswith((server.address, f"blob:{server.address}"))] == []


def test_a_diagnosis_asks_the_network_for_nothing(page: browser.Page) -> None:
    page.run("diagnose(EXAMPLE)")
    before = [*page.asked]
    page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    assert (
        page.run(
            "ask('RuntimeError: operator torchvision::nms does not exist').then(shown => shown.findings[0].playbook)"
        )
        == "nms-cuda"
    )
    page.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    assert page.asked == before


@pytest.mark.parametrize("where", ["page", "worker"])
def test_nothing_could_be_sent_to_anybody_else(page: browser.Page, where: str) -> None:
    # another origin of this machine, which would answer
    with browser.served(SITE) as other:
        send = f"fetch('{other.address}/paste/parts.json?text', {{mode: 'no-cors'}}).then(() => 'sent', () => 'barred')"
        if where == "worker":
            # as the page makes its own worker
            send = f"""new Promise(done => {{
                const source = URL.createObjectURL(new Blob([`{send}.then(self.postMessage)`], {{type: "text/javascript"}}));
                new Worker(source, {{type: "module"}}).onmessage = event => done(event.data);
            }})"""
        assert page.run(send) == "barred"
        assert other.sent == {}


def test_a_link_carries_the_finding_and_not_the_text(site: Path, page: browser.Page, tmp_path: Path) -> None:
    page.run("diagnose('secret words before\\n' + EXAMPLE)")
    address = page.run("location.href")
    assert address.endswith("/paste/index.html#playbook=nms-cuda&class=torchvision-ops")
    with browser.served(site) as server, browser.opened(tmp_path) as other:
        other.open(f"{server.address}/paste/index.html{address[address.index('#') :]}")
        other.run("showLinked()")
        assert not other.run("document.getElementById('linked').hidden")
        page_of_fault = other.run("document.getElementById('linked-page').href")
        assert page_of_fault == f"{server.address}/faults-by-name/nms-cuda.html"
        # who only reads the finding loads no Python
        assert not any(path.endswith(".packed") for path in server.sent)
        other.run("location.hash = '#playbook=<b>&class=x'; showLinked()")
        assert other.run("document.querySelectorAll('#linked b').length") == 0


@pytest.mark.usefixtures("site")
def test_every_playbook_has_its_page_on_the_site() -> None:
    told = json.loads((bundle.SITE / "faults.json").read_text(encoding="utf-8"))
    assert told.keys() == {item.playbook.id for item in shipped()}
    missing = [item["page"] for item in told.values() if not (bundle.SITE / item["page"]).is_file()]
    assert missing == []


def test_a_part_that_is_missing_is_named(site: Path, tmp_path: Path) -> None:
    shutil.copytree(site / "paste", tmp_path / "paste")
    (tmp_path / "paste" / "python.zip.packed").unlink()
    with browser.served(tmp_path) as server, browser.opened(tmp_path / "profile") as page:
        page.open(f"{server.address}/paste/index.html")
        page.run("diagnose(EXAMPLE)")
        told = page.run("document.getElementById('words').textContent")
    assert "could not be started here" in told
    assert "python.zip.packed" in told
    assert told.endswith("envmedic diagnose --log-only error.log")


def test_a_text_given_while_python_is_loading_is_read_and_one_that_is_stopped_is_not(
    site: Path, tmp_path: Path
) -> None:
    with browser.served(site) as server, browser.opened(tmp_path) as page:
        page.open(f"{server.address}/paste/index.html")
        page.run("void diagnose('stopped'); document.getElementById('stop').click()")
        assert page.run("document.getElementById('stop').hidden")
        assert page.run("document.getElementById('words').textContent") == "Stopped."
        page.run("Promise.all([diagnose('ImportError: no such thing'), diagnose(EXAMPLE)])")
        assert page.run("document.querySelector('#answer mark').textContent") == "torchvision::nms"


def test_a_dropped_file_and_a_stop(page: browser.Page) -> None:
    page.run(
        "(async () => { const moved = new DataTransfer(); moved.items.add(new File([EXAMPLE], 'train.log'));"
        "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: moved, bubbles: true, cancelable: true}));"
        "while (!document.querySelector('.command')?.textContent.includes('train.log')) await new Promise(r => setTimeout(r, 50)); })()"
    )
    assert page.run("document.querySelector('.command code').textContent") == "envmedic diagnose train.log"
    page.run("document.getElementById('stop').click()")
    assert page.run("document.getElementById('words').textContent") == "Stopped."
    page.run("diagnose(EXAMPLE)")  # another worker is started
    assert page.run("document.getElementById('words').textContent") == ""
