from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from envmedic import model
from envmedic.errors import InputError, InvalidPlaybook, UnknownPlaybook
from envmedic.model.playbook import Playbook
from envmedic.playbook.schema import cache, library, loader, schema
from tests.playbook.helpers import MINIMAL


def write(path: Path, text: str = MINIMAL) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were parsed rather than taken from the cache."""
    names: list[str] = []
    parse = loader.parse

    def counted(content: bytes, file: str, *, shipped_as: str | None = None) -> Playbook:
        names.append(file)
        return parse(content, file, shipped_as=shipped_as)

    monkeypatch.setattr(loader, "parse", counted)
    return names


def test_a_playbook_is_parsed_once_per_content(tmp_path: Path, parses: list[str]) -> None:
    file = write(tmp_path / "mine.yaml")
    first = loader.load_file(file)
    assert loader.load_file(file) == first
    assert loader.load_file(write(tmp_path / "copy.yaml")).playbook == first.playbook
    assert len(parses) == 1


def test_changed_content_is_read_again(tmp_path: Path, parses: list[str]) -> None:
    file = write(tmp_path / "mine.yaml")
    before = loader.load_file(file)
    after = loader.load_file(write(file, MINIMAL.replace("A title", "B title")))
    assert (before.playbook.title, after.playbook.title) == ("A title", "B title")
    assert before.sha256 != after.sha256
    assert len(parses) == 2


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("damage", ["", "{", "null", "\x00\xff", "half", "other-title"])
def test_a_damaged_cache_file_is_read_again_and_repaired(
    tmp_path: Path, parses: list[str], damage: str, *, packed: bool
) -> None:
    file = write(tmp_path / "mine.yaml")
    expected = loader.load_file(file)
    (cached,) = (cache.user_root() / "playbooks").iterdir()
    good = cached.read_bytes()
    content = zlib.decompress(good) if packed else good
    broken = {"half": content[: len(content) // 2], "other-title": content.replace(b"A title", b"C title")}
    written = broken.get(damage, damage.encode("latin-1"))
    cached.write_bytes(zlib.compress(written) if packed else written)
    assert loader.load_file(file) == expected
    # without the packing the title is not found in it, and nothing is damaged
    assert len(parses) == (1 if damage == "other-title" and not packed else 2)
    assert cached.read_bytes() == good


def test_another_version_of_envmedic_does_not_use_the_cache(
    tmp_path: Path, parses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "mine.yaml")
    loader.load_file(file)
    monkeypatch.setattr(cache, "__version__", "999")
    cache._rules_digest.cache_clear()
    try:
        loader.load_file(file)
    finally:
        monkeypatch.undo()
        cache._rules_digest.cache_clear()
    assert len(parses) == 2


def test_a_playbook_that_is_wrong_as_a_shipped_one_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    file = write(tmp_path / "other.yaml")
    assert loader.load_file(file, "user").playbook.id == "mine"
    with pytest.raises(InvalidPlaybook, match="1 mistake"):
        loader.load_file(file, "shipped")


def test_without_a_usable_cache_directory_playbooks_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert loader.load_file(write(tmp_path / "mine.yaml")).playbook.id == "mine"


def test_the_cache_leaves_no_temporary_files(tmp_path: Path) -> None:
    loader.load_file(write(tmp_path / "mine.yaml"))
    (cached,) = (cache.user_root() / "playbooks").iterdir()
    assert cached.name.endswith(".json.z")
    assert stat.S_IMODE(cached.stat().st_mode) & 0o077 == 0


def test_a_cached_playbook_loads_neither_yaml_nor_jsonschema(tmp_path: Path) -> None:
    loader.load_file(write(tmp_path / "mine.yaml"))
    code = (
        "import sys; from envmedic.playbook.schema.loader import load_file; load_file(sys.argv[1]);"
        "print(sorted({'ruamel', 'jsonschema', 're2'} & {name.partition('.')[0] for name in sys.modules}))"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "mine.yaml")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_shipped_user_and_given_playbooks_are_found_and_later_ones_replace_earlier_ones(tmp_path: Path) -> None:
    user = write(loader.user_directory() / "mine.yaml")
    write(loader.user_directory() / "notes.txt", "not a playbook")
    write(loader.user_directory() / ".hidden.yaml", "x")
    by_id = {loaded.playbook.id: loaded for loaded in loader.load_all()}
    assert (by_id["mine"].origin, by_id["mine"].path) == ("user", str(user))
    assert by_id["nms-cuda"].origin == "shipped"

    given = write(tmp_path / "x.yml", MINIMAL.replace("id: mine", "id: nms-cuda"))
    by_id = {loaded.playbook.id: loaded for loaded in loader.load_all((given,))}
    assert (by_id["nms-cuda"].origin, by_id["nms-cuda"].path) == ("file", str(given))


def test_two_user_playbooks_with_one_id_are_refused() -> None:
    write(loader.user_directory() / "a.yaml")
    write(loader.user_directory() / "b.yaml")
    with pytest.raises(InvalidPlaybook) as caught:
        loader.load_all()
    assert "mine is the id of" in caught.value.details[0]


def test_the_mistakes_of_all_files_come_at_once_and_a_survey_still_gives_the_good_ones() -> None:
    write(loader.user_directory() / "a.yaml", "x: 1\n")
    write(loader.user_directory() / "b.yaml", "")
    with pytest.raises(InvalidPlaybook) as caught:
        loader.load_all()
    assert {detail.split(":")[0].rpartition("/")[2] for detail in caught.value.details} == {"a.yaml", "b.yaml"}
    playbooks, errors = loader.survey()
    assert "nms-cuda" in {loaded.playbook.id for loaded in playbooks}
    assert len(errors) == 2


def test_playbooks_are_found_by_id_and_by_path(tmp_path: Path) -> None:
    playbooks = loader.load_all()
    assert loader.find("nms-cuda", playbooks).playbook.fault == "torchvision-ops"
    file = write(tmp_path / "mine.yaml")
    assert loader.find(str(file), playbooks).origin == "file"


def test_an_unknown_id_names_near_matches() -> None:
    with pytest.raises(UnknownPlaybook) as caught:
        loader.find("nms-cude", loader.load_all())
    assert "did you mean nms-cuda" in caught.value.summary


@pytest.mark.parametrize("directory", [False, True])
def test_a_path_that_cannot_be_read_is_an_input_error(tmp_path: Path, *, directory: bool) -> None:
    path = tmp_path / "gone.yaml"
    if directory:
        path.mkdir()
    with pytest.raises(InputError, match=r"gone\.yaml cannot be read"):
        loader.find(str(path), ())


def test_the_listing_and_the_source_show_what_is_there(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml")
    playbooks = loader.load_all((file,))
    entries = library.listing(playbooks)
    assert [entry.id for entry in entries] == sorted(entry.id for entry in entries)
    entry = next(entry for entry in entries if entry.id == "mine")
    assert (entry.fault, entry.title, entry.origin, entry.path) == ("torchvision-ops", "A title", "file", str(file))
    mine = loader.find("mine", playbooks)
    assert library.source(mine) == MINIMAL
    file.unlink()
    with pytest.raises(InputError):
        library.source(mine)


def test_one_loader_serves_the_checkout_and_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loader.shipped_directory().name == "playbooks"
    package = tmp_path / "site" / "envmedic"
    shutil.copytree(loader.shipped_directory(), package / "shipped_playbooks")
    monkeypatch.setattr("envmedic.__file__", str(package / "__init__.py"))
    assert loader.shipped_directory() == package / "shipped_playbooks"
    assert "nms-cuda" in {loaded.playbook.id for loaded in loader.load_all()}


def test_the_schema_is_a_json_schema_of_playbooks() -> None:
    document = schema.schema()
    assert document["$ref"] == "#/$defs/Playbook"
    assert document["$defs"]["Playbook"]["additionalProperties"] is False


def test_other_rules_do_not_use_the_cache(tmp_path: Path, parses: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "mine.yaml")
    loader.load_file(file)
    other = tmp_path / "model"
    other.mkdir()
    (other / "__init__.py").write_text("FACTS = ()\n", encoding="utf-8")
    for directory in (other, tmp_path / "archive.zip"):
        monkeypatch.setattr(model, "__file__", str(directory / "__init__.py"))
        cache._rules_digest.cache_clear()
        loader.load_file(file)
        loader.load_file(file)
    monkeypatch.undo()
    cache._rules_digest.cache_clear()
    assert len(parses) == 3, "once each"
