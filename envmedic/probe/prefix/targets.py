"""Resolution of the options -n, -p and --python to the prefix of one environment."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from envmedic.errors import InputError, NotAnEnvironment
from envmedic.linked_prefix import real_prefix
from envmedic.owner import require_own
from envmedic.probe import layout
from envmedic.probe.prefix import finder, unnamed

_INTERPRETER = re.compile(r"(python|pypy)[\w.-]*")
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables that name the active environment, the strongest first."""


class NoneActive(InputError):
    """No environment is named and none is active."""


def resolve_prefix(*, name: str | None, prefix: str | None, python: str | None, own: bool = False) -> Path:
    """Return the absolute prefix that the options name, by default that of the active environment.

    Links in the path are kept as the user spelled them. Raises `NotAnEnvironment` when nothing is
    there, `InputError` when no environment is named or active, or when it is envmedic's own (unless `own`, for what
    only reads it), and `PreflightError` when this process is root and another user could exchange it.
    """
    found = chosen(name=name, prefix=prefix, python=python)
    require_own(found)  # before anything in it is read
    return checked(found, own=own)


def chosen(*, name: str | None, prefix: str | None, python: str | None) -> Path:
    """Return the path that the options name, whatever is there. Raises NotAnEnvironment, InputError."""
    variables = os.environ
    if sum(option is not None for option in (name, prefix, python)) > 1:
        raise InputError("More than one environment is named", hint="Give one of --name, --prefix and --python")
    if prefix is not None:
        return _absolute(prefix)
    if python is not None:
        return prefix_of_python(python)
    return named(name, variables) if name is not None else active(variables)


def places(*, name: str | None, prefix: str | None, python: str | None) -> tuple[Path, ...]:
    """The prefixes that the options may mean, whatever is there: for an environment that is missing."""
    if prefix is not None:
        return (_absolute(prefix),)
    if python is not None:
        return (_absolute(python).parent.parent,)
    if name is not None:
        return tuple(folder / name for folder in finder.environment_directories(os.environ))
    stated = (os.environ.get(variable) for variable in _ACTIVE)
    return tuple(_absolute(text) for text in stated if text)[:1]


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111  # keeps links


def checked(prefix: Path, *, own: bool = False) -> Path:
    """`prefix` when it is an environment that envmedic may look after; with `own` envmedic's own is one."""
    try:
        os.listdir(prefix)  # noqa: PTH208  # asks for the directory and the right to look into it at once
    except PermissionError as error:
        raise NotAnEnvironment(
            f"{prefix} cannot be read",
            cause=error.strerror,
            hint="Run envmedic as a user who may, or ask the owner of the environment",
        ) from error
    except FileNotFoundError as error:
        raise NotAnEnvironment(
            f"{prefix} does not exist",
            cause="it is a dangling symbolic link" if os.path.islink(prefix) else None,  # noqa: PTH114  # never raises
            hint="Name the directory of an environment with -p, its interpreter with --python, or a conda "
            "environment by its name with -n; `envmedic envs` lists those that are found",
        ) from error
    except NotADirectoryError as error:
        raise NotAnEnvironment(
            f"{prefix} is not a directory",
            cause="an environment is a directory that holds bin/python",
            hint=f"To name an environment by its interpreter, use --python {prefix}",
        ) from error
    except OSError as error:
        raise NotAnEnvironment(
            f"{prefix} cannot be read", cause=error.strerror, hint="Name the directory of an environment with -p"
        ) from error
    _require_unicode(prefix)
    # the real path, since /../ and links reach the root under other names
    if os.path.realpath(prefix) == "/":
        raise NotAnEnvironment(
            "/ is the root of the file system, not an environment",
            cause="a Python that lies there belongs to the operating system",
            hint="Name the directory of an environment with -p; the system's own Python is -p /usr",
        )
    _require_python(prefix)
    # last, so that a missing or foreign directory gets its own message first
    if os.path.realpath(prefix) == os.path.realpath(sys.prefix) and not own:
        raise InputError(
            f"{prefix} is the environment that envmedic itself runs from",
            cause="a repair would pull its own interpreter and libraries away from under it",
            hint="Install envmedic into an environment of its own (pipx install 'envmedic[repair]')",
        )
    return prefix


def _require_python(prefix: Path) -> None:
    """Raise NotAnEnvironment unless `prefix` is an environment; its hint names a likely one nearby."""
    try:
        layout.read_layout(prefix)
    except NotAnEnvironment as error:
        places = (prefix.parent, *(prefix / name for name in unnamed.WITHIN))
        near = next(filter(unnamed.is_environment, places), None)
        if near is not None:
            error.hint = f"Perhaps it is this one: -p {near}"
        raise


