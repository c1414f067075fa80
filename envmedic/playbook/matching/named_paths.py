"""Owners of the files that a text names: which installation a module came from, by its path.

An error has a chain of frames, and its message may name a file. Where these belong to different installations, that says
more than the message: the reader writes it as a sentence for the signatures, with the error at its end.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from envmedic.model.playbook import TextOrigin
from envmedic.playbook.matching.lines import cleaned
from envmedic.redact import redact_text

Owner = Literal["build", "cache", "user site", "environment", "system", "libraries"]

_SITE = r"[\\/](?:site|dist)-packages[\\/](?P<module>\w[\w.-]*)"
_VERSIONED = r"[\\/]lib(?:64)?[\\/]python\d(?:\.\d+)?"
# the first form that fits decides: a build environment has a site-packages of its own, and a home directory one of its user
_FORMS: Final[tuple[tuple[Owner, re.Pattern[str]], ...]] = (
    # pip, build, uv
    ("build", re.compile(rf"(?P<root>.*[\\/](?:pip-(?:build-env|install|req-build)-[\w-]+|build-env-\w+|builds-v0[\\/]\.tmp\w+))[\\/](?:.*{_SITE})?")),
    ("cache", re.compile(r"(?P<root>.*[\\/](?:torch_extensions|\.triton[\\/]cache|torchinductor_[^\\/]+|\.nv[\\/]ComputeCache))[\\/]")),
    ("user site", re.compile(rf"(?P<root>.*(?:[\\/]\.local{_VERSIONED}|[\\/]AppData[\\/]Roaming[\\/]Python[\\/]Python\d+|[\\/]Library[\\/]Python[\\/][\d.]+[\\/]lib[\\/]python)){_SITE}")),
    ("system", re.compile(rf"(?P<root>/usr(?:/local)?{_VERSIONED}){_SITE}")),
    ("environment", re.compile(rf"(?P<root>.*?)(?:{_VERSIONED}|[\\/][Ll]ib){_SITE}")),
    # libtorch as an archive or a build of its own; conda keeps it beside its Python
    ("libraries", re.compile(r"(?!/usr/lib)(?P<root>.*?)(?:/lib)?/lib(?:torch|c10)(?:_\w+)?\.so\b")),
)  # fmt: skip
_FRAME = re.compile(
    r'(?:^|[\s>])(?:File "(?P<quoted>[^"\n]{1,400})", line \d+(?:, in (?P<within>[\w<>.]{1,80}))?'
    r"|(?:File )?(?P<plain>[~/.][^\s:\"']{1,400}\.py)(?::\d+)?[,(]? ?in (?P<function>[\w<>]{1,80}))"
)
_PATH = re.compile(r"(?<![\w/:.+~-])(?:[A-Za-z]:[\\/]|~?/)[^\s\"'`<>|;,()\[\]*?:]{3,400}")
_STATED = re.compile(
    r"Requirement already satisfied: (?P<name>[\w.-]+)\S{0,80} in (?P<site>\S{1,300}[/\\](?:site|dist)-packages)"
    r"|<module '[\w.]{1,80}' from '(?P<module>[^']{1,400})'>|^\W{0,4}?(?P<file>[/~]\S{1,400}/__init__\.py)\W{0,4}$"
)
_ERROR = re.compile(r"(?<![\w.-])[A-Za-z_][\w.]*(?:Error|Exception|BadZip[Ff]ile)(?=:|\s*$)")
_NEXT = re.compile(
    r"Traceback \(|File \"|During handling|The above exception|\S{1,400}:\d+: \w{0,60}Warning:|[A-Za-z_][\w.]*(?:Error|Exception):"
)
_WRITTEN_BREAK = re.compile(rb"\\{1,2}n(?=[ ]{2,}|[A-Za-z_][\w.]*(?:Error|Exception)\b|Traceback )")
_LACKS = re.compile(
    r"No module named '?(?P<module>[A-Za-z_]\w*)\.(?:\w+\.)*(?P<part>\w+)"
    r"|cannot import name '(?P<name>\w+)' from (?:partially initialized module )?'(?P<top>[A-Za-z_]\w*)[\w.]*'"
)
_OF_MODULE = re.compile(
    r"module '(?P<module>[A-Za-z_]\w*)' has no attribute|cannot import name '\w+' from (?:partially initialized module )?'(?P<top>[A-Za-z_]\w*)'"
    r"|No module named '(?P<package>[A-Za-z_]\w*)\.[\w.]+'; '(?P=package)' is not a package"
)
_OF_SUBMODULE = re.compile(r"module '(?P<module>[A-Za-z_]\w*)\.[\w.]+' has no attribute")
_OF_ITSELF = re.compile(
    r"ImportError: cannot import name '(?P<name>\w+)' from '(?P<top>[\w.]+)'|ModuleNotFoundError: No module named '(?P<part>\w+\.[\w.]+)'"
    r"|AttributeError: module '(?P<module>[\w.]+)' has no attribute"
)
_REFUSED_CALL = re.compile(
    r"^TypeError: .{0,200}(?:unexpected keyword argument|required (?:positional|keyword-only) argument|positional arguments? but)"
)
_MODULE = "<module>"
_OF_IMPORT = re.compile(
    r"(?:\w+\.)*\w+(?:Error|Exception)(?=:|$)(?!: (?:No module named|cannot import name|DLL load failed|partially initialized))"
)
_FILE_OF_LOADER = re.compile(r"\.(?:so|dll|pyd|dylib)\b")
_CLASS = re.compile(r"[A-Z]\w*")
_ASKED_FOR = re.compile(r"cannot import name '\w+' from '(?P<module>[A-Za-z_]\w*)[\w.]*' \((?P<path>[^()]{1,400})\)")
# what a source tree lacks until it was built: compiled modules and the version that the build writes
_MADE_BY_A_BUILD = re.compile(r"_C|_C_\w+|_?ext\w*|\w*_(?:cuda|ext|kernels?|ops|C)|_?version|_cext\w*|_kernels?")
_BUILT_WHEN_ASKED = "csrc"
"""What gsplat and its like look for before they build it at once: the error that follows tells why they could not."""
_LIBRARY = re.compile(r"[\\/][Ll]ib(?:64)?[\\/](?:python\d[\d.]*[\\/])?\w+\.py$")
_STANDARD = re.compile(
    r"[\\/][Ll]ib(?:64)?[\\/](?:python\d[\d.]*[\\/])?(?!.*(?:site|dist)-packages[\\/]).*\.py$|<frozen "
)
"""Python's own library."""
_CYTHON = re.compile(r".*\.(?:pyx|pxd|pxi)")
_PASSED_THROUGH = re.compile(
    r"torch[\\/](?:nn[\\/]modules[\\/](?:module|container)|utils[\\/]_contextlib|autograd[\\/]\w+|_dynamo[\\/]eval_frame)\.py$|<frozen |[\\/](?:importlib|functools|contextlib)\b"
)
"""Modules that call on whatever they are given."""
_INSTALLERS = frozenset({"pip", "installer", "poetry", "pdm", "unearth", "conda", "conda_package_handling", "pipenv"})
_PROTOBUF = re.compile(r"[\\/]google[\\/](?:protobuf|_upb)[\\/](?!\w+_pb2\.py)")
"""Modules of protobuf's runtime, which has generated ones of its own."""
_NAMESPACES = frozenset({"nvidia", "google", "mpl_toolkits", "zope", "ruamel", "azure", "sphinxcontrib", "jaraco"})
"""Packages whose parts may be in several directories."""
_OF_VALUES = ("IndexError:", "KeyError:", "TypeError:", "AttributeError:")
"""Errors that a program's own values may bring about."""
_OF_NAMES = ("AttributeError:", "NameError:", "UnboundLocalError:")
_CUT = re.compile(r"~|\\(?!\\)|(?![A-Za-z]:|[\\/])")
"""How a path begins of which the home directory, or the drive, is not told."""
_QUOTED_BYTES = 4096
_MESSAGE_LINES = 3
_SHOWN: Final = 300
_SYSTEMS: Final = {
    "Windows": re.compile(r"[A-Za-z]:[\\/]"),
    "macOS": re.compile(r"/Users/[\w.-]+/|/opt/homebrew/|/private/var/folders/"),
}
_OF_LINUX = re.compile(r"/(?:home|root|mnt|workspace|usr/lib)/|.*linux")


