"""What agents are told: when to use envmedic, and how. Pure."""

from __future__ import annotations

from typing import Final

GUIDE: Final = """\
envmedic diagnoses and repairs Python environments with PyTorch, CUDA and what is compiled for them. It never changes an
environment in place: a repair runs in a clone, checks prove the clone, and one atomic swap puts it in place. `undo` brings
the old environment back to the byte.

- A program fails at an import, with an undefined symbol, a missing lib*.so, no kernel image, a version conflict, a crash:
  `diagnose` with the whole error text and the prefix of the environment. Do not reinstall packages first.
- The verdict is `env`: `plan` shows the exact repair, `apply` asks the user and carries it out. Run the program again.
- The verdict is `host`, `shell` or `not-an-env-problem`: no change of the environment helps; follow the advice.
- Before an install: `guard` with the command says what it would break; `check` says whether a requirement would work here.
- Before a change by another tool: `snapshot`, so that `undo` can go back to it.
- `prefix` is the directory of the environment: what `python -c 'import sys; print(sys.prefix)'` prints there.
"""
"""The resource of the server."""

SNIPPET: Final = """\
## Python environment

This project's environment is looked after with `envmedic`, which repairs a clone and can undo.

- An import, CUDA or version error: run `envmedic run -- COMMAND` (or save the text: `envmedic diagnose LOG --json`)
  before you reinstall anything. Its last line is the command that repairs.
- Install packages with `envmedic pip install ...` or `envmedic uv pip install ...`: an install that breaks something is
  refused, and `envmedic undo` takes one back. Ask `envmedic guard 'pip install ...'` what a command would break.
- `envmedic apply --last --yes` repairs what failed under `run`; `--no-gpu` on a machine without a GPU. Exit code 0:
  repaired and proven. 1, 4: unchanged, the reason is on stderr. 5: the driver or host is at fault; tell the user.
- Never edit files of the environment by hand, and never delete `.envmedic` beside it: it holds what `undo` needs.
"""
"""For AGENTS.md."""
