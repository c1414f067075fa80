"""The formats as text: what is written is read back, and what is no lock is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.pylock import Pylock
from ruamel.yaml import YAML

from envmedic import toml
from envmedic.errors import InputError
from envmedic.locks import completeness
from envmedic.locks.formats import LOCK_FORMATS, conda_lock, dockerfile, environment, pylock, requirements
from envmedic.locks.reading import read
from envmedic.locks.writing import written
from envmedic.model.base import to_json
from envmedic.model.lock import Lock, LockedPackage, LockFormatName
from tests.locks.values import COMMIT, DIGEST, FILES, conda, lock, mixed, wheel

READ: tuple[LockFormatName, ...] = ("conda-lock", "pylock", "requirements")
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5})?", fullmatch=True)
VERSIONS = st.from_regex(r"[1-9]\.(0|[1-9][0-9]?)(\.[0-9])?(\+cu12[0-9])?", fullmatch=True)


def saved(found: Lock, form: LockFormatName, folder: Path, edit: Callable[[str], str] = str) -> Path:
    path = folder / LOCK_FORMATS[form].filename
    path.write_text(edit(written(found, form)[1]), encoding="utf-8")
    return path


def kept(item: LockedPackage) -> tuple[object, ...]:
    return item.manager, item.name, item.version, item.sha256, item.md5, item.build, item.channel


@settings(max_examples=40, deadline=None)
@given(pairs=st.dictionaries(NAMES, VERSIONS, max_size=6), form=st.sampled_from(READ))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, pairs: dict[str, str], form: LockFormatName
) -> None:
    found = lock(*(wheel(name, version) for name, version in sorted(pairs.items())))
    again = read(saved(found, form, tmp_path_factory.mktemp("lock")))
    assert list(map(kept, again.packages)) == list(map(kept, found.packages))
    assert (again.python, again.platform, again.cuda, again.name) == ("3.11.7", "linux-64", "12.4", "train")


def test_conda_and_pip_packages_of_one_environment_are_in_one_conda_lock(tmp_path: Path) -> None:
    again = read(saved(mixed(), "conda-lock", tmp_path))
    assert list(map(kept, again.packages)) == list(map(kept, mixed().packages))
    python, torch = (next(item for item in again.packages if item.name == name) for name in ("python", "torch"))
    assert set(python.requires) == {"__glibc >=2.17,<3.0.a0", "openssl >=3,<4"}
    assert set(torch.requires) == {"numpy", "sympy ==1.13.1"}


def test_an_entry_edited_by_hand_is_told(tmp_path: Path) -> None:
    for form in READ:
        found = mixed() if form == "conda-lock" else lock(wheel("torch", "2.5.1"))
        with pytest.raises(InputError, match="edited"):
            read(saved(found, form, tmp_path, lambda text: text.replace("2.5.1", "2.4.1")))
        with pytest.raises(InputError, match="edited"):
            read(saved(found, form, tmp_path, lambda text: text.replace(DIGEST, "c" * 64)))


def test_a_comment_added_by_hand_is_no_edit(tmp_path: Path) -> None:
    for form in READ:
        assert read(saved(mixed(), form, tmp_path, lambda text: f"# ours\n{text}")).packages


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("conda-lock.yml", "version: 7\npackage: []\nmetadata: {}\n", "version 7"),
        ("conda-lock.yml", "version: 1\npackage: [{name: x}]\nmetadata: {}\n", "not a valid conda-lock"),
        ("conda-lock.yml", "package: [\n", "not YAML"),
        ("conda-lock.yml", "- a\n- b\n", "not a conda-lock"),
        ("environment.yml", "name: x\ndependencies: [python]\n", "cannot be checked"),
        ("pylock.toml", 'lock-version = "2.0"\ncreated-by = "x"\npackages = []\n', "unknown version"),
        ("pylock.toml", 'lock-version = "1.0"\n', "not a valid pylock"),
        ("pylock.toml", "[[", "not a valid pylock"),
        ("requirements.txt", "torch\n", "no exact version"),
        ("requirements.txt", "torch==2.5.1\n", "no hash"),
        ("requirements.txt", "-r other.txt\n", "cannot stand in a lock"),
        ("requirements.txt", "=== what\n", "no requirement"),
        ("Dockerfile", "FROM ubuntu\n", "cannot be checked"),
        ("lock.json", '{"schema": "envmedic.lock/2"}', "not a valid Lock"),
    ],
)
def test_what_is_no_lock_is_told(tmp_path: Path, name: str, text: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told) as caught:
        read(path)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["locked", "locked.lock", "locked.txt"])
def test_the_content_tells_the_format_under_any_name(tmp_path: Path, name: str) -> None:
    for form in READ:
        found = mixed() if form == "conda-lock" else lock(wheel("torch", "2.5.1"))
        saved(found, form, tmp_path).rename(tmp_path / name)
        assert read(tmp_path / name).packages


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'version = 1\nrevision = 3\n\n[[package]]\nname = "six"\nversion = "1"\nsource = { registry = "x" }\n',
            "uv export",
        ),
        ("# This file is automatically @generated by Poetry 2.1.1\n[[package]]\nname = 'six'\n", "poetry export"),
        ("# This file is @generated by PDM.\n[metadata]\n[[package]]\nname = 'six'\n", "pdm export"),
        ("version: 6\nenvironments:\n  default:\n    channels: []\npackages:\n- conda: x\n", "pixi install"),
    ],
)
@pytest.mark.parametrize("name", ["uv.lock", "locked.toml", "requirements.txt", "conda-lock.yml"])
def test_locks_of_projects_are_told_with_their_export(tmp_path: Path, name: str, text: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is a lock of") as caught:
        read(path)
    assert told in str(caught.value.hint)


def test_the_time_of_a_lock_is_not_in_it(tmp_path: Path) -> None:
    for form in READ:
        found = mixed() if form == "conda-lock" else lock(wheel("torch", "2.5.1"))
        first = saved(found, form, tmp_path).read_bytes()
        later = msgspec.structs.replace(found, created="2027-01-01T00:00:00Z")
        assert saved(later, form, tmp_path).read_bytes() == first


def test_missing_and_binary_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "nothing.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not text"):
        read(tmp_path / "x.toml")


def test_the_document_of_the_command_is_a_lock_too(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    path.write_text(to_json(mixed()), encoding="utf-8")
    assert read(path) == mixed()


def test_requirements_of_other_tools_are_read(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "--index-url https://index.example/simple\n"
        f"numpy==2.1.3 ; python_version >= '3.9' \\\n    --hash=sha256:{'1' * 64} \\\n    --hash=sha256:{'2' * 64}\n"
        f"    # via torch\ntorch @ https://files.example/torch-2.5.1%2Bcu124-py3-none-any.whl --hash=sha256:{DIGEST}\n",
        encoding="utf-8",
    )
    numpy, torch = read(path).packages
    assert numpy.accepted == ("1" * 64, "2" * 64)
    assert (torch.version, torch.sha256, torch.kind) == ("2.5.1+cu124", DIGEST, "archive")
    assert read(path).indexes == ("https://index.example/simple",)


def test_repositories_are_locked_by_their_commit_in_pylock_alone() -> None:
    item = wheel("tool", kind="vcs", url="https://git.example/tool", revision=COMMIT, sha256=None, filename=None)
    document = Pylock.from_dict(toml.loads(pylock.text(lock(item))))
    vcs = document.packages[0].vcs
    assert vcs is not None
    assert (vcs.url, vcs.commit_id) == ("https://git.example/tool", COMMIT)
    assert completeness.missing(item, requirements.FORMAT) is not None
    assert f"tool @ git+https://git.example/tool@{COMMIT}" in environment.text(lock(item))


def test_what_each_format_cannot_hold_is_named() -> None:
    unhashed = wheel("torch", sha256=None)
    unknown_place = wheel("torch", url=None)
    editable = wheel("mine", kind="editable", url=None, sha256=None)
    no_md5 = LockedPackage(manager="conda", name="x", version="1", kind="conda", url="https://x/y.conda", sha256=DIGEST)
    cases: list[tuple[LockedPackage, set[LockFormatName]]] = [
        (unhashed, {"environment"}),
        (unknown_place, {"requirements", "environment", "dockerfile"}),
        (editable, set()),
        (no_md5, {"environment"}),
        (conda("x"), {"conda-lock", "environment", "dockerfile"}),
    ]
    for item, holds in cases:
        assert {name for name, form in LOCK_FORMATS.items() if completeness.missing(item, form) is None} == holds


def test_a_file_is_claimed_by_one_format_and_by_that_which_wrote_it(tmp_path: Path) -> None:
    for name in LOCK_FORMATS:
        path = saved(mixed(), name, tmp_path)
        claimed = [form.name for form in LOCK_FORMATS.values() if form.recognises(path, path.read_text("utf-8"))]
        assert claimed == ([] if name == "requirements" else [name])


def test_a_conda_lock_without_conda_packages_is_incomplete() -> None:
    judged = completeness.with_gaps(lock(wheel("torch")), conda_lock.FORMAT)
    assert [item.name for item in judged.incomplete] == ["python"]


def test_environment_yml_holds_the_versions_and_a_pip_section() -> None:
    found = YAML(typ="safe").load(environment.text(mixed()))
    assert found == {
        "name": "train",
        "channels": ["https://conda.example/forge", "nodefaults"],
        "dependencies": ["pip=1.0=0", "python=3.11.7=0", {"pip": ["torch==2.5.1+cu124"]}],
    }


@pytest.mark.parametrize("word", ["yes", "1.0", "a: b", "a #b", "null", "'", "- x", "*", "x:", "ümlaut", "a\nb"])
def test_words_stay_texts_in_yaml(word: str) -> None:
    assert YAML(typ="safe").load(f"- {environment.scalar(word)}\n") == [word]


def stages(text: str) -> list[str]:
    return [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")]


def test_the_image_fits_the_cuda_of_the_environment() -> None:
    built = wheel("flash-attn", kind="sdist")
    assert dockerfile.image(lock(wheel("torch"))) == "nvidia/cuda:12.4.1-runtime-ubuntu22.04"
    assert dockerfile.image(lock(built, builds=True)) == "nvidia/cuda:12.4.1-devel-ubuntu22.04"
    assert dockerfile.image(lock(wheel("torch"), cuda="14.2")) == "nvidia/cuda:14.2.0-runtime-ubuntu22.04"
    assert dockerfile.image(lock(wheel("torch"), cuda=None)) == "ubuntu:22.04"


def test_a_dockerfile_carries_the_lock_in_it() -> None:
    text = dockerfile.text(lock(wheel("torch")))
    assert stages(text) == ["nvidia/cuda:12.4.1-runtime-ubuntu22.04"]
    assert "uv venv --python 3.11.7 /opt/env" in text
    assert f"torch===1.0 \\\n    --hash=sha256:{DIGEST}\nEOF" in text
    assert "--require-hashes" in text
    assert "@sha256" not in text


def test_a_dockerfile_of_a_conda_environment_makes_it_in_a_stage_of_its_own() -> None:
    text = dockerfile.text(mixed())
    assert stages(text) == [dockerfile.CONDA_IMAGE, "nvidia/cuda:12.4.1-runtime-ubuntu22.04"]
    explicit = text.split("@EXPLICIT\n")[1].split("EOF")[0].splitlines()
    assert explicit[0].endswith(f"python-3.11.7-0.conda#{'b' * 32}")
    assert len(explicit) == 2
    assert "COPY --from=conda /opt/env /opt/env" in text


def test_lines_of_requirements_are_those_of_what_is_elsewhere() -> None:
    labelled = wheel("torch", "2.5.1+cu124", index="https://torch.example/cu124")
    assert requirements.requirement(labelled) == f"torch @ {labelled.url}"
    assert requirements.requirement(wheel("numpy")) == "numpy==1.0"
    assert requirements.requirement(wheel("torch", "2.5.1")) == "torch===2.5.1"


def test_what_py_rattler_records_of_an_exact_version_is_what_conda_does() -> None:
    one, other = (
        conda_lock.text(
            lock(conda("python", "3.11.7"), conda("torch", requires=(f"mutex {exact}", "cuda >=12|==11.8")))
        )
        for exact in ("==1.0 cuda", "1.0 cuda")
    )
    assert one == other
    assert "mutex: 1.0 cuda" in one
    assert "cuda: '>=12|==11.8'" in one


def test_a_wheel_of_another_index_is_none_that_was_installed_by_its_url(tmp_path: Path) -> None:
    name = "torch-2.5.1%2Bcu124-py3-none-any.whl"
    indexed = wheel("torch", "2.5.1+cu124", index="https://torch.example/cu124", url=f"{FILES}/{name}")
    by_url = wheel("vision", "2.5.1+cu124", kind="archive", url=f"{FILES}/{name}")
    path = tmp_path / "requirements.txt"
    path.write_text(requirements.text(lock(indexed, by_url)), encoding="utf-8")
    found = [(item.kind, item.index, item.filename) for item in read(path).packages]
    assert found == [
        ("wheel", "https://torch.example/cu124", "torch-2.5.1+cu124-py3-none-any.whl"),
        ("archive", None, "torch-2.5.1+cu124-py3-none-any.whl"),
    ]


def test_importing_conda_locks_models_leaves_its_command_line_alone() -> None:
    code = "import sys; from envmedic.locks.formats import conda_lock; conda_lock.libraries(); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "conda_lock.lockfile.v1.models" in loaded
    assert not {"conda_lock", "conda_lock.lockfile", "conda_lock.conda_lock", "click", "requests"} & set(loaded)
    assert conda_lock.VERSION == 1


def test_entries_of_a_pylock_are_those_of_its_default_groups(tmp_path: Path) -> None:
    entry = (
        '[[packages]]\nname = "{}"\nversion = "1"\nmarker = "\'{}\' in dependency_groups"\n'
        '[[packages.wheels]]\nname = "{}-1-py3-none-any.whl"\nurl = "https://example.org/{}-1-py3-none-any.whl"\n'
        f'hashes = {{{{ sha256 = "{"0" * 64}" }}}}\n'
    )
    head = 'lock-version = "1.0"\ncreated-by = "pdm"\ndependency-groups = ["default", "docs"]\ndefault-groups = ["default"]\n'
    text = head + "".join(entry.format(name, group, name, name) for name, group in (("a", "default"), ("b", "docs")))
    path = tmp_path / "pylock.toml"
    path.write_text(text, encoding="utf-8")
    assert [item.name for item in read(path).packages] == ["a"]
