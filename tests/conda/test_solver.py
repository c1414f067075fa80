"""Requests solved to exact changes: what stays stays to the build string, and refusals name their reason."""

from __future__ import annotations

import dataclasses
import json
import py_compile
import shutil
from pathlib import Path

import msgspec
import pytest

import envmedic
from envmedic.errors import DamagedByteCode, InputError, InstallerError, NetworkError, NoSolution, PinnedVersions
from envmedic.installers.conda.configuration.channels import ChannelSource
from envmedic.installers.conda.configuration.configuration import CondaConfiguration
from envmedic.installers.conda.solve import helper_client, kept_pins, solving, virtual_packages
from envmedic.model.conda import CondaChange, CondaEnvironment, CondaPackage, CondaRequest
from envmedic.model.events import EventData
from envmedic.model.facts import Environment, Host, Interpreter
from envmedic.model.pins import LiftedPin
from tests.conda.changes import TEST_HOST, environment_of
from tests.conda.channel import Channels, noarch
from tests.gallery.repair_gallery.conda.package import Package, write_channel

pytestmark = pytest.mark.long

GPU = ("pytorch=2.3.1", "torchvision", "pytorch-cuda=12.1")
CPU = ("pytorch=2.3.1", "torchvision", "pytorch-mutex=1.0=cpu")


class Asked:
    """An environment that exists on paper, with what a solver knows of it."""

    def __init__(self, urls: list[str], cache: Path) -> None:
        self.sources = tuple(ChannelSource(url, (url,)) for url in urls)
        self.host = TEST_HOST
        self.conda = CondaEnvironment()
        self.events: list[EventData] = []
        self.configuration = CondaConfiguration(sources=self.sources)
        self.prefix = Path("/nowhere/env")
        self._cache = cache

    def resolve(self, request: CondaRequest) -> CondaChange:
        environment = msgspec.structs.replace(environment_of(self.conda), real_prefix=str(self.prefix))
        solver = solving.Solver(
            environment, self.host, self.configuration, self.events.append, str(self._cache), "rattler"
        )
        return solver.change(request)

    def install(self, *specs: str) -> None:
        """Let the environment have what a solver chooses for `specs`."""
        found = self.resolve(CondaRequest(specs=("python=3.11", *specs))).install
        packages = [as_installed(item.metadata) for item in found]
        self.conda = msgspec.structs.replace(self.conda, packages=tuple(packages))

    def change(self, name: str, **fields: object) -> None:
        """Let an installed package be another than it was."""
        packages = [
            msgspec.structs.replace(item, **fields) if item.name == name else item for item in self.conda.packages
        ]
        self.conda = msgspec.structs.replace(self.conda, packages=tuple(packages))


def as_installed(metadata: dict[str, object]) -> CondaPackage:
    renamed = {"fn": "filename", "size": "size_bytes"}
    known = {renamed.get(key, key): value for key, value in metadata.items()}
    features = str(known.get("track_features") or "").split()
    fields = {key: known[key] for key in CondaPackage.__struct_fields__ if key in known}
    return msgspec.convert({**fields, "track_features": features}, CondaPackage)


@pytest.fixture
def asked(local: Channels, tmp_path: Path) -> Asked:
    return Asked(local.old, tmp_path / "repodata")


def summary(change: CondaChange) -> dict[str, str]:
    """Name → what becomes of it."""
    new = {item.name: f"{item.version} {item.build}" for item in change.install}
    return {item.name: "gone" for item in change.remove} | new


def test_only_what_is_named_changes_and_what_it_cannot_do_without(asked: Asked) -> None:
    asked.install(*GPU, "filelock=3.15.4", "numpy=1.26")
    change = asked.resolve(CondaRequest(specs=CPU, remove=("pytorch-cuda",), removable=("cuda-*",)))
    assert summary(change) == {
        "pytorch": "2.3.1 py3.11_cpu_0",
        "torchvision": "0.18.1 py311_cpu",
        "pytorch-mutex": "1.0 cpu",
        "pytorch-cuda": "gone",
        "cuda-cudart": "gone",
    }
    assert change.specs == CPU
    assert change.remove_specs == ("pytorch-cuda",)
    torch = next(item for item in change.install if item.name == "pytorch")
    assert torch.url.endswith("/pytorch/linux-64/pytorch-2.3.1-py3.11_cpu_0.tar.bz2")
    assert torch.channel == asked.sources[0].urls[0]
    assert torch.sha256
    assert torch.metadata["depends"]


