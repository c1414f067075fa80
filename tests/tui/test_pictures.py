from __future__ import annotations

from tests.pictures import FOLDER, NAMES

ROOT = FOLDER.parent.parent


def test_readme_shows_pictures_of_nobodys_machine() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(NAMES)
    for name in NAMES:
        assert f"](docs/pictures/{name}.svg)" in readme
        text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
        assert "/home/me" in text
        assert not [word for word in ("/tmp", "/root", "pyenv", "@font-face") if word in text]
        assert len(text) < 100_000
