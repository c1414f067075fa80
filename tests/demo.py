"""The demo: a broken environment is diagnosed, repaired and undone, as a user would do it.

``make demo`` builds the environment from miniature wheels in ``.demo/``; ``make demo-real`` (``--real``)
installs torch 2.5.1 with torchvision 0.18.1 from the default index instead. Every command line that is
shown is run as it stands; a result other than the expected one ends the demo with exit 1.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.envs.nms_cuda import case
from tests.real.manifest import changed, manifest
from tests.support.venvs import editable_project, install_editable, python_of, uv

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo"
SETTINGS = FOLDER / "settings"
"""The variables of the demo's shell, for one that goes on by hand."""
FAULT = "operator torchvision::nms does not exist"
RESULT = "kept boxes: [0, 2]"
REAL_TORCHVISION = "torchvision==0.18.1"
REAL_REST = ("torch==2.5.1", "numpy", "pillow")
GO_ON = """\
#   .venv/bin/envmedic -p .demo/env     # in the terminal UI
# docs/tutorial.md goes through the repair command by command.
"""
LAST_PYTHON = (3, 12)
"""The newest Python that torch 2.5.1 has wheels for."""


class DemoError(Exception):
    """Something came out otherwise than expected."""


@dataclass(frozen=True)
class Scene:
    """The environment of the demo and the variables of its shell."""

    prefix: Path
    program: Path
    log: Path
    broken: str
    """The torchvision that is there, which belongs to another torch."""
    repaired: str
    """The one that belongs to its torch."""
    variables: dict[str, str] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Build, then run the story."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__)
    parser.add_argument("--real", action="store_true", help="real torch, some GB from your default index")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    try:
        scene = real_scene() if options.real else miniature_scene()
        story(scene)
    except DemoError as error:
        say(f"The demo failed: {error}")
        return 1
    SETTINGS.write_text(settings(scene.variables), encoding="utf-8")
    say(
        f"Done in {time.monotonic() - started:.0f} s. The broken environment stays in {shown([str(FOLDER)])}. Repair it yourself:"
    )
    say(GO_ON, blank=False)
    return 0


def settings(variables: Mapping[str, str]) -> str:
    """Lines for a shell of POSIX that set these variables."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def miniature_scene() -> Scene:
    """The environment from miniature wheels; takes some seconds."""
    say("A small broken environment, from miniature wheels (pure Python, not PyTorch), is built in .demo/")
    built = case.build(FOLDER)
    index_of_miniatures(built.prefix)
    return Scene(built.prefix, built.program, FOLDER / "error.log", case.BROKEN, case.REPAIRED, variables(built))


def index_of_miniatures(prefix: Path) -> None:
    """Let a repair from any shell find miniatures: a real torchvision would not fit a miniature of torch."""
    (prefix / "pip.conf").write_text(
        f"[global]\nindex-url = {(FOLDER / 'index' / 'simple').as_uri()}\n", encoding="utf-8"
    )


def variables(built: case.Case) -> dict[str, str]:
    """What the shell of the miniature demo has set: its wheels, and a cache apart from the user's own."""
    return {**built.index_variables(), "XDG_CACHE_HOME": str(FOLDER / "cache")}


def real_scene() -> Scene:
    """The environment from real wheels of the default index; takes minutes."""
    say("A broken environment with real torch is built in .demo/ (some GB from your default index)")
    prefix = FOLDER / "env"
    project = editable_project(FOLDER / "detector", "detector")
    (project / "detector.py").write_text(case.PROGRAM, encoding="utf-8")
    must([real_python(), "-m", "venv", str(prefix)])
    install = [str(python_of(prefix)), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]
    must([*install, *REAL_REST])
    must([*install, "--no-deps", REAL_TORCHVISION])
    install_editable(prefix, project)
    return Scene(prefix, project / "detector.py", FOLDER / "error.log", "0.18.1", "0.20.1")


def real_python() -> str:
    """A Python that torch 2.5.1 has wheels for."""
    if sys.version_info[:2] <= LAST_PYTHON:
        return sys.executable
    found = next((path for minor in (12, 11, 10) if (path := shutil.which(f"python3.{minor}"))), None)
    if found is None:
        raise DemoError("torch 2.5.1 has no wheel for this Python; run make with PYTHON=python3.12 or older")
    return found