def test_what_may_not_change_forbids(asked: Asked) -> None:
    asked.install(*GPU)
    with pytest.raises(NoSolution) as refusal:
        asked.resolve(CondaRequest(specs=("pytorch=2.4.1",)))
    assert "torchvision" in " ".join(refusal.value.details)


def test_replaceable_packages_change_as_far_as_they_must(asked: Asked) -> None:
    asked.install(*GPU)
    change = asked.resolve(CondaRequest(specs=("pytorch=2.4.1",), replaceable=("torch*",)))
    assert summary(change) == {
        "pytorch": "2.4.1 py3.11_cuda12.1_cudnn8.9.2_0",
        "torchvision": "0.19.1 py311_cu121",
    }


def test_nothing_to_do_is_an_empty_change(asked: Asked) -> None:
    asked.install(*GPU)
    assert asked.resolve(CondaRequest(specs=("pytorch=2.3.1",))) == CondaChange(specs=("pytorch=2.3.1",))


def test_what_is_to_go_does_not_come_back(asked: Asked) -> None:
    asked.install(*GPU)
    with pytest.raises(NoSolution) as refusal:
        asked.resolve(CondaRequest(specs=("torchvision",), remove=("pytorch",)))
    assert "pytorch is to be removed" in " ".join(refusal.value.details)


def test_what_depends_on_a_removed_package_goes_only_where_it_may(asked: Asked) -> None:
    asked.install(*GPU, "torchaudio")
    with pytest.raises(NoSolution):
        asked.resolve(CondaRequest(remove=("pytorch",), removable=("torchvision",)))
    change = asked.resolve(CondaRequest(remove=("pytorch",), removable=("torchvision", "torchaudio")))
    assert summary(change) == dict.fromkeys(("pytorch", "torchaudio", "torchvision"), "gone")


def test_what_may_go_and_has_nothing_to_do_with_it_stays(asked: Asked) -> None:
    asked.install(*GPU, "tqdm")
    change = asked.resolve(CondaRequest(remove=("torchvision",), removable=("*",)))
    assert "tqdm" not in summary(change)
    assert summary(change)["torchvision"] == "gone"


def test_damaged_packages_come_again_as_they_were(asked: Asked) -> None:
    asked.install(*GPU)
    change = asked.resolve(CondaRequest(reinstall=("pytorch",)))
    assert summary(change) == {"pytorch": "2.3.1 py3.11_cuda12.1_cudnn8.9.2_0"}
    assert [item.name for item in change.remove] == ["pytorch"]


def test_a_package_whose_channel_lacks_it_by_now_may_stay(asked: Asked) -> None:
    asked.install(*GPU)
    asked.change(
        "mkl", version="1999.1", build="gone_0", url="https://nowhere.invalid/linux-64/mkl-1999.1-gone_0.conda"
    )
    change = asked.resolve(CondaRequest(specs=("filelock=3.15.4",)))
    assert summary(change) == {"filelock": "3.15.4 pyhd8ed1ab_0"}


def test_what_was_unmet_before_is_no_obstacle(asked: Asked) -> None:
    """A package that was forced into place keeps nothing else from being repaired."""
    asked.install(*GPU)
    asked.change("torchvision", depends=("pytorch 1.0", "numpy >=99"), constrains=("pillow <1",))
    change = asked.resolve(CondaRequest(specs=("filelock=3.15.4",)))
    assert summary(change) == {"filelock": "3.15.4 pyhd8ed1ab_0"}


