"""Which distribution remains belong to, and whether they were in use."""

from __future__ import annotations

from pathlib import Path

from envmedic.model.facts import Leftover
from envmedic.probe.packages import distributions, leftovers


def found(site: Path) -> dict[str, Leftover]:
    """The leftovers in a site-packages directory, by file name."""
    scan = distributions.scan(site, site.parent)
    return {item.path.rpartition("/")[2]: item for item in leftovers.find([scan], site.parent)}


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_renamed_metadata_names_the_code_that_was_renamed_with_it(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    write(site / "~qdm-4.66.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: tqdm\nVersion: 4.66.0\n")
    write(site / "~qdm" / "std.py")
    items = found(site)
    assert [(item.name, item.version, item.code) for item in items.values()] == [
        ("tqdm", None, True),
        ("tqdm", "4.66.0", False),
    ]


def test_code_without_metadata_is_missed_only_where_it_is_required(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    write(site / "yaml" / "__init__.py", "__version__ = '6.0.1'\n")
    write(site / "notes" / "__init__.py")
    write(
        site / "app-1.0.dist-info" / "METADATA",
        "Metadata-Version: 2.1\nName: app\nVersion: 1.0\nRequires-Dist: PyYAML\nRequires-Dist: notes; extra == 'more'\n",
    )
    assert {name: (item.name, item.version) for name, item in found(site).items()} == {"yaml": ("pyyaml", "6.0.1")}


def test_code_that_another_distribution_brings_is_not_missed(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    write(site / "cv2" / "__init__.py")
    for name, more in (("app", "Requires-Dist: opencv-python\n"), ("opencv-python-headless", "")):
        folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
        write(folder / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{more}")
        write(folder / "RECORD", "cv2/__init__.py,,\n" if "headless" in name else "app.py,,\n")
    assert found(site) == {}


def test_metadata_without_its_content_tells_whether_the_code_is_there(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "old-1.0.dist-info").mkdir(parents=True)
    (site / "used-2.0.dist-info").mkdir()
    write(site / "used" / "__init__.py")
    assert {item.name: (item.version, item.code) for item in found(site).values()} == {
        "old": ("1.0", False),
        "used": ("2.0", True),
    }
