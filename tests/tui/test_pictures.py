from __future__ import annotations

from tests.pictures import FOLDER, NAMES

ROOT = FOLDER.parent.parent


def test_pages_show_pictures_of_nobodys_machine() -> None:
    page = (ROOT / "docs" / "terminal-ui.md").read_text(encoding="utf-8")
    assert "](docs/pictures/recording.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted((*NAMES, "recording"))
    recording = (FOLDER / "recording.svg").read_text(encoding="utf-8")
    assert not [word for word in ("/tmp", "/root", "pyenv", "/work") if word in recording]
    for name in NAMES:
        assert f"](pictures/{name}.svg)" in page
        text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
        assert "/home/me" in text
        assert not [word for word in ("/tmp", "/root", "pyenv", "@font-face") if word in text]
        assert len(text) < 100_000