def test_pins_bind_what_comes_and_not_what_stays(asked: Asked) -> None:
    asked.install(*GPU, "filelock=3.15.4")
    asked.conda = msgspec.structs.replace(asked.conda, pinned=("pytorch 2.3.*", "filelock 1.0"))
    assert asked.resolve(CondaRequest(specs=("numpy=1.26",))).install
    with pytest.raises(NoSolution) as refusal:
        asked.resolve(CondaRequest(specs=("pytorch=2.4.1",), replaceable=("torch*",)))
    assert "2.3.*" in " ".join(refusal.value.details)


def test_pins_in_the_way_are_named_with_their_place(asked: Asked, tmp_path: Path) -> None:
    asked.install(*GPU)
    asked.prefix = tmp_path / "env"
    (asked.prefix / "conda-meta").mkdir(parents=True)
    (asked.prefix / "conda-meta/pinned").write_text("# held\n\npytorch 2.3.*\n", encoding="utf-8")
    asked.conda = msgspec.structs.replace(asked.conda, pinned=("pytorch 2.3.*",))
    with pytest.raises(NoSolution) as refusal:
        asked.resolve(CondaRequest(specs=("pytorch=2.4.1",), replaceable=("torch*",)))
    assert (refusal.value.cause or "").startswith(f"{asked.prefix}/conda-meta/pinned:3 pins pytorch 2.3.*")
    (asked.prefix / "conda-meta/pinned").unlink()
    asked.conda = msgspec.structs.replace(asked.conda, pinned=())
    asked.configuration = dataclasses.replace(asked.configuration, pinned=("pytorch 2.3.*",))
    with pytest.raises(NoSolution, match="that you have pinned") as refusal:
        asked.resolve(CondaRequest(remove=("pytorch",), removable=("*",)))
    assert refusal.value.cause == "pinned_packages of conda's configuration pins pytorch 2.3.*"
    places = {"pytorch 2.3.*": "/home/me/.condarc:4"}
    asked.configuration = dataclasses.replace(asked.configuration, pin_places=places)
    with pytest.raises(NoSolution, match="that you have pinned") as refusal:
        asked.resolve(CondaRequest(remove=("pytorch",), removable=("*",)))
    assert refusal.value.cause == "/home/me/.condarc:4 pins pytorch 2.3.*"


@pytest.mark.parametrize("pin", ["pytorch=2.3", "pytorch  2.3.1", "pytorch<2.4"])
def test_a_pin_in_the_way_is_named_however_it_is_written(asked: Asked, pin: str) -> None:
    asked.install(*GPU)
    asked.conda = msgspec.structs.replace(asked.conda, pinned=(pin, "torchvision >=0.18"))
    wanted = CondaRequest(specs=("pytorch=2.4.1",), replaceable=("torch*",))
    with pytest.raises(PinnedVersions, match="No conda packages") as refusal:
        asked.resolve(wanted)
    assert refusal.value.pins == (("pinned_packages of conda's configuration", pin),)
    assert summary(asked.resolve(msgspec.structs.replace(wanted, lifted=(pin,))))["pytorch"].startswith("2.4.1 ")


@pytest.mark.parametrize(
    ("pin", "instead"),
    [
        ("pytorch=2.3", "pytorch 2.4.*"),
        ("pytorch 2.3.*", "pytorch 2.4.*"),
        ("pytorch 2.3.1", "pytorch 2.4.1"),
        ("pytorch >=2.1,<2.4", "pytorch >=2.1,<=2.4.1"),
        ("pytorch 2.3.1 py3.11_cuda12.1_cudnn8.9.2_0", "pytorch 2.4.1"),
        ("pytorch <2.4|2.9.*", "pytorch 2.4.1"),
    ],
)
def test_what_would_have_to_be_pinned_instead(asked: Asked, pin: str, instead: str) -> None:
    asked.install(*GPU)
    change = asked.resolve(CondaRequest(specs=("pytorch=2.4.1",), replaceable=("torch*",)))
    (found,) = kept_pins.unkept([("/etc/.condarc:3", pin), ("/etc/.condarc:4", "pytorch >2")], change)
    assert found == LiftedPin(pin=pin, source="/etc/.condarc:3", kind="conda", instead=instead)
    gone = asked.resolve(CondaRequest(remove=("pytorch",), removable=("*",)))
    (found,) = kept_pins.unkept([("/etc/.condarc:3", pin)], gone)
    assert found.instead is None