class Place(NamedTuple):
    """A file of an installation."""

    owner: Owner
    root: str
    """The installation's directory; for a user site and the system that of its Python."""
    module: str
    """The module or package at the top, empty where there is none."""

    @property
    def told(self) -> str:
        """The place in words."""
        named = {"environment": self.root, "libraries": self.root}
        return named.get(self.owner, f"the {self.owner} {self.root}")


class Frame(NamedTuple):
    """A line of a traceback that names a file."""

    path: str
    within: str
    """The function, the class whose body is run, or ``<module>``, which is also what a file has that cannot be parsed."""


class PathNotes(NamedTuple):
    """What the paths of a text say."""

    sentences: tuple[tuple[int, str, str], ...]
    """Number of a line, the line, and what it says of owners."""
    origin: TextOrigin
    calls: tuple[tuple[int, str, str], ...] = ()
    """Number of the line of an error, the installed package that asked for something, and the one that it asked, empty
    where the text does not tell."""


def place(path: str) -> Place | None:
    """Return the installation that owns the file `path`, None where the path does not tell."""
    for owner, form in _FORMS:
        found = form.match(path)
        if found is None:
            continue
        groups = found.groupdict()
        if "..." in groups["root"]:
            return None
        module = re.split(r"\.(?:py|pyd|cpython|abi3|so|libs|dist-info|egg-info)\b|-\d", groups.get("module") or "")[0]
        named = "torch" if owner == "libraries" else module
        return Place(owner, groups["root"].replace("\\\\", "\\"), named)
    return None


