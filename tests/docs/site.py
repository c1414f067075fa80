"""What `mkdocs` adds to ``docs/`` when the site is built: pages made from the playbooks, README, and linked files.

`mkdocs.yml` names this file as a hook.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.docs import consumers
from tests.docs.howto import FOLDER, pages

ROOT = Path(__file__).resolve().parents[2]
NAVIGATION: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start", ("index.md", "for-researchers.md", "for-teams.md", "for-admins.md", "tutorial.md")),
    (
        "Do",
        (
            f"{FOLDER}/index.md",
            f"{consumers.FOLDER}/index.md",
            "paste-a-log.md",
            "upgrading.md",
            "locks.md",
            "offline.md",
            "clusters.md",
            "containers.md",
            "ci.md",
            "agents.md",
            "notebooks.md",
            "library.md",
        ),
    ),
    ("Write", ("playbooks.md", "facts.md")),
    ("Look up", ("commands.md", "terminal-ui.md", "documents.md")),
    (
        "Understand",
        (
            "how-it-works.md",
            "security.md",
            "tables.md",
            "benchmarks.md",
            "benchmarks-texts.md",
            "benchmarks-repairs.md",
            "benchmarks-speed.md",
            "gpu-replays.md",
            "faults.md",
        ),
    ),
    ("Take part", ("contributing.md", "development.md", "changelog.md")),
)
"""Pages by section. Those that are not there yet are left out; one that is there and not here ends the build."""
FROM_ROOT: Mapping[str, str] = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages that stand at the root of the repository."""
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)(?P<path>[^)#\s]+)(?P<anchor>#[^)]*)?\)")


def made() -> dict[str, str]:
    """Every page that is not a file of ``docs/``, by its path there."""
    found = {name: (ROOT / source).read_text(encoding="utf-8") for name, source in FROM_ROOT.items()}
    return {**found, **pages(), **consumers.pages()}


def linked(page: str, text: str) -> tuple[str, dict[str, Path]]:
    """The text of a page with links into the repository led to the site, and the files that the site needs for them.

    `page` is its path below ``docs/``. Raises FileNotFoundError for a link that leads nowhere.
    """
    source = ROOT / FROM_ROOT[page] if page in FROM_ROOT else ROOT / "docs" / page
    needed: dict[str, Path] = {}

    def lead(match: re.Match[str]) -> str:
        target = _place(source, match["path"])
        if target is None:
            return match[0]
        place, file = target
        if file is not None:
            needed[place] = file
        return f"]({'../' * page.count('/')}{place}{match['anchor'] or ''})"

    return _LINK.sub(lead, text), needed


def _place(source: Path, path: str) -> tuple[str, Path | None] | None:
    """Where the site has what `path` in `source` leads to, with the file to copy; None for what is there as it stands."""
    file = (source.parent / path).resolve()
    names = {(ROOT / name).resolve(): page for page, name in FROM_ROOT.items()}
    if file in names:
        return names[file], None
    docs = ROOT / "docs"
    if file.is_relative_to(docs):
        inside = file.relative_to(docs).as_posix()
        return (inside, None) if source.parent == ROOT else None
    if not file.is_file():
        raise FileNotFoundError(f"{source.relative_to(ROOT)} links to {path}, which is not there")
    plain = ".txt" if file.suffix == ".md" else ""  # it is no page of the site
    return f"files/{file.relative_to(ROOT).as_posix()}{plain}", file


def on_config(config: Any) -> Any:
    """The navigation, of the pages that there are."""
    there = {*_written(), *made()}
    config["nav"] = [{title: [page for page in listed if page in there]} for title, listed in NAVIGATION]
    config["nav"][1]["Do"][0] = {
        "Faults by name": sorted(pages(), key=lambda page: (not page.endswith("index.md"), page))
    }
    config["nav"][1]["Do"][1] = {
        "Beside torch": sorted(consumers.pages(), key=lambda page: (not page.endswith("index.md"), page))
    }
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add what is made, and what is linked to."""
    from mkdocs.structure.files import File  # the tests of this file need no mkdocs

    texts = {**{path: _read(path) for path in _written()}, **made()}
    for page, text in made().items():
        files.append(File.generated(config, page, content=text))
    for page in texts:
        for place, file in linked(page, texts[page])[1].items():
            if files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, content=file.read_bytes()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lead links into the repository to the site."""
    return linked(page.file.src_uri, markdown)[0]


def _written() -> list[str]:
    """The pages that people write, by their paths below ``docs/``."""
    return sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


def _read(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")