def test_a_pin_that_cannot_be_read_is_named(asked: Asked) -> None:
    asked.install(*GPU)
    asked.conda = msgspec.structs.replace(asked.conda, pinned=("=== not a spec",))
    with pytest.raises(InputError, match="=== not a spec"):
        asked.resolve(CondaRequest(specs=("numpy",)))


def test_the_driver_is_named_where_it_is_what_forbids(local: Channels, tmp_path: Path) -> None:
    asked = Asked([local.forge], tmp_path / "repodata")
    asked.install("filelock")
    asked.host = msgspec.structs.replace(TEST_HOST, driver_cuda="11.4")
    with pytest.raises(NoSolution) as refusal:
        asked.resolve(CondaRequest(specs=("pytorch-gpu", "cuda-version=12.6")))
    assert (
        refusal.value.cause
        == "cuda-version 12.6 needs __cuda >=12, and the NVIDIA driver of this host supports CUDA 11.4"
    )
    asked.host = msgspec.structs.replace(TEST_HOST, driver_cuda=None, driver_version=None)
    with pytest.raises(NoSolution) as refusal:
        asked.resolve(CondaRequest(specs=("pytorch-gpu",)))
    assert "this host has no NVIDIA driver" in (refusal.value.cause or "")


def test_of_several_channels_the_first_that_has_a_package_gives_it(asked: Asked, tmp_path: Path) -> None:
    asked.install(*GPU)
    url = write_channel(tmp_path / "extra", [noarch("filelock", "99.0"), noarch("filelock", "3.14.0")])
    asked.configuration = CondaConfiguration(sources=(*asked.sources, ChannelSource(url, (url,))), priority="strict")
    assert summary(asked.resolve(CondaRequest(specs=("filelock=3.15.4",)))) == {"filelock": "3.15.4 pyhd8ed1ab_0"}
    with pytest.raises(NoSolution):
        asked.resolve(CondaRequest(specs=("filelock=99",)))
    asked.configuration = CondaConfiguration(sources=asked.configuration.sources, priority="flexible")
    assert summary(asked.resolve(CondaRequest(specs=("filelock=99",)))) == {"filelock": "99.0 pyhd8ed1ab_0"}
    first = CondaRequest(specs=("filelock>=3",), channels=(url,))
    asked.change("filelock", version="0.1")
    assert summary(asked.resolve(first)) == {"filelock": "99.0 pyhd8ed1ab_0"}


def test_a_channel_that_is_gone_is_an_error_only_where_it_is_needed(asked: Asked, tmp_path: Path) -> None:
    asked.install(*GPU)
    gone = (tmp_path / "gone").as_uri()
    asked.configuration = CondaConfiguration(sources=(*asked.sources, ChannelSource(gone, (gone,))))
    with pytest.raises(NetworkError) as refusal:
        asked.resolve(CondaRequest(specs=("numpy=1.26",)))
    assert gone in (refusal.value.cause or "")
    asked.configuration = CondaConfiguration(sources=(*asked.sources, ChannelSource(gone, (gone,), optional=True)))
    assert asked.resolve(CondaRequest(specs=("numpy=1.26",))).install
    assert gone in str(asked.events[-1])
    with pytest.raises(NetworkError):
        asked.resolve(CondaRequest(specs=("only-there",)))


def test_a_new_python_brings_every_noarch_package_again(tmp_path: Path, local: Channels) -> None:
    newer = Package("python", "3.12.1", "0")
    url = write_channel(tmp_path / "extra", [newer])
    asked = Asked([*local.old], tmp_path / "repodata")
    asked.install("filelock", "sympy", "openssl=3.0.15")
    change = asked.resolve(CondaRequest(specs=("python=3.12",), channels=(url,)))
    names = set(summary(change))
    assert {"python", "filelock", "sympy", "mpmath"} <= names
    assert "openssl" not in names
    filelock = next(item for item in change.install if item.name == "filelock")
    assert filelock.version == next(item.version for item in asked.conda.packages if item.name == "filelock")


