"""Fuzzing of what package managers are told: locks, configuration files, lists of requirements, commands."""

from __future__ import annotations

from pathlib import Path

from envmedic.errors import EnvmedicError
from envmedic.installers.conda.configuration import configuration as conda_configuration
from envmedic.installers.index import configuration
from envmedic.installers.resolution import requirement_files, uv_options
from envmedic.installers.uv import uv_help
from envmedic.locks import reading
from envmedic.model.base import from_json, to_json
from envmedic.model.lock import Lock
from envmedic.model.ports import ResolveRequest
from envmedic.planner.guard import command_words
from envmedic.probe.prefix import finder
from tests.fuzz.target import CONDA, JSON, Reader, Target

CONDA_LOCK = b"""# made by a tool
version: 1
metadata:
  content_hash: {linux-64: ab}
  channels: [{url: conda-forge, used_env_vars: []}]
  platforms: [linux-64]
  sources: [environment.yml]
  time_metadata: {created_at: '2026-01-02T03:04:05Z'}
  custom_metadata: {envmedic: 0.1.0, platform: linux-64, verified: 'import, pip-check'}
package:
- name: numpy
  version: 1.26.4
  manager: conda
  platform: linux-64
  dependencies: {python: '>=3.11,<3.12.0a0', libblas: '*'}
  url: https://conda.anaconda.org/conda-forge/linux-64/numpy-1.26.4-py311h1_0.conda
  hash: {md5: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, sha256: bb}
  category: main
  optional: false
- {name: demo, version: '1.0', manager: pip, platform: linux-64, dependencies: {}, category: main, optional: false,
   url: 'https://u:p@example.org/demo-1.0-py3-none-any.whl#sha256=cc', hash: {sha256: cc}}
"""
CONDARC = b"""channels: [conda-forge, defaults, 'https://u:p@example.org/t/tok-en/own']
default_channels:
  - https://repo.anaconda.com/pkgs/main
channel_alias: https://${MIRROR}/conda
custom_channels: {own: https://example.org/conda, local: {scheme: file, location: /srv/conda, name: local}}
custom_multichannels:
  mine: [own, conda-forge/label/main]
channel_priority: strict
pinned_packages: ['python 3.11.*', 'numpy<2']
proxy_servers: {http: 'http://user:pass@proxy:3128', https: null}
ssl_verify: /etc/ssl/own.pem
pkgs_dirs: [~/pkgs]
envs_dirs:
  - ~/envs
  - /srv/envs
allowlist_channels: [https://example.org]
offline: no
"""
PIP_CONF = b"""[global]
index-url = https://u:p@example.org/simple
extra-index-url =
    https://a.example/simple
    https://b.example/simple
trusted-host = example.org
no-index = false
constraint = /srv/constraints.txt
[install]
find-links = /srv/wheels https://example.org/wheels/
cert = /etc/ssl/own.pem
"""
UV_TOML = b"""index-url = "https://u:p@example.org/simple"
extra-index-url = ["https://a.example/simple"]
index-strategy = "first-index"
no-index = false
[[index]]
name = "torch"
url = "https://download.example/whl/cu124"
default = true
[pip]
no-index = true
[tool.uv]
index-url = "https://b.example"
"""
REQUIREMENTS = b"""# what is wanted
numpy>=1.20,<2 ; python_version >= "3.8"  # comment
-e git+https://example.org/demo.git@main#egg=demo
-r more.txt
torch @ https://example.org/torch-2.5.1-cp311-cp311-linux_x86_64.whl --hash=sha256:aa
demo[extra] == 1.0 \\
    --config-settings=x=y
./local
"""
COMMANDS = [
    b"pip install -U 'torch>=2.7' --extra-index-url https://u:p@example.org/simple",
    b"A=1 /opt/env/bin/python -m pip install -r requirements.txt -c constraints.txt --no-deps",
    b"uv pip install --python /opt/env --torch-backend=cu124 torch==2.7.0+cu126 ./demo[x]",
    b"conda install -y -n base -c conda-forge 'numpy[version=\">=1,<2\"]' pytorch=2.3",
    b"env micromamba update --all -p /opt/env",
]
_OF_THIS_MACHINE = ("/etc/pip.conf", "/etc/uv/uv.toml")
_YAML = (b"&a [", b"*a", b"<<: *a", b"!!python/object/apply:os.system [id]", b"!!binary ", b"!!timestamp ", b"2024-13-45", b"? ",
         b"2001-12-14t21:59:43.10-99:99", b"- ", b": ", b"|\n", b"{{", b"---\n", b"...\n", b"%YAML 1.1\n", b"0o17", b"1:60:60",
         b"~", b".inf", b"!!set {a, b}", b"!!omap [a: 1]", b"[" * 3000, b"- " * 3000, b"{a: " * 1000)  # fmt: skip


