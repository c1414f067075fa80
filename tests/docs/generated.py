"""Files that are made from the code, and those of them that are out of date.

A page of ``docs/`` holds a table between ``<!-- table: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.docs.commands import manual
from tests.docs.schemas import DOCUMENTS, file_name, schema
from tests.docs.tables import TABLES

_MARKED = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def schema_text(name: str) -> str:
    """The content of a schema file."""
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"


def filled(page: str) -> str:
    """A page with every marked table as the code has it now. Raises KeyError for an unknown table."""
    return _MARKED.sub(lambda match: f"{match[1]}\n{TABLES[match['name']]()}\n{match[3]}", page)


def wanted(root: Path) -> dict[Path, str]:
    """Every file that is made from the code, with the content that it should have."""
    files = {root / "envmedic" / "schemas" / file_name(name): schema_text(name) for name in DOCUMENTS}
    pages = [path for path in sorted((root / "docs").glob("*.md")) if _MARKED.search(path.read_text(encoding="utf-8"))]
    files[root / "man" / "envmedic.1"] = manual()
    return files | {path: filled(path.read_text(encoding="utf-8")) for path in pages}


def outdated(root: Path) -> dict[Path, str | None]:
    """Files below `root` that differ from what they should be; None for one that should not be there."""
    files = wanted(root)
    extra: dict[Path, str | None] = dict.fromkeys(set((root / "envmedic" / "schemas").glob("*")) - set(files))
    return extra | {path: text for path, text in files.items() if _content(path) != text}


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