def named_paths(lines: Iterable[tuple[int, bytes]]) -> PathNotes:
    """Return what the paths in numbered `lines` say."""
    texts = [(number, cleaned(part)) for number, line in lines for part in _parts(line)]
    sentences: list[tuple[int, str, str]] = []
    every: list[str] = []
    stated: list[tuple[int, str, str]] = []
    calls: list[tuple[int, str, str]] = []
    chain: list[Frame] = []
    held: list[Frame] = []
    """Frames before a traceback that may be that of an interruption."""
    last: list[str] | None = None
    for index, (number, text) in enumerate(texts):
        # the frames of an interruption are of no error that follows; another process may have written them amid others
        if "Traceback (most recent" in text:
            chain, held = [], chain
        elif text.startswith("KeyboardInterrupt"):
            chain, held = held, []
        error = _ERROR.search(text)
        if error is None:
            chain += _frames(text)
            every += _named(text)
            stated += [(number, text, path) for path in _stated(text)]
            continue
        message = _message(text[error.start() :], texts[index + 1 : index + _MESSAGE_LINES])
        while chain and chain[-1].within == "__getattr__":
            chain.pop()  # it raises for whoever asked
        frames = [frame.path for frame in chain]
        last = [*frames, *(frame.path for frame in _frames(text)), *_named(message)]
        every += last
        said = (
            *_said(last, message),
            *(_calls(frames) or _refused(frames, message) or _inside(frames, message)),
            *_own_code(frames, message),
            *_projects(frames, message),
            *_generated(frames),
            *_own_part(frames, message),
            *_installing(frames),
            *_importing(chain, message),
            *_for_torch(chain, message),
        )
        sentences += [(number, text, f"{sentence}: {message[:_SHOWN]}") for sentence in said]
        calls += [(number, *pair) for pair in _asked(frames, message)]
        chain, held = [], []
    sentences += [(*stated[-1][:2], said) for said in _copies(_places(path for *_, path in stated))]
    known = _places(every if last is None else last)
    prefixes = dict.fromkeys(redact_text(found.root) for found in known if found.owner == "environment")
    system, path = _system(every)
    path = redact_text(path) if path is not None else None
    return PathNotes(tuple(sentences), TextOrigin(prefixes=tuple(prefixes), system=system, path=path), tuple(calls))