def _require_unicode(prefix: Path) -> None:
    """Raise InputError for a path that is not UTF-8: plans and records are JSON and could not contain it."""
    try:
        str(prefix).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The path of the environment is not valid UTF-8: {os.fsencode(prefix)!r}",
            hint="Reach it through a symbolic link with a readable name",
        ) from error


def prefix_of_python(python: str) -> Path:
    """Prefix of an interpreter: the parent of its directory.

    The interpreter's own link is not followed, since in a virtual environment it leads to the base; it
    may even dangle, which is a fault that the environment can be diagnosed for.
    """
    path = os.path.expanduser(python)  # noqa: PTH111  # a bare name must stay one
    found = path if "/" in path else shutil.which(path)
    if found is None or not os.path.lexists(found):
        raise NotAnEnvironment(
            f"There is no interpreter {python}",
            cause="it is not on PATH" if found is None else "no such file",
            hint="Give the path of an environment's bin/python",
        )
    if os.path.isdir(found):  # noqa: PTH112  # never raises
        raise NotAnEnvironment(f"{python} is a directory, not an interpreter", hint=f"Use -p {python}")
    if not _INTERPRETER.fullmatch(Path(found).name):
        raise NotAnEnvironment(
            f"{python} is not an interpreter of Python",
            cause="the name of one begins with python",
            hint="Give the path of an environment's bin/python",
        )
    # only the directory is resolved: bin may be a link into the real environment, python is one out of it
    return real_prefix(Path(os.path.realpath(Path(found).parent)).parent)


def active(variables: Mapping[str, str]) -> Path:
    """The activated environment: VIRTUAL_ENV, then CONDA_PREFIX."""
    for variable in _ACTIVE:
        if variables.get(variable):
            return _existing(_absolute(variables[variable]), variable)
    raise _none_active()


def _none_active() -> NoneActive:
    near = " or ".join(f"-p {shlex.quote(str(path))}" for path in nearby(Path.cwd()))
    return NoneActive(
        "No environment is named and none is active",
        cause="neither VIRTUAL_ENV nor CONDA_PREFIX is set",
        hint=(f"Perhaps it is this one: {near}. " if near else "")
        + "Activate the environment, or name it with -p DIR, -n NAME or --python PATH; `envmedic envs` lists what is found",
    )


def nearby(folder: Path) -> tuple[Path, ...]:
    """Return the environments that the project around `folder` keeps, but for envmedic's own."""
    found = unnamed.candidates(folder, os.environ)
    return tuple(path for path in found if os.path.realpath(path) != os.path.realpath(sys.prefix))


def is_unnamed(*, name: str | None, prefix: str | None, python: str | None) -> bool:
    """Whether no option names an environment and none is active."""
    return name is prefix is python is None and not any(os.environ.get(variable) for variable in _ACTIVE)


def of_project() -> Path:
    """Return the one environment of the project around the working directory, where nobody named or activated any.

    Raises NoneActive where there is none, several, or one that others than the caller and root can change, and the
    errors of `checked`.
    """
    found = nearby(Path.cwd())
    if len(found) != 1:
        raise _none_active()
    if not unnamed.is_owned(found[0]):
        error = _none_active()
        error.cause = f"{found[0]}, that of this project, can be changed by others than you and root"
        raise error
    require_own(found[0])
    return checked(found[0])


def _existing(prefix: Path, variable: str) -> Path:
    """`prefix`, which `variable` names. Raises NotAnEnvironment when it does not exist, with advice on the variable."""
    if not os.path.lexists(prefix):
        raise NotAnEnvironment(
            f"The active environment, {prefix}, does not exist",
            cause=f"{variable} names it: it was removed or moved after it was activated",
            hint="Activate another one (`deactivate` ends this), or name it with -p PREFIX",
        )
    return prefix


def named(name: str, variables: Mapping[str, str]) -> Path:
    """The conda environment called `name`, as conda would find it. Raises `InputError` with near names."""
    if "/" in name:
        raise InputError(
            f"{name} is a path, not a name", cause="names of environments hold no /", hint=f"Use -p {name}"
        )
    known: dict[str, Path] = {}
    for place in finder.conda(variables):
        known.setdefault(place.name or place.prefix.name, place.prefix)
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3)
    raise NotAnEnvironment(
        f"No conda environment is called {name}",
        cause=_known(len(known)) + (f"; near: {', '.join(near)}" if near else ""),
        hint="Name it by its directory with -p; `envmedic envs` lists those that are found",
    )


def _known(count: int) -> str:
    return "conda lists none" if not count else f"{count} environment{'s are' if count > 1 else ' is'} known"
