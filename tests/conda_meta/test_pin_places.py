"""Where the pins of conda's configuration stand: file and line, or the variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.installers.conda.configuration import condarc, configuration


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """An environment, and variables of a user whose home is empty."""
    (tmp_path / "home").mkdir()
    (tmp_path / "env" / "conda-meta").mkdir(parents=True)
    return tmp_path / "env", {"HOME": str(tmp_path / "home"), "PATH": ""}


def test_each_pin_has_its_line_and_the_stronger_file_counts(places: tuple[Path, dict[str, str]]) -> None:
    prefix, environ = places
    mine, own = Path(environ["HOME"], ".condarc"), prefix / ".condarc"
    mine.write_text(
        "# numpy 1.2 was too old\nchannels: [a]\npinned_packages:\n  - numpy 1.26.*\n  - 'numpy 1.2'\n  - mkl 2023.1\n"
    )
    own.write_text("pinned_packages: [mkl 2023.1, python $MINOR.*]\n")
    environ |= {"MINOR": "3.11"}
    assert condarc.pin_places(prefix, None, environ) == {
        "numpy 1.26.*": f"{mine}:4", "numpy 1.2": f"{mine}:5", "mkl 2023.1": f"{own}:1", "python 3.11.*": f"{own}:1",
    }  # fmt: skip


def test_a_pin_of_a_variable_and_one_that_yaml_writes_otherwise(places: tuple[Path, dict[str, str]]) -> None:
    prefix, environ = places
    mine = Path(environ["HOME"], ".condarc")
    mine.write_text('offline: false\npinned_packages:\n  - "numpy\\u0020 1.26"\n')
    environ |= {"CONDA_PINNED_PACKAGES": "mkl 2023.1&blas 1.*"}
    assert condarc.pin_places(prefix, None, environ) == {
        "numpy  1.26": f"{mine}:2", "mkl 2023.1": "CONDA_PINNED_PACKAGES", "blas 1.*": "CONDA_PINNED_PACKAGES",
    }  # fmt: skip


def test_the_configuration_of_an_environment_has_them(places: tuple[Path, dict[str, str]]) -> None:
    prefix, environ = places
    assert configuration.read(prefix, environ=environ).pin_places == {}
    own = prefix / ".condarc"
    own.write_text("channels: [conda-forge]\npinned_packages:\n  - mkl 2023.1\n")
    found = configuration.read(prefix, environ=environ)
    assert found.pinned == ("mkl 2023.1",)
    assert found.pin_places == {"mkl 2023.1": f"{own}:3"}


def test_a_file_that_is_not_read_leaves_its_pins_without_a_place(places: tuple[Path, dict[str, str]]) -> None:
    prefix, environ = places
    Path(environ["HOME"], ".condarc").write_text("pinned_packages: {numpy: 1}\n")
    own = prefix / ".condarc"
    own.write_text("pinned_packages: [mkl 2023.1]\n")
    assert condarc.pin_places(prefix, None, environ) == {"mkl 2023.1": f"{own}:1"}
