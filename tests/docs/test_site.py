"""The pages that the site adds, and where links of the repository lead on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import site
from tests.docs.tutorial import steady

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("page", "link", "leads"),
    [
        ("index.md", "docs/tutorial.md", "tutorial.md"),
        ("index.md", "CONTRIBUTING.md", "contributing.md"),
        ("index.md", "docs/documents.md#events", "documents.md#events"),
        ("contributing.md", "docs/playbooks.md", "playbooks.md"),
        ("playbooks.md", "../playbooks/nms-cuda.yaml", "files/playbooks/nms-cuda.yaml"),
        ("playbooks.md", "../tests/envs/nms_cuda/README.md", "files/tests/envs/nms_cuda/README.md.txt"),
        ("playbooks.md", "../README.md", "index.md"),
        ("playbooks.md", "documents.md#events", "documents.md#events"),
        ("playbooks.md", "https://example.com/x.md", "https://example.com/x.md"),
    ],
)
def test_a_link_of_the_repository_leads_to_the_site(page: str, link: str, leads: str) -> None:
    text, needed = site.linked(page, f"see [x]({link}).")
    assert text == f"see [x]({leads})."
    assert set(needed) == ({leads} if leads.startswith("files/") else set())


def test_a_link_to_a_file_that_is_not_there_ends_the_build() -> None:
    with pytest.raises(FileNotFoundError, match="links to"):
        site.linked("playbooks.md", "[x](../nothing.yaml)")


def test_the_navigation_has_the_pages_that_there_are() -> None:
    nav = site.on_config({})["nav"]
    start, do = nav[0]["Start"], nav[1]["Do"]
    assert start == ["index.md", "for-researchers.md", "for-teams.md", "for-admins.md", "tutorial.md"]
    assert list(do[0]) == ["Faults by name"]
    assert do[0]["Faults by name"][0] == "faults-by-name/index.md"
    listed = [page for section in nav for pages in section.values() for page in pages if isinstance(page, str)]
    for page in listed:
        assert page in site.FROM_ROOT or (ROOT / "docs" / page).is_file()


def test_what_varies_from_run_to_run_is_left_out_of_the_tutorial_s_comparison() -> None:
    first = (
        "Transaction  20260101T101112000000Z-abc123 on .demo/env\nreading the environment: done in 7.8 s\n  pass  0.1 s"
    )
    second = "Transaction  20270304T111213999999Z-fed987 on .demo/env\n  pass   12 s"
    assert steady(first) == steady(second)
    assert steady(first) != steady(second.replace("pass", "fail"))