def _message(first: str, following: Sequence[tuple[int, str]]) -> str:
    """An error's message with the lines that continue it."""
    lines = itertools.takewhile(lambda text: text and _NEXT.match(text) is None, (text for _, text in following))
    return " ".join((first, *lines))


def _parts(line: bytes) -> list[bytes]:
    """The lines that a string in JSON has."""
    parts = _WRITTEN_BREAK.split(line) if b"\\n" in line else [line]
    return [part[:_QUOTED_BYTES] for part in parts]


def _frames(text: str) -> list[Frame]:
    if "in " not in text and "File " not in text:
        return []
    return [
        Frame(found["quoted"] or found["plain"], found["within"] or found["function"] or _MODULE)
        for found in _FRAME.finditer(text)
    ]


def _named(text: str) -> list[str]:
    return _PATH.findall(text) if "/" in text or "\\" in text else []


def _stated(text: str) -> list[str]:
    """The packages that pip or Python says to be in a directory."""
    if "-packages" not in text:
        return []
    found = _STATED.search(text)
    return [] if found is None else [found["file"] or found["module"] or f"{found['site']}/{found['name']}"]


def _system(paths: Sequence[str]) -> tuple[str | None, str | None]:
    """The other operating system of which `paths` are, and the first of them that shows it."""
    if any(_OF_LINUX.match(path) for path in paths):
        return None, None
    return next(((name, path) for path in paths for name, form in _SYSTEMS.items() if form.match(path)), (None, None))


def _places(paths: Iterable[str]) -> list[Place]:
    return [found for path in paths if (found := place(path)) is not None]


def _said(paths: Sequence[str], message: str) -> Iterator[str]:
    """What the paths of one chain of frames and of its message say of its error."""
    places = _places(paths)
    yield from _mixed(places)
    built = next((item for item in places if item.owner == "build" and item.module == "torch"), None)
    if built is not None:
        yield f"Build environment with its own torch, {built.root}"
    lacks = _LACKS.search(message)
    if lacks is not None:
        module, part = lacks["module"] or lacks["top"], lacks["part"] or lacks["name"]
        tree = _source_tree(paths, module)
        if tree is not None and _MADE_BY_A_BUILD.fullmatch(part) is not None:
            yield f"Source tree of {module} in {tree} without {module}.{part}"
    named = _OF_MODULE.search(message)
    if named is not None:
        module = next(name for name in named.groups() if name)
        own = _own_file(paths, module)
        if own is not None:
            library = " of the standard library" if module in sys.stdlib_module_names else ""
            yield f"Own file {own} in place of the module {module}{library}"


def _calls(frames: Sequence[str]) -> tuple[str, ...]:
    """The package that an error was raised in, and the other one that called it."""
    places = _of_calls(frames)
    last = places[-1] if places else None
    caller = _caller(places, last.module) if last is not None else None
    # another installation is told as that
    if last is not None and caller is not None and caller.root == last.root:
        return (f"Two packages, {caller.module} calls {last.module}",)
    return ()


def _refused(frames: Sequence[str], message: str) -> tuple[str, ...]:
    """The installed package whose call was refused: Python raises that in the frame of the call, and names no callee."""
    last = place(frames[-1]) if frames else None
    if last is None or not last.module or last.owner == "build" or _REFUSED_CALL.search(message) is None:
        return ()
    return (f"Refused call, of {last.module}",)


def _inside(frames: Sequence[str], message: str) -> tuple[str, ...]:
    """The installed package in whose own code a name, or an attribute of what it was given, is not there."""
    last = place(frames[-1]) if frames and message.startswith(_OF_NAMES) else None
    if last is None or not last.module or last.owner == "build" or "partially initialized" in message:
        return ()
    return (f"Error inside, of {last.module}",)


