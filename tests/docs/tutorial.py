"""The tutorial: ``python -m tests.docs.tutorial`` runs every command that it shows and writes ``docs/tutorial.md``.

The environment is that of ``make demo``, of miniature wheels. With ``--check`` nothing is written, and the page is held
against what the commands print now, apart from times, sizes and identities.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import demo
from tests.envs.nms_cuda import case
from tests.support.venvs import uv

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
FOLDER = ROOT / ".demo"
ENV, LOG, PLAN = ".demo/env", ".demo/error.log", ".demo/plan.json"
PYTHON, PROGRAM = f"{ENV}/bin/python", ".demo/detector/detector.py"


@dataclass(frozen=True)
class Step:
    """Some prose, and a command with what it must come to."""

    prose: str
    command: str
    code: int = 0
    saved: str = ""
    """A file that keeps what the command prints."""
    lines: int | None = None
    """How many lines of its output are shown; all by default."""


PREPARED = ("make demo", ". .demo/settings")
"""What comes before the first step, by hand."""
TITLE = f"""\
# Tutorial

You diagnose a broken environment, repair a copy, check the copy, swap it in, and go back again. This takes five minutes, and
needs neither a GPU nor PyTorch: the environment is made of **miniatures**, tiny wheels in pure Python with the metadata and
layout of the real ones, so that they break the same way. In a checkout:

```console
$ {PREPARED[0]}
```

runs the whole story and leaves the broken environment in `.demo/`. Then follow it command by command, with envmedic on your
PATH. First let this shell take wheels from `.demo` only, since a real torchvision would not fit the miniature of torch:

```console
$ {PREPARED[1]}
```

Every command below was run as shown, and printed what stands below it.
"""
STEPS = (
    Step(
        "## A program fails\n\nThe program finds objects in pictures. It used to run. Then somebody installed a "
        "torchvision that was built for another torch.",
        f"{PYTHON} {PROGRAM}",
        code=1,
        saved=LOG,
    ),
    Step(
        f"## What is it?\n\nThe error text is now in the file `{LOG}`. `-p` names the environment; without it, envmedic takes "
        "the active one. The lines with `+` are facts that confirm the finding. Exit code 1 means that envmedic found a fault.",
        f"envmedic diagnose -p {ENV} {LOG}",
        code=1,
    ),
    Step("In plain words, if you have never met this fault:", "envmedic explain nms-cuda", lines=12),
    Step(
        "## What would a repair do?\n\nThe plan shows what would change, and which checks decide; `-v` adds "
        "every wheel and command. Nothing is changed yet. This machine has no GPU: `--no-gpu` accepts a repair that is not "
        "proven on one. Without it, `apply` would refuse to begin.",
        f"envmedic plan -p {ENV} --log {LOG} --no-gpu -o {PLAN}",
    ),
    Step(
        "## The repair\n\n`apply` carries out exactly the plan that you looked at, and refuses it if the environment has "
        "changed since. The checks run on the copy before the first step (the fault must show there) and after the last one. "
        "Then copy and environment are swapped in one instant.",
        f"envmedic apply {PLAN} --yes --no-gpu",
    ),
    Step("The program runs:", f"{PYTHON} {PROGRAM}"),
    Step(
        "## Is it sound?\n\n`verify` runs the checks on the environment as it is. Exit code 0 means that all passed.",
        f"envmedic verify -p {ENV} --no-gpu --profile quick",
    ),
    Step(
        "Would this command undo the repair? `guard` answers without running it:",
        f"envmedic guard -p {ENV} 'pip install torchvision==0.18.1'",
        1,
    ),
    Step("## And back\n\nenvmedic keeps the environment as it was before the repair.", f"envmedic history -p {ENV}"),
    Step("`undo` brings back the old environment byte for byte, without a network:", f"envmedic undo -p {ENV} --yes"),
    Step("The fault is back:", f"{PYTHON} {PROGRAM}", code=1, lines=3),
    Step("`redo` brings the repair back:", f"envmedic redo -p {ENV} --yes"),
    Step("", f"{PYTHON} {PROGRAM}"),
)
END = """\
## From here

