"""The generated environment: as many files, directories and bytes of each kind as a venv with torch has.

Modelled on a venv of torch, torchvision, transformers and what they need: a third of the files are
modules, a third their byte code, most of the rest headers; 200 libraries hold nine tenths of the bytes.
Nothing in it is imported, so content is filler. The large libraries are sparse: their length is real,
the disk space is not.
"""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.venvs import make_venv, site_packages

FORMAT = 1
"""Goes up when what is generated changes, so that an older one is made again."""
_STAMP = ".bench-environment.json"
_SEED = 20250601
_MODULES_PER_FOLDER = 8
_HEADERS_PER_FOLDER = 13
_LIBRARY_BYTES = 300_000
_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Amounts:
    """How many of each kind a tree gets."""

    modules: int
    headers: int
    libraries: int
    large_libraries: int
    distributions: int
    scripts: int

    @classmethod
    def of(cls, files: int, distributions: int | None = None) -> Amounts:
        """Amounts that make at least `files` files in all, of as many `distributions` as is usual by default."""
        modules = files * 9_900 // 29_500 + 1
        return cls(
            modules=modules,
            headers=files - 2 * modules,
            libraries=max(files // 150, 2),
            large_libraries=max(files // 800, 1),
            distributions=distributions or max(files // 540, 3),
            scripts=max(files // 800, 2),
        )


def environment(prefix: Path, files: int, distributions: int | None = None) -> Path:
    """The generated environment at `prefix` with at least `files` files; made at once where there is none yet."""
    stamp = prefix / _STAMP
    wanted = {"format": FORMAT, "files": files, "distributions": distributions}
    if stamp.is_file() and json.loads(stamp.read_text()) == wanted:
        return prefix
    if prefix.exists():
        shutil.rmtree(prefix)
    make_venv(prefix)
    _Writer(prefix, Amounts.of(files, distributions)).write()
    stamp.write_text(json.dumps(wanted))
    return prefix


@dataclass
class _Writer:
    prefix: Path
    amounts: Amounts
    random: random.Random = field(default_factory=lambda: random.Random(_SEED))
    folders: set[Path] = field(default_factory=set)

    def write(self) -> None:
        site = site_packages(self.prefix)
        names = [f"package{number}" for number in range(self.amounts.distributions)]
        written: dict[str, list[Path]] = {name: [] for name in names}
        for name, path in self._modules(site, names):
            written[name] += [path, self._byte_code(path)]
        written[names[0]] += self._headers(site / names[0] / "include")
        written[names[0]] += self._libraries(site / names[0] / "lib")
        for number, name in enumerate(names):
            self._metadata(site, name, f"{number}.{number % 7}.1", written[name])
        for number in range(self.amounts.scripts):
            script = self._put(self.prefix / "bin" / f"tool{number}", f"#!{self.prefix}/bin/python\n".encode())
            script.chmod(0o755)

    def _modules(self, site: Path, names: list[str]) -> Iterator[tuple[str, Path]]:
        """Modules in nested packages; the first distributions have most of them."""
        weights = [1 / (1 + number) for number in range(len(names))]
        counts = dict.fromkeys(names, 0)
        for name in self.random.choices(names, weights, k=self.amounts.modules):
            folder, place = divmod(counts[name], _MODULES_PER_FOLDER)
            counts[name] += 1
            nested = Path(*(f"part{digit}" for digit in str(folder))) if folder else Path()
            module = "__init__.py" if place == 0 else f"module_{place}.py"
            yield name, self._put(site / name / nested / module, self._text(8_000))

    def _byte_code(self, module: Path) -> Path:
        target = Path(importlib.util.cache_from_source(str(module)))
        header = importlib.util.MAGIC_NUMBER + bytes(12)
        return self._put(target, header + self._text(8_000))

    def _headers(self, folder: Path) -> Iterator[Path]:
        for number in range(self.amounts.headers):
            group = str(number // _HEADERS_PER_FOLDER)
            yield self._put(folder / group[:1] / group / f"header{number}.h", self._text(5_000))

    def _libraries(self, folder: Path) -> Iterator[Path]:
        for number in range(self.amounts.libraries):
            yield self._put(folder / f"libsmall{number}.so", self.random.randbytes(_LIBRARY_BYTES))
        for number in range(self.amounts.large_libraries):
            path = self._put(folder / f"liblarge{number}.so", self.random.randbytes(_MEBIBYTE))
            with path.open("r+b") as file:
                file.truncate(self.random.randint(40, 220) * _MEBIBYTE)
            yield path

    def _metadata(self, site: Path, name: str, version: str, files: list[Path]) -> None:
        info = site / f"{name}-{version}.dist-info"
        record = "".join(f"{path.relative_to(site)},sha256={'A' * 43},{path.stat().st_size}\n" for path in files)
        for file, text in {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n{'About. ' * 400}\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "INSTALLER": "uv",
            "REQUESTED": "",
            "top_level.txt": f"{name}\n",
            "LICENSE": "Licence. " * 1000,
            "RECORD": record,
        }.items():
            self._put(info / file, text.encode())

    def _text(self, mean: int) -> bytes:
        return b"# filler\n" * (1 + int(self.random.expovariate(9 / mean)))

    def _put(self, path: Path, content: bytes) -> Path:
        if path.parent not in self.folders:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.folders.add(path.parent)
        path.write_bytes(content)
        return path