def _asked(frames: Sequence[str], message: str) -> Iterator[tuple[str, str]]:
    """The package that asked for what another one does not have or take, and that other one where the text tells."""
    places = _of_calls(frames)
    last = places[-1].module if places and places[-1] is not None else ""
    lacks, named = _LACKS.search(message), _OF_MODULE.search(message) or _OF_SUBMODULE.search(message)
    part_of = (lacks["module"] or lacks["top"]) if lacks is not None else None
    if part_of == last:
        return  # what lacks a part of itself is not all there
    if _REFUSED_CALL.search(message) is not None:
        # Python raises it in the frame of the call
        asked, caller = "", places[-1] if places else None
    else:
        asked = part_of or (next(name for name in named.groups() if name) if named is not None else last)
        caller = _caller(places, asked)
    apart = {asked, caller.module if caller is not None else ""} & (_NAMESPACES | sys.stdlib_module_names)
    if caller is not None and caller.module and not apart:
        yield caller.module, asked


def _of_calls(frames: Sequence[str]) -> list[Place | None]:
    """The installations of the frames that call on their own account; None for the user's code."""
    return [place(path) for path in frames if _PASSED_THROUGH.search(path) is None]


def _caller(places: Sequence[Place | None], called: str) -> Place | None:
    """The package that called another one; None where the user's code did, which may have called it wrongly."""
    found = next((item for item in reversed(places) if item is None or item.module != called), None)
    return found if found is not None and found.module and found.owner != "build" else None


def _own_code(frames: Sequence[str], message: str) -> Iterator[str]:
    """The user's file that raised an error of its own values."""
    last = frames[-1] if frames and message.startswith(_OF_VALUES) else None
    if last is not None and last.endswith(".py") and place(last) is None and _LIBRARY.search(last) is None:
        yield f"Own code, {last}"


def _own_part(frames: Sequence[str], message: str) -> Iterator[str]:
    """The installed package of which one module asks another one for what that does not have."""
    found = place(frames[-1]) if frames else None
    asked = _OF_ITSELF.match(message)
    if found is None or asked is None or found.owner == "build" or "partially initialized" in message:
        return
    named = asked["top"] or asked["part"] or asked["module"]
    part = asked["name"] or (asked["part"] or "").rpartition(".")[2]
    if part and (part == _BUILT_WHEN_ASKED or _MADE_BY_A_BUILD.fullmatch(part)):
        return  # told as not built
    if found.module and found.module == named.partition(".")[0] and found.module not in _NAMESPACES:
        yield f"Own part, {found.module} lacks what its own {frames[-1]} asks for"


def _importing(frames: Sequence[Frame], message: str) -> Iterator[str]:
    """The installed package whose import ended in an error of its own statements, or of what these called."""
    if _OF_IMPORT.match(message) is None or _FILE_OF_LOADER.search(message) is not None:
        return
    # modules that Cython compiled have paths of their source tree, and functions with the name of their module
    compiled = {frame.within.partition(".")[0] for frame in frames if "." in frame.within}
    raised = True
    for before, frame in reversed([*zip([None, *frames], frames, strict=False)]):
        if _STANDARD.search(frame.path) is not None:
            continue
        if re.split(r"[\\/]", frame.path)[0] in compiled or _CYTHON.fullmatch(frame.path) is not None:
            raised = False
            continue
        found = place(frame.path)
        if found is None or not found.module or found.owner == "build":
            return
        # a module that is run as a program begins below runpy, or begins a text
        imported = raised or (before is not None and "runpy" not in before.path)
        if imported and (frame.within == _MODULE or (raised and _CLASS.fullmatch(frame.within) is not None)):
            yield f"Failing import, of {found.module}"
            return
        raised = False