def story(scene: Scene) -> None:
    """What a user does, and what must come out of it."""
    python = str(python_of(scene.prefix))
    program = Shell(scene)
    say("The user's program fails:")
    text = program.run([python, str(scene.program)], code=1, expect=FAULT)
    scene.log.write_text(text, encoding="utf-8")
    before, tree = program.freeze(python), manifest(scene.prefix)
    say("Which fault is it? (exit 1: a problem was found)")
    program.envmedic("diagnose", str(scene.log), code=1, expect="nms-cuda")
    say("What would a repair do? Nothing is changed by this:")
    program.envmedic("plan", "--playbook", "nms-cuda", "--no-gpu", code=0, expect=scene.repaired)
    must_equal(changed(tree, manifest(scene.prefix)), set(), "the files that planning changed")
    say("The repair: in a clone, proven there, then swapped in:")
    program.envmedic("apply", "--playbook", "nms-cuda", "--yes", "--no-gpu", code=0, expect=scene.repaired)
    program.run([python, str(scene.program)], code=0, expect=RESULT)
    expect_only_torchvision_changed(before, program.freeze(python))
    program.envmedic("history", code=0, expect=f"torchvision {scene.broken} -> {scene.repaired}")
    say("And back again, byte for byte:")
    program.envmedic("undo", "--yes", code=0)
    program.run([python, str(scene.program)], code=1, expect=FAULT)
    must_equal(changed(tree, manifest(scene.prefix)), set(), "the files that differ after undo")


@dataclass(frozen=True)
class Shell:
    """Shows each command as a user types it, runs it, and holds its outcome against what is expected."""

    scene: Scene

    def envmedic(self, *arguments: str, code: int, expect: str = "") -> str:
        """Run envmedic on the environment of the demo."""
        target = ["-p", str(self.scene.prefix)]
        command, rest = arguments[0], arguments[1:]
        return self.run([sys.executable, "-m", "envmedic", command, *target, *rest], code=code, expect=expect)

    def run(self, argv: Sequence[str], *, code: int, expect: str, quiet: bool = False) -> str:
        """Run `argv`, pass its output on, and return it. Raises `DemoError` when it is not as expected."""
        show: Callable[[str], object] = (lambda _: None) if quiet else sys.stdout.write
        show(f"\n$ {shown(argv)}\n")
        output = []
        variables = {**os.environ, **self.scene.variables, "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            argv, cwd=ROOT, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                output.append(line)
                show(line)
                sys.stdout.flush()
        text = "".join(output)
        if process.returncode != code:
            raise DemoError(
                f"`{shown(argv)}` exits with {process.returncode}, expected {code}\n{text if quiet else ''}"
            )
        if expect not in text:
            raise DemoError(f"`{shown(argv)}` does not print {expect!r}\n{text if quiet else ''}")
        return text

    def freeze(self, python: str) -> set[str]:
        """The installed distributions, as uv lists them."""
        text = self.run([uv(), "pip", "freeze", "--quiet", "--python", python], code=0, expect="torch", quiet=True)
        return set(text.splitlines())


def expect_only_torchvision_changed(before: set[str], after: set[str]) -> None:
    """Raise `DemoError` unless torchvision is the only distribution that differs."""
    changed = {line.partition("==")[0] for line in before ^ after}
    must_equal(changed, {"torchvision"}, "the distributions that the repair changed")


def must_equal(got: set[str], expected: set[str], what: str) -> None:
    """Raise `DemoError` unless both are the same."""
    if got != expected:
        raise DemoError(f"{what} are {sorted(got)}, expected {sorted(expected) or 'none'}")


def must(argv: Sequence[str]) -> None:
    """Run a command of the set-up with its output shown."""
    say(f"$ {shown(argv)}", blank=False)
    if subprocess.run(argv, check=False).returncode != 0:
        raise DemoError(f"`{shown(argv)}` failed")


def shown(argv: Sequence[str]) -> str:
    """A command line as a user would type it: paths relative to the checkout, `envmedic` and `uv` by name."""
    text = shlex.join(argv).replace(f"{shlex.quote(sys.executable)} -m envmedic", "envmedic").replace(uv(), "uv")
    return text.replace(f"{ROOT}/", "")


def say(text: str, *, blank: bool = True) -> None:
    """A line of the narrator."""
    sys.stdout.write(f"\n# {text}\n" if blank else f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