def test_a_spec_that_cannot_be_read_is_an_input_error(asked: Asked) -> None:
    with pytest.raises(InputError):
        asked.resolve(CondaRequest(specs=("pytorch[",)))


def test_a_helper_that_takes_too_long_or_fails_is_an_installer_error() -> None:
    with pytest.raises(InstallerError, match="gave no answer within"):
        helper_client.ask({"do": "solve"}, timeout_s=0.001)
    with pytest.raises(InstallerError) as refusal:
        helper_client.ask({"do": "nothing of the kind"}, timeout_s=60)
    assert "nothing of the kind" in (refusal.value.cause or "")


def test_damaged_byte_code_of_the_helper_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(Path(envmedic.__file__).parent, tmp_path / "envmedic", ignore=shutil.ignore_patterns("*.pyc"))
    source = tmp_path / "envmedic/installers/conda/helper/operations.py"
    compiled = Path(py_compile.compile(str(source), doraise=True) or "")
    compiled.write_bytes(compiled.read_bytes()[:99])
    places = (str(tmp_path), *helper_client.paths())
    monkeypatch.setattr(helper_client, "paths", lambda: places)
    with pytest.raises(DamagedByteCode, match="operations"):
        helper_client.ask({"do": "solve"}, timeout_s=600)


def test_what_happens_at_the_end_of_the_interpreter_does_not_spoil_the_answer(tmp_path: Path) -> None:
    """py-rattler crashes there now and then; here a module does that always."""
    fake = tmp_path / "envmedic" / "installers" / "conda" / "helper"
    fake.mkdir(parents=True)
    for folder in (fake, *fake.parents[:3]):
        (folder / "__init__.py").touch()
    (fake / "operations.py").write_text(
        "import atexit, os, signal\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGSEGV)\n"
        "OPERATIONS = {'solve': lambda request: {'packages': []}}\n"
    )
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"do": "solve", "paths": [str(tmp_path)]}))
    from envmedic import proc

    result = proc.run(helper_client.command("-", str(request)), timeout_s=60)
    assert result.returncode == 0
    assert result.stdout == f'{helper_client.MARK}{{"packages": []}}\n'


def test_virtual_packages_are_those_of_the_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_GLIBC", "2.99")
    known = {name: version for name, version, _ in virtual_packages.packages(TEST_HOST)}
    assert known == {"__unix": "0", "__linux": "6.1.0", "__glibc": "2.36", "__cuda": "12.2", "__archspec": "1"}
    here = msgspec.structs.replace(TEST_HOST, source="observed")
    known = {name: version for name, version, _ in virtual_packages.packages(here)}
    assert known["__glibc"] == "2.99"
    assert "__archspec" not in known  # py-rattler says that of this machine
    without = msgspec.structs.replace(TEST_HOST, driver_cuda=None, driver_version=None)
    assert "__cuda" not in {name for name, _, _ in virtual_packages.packages(without)}


def test_the_drivers_version_tells_the_cuda_that_it_supports() -> None:
    host = Host(driver_version="550.54.15")
    assert virtual_packages.cuda(host) == "12.4"
    assert virtual_packages.cuda(Host(driver_version="1.0")) is None
    assert virtual_packages.cuda(Host()) is None


def test_an_environment_without_conda_has_nothing_to_solve(asked: Asked) -> None:
    plain = Environment(
        prefix="/p", real_prefix="/p", kind="venv", digest="", interpreter=Interpreter(path="/p", starts=True)
    )
    solver = solving.Solver(plain, TEST_HOST, asked.configuration, asked.events.append, None, "rattler")
    with pytest.raises(InputError):
        solver.change(CondaRequest(specs=("numpy",)))