def _for_torch(frames: Sequence[Frame], message: str) -> Iterator[str]:
    """The installed package whose library torch could not open, where Windows names no file."""
    if "[WinError 12" not in message:
        return
    opened = next((index for index, frame in enumerate(frames) if frame.within == "load_library"), 0)
    found = place(frames[opened - 1].path) if opened else None
    if found is not None and found.module and found.module != "torch":
        yield f"Library for torch, of {found.module}"


def _installing(frames: Sequence[str]) -> Iterator[str]:
    """The installer whose code raised an error, or called what raised it."""
    tool = next(
        (found.module for found in _places(frames) if found.module in _INSTALLERS and found.owner != "build"), None
    )
    if tool is not None:
        yield f"Installer {tool}"


def _generated(frames: Sequence[str]) -> Iterator[str]:
    """The module that the compiler of protobuf wrote, where an error was raised in it or by the runtime that it called."""
    own = (path for path in reversed(frames) if _PROTOBUF.search(path) is None)
    last = next(own, "")
    if last.endswith("_pb2.py"):
        yield f"Generated code, {last}"


def _projects(frames: Sequence[str], message: str) -> Iterator[str]:
    """The file of one source tree that asks another tree for a name which that one does not have."""
    asked = _ASKED_FOR.search(message)
    if asked is None or not frames or asked["module"] in sys.stdlib_module_names:
        return
    caller, path = (re.sub(r"\\+", "/", name) for name in (frames[-1], asked["path"]))
    tree, found, _ = path.partition(f"/{asked['module']}/")
    if (
        found
        and place(path) is None
        and place(caller) is None
        and caller.startswith("/")
        and not caller.startswith(tree)
    ):
        yield f"Two projects, {caller} asks {asked['module']} in {tree}"


def _own_file(paths: Iterable[str], module: str) -> str | None:
    """The user's file that has the name of `module`, None without one."""
    name = re.compile(rf"(?:.*[\\/])?{module}\.py")
    # a traceback has frames of the standard library as well
    own = (path for path in paths if name.fullmatch(path) and _LIBRARY.search(path) is None)
    return next((path for path in own if place(path) is None), None)


def _source_tree(paths: Sequence[str], module: str) -> str | None:
    """The directory from which the package `module` was imported, None where that is an installation."""
    if any(item.module == module for item in _places(paths)):
        return None
    parts = (re.sub(r"\\+", "/", path).rpartition(f"/{module}/") for path in paths if place(path) is None)
    roots = [root or "/" for root, found, _ in parts if found and "..." not in root]
    # a repository is often called as its package
    return max(roots, key=len, default=None)


def _mixed(places: Sequence[Place]) -> Iterator[str]:
    """What installations of different owners in one chain say."""
    yield from _copies(places)
    installed = [item for item in places if item.module and item.owner in {"environment", "user site", "system"}]
    environment = next((item for item in installed if item.owner == "environment"), None)
    other = next(
        (item for item in reversed(installed) if environment is not None and not _same(item.root, environment.root)),
        None,
    )
    if environment is not None and other is not None:
        yield f"Two owners, {environment.told} of {environment.module}, {other.told} of {other.module}"


def _same(one: str, other: str) -> bool:
    """Whether two directories may be one.

    Notebooks write the home directory as ``~`` in frames, the loader in full, and people cut the beginning of a path that has
    their name, not in every line.
    """
    short, full = sorted((one, other), key=len)
    cut = _CUT.match(short)
    rest = short[cut.end() :].lstrip("\\/") if cut is not None else ""
    return one == other or (rest != "" and full.endswith((f"/{rest}", f"\\{rest}")))


def _copies(places: Sequence[Place]) -> Iterator[str]:
    roots: dict[str, list[Place]] = {}
    for item in places:
        if item.module and item.module not in _NAMESPACES and item.owner != "build":
            known = roots.setdefault(item.module, [])
            if not any(_same(item.root, other.root) for other in known):
                known.append(item)
    for module, copies in roots.items():
        if len(copies) > 1:
            first, second = copies[:2]
            yield f"Two copies of {module}, {first.told} and {second.told}"
