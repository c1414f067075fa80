"""Configuration of pip and uv."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.probe.packages import index_configuration


def rows(tmp_path: Path, variables: dict[str, str]) -> list[tuple[str, str, str, str]]:
    base = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "xdg")}
    found = index_configuration.observe(tmp_path / "env", {**base, **variables})
    return [
        (item.tool, item.key, item.value, item.source.replace(str(tmp_path), ""))
        for item in found
        if not item.source.startswith("/etc/")
    ]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_files_of_pip_are_read_from_global_to_environment_and_variables_come_last(tmp_path: Path) -> None:
    write(tmp_path / "xdg/pip/pip.conf", "[global]\nindex-url = https://one/simple\n")
    write(tmp_path / "home/.pip/pip.conf", "[global]\nindex_url = https://two/simple\n")
    write(tmp_path / "home/.config/pip/pip.conf", "[install]\nfind-links =\n  /wheels\n  https://three/links\n")
    write(tmp_path / "env/pip.conf", "[global]\nextra-index-url = https://four/simple\n[freeze]\nindex-url = no\n")
    assert rows(tmp_path, {"PIP_EXTRA_INDEX_URL": "https://five/s https://six/s", "PIP_NO_INDEX": "1"}) == [
        ("pip", "index-url", "https://one/simple", "/xdg/pip/pip.conf"),
        ("pip", "index-url", "https://two/simple", "/home/.pip/pip.conf"),
        ("pip", "find-links", "/wheels", "/home/.config/pip/pip.conf"),
        ("pip", "find-links", "https://three/links", "/home/.config/pip/pip.conf"),
        ("pip", "extra-index-url", "https://four/simple", "/env/pip.conf"),
        ("pip", "extra-index-url", "https://five/s", "PIP_EXTRA_INDEX_URL"),
        ("pip", "extra-index-url", "https://six/s", "PIP_EXTRA_INDEX_URL"),
        ("pip", "no-index", "1", "PIP_NO_INDEX"),
    ]


def test_chosen_file_replaces_the_users_and_the_null_device_all(tmp_path: Path) -> None:
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex-url = https://user/\n")
    write(tmp_path / "chosen.conf", "[global]\nindex-url = https://chosen/\n")
    assert [row[2] for row in rows(tmp_path, {"PIP_CONFIG_FILE": str(tmp_path / "chosen.conf")})] == ["https://chosen/"]
    assert rows(tmp_path, {"PIP_CONFIG_FILE": "/dev/null"}) == []


def test_credentials_are_hidden_everywhere(tmp_path: Path) -> None:
    write(tmp_path / "env/pip.conf", "[global]\nindex-url = https://me:pa%40ss@host/simple\n")
    write(tmp_path / "home/.config/uv/uv.toml", '[[index]]\nname = "in"\nurl = "https://tok@host/simple"\n')
    found = rows(tmp_path, {"UV_INDEX": "corp=https://a:b@h/simple", "PIP_EXTRA_INDEX_URL": "https://x:y@h/"})
    assert [row[2] for row in found] == [
        "https://***@host/simple",
        "https://***@h/",
        "in=https://***@host/simple",
        "corp=https://***@h/simple",
    ]


def test_damaged_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    write(tmp_path / "env/pip.conf", "index-url = before any section\n")
    write(tmp_path / "home/.config/uv/uv.toml", "index-url = = 3\n")
    assert [(tool, key) for tool, key, _, _ in rows(tmp_path, {})] == [("pip", "unreadable"), ("uv", "unreadable")]


def test_uv_files_and_variables(tmp_path: Path) -> None:
    write(
        tmp_path / "home/.config/uv/uv.toml",
        'find-links = ["/w"]\nno-index = true\n[pip]\ntorch-backend = "cu124"\n'
        '[[index]]\nurl = "https://default/"\ndefault = true\n[[index]]\nurl = "https://more/"\n[[index]]\nname = "x"\n',
    )
    found = rows(tmp_path, {"UV_DEFAULT_INDEX": "https://env/", "UV_TORCH_BACKEND": "auto", "UV_FIND_LINKS": "/a,/b"})
    assert [row[1:3] for row in found] == [
        ("find-links", "/w"),
        ("no-index", "true"),
        ("torch-backend", "cu124"),
        ("index-url", "https://default/"),
        ("extra-index-url", "https://more/"),
        ("index-url", "https://env/"),
        ("find-links", "/a"),
        ("find-links", "/b"),
        ("torch-backend", "auto"),
    ]


@pytest.mark.parametrize("variables", [{"UV_NO_CONFIG": "1"}, {"UV_CONFIG_FILE": "/nonexistent.toml"}])
def test_uv_can_be_told_to_leave_its_files(tmp_path: Path, variables: dict[str, str]) -> None:
    write(tmp_path / "home/.config/uv/uv.toml", 'index-url = "https://user/"\n')
    assert rows(tmp_path, variables) == []


@pytest.mark.parametrize("text", ["pip = 3\n", "index = 5\n", "index = [1, {}]\n", 'find-links = [1, "a"]\n', ""])
def test_unexpected_values_in_uv_files_are_left_out(text: str) -> None:
    assert [item.value for item in index_configuration.parse_uv(text, "uv.toml") if item.key == "unreadable"] == []
