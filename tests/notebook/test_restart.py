"""Whether the kernel must be restarted, and the answer as HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from envmedic.model.facts import Distribution, Origin
from envmedic.model.findings import Diagnosis, Verdict
from envmedic.notebook.restart import Stale, kernel_lines, stale_modules
from envmedic.render.html import block
from envmedic.render.text import bare, joined, line, part

STARTED = 1000.0


def installed(name: str, version: str, *imports: str) -> Distribution:
    return Distribution(
        name=name,
        version=version,
        metadata_path=f"{name}.dist-info",
        site="site",
        import_names=imports,
        origin=Origin(kind="index"),
    )


def test_only_what_was_installed_anew_since_the_kernel_started_is_stale() -> None:
    distributions = [
        installed("numpy", "2.0.1", "numpy"),
        installed("pillow", "10.4.0", "PIL"),
        installed("torch", "2.5.1", "torch"),
    ]
    changed = {"numpy.dist-info": STARTED + 1, "pillow.dist-info": STARTED - 1, "torch.dist-info": STARTED + 1}
    modules = {"numpy": "1.26.4", "PIL": "9.0", "torch": "2.5.1+cu124", "other": "1"}
    assert stale_modules(distributions, modules, changed, STARTED) == (Stale("numpy", "1.26.4", "2.0.1"),)


@pytest.mark.parametrize(
    ("verdict", "stale", "text", "command", "told"),
    [
        ("env", (Stale("numpy", "1.26.4", "2.0.1"),), "", "envmedic apply", "Restart the kernel first, and run the cell again: numpy 1.26.4 is loaded and 2.0.1 installed"),
        ("not-an-env-problem", (), "RuntimeError: CUDA error: device-side assert triggered", "", "Restart the kernel: after this CUDA error"),
        ("env", (), "", "envmedic apply", "Shut the kernel down before the repair"),
        ("shell", (), "", "", "Restart the kernel after the change"),
        ("not-an-env-problem", (), "torch.OutOfMemoryError: CUDA out of memory", "", "The kernel need not be restarted"),
    ],
)  # fmt: skip
def test_the_most_urgent_word_on_the_kernel(
    verdict: Verdict, stale: tuple[Stale, ...], text: str, command: str, told: str
) -> None:
    found = Diagnosis(prefix="/env", facts=None, verdict=verdict)
    (row,) = kernel_lines(found, stale, text, repaired_by_command=bool(command))
    assert bare(row).startswith(told)


class Texts(HTMLParser):
    """The text of a page by elements, and what the page would run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert all(value for _, value in attrs)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.tags.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self.tags[-1], []).append(data)


def test_html_shows_foreign_text_as_it_is_and_commands_whole() -> None:
    command = "envmedic plan --log '/tmp/<a> & \"b\"'"
    rows = [
        line("✗ <img src=x onerror=alert(1)>", "bad"),
        line("  a\x1b[31m"),
        joined("Next: ", part(command, "command")),
    ]
    page = Texts()
    page.feed(block(rows))
    assert not page.tags, "every element is closed"
    assert page.text["span"] == ["✗ <img src=x onerror=alert(1)>"]
    assert "  a␛[31m" in page.text["div"]
    assert page.text["code"] == [command]
