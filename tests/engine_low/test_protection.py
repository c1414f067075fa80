"""Environments that stay as they are are refused with what works for them, and with what lifts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envmedic.engine.store.protection import refuse_protected
from envmedic.errors import PreflightError
from envmedic.model.registries.modes import AllowName


def _conda(prefix: Path) -> Path:
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "conda-meta/history").write_text("")
    return prefix


def _refusal(prefix: Path, allow: AllowName) -> PreflightError:
    """Why it is refused; with `allow` it is not."""
    with pytest.raises(PreflightError) as caught:
        refuse_protected(prefix, ())
    refuse_protected(prefix, (allow,))
    return caught.value


def test_a_plain_conda_environment_is_not_protected(tmp_path: Path) -> None:
    refuse_protected(_conda(tmp_path / "envs/x"), ())


@pytest.mark.parametrize("sign", ["condabin", "pkgs", "envs"])
def test_base_is_refused(tmp_path: Path, sign: str) -> None:
    prefix = _conda(tmp_path / "miniforge")
    (prefix / sign).mkdir()
    error = _refusal(prefix, "base")
    assert "base environment" in (error.cause or "")
    assert "conda create" in (error.hint or "")
    assert "--allow base" in (error.hint or "")


@pytest.mark.parametrize(
    ("content", "told"), [("", "as frozen"), (json.dumps({"message": "ask the admins"}), "as frozen: ask the admins")]
)
def test_frozen_is_refused_with_its_makers_message(tmp_path: Path, content: str, told: str) -> None:
    prefix = _conda(tmp_path / "x")
    (prefix / "conda-meta/frozen").write_text(content)
    error = _refusal(prefix, "frozen")
    assert (error.cause or "").endswith(told)
    assert "--allow frozen" in (error.hint or "")


def test_pixis_environment_is_refused_with_pixis_way(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/pixi.toml").write_text("")
    error = _refusal(_conda(tmp_path / "app/.pixi/envs/gpu"), "external")
    assert "undoes what others change" in (error.cause or "")
    assert error.hint == (
        f"Change it with `pixi add PACKAGE` (or `pixi reinstall --environment gpu`) in {tmp_path / 'app'}, "
        "or use --allow external if you mean it"
    )


def test_a_global_environment_of_pixi_is_refused_with_its_way(tmp_path: Path) -> None:
    error = _refusal(_conda(tmp_path / "home/.pixi/envs/ruff"), "external")
    assert "pixi global add --environment ruff PACKAGE" in (error.hint or "")


def test_a_workspace_is_refused_with_its_way(tmp_path: Path) -> None:
    (tmp_path / "conda.toml").write_text("[workspace]\n")
    error = _refusal(_conda(tmp_path / ".conda/envs/default"), "external")
    assert f"conda workspace add PACKAGE` in {tmp_path}," in (error.hint or "")


def test_every_protection_must_be_lifted(tmp_path: Path) -> None:
    prefix = _conda(tmp_path / "x/.pixi/envs/default")
    (prefix / "conda-meta/frozen").write_text("")
    (prefix / "condabin").mkdir()
    for allow in ((), ("base",), ("base", "frozen")):
        with pytest.raises(PreflightError):
            refuse_protected(prefix, allow)
    refuse_protected(prefix, ("base", "frozen", "external"))
