"""``python -m tests.bench.static_truth [PREFIX…]``: what is read of compiled files against what really happens.

Each compiled module that the probe looks at is opened in a process of its own by the environment's Python, after
``import torch``; its outcome is the truth about the verdict "would not load". torch's own list of GPU architectures is the
truth about the reader of GPU code. Without a PREFIX, environments of several real torch and torchvision releases are made
(some GB from the default index). Ends with 1 when a verdict is false.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envmedic.diagnosis.areas.extensions import DRIVER
from envmedic.model.facts import Environment, Library
from envmedic.probe import layout
from envmedic.probe.binaries import extensions
from envmedic.probe.environment import observe_environment
from envmedic.probe.packages import distributions
from envmedic.probe.packages.import_names import Modules
from tests.support.venvs import python_of

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".bench" / "static"
TORCHES = ("2.5.1", "2.6.0")
TORCHVISIONS = ("0.18.1", "0.19.1", "0.20.1", "0.21.0")
EXTENSIONS = ("xformers==0.0.28.post3", "xformers==0.0.29.post3", "torchaudio==2.5.1", "torchaudio==2.6.0")
OTHERS = (
    "numpy", "pillow", "scipy", "pandas", "pyarrow", "opencv-python-headless", "scikit-learn", "sentencepiece",
    "onnxruntime", "bitsandbytes", "h5py", "lxml", "grpcio", "matplotlib",
)  # fmt: skip
"""Ordinary wheels with loader tricks of their own."""
TRUTH = Path(__file__).with_name("truth.py")


@dataclass
class Tally:
    """Verdicts by what the loader did."""

    right: int = 0
    broken: int = 0
    """Of `right`, those that do not load."""
    false: list[str] = field(default_factory=list)
    architectures: list[str] = field(default_factory=list)
    """Environments whose GPU code was read otherwise than torch says."""

    def line(self) -> str:
        """The figures in one line."""
        total = self.right + len(self.false)
        return (
            f"{total} verdicts, {self.broken} of files that do not load, {len(self.false)} false; architectures: "
            f"{'as torch says' if not self.architectures else 'NOT as torch says'}"
        )


def main(arguments: Sequence[str]) -> int:
    """Compare every environment and print the figures."""
    tally = Tally()
    for name, prefix in [(item, Path(item)) for item in arguments] or made():
        before = tally.right
        compare(prefix, tally)
        say(f"{name}: {tally.right - before} verdicts right")
    say(tally.line())
    for text in (*tally.false, *tally.architectures):
        say(f"  {text}")
    return 1 if tally.false or tally.architectures else 0


def made() -> Iterator[tuple[str, Path]]:
    """Every pair of torch with a companion or an extension, in one environment per torch."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for torch in TORCHES:
        prefix = FOLDER / f"torch-{torch}"
        if not python_of(prefix).exists():
            uv("venv", "--quiet", "--python", sys.executable, str(prefix))
            uv("pip", "install", "--quiet", "--python", str(python_of(prefix)), f"torch=={torch}", *OTHERS)
        yield f"torch {torch} and ordinary wheels", prefix
        for wanted in (*(f"torchvision=={item}" for item in TORCHVISIONS), *EXTENSIONS):
            uv("pip", "install", "--quiet", "--no-deps", "--python", str(python_of(prefix)), wanted)
            yield f"torch {torch} with {wanted}", prefix


def uv(*arguments: str) -> None:
    """Run uv. Raises `CalledProcessError`."""
    subprocess.run([str(Path(sys.executable).with_name("uv")), *arguments], check=True)


def compare(prefix: Path, tally: Tally) -> None:
    """Add the verdicts on one environment to the tally."""
    observed = observe_environment(prefix)
    paths = [str(path) for path in compiled(prefix, observed)]
    truth = ask(prefix, paths)
    wrong = {str(prefix / item.path): _reason(item) for item in (*observed.extensions, *observed.libraries)}
    for path in paths:
        verdict, outcome = wrong.get(path), truth["loads"][path]
        if (verdict is None) == (outcome is None):
            tally.right += 1
            tally.broken += outcome is not None
        else:
            tally.false.append(f"{path}: read as {verdict or 'loading'}, really {outcome or 'loads'}")
    said = truth.get("architectures")
    if said is not None and observed.torch is not None and tuple(said) != observed.torch.arch_list:
        tally.architectures.append(f"{prefix}: read {observed.torch.arch_list}, torch says {said}")


def compiled(prefix: Path, observed: Environment) -> Iterator[Path]:
    """What the probe gives a verdict on."""
    found = layout.read_layout(prefix)
    soabi = observed.interpreter.soabi
    for site in layout.site_packages(found, observed.interpreter.version):
        for group in extensions.groups(distributions.scan(site, prefix, soabi=soabi), Modules(soabi)):
            yield from group.modules
    yield from (prefix / item.path for item in observed.libraries if item.distribution != "torch")


def _reason(library: Library) -> str | None:
    """Why a library would not load, None when it would; what the driver brings may be absent here."""
    missing = [item for item in library.missing if not DRIVER.match(item)]
    if missing:
        return f"missing {missing[0]}"
    if library.unresolved:
        return f"undefined {library.unresolved[0].symbol}"
    return library.unmet_versions[0].version if library.unmet_versions else library.error


def ask(prefix: Path, paths: Sequence[str]) -> dict[str, Any]:
    """What the loader and torch say, in processes of the environment's Python."""
    argv = [str(python_of(prefix)), "-B", str(TRUTH)]
    done = subprocess.run(argv, input="\n".join(paths), check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