def _bombs(list_name: bytes) -> list[bytes]:
    """Small texts whose values are large, contain themselves, or are dates and numbers that there are not."""
    doubled = [b"x0: &x0 [lol, lol]"] + [
        b"x%d: &x%d [%s]" % (n, n, b", ".join([b"*x%d" % (n - 1)] * 9)) for n in range(1, 30)
    ]
    return [
        b"\n".join([*doubled, list_name + b": *x29", b""]),
        b"a: &a\n  b: *a\n%s: &l [*l]\n" % list_name,
        b"%s: 2024-13-45\n" % list_name,
        b"%s: 2001-12-14t99:59:43.10-99:99\n" % list_name,
        b"? [a, b]\n: c\n%s: {? {a: b} : c}\n" % list_name,
    ]


def _conda_lock(scratch: Path) -> Reader:
    file = scratch / "conda-lock.yml"

    def read(data: bytes) -> object:
        file.write_bytes(data)
        found = reading.read(file)
        return from_json(to_json(found), Lock, source="lock")

    return read


def _condarc(scratch: Path) -> Reader:
    """A stranger's one lies in the environment."""
    file = scratch / "env" / ".condarc"
    (scratch / "env" / "conda-meta").mkdir(parents=True)
    environ = {"HOME": str(scratch), "PATH": str(scratch), "MIRROR": "mirror.example"}

    def read(data: bytes) -> object:
        file.write_bytes(data)
        places = finder.parse_condarc(data.decode("utf-8", "replace"))
        return places, conda_configuration.read(file.parent, (), environ)

    return read


def _pip_conf(scratch: Path) -> Reader:
    file = scratch / "pip.conf"
    environ = {"HOME": str(scratch), "XDG_CONFIG_DIRS": str(scratch), "UV_NO_CONFIG": "1"}

    def read(data: bytes) -> object:
        file.write_bytes(data)
        found = configuration.read(scratch, environ)
        return uv_options.translate(found, ResolveRequest(pins=("torch==2.5.1",)), environ)

    return read


def _uv_toml(scratch: Path) -> Reader:
    file = scratch / "uv.toml"
    environ = {"HOME": str(scratch), "XDG_CONFIG_DIRS": str(scratch), "UV_CONFIG_FILE": str(file)}
    project = scratch / "project" / "pyproject.toml"
    project.parent.mkdir()

    def read(data: bytes) -> object:
        project.write_bytes(data)
        configuration._project_table(project.parent)
        file.write_bytes(data)
        found = configuration.read(None, environ)
        return uv_options.translate(found, ResolveRequest(pins=("torch==2.5.1",)), environ)

    return read


def _requirement_files(scratch: Path) -> Reader:
    file = scratch / "requirements.txt"
    (scratch / "more.txt").write_text("-r requirements.txt\nscipy\n")

    def read(data: bytes) -> object:
        file.write_bytes(data)
        return requirement_files.requirements(str(file)), requirement_files.has_editable(str(file))

    return read


def _commands() -> list[bytes]:
    """The samples; uv is asked for its options here, since a reader under test starts nothing."""
    for verb in ("install", "uninstall", "sync", "compile"):
        uv_help(f"pip {verb}")
    return list(COMMANDS)


def _command(_: Path) -> Reader:
    def read(data: bytes) -> object:
        found = command_words.read_command(command_words.split(data.decode("utf-8", "replace")), uv_help)
        return to_json(found.command)

    return read


TARGETS: tuple[Target, ...] = (
    Target(name="conda-lock", reader=_conda_lock, samples=lambda: [CONDA_LOCK, *_bombs(b"version: 1\nmetadata: *x1\npackage")],
           promised=(EnvmedicError,), words=(*_YAML, b"package:", b"manager: pip", b"platform: osx-64")),
    Target(name="condarc", reader=_condarc, samples=lambda: [CONDARC, CONDARC[: CONDARC.index(b"custom_channels")], *_bombs(b"channels")[1:]],
           promised=(EnvmedicError,), words=(*_YAML, *CONDA, b"${HOME}", b"$HOME", b"envs_dirs: ", b"channels: ")),
    Target(name="pip-conf", reader=_pip_conf, samples=lambda: [PIP_CONF], promised=(EnvmedicError,), reads=_OF_THIS_MACHINE,
           words=(b"[global]\n", b"[install]\n", b"[DEFAULT]\n", b"index-url = ", b"%(x)s", b"constraint = -r x", b"no-index = ")),
    Target(name="uv-toml", reader=_uv_toml, samples=lambda: [UV_TOML], promised=(EnvmedicError,), reads=_OF_THIS_MACHINE,
           words=(b"[[index]]\n", b"[pip]\n", b"pip = 1\n", b"index = 1\n", b"tool = 3\n", b"[tool.uv]\n", b"url = 7\n", b'"""', b"'''")),
    Target(name="requirement-files", reader=_requirement_files, samples=lambda: [REQUIREMENTS], promised=(EnvmedicError,),
           words=(b"-r more.txt\n", b"-r requirements.txt\n", b"--requirement=", b" @ ", b"; ", b" \\\n", b"===", b"#")),
    Target(name="command", reader=_command, samples=_commands, promised=(EnvmedicError,),
           words=(*JSON, *CONDA, b" --python=", b" -p ", b" -r ", b" -", b"env ", b"A=b ", b"'", b'"', b"\\", b" && ", b"$(x)", b" --")),
)  # fmt: skip