- Your own case: `envmedic run -- python train.py`, or `envmedic diagnose error.log` with the error text that you have.
- `envmedic` without a command opens the [terminal UI](terminal-ui.md), which does all of this.
- [Faults by name](faults-by-name/index.md), [moving torch forward](upgrading.md), [offline](offline.md),
  [clusters](clusters.md), [containers](containers.md), [every command](commands.md).
"""


class TutorialError(Exception):
    """A command came to something else than the tutorial says."""


def main(arguments: Sequence[str]) -> int:
    """Run everything, and write the page or hold it against what came out."""
    try:
        page = told()
    except TutorialError as error:
        sys.stderr.write(f"The tutorial failed: {error}\n")
        return 1
    if "--check" not in arguments:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    differences = list(
        difflib.unified_diff(steady(PAGE.read_text(encoding="utf-8")), steady(page), "committed", "now", n=0)
    )
    if differences:
        sys.stderr.write("\n".join(["docs/tutorial.md is out of date: run `make tutorial`", *differences, ""]))
    return 1 if differences else 0


def told() -> str:
    """The page, from a run in a new demo environment. Raises TutorialError."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    built = case.build(FOLDER)
    (FOLDER / "home").mkdir()
    demo.SETTINGS.write_text(demo.settings(demo.variables(built)), encoding="utf-8")
    variables = {**_clean(), **built.index_variables()}
    _run(Step("", "envmedic playbooks list"), variables)  # what is read once takes its time once
    return "\n".join([TITLE, *(_part(step, variables) for step in STEPS), END])


def _clean() -> dict[str, str]:
    """Variables of a user without settings, a terminal or a GPU."""
    home = {"HOME": str(FOLDER / "home"), "XDG_CACHE_HOME": str(FOLDER / "cache"), "TERM": "dumb", "COLUMNS": "100"}
    return {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    } | home


def _part(step: Step, variables: Mapping[str, str]) -> str:
    text = _run(step, variables)
    if step.saved:
        (ROOT / step.saved).write_text(text, encoding="utf-8")
    lines = [line.rstrip() for line in shown(text).strip("\n").splitlines()]
    cut = [] if step.lines is None or len(lines) <= step.lines else ["..."]
    body = "\n".join(["```console", f"$ {step.command}", *lines[: step.lines], *cut, "```"])
    return f"{step.prose}\n\n{body}\n" if step.prose else f"{body}\n"


def _run(step: Step, variables: Mapping[str, str]) -> str:
    words = shlex.split(step.command)
    argv = [sys.executable, "-m", "envmedic", *words[1:]] if words[0] == "envmedic" else words
    done = subprocess.run(
        argv, cwd=ROOT, env=dict(variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != step.code:
        raise TutorialError(f"`{step.command}` exits with {done.returncode}, not {step.code}\n{done.stdout}")
    return done.stdout


def shown(text: str) -> str:
    """What a command printed, with paths as somebody in the checkout types them."""
    return text.replace(uv(), "uv").replace(f"{ROOT}/", "").replace(str(ROOT), ".")


_VARYING = re.compile(
    r"\d{4}-\d{2}-\d{2}[ T][\d:]+\S*|\d{8}T\d+\S*|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)? (?:s|ms|kB|MB|B)\b|err \S+|seed \d+| {2,}|python3\.\d+"
)


_PROGRESS = re.compile(r"[a-z][^:]*: (?:done in .*|\d+ checks?(?:, .*)?)")
"""What is told of stages that take longer than a moment."""


def steady(page: str) -> list[str]:
    """What of a page does not change from run to run."""
    told = (line for line in page.splitlines() if not _PROGRESS.fullmatch(line))
    return [_VARYING.sub(" ", line).strip() for line in told]


def commands(page: str) -> Iterator[str]:
    """The command lines that a page shows."""
    return (line.removeprefix("$ ") for line in page.splitlines() if line.startswith("$ "))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
